//! Delivery of a message at the interface of the target.
//!
//! The initiator executes it, under the target's lock.

use super::message::{Action, Message};
use super::records::{self, entry, portal};
use super::search::Selected;
use super::shared::{DROPS, Shared};
use super::transaction::Transaction;
use crate::portals::{EntryHandle, Event, EventKind, Outcome};
use core::sync::atomic::Ordering;

/// Longest data that is moved under the lock.
///
/// More would keep others out for longer than a second transaction costs.
pub(super) const UNDER_LOCK_BYTES: u64 = 4096;

/// The outcome of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::portals) struct Arrival {
    pub(in crate::portals) outcome: Outcome,
    pub(in crate::portals) moved: u64,
    /// Whether the target lets it be acknowledged.
    pub(in crate::portals) acknowledged: bool,
}

impl Arrival {
    pub(in crate::portals) const fn failed(outcome: Outcome) -> Self {
        Self {
            outcome,
            moved: 0,
            acknowledged: true,
        }
    }

    #[inline]
    pub(super) const fn done(moved: u64, options: u64) -> Self {
        Self {
            outcome: Outcome::Done,
            moved,
            acknowledged: options & records::ACK_DISABLE == 0,
        }
    }
}

impl Shared {
    /// Carries a message to its entry.
    ///
    /// # Safety
    /// The action's memory is valid for the message's length, as [`Message::carry`] wants it.
    #[inline]
    pub(super) unsafe fn carry(&self, place: u32, message: &Message) -> Arrival {
        // SAFETY: the caller's promise.
        if let Some(arrival) = unsafe { self.carry_direct(place, message) } {
            self.direct.fetch_add(1, Ordering::Relaxed);
            return arrival;
        }
        self.matched.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.deliver(place, message) }
    }

    /// # Safety
    /// As [`carry`](Self::carry).
    unsafe fn deliver(&self, place: u32, message: &Message) -> Arrival {
        // Before the lock: the holder of a place may be waiting for the lock.
        let claim = (message.len > UNDER_LOCK_BYTES).then(|| self.claim());
        let mut transaction = self.transaction(place);
        // SAFETY: the caller's promise.
        if let Some(arrival) = unsafe { transaction.deliver_brief(message) } {
            return arrival;
        }
        let selected = match transaction.admit(message) {
            Ok(selected) => selected,
            Err(arrival) => return arrival,
        };
        transaction.begin_operation(&selected, message);
        if let Some(claim) = claim {
            transaction.promise_end(selected.entry);
            claim.begin(&mut transaction, &selected, message);
            transaction.commit();
            drop(transaction);
            self.step();
            // SAFETY: the search resolved `moved` bytes, no more than the message has; the
            // announced operation keeps the entry.
            unsafe { message.carry(selected.memory, selected.moved) };
            self.step();
            let mut transaction = self.transaction(place);
            claim.end(&mut transaction, Outcome::Done);
            transaction.commit();
        } else {
            self.step();
            // SAFETY: as above; the lock keeps the entry.
            unsafe { message.carry(selected.memory, selected.moved) };
            self.step();
            let event = transaction.end_of(&selected, message);
            transaction.end_operation(selected.entry, event, false);
            transaction.commit();
        }
        Arrival::done(selected.moved, selected.options)
    }
}

impl Transaction<'_> {
    /// The entry that a message goes to, or its outcome otherwise.
    pub(super) fn admit(&mut self, message: &Message) -> Result<Selected, Arrival> {
        let portal = self
            .shared
            .region
            .layout
            .portal(self.place, message.portal.0);
        let state = self.get(portal + portal::STATE);
        if state & portal::ALLOCATED == 0 || state & portal::ENABLED == 0 {
            self.count_up(DROPS, 1);
            self.commit();
            return Err(Arrival::failed(Outcome::Refused));
        }
        let found = if self.shared.faults.nothing_matches() {
            Ok(None)
        } else {
            self.search(message)
        };
        let flow_control = state & portal::FLOW_CONTROL != 0;
        match found {
            Err(_) => Err(Arrival::failed(Outcome::Corrupt)),
            Ok(Some(selected)) if !flow_control || self.has_room_for(selected.entry) => {
                Ok(selected)
            }
            Ok(None) if !flow_control => {
                self.count_up(DROPS, 1);
                self.commit();
                Err(Arrival::failed(Outcome::NoMatch))
            }
            Ok(_) => {
                self.count_up(DROPS, 1);
                self.disable(message);
                self.commit();
                Err(Arrival::failed(Outcome::Disabled))
            }
        }
    }

    /// Whether all events of one operation on an entry have room: start, end, and that it leaves
    /// its list.
    fn has_room_for(&self, entry: u32) -> bool {
        let (queue, _) = self.reports(entry);
        self.has_room(queue, 3)
    }

    /// Keeps room for the end of an operation.
    pub(super) fn promise_end(&mut self, index: u32) {
        let at = self.shared.region.layout.entry(self.place, index);
        let (Some(queue), _) = self.reports(index) else {
            return;
        };
        if self.get(at + entry::OPTIONS) & records::END_EVENTS != 0 {
            self.promise(queue);
        }
    }

    /// Makes a portal refuse messages, and reports that to its queue.
    fn disable(&mut self, message: &Message) {
        let at = self
            .shared
            .region
            .layout
            .portal(self.place, message.portal.0);
        let state = self.get(at + portal::STATE);
        self.set(at + portal::STATE, state & !portal::ENABLED);
        self.close_lists();
        let queues = self.shared.region.layout.config.queues;
        if let Some(queue) = records::index(state >> 32, queues) {
            let event = Event {
                kind: EventKind::Disabled,
                outcome: Outcome::Disabled,
                peer: self.shared.rank_at(message.initiator),
                portal: message.portal,
                bits: message.bits,
                header: message.header,
                requested_bytes: message.len,
                moved_bytes: 0,
                offset_bytes: message.offset,
                user: 0,
                object: 0,
                link: message.link,
            };
            self.post(queue, &event);
        }
    }

    pub(super) fn end_of(&self, selected: &Selected, message: &Message) -> Event {
        Event {
            kind: message.kinds().1,
            outcome: Outcome::Done,
            peer: self.shared.rank_at(message.initiator),
            portal: message.portal,
            bits: message.bits,
            header: message.header,
            requested_bytes: message.len,
            moved_bytes: selected.moved,
            offset_bytes: selected.offset,
            user: 0,
            object: 0,
            link: message.link,
        }
    }

    /// An operation takes its room and its part of the threshold; the entry leaves its list if that
    /// was the last, as receive buffers do (spec P8).
    pub(super) fn begin_operation(&mut self, selected: &Selected, message: &Message) {
        let at = self.shared.region.layout.entry(self.place, selected.entry);
        let options = selected.options;
        let which = match message.action {
            Action::Put { .. } => entry::PUTS,
            Action::Get { .. } => entry::GETS,
            Action::Atomic { .. } => entry::ATOMICS,
        };
        self.add(at + which, 1);
        let mut used_up = false;
        let left = self.get(at + entry::LEFT);
        if left != u64::MAX {
            self.set(at + entry::LEFT, left - 1);
            used_up = left == 1;
        }
        if options & records::LOCAL != 0 {
            let offset = selected.offset + selected.moved;
            self.set(at + entry::OFFSET, offset);
            let free = self.get(at + entry::LEN).saturating_sub(offset);
            used_up |= free < self.get(at + entry::MIN_FREE);
        }
        if options & records::START_EVENTS != 0
            && let (Some(queue), _) = self.reports(selected.entry)
        {
            let end = self.end_of(selected, message);
            let start = Event {
                kind: message.kinds().0,
                moved_bytes: 0,
                user: self.get(at + entry::USER),
                object: self.object(selected.entry),
                ..end
            };
            self.post(queue, &start);
        }
        if used_up && options & records::AUTO_UNLINK != 0 {
            self.cut(selected.entry);
            if let (Some(queue), _) = self.reports(selected.entry) {
                // For the event of that, which may have to wait for operations under way.
                self.promise(queue);
            }
        }
    }

    /// Reports an operation's end, and the entry's, if it has left its list and nothing is pending.
    ///
    /// `promised`: room was kept for the first, as it always is for the second.
    pub(super) fn end_operation(&mut self, index: u32, event: Event, promised: bool) {
        let at = self.shared.region.layout.entry(self.place, index);
        let options = self.get(at + entry::OPTIONS);
        let (queue, counter) = self.reports(index);
        let event = Event {
            user: self.get(at + entry::USER),
            object: self.object(index),
            ..event
        };
        self.add(at + entry::BYTES, event.moved_bytes);
        if let Some(counter) = counter {
            let bytes = (options & records::COUNT_BYTES != 0).then_some(event.moved_bytes);
            self.count_event(counter, bytes, event.outcome == Outcome::Done);
        }
        if let Some(queue) = queue
            && options & records::END_EVENTS != 0
        {
            if promised {
                self.post_promised(queue, &event);
            } else {
                self.post(queue, &event);
            }
        }
        let gone = self.get(at + entry::STATE) & entry::LINKED == 0;
        if gone && self.get(at + entry::PENDING) == 0 {
            if let Some(queue) = queue {
                let unlink = Event {
                    kind: EventKind::Unlink,
                    outcome: Outcome::Done,
                    ..event
                };
                self.post_promised(queue, &unlink);
            }
            self.free_entry(index);
        }
    }

    /// The handle of an entry, as events name it.
    fn object(&self, index: u32) -> u64 {
        let at = self.shared.region.layout.entry(self.place, index);
        let generation = (self.get(at + entry::STATE) >> 32) as u32;
        EntryHandle { index, generation }.to_bits()
    }
}
