//! Two ranks that connect to each other through a network with faults, in virtual time.

mod streams;

use super::super::*;
use argonet_base::JobRank;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::{MS, S};

/// Where an address leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// To the peer.
    Good,
    /// To a host where no process listens.
    Refuses,
    /// Nowhere.
    Swallows,
    /// To a kernel where no process answers.
    Silent,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Ask {
        end: usize,
        connection: u16,
    },
    /// The kernel at the other end has taken the attempt, or refused it.
    Reached {
        stream: usize,
    },
    Rejected {
        stream: usize,
    },
    /// The connector's proof is at the acceptor.
    Proof {
        stream: usize,
    },
    /// The acceptor's verdict is at the connector.
    Verdict {
        stream: usize,
    },
    /// The end finds that the stream is closed or broken.
    Gone {
        stream: usize,
        end: usize,
    },
    Reset {
        stream: usize,
    },
    /// All ways are as they stay.
    FaultsEnd,
}

struct Stream {
    connector: usize,
    attempt: Attempt,
    incarnation: u64,
    /// The acceptor's decision.
    decision: Option<Decision>,
    broken: bool,
}

struct End {
    machine: Peer,
    /// Attempts under way.
    attempts: HashMap<Attempt, usize>,
    /// For each connection: its stream and incarnation.
    up: BTreeMap<u16, (usize, u64)>,
    /// The last incarnation of each connection that was up.
    last: BTreeMap<u16, u64>,
    deaf_until_ns: u64,
    given_up: Option<(u64, u64)>,
}

pub(super) struct World {
    now_ns: u64,
    ends: [End; 2],
    /// By end and address of the other.
    ways: [Vec<Way>; 2],
    later: [Vec<Way>; 2],
    streams: Vec<Stream>,
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Xoshiro256PlusPlus,
    config: DialConfig,
    asked: BTreeSet<u16>,
    /// Whether streams are reset.
    faults: bool,
    pub(super) resets: u64,
    pub(super) crossings: u64,
    pub(super) stale: u64,
}

impl World {
    pub(super) fn new(seed: u64, addresses: usize) -> Self {
        let end = || End {
            machine: Peer::default(),
            attempts: HashMap::new(),
            up: BTreeMap::new(),
            last: BTreeMap::new(),
            deaf_until_ns: 0,
            given_up: None,
        };
        let ways = [vec![Way::Good; addresses], vec![Way::Good; addresses]];
        Self {
            now_ns: 0,
            ends: [end(), end()],
            later: ways.clone(),
            ways,
            streams: Vec::new(),
            heap: BinaryHeap::new(),
            order: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            config: DialConfig::default(),
            asked: BTreeSet::new(),
            faults: false,
            resets: 0,
            crossings: 0,
            stale: 0,
        }
    }

    /// One trial: faults for a while, then none.
    ///
    /// Panics with the seed if the ends do not agree.
    pub(super) fn trial(seed: u64) -> Self {
        let addresses = 1 + (seed % 3) as usize;
        let mut world = Self::new(seed, addresses);
        world.faults = true;
        // Together with an unanswered attempt and two that are swallowed this is less than the
        // limit.
        let end_ns = world.below(12 * S);
        for end in 0..2 {
            for address in 0..addresses {
                world.ways[end][address] = world.way();
                world.later[end][address] = match world.way() {
                    Way::Silent => Way::Swallows,
                    way => way,
                };
            }
            if world.chance(4) {
                world.ends[end].deaf_until_ns = world.below(12 * S);
            }
        }
        // One address of one direction stays good.
        let (end, address) = (
            world.below(2) as usize,
            world.below(addresses as u64) as usize,
        );
        world.later[end][address] = Way::Good;
        world.schedule(end_ns, Event::FaultsEnd);
        for connection in 0..1 + world.below(2) as u16 {
            let first = world.below(2) as usize;
            let at_ns = world.below(100 * MS);
            world.ask(at_ns, first, connection);
            // The end that can connect must want to. Often both do, within a round trip or so.
            let bound = if world.chance(2) { 3 * MS } else { 2 * S };
            let after = world.below(bound);
            world.ask(at_ns + after, 1 - first, connection);
        }
        let asked = world.asked.clone();
        world.run_until(end_ns + 60 * S);
        for connection in asked {
            world.assert_joined_in(connection, &format!("seed {seed}"));
        }
        assert_eq!(world.given_up(), [None, None], "seed {seed}");
        let before: Vec<_> = world.ends.iter().map(|end| end.up.clone()).collect();
        world.run_until(end_ns + 120 * S);
        let after: Vec<_> = world.ends.iter().map(|end| end.up.clone()).collect();
        assert_eq!(before, after, "seed {seed}: they do not keep it");
        world
    }

    pub(super) fn ask(&mut self, at_ns: u64, end: usize, connection: u16) {
        self.asked.insert(connection);
        self.schedule(at_ns, Event::Ask { end, connection });
    }

    pub(super) fn all_ways(&mut self, way: Way) {
        self.ways.iter_mut().for_each(|ways| ways.fill(way));
    }

    pub(super) fn set_way(&mut self, end: usize, address: usize, way: Way) {
        self.ways[end][address] = way;
    }

    pub(super) fn deaf(&mut self, end: usize, until_ns: u64) {
        self.ends[end].deaf_until_ns = until_ns;
    }

    pub(super) fn given_up(&self) -> [Option<(u64, u64)>; 2] {
        [self.ends[0].given_up, self.ends[1].given_up]
    }

    pub(super) fn is_up(&self, end: usize, connection: u16) -> bool {
        self.ends[end].up.contains_key(&connection)
    }

    pub(super) fn assert_joined(&self, connection: u16) {
        self.assert_joined_in(connection, "");
    }

    fn assert_joined_in(&self, connection: u16, case: &str) {
        let [a, b] = [0, 1].map(|end| {
            let end = &self.ends[end];
            assert!(end.attempts.is_empty(), "{case}: attempts are left");
            let incarnation = end.machine.incarnation(connection);
            assert_eq!(
                incarnation,
                end.up.get(&connection).map(|up| up.1),
                "{case}"
            );
            end.up.get(&connection)
        });
        assert!(
            a.is_some() && a == b,
            "{case}: connection {connection}: {a:?}, {b:?}"
        );
    }

    pub(super) fn run_until(&mut self, until_ns: u64) {
        loop {
            let event = self.heap.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let timers = self.ends.iter().filter_map(|end| {
                let at_ns = end.machine.poll_timeout()?;
                Some(at_ns.max(end.deaf_until_ns))
            });
            let Some(at_ns) = timers.chain(event).min().filter(|at| *at <= until_ns) else {
                break;
            };
            self.now_ns = self.now_ns.max(at_ns);
            while let Some(Reverse((at_ns, _, event))) = self.heap.peek().copied() {
                if at_ns > self.now_ns {
                    break;
                }
                self.heap.pop();
                self.handle(event);
            }
            for end in 0..2 {
                self.act(end);
            }
        }
        self.now_ns = until_ns;
    }

    fn pair(&self, end: usize) -> Pair {
        Pair {
            me: JobRank(end as u32),
            peer: JobRank(1 - end as u32),
            addresses: self.ways[end].len() as u8,
            seed: 77 + end as u64,
        }
    }

    fn handle(&mut self, event: Event) {
        // An end that does not poll hears of it later.
        if let Some(end) = self.hearer(event)
            && self.ends[end].deaf_until_ns > self.now_ns
        {
            self.schedule(self.ends[end].deaf_until_ns, event);
            return;
        }
        let now_ns = self.now_ns;
        match event {
            Event::Ask { end, connection } => {
                let pair = self.pair(end);
                self.ends[end].machine.ask(now_ns, pair, connection);
            }
            Event::Reached { stream } => {
                let Some((end, attempt)) = self.wanted(stream) else {
                    return;
                };
                self.ends[end]
                    .machine
                    .reached(&self.config, now_ns, attempt);
            }
            Event::Rejected { stream } => self.fail(stream, super::REFUSED),
            Event::Proof { stream } => self.proof(stream),
            Event::Verdict { stream } => self.verdict(stream),
            Event::Gone { stream, end } => self.gone(stream, end),
            Event::Reset { stream } => {
                if !self.streams[stream].broken && self.faults {
                    self.resets += 1;
                    self.break_stream(stream);
                }
            }
            Event::FaultsEnd => {
                self.ways = self.later.clone();
                self.faults = false;
            }
        }
    }

    fn hearer(&self, event: Event) -> Option<usize> {
        match event {
            Event::Ask { end, .. } | Event::Gone { end, .. } => Some(end),
            Event::Reached { stream } | Event::Rejected { stream } | Event::Verdict { stream } => {
                Some(self.streams[stream].connector)
            }
            Event::Proof { stream } => Some(1 - self.streams[stream].connector),
            Event::Reset { .. } | Event::FaultsEnd => None,
        }
    }

    fn act(&mut self, end: usize) {
        if self.ends[end].deaf_until_ns > self.now_ns {
            return;
        }
        while let Some(action) = self.ends[end]
            .machine
            .poll_action(&self.config, self.now_ns)
        {
            match action {
                Action::Connect {
                    attempt,
                    address,
                    incarnation,
                } => self.connect(end, attempt, address, incarnation),
                Action::Abandon(attempt) => {
                    if let Some(stream) = self.ends[end].attempts.remove(&attempt) {
                        self.break_stream(stream);
                    }
                }
                Action::GiveUp { for_ns, .. } => {
                    self.ends[end].given_up = Some((self.now_ns, for_ns))
                }
            }
        }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((at_ns, self.order, event)));
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn latency(&mut self) -> u64 {
        50_000 + self.below(MS)
    }

    fn way(&mut self) -> Way {
        match self.below(6) {
            0 => Way::Refuses,
            1 => Way::Swallows,
            2 => Way::Silent,
            _ => Way::Good,
        }
    }
}
