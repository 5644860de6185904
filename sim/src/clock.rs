//! Virtual time: all events of a run, in one order for all ranks.

use crate::config::SimConfig;
use crate::fiber::Fiber;
use crate::wire::{FaultPlan, Later, Streams};
use core::fmt::{self, Write as _};
use core::hash::Hasher;
use parking_lot::Mutex;
use std::collections::BinaryHeap;
use std::hash::DefaultHasher;
use std::sync::Arc;

/// From an arrival to the waking of a rank that sleeps.
const WAKE_NS: u64 = 300;

/// Receives one line for each thing that happens.
pub type Trace = Box<dyn FnMut(fmt::Arguments<'_>) + Send>;

#[derive(Debug)]
enum What {
    Wire(Later),
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
    /// Sleeps until something comes for it or its time is over.
    parked: bool,
    /// Counts the rank's waits, so that old alarms are known.
    wait: u64,
}

/// The state that all ranks share.
pub(crate) struct State {
    pub(crate) now_ns: u64,
    heap: BinaryHeap<Event>,
    order: u64,
    nodes: Vec<Node>,
    pub(crate) plan: FaultPlan,
    streams: Streams,
    digest: DefaultHasher,
    pub(crate) events: u64,
    /// Ranks that slept until their time was over although something had come.
    pub(crate) overslept: Vec<u32>,
    trace: Option<Trace>,
    /// No rank runs beyond this time.
    pub(crate) horizon_ns: u64,
    /// Events, and times that a rank has used its processor, that are still allowed: a rank that
    /// never stops polling ends a run as one that never polls does.
    pub(crate) left: u64,
}

/// Outcome of a step.
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
    pub(crate) fn new(config: &SimConfig) -> Self {
        let SimConfig {
            ranks, seed, sizes, ..
        } = *config;
        let mut state = State {
            now_ns: 0,
            heap: BinaryHeap::new(),
            order: 0,
            nodes: (0..ranks).map(|_| Node::default()).collect(),
            plan: config.faults.clone(),
            streams: Streams::new(seed, ranks, &sizes),
            digest: DefaultHasher::new(),
            events: 0,
            overslept: Vec::new(),
            trace: None,
            horizon_ns: u64::MAX,
            left: u64::MAX,
        };
        for (rank, at_ns) in &config.faults.deaths {
            state.push(*at_ns, What::Wire(Later::Die(*rank)));
        }
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

    /// Sleeps until something comes for the rank or `until_ns` is reached; returns at once if
    /// something is there.
    pub(crate) fn park(&self, rank: u32, fiber: Option<&Fiber>, until_ns: Option<u64>) {
        let suspends = self.with(|state| {
            if fiber.is_none() {
                state.run_to_arrival(rank, until_ns);
                return false;
            }
            if state.streams.is_awake(rank) {
                return false;
            }
            let node = &mut state.nodes[rank as usize];
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

    /// Lets a rank go on at a time, even if it waits for something else.
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
    fn note(&mut self, words: [u64; 2], line: fmt::Arguments<'_>) {
        self.events += 1;
        for word in words {
            self.digest.write_u64(word);
        }
        if let Some(trace) = &mut self.trace {
            trace(format_args!("{:>12} {line}", self.now_ns));
        }
    }

    /// Calls `f` with all connections, and carries out its consequences.
    pub(crate) fn wire<R>(&mut self, f: impl FnOnce(&mut Streams, &FaultPlan, u64) -> R) -> R {
        let result = f(&mut self.streams, &self.plan, self.now_ns);
        let (later, woken) = self.streams.take_news();
        for (at_ns, what) in later {
            self.push(at_ns, What::Wire(what));
        }
        for rank in woken {
            self.wake(rank);
        }
        result
    }

    /// Does the next event, if it comes before `limit_ns`.
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
            What::Wire(what) => {
                if let Later::Arrive(_, bytes) = &what {
                    self.digest.write(bytes);
                }
                // Hashing cannot fail.
                let _ = write!(Text(&mut self.digest), "{what}");
                self.note([self.now_ns, 1], format_args!("{what}"));
                self.wire(|streams, plan, now_ns| streams.happen(plan, now_ns, what));
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
                let overslept = node.parked && self.streams.has_ready(rank);
                node.parked = false;
                if overslept {
                    self.overslept.push(rank);
                }
                let words = [self.now_ns, u64::from(rank) << 1];
                self.note(words, format_args!("rank {rank} runs"));
                Step::Run(rank)
            }
        }
    }

    /// Everything up to a time, without ranks that run by themselves.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while !matches!(self.step(until_ns), Step::Nothing) {}
        self.now_ns = self.now_ns.max(until_ns);
    }

    fn run_to_arrival(&mut self, rank: u32, until_ns: Option<u64>) {
        let limit_ns = until_ns.unwrap_or(u64::MAX);
        while !self.streams.is_awake(rank) {
            if matches!(self.step(limit_ns), Step::Nothing) {
                self.now_ns = self.now_ns.max(until_ns.unwrap_or(0));
                return;
            }
        }
    }

    /// Time goes on until some rank has something to poll for; false if that never comes.
    pub(crate) fn run_to_work(&mut self) -> bool {
        let ranks = 0..self.nodes.len() as u32;
        while !ranks.clone().any(|rank| self.streams.is_awake(rank)) {
            if matches!(self.step(u64::MAX), Step::Nothing) {
                return false;
            }
        }
        true
    }

    /// Connections that were made, and those that broke.
    pub(crate) fn connections(&self) -> (u64, u64) {
        (self.streams.made, self.streams.broken)
    }

    /// Whether two ranks have ever tried to connect.
    pub(crate) fn knows(&self, rank: u32, peer: u32) -> bool {
        self.streams.knows(rank, peer)
    }
}

/// Text that becomes a part of a digest.
struct Text<'a>(&'a mut DefaultHasher);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A rank's place in its cluster.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) clock: Arc<Clock>,
    pub(crate) rank: u32,
    /// Where the rank's code is suspended; `None` where the caller drives the cluster.
    pub(crate) fiber: Option<Arc<Fiber>>,
}

impl Place {
    /// Calls `f` with all connections, the plan of faults, and the time.
    pub(crate) fn wire<R>(&self, f: impl FnOnce(&mut Streams, &FaultPlan, u64) -> R) -> R {
        self.clock.with(|state| state.wire(f))
    }

    pub(crate) fn spend(&self, cost_ns: u64) {
        self.clock.spend(self.rank, self.fiber.as_deref(), cost_ns);
    }

    pub(crate) fn park(&self, until_ns: Option<u64>) {
        self.clock.park(self.rank, self.fiber.as_deref(), until_ns);
    }
}
