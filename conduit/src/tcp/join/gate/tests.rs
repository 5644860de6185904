//! The gate, by hand and by property.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const S: u64 = 1_000_000_000;

fn address(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

fn gate(most: u32) -> Gate {
    let limits = GateLimits {
        most,
        ..GateLimits::default()
    };
    Gate::new(limits, [address(1), address(2)])
}

fn admitted(admission: Admission) -> Place {
    match admission {
        Admission::Admitted(who) => who,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_gate_has_64_places_for_two_seconds() {
    let mut gate = Gate::new(GateLimits::default(), []);
    for n in 0..64 {
        admitted(gate.admit(u64::from(n), address(n)));
    }
    assert!(gate.is_open(), "one from the job would have a place");
    assert_eq!(gate.admit(64, address(99)), Admission::Full);
    assert_eq!((gate.unknown(), gate.counts().full), (64, 1));
    assert_eq!(gate.poll_timeout(), Some(2 * S));
    assert_eq!(gate.expire(2 * S - 1), None);
    assert_eq!(gate.expire(2 * S), Some(Place { index: 0, turn: 1 }));
    assert_eq!(gate.expire(2 * S), None);
    assert_eq!(gate.poll_timeout(), Some(2 * S + 1));
    admitted(gate.admit(2 * S, address(99)));
}

#[test]
fn the_job_comes_first() {
    let mut gate = gate(3);
    let first = admitted(gate.admit(5, address(77)));
    let second = admitted(gate.admit(6, address(1)));
    let third = admitted(gate.admit(7, address(78)));
    assert_eq!(gate.admit(8, address(79)), Admission::Full);
    // The oldest stranger gives way, never one from the job.
    for (victim, now_ns) in [(first, 9), (third, 10)] {
        match gate.admit(now_ns, address(2)) {
            Admission::Instead { evicted, .. } => assert_eq!(evicted, victim),
            other => panic!("{other:?}"),
        }
    }
    assert!(!gate.is_open());
    assert_eq!(gate.admit(11, address(2)), Admission::Full);
    // A connection that has gone does not come back, and does not take another's place away.
    gate.leave(first, Left::Proven);
    assert_eq!(gate.unknown(), 3);
    gate.leave(second, Left::Proven);
    assert!(gate.is_open());
    let counts = gate.counts();
    assert_eq!((counts.proven, counts.evicted, counts.full), (1, 2, 2));
    assert_eq!(counts.dropped(), 4);
}

#[test]
fn an_address_of_the_job_is_known_through_an_ipv6_socket() {
    let mut gate = gate(1);
    admitted(gate.admit(0, address(50)));
    let mapped = "::ffff:10.0.0.1".parse().unwrap();
    assert!(matches!(gate.admit(1, mapped), Admission::Instead { .. }));
}

#[test]
fn each_reason_has_its_count() {
    let reasons = [
        Refused::Magic,
        Refused::Version(2),
        Refused::Job,
        Refused::Proof,
        Refused::Acceptor(1),
        Refused::Connector(1),
    ];
    let mut gate = gate(8);
    for why in reasons {
        let who = admitted(gate.admit(0, address(5)));
        gate.leave(who, Left::Refused(why));
        gate.leave(who, Left::Refused(why));
    }
    let who = admitted(gate.admit(0, address(5)));
    gate.leave(who, Left::Closed);
    let expected = GateCounts {
        seen: 7,
        closed: 1,
        other_protocol: 1,
        other_version: 1,
        other_job: 1,
        no_proof: 1,
        wrong_rank: 2,
        ..GateCounts::default()
    };
    assert_eq!(gate.counts(), expected);
    assert_eq!(gate.counts().dropped(), 7);
}

proptest! {
    /// For any sequence of arrivals and departures: no connection stays beyond the deadline, none
    /// from the job gives way, all are counted.
    #[test]
    fn a_gate_keeps_its_promises(
        most in 1u32..6,
        steps in proptest::collection::vec((0u64..S, 0u8..8, 0u8..4, any::<proptest::sample::Index>()), 1..300),
    ) {
        let mut gate = gate(most);
        let mut inside: HashMap<(u32, u32), (u64, bool)> = HashMap::new();
        let key = |who: Place| (who.index, who.turn);
        let mut now_ns = 0;
        for (pass_ns, from, kind, which) in steps {
            now_ns += pass_ns;
            while let Some(who) = gate.expire(now_ns) {
                let (since, _) = inside.remove(&key(who)).expect("it was inside");
                prop_assert!(since + 2 * S <= now_ns);
            }
            prop_assert!(inside.values().all(|(since, _)| since + 2 * S > now_ns));
            if kind == 0 && !inside.is_empty() {
                let mut names: Vec<_> = inside.keys().copied().collect();
                names.sort_unstable();
                let (index, turn) = *which.get(&names);
                gate.leave(Place { index, turn }, Left::Proven);
                inside.remove(&(index, turn));
            } else {
                let of_job = from == 1 || from == 2;
                let strangers = inside.values().filter(|(_, of)| !of).count();
                match gate.admit(now_ns, address(from)) {
                    Admission::Admitted(who) => {
                        prop_assert!(inside.insert(key(who), (now_ns, of_job)).is_none());
                    }
                    Admission::Instead { admitted, evicted } => {
                        prop_assert!(of_job);
                        let (since, of) = inside.remove(&key(evicted)).expect("it was inside");
                        prop_assert!(!of && inside.values().all(|(s, of)| *of || *s >= since));
                        inside.insert(key(admitted), (now_ns, true));
                    }
                    Admission::Full => {
                        prop_assert_eq!(inside.len(), most as usize);
                        prop_assert!(!of_job || strangers == 0);
                    }
                }
            }
            prop_assert_eq!(gate.unknown() as usize, inside.len());
            prop_assert_eq!(gate.poll_timeout(), inside.values().map(|(since, _)| since + 2 * S).min());
            let counts = gate.counts();
            prop_assert_eq!(counts.seen, counts.proven + counts.dropped() + inside.len() as u64);
        }
    }
}
