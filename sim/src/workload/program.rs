//! The program of one rank.
#![allow(unsafe_code)]

use super::background::Background;
use super::memory::{self, LONG_SLOTS, Layout, PUT_SLOTS};
use super::observed::{Answer, Entry, FIXED_ARGS, Observed, REQUEST, check_memory};
use super::shape::Shape;
use crate::job::{Rank, Simulated};
use crate::random::Random;
use argonet_am::{AmError, Category, MAX_ARGS, Message, MessageClass, Payload};
use argonet_base::{JobRank, SegmentOffset};
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::PrepareRequest;
use argonet_engine::{BarrierKind, Injection, Side, Signature, Target, Transfer, TreePass};
use argonet_event::{Category as Part, Event};
use argonet_segment::SharedBytes;
use core::time::Duration;
use parking_lot::Mutex;
use std::sync::Arc;

/// Operations of a rank that are outstanding at once, at most; less than it has handles.
const OUTSTANDING: usize = 12;

/// A put or get that is not complete.
struct Operation {
    /// `None` for an implicit one.
    event: Option<Event>,
    target: u32,
    slot: usize,
    /// Where in the target's segment, and in the model of the bytes that this rank has put there.
    offset: SegmentOffset,
    place: usize,
    /// Source or destination.
    buffer: Box<[u8]>,
    /// Bytes that a get must bring.
    expected: Option<Vec<u8>>,
}

pub(super) struct Program<'r, C: Simulated> {
    rank: &'r Rank<C>,
    me: u32,
    ranks: u32,
    shape: Shape,
    layout: Layout,
    random: Random,
    observed: Arc<Mutex<Observed>>,
    background: Background,
    explicit: Vec<Operation>,
    implicit: Vec<Operation>,
    /// Explicit and implicit operations use each slot of each target alone.
    busy: Vec<bool>,
    medium: usize,
    long: usize,
    fills: u32,
}

impl<'r, C: Simulated> Program<'r, C> {
    pub(super) fn new(rank: &'r Rank<C>, shape: &Shape, observed: Arc<Mutex<Observed>>) -> Self {
        let me = rank.engine.rank().0;
        let ranks = rank.engine.size();
        let layout = Layout::new(shape.area_bytes);
        let limits = rank.engine.conduit().limits();
        Self {
            rank,
            me,
            ranks,
            shape: shape.clone(),
            layout,
            random: Random::fork(shape.job.sim.seed, 1000 + u64::from(me)),
            background: Background::new(shape.job.sim.seed, me, Arc::clone(&observed)),
            observed,
            explicit: Vec::new(),
            implicit: Vec::new(),
            busy: vec![false; ranks as usize * PUT_SLOTS],
            medium: limits.medium_request.min(shape.medium_bytes),
            long: limits.long.min(layout.long_bytes()),
            fills: 0,
        }
    }

    pub(super) fn run(mut self) {
        let own = Arc::clone(self.rank.segment.directory());
        self.observed.lock().segments[self.me as usize] = Some(own);
        for phase in 0..self.shape.phases {
            if self.shape.background {
                self.background.begin_phase(phase, self.ranks);
            }
            for number in 0..self.shape.operations {
                self.rank
                    .doing(format_args!("phase {phase}, operation {number}"));
                self.operation();
                let stepped = self.background.step(self.rank);
                self.must(stepped);
            }
            self.rank
                .doing(format_args!("phase {phase}, waits for its operations"));
            self.complete_all();
            let finished = self.background.finish(self.rank);
            self.must(finished);
            self.rank.doing(format_args!("phase {phase}, meets"));
            self.collective(phase);
        }
        if self.random.chance(500_000) {
            self.rank.doing(format_args!("waits for its last replies"));
            let (observed, me) = (Arc::clone(&self.observed), self.me);
            self.wait(|| observed.lock().awaits(me) == 0);
        }
        self.rank.doing(format_args!("drains"));
        let drained = self.rank.engine.drain(&self.rank.ctx, BarrierKind::Drain);
        self.must(drained);
        self.observed.lock().drained(self.me);
        let mut segment = vec![0; self.rank.segment.len() as usize];
        self.local(0, &mut segment);
        check_memory(&mut self.observed.lock(), self.layout, self.me, &segment);
    }

    /// The operation must not fail, but where a rank dies: then the error ends the job, as in a
    /// program that returns it.
    fn must<T, E: core::fmt::Display>(&self, outcome: Result<T, E>) -> T {
        let error = match outcome {
            Ok(value) => return value,
            Err(error) => error,
        };
        let said = format!("an operation of rank {} is refused: {error}", self.me);
        let now_ns = self.rank.now().as_nanos();
        let deaths = &self.shape.job.sim.faults.deaths;
        if !deaths.iter().any(|(_, at_ns)| u128::from(*at_ns) <= now_ns) {
            panic!("{said}");
        }
        self.rank.engine.boot().abort(1, &said)
    }

    fn wait(&self, done: impl FnMut() -> bool) {
        let what = Waiting::new(WaitFor::Condition);
        self.must(self.rank.engine.wait_until(&self.rank.ctx, what, done));
    }

    /// Reads this rank's own segment.
    fn local(&self, offset: u64, out: &mut [u8]) {
        let bytes = self.rank.segment.bytes(SegmentOffset(offset), out.len());
        let bytes = self.must(bytes);
        self.must(bytes.copy_to(0, out));
    }

    fn operation(&mut self) {
        // Of itself, too.
        let to = self.random.index(self.ranks as usize) as u32;
        match self.random.range(0, 99) {
            0..30 => self.request(to),
            30..36 => {
                for _ in 0..self.random.range(5, 40) {
                    self.short(to);
                }
            }
            36..46 => self.negotiate(to),
            46..64 => self.begin(to, false),
            64..76 => self.begin(to, true),
            76..82 => self.complete_one(),
            82..87 => self.region(),
            87..91 => self.complete_implicit(),
            91..96 => {
                let time = Duration::from_nanos(self.random.around(100_000));
                self.rank.engine.conduit().compute(time);
            }
            _ => {
                for _ in 0..self.random.range(1, 5) {
                    self.must(self.rank.engine.poll(&self.rank.ctx));
                }
            }
        }
    }

    fn some_length(&mut self, most: usize) -> usize {
        let most = most as u64;
        match self.random.range(0, 4) {
            0 => 0,
            1 => most as usize,
            2 => self.random.range(0, most.min(100)) as usize,
            _ => self.random.range(0, most) as usize,
        }
    }

    fn short(&mut self, to: u32) {
        let entry = Entry {
            number: self.observed.lock().next(self.me, to),
            category: Category::Short,
            nargs: FIXED_ARGS,
            len: 0,
            offset: 0,
            reply: None,
        };
        self.send(to, entry);
    }

    /// A slot for a long whose last use is over, by request (`false`) or reply.
    fn long_slot(&mut self, to: u32, of_reply: bool) -> Option<u64> {
        let slot = self.random.index(LONG_SLOTS);
        let offset = match of_reply {
            // A reply lands in this rank's segment, in the replier's area.
            true => self.layout.reply(to, slot).0,
            false => self.layout.long(self.me, slot).0,
        };
        let used = |entry: &Entry| match of_reply {
            true => entry.reply.is_some_and(|answer| answer.offset == offset),
            false => entry.offset == offset,
        };
        (!self.observed.lock().awaits_any(self.me, to, used)).then_some(offset)
    }

    /// A request of some kind; its number is given when it is sent.
    fn draw(&mut self, to: u32) -> Entry {
        let mut entry = Entry {
            number: 0,
            category: Category::Short,
            nargs: self.random.range(FIXED_ARGS as u64, MAX_ARGS as u64) as usize,
            len: 0,
            offset: 0,
            reply: None,
        };
        let mut long = None;
        if self.random.chance(300_000) {
            long = self.long_slot(to, false);
        }
        if let Some(offset) = long {
            entry.category = Category::Long;
            entry.len = self.some_length(self.long);
            entry.offset = offset;
        } else if self.random.chance(600_000) {
            entry.category = Category::Medium;
            entry.len = self.some_length(self.medium);
        }
        // A long's slot is free again when its reply has come.
        if long.is_some() || self.random.chance(500_000) {
            let mut answer = Answer {
                category: Category::Short,
                len: 0,
                offset: 0,
            };
            let slot = if self.random.chance(300_000) {
                self.long_slot(to, true)
            } else {
                None
            };
            if let Some(offset) = slot {
                answer.category = Category::Long;
                answer.len = self.some_length(self.long);
                answer.offset = offset;
            } else if self.random.chance(600_000) {
                answer.category = Category::Medium;
                answer.len = self.some_length(self.medium);
            }
            entry.reply = Some(answer);
        }
        entry
    }

    fn request(&mut self, to: u32) {
        let entry = self.draw(to);
        self.send(to, entry);
    }

    /// Sends a request, noting it first; waiting for room or trying again and again.
    fn send(&mut self, to: u32, mut entry: Entry) {
        let immediate = self.random.chance(200_000);
        entry.number = self.observed.lock().next(self.me, to);
        let payload = memory::bytes(self.me, to, entry.number, entry.len);
        let bytes = SharedBytes::from_slice(&payload);
        let args = entry.args();
        let message = Message {
            handler: REQUEST,
            args: &args,
            payload: match entry.category {
                Category::Short => Payload::None,
                Category::Medium => Payload::Medium(bytes),
                Category::Long => Payload::Long(bytes, SegmentOffset(entry.offset)),
            },
        };
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        self.observed.lock().sends(self.me, to, entry);
        if !immediate {
            return self.must(engine.request(ctx, JobRank(to), &message, Injection::Blocking));
        }
        loop {
            match engine.request(ctx, JobRank(to), &message, Injection::Immediate) {
                Err(AmError::Full { .. }) => {
                    self.must(engine.poll(ctx));
                }
                outcome => return self.must(outcome),
            }
        }
    }

    /// A payload written in place, or given back.
    fn negotiate(&mut self, to: u32) {
        let mut entry = self.draw(to);
        if entry.category == Category::Short {
            entry.category = Category::Medium;
        }
        let long = entry.category == Category::Long;
        let most = if long { self.long } else { self.medium };
        let most = self.random.range(entry.len as u64, most as u64) as usize;
        let want = PrepareRequest {
            to: JobRank(to),
            class: MessageClass::Request,
            nargs: entry.nargs,
            least: entry.len,
            most,
            offset: long.then_some(SegmentOffset(entry.offset)),
        };
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        let mut prepared = self.must(engine.prepare(ctx, &want, Injection::Blocking));
        let capacity = prepared.capacity();
        assert!(
            capacity >= entry.len,
            "{capacity} bytes prepared for {}",
            entry.len
        );
        if self.random.chance(200_000) {
            return engine.cancel(ctx, prepared);
        }
        entry.number = self.observed.lock().next(self.me, to);
        let bytes = memory::bytes(self.me, to, entry.number, entry.len);
        // SAFETY: the conduit that prepared it is the engine's, which is there.
        let written = unsafe { prepared.buffer() }.copy_from(0, &bytes);
        self.must(written);
        self.observed.lock().sends(self.me, to, entry);
        self.must(engine.commit(ctx, prepared, REQUEST, &entry.args(), entry.len));
    }

    fn slot(&mut self, to: u32) -> Option<usize> {
        let slot = self.random.index(PUT_SLOTS);
        let busy = &mut self.busy[to as usize * PUT_SLOTS + slot];
        (!core::mem::replace(busy, true)).then_some(slot)
    }

    /// Starts a put or a get.
    fn begin(&mut self, to: u32, implicit: bool) {
        while self.explicit.len() + self.implicit.len() >= OUTSTANDING {
            if self.explicit.is_empty() {
                self.complete_implicit();
            } else {
                self.complete_one();
            }
        }
        let Some(slot) = self.slot(to) else {
            return;
        };
        let len = self.some_length(self.layout.put_bytes()).max(1);
        let at = self.random.range(0, (self.layout.put_bytes() - len) as u64);
        let offset = SegmentOffset(self.layout.put(self.me, slot).0 + at);
        let place = slot * self.layout.put_bytes() + at as usize;
        let is_put = self.random.chance(550_000);
        let mut observed = self.observed.lock();
        let pair = observed.pair(self.me, to);
        let model = &mut observed.model[pair][place..place + len];
        let (mut buffer, expected) = if is_put {
            self.fills += 1;
            let bytes = memory::bytes(self.me, to, self.fills, len);
            model.copy_from_slice(&bytes);
            (bytes.into_boxed_slice(), None)
        } else {
            (vec![0xee; len].into_boxed_slice(), Some(model.to_vec()))
        };
        drop(observed);
        let rank = JobRank(to);
        let transfer = if is_put {
            let src = buffer.as_ptr();
            Transfer {
                target: Target::Segment { rank, offset },
                side: Side::Put(src),
                len,
            }
        } else {
            let dst = buffer.as_mut_ptr();
            Transfer {
                target: Target::Segment { rank, offset },
                side: Side::Get(dst),
                len,
            }
        };
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        let event = if implicit {
            // SAFETY: the buffer is kept until the implicit operations are complete.
            self.must(unsafe { engine.start_implicit(ctx, transfer, Injection::Blocking) });
            None
        } else {
            // SAFETY: the buffer is kept until the event is complete.
            let event = self.must(unsafe { engine.start(ctx, transfer, Injection::Blocking) });
            if is_put && !event.is_done() && self.random.chance(400_000) {
                let local = self.must(engine.leaf(event, Part::Lc));
                self.must(engine.wait(ctx, local));
                // Locally complete: the source is the program's again.
                buffer.fill(0xdd);
            }
            Some(event)
        };
        let operation = Operation {
            event,
            target: to,
            slot,
            offset,
            place,
            buffer,
            expected,
        };
        if implicit {
            self.implicit.push(operation);
        } else {
            self.explicit.push(operation);
        }
    }

    /// An operation is complete.
    fn over(&mut self, operation: &Operation) {
        if let Some(expected) = &operation.expected {
            let (me, target, slot) = (self.me, operation.target, operation.slot);
            assert!(
                *operation.buffer == **expected,
                "rank {me} read something else from slot {slot} of rank {target} than it had written"
            );
        } else {
            let place = operation.place..operation.place + operation.buffer.len();
            let mut observed = self.observed.lock();
            observed.lies_there(self.me, operation.target, operation.offset, place);
        }
        self.busy[operation.target as usize * PUT_SLOTS + operation.slot] = false;
    }

    fn complete_one(&mut self) {
        if self.explicit.is_empty() {
            return;
        }
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        let mut operation = self
            .explicit
            .swap_remove(self.random.index(self.explicit.len()));
        if let Some(event) = operation.event.take() {
            if self.random.chance(500_000) {
                self.must(engine.wait(ctx, event));
            } else {
                while !self.must(engine.test(ctx, event)) {
                    let conduit = engine.conduit();
                    conduit.sleep(Some(Duration::from_micros(20)), conduit.epoch());
                }
            }
        }
        self.over(&operation);
    }

    fn complete_implicit(&mut self) {
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        if self.random.chance(300_000) {
            self.must(engine.wait_implicit(ctx, Part::Lc.mask()));
            for operation in self.implicit.iter_mut().filter(|o| o.expected.is_none()) {
                operation.buffer.fill(0xdd);
            }
        }
        self.must(engine.wait_implicit(ctx, argonet_event::CategoryMask::ALL));
        for operation in core::mem::take(&mut self.implicit) {
            self.over(&operation);
        }
    }

    /// Some implicit operations in an access region, with one event for all.
    fn region(&mut self) {
        self.complete_implicit();
        self.must(self.rank.engine.begin_region(&self.rank.ctx));
        // Others wait for no implicit operations inside a region.
        let room = OUTSTANDING - self.explicit.len().min(OUTSTANDING);
        for _ in 0..self.random.range(0, room as u64) {
            let to = self.random.index(self.ranks as usize) as u32;
            self.begin(to, true);
        }
        let event = self.must(self.rank.engine.end_region(&self.rank.ctx));
        self.must(self.rank.engine.wait(&self.rank.ctx, event));
        for operation in core::mem::take(&mut self.implicit) {
            self.over(&operation);
        }
    }

    fn complete_all(&mut self) {
        self.complete_implicit();
        if self.random.chance(500_000) {
            let mut events: Vec<Event> = self.explicit.iter().filter_map(|o| o.event).collect();
            self.must(self.rank.engine.wait_all(&self.rank.ctx, &mut events));
            for operation in core::mem::take(&mut self.explicit) {
                self.over(&operation);
            }
        }
        while !self.explicit.is_empty() {
            self.complete_one();
        }
    }

    /// All ranks meet in a collective operation, the same on all.
    fn collective(&mut self, phase: u32) {
        let mut common = Random::fork(self.shape.job.sim.seed, 500 + u64::from(phase));
        let root = common.index(self.ranks as usize) as u32;
        let kind = common.range(0, 3);
        let words = common.pick(&[1, 10, 3000]);
        {
            let mut observed = self.observed.lock();
            observed.entered[phase as usize] += 1;
        }
        let (engine, ctx) = (&self.rank.engine, &self.rank.ctx);
        if kind == 0 {
            self.must(engine.barrier(ctx, BarrierKind::Client));
        } else {
            let mut data: Vec<u8> = (0..words)
                .flat_map(|i| value(self.me, i).to_le_bytes())
                .collect();
            let fold = |mine: &mut [u8], theirs: &[u8]| {
                for (a, b) in mine.chunks_exact_mut(8).zip(theirs.chunks_exact(8)) {
                    let sum = word(a).wrapping_add(word(b));
                    a.copy_from_slice(&sum.to_le_bytes());
                }
            };
            let pass = TreePass {
                root: JobRank(root),
                fold: if kind == 1 { None } else { Some(&fold) },
                down: kind != 3,
                signature: Signature::default(),
            };
            self.must(engine.collective(ctx, &pass, &mut data, 8));
            let sum = |i| {
                (0..self.ranks)
                    .map(|rank| value(rank, i))
                    .fold(0, u64::wrapping_add)
            };
            for (i, bytes) in (0..).zip(data.chunks_exact(8)) {
                let expected = match kind {
                    1 => value(root, i),
                    2 => sum(i),
                    _ if self.me == root => sum(i),
                    _ => continue,
                };
                assert_eq!(
                    word(bytes),
                    expected,
                    "word {i} of a collective at rank {}",
                    self.me
                );
            }
        }
        let entered = self.observed.lock().entered[phase as usize];
        assert_eq!(
            entered, self.ranks,
            "rank {} left before all had come",
            self.me
        );
    }
}

fn value(rank: u32, i: u64) -> u64 {
    (u64::from(rank) + 1)
        .wrapping_mul(0x1234_5678_9abc_def1)
        .wrapping_add(i)
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}
