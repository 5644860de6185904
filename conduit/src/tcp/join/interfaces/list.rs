//! The interfaces that this host has.

use super::{Interface, InterfaceError, InterfaceKind};
use if_addrs::{IfAddr, get_if_addrs};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// How the names of interfaces begin that lead to containers and virtual machines.
///
/// The system knows those that are bridges, too; this is for where it does not show them
/// (containers see another `/sys`).
const OF_CONTAINERS: [&str; 7] = ["docker", "br-", "virbr", "lxcbr", "lxdbr", "podman", "cni"];

/// Lists the addresses of this host, those of IPv4 and IPv6 that other hosts can use, in the
/// system's order.
///
/// `host` is its name, for errors.
///
/// # Errors
/// [`InterfaceError::List`].
pub fn list(host: &str) -> Result<Vec<Interface>, InterfaceError> {
    let entries = get_if_addrs().map_err(|cause| InterfaceError::List {
        host: host.to_owned(),
        cause: cause.to_string(),
    })?;
    let known = entries.iter().filter_map(|entry| {
        let kind = if leads_nowhere(entry) {
            InterfaceKind::Loopback
        } else if is_bridge(&entry.name) {
            InterfaceKind::Bridge
        } else {
            InterfaceKind::Network
        };
        interface(entry, kind)
    });
    Ok(known.collect())
}

/// `None`: other hosts cannot use the address.
fn interface(entry: &if_addrs::Interface, kind: InterfaceKind) -> Option<Interface> {
    let (prefix, most) = match &entry.addr {
        IfAddr::V4(v4) => (v4.prefixlen, 32),
        // Means nothing without the number of an interface, which differs from host to host.
        IfAddr::V6(v6) if v6.ip.is_unicast_link_local() => return None,
        IfAddr::V6(v6) => (v6.prefixlen, 128),
    };
    Some(Interface {
        name: entry.name.clone(),
        address: entry.ip(),
        // Without a mask it is an address by itself.
        prefix: if prefix == 0 { most } else { prefix },
        up: entry.is_oper_up(),
        kind,
    })
}

/// What the system says of an interface; an address may have a label behind its name.
fn of_system(name: &str) -> PathBuf {
    let name = name.split(':').next().unwrap_or_default();
    Path::new("/sys/class/net").join(name)
}

/// Whether no other host can be reached over it, whatever its addresses.
fn leads_nowhere(entry: &if_addrs::Interface) -> bool {
    let flags = read_to_string(of_system(&entry.name).join("flags"));
    let flags = flags.ok().and_then(|text| {
        let digits = text.trim().strip_prefix("0x")?;
        u32::from_str_radix(digits, 16).ok()
    });
    // Containers may see another host's list.
    flags.map_or(entry.is_loopback(), |flags| {
        flags & libc::IFF_LOOPBACK as u32 != 0
    })
}

fn is_bridge(name: &str) -> bool {
    OF_CONTAINERS.iter().any(|start| name.starts_with(start))
        || of_system(name).join("bridge").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    #[test]
    fn loopback_is_there() {
        let list = list("here").unwrap();
        let lo = list
            .iter()
            .find(|i| i.address == IpAddr::from([127, 0, 0, 1]))
            .expect("an IPv4 loopback");
        assert_eq!(
            (lo.kind, lo.prefix, lo.up),
            (InterfaceKind::Loopback, 8, true)
        );
        assert!(list.iter().all(|i| !i.name.is_empty()));
    }

    /// An address may have a label, and what leads nowhere may have any address.
    #[test]
    fn loopback_is_known_by_its_interface() {
        let entry = |name: &str, address: [u8; 4]| if_addrs::Interface {
            name: name.to_owned(),
            addr: IfAddr::V4(if_addrs::Ifv4Addr {
                ip: address.into(),
                netmask: [255; 4].into(),
                prefixlen: 32,
                broadcast: None,
            }),
            index: None,
            oper_status: if_addrs::IfOperStatus::Up,
            is_p2p: false,
        };
        for name in ["lo", "lo:0"] {
            assert!(leads_nowhere(&entry(name, [10, 0, 0, 5])), "{name}");
        }
        // The system does not show it, so its address decides.
        assert!(leads_nowhere(&entry("none-such", [127, 0, 0, 2])));
        assert!(!leads_nowhere(&entry("none-such", [10, 0, 0, 5])));
        let one = interface(&entry("lo:0", [10, 0, 0, 5]), InterfaceKind::Loopback);
        assert_eq!(one.map(|one| (one.prefix, one.up)), Some((32, true)));
    }

    #[test]
    fn bridges_of_containers_are_known_by_name() {
        for name in ["docker0", "br-1f2e3d", "virbr0", "cni0"] {
            assert!(is_bridge(name), "{name}");
        }
        for name in ["eth0", "enp3s0", "bond0", "ib0"] {
            assert!(!is_bridge(name), "{name}");
        }
    }
}
