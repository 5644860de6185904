//! Links over a wire that does its worst.

use super::*;
use crate::random::Random;
use crate::wire::{FaultPlan, Net, Quality};
use proptest::prelude::*;
use std::collections::{BinaryHeap, VecDeque};

/// What a message's tail holds.
fn byte(token: u64, at: usize) -> u8 {
    (token.wrapping_mul(31) as usize ^ at ^ at >> 8) as u8
}

fn fill(token: u64, offset: usize, out: &mut [u8]) {
    for (i, b) in out.iter_mut().enumerate() {
        *b = byte(token, offset + i);
    }
}

fn address(from: u32) -> Address {
    Address {
        from,
        to: 1 - from,
        class: 0,
        epoch: 5,
    }
}

/// Time and order of a frame's arrival, its target, and its bytes. The earliest is the greatest.
type UnderWay = (std::cmp::Reverse<(u64, u64)>, usize, Vec<u8>);

/// Two ends and the wire between them.
struct Pair {
    ends: [Link; 2],
    now_ns: u64,
    plan: FaultPlan,
    net: Net,
    heap: BinaryHeap<UnderWay>,
    order: u64,
    /// Frames sent by each end.
    sent: [u64; 2],
    acknowledged: VecDeque<u64>,
    dead: [bool; 2],
    frame: Vec<u8>,
}

impl Pair {
    fn new(config: LinkConfig, plan: FaultPlan, seed: u64) -> Self {
        Self {
            ends: [0, 1].map(|rank| Link::new(config, address(rank), 0)),
            now_ns: 0,
            plan,
            net: Net::new(seed, 2),
            heap: BinaryHeap::new(),
            order: 0,
            sent: [0, 0],
            acknowledged: VecDeque::new(),
            dead: [false; 2],
            frame: Vec::new(),
        }
    }

    fn transmit(&mut self) {
        for rank in 0..2 {
            let end = &mut self.ends[rank];
            while end.poll_transmit(self.now_ns, &mut self.frame, &mut fill) {
                self.sent[rank] += 1;
                let (from, to) = (rank as u32, 1 - rank as u32);
                let arrivals = self
                    .net
                    .send(&self.plan, self.now_ns, from, to, &self.frame);
                for (at, bytes) in arrivals.into_iter().flatten() {
                    self.order += 1;
                    let key = std::cmp::Reverse((at, self.order));
                    self.heap.push((key, 1 - rank, bytes));
                }
            }
            assert_eq!(end.excess(), None);
        }
    }

    /// Time goes on to whatever comes next, at most to `until_ns`.
    fn step(&mut self, until_ns: u64) -> bool {
        self.transmit();
        let arrives = self.heap.peek().map(|(key, ..)| key.0.0);
        let timers = self.ends.iter().filter_map(|end| end.poll_timeout());
        let Some(next) = timers.chain(arrives).min().filter(|at| *at <= until_ns) else {
            return false;
        };
        self.now_ns = self.now_ns.max(next);
        while let Some((key, ..)) = self.heap.peek()
            && key.0.0 <= self.now_ns
            && let Some((_, to, bytes)) = self.heap.pop()
        {
            let _ = self.ends[to].handle_recv(self.now_ns, &bytes);
        }
        for rank in 0..2 {
            self.ends[rank].handle_timeout(self.now_ns);
            while let Some(event) = self.ends[rank].poll_event() {
                match event {
                    LinkEvent::Acknowledged(token) => self.acknowledged.push_back(token),
                    LinkEvent::Dead { .. } => self.dead[rank] = true,
                    LinkEvent::Broken(error) => panic!("{error}"),
                }
            }
        }
        true
    }
}

fn outgoing(token: u64, head: usize, tail: usize) -> Outgoing {
    let mut bytes = token.to_le_bytes().to_vec();
    bytes.extend((0..head).map(|i| i as u8));
    let tail = (tail > 0).then_some(Tail { token, len: tail });
    Outgoing { head: bytes, tail }
}

fn expected(token: u64, head: usize, tail: usize) -> Vec<u8> {
    let mut bytes = outgoing(token, head, 0).head;
    bytes.extend((0..tail).map(|i| byte(token, i)));
    bytes
}

/// Sends `sizes` both ways over the wire of `plan` and checks that all arrive, once, in order.
fn transfer(config: LinkConfig, plan: FaultPlan, seed: u64, sizes: &[(usize, usize)]) -> Pair {
    let mut pair = Pair::new(config, plan, seed);
    let (mut submitted, mut received) = ([0; 2], [0; 2]);
    let mut random = Random::new(seed);
    while received != [sizes.len(); 2] || !pair.ends.iter().all(Link::is_idle) {
        for rank in 0..2 {
            while let Some((head, tail)) = sizes.get(submitted[rank])
                && pair.ends[rank].has_room()
            {
                let token = (submitted[rank] * 2 + rank) as u64;
                pair.ends[rank]
                    .submit(outgoing(token, *head, *tail))
                    .unwrap();
                submitted[rank] += 1;
            }
            // The user does not always take what has come.
            if random.chance(700_000)
                && let Some(message) = pair.ends[1 - rank].poll_message()
            {
                let (head, tail) = sizes[received[rank]];
                let token = (received[rank] * 2 + rank) as u64;
                assert!(message == expected(token, head, tail), "message {token}");
                received[rank] += 1;
            }
        }
        let before = pair.now_ns;
        if !pair.step(u64::MAX) {
            let over = received == [sizes.len(); 2] && pair.ends.iter().all(Link::is_idle);
            let waits = pair.ends.iter().any(Link::has_message);
            assert!(over || waits, "nothing goes on");
        }
        assert!(pair.now_ns - before < 100_000_000 && pair.now_ns < 100_000_000_000);
        assert_eq!(pair.dead, [false; 2], "at {} ns", pair.now_ns);
    }
    for rank in 0..2 {
        assert!(pair.ends[rank].poll_message().is_none());
    }
    pair
}

fn plan(quality: Quality) -> FaultPlan {
    FaultPlan {
        healed: quality,
        ..FaultPlan::none()
    }
}

const AWFUL: Quality = Quality {
    jitter_ns: 2_000,
    loss_ppm: 200_000,
    duplicate_ppm: 200_000,
    hold_ppm: 300_000,
    hold_ns: 50_000,
    damage_ppm: 50_000,
    ..Quality::CLEAN
};

#[test]
fn a_clean_wire_repeats_nothing() {
    let sizes: Vec<_> = (0..200).map(|i| (i % 50, i * 37 % 5000)).collect();
    let pair = transfer(LinkConfig::default(), FaultPlan::none(), 1, &sizes);
    for end in &pair.ends {
        let counters = end.counters();
        assert_eq!(
            (counters.resent, counters.duplicates, counters.refused),
            (0, 0, 0)
        );
    }
    assert_eq!(
        pair.acknowledged.len(),
        2 * sizes.iter().filter(|s| s.1 > 0).count()
    );
}

proptest! {
    #[test]
    fn exactly_once_and_in_order_whatever_the_wire_does(
        seed in any::<u64>(),
        sizes in proptest::collection::vec((0usize..100, 0usize..3000), 1..30),
        smallest in any::<bool>(),
        window in 1u32..65,
        parts in 1u32..100,
    ) {
        let config = if smallest { LinkConfig::smallest() } else {
            LinkConfig { recv_parts: window, send_parts: parts, part_bytes: 100, ..LinkConfig::default() }
        };
        let drawn = FaultPlan::draw(&mut Random::new(seed), 2);
        transfer(config, FaultPlan { pauses: Vec::new(), ..drawn }, seed, &sizes);
        transfer(config, plan(AWFUL), seed, &sizes);
    }

    #[test]
    fn bytes_of_strangers_change_nothing(
        seed in any::<u64>(),
        noise in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..150), 0..50),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut pair = Pair::new(LinkConfig::default(), FaultPlan::none(), seed);
        for token in 0..20 {
            pair.ends[0].submit(outgoing(token, 10, 300)).unwrap();
        }
        let mut noise = noise.into_iter();
        let mut next = 0;
        while next < 20 {
            pair.step(u64::MAX);
            if let Some(bytes) = noise.next() {
                prop_assert!(pair.ends[1].handle_recv(pair.now_ns, &bytes).is_err());
            }
            // A frame under way, changed, to both ends.
            if let Some((_, _, frame)) = pair.heap.peek() {
                let mut frame = frame.clone();
                for (index, bits) in &flips {
                    let at = index.index(frame.len());
                    frame[at] ^= *bits;
                }
                if parse(&frame).is_err() {
                    for end in &mut pair.ends {
                        prop_assert!(end.handle_recv(pair.now_ns, &frame).is_err());
                    }
                }
            }
            while let Some(message) = pair.ends[1].poll_message() {
                prop_assert!(message == expected(next, 10, 300));
                next += 1;
            }
        }
    }

    #[test]
    fn a_peer_that_lies_does_no_harm_beyond_its_link(
        fields in proptest::collection::vec(
            (0u8..16, 0u64..200, 0u64..200, any::<u64>(), 0u32..80, 0usize..50), 1..100),
    ) {
        let config = LinkConfig { message_bytes: 200, ..LinkConfig::default() };
        let mut link = Link::new(config, address(0), 0);
        for (now, (flags, seq, ack, sack, window, length)) in (0..).zip(fields) {
            let header = Header { address: address(1), flags, seq, ack, sack, window };
            let mut bytes = Vec::new();
            frame::write(&header, length, &mut bytes, |_| {});
            let _ = link.handle_recv(now, &bytes);
            if link.has_room() {
                let _ = link.submit(outgoing(now, 3, 20));
            }
            link.handle_timeout(now);
            let mut out = Vec::new();
            while link.poll_transmit(now, &mut out, &mut fill) {}
            prop_assert_eq!(link.excess(), None);
            if let Some(message) = link.poll_message() {
                prop_assert!(message.len() <= 200);
            }
        }
    }
}

#[test]
fn a_lost_acknowledgement_is_repeated() {
    let mut pair = Pair::new(LinkConfig::default(), FaultPlan::none(), 1);
    pair.ends[0].submit(outgoing(1, 0, 10)).unwrap();
    pair.transmit();
    pair.step(u64::MAX);
    assert!(pair.ends[1].has_message());
    // The acknowledgement is sent, and vanishes.
    pair.transmit();
    pair.heap.clear();
    while pair.acknowledged.is_empty() {
        assert!(pair.step(10_000_000), "the sender never learns of it");
    }
    let counters = pair.ends[1].counters();
    assert_eq!(counters.duplicates, 1);
    assert_eq!(pair.ends[1].poll_message().unwrap(), expected(1, 0, 10));
    assert!(pair.ends[1].poll_message().is_none(), "delivered twice");
}

/// The receiver has told selectively that the second part is there; what tells that the first is, and
/// so both, is lost. Nothing is under way then, and only the first part's timer can find out.
#[test]
fn a_cumulative_acknowledgement_is_lost_after_a_selective_one() {
    let config = LinkConfig {
        part_bytes: 10,
        keepalive_ns: u64::MAX / 8,
        dead_after_ns: u64::MAX / 4,
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(config, FaultPlan::none(), 1);
    pair.ends[0].submit(outgoing(1, 0, 10)).unwrap();
    let mut parts = Vec::new();
    while pair.ends[0].poll_transmit(0, &mut pair.frame, &mut fill) {
        parts.push(pair.frame.clone());
    }
    assert_eq!(parts.len(), 2);
    let mut tell = |now_ns: u64, part: &[u8]| {
        pair.ends[1].handle_recv(now_ns, part).unwrap();
        assert!(pair.ends[1].poll_transmit(now_ns, &mut pair.frame, &mut fill));
        pair.frame.clone()
    };
    let selective = tell(1000, &parts[1]);
    let _lost = tell(2000, &parts[0]);
    pair.ends[0].handle_recv(3000, &selective).unwrap();
    pair.now_ns = 3000;
    while pair.acknowledged.is_empty() {
        assert!(pair.step(100_000_000), "the sender never learns of it");
    }
    assert_eq!(pair.ends[1].poll_message().unwrap(), expected(1, 0, 10));
}

#[test]
fn a_pass_sends_no_more_than_its_share_again() {
    let config = LinkConfig {
        resends_per_pass: 3,
        part_bytes: 10,
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(
        config,
        plan(Quality {
            loss_ppm: 1_000_000,
            ..Quality::CLEAN
        }),
        1,
    );
    pair.ends[0].submit(outgoing(1, 0, 500)).unwrap();
    pair.transmit();
    let mut before = pair.sent[0];
    assert!(before > 3);
    while pair.ends[0].counters().expiries < 4 {
        assert!(pair.step(u64::MAX));
        pair.transmit();
        assert!(
            pair.sent[0] - before <= 3,
            "{} in one pass",
            pair.sent[0] - before
        );
        before = pair.sent[0];
    }
}

#[test]
fn a_closed_window_opens_although_the_news_is_lost() {
    let config = LinkConfig::smallest();
    let mut pair = Pair::new(config, FaultPlan::none(), 1);
    pair.ends[0].submit(outgoing(1, 0, 0)).unwrap();
    while !pair.ends[1].has_message() || !pair.ends[0].is_idle() {
        pair.step(u64::MAX);
    }
    // The first waits for its user, the second fills the window, the third waits for that.
    for token in 2..4 {
        pair.ends[0].submit(outgoing(token, 0, 0)).unwrap();
        while !pair.ends[0].is_idle() && pair.step(5_000_000) {}
    }
    assert!(!pair.ends[0].is_idle(), "the window never closed");
    assert_eq!(pair.ends[1].poll_message().unwrap(), expected(1, 0, 0));
    // What tells that the window is open is lost.
    pair.transmit();
    pair.heap.clear();
    let mut next = 2;
    while next < 4 {
        assert!(pair.step(pair.now_ns + 100_000_000));
        while let Some(message) = pair.ends[1].poll_message() {
            assert_eq!(message, expected(next, 0, 0));
            next += 1;
        }
    }
}

#[test]
fn a_silent_peer_is_dead_in_time_and_an_idle_one_is_not() {
    let config = LinkConfig::default();
    let mut idle = transfer(config, FaultPlan::none(), 1, &[(1, 1)]);
    let end = idle.now_ns + 10 * config.dead_after_ns;
    while idle.step(end) {}
    assert_eq!(idle.dead, [false; 2]);
    assert!(
        idle.sent[0] < 500,
        "{} frames on an idle link",
        idle.sent[0]
    );
    // From now on nothing arrives.
    idle.plan = plan(Quality {
        loss_ppm: 1_000_000,
        ..Quality::CLEAN
    });
    let from = idle.now_ns;
    while idle.dead != [true; 2] {
        assert!(idle.step(u64::MAX));
    }
    let took = idle.now_ns - from;
    assert!(
        took <= config.dead_after_ns + 2 * config.keepalive_ns,
        "{took} ns"
    );
}

#[test]
fn frames_of_another_life_are_dropped() {
    let config = LinkConfig::default();
    let mut old = Link::new(
        config,
        Address {
            epoch: 4,
            ..address(0)
        },
        0,
    );
    let mut new = Link::new(config, address(1), 0);
    old.submit(outgoing(1, 0, 0)).unwrap();
    let mut frame = Vec::new();
    assert!(old.poll_transmit(0, &mut frame, &mut fill));
    assert_eq!(new.handle_recv(0, &frame), Err(FrameError::Connection));
    assert!(new.poll_message().is_none());
}

/// A thousand links, each with faults of its own.
#[test]
fn a_thousand_links() {
    for seed in 0..1000 {
        let quality = if seed % 2 == 0 { AWFUL } else { Quality::CLEAN };
        transfer(
            LinkConfig::default(),
            plan(quality),
            seed,
            &[(3, 900), (0, 2000), (9, 0)],
        );
    }
}
