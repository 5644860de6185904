//! What only the inside shows.

use super::{Networked, NetworkedConfig, Port, WireFaults};
use crate::portals::software::{FaultRules, Software, SoftwareConfig};
use crate::portals::{Ack, Descriptor, EventKind, Outcome, Part, PortalIndex, Portals, Target};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use core::time::Duration;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(20);

fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "it does not become so");
        std::thread::yield_now();
    }
}

/// Nothing arrives that could rouse the thread: the timer of the put must.
#[test]
fn the_thread_is_rung_for_a_timer_that_is_earlier_than_its_own() {
    let port = || Port::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let (own, silent) = (port(), port());
    let peers = [own.whereabouts(), silent.whereabouts()];
    let mut config = NetworkedConfig::of_ranks(2);
    config.link.most_rto = Duration::from_millis(200);
    config.link.probe_after = Duration::from_millis(200);
    config.link.give_up_after = Duration::from_millis(300);
    config.linger = Duration::ZERO;
    config.faults = WireFaults {
        drop: 1_000_000,
        ..WireFaults::default()
    };
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap();
    let sizes = SoftwareConfig {
        ranks: 1,
        ..SoftwareConfig::default()
    };
    let rules = FaultRules::default();
    let software = Software::new(file.as_fd(), sizes, JobRank(0), None, rules).unwrap();
    let nic = Networked::new(software, own, &peers, &config).unwrap();
    let queue = nic.queue_alloc(8).unwrap();
    let descriptor = Descriptor {
        queue: Some(queue),
        ..Descriptor::SILENT
    };
    let mut word = [0_u64; 1];
    let memory = NonNull::from(&mut word).cast();
    // SAFETY: the word lives longer than the interface and is not touched.
    let from = unsafe { nic.bind(memory, 8, descriptor) }.unwrap();
    until(|| nic.core.sleeps_until.load(Ordering::Relaxed) == u64::MAX);
    let whole = Part {
        offset_bytes: 0,
        len_bytes: 8,
    };
    let target = Target {
        rank: JobRank(1),
        portal: PortalIndex(0),
        bits: 0,
        offset_bytes: 0,
    };
    nic.put_region(from, whole, Ack::Event, target, 0).unwrap();
    until(|| !nic.queue_is_empty(queue).unwrap());
    let event = nic.queue_get(queue).unwrap().unwrap();
    assert_eq!(
        (event.kind, event.outcome),
        (EventKind::Ack, Outcome::PeerDied)
    );
}
