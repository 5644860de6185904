//! A peer on another host that the interface has lost.

use super::*;
use argonet_nic::datagram::{HostNames, Port};
use argonet_nic::portals::networked::{Networked, NetworkedConfig};
use argonet_nic::portals::software::SoftwareConfig;
use core::net::{Ipv4Addr, SocketAddr};
use std::cell::RefCell;
use std::time::Instant;

const SHORT: Duration = Duration::from_millis(50);

/// Two ranks, each of which knows the other by a port that no rank reads.
fn apart(silent: &RefCell<Vec<Port>>) -> Vec<Rank<Networked>> {
    let sizes = PortalsSizes::default();
    job_over(2, sizes, |_, config| {
        let rank = config.rank;
        let bind = || Port::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let ports = [bind(), bind()];
        let peers = ports.each_ref().map(Port::whereabouts);
        let [first, second] = ports;
        let (own, other) = if rank == JobRank(0) {
            (first, second)
        } else {
            (second, first)
        };
        silent.borrow_mut().push(other);
        let file = memfd_create("interface", MemfdFlags::CLOEXEC).unwrap();
        let alone = SoftwareConfig {
            ranks: 1,
            ..software_config(&sizes, rank, 2).unwrap()
        };
        let resolver = Resolver::new(Arc::clone(&config.directory));
        let rules = FaultRules::default();
        let nic = Software::new(file.as_fd(), alone, rank, Some(resolver), rules).unwrap();
        let mut network = NetworkedConfig::of_ranks(2);
        network.exit_grace = Duration::ZERO;
        network.link.probe_after = SHORT;
        network.link.first_rto = SHORT;
        network.link.most_rto = SHORT;
        network.link.give_up_after = SHORT;
        network.hosts = HostNames::new(|peer| format!("node{peer}"));
        let nic = Networked::new(nic, own, &peers, &network).unwrap();
        Portals::over_networked(nic, config).unwrap()
    })
}

/// The error of the operation that was under way, and of the next: both ranks once, the host and
/// the address, and things to check.
#[test]
fn a_lost_peer_is_named_as_tcp_names_it() {
    let silent = RefCell::default();
    let ranks = apart(&silent);
    let here = &ranks[0].portals;
    let bytes = [7; 8];
    let put = || {
        // SAFETY: the bytes outlive the operation, which ends before this test does.
        unsafe { here.put(JobRank(1), SegmentOffset(0), bytes.as_ptr(), 8, TOKEN) }
    };
    put().expect("it may still answer");
    let mut seen = Seen::default();
    let begun = Instant::now();
    while seen.broken.is_empty() {
        assert!(begun.elapsed() < LONG, "it is never given up");
        here.poll_with(&mut seen);
        std::thread::yield_now();
    }
    let next = put().err().map(|error| match error {
        SendError::Message(error) => error,
        SendError::Full => panic!("{error:?}"),
    });
    seen.broken.extend(next);
    assert_eq!(seen.broken.len(), 2, "{:?}", seen.broken);
    let address = silent.borrow()[0].whereabouts().address;
    for error in &seen.broken {
        let text = error.to_string();
        let begin = format!("rank 0 cannot reach rank 1 on node1 over UDP at {address}: ");
        assert!(text.starts_with(&begin), "{text}");
        for wanted in [
            "no datagram of it has come",
            "firewalls",
            "ARGONET_TCP_INTERFACES",
        ] {
            assert!(text.contains(wanted), "{text}");
        }
        let named = ["rank 0", "rank 1"].map(|rank| text.matches(rank).count());
        assert_eq!(named, [1, 1], "{text}");
    }
}
