//! The dialling machine by hand, one step after the other.

mod addresses;
mod network;
mod world;

use super::super::handshake::{Hello, Refused, Verdict};
use super::*;
use argonet_base::JobRank;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn pair(me: u32, peer: u32, addresses: u8) -> Pair {
    Pair {
        me: JobRank(me),
        peer: JobRank(peer),
        addresses,
        seed: 11,
    }
}

fn hello(rank: u32, incarnation: u64) -> Hello {
    Hello {
        rank: JobRank(rank),
        connection: 0,
        incarnation,
        received: 0,
    }
}

/// The next attempt, at the time when it is due.
fn next(peer: &mut Peer, now_ns: &mut u64) -> (Attempt, usize, u64) {
    *now_ns = peer.poll_timeout().expect("something is due").max(*now_ns);
    match peer.poll_action(&DialConfig::default(), *now_ns) {
        Some(Action::Connect {
            attempt,
            address,
            incarnation,
        }) => (attempt, address, incarnation),
        other => panic!("{other:?}"),
    }
}

const REFUSED: Failure = Failure::System(111);

/// spec T1: on demand.
#[test]
fn no_attempt_begins_before_a_connection_is_asked_for() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    assert!(!peer.is_used() && peer.poll_timeout().is_none());
    assert_eq!(peer.poll_action(&config, 5), None);
    peer.ask(5, pair(0, 1, 1), 0);
    peer.ask(6, pair(0, 1, 1), 0);
    let mut now_ns = 6;
    let (attempt, address, incarnation) = next(&mut peer, &mut now_ns);
    assert_eq!((now_ns, address, incarnation), (6, 0, 1));
    assert_eq!(peer.poll_action(&config, 6), None, "one attempt at a time");
    peer.reached(&config, 7, attempt);
    assert!(peer.joined(attempt, 1));
    assert_eq!(peer.incarnation(0), Some(1));
    assert_eq!(peer.poll_timeout(), None);
    assert_eq!(peer.incarnation(1), None, "a further one was not asked for");
}

/// spec T1: crossing connects settled by rank.
#[test]
fn of_crossing_connections_the_higher_ranks_stays() {
    let config = DialConfig::default();
    for higher in [false, true] {
        let (me, other) = if higher { (1, 0) } else { (0, 1) };
        let mut peer = Peer::default();
        peer.ask(0, pair(me, other, 1), 0);
        let mut now_ns = 0;
        let (attempt, _, _) = next(&mut peer, &mut now_ns);
        peer.reached(&config, 1, attempt);
        let decision = peer.incoming(&config, 2, pair(me, other, 1), &hello(other, 1));
        if higher {
            let verdict = Verdict::Crossing;
            assert_eq!(
                decision,
                Decision::Refuse {
                    verdict,
                    incarnation: 1
                }
            );
            assert!(peer.joined(attempt, 1));
        } else {
            assert_eq!(
                decision,
                Decision::Accept {
                    incarnation: 1,
                    replaces: None
                }
            );
            assert_eq!(peer.poll_action(&config, 2), Some(Action::Abandon(attempt)));
            assert!(!peer.joined(attempt, 1), "its own was abandoned");
        }
        assert_eq!(peer.incarnation(0), Some(1));
    }
}

/// The lower rank is reached; the higher rank's own attempts hang in a firewall.
#[test]
fn a_higher_rank_whose_own_attempt_gets_nowhere_takes_the_others() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    peer.ask(0, pair(1, 0, 1), 0);
    let mut now_ns = 0;
    let (attempt, _, _) = next(&mut peer, &mut now_ns);
    let decision = peer.incoming(&config, 1, pair(1, 0, 1), &hello(0, 9));
    assert_eq!(
        decision,
        Decision::Accept {
            incarnation: 9,
            replaces: None
        }
    );
    assert_eq!(peer.poll_action(&config, 1), Some(Action::Abandon(attempt)));
    // And one that was taken by a kernel and then not answered.
    let mut peer = Peer::default();
    peer.ask(0, pair(1, 0, 1), 0);
    let (attempt, _, _) = next(&mut peer, &mut now_ns);
    peer.reached(&config, 1, attempt);
    let later = 1 + config.courtesy_ns;
    let decision = peer.incoming(&config, later - 1, pair(1, 0, 1), &hello(0, 9));
    assert!(matches!(decision, Decision::Refuse { .. }));
    let decision = peer.incoming(&config, later, pair(1, 0, 1), &hello(0, 10));
    assert!(matches!(decision, Decision::Accept { .. }));
}

#[test]
fn a_stale_incarnation_is_refused_and_its_sender_goes_beyond() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    let pair_of = pair(1, 0, 1);
    let accept = |peer: &mut Peer, n| peer.incoming(&config, 0, pair_of, &hello(0, n));
    assert_eq!(
        accept(&mut peer, 4),
        Decision::Accept {
            incarnation: 4,
            replaces: None
        }
    );
    assert_eq!(
        accept(&mut peer, 5),
        Decision::Accept {
            incarnation: 5,
            replaces: Some(4)
        }
    );
    for old in [1, 4, 5] {
        let verdict = Verdict::Stale;
        assert_eq!(
            accept(&mut peer, old),
            Decision::Refuse {
                verdict,
                incarnation: 5
            }
        );
    }
    // The sender goes beyond it.
    let mut sender = Peer::default();
    sender.ask(0, pair(0, 1, 1), 0);
    let mut now_ns = 0;
    let (attempt, _, _) = next(&mut sender, &mut now_ns);
    let why = Failure::Refused(Refused::ByPeer {
        verdict: Verdict::Stale,
        incarnation: 5,
    });
    sender.failed(&config, now_ns, attempt, why);
    assert_eq!(next(&mut sender, &mut now_ns).2, 6);
    assert!(now_ns <= config.first_pause_ns);
}

#[test]
fn a_further_connection_that_the_peer_does_not_take_is_given_up() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    let far = Hello {
        connection: MAX_CONNECTIONS,
        ..hello(0, 1)
    };
    let decision = peer.incoming(&config, 0, pair(1, 0, 1), &far);
    assert_eq!(
        decision,
        Decision::Refuse {
            verdict: Verdict::Limit,
            incarnation: 0
        }
    );
    assert!(!peer.is_used());
    peer.ask(0, pair(1, 0, 1), 0);
    let mut now_ns = 0;
    let (attempt, _, _) = next(&mut peer, &mut now_ns);
    let why = Failure::Refused(Refused::ByPeer {
        verdict: Verdict::Limit,
        incarnation: 0,
    });
    peer.failed(&config, 3, attempt, why);
    assert!(matches!(
        peer.poll_action(&config, 3),
        Some(Action::GiveUp { .. })
    ));
}

#[test]
fn a_lost_connection_is_made_anew_by_the_higher_rank_first() {
    let config = DialConfig::default();
    for (me, other) in [(1, 0), (0, 1)] {
        let mut peer = Peer::default();
        let decision = peer.incoming(&config, 0, pair(me, other, 1), &hello(other, 3));
        assert!(matches!(decision, Decision::Accept { .. }));
        assert!(!peer.lost(&config, S, 0, 2), "another incarnation");
        assert!(peer.lost(&config, S, 0, 3));
        assert!(!peer.lost(&config, S, 0, 3), "it is lost already");
        let mut now_ns = S;
        let (_, _, incarnation) = next(&mut peer, &mut now_ns);
        assert_eq!(incarnation, 4);
        assert_eq!(now_ns == S, me > other);
        assert!(now_ns <= S + config.courtesy_ns);
    }
}

#[test]
fn an_attempt_that_was_abandoned_changes_nothing() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    peer.ask(0, pair(0, 1, 1), 0);
    let mut now_ns = 0;
    let (attempt, _, _) = next(&mut peer, &mut now_ns);
    peer.close(0);
    assert_eq!(peer.poll_action(&config, 1), Some(Action::Abandon(attempt)));
    peer.reached(&config, 2, attempt);
    peer.failed(&config, 2, attempt, REFUSED);
    assert!(!peer.joined(attempt, 1));
    assert_eq!((peer.poll_timeout(), peer.incarnation(0)), (None, None));
    // It can be asked for again.
    peer.ask(3, pair(0, 1, 1), 0);
    assert_ne!(next(&mut peer, &mut now_ns).0, attempt);
}

/// This rank computes for a minute after each look: a failure found then has not lasted for a
/// minute.
#[test]
fn time_without_a_look_does_not_count() {
    let config = DialConfig::default();
    let mut peer = Peer::default();
    peer.ask(0, pair(0, 1, 1), 0);
    let mut now_ns = 0;
    for _ in 0..50 {
        let (attempt, _, _) = next(&mut peer, &mut now_ns);
        peer.reached(&config, now_ns, attempt);
        now_ns += 60 * S;
        peer.failed(&config, now_ns, attempt, Failure::Closed);
        // Of the minute at most the time of an attempt counts; the next success ends that.
        let (attempt, _, incarnation) = next(&mut peer, &mut now_ns);
        peer.reached(&config, now_ns, attempt);
        assert!(peer.joined(attempt, incarnation));
        assert!(peer.lost(&config, now_ns, 0, incarnation));
        now_ns += 60 * S;
    }
    // Now the peer does not answer, and this rank looks once a minute: it gives up only after
    // enough looks.
    let mut looks = 0;
    loop {
        now_ns += 60 * S;
        match peer.poll_action(&config, now_ns) {
            Some(Action::GiveUp { for_ns, .. }) => {
                assert!(for_ns >= config.unreachable_ns && looks >= 13, "{looks}");
                break;
            }
            Some(Action::Abandon(_)) => looks += 1,
            _ => {}
        }
    }
}
