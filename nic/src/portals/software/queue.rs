//! Event queues: one ring each, written under the interface's lock, read by their owner without.

use super::layout::WORD;
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
const TAIL: u64 = 2 * WORD;
/// Events dropped and not told yet, and the position behind which they are missing.
const DROPPED: u64 = 3 * WORD;
const DROPPED_AT: u64 = 4 * WORD;
/// Events that operations under way will put in, for which room is kept. Writers: whoever has the lock.
const PROMISED: u64 = 5 * WORD;
/// Events ever taken out. Writer: the owner, releasing; readers: whoever has the lock, acquiring.
const HEAD: u64 = 8 * WORD;

pub(super) const ALLOCATED: u64 = 1;

impl Section<'_> {
    /// Makes a queue; the generation of its place goes up.
    pub(super) fn open_queue(&mut self, index: u32, generation: u32, depth: u64) {
        let at = self.shared.region.layout.queue(self.place, index);
        for word in [TAIL, DROPPED, DROPPED_AT, PROMISED, HEAD] {
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
        let place = layout.event(self.place, queue, tail & (depth - 1));
        for (word, value) in (0..).zip(encode(event)) {
            shared.region.store(place + word * WORD, value);
        }
        shared.step();
        self.set(at + TAIL, tail.wrapping_add(1));
    }
}

fn is_depth(depth: u64, limit: u64) -> bool {
    depth.is_power_of_two() && depth <= limit
}

impl Shared {
    /// Takes the next event of a queue of this rank. Its owner's threads do that one at a time.
    pub(super) fn take_event(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        let layout = &self.region.layout;
        let at = layout.queue(self.place, queue.index);
        let head = self.region.load(at + HEAD);
        let tail = self.region.word(at + TAIL).load(Ordering::Acquire);
        let dropped = self.region.word(at + DROPPED).load(Ordering::Acquire);
        if dropped != 0 && self.region.load(at + DROPPED_AT) == head {
            return Err(self.tell_dropped(queue.index, at));
        }
        if head == tail {
            return Ok(None);
        }
        let depth = self.region.load(at + DEPTH);
        let corrupt = |what| NicError::Corrupt {
            rank: self.rank(),
            what,
        };
        if !is_depth(depth, layout.config.queue_events) || tail.wrapping_sub(head) > depth {
            return Err(corrupt("a queue with impossible positions"));
        }
        let place = layout.event(self.place, queue.index, head & (depth - 1));
        let words = core::array::from_fn(|n| self.region.load(place + n as u64 * WORD));
        // The words have been read: writers may have the place.
        self.region
            .word(at + HEAD)
            .store(head.wrapping_add(1), Ordering::Release);
        match decode(&words) {
            Some(event) => Ok(Some(event)),
            None => Err(corrupt("an event of no kind")),
        }
    }

    /// Whether there is nothing to take, not even that something is missing.
    #[inline]
    pub(super) fn is_empty(&self, queue: Queue) -> bool {
        let at = self.region.layout.queue(self.place, queue.index);
        let head = self.region.load(at + HEAD);
        let tail = self.region.word(at + TAIL).load(Ordering::Acquire);
        head == tail && self.region.load(at + DROPPED) == 0
    }

    #[cold]
    fn tell_dropped(&self, queue: u32, at: u64) -> NicError {
        let mut section = self.section(self.place);
        let count = section.get(at + DROPPED);
        section.set(at + DROPPED, 0);
        section.commit();
        NicError::EventsDropped {
            rank: self.rank(),
            queue,
            count,
        }
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
    pub(super) fn no_queue(&self, queue: Queue) -> NicError {
        NicError::BadHandle {
            rank: self.rank(),
            what: "queue",
            index: queue.index,
            generation: queue.generation,
        }
    }

    /// Whether a handle is that of a queue of this rank.
    #[inline]
    pub(super) fn is_queue(&self, queue: Queue) -> bool {
        let at = self.region.layout.queue(self.place, queue.index);
        queue.index < self.region.layout.config.queues
            && self.region.load(at + STATE) == u64::from(queue.generation) << 32 | ALLOCATED
    }
}
