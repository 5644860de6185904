//! Events that peers post: a ring of words in the file, without a lock.
//!
//! A slot is one word: the lap for which it is, whether it is full, and 32 bits of data. A producer
//! makes the slot at the tail full by one compare-and-swap, and then moves the tail on; one that
//! finds the slot full already moves it in place of the producer that has not, or has died. So an
//! event is there whole or not at all, and a producer that dies leaves no hole. The consumer makes
//! a slot empty for the next lap.
//!
//! A slot that is full for the lap before means that the ring is full; whatever else no producer or
//! consumer writes is taken for that, too, and the consumer makes the ring anew.

use super::shared::Shared;
use core::sync::atomic::Ordering;

/// Words of a queue's first line.
pub(super) const STATE: u64 = 0;
pub(super) const TAIL: u64 = 8;

const LAPS: u64 = (1 << 31) - 1;
const FULL: u64 = 1 << 32;
const LAP_SHIFT: u32 = 33;

/// Attempts after which an event counts as lost; each that fails is one of another producer that
/// has succeeded, unless a peer writes what it must not.
const MOST_TRIES: u32 = 1 << 16;

/// The queue of an interface that gets the events of some memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) index: u32,
    /// Queues that were made later at the same index have others.
    pub(super) generation: u32,
}

/// The state of a queue of `1 << bits` events that exists.
pub(super) fn open_state(generation: u32, bits: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(bits) << 1 | 1
}

#[inline(always)]
pub(super) fn lap(count: u64, bits: u32) -> u64 {
    (count >> bits) & LAPS
}

#[inline(always)]
pub(super) fn empty(lap: u64) -> u64 {
    (lap & LAPS) << LAP_SHIFT
}

#[inline(always)]
pub(super) fn full(lap: u64, data: u32) -> u64 {
    empty(lap) | FULL | u64::from(data)
}

/// The data of a slot that is full for this lap.
#[inline(always)]
pub(super) fn data(slot: u64, lap: u64) -> Option<u32> {
    (slot & !u64::from(u32::MAX) == empty(lap) | FULL).then_some(slot as u32)
}

/// Whether the slot is behind the event of this lap.
#[inline(always)]
fn is_past(slot: u64, lap: u64) -> bool {
    data(slot, lap).is_some() || slot >> LAP_SHIFT == lap.wrapping_add(1) & LAPS
}

impl Shared {
    /// Posts an event to a queue of the interface at `place`, and wakes its threads.
    #[inline]
    pub(super) fn post_came(&self, place: u32, queue: Target, data: u32) {
        let layout = &self.region.layout;
        let Target { index, generation } = queue;
        if index >= layout.config.queues {
            return;
        }
        let at = layout.queue(place, index);
        let state = self.region.word(at + STATE).load(Ordering::Acquire);
        let bits = (state as u32) >> 1;
        let open = state & 1 != 0 && (state >> 32) as u32 == generation;
        if !open || bits >= u32::BITS || 1_u64 << bits > layout.config.queue_events.into() {
            return;
        }
        if self.faults.loses_event() || !self.put_into(place, index, bits, data) {
            self.overrun(place, index);
        }
        self.wake_place(place);
    }

    /// Whether there was room.
    #[inline]
    fn put_into(&self, place: u32, index: u32, bits: u32, data: u32) -> bool {
        let layout = &self.region.layout;
        let tail_word = self.region.word(layout.queue(place, index) + TAIL);
        for _ in 0..MOST_TRIES {
            let tail = tail_word.load(Ordering::Acquire);
            let at = layout.event(place, index, tail & ((1 << bits) - 1));
            let slot = self.region.word(at);
            let lap = lap(tail, bits);
            let found = slot.load(Ordering::Acquire);
            let next = tail.wrapping_add(1);
            if found == empty(lap) {
                self.step();
                let put = full(lap, data);
                if slot
                    .compare_exchange(found, put, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
                {
                    self.step();
                    let _ =
                        tail_word.compare_exchange(tail, next, Ordering::AcqRel, Ordering::Relaxed);
                    return true;
                }
            } else if is_past(found, lap) {
                self.step();
                let _ = tail_word.compare_exchange(tail, next, Ordering::AcqRel, Ordering::Relaxed);
            } else if tail_word.load(Ordering::Acquire) == tail {
                return false;
            }
        }
        false
    }

    /// Events of a queue were lost.
    #[cold]
    fn overrun(&self, place: u32, index: u32) {
        self.step();
        let word = self.region.word(self.region.layout.overrun(place, index));
        word.swap(1, Ordering::SeqCst);
    }
}
