//! Operations that move data outside of the target's lock.
//!
//! Each is announced in a place of the initiator's interface, so that the target's owner does not
//! take the memory away, and so that another rank can end it if the initiator dies. Two kinds:
//! *plain* ones, which change nothing in the entry, and *counted* ones, which the entry counts as
//! pending. The place of a counted one changes in the same commits as that count.

use super::layout::{SLOT_COUNT, WORD};
use super::message::Message;
use super::records::entry;
use super::search::Selected;
use super::shared::Shared;
use super::transaction::Transaction;
use crate::portals::{Event, EventKind, NicError, Outcome, PortalIndex};
use core::sync::atomic::{Ordering, fence};
use crossbeam_utils::Backoff;

const USED: u64 = 1 << 63;
const COUNTED: u64 = 1 << 62;

/// Places of an interface, a bit each.
const ALL: u64 = (1 << SLOT_COUNT) - 1;

fn state(target: u32, entry: u32) -> u64 {
    USED | u64::from(target) << 32 & !COUNTED | u64::from(entry)
}

/// A place of this process, given back when dropped.
pub(super) struct Claim<'a> {
    shared: &'a Shared,
    bit: u64,
    at: u64,
}

impl Shared {
    /// Takes a place, waiting for another thread if all are taken.
    #[inline]
    pub(super) fn claim(&self) -> Claim<'_> {
        let backoff = Backoff::new();
        loop {
            let free = !self.slots.load(Ordering::Relaxed) & ALL;
            let bit = free & free.wrapping_neg();
            if bit != 0 && self.slots.fetch_or(bit, Ordering::Acquire) & bit == 0 {
                let number = u64::from(bit.trailing_zeros());
                return Claim {
                    shared: self,
                    bit,
                    at: self.region.layout.slot(self.place, number),
                };
            }
            backoff.snooze();
        }
    }
}

impl Claim<'_> {
    /// Announces a plain operation: a thread that changes the target's lists after this finds it.
    #[inline]
    pub(super) fn announce(&self, target: u32, entry: u32) {
        self.shared.region.store(self.at, state(target, entry));
        // Pairs with the fence of `close_lists`: either we see its odd version, or it sees this.
        fence(Ordering::SeqCst);
        self.shared.step();
    }

    /// Ends a plain operation.
    #[inline]
    pub(super) fn withdraw(&self) {
        self.shared.step();
        let place = self.shared.region.word(self.at);
        place.store(0, Ordering::Release);
    }

    /// Announces a counted operation with the commit of `transaction`.
    pub(super) fn begin(
        &self,
        transaction: &mut Transaction<'_>,
        selected: &Selected,
        message: &Message,
    ) {
        let (_, end) = message.kinds();
        let words = [
            u64::from(u8::from(end)) | u64::from(message.portal.0) << 32,
            message.bits,
            message.header,
            message.len,
            selected.moved,
            selected.offset,
            message.link,
        ];
        for (word, value) in (1..).zip(words) {
            transaction.set(self.at + word * WORD, value);
        }
        transaction.set(self.at, state(transaction.place, selected.entry) | COUNTED);
        let entry = transaction
            .shared
            .region
            .layout
            .entry(transaction.place, selected.entry);
        transaction.add(entry + entry::PENDING, 1);
    }

    /// Ends it with the commit of `transaction`.
    pub(super) fn end(&self, transaction: &mut Transaction<'_>, outcome: Outcome) {
        transaction.end_announced(self.at, self.shared.place, outcome);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.shared.slots.fetch_and(!self.bit, Ordering::Release);
    }
}

impl Transaction<'_> {
    /// Ends the counted operation that is announced at `at`.
    fn end_announced(&mut self, at: u64, initiator: u32, outcome: Outcome) {
        let index = self.get(at) as u32;
        let word = |n: u64| self.get(at + n * WORD);
        let (what, moved) = (word(1), word(5));
        let event = Event {
            kind: EventKind::try_from(what as u8).unwrap_or(EventKind::PutEnd),
            outcome,
            peer: self.shared.rank_at(initiator),
            portal: PortalIndex((what >> 32) as u32),
            bits: word(2),
            header: word(3),
            requested_bytes: word(4),
            moved_bytes: if outcome == Outcome::Done { moved } else { 0 },
            offset_bytes: word(6),
            user: 0,
            object: 0,
            link: word(7),
        };
        self.set(at, 0);
        if index >= self.shared.region.layout.config.entries {
            return;
        }
        let entry = self.shared.region.layout.entry(self.place, index);
        let pending = self.get(entry + entry::PENDING);
        if self.get(entry + entry::STATE) & entry::ALLOCATED != 0 && pending != 0 {
            self.set(entry + entry::PENDING, pending - 1);
            self.end_operation(index, event, true);
        }
    }

    /// Ends the operations that a dead rank had under way at this interface.
    pub(super) fn finish_operations_of(&mut self, dead: u32) {
        for slot in 0..SLOT_COUNT {
            let at = self.shared.region.layout.slot(dead, slot);
            let state = self.shared.region.load(at);
            if state & USED != 0 && target_of(state) == self.place {
                if state & COUNTED != 0 {
                    self.end_announced(at, dead, Outcome::PeerDied);
                } else {
                    self.set(at, 0);
                }
                self.commit();
            }
        }
    }

    fn busy(&self, entry: u32) -> NicError {
        NicError::InUse {
            rank: self.shared.rank(),
            what: "entry",
            index: entry,
            by: "by an operation of a peer",
        }
    }

    /// Refuses if some living rank has an operation on an entry under way; those of dead ones end.
    ///
    /// The lists are closed.
    pub(super) fn must_be_idle(&mut self, entry: u32) -> Result<(), NicError> {
        self.close_lists();
        for place in 0..self.shared.ranks() {
            let busy = (0..SLOT_COUNT).any(|slot| {
                let at = self.shared.region.layout.slot(place, slot);
                let state = self.shared.region.word(at).load(Ordering::Acquire);
                state & USED != 0 && target_of(state) == self.place && state as u32 == entry
            });
            if !busy {
                continue;
            }
            if place == self.shared.place || !self.shared.region.has_ended(place) {
                return Err(self.busy(entry));
            }
            self.finish_operations_of(place);
            // A commit opens the lists.
            self.close_lists();
        }
        let at = self.shared.region.layout.entry(self.place, entry);
        if self.get(at + entry::PENDING) != 0 {
            // It comes in pieces from another host.
            return Err(self.busy(entry));
        }
        Ok(())
    }
}

fn target_of(state: u64) -> u32 {
    ((state & !USED & !COUNTED) >> 32) as u32
}
