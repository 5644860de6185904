//! Virtual time: what happens next, in one order for everybody.

use crate::fiber::Fiber;
use crate::wire::{FaultPlan, Net};
use core::fmt;
use core::hash::Hasher;
use parking_lot::Mutex;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::DefaultHasher;
use std::sync::Arc;

/// From a frame's arrival to the waking of a rank that sleeps.
const WAKE_NS: u64 = 300;

/// Receives one line for each thing that happens.
pub type Trace = Box<dyn FnMut(fmt::Arguments<'_>) + Send>;

#[derive(Debug)]
enum What {
    Frame {
        from: u32,
        to: u32,
        bytes: Vec<u8>,
    },
    /// Valid as long as the rank waits for the same thing.
    Wake {
        rank: u32,
        wait: u64,
    },
}

#[derive(Debug)]
struct Event {
    at_ns: u64,
    /// Events of the same time happen in the order in which they were made.
    order: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    /// The earliest is the greatest, as a heap gives that first.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

/// One rank as the cluster sees it.
#[derive(Debug, Default)]
struct Node {
    /// Frames that have arrived.
    nic: VecDeque<Vec<u8>>,
    /// Sleeps until a frame arrives or its time comes.
    parked: bool,
    /// Counts what the rank has waited for, so that old alarms are known.
    wait: u64,
    /// When its links need a poll.
    timer_ns: Option<u64>,
    overflows: u64,
}

/// The state that all ranks share.
pub(crate) struct State {
    pub(crate) now_ns: u64,
    heap: BinaryHeap<Event>,
    order: u64,
    nodes: Vec<Node>,
    pub(crate) plan: FaultPlan,
    net: Net,
    digest: DefaultHasher,
    pub(crate) events: u64,
    /// Ranks that slept until their time was over although a frame had arrived.
    pub(crate) overslept: Vec<u32>,
    trace: Option<Trace>,
    nic_frames: usize,
    /// No rank runs beyond this time.
    pub(crate) horizon_ns: u64,
    /// Events, and times that a rank has used its processor, that are still allowed: a rank that never
    /// stops polling ends a run as one that never polls does.
    pub(crate) left: u64,
}

/// What happened in a step.
pub(crate) enum Step {
    /// This rank goes on.
    Run(u32),
    /// Something that no rank sees at once.
    Other,
    /// Nothing will ever happen, or not before the horizon.
    Nothing,
}

/// The clock and the wires of a cluster.
pub(crate) struct Clock {
    state: Mutex<State>,
}

impl Clock {
    pub(crate) fn new(seed: u64, ranks: u32, plan: FaultPlan, nic_frames: usize) -> Self {
        let state = State {
            now_ns: 0,
            heap: BinaryHeap::new(),
            order: 0,
            nodes: (0..ranks).map(|_| Node::default()).collect(),
            plan,
            net: Net::new(seed, ranks),
            digest: DefaultHasher::new(),
            events: 0,
            overslept: Vec::new(),
            trace: None,
            nic_frames,
            horizon_ns: u64::MAX,
            left: u64::MAX,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.state.lock().now_ns
    }

    pub(crate) fn set_trace(&self, trace: Trace) {
        self.state.lock().trace = Some(trace);
    }

    /// A number that is the same for the same course of events.
    pub(crate) fn digest(&self) -> u64 {
        self.state.lock().digest.finish()
    }

    /// Uses processor time of a rank.
    pub(crate) fn spend(&self, rank: u32, fiber: Option<&Fiber>, cost_ns: u64) {
        let suspends = self.with(|state| {
            let until_ns = state.now_ns + cost_ns * state.plan.factor(rank);
            let Some(_) = fiber else {
                state.run_until(until_ns);
                return false;
            };
            state.left = state.left.saturating_sub(1);
            let disturbed =
                state.left == 0 || state.heap.peek().is_some_and(|e| e.at_ns <= until_ns);
            if disturbed || until_ns >= state.horizon_ns || state.is_stopped(rank) {
                state.alarm(rank, until_ns);
                return true;
            }
            state.now_ns = until_ns;
            false
        });
        if let Some(fiber) = fiber
            && suspends
        {
            fiber.suspend();
        }
    }

    /// Sleeps until a frame arrives or `until_ns` is reached; returns at once if a frame is there.
    pub(crate) fn park(&self, rank: u32, fiber: Option<&Fiber>, until_ns: Option<u64>) {
        let suspends = self.with(|state| {
            if fiber.is_none() {
                state.run_to_frame(rank, until_ns);
                return false;
            }
            let node = &mut state.nodes[rank as usize];
            if !node.nic.is_empty() {
                return false;
            }
            node.parked = true;
            node.wait += 1;
            if let Some(at_ns) = until_ns {
                let wait = node.wait;
                let at_ns = at_ns.max(state.now_ns);
                state.push(at_ns, What::Wake { rank, wait });
            }
            true
        });
        if let Some(fiber) = fiber
            && suspends
        {
            fiber.suspend();
        }
    }

    /// Wakes a rank that sleeps.
    pub(crate) fn wake(&self, rank: u32) {
        self.with(|state| state.wake(rank));
    }
}

impl State {
    fn push(&mut self, at_ns: u64, what: What) {
        let order = self.order;
        self.order += 1;
        self.heap.push(Event { at_ns, order, what });
    }

    /// Lets a rank go on at a time, whatever it waited for.
    pub(crate) fn alarm(&mut self, rank: u32, at_ns: u64) {
        let node = &mut self.nodes[rank as usize];
        node.parked = false;
        node.wait += 1;
        let wait = node.wait;
        self.push(at_ns, What::Wake { rank, wait });
    }

    fn wake(&mut self, rank: u32) {
        if self.nodes[rank as usize].parked {
            self.alarm(rank, self.now_ns + WAKE_NS);
        }
    }

    /// Whether the rank is paused or dead now.
    fn is_stopped(&self, rank: u32) -> bool {
        self.plan.is_dead(rank, self.now_ns) || self.plan.runs_at(rank, self.now_ns) > self.now_ns
    }

    /// Notes something for the digest and the trace.
    fn note(&mut self, words: [u64; 4], line: fmt::Arguments<'_>) {
        self.events += 1;
        for word in words {
            self.digest.write_u64(word);
        }
        if let Some(trace) = &mut self.trace {
            trace(format_args!("{:>12} {line}", self.now_ns));
        }
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, from: u32, to: u32, frame: &[u8]) {
        if self.plan.is_dead(from, self.now_ns) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(frame);
        let words = [
            u64::from(from) << 32 | u64::from(to),
            self.now_ns,
            1,
            hasher.finish(),
        ];
        self.note(
            words,
            format_args!("send {from} -> {to}, {} bytes{}", frame.len(), Told(frame)),
        );
        let arrivals = self.net.send(&self.plan, self.now_ns, from, to, frame);
        for (at_ns, bytes) in arrivals.into_iter().flatten() {
            self.push(at_ns, What::Frame { from, to, bytes });
        }
    }

    /// Does what comes next, if it comes before `limit_ns`.
    pub(crate) fn step(&mut self, limit_ns: u64) -> Step {
        let Some(event) = self.heap.peek() else {
            return Step::Nothing;
        };
        if event.at_ns > limit_ns || self.left == 0 {
            return Step::Nothing;
        }
        self.left -= 1;
        let Some(event) = self.heap.pop() else {
            return Step::Nothing;
        };
        self.now_ns = self.now_ns.max(event.at_ns);
        match event.what {
            What::Frame { from, to, bytes } => {
                self.arrive(from, to, bytes);
                Step::Other
            }
            What::Wake { rank, wait } => {
                if self.nodes[rank as usize].wait != wait || self.plan.is_dead(rank, self.now_ns) {
                    return Step::Other;
                }
                let at_ns = self.plan.runs_at(rank, self.now_ns);
                if at_ns > self.now_ns {
                    self.push(at_ns, What::Wake { rank, wait });
                    return Step::Other;
                }
                let node = &mut self.nodes[rank as usize];
                let overslept = node.parked && !node.nic.is_empty();
                node.parked = false;
                if overslept {
                    self.overslept.push(rank);
                }
                self.note(
                    [rank.into(), self.now_ns, 2, 0],
                    format_args!("rank {rank} runs"),
                );
                Step::Run(rank)
            }
        }
    }

    fn arrive(&mut self, from: u32, to: u32, bytes: Vec<u8>) {
        if self.plan.is_dead(to, self.now_ns) {
            return;
        }
        let room = self.nic_frames;
        let node = &mut self.nodes[to as usize];
        let taken = node.nic.len() < room;
        if taken {
            node.nic.push_back(bytes);
        } else {
            node.overflows += 1;
        }
        let words = [
            u64::from(from) << 32 | u64::from(to),
            self.now_ns,
            3,
            taken.into(),
        ];
        let fate = if taken { "arrives" } else { "finds no room" };
        self.note(words, format_args!("frame {from} -> {to} {fate}"));
        self.wake(to);
    }

    /// Everything up to a time, without ranks that run by themselves.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while !matches!(self.step(until_ns), Step::Nothing) {}
        self.now_ns = self.now_ns.max(until_ns);
    }

    fn run_to_frame(&mut self, rank: u32, until_ns: Option<u64>) {
        let limit_ns = until_ns.unwrap_or(u64::MAX);
        while self.nodes[rank as usize].nic.is_empty() {
            if matches!(self.step(limit_ns), Step::Nothing) {
                self.now_ns = self.now_ns.max(until_ns.unwrap_or(0));
                return;
            }
        }
    }

    /// Time goes on until some rank has something to poll for; false if that never comes.
    pub(crate) fn run_to_work(&mut self) -> bool {
        loop {
            let is_due = |node: &Node| {
                !node.nic.is_empty() || node.timer_ns.is_some_and(|at| at <= self.now_ns)
            };
            if self.nodes.iter().any(is_due) {
                return true;
            }
            let timer_ns = self.nodes.iter().filter_map(|node| node.timer_ns).min();
            if matches!(self.step(timer_ns.unwrap_or(u64::MAX)), Step::Nothing) {
                let Some(at_ns) = timer_ns else {
                    return false;
                };
                self.now_ns = self.now_ns.max(at_ns);
            }
        }
    }

    /// Takes a frame that has arrived at a rank.
    pub(crate) fn receive(&mut self, rank: u32) -> Option<Vec<u8>> {
        self.nodes[rank as usize].nic.pop_front()
    }

    pub(crate) fn has_frames(&self, rank: u32) -> bool {
        !self.nodes[rank as usize].nic.is_empty()
    }

    /// When a rank's links need a poll.
    pub(crate) fn set_timer(&mut self, rank: u32, timer_ns: Option<u64>) {
        self.nodes[rank as usize].timer_ns = timer_ns;
    }

    /// Frames that a rank has lost because it did not poll.
    pub(crate) fn overflows(&self, rank: u32) -> u64 {
        self.nodes[rank as usize].overflows
    }
}

/// What a trace says of a frame; read only when a trace is written.
struct Told<'a>(&'a [u8]);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match crate::link::parse(self.0) {
            Ok((header, _)) => {
                let class = header.address.class;
                let (flags, seq, ack) = (header.flags, header.seq, header.ack);
                let (sack, window) = (header.sack, header.window);
                write!(
                    f,
                    ", class {class} flags {flags:x} seq {seq} ack {ack} sack {sack:x} window {window}"
                )
            }
            Err(error) => write!(f, ", {error}"),
        }
    }
}

/// What a rank needs of its cluster.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) clock: Arc<Clock>,
    pub(crate) rank: u32,
    /// Where the rank's code is suspended; `None` where whoever calls drives the cluster.
    pub(crate) fiber: Option<Arc<Fiber>>,
}

impl Place {
    pub(crate) fn spend(&self, cost_ns: u64) {
        self.clock.spend(self.rank, self.fiber.as_deref(), cost_ns);
    }

    pub(crate) fn park(&self, until_ns: Option<u64>) {
        self.clock.park(self.rank, self.fiber.as_deref(), until_ns);
    }
}
