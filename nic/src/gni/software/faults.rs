//! Faults on demand, by rule and seed.
//!
//! The initiator executes the work of interfaces, so faults are its own: they strike what this
//! interface begins, wherever it goes.

use super::queue::{Ended, Ring};
use crate::gni::{EventData, NicAddress, Post};
use crate::steps::Steps;
use core::sync::atomic::{AtomicU64, Ordering};
use fastrand::Rng;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Weak;

/// Faults and their chances.
///
/// Chances are in millionths; all are drawn from the seed, so the same calls in the same order have
/// the same faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRules {
    /// Where chances begin.
    pub seed: u64,
    /// Chance that a post fails, with nothing carried, and may be tried again.
    pub transient: u32,
    /// Chance that a post fails for ever, with all or nothing carried.
    pub fatal: u32,
    /// Chance that an event that a peer gets is lost, as if its queue were full.
    pub overrun: u32,
    /// Chance that a short message finds no credit.
    pub no_credit: u32,
    /// Chance that the end of a post is reported late.
    pub late: u32,
    /// Chance that a post is carried late, so that others overtake it.
    pub reorder: u32,
    /// How many later calls *late* is at most.
    pub late_calls: u32,
    /// Chance that a datagram that is bound to a peer never gets there; one that is taken back and
    /// posted again may.
    pub lose_datagram: u32,
    /// The process kills itself at this step, counted from 1; 0: never.
    pub kill_at: u64,
    /// Whether steps are counted though no process is killed.
    pub count_steps: bool,
}

/// What happens to a post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lot {
    Nothing,
    Transient,
    Fatal {
        carried: bool,
    },
    /// It is carried, and its end is reported late.
    Late,
    /// It is carried late.
    Overtaken,
}

/// A post that has not ended.
pub(super) struct Held {
    pub(super) ring: Weak<Ring>,
    pub(super) place: u32,
    pub(super) to: NicAddress,
    pub(super) data: EventData,
    pub(super) endpoint: u64,
    pub(super) posts: Vec<Post>,
    /// Whether it begins when all earlier ones of its endpoint have ended.
    pub(super) fence: bool,
    /// Its end, if it was carried or will never be.
    pub(super) ended: Option<Ended>,
    pub(super) due: u64,
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
            rules.transient,
            rules.fatal,
            rules.overrun,
            rules.no_credit,
            rules.late,
            rules.reorder,
            rules.lose_datagram,
        ];
        Self {
            rules,
            active: chances.iter().any(|chance| *chance != 0),
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
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    #[inline(always)]
    pub(super) fn loses_event(&self) -> bool {
        self.active && self.chance(self.rules.overrun)
    }

    #[inline(always)]
    pub(super) fn has_no_credit(&self) -> bool {
        self.active && self.chance(self.rules.no_credit)
    }

    pub(super) fn loses_datagram(&self) -> bool {
        self.chance(self.rules.lose_datagram)
    }

    /// What happens to the next post.
    pub(super) fn draw(&self) -> Lot {
        let rules = &self.rules;
        if self.chance(rules.transient) {
            Lot::Transient
        } else if self.chance(rules.fatal) {
            let carried = self.chance(500_000);
            Lot::Fatal { carried }
        } else if self.chance(rules.reorder) {
            Lot::Overtaken
        } else if self.chance(rules.late) {
            Lot::Late
        } else {
            Lot::Nothing
        }
    }

    /// Whether a post has to wait for earlier ones of its endpoint.
    pub(super) fn is_behind(&self, post: &Held) -> bool {
        let held = self.held.lock();
        post.fence && held.iter().any(|held| held.endpoint == post.endpoint)
    }

    /// Keeps a post until [`release`](Self::release) gives it back: with the next call, or late.
    pub(super) fn hold(&self, mut post: Held, late: bool) {
        let now = self.calls.load(Ordering::Relaxed);
        post.due = now;
        if late {
            let most = u64::from(self.rules.late_calls.max(1));
            post.due = now.saturating_add(self.random.lock().u64(1..=most));
        }
        self.held.lock().push_back(post);
    }

    /// A call, by which time passes.
    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The next post that may go now.
    pub(super) fn release(&self) -> Option<Held> {
        let now = self.calls.load(Ordering::Relaxed);
        let mut held = self.held.lock();
        let ready = (0..held.len()).find(|n| {
            let Some(this) = held.get(*n) else {
                return false;
            };
            let mut before = held.iter().take(*n);
            let behind = this.fence && before.any(|before| before.endpoint == this.endpoint);
            this.due <= now && !behind
        })?;
        held.remove(ready)
    }
}
