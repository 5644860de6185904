//! Faults on demand, by rule and seed.
//!
//! The initiator executes the work of interfaces, so faults are its own: they strike the operations
//! that this rank begins, wherever they go.

use super::operate::Operation;
use crate::steps::Steps;
use core::sync::atomic::{AtomicU64, Ordering};
use fastrand::Rng;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Faults and their chances.
///
/// Chances are in millionths; all are drawn from the seed, so the same calls in the same order have
/// the same faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRules {
    /// Where chances begin.
    pub seed: u64,
    /// Chance that an operation, and all to the same target behind it, comes late.
    pub delay: u32,
    /// Chance that an operation, and all to the same portal of the same target behind it, comes
    /// late, so that others overtake it.
    pub reorder: u32,
    /// Chance that a target is slow to answer: acknowledgement, reply and end of an operation come
    /// late.
    pub slow_target: u32,
    /// How many later calls *late* is at most.
    pub late_calls: u32,
    /// Chance that an event finds its queue full.
    pub queue_full: u32,
    /// Chance that nothing matches a message.
    pub no_match: u32,
    /// The process kills itself at this step, counted from 1; 0: never.
    pub kill_at: u64,
    /// Whether steps are counted though no process is killed.
    pub count_steps: bool,
}

/// Most operations that are held back; with more, the next is not.
const MOST_HELD: usize = 1024;

/// Operations that wait for one that is held back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Behind {
    /// All to the same target.
    Target,
    /// All to the same portal of the same target.
    Portal,
    /// None: it was carried, and is reported late.
    Nothing,
}

/// An operation that is held back.
pub(super) struct Held {
    pub(super) operation: Operation,
    /// Its outcome, if it was carried.
    pub(super) arrival: Option<super::deliver::Arrival>,
    due: u64,
    behind: Behind,
}

impl Held {
    fn blocks(&self, operation: &Operation) -> bool {
        self.operation.place == operation.place
            && match self.behind {
                Behind::Target => true,
                Behind::Portal => self.operation.message.portal == operation.message.portal,
                Behind::Nothing => false,
            }
    }
}

pub(super) struct Faults {
    rules: FaultRules,
    /// Whether any chance is not 0.
    active: bool,
    steps: Steps,
    random: Mutex<Rng>,
    calls: AtomicU64,
    held: Mutex<VecDeque<Held>>,
}

impl Faults {
    pub(super) fn new(rules: FaultRules) -> Self {
        let chances = [
            rules.delay,
            rules.reorder,
            rules.slow_target,
            rules.queue_full,
            rules.no_match,
        ];
        Self {
            rules,
            active: chances.iter().any(|c| *c != 0),
            steps: Steps::new(rules.kill_at, rules.count_steps),
            random: Mutex::new(Rng::with_seed(rules.seed)),
            calls: AtomicU64::new(0),
            held: Mutex::new(VecDeque::new()),
        }
    }

    /// Steps so far, if they count.
    pub(super) fn steps(&self) -> u64 {
        self.steps.count()
    }

    #[inline(always)]
    pub(super) fn step(&self) {
        self.steps.step();
    }

    fn chance(&self, per_million: u32) -> bool {
        per_million != 0 && self.random.lock().u32(..1_000_000) < per_million
    }

    #[inline(always)]
    pub(super) fn queue_is_full(&self) -> bool {
        self.active && self.chance(self.rules.queue_full)
    }

    #[inline(always)]
    pub(super) fn nothing_matches(&self) -> bool {
        self.active && self.chance(self.rules.no_match)
    }

    /// Whether operations must go through the ordinary search, where they may find nothing.
    #[inline(always)]
    pub(super) fn nothing_may_match(&self) -> bool {
        self.active && self.rules.no_match != 0
    }

    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    fn due(&self) -> u64 {
        let most = u64::from(self.rules.late_calls.max(1));
        let late = self.random.lock().u64(1..=most);
        self.calls.load(Ordering::Relaxed).saturating_add(late)
    }

    /// Holds an operation back, by chance or since one is held back that it must not overtake.
    ///
    /// Gives it back if it may go.
    pub(super) fn hold(&self, operation: Operation) -> Option<Operation> {
        let mut held = self.held.lock();
        let blocked = held.iter().any(|h| h.blocks(&operation));
        if !blocked && held.len() >= MOST_HELD {
            return Some(operation);
        }
        let behind = if self.chance(self.rules.delay) {
            Behind::Target
        } else if blocked || self.chance(self.rules.reorder) {
            Behind::Portal
        } else {
            return Some(operation);
        };
        let due = self.due();
        held.push_back(Held {
            operation,
            arrival: None,
            due,
            behind,
        });
        None
    }

    /// Whether the answer to an operation comes late; it is kept then.
    pub(super) fn hold_answer(
        &self,
        operation: Operation,
        arrival: super::deliver::Arrival,
    ) -> Option<Operation> {
        let mut held = self.held.lock();
        if held.len() >= MOST_HELD || !self.chance(self.rules.slow_target) {
            return Some(operation);
        }
        let due = self.due();
        held.push_back(Held {
            operation,
            arrival: Some(arrival),
            due,
            behind: Behind::Nothing,
        });
        None
    }

    /// A call: the next operation that is held back and may go now.
    pub(super) fn release(&self, new_call: bool) -> Option<Held> {
        if new_call {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let now = self.calls.load(Ordering::Relaxed);
        let mut held = self.held.lock();
        let ready = (0..held.len()).find(|n| {
            let Some(this) = held.get(*n) else {
                return false;
            };
            let free = this.arrival.is_some()
                || held
                    .iter()
                    .take(*n)
                    .all(|before| !before.blocks(&this.operation));
            this.due <= now && free
        })?;
        held.remove(ready)
    }
}
