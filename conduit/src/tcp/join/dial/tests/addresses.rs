//! Which address is tried when, and when a peer is given up.

use super::super::*;
use super::{REFUSED, S, hello, next, pair};
use argonet_base::JobRank;

/// spec T1: several addresses, bounded retries, growing pauses with chance in them.
#[test]
fn addresses_take_turns_and_pauses_grow() {
    let config = DialConfig {
        unreachable_ns: 3600 * S,
        ..DialConfig::default()
    };
    let mut peer = Peer::default();
    peer.ask(0, pair(0, 1, 3), 0);
    let mut now_ns = 0;
    let mut pauses = Vec::new();
    for round in 0..14 {
        let before = now_ns;
        for expected in 0..3 {
            let (attempt, address, incarnation) = next(&mut peer, &mut now_ns);
            assert_eq!(
                (address, incarnation),
                (expected, round * 3 + expected as u64 + 1)
            );
            peer.failed(&config, now_ns, attempt, REFUSED);
        }
        pauses.push(now_ns - before);
    }
    let mut expected = config.first_pause_ns;
    for pause in &pauses[1..] {
        assert!(
            (expected / 2..=expected).contains(pause),
            "{pause} of {expected}"
        );
        expected = (expected * 2).min(config.longest_pause_ns);
    }
    let last = &pauses[10..];
    assert!(
        last.windows(2).any(|two| two[0] != two[1]),
        "no chance in {last:?}"
    );
}

// spec T1: a peer is given up when each of its addresses has had its tries.
#[test]
fn each_address_has_its_tries() {
    let config = DialConfig {
        tries_per_address: 3,
        ..DialConfig::default()
    };
    let addresses = ["10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap()];
    let mut peer = Peer::default();
    peer.ask(0, pair(0, 7, 2), 0);
    let (mut now_ns, mut tried) = (0, Vec::new());
    let for_ns = loop {
        now_ns = peer.poll_timeout().unwrap().max(now_ns);
        match peer.poll_action(&config, now_ns).unwrap() {
            Action::Connect {
                attempt, address, ..
            } => {
                tried.push(address);
                let why = if address == 0 {
                    REFUSED
                } else {
                    Failure::Closed
                };
                peer.failed(&config, now_ns, attempt, why);
            }
            Action::GiveUp {
                connection: 0,
                for_ns,
            } => break for_ns,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(tried, [0, 1, 0, 1, 0, 1]);
    assert_eq!(peer.poll_timeout(), None);
    let error = Unreachable {
        me: JobRank(0),
        peer: JobRank(7),
        host: "node3".into(),
        connection: 0,
        for_ns,
        tried: peer.tried(0, &addresses),
    };
    let text = error.to_string();
    for part in [
        "rank 0 cannot reach rank 7 on node3, connection 0, for 0.0 s: ",
        "10.0.0.1:1 tried 3 times, last: Connection refused (os error 111); 10.0.0.2:2 tried 3 times, last: closed before",
        "ARGONET_TCP_INTERFACES",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // It stays given up for this rank's questions, and not for the peer itself.
    peer.ask(now_ns, pair(0, 7, 2), 0);
    assert_eq!(peer.poll_timeout(), None);
    let decision = peer.incoming(&config, now_ns, pair(0, 7, 2), &hello(7, 1));
    assert!(matches!(
        decision,
        Decision::Accept {
            incarnation: 6,
            replaces: None
        }
    ));
}

/// A rail that failed for hours is tried as at first when it was closed.
#[test]
fn a_connection_that_was_closed_has_all_its_tries_again() {
    let config = DialConfig {
        tries_per_address: 3,
        ..DialConfig::default()
    };
    let mut peer = Peer::default();
    let mut now_ns = 0;
    let mut rounds = Vec::new();
    for _ in 0..4 {
        peer.ask(now_ns, pair(0, 1, 2), 0);
        let (begun_ns, mut tries) = (now_ns, 0);
        loop {
            now_ns = peer.poll_timeout().unwrap().max(now_ns);
            match peer.poll_action(&config, now_ns).unwrap() {
                Action::Connect { attempt, .. } => {
                    tries += 1;
                    peer.failed(&config, now_ns, attempt, REFUSED);
                }
                Action::GiveUp { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        rounds.push(tries);
        assert!(now_ns - begun_ns < S, "pauses begin anew");
        peer.close(0);
    }
    assert_eq!(rounds, [6; 4]);
}

#[test]
fn a_peer_without_addresses_is_given_up_at_once() {
    let mut peer = Peer::default();
    peer.ask(9, pair(0, 1, 0), 0);
    let action = peer.poll_action(&DialConfig::default(), 9);
    assert_eq!(
        action,
        Some(Action::GiveUp {
            connection: 0,
            for_ns: 0
        })
    );
    assert!(peer.tried(0, &[]).is_empty());
}

// spec T1: over several interfaces.
#[test]
fn further_connections_begin_at_further_addresses() {
    let mut peer = Peer::default();
    let config = DialConfig::default();
    for (number, expected) in [(0, 0), (1, 1), (2, 0)] {
        peer.ask(0, pair(0, 1, 2), number);
        match peer.poll_action(&config, 0) {
            Some(Action::Connect {
                attempt, address, ..
            }) => {
                assert_eq!((attempt.connection, address), (number, expected));
            }
            other => panic!("{other:?}"),
        }
    }
}
