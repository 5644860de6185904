//! The value of `ARGONET_TCP_INTERFACES`, or a subnet in `GASNET_WORKERIP`.

use super::InterfaceError;
use core::fmt;
use core::net::IpAddr;

/// Addresses with the same first bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// One of them.
    pub address: IpAddr,
    /// How many bits are the same.
    pub prefix: u8,
}

impl Subnet {
    /// Whether `other` is one of them.
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        let (mine, its, bits) = match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (u128::from(a.to_bits()), u128::from(b.to_bits()), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        let free = bits - u32::from(self.prefix).min(bits);
        // A shift by all bits is none in Rust.
        (mine ^ its).checked_shr(free).unwrap_or(0) == 0
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// One part of a wish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// The interface of this name.
    Name(String),
    /// Interfaces with an address in this subnet.
    Subnet(Subnet),
    /// The interfaces whose own subnet has this address: an address of theirs, or that of the
    /// subnet itself.
    Address(IpAddr),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Subnet(subnet) => fmt::Display::fmt(subnet, f),
            Self::Address(address) => fmt::Display::fmt(address, f),
        }
    }
}

/// Which interfaces a user wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The variable that says so, for errors.
    pub setting: &'static str,
    /// Those, in this order; all that are fit for it if there are none here.
    pub items: Vec<Item>,
    /// At most so many; 0 is any number.
    pub most: usize,
}

/// The variable that names interfaces, where no other does.
pub(super) const SETTING: &str = "ARGONET_TCP_INTERFACES";

impl Default for Wish {
    fn default() -> Self {
        Self {
            setting: SETTING,
            items: Vec::new(),
            most: 0,
        }
    }
}

/// Linux allows no longer names.
const LONGEST_NAME: usize = 15;

// spec T5: a list of interfaces, or a number of them.
impl Wish {
    /// Reads a comma-separated list of names (`eth0`), subnets (`10.1.0.0/16`) and addresses
    /// (`192.168.0.0`).
    ///
    /// Blanks around its parts do not count. An empty list is no wish. `setting` is the variable
    /// that has it.
    ///
    /// # Errors
    /// [`InterfaceError::Malformed`] names the part, and the form that it should have.
    pub fn parse(setting: &'static str, list: &str, most: usize) -> Result<Self, InterfaceError> {
        let items = if list.trim().is_empty() {
            Vec::new()
        } else {
            let parts = list.split(',').map(str::trim);
            let items: Result<_, _> = parts.map(|part| item_of(setting, part)).collect();
            items?
        };
        Ok(Self {
            setting,
            items,
            most,
        })
    }
}

fn item_of(setting: &'static str, text: &str) -> Result<Item, InterfaceError> {
    let malformed = |why: String| InterfaceError::Malformed {
        setting,
        item: text.to_owned(),
        why,
    };
    if let Ok(address) = text.parse() {
        return Ok(Item::Address(address));
    }
    if let Some((address, prefix)) = text.split_once('/') {
        let address: IpAddr = address
            .parse()
            .map_err(|_| malformed(format!("{address:?} before the / is no IP address")))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let plain = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix: Option<u8> = prefix.parse().ok().filter(|n| plain && *n <= bits);
        let prefix = prefix.ok_or_else(|| {
            malformed(format!(
                "after the / must be a number of bits from 0 to {bits}"
            ))
        })?;
        return Ok(Item::Subnet(Subnet { address, prefix }));
    }
    if text.is_empty() {
        return Err(malformed("there is nothing between two commas".into()));
    }
    if text.len() > LONGEST_NAME || text.bytes().any(|b| b.is_ascii_whitespace()) {
        return Err(malformed(format!(
            "it is no name of an interface: those have no blanks and at most {LONGEST_NAME} characters"
        )));
    }
    Ok(Item::Name(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subnet(text: &str) -> Subnet {
        match item_of(SETTING, text) {
            Ok(Item::Subnet(subnet)) => subnet,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn lists_are_read() {
        let none = Wish {
            most: 2,
            ..Wish::default()
        };
        assert_eq!(Wish::parse(SETTING, " ", 2), Ok(none));
        let wish = Wish::parse(SETTING, "eth0, 10.1.0.0/16 ,192.168.0.0,fd00::/8", 0).unwrap();
        let shown: Vec<_> = wish.items.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["eth0", "10.1.0.0/16", "192.168.0.0", "fd00::/8"]);
        assert!(matches!(wish.items[0], Item::Name(_)));
        assert!(matches!(wish.items[2], Item::Address(_)));
    }

    #[test]
    fn parse_errors_name_the_setting_and_the_fault() {
        for (list, fault) in [
            ("eth0,,eth1", "nothing between two commas"),
            ("eth0,", "nothing between two commas"),
            ("10.0.0.0/33", "bits from 0 to 32"),
            ("10.0.0.0/+8", "bits from 0 to 32"),
            ("10.0.0.0/", "bits from 0 to 32"),
            ("fd00::/129", "bits from 0 to 128"),
            ("10.0.0/8", "\"10.0.0\" before the / is no IP address"),
            ("eth0 eth1", "have no blanks"),
            ("an-interface-with-a-long-name", "at most 15 characters"),
        ] {
            let text = Wish::parse("GASNET_WORKERIP", list, 0)
                .unwrap_err()
                .to_string();
            assert!(
                text.contains(fault) && text.starts_with("GASNET_WORKERIP: "),
                "{list}: {text}"
            );
        }
    }

    #[test]
    fn a_subnet_has_the_addresses_with_its_first_bits() {
        let inside = |net: &str, address: &str| subnet(net).contains(address.parse().unwrap());
        assert!(inside("10.1.0.0/16", "10.1.255.3") && !inside("10.1.0.0/16", "10.2.0.0"));
        assert!(inside("0.0.0.0/0", "1.2.3.4") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("1.2.3.4/32", "1.2.3.4") && !inside("1.2.3.4/32", "1.2.3.5"));
        assert!(inside("::/0", "fd00::1") && inside("fd00::1/128", "fd00::1"));
        assert!(!inside("fd00::/8", "fe00::1"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_with_its_name(text in "[a-z0-9:./, ]{0,30}") {
            match Wish::parse(SETTING, &text, 0) {
                Ok(wish) => {
                    let shown: Vec<_> = wish.items.iter().map(ToString::to_string).collect();
                    prop_assert_eq!(Wish::parse(SETTING, &shown.join(","), 0), Ok(wish));
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
