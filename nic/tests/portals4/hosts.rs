//! Ranks on several hosts: messages between hosts go over UDP, here through the loopback interface.

use super::group::{MEMORY, Member};
use super::{cases, ranks};
use argonet_base::JobRank;
use argonet_nic::datagram::{Port, Whereabouts, WireFaults};
use argonet_nic::portals::NicError;
use argonet_nic::portals::networked::{Networked, NetworkedConfig};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::reliable::{ReliableConfig, Seal};
use libtest_mimic::Failed;
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::time::Duration;

/// A wire with its faults.
#[derive(Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    pub(crate) datagram_bytes: usize,
    seal: Option<fn(&[u8]) -> Seal>,
    pub(crate) faults: WireFaults,
    arriving_faults: WireFaults,
}

/// Through which cases are run.
pub(crate) const WIRES: [Wire; 3] = [
    Wire {
        name: "good",
        datagram_bytes: 1472,
        seal: Some(Seal::from_secret),
        faults: WireFaults::NONE,
        arriving_faults: WireFaults::NONE,
    },
    Wire {
        name: "long datagrams",
        datagram_bytes: 65_507,
        seal: None,
        faults: WireFaults::NONE,
        arriving_faults: WireFaults::NONE,
    },
    Wire {
        name: "faulty",
        datagram_bytes: 8192,
        seal: Some(Seal::encrypting),
        faults: WireFaults {
            seed: 5,
            drop: 10_000,
            duplicate: 10_000,
            reorder: 20_000,
            corrupt: 5_000,
        },
        arriving_faults: WireFaults {
            seed: 6,
            drop: 5_000,
            ..WireFaults::NONE
        },
    },
];

pub(crate) fn config(ranks: u32, wire: &Wire) -> NetworkedConfig {
    NetworkedConfig {
        link: ReliableConfig {
            datagram_bytes: wire.datagram_bytes,
            least_rto: Duration::from_millis(5),
            ..ReliableConfig::default()
        },
        seal: wire.seal.map(|of| of(b"of the test")),
        faults: wire.faults,
        arriving_faults: wire.arriving_faults,
        ..NetworkedConfig::of_ranks(ranks)
    }
}

pub(crate) fn file() -> OwnedFd {
    memfd_create("interfaces", MemfdFlags::CLOEXEC).expect("memfd")
}

pub(crate) fn port() -> Port {
    Port::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("port")
}

/// The interface of a rank that is one of `near` on its host, the first of which is `first`.
pub(crate) fn open(
    file: &OwnedFd,
    place: (u32, u32),
    rank: JobRank,
    port: Port,
    peers: &[Whereabouts],
    config: &NetworkedConfig,
) -> Networked {
    try_open(file, place, rank, port, peers, config).expect("interface")
}

pub(crate) fn try_open(
    file: &OwnedFd,
    (first, near): (u32, u32),
    rank: JobRank,
    port: Port,
    peers: &[Whereabouts],
    config: &NetworkedConfig,
) -> Result<Networked, NicError> {
    let sizes = SoftwareConfig {
        first: JobRank(first),
        ranks: near,
        arena_bytes: MEMORY,
        ..SoftwareConfig::default()
    };
    let software = Software::new(file.as_fd(), sizes, rank, None, FaultRules::default())?;
    Networked::new(software, port, peers, config)
}

pub(crate) fn member(nic: Networked, barrier: Box<dyn FnMut()>) -> Member<Networked> {
    let memory = nic.software().buffers().0;
    Member {
        nic,
        memory,
        barrier,
    }
}

/// Ranks of a job, a thread each, with `near` of them on each host.
pub(crate) fn job(
    count: u32,
    near: u32,
    config: NetworkedConfig,
    rank: impl Fn(Member<Networked>) + Send + Sync + 'static,
) -> Result<(), Failed> {
    let files: Vec<_> = (0..count.div_ceil(near)).map(|_| file()).collect();
    let ports: Vec<_> = (0..count).map(|_| port()).collect();
    let peers: Vec<_> = ports.iter().map(Port::whereabouts).collect();
    let ports: Vec<_> = ports
        .into_iter()
        .map(|port| Mutex::new(Some(port)))
        .collect();
    ranks::threads(count, move |this, mut barrier| {
        let port = ports[this as usize]
            .lock()
            .take()
            .expect("one thread has it");
        let host = this / near;
        let place = (host * near, near.min(count - host * near));
        let file = &files[host as usize];
        let nic = open(file, place, JobRank(this), port, &peers, &config);
        barrier();
        rank(member(nic, barrier));
    })
}

/// A case between two hosts in one process.
pub(crate) fn threads(wire: &Wire, name: &'static str) -> Result<(), Failed> {
    job(2, 1, config(2, wire), move |member| {
        cases::run(name, member)
    })
}

/// A rank in a process of its own, which publishes its address to the other.
pub(crate) fn process(rank: JobRank, barrier: Box<dyn FnMut()>) -> Member<Networked> {
    let port = port();
    let here = port.whereabouts();
    let peers = ranks::gather(&to_line(here)).map(|line| of_line(&line));
    let config = config(2, &WIRES[0]);
    let nic = open(&file(), (rank.0, 1), rank, port, &peers, &config);
    member(nic, barrier)
}

/// Where a rank is, as one line.
pub(crate) fn to_line(whereabouts: Whereabouts) -> String {
    format!("{} {}", whereabouts.address, whereabouts.incarnation)
}

pub(crate) fn of_line(line: &str) -> Whereabouts {
    let (address, incarnation) = line.trim().split_once(' ').expect("two words");
    Whereabouts {
        address: address.parse().expect("address"),
        incarnation: incarnation.parse::<NonZeroU64>().expect("incarnation"),
    }
}
