//! The interfaces that this host has.

use super::{Interface, InterfaceError, InterfaceKind};
use core::net::IpAddr;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use std::path::Path;

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
    let addresses = getifaddrs().map_err(|cause| InterfaceError::List {
        host: host.to_owned(),
        cause: cause.to_string(),
    })?;
    Ok(addresses.filter_map(interface).collect())
}

fn interface(entry: InterfaceAddress) -> Option<Interface> {
    let address = ip(entry.address.as_ref()?)?;
    if let IpAddr::V6(v6) = address
        && v6.is_unicast_link_local()
    {
        // Means nothing without the number of an interface, which differs from host to host.
        return None;
    }
    let prefix = match entry.netmask.as_ref().and_then(ip) {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None if address.is_ipv4() => 32,
        None => 128,
    };
    let kind = if entry.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
        InterfaceKind::Loopback
    } else if is_bridge(&entry.interface_name) {
        InterfaceKind::Bridge
    } else {
        InterfaceKind::Network
    };
    let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    Some(Interface {
        name: entry.interface_name,
        address,
        prefix: prefix as u8,
        up: entry.flags.contains(up),
        kind,
    })
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
}

fn is_bridge(name: &str) -> bool {
    OF_CONTAINERS.iter().any(|start| name.starts_with(start))
        || Path::new("/sys/class/net")
            .join(name)
            .join("bridge")
            .exists()
}

#[cfg(test)]
mod tests {
    use super::*;

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
