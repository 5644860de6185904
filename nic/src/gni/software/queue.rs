//! Completion queues.
//!
//! Events of own posts lie in memory of the process, behind a lock of the queue; those that peers
//! post in a [ring](super::ring) of the file. Posts reserve room, so only the ring can be full.

use super::ring::{STATE, TAIL, Target, data, empty, lap, open_state};
use super::shared::Shared;
use crate::gni::{Event, EventKind, Failure, GniError};
use crate::host_file::WORD;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

/// A completion queue of an interface in software.
pub struct Queue {
    pub(super) ring: Arc<Ring>,
}

/// Which queues exist.
#[derive(Default)]
pub(super) struct Taken {
    /// Of each index that was ever used: the last generation, and whether it is used.
    places: Vec<(u32, bool)>,
}

impl Taken {
    fn take(&mut self, limit: u32) -> Option<Target> {
        let free = self.places.iter().position(|(_, used)| !used);
        let index = free.unwrap_or(self.places.len());
        if free.is_none() {
            if index >= limit as usize {
                return None;
            }
            self.places.push((0, false));
        }
        let (generation, used) = self.places.get_mut(index)?;
        *used = true;
        *generation = generation.wrapping_add(1);
        Some(Target {
            index: index as u32,
            generation: *generation,
        })
    }
}

/// What a queue is, for all that post to it.
pub(super) struct Ring {
    pub(super) shared: Arc<Shared>,
    pub(super) target: Target,
    bits: u32,
    /// Where its slots and its other words lie in the file.
    events_at: u64,
    state_at: u64,
    overrun_at: u64,
    /// Events of own posts; changed under the lock.
    own_count: AtomicU32,
    /// Events that were taken from the ring; changed under the lock.
    head: AtomicU64,
    own: Mutex<Own>,
}

/// Events of own posts.
pub(super) struct Own {
    events: VecDeque<Event>,
    /// Room for posts that have not ended.
    reserved: u32,
    /// Whether peers' events are next: neither kind waits for ever.
    peers_first: bool,
}

impl Ring {
    pub(super) fn new(shared: &Arc<Shared>, events: u32) -> Result<Self, GniError> {
        let config = &shared.region.layout.config;
        if !(1..=config.queue_events).contains(&events) {
            return Err(shared.no_space("events of a queue", config.queue_events.into()));
        }
        let taken = shared.queues.lock().take(config.queues);
        let target =
            taken.ok_or_else(|| shared.no_space("completion queue", config.queues.into()))?;
        let bits = events.next_power_of_two().ilog2();
        let (layout, place) = (&shared.region.layout, shared.place);
        let ring = Self {
            shared: Arc::clone(shared),
            target,
            bits,
            events_at: layout.event(place, target.index, 0),
            state_at: layout.queue(place, target.index),
            overrun_at: layout.overrun(place, target.index),
            own_count: AtomicU32::new(0),
            head: AtomicU64::new(0),
            own: Mutex::new(Own {
                events: VecDeque::with_capacity(1 << bits),
                reserved: 0,
                peers_first: false,
            }),
        };
        ring.empty_all();
        ring.overrun_word().store(0, Ordering::Relaxed);
        let state = open_state(target.generation, bits);
        ring.word(STATE).store(state, Ordering::Release);
        Ok(ring)
    }

    fn word(&self, which: u64) -> &AtomicU64 {
        self.shared.region.word(self.state_at + which)
    }

    #[inline(always)]
    fn overrun_word(&self) -> &AtomicU64 {
        self.shared.region.word(self.overrun_at)
    }

    #[inline(always)]
    fn slot(&self, count: u64) -> &AtomicU64 {
        let at = count & ((1 << self.bits) - 1);
        self.shared.region.word(self.events_at + at * WORD)
    }

    /// Makes all slots empty for a lap that no producer of before has in mind.
    fn empty_all(&self) {
        let count = u64::from(fastrand::u32(..) >> 1) << self.bits;
        for n in 0..1 << self.bits {
            self.slot(n)
                .store(empty(lap(count, self.bits)), Ordering::Relaxed);
        }
        self.word(TAIL).store(count, Ordering::Release);
        self.head.store(count, Ordering::Relaxed);
    }

    /// Whether [`next`](Self::next) would find something.
    #[inline(always)]
    pub(super) fn has_event(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        self.own_count.load(Ordering::SeqCst) != 0
            || self.slot(head).load(Ordering::SeqCst) != empty(lap(head, self.bits))
            || self.overrun_word().load(Ordering::SeqCst) != 0
    }

    /// The next event; an error if some were lost.
    #[inline]
    pub(super) fn next(&self) -> Result<Option<Event>, GniError> {
        if !self.has_event() {
            return Ok(None);
        }
        let mut own = self.own.lock();
        // Whatever peers write, every other event is one of this rank.
        if !core::mem::replace(&mut own.peers_first, false)
            && let Some(event) = self.take_own(&mut own)
        {
            return Ok(Some(event));
        }
        if self.overrun_word().load(Ordering::Relaxed) != 0 {
            self.shared.step();
            self.overrun_word().swap(0, Ordering::SeqCst);
            self.mend();
            return Err(self.lost());
        }
        let came = self.take_came()?;
        if came.is_some() {
            return Ok(came);
        }
        Ok(self.take_own(&mut own))
    }

    /// The next event of a post of this rank.
    #[inline(always)]
    fn take_own(&self, own: &mut Own) -> Option<Event> {
        let event = own.events.pop_front()?;
        // Under the lock, so no other thread changes it meanwhile.
        self.own_count
            .store(own.events.len() as u32, Ordering::Relaxed);
        own.peers_first = true;
        Some(event)
    }

    fn lost(&self) -> GniError {
        GniError::Overrun {
            rank: self.shared.rank(),
        }
    }

    /// The next event of a peer, under the lock.
    #[inline(always)]
    fn take_came(&self) -> Result<Option<Event>, GniError> {
        let head = self.head.load(Ordering::Relaxed);
        let lap = lap(head, self.bits);
        let slot = self.slot(head);
        let found = slot.load(Ordering::Acquire);
        let Some(data) = data(found, lap) else {
            if found == empty(lap) {
                return Ok(None);
            }
            self.empty_all();
            return Err(self.lost());
        };
        self.shared.step();
        slot.store(empty(lap.wrapping_add(1)), Ordering::Release);
        self.head.store(head.wrapping_add(1), Ordering::Relaxed);
        Ok(Some(Event {
            kind: EventKind::Came,
            data,
        }))
    }

    /// Makes the ring anew if head and tail are such as no producer leaves them.
    #[cold]
    fn mend(&self) {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.word(TAIL).load(Ordering::Acquire);
        let ahead = tail.wrapping_sub(head);
        // A producer that has not moved the tail yet leaves it one behind.
        let near = ahead <= 1 << self.bits || ahead == u64::MAX;
        let lap = lap(head, self.bits);
        let first = self.slot(head).load(Ordering::Acquire);
        let is_full = data(first, lap).is_some();
        let filled = ahead != 0 && ahead != u64::MAX;
        if !near || (filled && !is_full) || !(is_full || first == empty(lap)) {
            self.empty_all();
        }
    }

    /// The events of own posts, if there is room for one more.
    #[inline(always)]
    pub(super) fn room(&self) -> Option<MutexGuard<'_, Own>> {
        let own = self.own.lock();
        let used = own.events.len() as u64 + u64::from(own.reserved);
        (used < 1 << self.bits).then_some(own)
    }

    /// Keeps room for a post that ends later.
    pub(super) fn reserve(&self) -> bool {
        let Some(mut own) = self.room() else {
            return false;
        };
        own.reserved += 1;
        true
    }

    /// The end of a post for which room was kept.
    pub(super) fn end_reserved(&self, data: u32, ended: Ended) {
        let mut own = self.own.lock();
        own.reserved = own.reserved.saturating_sub(1);
        self.end(own, data, ended);
    }

    /// The end of a post for which there is room.
    #[inline(always)]
    pub(super) fn end(&self, mut own: MutexGuard<'_, Own>, data: u32, ended: Ended) {
        let Ended {
            id,
            fetched,
            result,
        } = ended;
        own.events.push_back(Event {
            kind: EventKind::Ended {
                id,
                fetched,
                result,
            },
            data,
        });
        self.own_count.fetch_add(1, Ordering::SeqCst);
        drop(own);
        self.shared.wake_place(self.shared.place);
    }
}

/// How a post has ended.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) id: u64,
    pub(super) fetched: u64,
    pub(super) result: Result<(), Failure>,
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.word(STATE).store(0, Ordering::Release);
        let mut taken = self.shared.queues.lock();
        if let Some((_, used)) = taken.places.get_mut(self.target.index as usize) {
            *used = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gni::software::ring::{data, empty, full, lap};

    #[test]
    fn slots_are_words_and_back() {
        for (count, bits) in [(0, 0), (7, 2), (u64::MAX, 3), (1 << 40, 24)] {
            let lap = lap(count, bits);
            for value in [0, 1, u32::MAX] {
                assert_eq!(data(full(lap, value), lap), Some(value));
                assert_eq!(data(full(lap, value), lap ^ 1), None);
            }
            assert_eq!(data(empty(lap), lap), None);
        }
    }
}
