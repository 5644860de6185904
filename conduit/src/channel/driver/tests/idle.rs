//! Peers with which nothing passes.

use super::rails::{connect, transfers};
use super::silent::poll_for;
use super::*;
use crate::channel::driver::idle::Closing;

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

/// Connections are closed as well.
fn closing() -> ChannelSizes {
    ChannelSizes {
        idle_buffers: Duration::ZERO,
        idle_rails: LIMIT,
        ..rails::sizes()
    }
}

impl Rank {
    fn index(&self) -> usize {
        self.tcp.core.rank.index()
    }
}

/// The peer of each.
const PEERS: [u32; 2] = [1, 0];

fn is_connected(rank: &Rank) -> bool {
    rank.tcp.connections().expect("tcp has them").connected > 0
}

fn wishes(rank: &Rank) -> (Vec<JobRank>, Vec<u16>) {
    let queue = &rank.queue;
    (
        queue.wanted.lock().clone(),
        queue.wanted_rails.lock().clone(),
    )
}

/// Polls both until all connections are closed, and sees that none is asked for.
fn until_closed(ranks: &mut [Rank; 2], numbers: &[u16]) {
    for rank in ranks.iter() {
        rank.queue.wanted_rails.lock().clear();
        rank.queue.unwanted.lock().clear();
    }
    let none = |ranks: &[&mut Rank]| !ranks.iter().any(|rank| is_connected(rank));
    assert!(poll_both(ranks, LONG, none), "they stay");
    for rank in ranks.iter_mut() {
        (0..200).for_each(|_| _ = rank.poll());
        assert_eq!(wishes(rank), Default::default());
        let mut unwanted = rank.queue.unwanted.lock().clone();
        unwanted.sort_unstable();
        unwanted.dedup();
        assert_eq!(unwanted, numbers);
        assert_eq!(buffers(rank, PEERS[rank.index()]), 0);
    }
}

/// Gives both a first connection; each says how much it has taken, as a handshake does.
fn connect_again(ranks: &[Rank; 2], incarnation: u64) {
    for (rank, socket) in ranks.iter().zip(pair()) {
        let (me, peer) = (rank.index(), PEERS[rank.index()]);
        let Made::Rail(mut made) = connection(peer, socket, incarnation) else {
            unreachable!()
        };
        let there = ranks[1 - me].tcp.core.used(me as u32).unwrap();
        made.received = there.inbound.lock().complete();
        rank.queue.wanted.lock().clear();
        rank.queue.push(Made::Rail(made));
    }
}

#[test]
fn idle_connections_are_closed_at_both_ends_and_made_again_for_the_next_message() {
    let mut ranks = two(closing());
    let _held = [1, 2].map(|number| connect(&ranks, number, 1));
    transfers(&mut ranks, 20);
    for round in 2..5 {
        until_closed(&mut ranks, if round == 2 { &[0, 1, 2] } else { &[0] });
        assert!(ranks[0].note(round as u32));
        assert_eq!(wishes(&ranks[0]), (vec![JobRank(1)], vec![]));
        connect_again(&ranks, round);
        let here = |ranks: &[&mut Rank]| ranks[1].seen.firsts.last() == Some(&(round as u32));
        assert!(poll_both(&mut ranks, LONG, here), "the message is lost");
    }
    // Further connections are made again for large transfers.
    transfers(&mut ranks, 1);
    assert_eq!(wishes(&ranks[0]).1, [1, 2]);
    assert!(ranks.iter().all(|rank| rank.seen.broken.is_empty()));
}

/// Two ranks, of which the first alone has a time for idle connections.
fn one_closes() -> [Rank; 2] {
    let [here, there] = pair();
    let never = ChannelSizes {
        idle_rails: Duration::ZERO,
        ..closing()
    };
    [
        Rank::new(0, closing(), Some(connection(1, here, 1))),
        Rank::new(1, never, Some(connection(0, there, 1))),
    ]
}

#[test]
fn only_one_of_two_need_have_a_time_for_idle_connections() {
    let mut ranks = one_closes();
    assert!(ranks[0].note(1));
    until_closed(&mut ranks, &[0]);
}

#[test]
fn a_connection_with_bytes_that_are_not_acknowledged_stays() {
    let mut ranks = two(closing());
    assert!(ranks[0].note(1));
    let [a, b] = &mut ranks;
    let closed = |ranks: &[&mut Rank]| !is_connected(ranks[0]);
    assert!(!poll_for(&mut [a], 10 * LIMIT, closed));
    until(b, "the message", |seen| seen.messages == 1);
    until_closed(&mut ranks, &[0]);
}

/// Polls the first rank until it has asked the second to close the connection.
fn until_asked(ranks: &mut [Rank; 2]) {
    let [a, _] = ranks;
    let asked = |ranks: &[&mut Rank]| {
        let peer = ranks[0].tcp.core.used(1).unwrap();
        let closing = peer.outbound.lock().closing;
        matches!(closing, Closing::Asked(..))
    };
    assert!(poll_for(&mut [a], LONG, asked), "it does not ask");
}

/// The same, once the first has asked the second.
fn asked() -> [Rank; 2] {
    let mut ranks = one_closes();
    assert!(ranks[0].note(0));
    let [a, b] = &mut ranks;
    until(b, "the message", |seen| seen.messages == 1);
    let taken = |ranks: &[&mut Rank]| ranks[0].tcp.is_quiescent();
    b.tcp.flush();
    assert!(poll_for(&mut [a, b], LONG, taken));
    until_asked(&mut ranks);
    ranks
}

/// The message is on its way when the question comes.
#[test]
fn a_peer_that_sends_keeps_the_connection() {
    let mut ranks = asked();
    let short = Short::pack(NOTE, &[7]).unwrap();
    assert!(ranks[1].tcp.request_short(JobRank(0), short));
    ranks[1].tcp.flush();
    let [a, b] = &mut ranks;
    until(b, "it has read the question", |_| true);
    (0..200).for_each(|_| _ = b.poll());
    assert!(is_connected(b));
    until(a, "the message", |seen| seen.messages == 1);
    assert!(is_connected(a) && is_connected(b));
    until_closed(&mut ranks, &[0]);
}

/// The peer has agreed when the rank that has asked sends, and that makes no call afterwards.
#[test]
fn what_is_sent_into_a_closed_connection_comes_over_the_next() {
    let mut ranks = asked();
    let [a, b] = &mut ranks;
    let closed = |ranks: &[&mut Rank]| !is_connected(ranks[0]);
    assert!(poll_for(&mut [b], LONG, closed), "it does not agree");
    assert!(a.note(7));
    a.tcp.flush();
    // A thread of the library finds the end, and asks.
    let begun = std::time::Instant::now();
    while a.queue.wanted.lock().is_empty() {
        std::thread::yield_now();
        assert!(begun.elapsed() < LONG, "it is not found");
    }
    assert_eq!(wishes(a), (vec![JobRank(1)], vec![]));
    connect_again(&ranks, 2);
    let [_, b] = &mut ranks;
    let here = |ranks: &[&mut Rank]| ranks[0].seen.firsts == [0, 7];
    assert!(poll_for(&mut [b], LONG, here), "the message is lost");
    until_closed(&mut ranks, &[0]);
    assert_eq!(ranks[1].seen.firsts, [0, 7]);
}

/// The peer has agreed when the exit is reported: it is not taken for one that has gone.
#[test]
fn an_exit_is_heard_over_the_next_connection() {
    let mut ranks = asked();
    let [a, b] = &mut ranks;
    let closed = |ranks: &[&mut Rank]| !is_connected(ranks[0]);
    assert!(poll_for(&mut [b], LONG, closed), "it does not agree");
    let heard = exit::hearing(b);
    let counts = exit::report(a, 2 * LIMIT);
    assert_eq!((counts.reported, counts.confirmed), (1, 0));
    connect_again(&ranks, 2);
    let [_, b] = &mut ranks;
    let has_heard = |_: &[&mut Rank]| *heard.lock() == [(0, 7)];
    assert!(poll_for(&mut [b], LONG, has_heard), "the report is lost");
}

/// A peer to which the connections are closed gets no report, as one that was never used.
#[test]
fn an_exit_makes_no_connection_anew() {
    let mut ranks = two(closing());
    assert!(ranks[0].note(1));
    until_closed(&mut ranks, &[0]);
    assert_eq!(exit::report(&ranks[0], LONG).reported, 0);
    assert_eq!(wishes(&ranks[0]), Default::default());
}

/// It was on its way when all connections were closed.
#[test]
fn a_message_is_not_left_to_a_further_connection_alone() {
    let mut ranks = two(closing());
    assert!(ranks[0].note(0));
    until_closed(&mut ranks, &[0]);
    let _held = connect(&ranks, 1, 1);
    let [a, b] = &mut ranks;
    (0..200).for_each(|_| {
        a.poll();
        b.poll();
    });
    assert!(a.note(7));
    a.tcp.flush();
    assert_eq!(wishes(a).0, [JobRank(1)], "the first one is not asked for");
    connect_again(&ranks, 2);
    let [_, b] = &mut ranks;
    until(b, "the message", |seen| seen.firsts == [0, 7]);
}

/// No rank has asked it to.
#[test]
fn a_peer_that_closes_unasked_loses_nothing() {
    let [here, mut there] = pair();
    let mut a = Rank::new(0, closing(), Some(connection(1, here, 1)));
    assert!(a.note(7));
    let head = HeadBytes::new(Kind::Closed, 0, &[], 0, &Fields::default());
    there.write_all(head.as_bytes()).unwrap();
    until(&mut a, "the first look", |_| true);
    let wanted = |ranks: &[&mut Rank]| !ranks[0].queue.wanted.lock().is_empty();
    assert!(poll_for(&mut [&mut a], LONG, wanted), "the message is lost");
    assert!(!is_connected(&a) && a.seen.broken.is_empty());
}
