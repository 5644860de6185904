//! Polls, and waiting for them to find something.

use super::core::Portals;
use crate::conduit::{Completion, OpToken, Sink};
use argonet_am::{AmError, Delivery};
use argonet_base::cpu::{SHORT_PAUSE_TICKS, ticks};
use argonet_nic::portals::{NicError, Portals as Interface, Queue};
use core::sync::atomic::Ordering;
use core::time::Duration;

/// Events of one queue that a poll takes where its limit is none.
const MOST_EVENTS: usize = 4096;

/// Ticks between two tries to send something again while a rank polls: some 20 microseconds.
const TRY_TICKS: u64 = 160 * SHORT_PAUSE_TICKS;

/// Between two tries while it sleeps.
const RETRY: Duration = Duration::from_millis(1);

/// Doublings of the time between two tries in vain where each is dear: up to some 20 milliseconds.
const MOST_DOUBLINGS: u32 = 10;

/// A sink, and how much it was given.
struct Given<'s, S: ?Sized> {
    sink: &'s mut S,
    count: usize,
}

impl<S: Sink + ?Sized> Sink for Given<'_, S> {
    #[inline]
    fn deliver(&mut self, delivery: &mut Delivery<'_>) {
        self.count += 1;
        self.sink.deliver(delivery);
    }

    fn completed(&mut self, op: OpToken, completion: Completion) {
        self.count += 1;
        self.sink.completed(op, completion);
    }

    fn completed_all(&mut self, op: OpToken, completion: Completion, count: u32) {
        self.count += 1;
        self.sink.completed_all(op, completion, count);
    }

    fn on_error(&mut self, error: AmError) {
        self.sink.on_error(error);
    }
}

impl<N: Interface + Send + Sync> Portals<N> {
    /// Whether another event may be taken.
    #[inline]
    pub(super) fn goes_on(&self, limit: u32, taken: usize) -> bool {
        let limit = match limit {
            0 => MOST_EVENTS,
            limit => limit as usize,
        };
        taken < limit
    }

    /// Management first, then events that give resources back, then requests (spec P2).
    #[inline]
    pub(super) fn poll_queues<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let given = &mut Given { sink, count: 0 };
        let mut taken = self.take_all(given);
        if taken == 0 && self.nic.attend() {
            taken = self.take_all(given);
        }
        let Given { count, .. } = *given;
        if taken != count {
            let kept = (taken as u64).wrapping_sub(count as u64);
            self.kept_from_sinks.fetch_add(kept, Ordering::Relaxed);
        }
        self.try_again_at_times(|error| sink.on_error(error));
        if taken > 0 {
            // A handler that ran here may have done what another thread sleeps for, or is about to.
            self.sleepers
                .moved_and_wake(!self.mode.locks(), || self.nic.wake());
        }
        taken
    }

    #[inline]
    fn take_all<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let mut taken = 0;
        if !self.is_empty(self.queues.system) {
            taken += self.take_system(sink);
        }
        if !self.is_empty(self.queues.safe) {
            taken += self.take_safe(sink);
        }
        taken + self.take_requests(sink)
    }

    /// Sends messages again that wait for it, not more often than helps.
    #[inline]
    pub(super) fn try_again_at_times(&self, fails: impl FnMut(AmError)) {
        if self.agains.load(Ordering::Relaxed) > 0 && self.is_time_to_try() {
            self.try_again(fails);
        }
    }

    /// Whether enough time has passed since something was tried again.
    ///
    /// An interface says at once that there is still no room; without a pause, a waiting thread
    /// would find this news in each poll and never sleep.
    #[cold]
    fn is_time_to_try(&self) -> bool {
        let now = ticks();
        let tried = self.tried_at.load(Ordering::Relaxed);
        let doublings = self.doublings.load(Ordering::Relaxed);
        let pause = match (self.synchronous, doublings) {
            (true, _) => TRY_TICKS,
            // News of the last try has taken its time.
            (false, 0) => 0,
            (false, doublings) => TRY_TICKS << doublings,
        };
        let is_time = now.wrapping_sub(tried) >= pause;
        if is_time {
            self.tried_at.store(now, Ordering::Relaxed);
        }
        is_time
    }

    /// Records whether the last try was in vain.
    ///
    /// A peer that has no room for long is tried less and less often where each try is dear.
    #[inline]
    pub(super) fn tried(&self, in_vain: bool) {
        let doublings = self.doublings.load(Ordering::Relaxed);
        let next = match in_vain {
            true => MOST_DOUBLINGS.min(doublings + 1),
            false => 0,
        };
        if next != doublings && self.remote {
            self.doublings.store(next, Ordering::Relaxed);
        }
    }

    /// Longest sleep while something is to be sent again: no event reports when there is room for
    /// it.
    fn sleep_before_try(&self) -> Duration {
        let doublings = self.doublings.load(Ordering::Relaxed).saturating_sub(5);
        RETRY * (1 << doublings)
    }

    pub(super) fn take_system<S: Sink + ?Sized>(&self, sink: &mut S) -> usize {
        let mut taken = 0;
        while self.goes_on(self.sizes.system_events, taken) {
            match self.nic.queue_get(self.queues.system) {
                Ok(Some(event)) => self.system_event(&event, sink),
                Ok(None) => break,
                Err(error) => {
                    sink.on_error(self.refuses(self.rank, &error));
                    break;
                }
            }
            taken += 1;
        }
        taken
    }

    #[inline]
    pub(super) fn is_empty(&self, queue: Queue) -> bool {
        // A queue that cannot be looked at is polled, which says why.
        matches!(self.nic.queue_is_empty(queue), Ok(true))
    }

    pub(super) fn has_anything(&self) -> bool {
        !self.is_empty(self.queues.system)
            || !self.is_empty(self.queues.safe)
            || (!self.is_empty(self.queues.requests) && self.could_hold())
    }

    pub(super) fn is_quiescent(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
            && !self.has_anything()
            && self.is_empty(self.queues.requests)
    }

    pub(super) fn wait(&self, timeout: Option<Duration>, seen: u32) {
        // The interface wakes all of them.
        let _sleeper = self.sleepers.enter();
        let Self { queues, .. } = self;
        let timeout = match self.agains.load(Ordering::Relaxed) {
            0 => timeout,
            _ => {
                let most = self.sleep_before_try();
                Some(timeout.map_or(most, |time| time.min(most)))
            }
        };
        let mut wanted = vec![queues.system, queues.safe];
        // Without the resources of a reply requests are left where they are; the safe queue gives
        // those resources back.
        if self.could_hold() {
            wanted.push(queues.requests);
        }
        let come = || self.sleepers.has_moved_since(seen) || self.has_anything();
        let _: Result<(), NicError> = self.nic.queue_wait(&wanted, timeout, &come);
    }
}
