//! A wire with faults between endpoints, and programs over it.

use super::endpoint;
use crate::reliable::datagram::{Header, Protection};
use crate::reliable::{Channel, Endpoint, ReliableConfig, Seal};
use argonet_base::JobRank;
use core::time::Duration;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// Faults of the wire; chances in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) drop: u64,
    pub(super) duplicate: u64,
    pub(super) corrupt: u64,
    /// Longest time that a datagram takes beyond the least, in microseconds: a jitter above the
    /// time between two datagrams reorders them.
    pub(super) jitter_us: u64,
    /// Datagrams longer than this are lost; 0: none are.
    pub(super) mtu: usize,
}

/// A datagram on its way: when it arrives and its number, its target, its bytes.
type UnderWay = Reverse<(Duration, u64, usize, Vec<u8>)>;

pub(super) struct World {
    pub(super) now: Duration,
    pub(super) ends: Vec<Endpoint>,
    pub(super) faults: Faults,
    /// Ranks that neither send nor get anything any more.
    pub(super) dead: Vec<bool>,
    /// Ranks to which nothing comes.
    pub(super) cut_off: Vec<bool>,
    /// Records that each rank has got of each peer, by channel.
    pub(super) got: Vec<Vec<[Vec<Vec<u8>>; 2]>>,
    /// Whether each rank takes records at once.
    pub(super) accepts: Vec<bool>,
    random: Xoshiro256PlusPlus,
    heap: BinaryHeap<UnderWay>,
    count: u64,
    /// Ranks and numbers of sealed datagrams.
    nonces: HashSet<(u32, u32, u64)>,
}

const LEAST_TRIP: Duration = Duration::from_micros(20);

impl World {
    pub(super) fn new(config: ReliableConfig, ranks: u32, seal: Option<&Seal>, seed: u64) -> Self {
        let count = ranks as usize;
        Self {
            now: Duration::ZERO,
            ends: (0..ranks)
                .map(|rank| endpoint(config, rank, ranks, seal))
                .collect(),
            faults: Faults::default(),
            dead: vec![false; count],
            cut_off: vec![false; count],
            got: vec![vec![[const { Vec::new() }; 2]; count]; count],
            accepts: vec![true; count],
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            heap: BinaryHeap::new(),
            count: 0,
            nonces: HashSet::new(),
        }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below.max(1)
    }

    fn chance(&mut self, thousandths: u64) -> bool {
        self.random(1000) < thousandths
    }

    /// Puts a datagram on the wire.
    pub(super) fn send(&mut self, to: usize, mut bytes: Vec<u8>) {
        let times = 1 + u64::from(self.chance(self.faults.duplicate));
        for _ in 0..times {
            let is_too_long = self.faults.mtu != 0 && bytes.len() > self.faults.mtu;
            if is_too_long || self.cut_off[to] || self.chance(self.faults.drop) {
                continue;
            }
            if self.chance(self.faults.corrupt) {
                let bit = self.random(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let late = Duration::from_micros(self.random(self.faults.jitter_us + 1));
            self.count += 1;
            let arrives = self.now + LEAST_TRIP + late;
            self.heap
                .push(Reverse((arrives, self.count, to, bytes.clone())));
        }
    }

    /// Sends the datagrams that are due; the datagrams of ranks that have died are lost.
    pub(super) fn transmit(&mut self) {
        for rank in 0..self.ends.len() {
            while let Some(transmit) = self.ends[rank].poll_transmit(self.now) {
                let (to, bytes) = (transmit.peer.0 as usize, transmit.bytes.to_vec());
                self.look_at(&bytes);
                if !self.dead[rank] {
                    self.send(to, bytes);
                }
            }
        }
    }

    /// No nonce covers two datagrams, whatever is sent again.
    fn look_at(&mut self, bytes: &[u8]) {
        let (header, _) = Header::read(bytes).expect("a datagram");
        if header.protection != Protection::Open {
            let nonce = (header.from.0, header.to.0, header.number);
            assert!(self.nonces.insert(nonce), "{nonce:?} comes twice");
        }
    }

    /// Takes the kept records of a peer, if it takes any.
    pub(super) fn take(&mut self, rank: usize, peer: usize) {
        for channel in Channel::BOTH {
            while self.accepts[rank]
                && let Some(record) = self.ends[rank].take(self.now, JobRank(peer as u32), channel)
            {
                self.got[rank][peer][channel.index()].push(record.bytes().to_vec());
                self.ends[rank].recycle(record);
            }
        }
    }

    fn arrive(&mut self, to: usize, bytes: &mut [u8]) {
        let accepts = self.accepts[to];
        let Some(arrived) = self.ends[to].handle_recv(self.now, bytes, |_, _| accepts) else {
            return;
        };
        let peer = arrived.peer.0 as usize;
        if let Some(record) = arrived.record {
            self.got[to][peer][arrived.channel.index()].push(bytes[record].to_vec());
        }
        self.take(to, peer);
    }

    /// Goes on to the next thing that happens, no later than `until`; whether there was one.
    pub(super) fn step(&mut self, until: Duration) -> bool {
        self.transmit();
        let arrival = self.heap.peek().map(|Reverse((at, ..))| *at);
        let living = (0..self.ends.len()).filter(|rank| !self.dead[*rank]);
        let timeout = living
            .filter_map(|rank| self.ends[rank].poll_timeout())
            .min();
        let Some(next) = arrival.into_iter().chain(timeout).min() else {
            return false;
        };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == Some(next) {
            if let Some(Reverse((_, _, to, mut bytes))) = self.heap.pop()
                && !self.dead[to]
            {
                self.arrive(to, &mut bytes);
            }
        } else {
            for rank in 0..self.ends.len() {
                if !self.dead[rank] {
                    self.ends[rank].handle_timeout(self.now);
                }
            }
        }
        true
    }

    /// Goes on as long as something happens, up to a time.
    pub(super) fn run(&mut self, until: Duration) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }
}

/// The nth record from one rank to another: its length and bytes identify it.
pub(super) fn record((from, to): (usize, usize), channel: Channel, n: u64, most: usize) -> Vec<u8> {
    let pair = (channel.index() << 6 | from << 3 | to) as u64;
    let mark = (n << 8 | pair).to_le_bytes();
    let len = (n as usize * 37) % (most + 1);
    mark.into_iter().cycle().take(len).collect()
}
