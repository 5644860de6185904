//! Event queues: one ring each, written under the interface's lock, read by their owner without.

use super::layout::WORD;
use super::region::Words;
use super::section::Section;
use super::shared::{EVENTS_DROPPED, Shared};
use crate::portals::{Event, EventKind, NicError, Outcome, PortalIndex, Queue};
use argonet_base::JobRank;
use core::sync::atomic::Ordering;

// Words of a queue; the second line is its reader's.
/// Generation << 32 | 1 while it is allocated. Writer: the owner.
pub(super) const STATE: u64 = 0;
const DEPTH: u64 = WORD;
/// Events ever put in. Writers: whoever has the lock, releasing; reader: the owner, acquiring.
pub(super) const TAIL: u64 = 2 * WORD;
/// Events dropped and not told yet, and the position behind which they are missing.
const DROPPED: u64 = 3 * WORD;
const DROPPED_AT: u64 = 4 * WORD;
/// Events that operations under way will put in, for which room is kept. Writers: whoever has the lock.
const PROMISED: u64 = 5 * WORD;
/// Events taken out when a writer looked last; not behind what it could be: [`HEAD`] only grows. Writers: whoever has the lock.
const HEAD_SEEN: u64 = 6 * WORD;
/// Events ever taken out. Writer: the owner, releasing; readers: whoever has the lock, acquiring.
const HEAD: u64 = 8 * WORD;

pub(super) const ALLOCATED: u64 = 1;
const QUEUE_WORDS: usize = 16;

/// A word of a record, by its place in it.
#[inline(always)]
pub(super) const fn number(at: u64) -> usize {
    (at / WORD) as usize
}

impl Section<'_> {
    /// Makes a queue; the generation of its place goes up.
    pub(super) fn open_queue(&mut self, index: u32, generation: u32, depth: u64) {
        let at = self.shared.region.layout.queue(self.place, index);
        for word in [TAIL, DROPPED, DROPPED_AT, PROMISED, HEAD_SEEN, HEAD] {
            self.set(at + word, 0);
        }
        self.set(at + DEPTH, depth);
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
            && let Some(tail) = self.room_for_one(queue)
        {
            self.write_event(queue, tail, event);
            self.push(at + TAIL, tail.wrapping_add(1));
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
        self.write_event(queue, tail, event);
        self.set(at + TAIL, tail.wrapping_add(1));
    }

    /// The place behind the last event of a queue that nothing was posted to in this section, if there is room and none is promised to others.
    #[inline(always)]
    pub(super) fn room_for_one(&self, queue: u32) -> Option<u64> {
        let region = &self.shared.region;
        let layout = &region.layout;
        let at = layout.queue(self.place, queue);
        let ring = region.words::<8>(at)?;
        let word = |at| ring.get(number(at));
        let (depth, tail) = (word(DEPTH), word(TAIL));
        if word(PROMISED) != 0 || !is_depth(depth, layout.config.queue_events) {
            return None;
        }
        // What its reader has taken is looked up only where the queue could be full by what was seen last: a look takes the line from the reader.
        if tail.wrapping_sub(word(HEAD_SEEN)) >= depth {
            let head = region.word(at + HEAD).load(Ordering::Acquire);
            if tail.wrapping_sub(head) >= depth {
                return None;
            }
            ring.set(number(HEAD_SEEN), head);
        }
        Some(tail)
    }

    /// Writes an event behind the last one of a queue whose depth is one; it is there when that has moved.
    #[inline(always)]
    pub(super) fn write_event(&self, queue: u32, tail: u64, event: &Event) {
        let region = &self.shared.region;
        let layout = &region.layout;
        let depth = region.load(layout.queue(self.place, queue) + DEPTH);
        let place = layout.event(self.place, queue, tail & depth.wrapping_sub(1));
        if let Some(words) = region.words::<EVENT_WORDS>(place) {
            for (number, value) in encode(event).into_iter().enumerate() {
                words.set(number, value);
            }
        }
        self.shared.step();
    }
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
            let tail = ring.load(number(TAIL), Ordering::Acquire);
            if ring.get(number(DROPPED)) != 0 && ring.get(number(DROPPED_AT)) == head {
                match self.tell_dropped(queue.index) {
                    Some(told) => return Err(told),
                    // Another thread has told it.
                    None => continue,
                }
            }
            if head == tail {
                return Ok(None);
            }
            let corrupt = |what| NicError::Corrupt {
                rank: self.rank(),
                what,
            };
            let layout = &self.region.layout;
            let depth = ring.get(number(DEPTH));
            if !is_depth(depth, layout.config.queue_events) || tail.wrapping_sub(head) > depth {
                return Err(corrupt("a queue with impossible positions"));
            }
            let place = layout.event(self.place, queue.index, head & (depth - 1));
            let words = self.region.words::<EVENT_WORDS>(place);
            let words = words.ok_or_else(|| corrupt("a queue outside of the file"))?;
            let event = decode(&core::array::from_fn(|n| words.get(n)));
            // The words have been read: writers may have the place. If another thread was first they may be those of a later event, and count for
            // nothing.
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
        let tail = ring.load(number(TAIL), Ordering::Acquire);
        Ok(ring.get(number(HEAD)) == tail && ring.get(number(DROPPED)) == 0)
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

    /// What is missing; `None` if nothing is by now.
    #[cold]
    fn tell_dropped(&self, queue: u32) -> Option<NicError> {
        let at = self.region.layout.queue(self.place, queue);
        let mut section = self.section(self.place);
        let count = section.get(at + DROPPED);
        section.set(at + DROPPED, 0);
        section.commit();
        (count != 0).then(|| NicError::EventsDropped {
            rank: self.rank(),
            queue,
            count,
        })
    }
}

const EVENT_WORDS: usize = 10;

fn encode(event: &Event) -> [u64; EVENT_WORDS] {
    let kind = u64::from(u8::from(event.kind));
    let outcome = u64::from(u8::from(event.outcome)) << 8;
    [
        kind | outcome | u64::from(event.portal.0) << 32,
        event.peer.0.into(),
        event.bits,
        event.header,
        event.requested_bytes,
        event.moved_bytes,
        event.offset_bytes,
        event.user,
        event.object,
        event.link,
    ]
}

fn decode(words: &[u64; EVENT_WORDS]) -> Option<Event> {
    let [
        what,
        peer,
        bits,
        header,
        requested_bytes,
        moved_bytes,
        offset_bytes,
        user,
        object,
        link,
    ] = *words;
    Some(Event {
        kind: EventKind::try_from(what as u8).ok()?,
        outcome: Outcome::try_from((what >> 8) as u8).ok()?,
        peer: JobRank(u32::try_from(peer).ok()?),
        portal: PortalIndex((what >> 32) as u32),
        bits,
        header,
        requested_bytes,
        moved_bytes,
        offset_bytes,
        user,
        object,
        link,
    })
}

impl Shared {
    /// What is said of a handle that is none.
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
