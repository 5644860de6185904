//! Event queues: one ring each, written under the interface's lock, read by their owner without.
//!
//! The first word of an event has the low half of one more than its position, and changes with the
//! commit that puts the event in. So a reader looks at the line that the event is in, and at none
//! that changes with other events. Positions go on when a queue is made anew in the same place, so
//! that no old event is taken for a new one.

use super::layout::WORD;
use super::packed::{EVENT_WORDS, Packed, unpack};
use super::region::Words;
use super::shared::{EVENTS_DROPPED, Shared};
use super::transaction::Transaction;
use crate::portals::{Event, NicError, Queue};
use core::sync::atomic::Ordering;

// Words of a queue. The first line is that of writers, which hold the lock; the reader does not
// look at it.
const DEPTH: u64 = 0;
/// Events ever put in.
const TAIL: u64 = WORD;
/// Events that operations under way will put in, for which room is kept.
const PROMISED: u64 = 2 * WORD;
/// Events taken out when a writer looked last: not more than there are, as [`HEAD`] only grows.
const HEAD_SEEN: u64 = 3 * WORD;
// The second line is its reader's; writers change it where events are dropped.
/// Generation << 32 | 1 while it is allocated.
///
/// Writer: the owner.
pub(super) const STATE: u64 = 8 * WORD;
/// The depth once more.
const READ_DEPTH: u64 = 9 * WORD;
/// Events ever taken out.
///
/// Writer: the owner, releasing; readers: threads that hold the lock, acquiring.
const HEAD: u64 = 10 * WORD;
/// Events dropped and not reported yet, and the position behind which they are missing.
const DROPPED: u64 = 11 * WORD;
const DROPPED_AT: u64 = 12 * WORD;

pub(super) const ALLOCATED: u64 = 1;
const QUEUE_WORDS: usize = 16;

/// A word of a record, by its place in it.
#[inline(always)]
pub(super) const fn number(at: u64) -> usize {
    (at / WORD) as usize
}

/// Room behind the last event of a queue, whose depth is one that it may have.
#[derive(Clone, Copy)]
pub(super) struct FreeSlot {
    tail: u64,
    depth: u64,
}

impl Transaction<'_> {
    /// Makes a queue; the generation of its place goes up.
    pub(super) fn open_queue(&mut self, index: u32, generation: u32, depth: u64) {
        let at = self.shared.region.layout.queue(self.place, index);
        for word in [DROPPED, DROPPED_AT, PROMISED] {
            self.set(at + word, 0);
        }
        let tail = self.get(at + TAIL);
        for word in [HEAD_SEEN, HEAD] {
            self.set(at + word, tail);
        }
        for word in [DEPTH, READ_DEPTH] {
            self.set(at + word, depth);
        }
        self.set(at + STATE, u64::from(generation) << 32 | ALLOCATED);
    }

    /// Whether there is room for so many events; a queue that does not exist takes any number.
    pub(super) fn has_room(&self, queue: Option<u32>, events: u64) -> bool {
        let Some(index) = queue else { return true };
        let at = self.shared.region.layout.queue(self.place, index);
        let used = self.used(at).saturating_add(self.get(at + PROMISED));
        used.saturating_add(events) <= self.get(at + DEPTH)
    }

    /// Keeps room for an event that is posted with [`post_promised`](Self::post_promised).
    pub(super) fn promise(&mut self, queue: u32) {
        let at = self.shared.region.layout.queue(self.place, queue);
        self.add(at + PROMISED, 1);
    }

    /// Puts an event into a queue that room was kept for.
    pub(super) fn post_promised(&mut self, queue: u32, event: &Event) {
        let at = self.shared.region.layout.queue(self.place, queue);
        let promised = self.get(at + PROMISED);
        self.set(at + PROMISED, promised.saturating_sub(1));
        self.post(queue, event);
    }

    fn used(&self, at: u64) -> u64 {
        let head = self.shared.region.word(at + HEAD).load(Ordering::Acquire);
        self.get(at + TAIL).wrapping_sub(head)
    }

    /// Puts an event into a queue of this interface with the next commit, or counts it as dropped.
    pub(super) fn post(&mut self, queue: u32, event: &Event) {
        let shared = self.shared;
        let layout = &shared.region.layout;
        if queue >= layout.config.queues {
            return;
        }
        self.rings = true;
        let at = layout.queue(self.place, queue);
        if self.is_unchanged()
            && !shared.faults.is_active()
            && let Some(slot) = self.free_slot(queue)
        {
            if self.place == self.shared.place {
                self.put_in_now(queue, slot, event);
            } else {
                self.put_in(queue, slot, event);
            }
            return;
        }
        let depth = self.get(at + DEPTH);
        let tail = self.get(at + TAIL);
        let forced = shared.faults.queue_is_full();
        let used = self.used(at).saturating_add(self.get(at + PROMISED));
        if forced || used >= depth || !is_depth(depth, layout.config.queue_events) {
            if self.get(at + DROPPED) == 0 {
                self.set(at + DROPPED_AT, tail);
            }
            self.add(at + DROPPED, 1);
            self.count_up(EVENTS_DROPPED, 1);
            return;
        }
        self.put_in(queue, FreeSlot { tail, depth }, event);
    }

    /// Room in a queue that this transaction has posted nothing to, if none is promised to others.
    #[inline(always)]
    pub(super) fn free_slot(&self, queue: u32) -> Option<FreeSlot> {
        let region = &self.shared.region;
        let layout = &region.layout;
        let at = layout.queue(self.place, queue);
        let ring = region.words::<8>(at)?;
        let word = |at| ring.get(number(at));
        let (depth, tail) = (word(DEPTH), word(TAIL));
        if word(PROMISED) != 0 || !is_depth(depth, layout.config.queue_events) {
            return None;
        }
        // The reader's position is looked up only where the queue could be full by the last
        // position seen: a look takes the line from the reader.
        if tail.wrapping_sub(word(HEAD_SEEN)) >= depth {
            let head = region.word(at + HEAD).load(Ordering::Acquire);
            if tail.wrapping_sub(head) >= depth {
                return None;
            }
            ring.set(number(HEAD_SEEN), head);
        }
        Some(FreeSlot { tail, depth })
    }

    /// Puts an event behind the last one of a queue, with the next commit.
    #[inline(always)]
    pub(super) fn put_in(&mut self, queue: u32, slot: FreeSlot, event: &Event) {
        let [tail, first] = self.write(queue, slot, event);
        self.set(tail.0, tail.1);
        self.push(first.0, first.1);
    }

    /// Puts an event behind the last one of a queue of the own rank at once: if the rank dies on
    /// the way, no thread will read it.
    #[inline(always)]
    fn put_in_now(&mut self, queue: u32, slot: FreeSlot, event: &Event) {
        for (at, value) in self.write(queue, slot, event) {
            self.shared.step();
            self.shared.region.word(at).store(value, Ordering::Release);
        }
    }

    /// Writes all of an event but its first word; the words that put it in, in their order.
    #[inline(always)]
    fn write(
        &self,
        queue: u32,
        FreeSlot { tail, depth }: FreeSlot,
        event: &Event,
    ) -> [(u64, u64); 2] {
        let region = &self.shared.region;
        let layout = &region.layout;
        let place = layout.event(self.place, queue, tail & (depth - 1));
        let packed = Packed::new(event);
        let [first, rest @ ..] = packed.line;
        if let Some(words) = region.words::<EVENT_WORDS>(place) {
            for (number, value) in (1..).zip(rest) {
                words.set(number, value);
            }
            if let Some(lengths) = packed.lengths {
                for (number, value) in (packed.line.len()..).zip(lengths) {
                    words.set(number, value);
                }
            }
        }
        self.shared.step();
        let at = layout.queue(self.place, queue);
        [
            (at + TAIL, tail.wrapping_add(1)),
            (place, first | stamp(tail)),
        ]
    }
}

/// The upper half of an event's first word: a part of its position.
#[inline(always)]
const fn stamp(position: u64) -> u64 {
    position.wrapping_add(1) << 32
}

fn is_depth(depth: u64, limit: u64) -> bool {
    depth.is_power_of_two() && depth <= limit
}

impl Shared {
    /// Takes the next event of a queue of this rank.
    #[inline]
    pub(super) fn take_event(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        let ring = self.ring(queue)?;
        loop {
            let head = ring.get(number(HEAD));
            let depth = ring.get(number(READ_DEPTH));
            let layout = &self.region.layout;
            let corrupt = |what| NicError::Corrupt {
                rank: self.rank(),
                what,
            };
            if !is_depth(depth, layout.config.queue_events) {
                return Err(corrupt("a queue of impossible depth"));
            }
            let place = layout.event(self.place, queue.index, head & (depth - 1));
            let words = self.region.words::<EVENT_WORDS>(place);
            let words = words.ok_or_else(|| corrupt("a queue outside of the file"))?;
            let is_there = words.load(0, Ordering::Acquire) >> 32 == stamp(head) >> 32;
            if ring.get(number(DROPPED)) != 0 && ring.get(number(DROPPED_AT)) == head {
                match self.take_dropped(queue.index) {
                    Some(dropped) => return Err(dropped),
                    // Another thread has reported it.
                    None => continue,
                }
            }
            if !is_there {
                return Ok(None);
            }
            let event = unpack(|number| words.get(number));
            // The words have been read: writers may have the place. If another thread was first
            // they may be those of a later event, and count for nothing.
            if ring.advance(number(HEAD), head) {
                return event
                    .ok_or_else(|| corrupt("an event of no kind"))
                    .map(Some);
            }
        }
    }

    /// Whether there is nothing to take, not even that something is missing.
    #[inline]
    pub(super) fn is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        let ring = self.ring(queue)?;
        let (head, depth) = (ring.get(number(HEAD)), ring.get(number(READ_DEPTH)));
        let layout = &self.region.layout;
        if !is_depth(depth, layout.config.queue_events) {
            // `take_event` reports the bad depth.
            return Ok(false);
        }
        let place = layout.event(self.place, queue.index, head & (depth - 1));
        let first = self.region.word(place).load(Ordering::Acquire);
        Ok(first >> 32 != stamp(head) >> 32 && ring.get(number(DROPPED)) == 0)
    }

    /// The words of a queue of this rank.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    #[inline(always)]
    fn ring(&self, queue: Queue) -> Result<Words<'_, QUEUE_WORDS>, NicError> {
        let layout = &self.region.layout;
        let at = layout.queue(self.place, queue.index);
        let ring = self.region.words(at);
        let state = u64::from(queue.generation) << 32 | ALLOCATED;
        let is = |ring: &Words<'_, QUEUE_WORDS>| {
            queue.index < layout.config.queues && ring.get(number(STATE)) == state
        };
        ring.filter(is).ok_or_else(|| self.no_queue(queue))
    }

    /// Takes the count of missing events, as the error that reports it; `None` if another thread
    /// has.
    #[cold]
    fn take_dropped(&self, queue: u32) -> Option<NicError> {
        let at = self.region.layout.queue(self.place, queue);
        let mut transaction = self.transaction(self.place);
        let count = transaction.get(at + DROPPED);
        transaction.set(at + DROPPED, 0);
        transaction.commit();
        (count != 0).then(|| NicError::EventsDropped {
            rank: self.rank(),
            queue,
            count,
        })
    }
}

impl Shared {
    /// The error of a handle that is none.
    #[cold]
    fn no_queue(&self, queue: Queue) -> NicError {
        NicError::BadHandle {
            rank: self.rank(),
            what: "queue",
            index: queue.index,
            generation: queue.generation,
        }
    }
}
