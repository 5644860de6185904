//! Peers with which nothing passes.

use super::rails::{connect, transfers};
use super::silent::poll_for;
use super::*;

const LIMIT: Duration = Duration::from_millis(20);

/// Times that are longer than any of a test that does not fail.
const LONG: Duration = Duration::from_secs(20);

fn sizes() -> ChannelSizes {
    ChannelSizes {
        idle_buffers: LIMIT,
        ..rails::sizes()
    }
}

fn buffers(rank: &Rank, peer: u32) -> u64 {
    let ledger = rank.tcp.ledger(JobRank(peer)).expect("it was used");
    ledger.held.buffer_bytes
}

fn poll_both(ranks: &mut [Rank; 2], time: Duration, done: impl Fn(&[&mut Rank]) -> bool) -> bool {
    let [a, b] = ranks;
    poll_for(&mut [a, b], time, done)
}

#[test]
fn buffers_of_an_idle_peer_are_freed_and_come_back() {
    let mut ranks = two(sizes());
    let _held = [1, 2].map(|number| connect(&ranks, number, 1));
    for _ in 0..3 {
        transfers(&mut ranks, 20);
        assert!(buffers(&ranks[0], 1) > 0 && buffers(&ranks[1], 0) > 0);
        let none = |ranks: &[&mut Rank]| buffers(ranks[0], 1) + buffers(ranks[1], 0) == 0;
        assert!(poll_both(&mut ranks, LONG, none), "they stay");
        // A poll that finds nothing brings none back, not even that of the hot peer.
        for _ in 0..200 {
            ranks.iter_mut().for_each(|rank| _ = rank.poll());
        }
        assert_eq!((buffers(&ranks[0], 1), buffers(&ranks[1], 0)), (0, 0));
    }
}

#[test]
fn buffers_in_use_are_kept() {
    let mut ranks = two(sizes());
    assert!(ranks[0].note(1));
    let [a, b] = &mut ranks;
    // It is not taken, so that its sender must keep it.
    let none = |ranks: &[&mut Rank]| buffers(ranks[0], 1) == 0;
    assert!(!poll_for(&mut [a], 10 * LIMIT, none));
    until(b, "the message", |seen| seen.messages == 1);
    assert!(poll_both(&mut ranks, LONG, none));
}

#[test]
fn without_a_time_buffers_are_kept() {
    let mut ranks = two(ChannelSizes {
        idle_buffers: Duration::ZERO,
        ..sizes()
    });
    transfers(&mut ranks, 2);
    let none = |ranks: &[&mut Rank]| buffers(ranks[0], 1) == 0;
    assert!(!poll_both(&mut ranks, 10 * LIMIT, none));
}
