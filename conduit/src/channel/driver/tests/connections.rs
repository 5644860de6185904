//! Memory in the report of connections.

use super::*;
use crate::Held;
use crate::channel::driver::core::Core;
use crate::channel::{AnyRail, AnyRails};
use crate::connections::Connections;
use crate::connections::GateCounts;

fn report(rank: &Rank) -> Connections {
    rank.tcp.connections().expect("tcp has connections")
}

#[test]
fn a_rank_that_was_not_used_keeps_little_and_has_no_ledger() {
    let mut a = Rank::new(0, ChannelSizes::default(), None);
    (0..100).for_each(|_| _ = a.poll());
    assert!(a.queue.wanted.lock().is_empty(), "no peer is used");
    let idle = report(&a);
    assert_eq!(
        (idle.rank, idle.ranks, idle.used, idle.connected),
        (0, 3, 0, 0)
    );
    assert_eq!(
        idle.state_bytes(),
        3 * Core::<AnyRails>::UNUSED_BYTES as u64
    );
    assert!(idle.unused_bytes <= 64);
    assert_eq!(idle.held, Some(Held::default()));
    assert!(a.tcp.ledger(JobRank(1)).is_none());
    assert!(a.tcp.ledger(JobRank(2)).is_none());
    // The first use of a peer asks for a connection to it, and to no other peer.
    assert!(a.note(7));
    assert_eq!(*a.queue.wanted.lock(), [JobRank(1)]);
    assert_eq!((report(&a).used, report(&a).connected), (1, 0));
}

#[test]
fn the_ledger_counts_the_memory_of_a_peer_and_its_growth() {
    let [a, mut b] = two(ChannelSizes::default());
    let held = |rank: &Rank, peer| rank.tcp.ledger(JobRank(peer)).expect("it was used").held;
    let before = held(&a, 1);
    assert_eq!(before.descriptors, 1, "one connection");
    assert!(before.state_bytes > Core::<AnyRails>::UNUSED_BYTES as u64);
    // Copied bytes wait in the ring until the peer has taken them.
    assert!(a.note(7));
    let small = held(&a, 1).buffer_bytes;
    let bytes = vec![3; 200 << 10];
    let mut pos = 0;
    while pos < bytes.len() {
        let end = (pos + (4 << 10)).min(bytes.len());
        if a.put(0, &bytes[pos..end], 1).is_err() {
            break;
        }
        pos = end;
    }
    let grown = held(&a, 1).buffer_bytes;
    assert!(
        grown >= small + (100 << 10),
        "{small} before, {grown} with {pos} bytes under way"
    );
    until(&mut b, "the note", |seen| seen.messages == 1);
    assert!(held(&b, 0).buffer_bytes > 0, "received bytes are staged");
    let all = report(&a);
    assert_eq!((all.used, all.connected), (1, 1));
    let state = 3 * Core::<AnyRails>::UNUSED_BYTES as u64 + u64::from(all.used_bytes);
    assert_eq!(all.state_bytes(), state);
    let one = held(&a, 1);
    assert_eq!(all.held, Some(one), "there is no other peer");
    let text = all.to_string();
    let parts = [
        format!("state {} bytes", all.state_bytes()),
        format!("buffers {} bytes, 1 sockets", one.buffer_bytes),
    ];
    for part in parts {
        assert!(text.contains(&part), "{part} in {text}");
    }
    // So does a line of the report of a job that hangs.
    let line = a.tcp.ledger(JobRank(1)).unwrap().to_string();
    assert!(
        line.contains(&format!("{} of buffers, 1 sockets", one.buffer_bytes)),
        "{line}"
    );
}

#[test]
fn a_peer_whose_connection_is_lost_has_no_socket() {
    let [mut a, b] = two(ChannelSizes::default());
    assert_eq!(report(&a).connected, 1);
    drop(b);
    for _ in 0..IDLE {
        a.poll();
        if report(&a).connected == 0 {
            break;
        }
    }
    let lost = report(&a);
    assert_eq!((lost.used, lost.connected), (1, 0));
    assert_eq!(lost.held.unwrap().descriptors, 0);
}

#[test]
fn counts_are_the_same_when_they_are_read() {
    let words = core::array::from_fn(|i| 1 << i);
    let counts = GateCounts::from_words(words);
    assert_eq!(counts.to_words(), words);
    assert_eq!((counts.seen, counts.proven), (1, 2));
    // All but those two; no other sum of some of these bits is this.
    assert_eq!(counts.dropped(), 0b111_1111_1100);
    let text = counts.to_string();
    for (word, what) in words
        .iter()
        .zip(["came", "proved", "with all", "for one", "silent", "closed"])
    {
        assert!(text.contains(&format!("{word} {what}")), "{what}: {text}");
    }
    assert!(text.ends_with("1024 for another rank"), "{text}");
    assert_eq!(Connections::read(b"argoconn"), None);
    assert_eq!(Connections::read(&[0; 15 * 8]), None);
}

#[test]
fn further_connections_count_with_their_buffers() {
    let mut ranks = two(rails::sizes());
    rails::transfers(&mut ranks, 1);
    let held = |rank: &Rank, peer| rank.tcp.ledger(JobRank(peer)).expect("it was used").held;
    assert_eq!(held(&ranks[0], 1).descriptors, 1);
    let _held = [1, 2].map(|number| rails::connect(&ranks, number, 1));
    rails::transfers(&mut ranks, 40);
    for (rank, peer) in ranks.iter().zip([1, 0]) {
        assert_eq!(held(rank, peer).descriptors, 3);
        let all = report(rank);
        assert_eq!((all.used, all.connected), (1, 3));
        let inbound = rank.tcp.core.used(peer).unwrap().inbound.lock();
        let staged = |rail: &super::super::further_rails::InboundRail<AnyRail>| {
            rail.receive_stream.buffer_bytes() as u64
        };
        let rails: u64 = inbound.rails.iter().map(staged).sum();
        drop(inbound);
        assert!(
            rails > 0 && held(rank, peer).buffer_bytes > rails,
            "{rails}"
        );
    }
}

/// The joiner numbers fewer connections than a channel has bits for.
#[test]
fn more_rails_than_the_joiner_can_make_are_refused() {
    let begin = |rails| {
        let sizes = ChannelSizes {
            rails,
            ..ChannelSizes::default()
        };
        Rank::try_begin(0, sizes, None, false)
    };
    assert!(begin(16).is_ok());
    let error = begin(17).err().expect("too many");
    assert_eq!(error.to_string(), "17 rails to a peer, of 16 that can be");
}
