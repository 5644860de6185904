//! Behavior that only internal state shows.

use super::{Networked, NetworkedConfig};
use crate::datagram::HostNames;
use crate::datagram::{Port, Whereabouts, WireFaults};
use crate::portals::software::{FaultRules, Software, SoftwareConfig};
use crate::portals::{
    Ack, Descriptor, DescriptorHandle, Entry, EventKind, Matching, Outcome, Part, PortalIndex,
    PortalOptions, Portals, Position, Queue, Target,
};
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(20);

/// Bytes of a put, from the buffers of one rank to those of another.
const WORD: u64 = 8;

fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "it does not become so");
        std::thread::yield_now();
    }
}

/// The interface of a rank that is alone on its host.
fn host(rank: u32, port: Port, peers: &[Whereabouts], config: &NetworkedConfig) -> Networked {
    let file = memfd_create("interfaces", MemfdFlags::CLOEXEC).unwrap();
    let sizes = SoftwareConfig {
        first: JobRank(rank),
        ranks: 1,
        ..SoftwareConfig::default()
    };
    let rules = FaultRules::default();
    let software = Software::new(file.as_fd(), sizes, JobRank(rank), None, rules).unwrap();
    Networked::new(software, port, peers, config).unwrap()
}

fn port() -> Port {
    Port::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

/// Two of them.
fn hosts() -> [Networked; 2] {
    let ports = [port(), port()];
    let peers = ports.each_ref().map(Port::whereabouts);
    let config = NetworkedConfig::of_ranks(2);
    let mut rank = 0..;
    ports.map(|port| host(rank.next().unwrap(), port, &peers, &config))
}

/// A queue, and a descriptor over buffers that reports answers to it.
fn source(nic: &Networked) -> (Queue, DescriptorHandle) {
    let queue = nic.queue_alloc(64).unwrap();
    let descriptor = Descriptor {
        queue: Some(queue),
        ..Descriptor::SILENT
    };
    // SAFETY: the buffers live as long as the interface and the test does not touch them.
    let from = unsafe { nic.bind(nic.software().buffers().0, WORD, descriptor) };
    (queue, from.unwrap())
}

/// An entry over the buffers of a rank.
fn entry(nic: &Networked) {
    let portal = nic.portal_alloc(PortalOptions::default(), None, Some(PortalIndex(0)));
    let matching = Matching {
        bits: 0,
        ignore: 0,
        source: None,
    };
    let memory = nic.software().buffers().0;
    // SAFETY: as in `source`; the buffers have many words, of which this is the second.
    let made = unsafe {
        let memory = memory.add(WORD as usize);
        nic.attach(
            portal.unwrap(),
            Position::Tail,
            matching,
            memory,
            WORD,
            Entry::OPEN,
        )
    };
    made.unwrap();
}

/// A put that is answered.
fn put(nic: &Networked, from: DescriptorHandle, target: u32) {
    let whole = Part {
        offset_bytes: 0,
        len_bytes: WORD,
    };
    let target = Target {
        rank: JobRank(target),
        portal: PortalIndex(0),
        bits: 0,
        offset_bytes: 0,
    };
    nic.put_region(from, whole, Ack::Event, target, 0).unwrap();
}

fn sleeps_for_ever(nic: &Networked) -> bool {
    nic.core.sleeps_until.load(Ordering::Relaxed) == u64::MAX
}

/// Nothing arrives that could wake the thread: the timer of the put must.
#[test]
fn the_thread_is_woken_for_an_earlier_timer() {
    let (own, silent) = (port(), port());
    let peers = [own.whereabouts(), silent.whereabouts()];
    let mut config = NetworkedConfig::of_ranks(2);
    config.link.most_rto = Duration::from_millis(200);
    config.link.probe_after = Duration::from_millis(200);
    config.link.give_up_after = Duration::from_millis(300);
    config.exit_grace = Duration::ZERO;
    config.faults = WireFaults {
        drop: 1_000_000,
        ..WireFaults::default()
    };
    let nic = host(0, own, &peers, &config);
    let (queue, from) = source(&nic);
    until(|| sleeps_for_ever(&nic));
    put(&nic, from, 1);
    until(|| !nic.queue_is_empty(queue).unwrap());
    let event = nic.queue_get(queue).unwrap().unwrap();
    assert_eq!(
        (event.kind, event.outcome),
        (EventKind::Ack, Outcome::PeerDied)
    );
}

#[test]
fn a_look_for_an_event_reads_the_socket() {
    let [a, b] = hosts();
    let (queue, from) = source(&a);
    entry(&b);
    until(|| {
        put(&a, from, 1);
        until(|| a.queue_get(queue).unwrap().is_some());
        a.traffic().read_by_callers > 0
    });
    assert_eq!(b.traffic().read_by_callers, 0);
}

#[test]
fn a_sleep_for_an_event_reads_the_socket() {
    let [a, b] = hosts();
    let (queue, from) = source(&a);
    entry(&b);
    until(|| {
        put(&a, from, 1);
        until(|| {
            let waited = a.queue_wait(&[queue], Some(LIMIT), &|| false);
            waited.unwrap();
            !a.queue_is_empty(queue).unwrap()
        });
        // An event that is there already needs no look at the socket.
        assert!(a.queue_get(queue).unwrap().is_some());
        a.traffic().read_by_callers > 0
    });
}

/// A thread that sleeps on the socket is woken by its own process, too: by `wake`, and when another
/// thread moves data to its own rank.
#[test]
fn a_sleeper_on_the_socket_is_woken_by_its_own_rank() {
    let [a, _b] = hosts();
    let (queue, from) = source(&a);
    entry(&a);
    let woken = AtomicBool::new(false);
    let wakes: [&(dyn Fn() + Sync); 2] = [&|| a.wake(), &|| put(&a, from, 0)];
    for wake in wakes {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until(|| a.software().is_slept_for());
                woken.store(true, Ordering::Relaxed);
                wake();
            });
            let come = || woken.load(Ordering::Relaxed);
            a.queue_wait(&[queue], Some(LIMIT), &come).unwrap();
        });
        woken.store(false, Ordering::Relaxed);
        assert!(begun.elapsed() < LIMIT, "it was not woken");
    }
}

/// A rank that has looked, or slept for long, and then calls nothing is served all the same.
#[test]
fn the_thread_goes_on_where_callers_stop() {
    let [a, b] = hosts();
    let (queue, from) = source(&a);
    entry(&b);
    let answered = || {
        put(&a, from, 1);
        until(|| a.queue_get(queue).unwrap().is_some());
    };
    b.attend();
    answered();
    let over = AtomicBool::new(false);
    let empty = b.queue_alloc(8).unwrap();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let come = || over.load(Ordering::Relaxed);
                // One that finds the thread reading does not sleep on the socket.
                let again = Some(Duration::from_secs(1));
                b.queue_wait(&[empty], again, &come).unwrap();
            }
        });
        until(|| b.core.reading.is_asleep() && sleeps_for_ever(&b));
        over.store(true, Ordering::Relaxed);
        b.wake();
        sleeper.join().unwrap();
    });
    answered();
}

/// Ranks that end do not wait for a peer that has ended before, and announce their own end when
/// they are dropped or leave.
#[test]
fn a_peer_that_has_left_is_not_waited_for() {
    for is_dropped in [false, true] {
        let [a, b] = hosts();
        let (queue, from) = source(&a);
        entry(&b);
        put(&a, from, 1);
        until(|| a.queue_get(queue).unwrap().is_some());
        let kept = if is_dropped {
            drop(b);
            None
        } else {
            assert!(b.exit_grace(LIMIT));
            Some(b)
        };
        until(|| a.core.lock().state.endpoint.has_left(JobRank(1)));
        put(&a, from, 1);
        assert!(a.exit_grace(LIMIT), "dropped: {is_dropped}");
        drop((a, kept));
    }
}

#[test]
fn an_interface_that_has_left_in_vain_is_dropped_at_once() {
    let (own, silent) = (port(), port());
    let peers = [own.whereabouts(), silent.whereabouts()];
    let mut config = NetworkedConfig::of_ranks(2);
    config.exit_grace = Duration::from_secs(3600);
    let nic = host(0, own, &peers, &config);
    let (_, from) = source(&nic);
    put(&nic, from, 1);
    assert!(!nic.exit_grace(Duration::from_millis(10)));
    drop(nic);
}

/// A peer that does not answer is named once with advice to the user; so is a peer of which the
/// host is not known.
#[test]
fn a_lost_peer_is_named_with_its_host_and_things_to_check() {
    let (own, silent) = (port(), port());
    let peers = [own.whereabouts(), silent.whereabouts()];
    let mut config = NetworkedConfig::of_ranks(2);
    config.exit_grace = Duration::ZERO;
    let short = Duration::from_millis(50);
    config.link.probe_after = short;
    config.link.most_rto = short;
    config.link.first_rto = short;
    config.link.give_up_after = short;
    config.hosts = HostNames::new(|peer| format!("node{peer}"));
    let nic = host(0, own, &peers, &config);
    let (queue, from) = source(&nic);
    assert!(nic.lost(JobRank(1)).is_none(), "it may still answer");
    put(&nic, from, 1);
    let mut lost = None;
    until(|| {
        while let Some(event) = nic.queue_get(queue).unwrap() {
            lost = (event.outcome == Outcome::PeerDied).then_some(event.peer);
        }
        lost.is_some()
    });
    let text = nic.lost(JobRank(1)).expect("it was lost").to_string();
    let address = silent.whereabouts().address;
    let begin = format!(
        "rank 0 cannot reach rank 1 on node1 over UDP at {address}: no datagram of it has come within "
    );
    assert!(text.starts_with(&begin), "{text}");
    assert!(
        text.ends_with("or choose a network that they share with ARGONET_TCP_INTERFACES"),
        "{text}"
    );
    assert_eq!(text.matches("rank 0").count(), 1, "{text}");
    assert_eq!(text.matches("rank 1").count(), 1, "{text}");
    assert!(nic.lost(JobRank(0)).is_none(), "its own rank");
}
