//! Paths that carry nothing, or nothing in one direction.

use super::*;
use argonet_nic::datagram::DatagramQueue as _;
use argonet_nic::reliable::{PathFault, PathState};
use parking_lot::Mutex;

const ALL_LOST: WireFaults = WireFaults {
    seed: 1,
    drop: 1_000_000,
    ..WireFaults::NONE
};

/// Both ranks ask each other; what each finds within that time.
fn checked(
    rails: &[DatagramRails<Wire>; 2],
    full: bool,
    limit: Duration,
) -> [Vec<(JobRank, PathState)>; 2] {
    let checks = [0, 1].map(|rank| rails[rank].check(vec![JobRank(1 - rank as u32)], full));
    checks.map(|check| check.finish(limit))
}

#[test]
fn a_good_path_is_found_at_once_though_datagrams_are_lost() {
    for full in [false, true] {
        let rails = pair([WireFaults::NONE, BAD]);
        // It returns long before, or the test's own limit is over.
        assert_eq!(checked(&rails, full, LIMIT), [vec![], vec![]]);
        // The channel has learned of no peer by that.
        assert!(rails.iter().all(|rails| rails.next(&|_| 0).is_none()));
        let (to_b, to_a) = (rail(&rails[0], 1), rail(&rails[1], 0));
        write_all(&to_b, b"hello");
        assert_eq!(read_all(&to_a, 5), b"hello");
    }
}

#[test]
fn a_check_ends_in_time_and_finds_the_direction_that_is_cut() {
    let rails = pair([ALL_LOST, WireFaults::NONE]);
    let limit = Duration::from_millis(200);
    let begun = Instant::now();
    let nothing = PathState::default();
    let heard = PathState {
        heard: true,
        ..nothing
    };
    let [a, b] = [(JobRank(1), heard), (JobRank(0), nothing)];
    assert_eq!(checked(&rails, true, limit), [vec![a], vec![b]]);
    assert!(begun.elapsed() >= limit);
    // Of both ends it is the first one that cannot reach the other.
    assert_eq!(
        PathFault::between(a.1, b.1, 1472),
        Some((PathFault::OneWay, false))
    );
    let check = rails[0].check(vec![], true);
    let ends = [JobRank(0), JobRank(1)];
    let text = check.describe(ends, PathFault::NoWay, limit).to_string();
    let address = |rank| rails[0].shared.queue.address(rank).unwrap();
    let begin = format!(
        "rank 0 on node0 (UDP {}) cannot reach rank 1 on node1 (UDP {}): no datagram passes",
        address(0),
        address(1)
    );
    assert!(text.starts_with(&begin), "{text}");
    assert!(!text.contains("answered by"), "{text}");
}

/// spec U10: pairs that are not checked at the start are at the first use.
#[test]
fn a_peer_that_was_never_heard_is_named_with_both_ends_and_an_answer_of_the_network() {
    let [mut config, other] = configs([WireFaults::NONE; 2], SECRETS.map(Seal::from_secret));
    config.link.unheard_after = Duration::from_millis(300);
    config.link.stopped_for = 2 * LIMIT;
    // The port is free again: the system of that host says so.
    drop(other);
    let rails = DatagramRails::new(config).unwrap();
    let to_b = rail(&rails, 1);
    write_all(&to_b, b"hello");
    let mut lost = None;
    until(|| {
        lost = rails.next(&|_| 0);
        lost.is_some()
    });
    let Some(Made::Unreachable(_, AmError::Unreachable { why, .. })) = lost else {
        panic!("a rail of a peer that is not there");
    };
    for wanted in [
        "rank 0 on node0 (UDP 127.0.0.1:",
        "cannot reach rank 1 on node1 (UDP 127.0.0.1:",
        "no datagram of it has come within",
        "answered by \"Connection refused",
        "ARGONET_TCP_INTERFACES",
    ] {
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
}

/// A process that is stopped has its port, and answers nothing.
#[test]
fn a_peer_that_may_be_stopped_is_warned_of_and_heard_again() {
    static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let [mut config, other] = configs([WireFaults::NONE; 2], SECRETS.map(Seal::from_secret));
    config.link.unheard_after = Duration::from_millis(300);
    config.link.stopped_for = 2 * LIMIT;
    config.warn = |what| WARNINGS.lock().push(what.to_owned());
    let rails = DatagramRails::new(config).unwrap();
    let to_b = rail(&rails, 1);
    write_all(&to_b, b"hello");
    until(|| !WARNINGS.lock().is_empty());
    assert!(rails.shared.is_doubted(JobRank(1)));
    assert!(rails.next(&|_| 0).is_none(), "it is not lost");
    for wanted in [
        "rank 0 on node0 (UDP 127.0.0.1:",
        "cannot reach rank 1 on node1 (UDP 127.0.0.1:",
        "no datagram of it has come within 0.",
        "; as it may be stopped, the job ends only when that lasts for 120 s; let UDP pass",
    ] {
        assert!(WARNINGS.lock()[0].contains(wanted), "{WARNINGS:?}");
    }
    let others = DatagramRails::new(other).unwrap();
    let to_a = rail(&others, 0);
    assert_eq!(read_all(&to_a, 5), b"hello");
    until(|| !rails.shared.is_doubted(JobRank(1)));
    assert_eq!(WARNINGS.lock().len(), 1);
}
