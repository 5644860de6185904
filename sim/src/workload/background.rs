//! Collective operations that go on while a rank does other things: split barriers, broadcasts,
//! exchanges, reductions, and the barrier with names.
//!
//! All ranks draw the same, and begin each and look for its end when they like.
#![allow(unsafe_code)]

use super::memory;
use super::observed::Observed;
use crate::job::{Rank, Simulated};
use crate::random::Random;
use argonet_base::JobRank;
use argonet_engine::{Call, DataType, Folding, Kind, Name, Operation, Verdict, fold};
use argonet_event::Event;
use core::time::Duration;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Operations of a rank that are under way at once, at most: it has handles for other things, too.
const AT_ONCE: usize = 8;

/// Numbers of these operations, so that their bytes are no other operation's.
const OF_COLLECTIVES: u32 = 1 << 30;

#[derive(Clone, Copy)]
enum Planned {
    Barrier,
    Broadcast {
        root: u32,
        len: usize,
    },
    /// A block for each rank from each.
    Exchange {
        len: usize,
    },
    /// Sums of numbers.
    ReduceAll {
        count: usize,
    },
}

/// Operations that all ranks begin in a phase.
struct Plan {
    operations: VecDeque<Planned>,
    /// The name that each rank gives the phase's barrier, if there is one.
    names: Option<Vec<Name>>,
}

impl Plan {
    fn draw(seed: u64, phase: u32, ranks: u32) -> Self {
        let mut random = Random::fork(seed, 600 + u64::from(phase));
        let count = random.range(0, 12);
        let operations = (0..count).map(|_| {
            if random.chance(500_000) {
                return Planned::Barrier;
            }
            let root = random.index(ranks as usize) as u32;
            let most = random.pick(&[0, 100, 5000, 100_000]);
            let len = random.range(0, most) as usize;
            match random.range(0, 2) {
                0 => Planned::Exchange {
                    len: len / ranks as usize,
                },
                1 => Planned::ReduceAll { count: len / 8 },
                _ => Planned::Broadcast { root, len },
            }
        });
        let operations = operations.collect();
        let strange = random.pick(&[0, 0, 200_000]);
        let mut name = || {
            if random.chance(strange) {
                return random.pick(&[Name::Mismatch, Name::Id(-1)]);
            }
            random.pick(&[Name::Anonymous, Name::Id(i32::MIN)])
        };
        let names: Vec<Name> = (0..ranks).map(|_| name()).collect();
        let names = random.chance(500_000).then_some(names);
        Self { operations, names }
    }
}

/// One that is under way.
struct Flight {
    event: Event,
    /// Which of all, counted from the first phase.
    number: u32,
    planned: Planned,
    /// The bytes that it brings.
    bytes: Box<[u8]>,
    /// Bytes that this rank gives, in other memory than the result.
    _source: Option<Box<[u8]>>,
}

/// Operations that a rank has begun and has still to begin.
pub(super) struct Background {
    random: Random,
    seed: u64,
    plan: Plan,
    flights: Vec<Flight>,
    started: u32,
    /// Whether the phase's barrier with names has been entered.
    notified: bool,
    observed: Arc<Mutex<Observed>>,
}

impl Background {
    pub(super) fn new(seed: u64, me: u32, observed: Arc<Mutex<Observed>>) -> Self {
        Self {
            random: Random::fork(seed, 2000 + u64::from(me)),
            seed,
            plan: Plan {
                operations: VecDeque::new(),
                names: None,
            },
            flights: Vec::new(),
            started: 0,
            notified: false,
            observed,
        }
    }

    /// A phase begins; all of the one before has been finished.
    pub(super) fn begin_phase(&mut self, phase: u32, ranks: u32) {
        self.plan = Plan::draw(self.seed, phase, ranks);
    }

    /// Between two operations: begins something, looks for the end of something, or does nothing.
    pub(super) fn step<C: Simulated>(&mut self, rank: &Rank<C>) -> Result<(), String> {
        match self.random.range(0, 9) {
            0 | 1 => self.start(rank),
            2 => self.retire(rank),
            3 => self.named(rank),
            _ => Ok(()),
        }
    }

    /// Begins the remaining operations, and waits for the end of all.
    pub(super) fn finish<C: Simulated>(&mut self, rank: &Rank<C>) -> Result<(), String> {
        while !self.plan.operations.is_empty() || !self.flights.is_empty() {
            if self.random.chance(600_000) {
                self.start(rank)?;
            } else {
                self.retire(rank)?;
            }
            rest(rank);
        }
        while self.plan.names.is_some() {
            self.named(rank)?;
            rest(rank);
        }
        Ok(())
    }

    fn start<C: Simulated>(&mut self, rank: &Rank<C>) -> Result<(), String> {
        if self.flights.len() == AT_ONCE {
            return Ok(());
        }
        let Some(planned) = self.plan.operations.pop_front() else {
            return Ok(());
        };
        let number = self.started;
        self.started += 1;
        self.observed.lock().enters(number);
        let (engine, ctx) = (&rank.engine, &rank.ctx);
        let (mut bytes, mut source) = (Box::default(), None);
        let event = match planned {
            Planned::Barrier => engine.barrier_start(ctx),
            Planned::Broadcast { root, len } => {
                bytes = vec![0xee; len].into_boxed_slice();
                let dst = bytes.as_mut_ptr();
                let mut src = dst.cast_const();
                if engine.rank().0 == root {
                    let content = numbered(root, root, number, len);
                    if self.random.chance(500_000) {
                        bytes.copy_from_slice(&content);
                    } else {
                        src = source.insert(content.into_boxed_slice()).as_ptr();
                    }
                }
                // SAFETY: both buffers are kept until the event is complete; boxes can be moved.
                unsafe { engine.broadcast_start(ctx, JobRank(root), dst, src, len) }
            }
            Planned::Exchange { len } => {
                let me = engine.rank().0;
                let blocks = (0..engine.size()).flat_map(|to| numbered(me, to, number, len));
                let src = source.insert(blocks.collect::<Box<[u8]>>()).as_ptr();
                bytes = vec![0xee; len * engine.size() as usize].into_boxed_slice();
                let call = call(Kind::Exchange, len, src, bytes.as_mut_ptr());
                // SAFETY: as above.
                unsafe { engine.collective_start(ctx, engine.world_team(), call) }
            }
            Planned::ReduceAll { count } => {
                bytes = numbered(engine.rank().0, 0, number, count * 8).into_boxed_slice();
                let dst = bytes.as_mut_ptr();
                let call = Call {
                    unit: 8,
                    folding: Some(Folding::built_in(Operation::Add, DataType::U64)),
                    ..call(Kind::ReduceAll, count, dst, dst)
                };
                // SAFETY: as above; source and target are the same.
                unsafe { engine.collective_start(ctx, engine.world_team(), call) }
            }
        };
        self.flights.push(Flight {
            event: event.map_err(text)?,
            number,
            planned,
            bytes,
            _source: source,
        });
        Ok(())
    }

    /// Looks at any one, or waits for it.
    fn retire<C: Simulated>(&mut self, rank: &Rank<C>) -> Result<(), String> {
        if self.flights.is_empty() {
            return Ok(());
        }
        let at = self.random.index(self.flights.len());
        let event = self.flights[at].event;
        // Others may begin the operation that this rank waits for only after this rank has begun
        // another.
        if self.plan.operations.is_empty() && self.random.chance(500_000) {
            rank.engine.wait(&rank.ctx, event).map_err(text)?;
        } else if !rank.engine.test(&rank.ctx, event).map_err(text)? {
            return Ok(());
        }
        let flight = self.flights.swap_remove(at);
        let number = flight.number;
        let (me, ranks) = (rank.engine.rank().0, rank.engine.size());
        let brings = |content: Vec<u8>, what: &str| {
            (*flight.bytes == *content)
                .then_some(())
                .ok_or_else(|| format!("{what} {number} brings something else"))
        };
        match flight.planned {
            Planned::Barrier => {
                let entered = self.observed.lock().entered_in_background(number);
                (entered == rank.engine.size())
                    .then_some(())
                    .ok_or_else(|| format!("barrier {number} ends when {entered} have entered"))
            }
            Planned::Broadcast { root, len } => {
                brings(numbered(root, root, number, len), "broadcast")
            }
            Planned::Exchange { len } => {
                let blocks = (0..ranks).flat_map(|from| numbered(from, me, number, len));
                brings(blocks.collect(), "exchange")
            }
            Planned::ReduceAll { count } => {
                let mut sum = numbered(0, 0, number, count * 8);
                for from in 1..ranks {
                    let other = numbered(from, 0, number, count * 8);
                    fold(Operation::Add, DataType::U64, &mut sum, &other);
                }
                brings(sum, "reduce-to-all")
            }
        }
    }

    /// Enters the barrier with names, or tries to leave it.
    fn named<C: Simulated>(&mut self, rank: &Rank<C>) -> Result<(), String> {
        let Some(names) = &self.plan.names else {
            return Ok(());
        };
        let name = names[rank.engine.rank().0 as usize];
        let (engine, ctx) = (&rank.engine, &rank.ctx);
        if !self.notified {
            engine.named_notify(ctx, name).map_err(text)?;
            self.notified = true;
            return Ok(());
        }
        let verdict = if self.plan.operations.is_empty() && self.random.chance(500_000) {
            Some(engine.named_wait(ctx, name).map_err(text)?)
        } else {
            engine.named_try(ctx, name).map_err(text)?
        };
        let Some(verdict) = verdict else {
            return Ok(());
        };
        let given = |name| names.contains(&name);
        let differ = given(Name::Id(-1)) && given(Name::Id(i32::MIN));
        let matches = !given(Name::Mismatch) && !differ;
        if (verdict == Verdict::Match) != matches {
            return Err(format!("{verdict:?} of a barrier with {names:?}"));
        }
        self.plan.names = None;
        self.notified = false;
        Ok(())
    }
}

/// Bytes that a rank gives to another in an operation of its own number.
fn numbered(from: u32, to: u32, number: u32, len: usize) -> Vec<u8> {
    memory::bytes(from, to, OF_COLLECTIVES | number, len)
}

fn call(kind: Kind, count: usize, src: *const u8, dst: *mut u8) -> Call {
    Call {
        count,
        src,
        dst,
        ..Call::of(kind)
    }
}

/// A moment between two looks.
fn rest<C: Simulated>(rank: &Rank<C>) {
    let conduit = rank.engine.conduit();
    conduit.sleep(Some(Duration::from_micros(20)), conduit.epoch());
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
