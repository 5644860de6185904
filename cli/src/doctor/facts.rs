//! The facts that a host reports about itself.

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use argonet_conduit::tcp::join::interfaces::{Interface, InterfaceKind};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

/// A network interface with one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) prefix: u8,
    pub(super) up: bool,
    pub(super) loopback: bool,
    /// The longest packet; nothing if the system does not say.
    pub(super) mtu: Option<u32>,
    /// Whether a job would use it.
    pub(super) chosen: bool,
}

/// Addresses at which an agent listens, as this rank would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Door {
    pub(super) rank: u32,
    pub(super) addresses: Vec<SocketAddr>,
}

/// Where an agent gets datagrams, as a rank would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mailbox {
    pub(super) address: SocketAddr,
    /// A number that no other one at this address has had.
    pub(super) incarnation: NonZeroU64,
}

/// A limit of the system: the present value, and the highest that it may be raised to; `None` is no
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limit {
    pub(super) soft: Option<u64>,
    pub(super) hard: Option<u64>,
}

/// The report of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) version: String,
    pub(super) cards: Vec<Card>,
    /// Why it cannot take part in connections, and whether the ports are at fault.
    pub(super) trouble: Option<Trouble>,
    pub(super) doors: Vec<Door>,
    /// Where it gets datagrams, or why it gets none.
    pub(super) mailbox: Result<Mailbox, String>,
    /// The ports that a rank may listen at, if the user has chosen them.
    pub(super) ports: Option<(u16, u16)>,
    /// The ports that the system chooses from.
    pub(super) system_ports: Option<(u16, u16)>,
    pub(super) files: Limit,
    pub(super) locked_memory: Limit,
    /// Its clock when it answered, since 1970.
    pub(super) clock_ns: u64,
}

/// Why a host has no doors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Trouble {
    /// Its settings or its interfaces.
    Interfaces(String),
    /// Its ports.
    Ports(String),
}

impl Card {
    pub(super) fn new(interface: &Interface, chosen: bool) -> Self {
        let path = format!("/sys/class/net/{}/mtu", interface.name);
        let mtu = std::fs::read_to_string(path).ok();
        Self {
            name: interface.name.clone(),
            address: interface.address,
            prefix: interface.prefix,
            up: interface.up,
            loopback: interface.kind == InterfaceKind::Loopback,
            mtu: mtu.and_then(|text| text.trim().parse().ok()),
            chosen,
        }
    }
}

impl Limit {
    pub(super) fn of(resource: Resource) -> Self {
        let limit = getrlimit(resource);
        Self {
            soft: limit.current,
            hard: limit.maximum,
        }
    }
}

/// The ports from which the system takes one for a socket that wants any.
pub(super) fn system_ports() -> Option<(u16, u16)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Nanoseconds since 1970; they fit for 500 years.
pub(super) fn clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as u64)
}
