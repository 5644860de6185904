//! The choice among the interfaces that there are.

use super::wish::{Item, Wish};
use super::{Interface, InterfaceKind};
use core::net::{IpAddr, SocketAddr};

/// Why there is no interface to use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// A part of the wish is not written as one.
    #[error("{setting}: \"{item}\": {why}")]
    Malformed {
        /// The variable.
        setting: &'static str,
        /// The part.
        item: String,
        /// The fault.
        why: String,
    },
    /// This host has no such interface.
    #[error("{setting}: {host} has no interface \"{item}\"; it has {existing}")]
    Unknown {
        /// The variable.
        setting: &'static str,
        /// The host.
        host: String,
        /// The item of the wish.
        item: String,
        /// The interfaces that there are.
        existing: String,
    },
    /// It has, but it is of no use now.
    #[error("{setting}: \"{item}\" is down on {host}; it has {existing}")]
    Down {
        /// The variable.
        setting: &'static str,
        /// The host.
        host: String,
        /// The item of the wish.
        item: String,
        /// The interfaces that there are.
        existing: String,
    },
    /// Nothing was wished, and nothing there is fit to lead to other hosts.
    #[error(
        "{host} has no interface for a job of several hosts: it has {existing}; name one of them in ARGONET_TCP_INTERFACES \
         if it leads to the others"
    )]
    None {
        /// The host.
        host: String,
        /// The interfaces that there are.
        existing: String,
    },
    /// The system does not list its interfaces.
    #[error("{host} does not list its network interfaces: {cause}")]
    List {
        /// The host.
        host: String,
        /// The system's error.
        cause: String,
    },
}

/// Chooses among the interfaces of `host`, each of whose addresses is an entry of `existing`.
///
/// `one_host` says that the job has no other.
///
/// # Errors
/// [`InterfaceError`]; it lists the interfaces that there are.
pub fn choose(
    existing: &[Interface],
    wish: &Wish,
    one_host: bool,
    host: &str,
) -> Result<Vec<Interface>, InterfaceError> {
    let mut chosen = if wish.items.is_empty() {
        unasked(existing, one_host, host)?
    } else {
        let mut chosen = Vec::new();
        for item in &wish.items {
            named(existing, wish.setting, item, host, &mut chosen)?;
        }
        chosen
    };
    if wish.most > 0 {
        keep_first(&mut chosen, wish.most);
    }
    Ok(chosen)
}

/// Those that [`choose`] takes as far as they are there now: parts of the wish of which none is up
/// are left out.
#[must_use]
pub fn present(existing: &[Interface], wish: &Wish, one_host: bool) -> Vec<Interface> {
    let mut chosen = Vec::new();
    if wish.items.is_empty() {
        chosen = unasked(existing, one_host, "").unwrap_or_default();
    }
    for item in &wish.items {
        // One without an interface adds none.
        let _ = named(existing, wish.setting, item, "", &mut chosen);
    }
    if wish.most > 0 {
        keep_first(&mut chosen, wish.most);
    }
    chosen
}

fn unasked(
    existing: &[Interface],
    one_host: bool,
    host: &str,
) -> Result<Vec<Interface>, InterfaceError> {
    let kind = if one_host {
        InterfaceKind::Loopback
    } else {
        InterfaceKind::Network
    };
    let fit = |interface: &&Interface| interface.up && interface.kind == kind;
    let chosen: Vec<Interface> = existing.iter().filter(fit).cloned().collect();
    if chosen.is_empty() {
        return Err(InterfaceError::None {
            host: host.to_owned(),
            existing: listed(existing),
        });
    }
    Ok(chosen)
}

fn named(
    existing: &[Interface],
    setting: &'static str,
    item: &Item,
    host: &str,
    chosen: &mut Vec<Interface>,
) -> Result<(), InterfaceError> {
    let meant = |interface: &&Interface| match item {
        Item::Name(name) => interface.name == *name,
        Item::Subnet(subnet) => subnet.contains(interface.address),
        Item::Address(address) => interface.subnet().contains(*address),
    };
    let found: Vec<&Interface> = existing.iter().filter(meant).collect();
    let host = host.to_owned();
    if found.is_empty() {
        return Err(InterfaceError::Unknown {
            setting,
            host,
            item: item.to_string(),
            existing: listed(existing),
        });
    }
    if !found.iter().any(|interface| interface.up) {
        return Err(InterfaceError::Down {
            setting,
            host,
            item: item.to_string(),
            existing: listed(existing),
        });
    }
    for interface in found.into_iter().filter(|interface| interface.up) {
        if !chosen.contains(interface) {
            chosen.push(interface.clone());
        }
    }
    Ok(())
}

/// The first `most` interfaces by name, with all their addresses.
fn keep_first(chosen: &mut Vec<Interface>, most: usize) {
    let mut names: Vec<String> = Vec::new();
    chosen.retain(|interface| {
        if !names.contains(&interface.name) {
            names.push(interface.name.clone());
        }
        names.iter().take(most).any(|name| *name == interface.name)
    });
}

fn listed(existing: &[Interface]) -> String {
    if existing.is_empty() {
        return "none with an address".into();
    }
    let shown: Vec<String> = existing.iter().map(ToString::to_string).collect();
    shown.join(", ")
}

// spec T7: addresses are paired by subnet.
/// The addresses of a peer in the order in which they are to be tried: those in a subnet of one of
/// ours first, one for each of our interfaces in turn, so that connection 0 goes over the first,
/// connection 1 over the second.
#[must_use]
pub fn in_order_of_reach(ours: &[Interface], theirs: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut left: Vec<SocketAddr> = theirs.to_vec();
    let mut ordered = Vec::with_capacity(theirs.len());
    loop {
        let before = ordered.len();
        for interface in ours {
            let near = |address: &SocketAddr| interface.subnet().contains(address.ip());
            if let Some(i) = left.iter().position(near) {
                ordered.push(left.remove(i));
            }
        }
        if ordered.len() == before {
            break;
        }
    }
    ordered.extend(left);
    ordered
}

/// The address of ours that a connection to a peer's address leaves from, so that it goes by an
/// interface that was chosen: of those in the narrowest subnet that has the peer's, one for each
/// connection in turn; else the only one that leads to other hosts.
///
/// `None` where there are several of those, also of one interface, or none: the system's routes
/// decide.
#[must_use]
pub fn source_for(ours: &[Interface], to: IpAddr, connection: u16) -> Option<IpAddr> {
    let around = ours.iter().filter(|own| own.subnet().contains(to));
    let narrowest = around.clone().map(|own| own.prefix).max();
    let around: Vec<&Interface> = around.filter(|own| Some(own.prefix) == narrowest).collect();
    if !around.is_empty() {
        return Some(around[usize::from(connection) % around.len()].address);
    }
    let leads = |own: &&Interface| {
        own.kind != InterfaceKind::Loopback && own.address.is_ipv4() == to.is_ipv4()
    };
    let mut leading = ours.iter().filter(leads);
    let first = leading.next()?;
    leading.next().is_none().then_some(first.address)
}

#[cfg(test)]
mod tests {
    use super::super::wish::SETTING;
    use super::*;

    fn interface(name: &str, address: &str, kind: InterfaceKind, up: bool) -> Interface {
        let (address, prefix) = address.split_once('/').unwrap();
        Interface {
            name: name.into(),
            address: address.parse().unwrap(),
            prefix: prefix.parse().unwrap(),
            up,
            kind,
        }
    }

    fn host() -> Vec<Interface> {
        use InterfaceKind::{Bridge, Loopback, Network};
        vec![
            interface("lo", "127.0.0.1/8", Loopback, true),
            interface("eth0", "10.1.0.7/16", Network, true),
            interface("eth0", "fd00::7/64", Network, true),
            interface("eth1", "10.2.0.7/16", Network, false),
            interface("ib0", "10.3.0.7/16", Network, true),
            interface("docker0", "172.17.0.1/16", Bridge, true),
        ]
    }

    fn names(list: &str, most: usize, one_host: bool) -> Vec<String> {
        let wish = Wish::parse(SETTING, list, most).unwrap();
        let chosen = choose(&host(), &wish, one_host, "node7").unwrap();
        chosen
            .iter()
            .map(|i| format!("{} {}", i.name, i.address))
            .collect()
    }

    #[test]
    fn what_is_down_is_left_out_of_those_that_are_present() {
        let present = |list: &str, most: usize| -> Vec<String> {
            let wish = Wish::parse(SETTING, list, most).unwrap();
            let all = present(&host(), &wish, false);
            all.iter().map(|i| i.address.to_string()).collect()
        };
        assert_eq!(present("eth1,ib0,eth9", 0), ["10.3.0.7"]);
        assert_eq!(present("eth1", 0), [""; 0]);
        assert_eq!(present("", 0), ["10.1.0.7", "fd00::7", "10.3.0.7"]);
        assert_eq!(present("ib0,eth0", 1), ["10.3.0.7"]);
    }

    /// spec T5: interfaces by list, and by number without names.
    #[test]
    fn names_subnets_and_numbers_choose() {
        let eth0 = ["eth0 10.1.0.7", "eth0 fd00::7"];
        assert_eq!(names("", 0, false), [eth0[0], eth0[1], "ib0 10.3.0.7"]);
        assert_eq!(names("", 1, false), eth0);
        assert_eq!(names("", 9, false), names("", 0, false));
        assert_eq!(names("", 0, true), ["lo 127.0.0.1"]);
        assert_eq!(
            names("ib0,eth0", 0, false),
            ["ib0 10.3.0.7", eth0[0], eth0[1]]
        );
        assert_eq!(names("ib0,eth0", 1, false), ["ib0 10.3.0.7"]);
        assert_eq!(names("10.3.0.0/16", 0, false), ["ib0 10.3.0.7"]);
        assert_eq!(names("10.0.0.0/8", 0, false), [eth0[0], "ib0 10.3.0.7"]);
        assert_eq!(names("10.1.0.0", 0, true), [eth0[0]]);
        assert_eq!(names("eth0,10.1.0.7", 0, false), eth0);
        // A named interface is used, of any kind.
        assert_eq!(
            names("lo,docker0", 0, false),
            ["lo 127.0.0.1", "docker0 172.17.0.1"]
        );
    }

    fn error(existing: &[Interface], list: &str, one_host: bool) -> String {
        let wish = Wish::parse(SETTING, list, 0).unwrap();
        choose(existing, &wish, one_host, "node7")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_unusable_interface_is_reported_with_all_interfaces() {
        let all = "it has lo (127.0.0.1/8, loopback), eth0 (10.1.0.7/16), eth0 (fd00::7/64), eth1 (10.2.0.7/16, down), ib0 \
                   (10.3.0.7/16), docker0 (172.17.0.1/16, of containers or virtual machines)";
        for (list, fault) in [
            ("eth0,eth7", "node7 has no interface \"eth7\""),
            ("10.9.0.0/16", "node7 has no interface \"10.9.0.0/16\""),
            ("10.9.0.1", "node7 has no interface \"10.9.0.1\""),
            ("eth1", "\"eth1\" is down on node7"),
            ("10.2.0.0/16", "\"10.2.0.0/16\" is down on node7"),
        ] {
            let text = error(&host(), list, false);
            assert!(text.contains(fault) && text.contains(all), "{list}: {text}");
        }
        let lonely = &host()[..1];
        let text = error(lonely, "", false);
        assert!(
            text.contains("several hosts: it has lo (127.0.0.1/8, loopback);"),
            "{text}"
        );
        assert!(error(&[], "", true).contains("none with an address"));
    }

    /// spec T7: addresses are paired by subnet.
    #[test]
    fn addresses_are_tried_in_the_order_of_reach() {
        let sockets = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        let theirs = sockets(&["172.17.0.1:1", "10.3.0.9:2", "10.3.0.8:3", "10.1.0.9:4"]);
        let ours = choose(&host(), &Wish::default(), false, "node7").unwrap();
        let expected = sockets(&["10.1.0.9:4", "10.3.0.9:2", "10.3.0.8:3", "172.17.0.1:1"]);
        assert_eq!(in_order_of_reach(&ours, &theirs), expected);
        assert_eq!(in_order_of_reach(&[], &theirs), theirs);
    }

    #[test]
    fn connections_leave_from_a_chosen_interface() {
        let source = |ours: &[Interface], to: &str, connection| {
            let source = source_for(ours, to.parse().unwrap(), connection);
            source.map(|address| address.to_string())
        };
        let chosen = choose(&host(), &Wish::default(), false, "node7").unwrap();
        // In one subnet with it.
        for (to, from) in [
            ("10.1.9.9", "10.1.0.7"),
            ("10.3.9.9", "10.3.0.7"),
            ("fd00::9", "fd00::7"),
        ] {
            assert_eq!(source(&chosen, to, 1).as_deref(), Some(from));
        }
        // Beyond a router: eth0 is the only one with IPv6, but not with IPv4.
        assert_eq!(source(&chosen, "192.0.2.1", 0), None);
        assert_eq!(
            source(&chosen, "2001:db8::1", 0).as_deref(),
            Some("fd00::7")
        );
        let mut two = vec![interface(
            "eth0",
            "10.1.0.7/16",
            InterfaceKind::Network,
            true,
        )];
        two.push(interface(
            "eth0",
            "192.0.2.7/24",
            InterfaceKind::Network,
            true,
        ));
        assert_eq!(
            source(&two, "198.51.100.1", 0),
            None,
            "the router's subnet is unknown"
        );
        let only: Vec<Interface> = host().into_iter().filter(|i| i.name == "ib0").collect();
        assert_eq!(source(&only, "192.0.2.1", 0).as_deref(), Some("10.3.0.7"));
        // Loopback leads to no other host.
        assert_eq!(
            source(&host()[..1], "127.0.0.9", 0).as_deref(),
            Some("127.0.0.1")
        );
        assert_eq!(source(&host()[..1], "192.0.2.1", 0), None);
        assert_eq!(source(&[], "192.0.2.1", 0), None);
    }

    #[test]
    fn connections_of_one_subnet_leave_from_its_interfaces_in_turn() {
        let ours = [
            interface("wide", "10.0.0.1/8", InterfaceKind::Network, true),
            interface("a", "10.1.0.1/16", InterfaceKind::Network, true),
            interface("b", "10.1.0.2/16", InterfaceKind::Network, true),
        ];
        let from = |connection| source_for(&ours, [10, 1, 0, 9].into(), connection).unwrap();
        let from = [0, 1, 2].map(|connection| from(connection).to_string());
        assert_eq!(from, ["10.1.0.1", "10.1.0.2", "10.1.0.1"]);
    }
}
