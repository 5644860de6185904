//! Where a rank is reached over libfabric.

use super::{abi, is_internet};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// The first word of an address as text.
const WORD: &str = "fabric";

/// Longest address of a provider: ranks publish twice as many digits.
pub(crate) const MOST_BYTES: usize = 64;

/// The address of an endpoint, and what ranks must have in common.
///
/// As text, which ranks publish: `fabric:PROVIDER:FORMAT:MESSAGE BYTES:ADDRESS`, the last in
/// hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FabricAddress {
    provider: String,
    /// A number of the library's.
    format: u32,
    message_bytes: usize,
    bytes: Vec<u8>,
}

impl FabricAddress {
    pub(crate) fn new(provider: &str, format: u32, message_bytes: usize, bytes: Vec<u8>) -> Self {
        Self {
            provider: provider.to_owned(),
            format,
            message_bytes,
            bytes,
        }
    }

    /// The provider that has it.
    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    /// Longest message of its endpoint.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether an endpoint of one reaches the other.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        // The library takes as many bytes of an address of the Internet as its family has, and of a
        // text those up to its end.
        let of = |one: &Self| {
            let family = one.socket().map(|address| address.is_ipv4());
            let is_text = one.format == abi::ADDR_STR && one.bytes.last() == Some(&0);
            let len = (!is_text).then_some(one.bytes.len());
            (one.format, len, family)
        };
        self.provider == other.provider && of(self) == of(other)
    }

    /// Whether it is of the Internet.
    #[must_use]
    pub fn is_internet(&self) -> bool {
        is_internet(self.format)
    }

    /// The address of a socket, if it is one of the Internet.
    pub(crate) fn socket(&self) -> Option<SocketAddr> {
        if !self.is_internet() {
            return None;
        }
        let family: [u8; 2] = *self.bytes.first_chunk()?;
        let part = |at: usize, len: usize| self.bytes.get(at..at + len);
        let port = u16::from_be_bytes(part(2, 2)?.try_into().ok()?);
        match i32::from(u16::from_ne_bytes(family)) {
            libc::AF_INET => {
                let host: [u8; 4] = part(4, 4)?.try_into().ok()?;
                Some((Ipv4Addr::from(host), port).into())
            }
            libc::AF_INET6 => {
                let host: [u8; 16] = part(8, 16)?.try_into().ok()?;
                Some((Ipv6Addr::from(host), port).into())
            }
            _ => None,
        }
    }

    /// In words, for messages.
    #[must_use]
    pub fn in_words(&self) -> String {
        let at = match self.socket() {
            Some(address) => address.to_string(),
            None => self.digits(),
        };
        format!("libfabric's provider {} at {at}", self.provider)
    }

    fn digits(&self) -> String {
        self.bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl fmt::Display for FabricAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            provider,
            format,
            message_bytes,
            ..
        } = self;
        let digits = self.digits();
        write!(f, "{WORD}:{provider}:{format}:{message_bytes}:{digits}")
    }
}

/// A text that is no address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no address of an endpoint of libfabric")]
pub struct NoFabricAddress;

impl FromStr for FabricAddress {
    type Err = NoFabricAddress;

    fn from_str(text: &str) -> Result<Self, NoFabricAddress> {
        let rest = text
            .strip_prefix(WORD)
            .and_then(|rest| rest.strip_prefix(':'));
        // A provider's name may have anything.
        let mut parts = rest.ok_or(NoFabricAddress)?.rsplitn(4, ':');
        let mut next = || parts.next().ok_or(NoFabricAddress);
        let (digits, message_bytes, format, provider) = (next()?, next()?, next()?, next()?);
        let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
        if !odd.is_empty() || pairs.is_empty() || pairs.len() > MOST_BYTES {
            return Err(NoFabricAddress);
        }
        let digit = |byte: u8| (byte as char).to_digit(16).ok_or(NoFabricAddress);
        let byte = |pair: &[u8; 2]| Ok((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
        let bytes: Result<Vec<u8>, NoFabricAddress> = pairs.iter().map(byte).collect();
        let number = |text: &str| text.parse().map_err(|_| NoFabricAddress);
        Ok(Self {
            provider: provider.to_owned(),
            format: number(format)?,
            message_bytes: number(message_bytes)? as usize,
            bytes: bytes?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<FabricAddress, NoFabricAddress> {
        text.parse()
    }

    #[test]
    fn addresses_come_back_from_their_text_and_nothing_else_does() {
        let text = "fabric:udp;x:2:1472:02001234 7f000001".replace(' ', "");
        let address = of(&text).unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.message_bytes(), 1472);
        let long = format!("fabric:udp:2:1472:{}", "00".repeat(MOST_BYTES + 1));
        for bad in [
            "127.0.0.1:7",
            "fabric",
            "fabric:udp:2:1472:",
            "fabric:udp:2:1472:123",
            "fabric:udp:2:1472:1g",
            "fabric:udp:2:-1:12",
            "fabric:2:1472:12",
            &long,
        ] {
            assert_eq!(of(bad), Err(NoFabricAddress), "{bad}");
        }
    }

    /// The library would read beyond what an address of another family has.
    #[test]
    fn addresses_of_two_families_are_not_alike() {
        let of_family = |family: i32| {
            let mut bytes = (family as u16).to_ne_bytes().to_vec();
            bytes.resize(28, 1);
            FabricAddress::new("sockets", 1, 1472, bytes)
        };
        let [four, six, none] = [libc::AF_INET, libc::AF_INET6, 99].map(of_family);
        assert!(four.is_alike(&four) && six.is_alike(&six));
        for (one, other) in [(&four, &six), (&six, &four), (&four, &none)] {
            assert!(!one.is_alike(other));
        }
    }

    #[test]
    fn texts_are_alike_if_they_have_an_end() {
        let text = |bytes: &[u8]| FabricAddress::new("shm", abi::ADDR_STR, 4096, bytes.to_vec());
        let (own, longer, endless) = (text(b"1\0"), text(b"22\0"), text(b"22"));
        assert!(own.is_alike(&longer) && !own.is_alike(&endless));
        assert!(!text(b"").is_alike(&own));
    }

    #[test]
    fn an_address_of_the_internet_is_shown_as_one() {
        let family = |family: u16| family.to_ne_bytes();
        let mut four = family(libc::AF_INET as u16).to_vec();
        four.extend([0x12, 0x34, 127, 0, 0, 1]);
        let address = FabricAddress::new("udp", 2, 1472, four.clone());
        assert_eq!(address.socket(), Some("127.0.0.1:4660".parse().unwrap()));
        let words = "libfabric's provider udp at 127.0.0.1:4660";
        assert_eq!(address.in_words(), words);
        let mut six = family(libc::AF_INET6 as u16).to_vec();
        six.extend([0x12, 0x34, 0, 0, 0, 0]);
        six.extend(Ipv6Addr::LOCALHOST.octets());
        let address = FabricAddress::new("udp", 3, 1472, six.clone());
        assert_eq!(address.socket(), Some("[::1]:4660".parse().unwrap()));
        // Too short, of another family, of another format.
        for (format, bytes) in [(3, &six[..20]), (2, &[9; 8]), (2, &[]), (12, &four)] {
            let address = FabricAddress::new("efa", format, 8192, bytes.to_vec());
            assert_eq!(address.socket(), None, "{format} {bytes:?}");
        }
        let address = FabricAddress::new("efa", 12, 8192, vec![1, 0xab]);
        assert_eq!(address.in_words(), "libfabric's provider efa at 01ab");
    }

    #[test]
    fn only_endpoints_of_one_provider_and_one_form_reach_each_other() {
        let address = |text: &str| of(text).unwrap();
        let one = address("fabric:udp:2:1472:0102");
        assert!(one.is_alike(&address("fabric:udp:2:8192:ffff")));
        for other in ["verbs:2:1472:0102", "udp:3:1472:0102", "udp:2:1472:010203"] {
            assert!(!one.is_alike(&address(&format!("fabric:{other}"))));
        }
    }
}
