//! The usual message: a short put to an entry that reports it by one event, at its end, and by
//! nothing else.
//!
//! Its changes are known beforehand, so it takes one look at each word and one commit.

use super::deliver::{Arrival, UNDER_LOCK_BYTES};
use super::message::{Action, Message};
use super::queue::number;
use super::records::{self, entry, index, portal};
use super::transaction::Transaction;
use crate::portals::{EntryHandle, Event, EventKind, Outcome};

impl Transaction<'_> {
    /// Executes `message`, if it is a usual one and the first entry of its portal takes it and goes
    /// on in its list.
    ///
    /// `None`: nothing was done.
    ///
    /// # Safety
    /// The action's memory is valid for the message's length, as [`Message::carry`] wants it.
    #[inline]
    pub(super) unsafe fn deliver_brief(&mut self, message: &Message) -> Option<Arrival> {
        let shared = self.shared;
        let Action::Put { .. } = message.action else {
            return None;
        };
        if message.len > UNDER_LOCK_BYTES || shared.faults.is_active() {
            return None;
        }
        let region = &shared.region;
        let layout = &region.layout;
        let config = &layout.config;
        let list = region.words::<2>(layout.portal(self.place, message.portal.0))?;
        let flags = portal::ALLOCATED | portal::ENABLED | portal::FLOW_CONTROL;
        if list.get(number(portal::STATE)) & flags != portal::ALLOCATED | portal::ENABLED {
            return None;
        }
        let entry = index(list.get(number(portal::HEAD)), config.entries)?;
        let at = layout.entry(self.place, entry);
        let record = region.words::<16>(at)?;
        let word = |at| record.get(number(at));
        let state = word(entry::STATE);
        let selected = self.try_words(entry, message, word)?;
        if state & entry::BRIEF == 0 {
            return None;
        }
        let is_local = selected.options & records::LOCAL != 0;
        let next = selected.offset + selected.moved;
        if is_local && word(entry::LEN).saturating_sub(next) < word(entry::MIN_FREE) {
            return None;
        }
        let queue = index(word(entry::REPORTS) >> 16 & 0xffff, config.queues)?;
        let slot = self.free_slot(queue)?;
        shared.step();
        // SAFETY: `try_words` resolved `moved` bytes, no more than the message has; the lock keeps
        // the entry.
        unsafe { message.carry(selected.memory, selected.moved) };
        shared.step();
        let event = Event {
            kind: EventKind::PutEnd,
            outcome: Outcome::Done,
            peer: shared.rank_at(message.initiator),
            portal: message.portal,
            bits: message.bits,
            header: message.header,
            requested_bytes: message.len,
            moved_bytes: selected.moved,
            offset_bytes: selected.offset,
            user: word(entry::USER),
            object: EntryHandle {
                index: entry,
                generation: (state >> 32) as u32,
            }
            .to_bits(),
            link: message.link,
        };
        if is_local {
            self.push(at + entry::OFFSET, next);
        }
        self.push(at + entry::PUTS, word(entry::PUTS).wrapping_add(1));
        let bytes = word(entry::BYTES).wrapping_add(selected.moved);
        self.push(at + entry::BYTES, bytes);
        self.put_in(queue, slot, &event);
        self.rings = true;
        self.commit();
        Some(Arrival::done(selected.moved, selected.options))
    }
}
