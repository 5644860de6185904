//! Operations of ranks of other hosts at this one, whose data comes or goes in pieces.
//!
//! The process of the target carries them, so nothing is announced to others: if it dies, its
//! operations die, too. The entry counts them as pending and stays.

use super::away::{Asked, Request};
use super::deliver::{Arrival, UNDER_LOCK_BYTES};
use super::interface::Software;
use super::message::{Action, Message};
use super::records::entry;
use crate::portals::{Event, Outcome};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// An operation that has found its entry.
#[derive(Debug)]
pub(in crate::portals) struct Opened {
    entry: u32,
    /// Of the end.
    event: Event,
    options: u64,
    /// Where its data is or goes, `moved` bytes.
    ///
    /// Valid until it is closed.
    pub(in crate::portals) memory: NonNull<u8>,
    pub(in crate::portals) moved: u64,
}

// SAFETY: the pointer is into memory that the process shares with peers, which the entry keeps; it
// is accessed by `bulk`.
unsafe impl Send for Opened {}

impl Software {
    /// The message of a request; `None` for a portal that this rank has no place for.
    ///
    /// `data` is the memory that it brings or takes, `fetched` the place of the old elements.
    fn message(
        &self,
        request: &Request,
        from: JobRank,
        data: NonNull<u8>,
        fetched: NonNull<u8>,
    ) -> Option<Message> {
        let action = match request.asked {
            Asked::Put => Action::Put { from: data },
            Asked::Get => Action::Get { to: data },
            Asked::Atomic { op, kind } => Action::Atomic {
                from: data,
                to: None,
                op,
                kind,
                compare: 0,
            },
            Asked::Fetch { op, kind, compare } => Action::Atomic {
                from: data,
                to: Some(fetched),
                op,
                kind,
                compare,
            },
        };
        let portals = self.shared.region.layout.config.portals;
        (request.portal.0 < portals).then_some(Message {
            action,
            initiator: self.shared.source_place(from)?,
            portal: request.portal,
            bits: request.bits,
            header: request.header,
            offset: request.offset,
            len: request.len,
            link: request.link,
        })
    }

    /// Carries an operation whose data is all here.
    ///
    /// # Safety
    /// `data` is valid for reads of the request's length, `fetched` for writes of as much.
    pub(in crate::portals) unsafe fn arrive(
        &self,
        request: &Request,
        from: JobRank,
        data: NonNull<u8>,
        fetched: NonNull<u8>,
    ) -> Arrival {
        let Some(message) = self.message(request, from, data, fetched) else {
            return Arrival::failed(Outcome::Refused);
        };
        if message.len <= UNDER_LOCK_BYTES {
            // SAFETY: the caller's promise. The own place is one of the file.
            return unsafe { self.shared.carry(self.shared.place, &message) };
        }
        // Announcements are of operations that this rank has begun: their ends name it.
        match self.open(request, from) {
            Ok(opened) => {
                // SAFETY: the caller's promise; the entry has `moved` bytes there, no more than the
                // request, and stays until it is closed.
                unsafe { message.carry(opened.memory, opened.moved) };
                self.close(opened, Outcome::Done)
            }
            Err(arrival) => arrival,
        }
    }

    /// Finds the entry of a put or get whose data comes or goes in pieces, and reports its start.
    pub(in crate::portals) fn open(
        &self,
        request: &Request,
        from: JobRank,
    ) -> Result<Opened, Arrival> {
        // Nothing is moved here.
        let nowhere = NonNull::dangling();
        let message = self.message(request, from, nowhere, nowhere);
        let message = message.ok_or(Arrival::failed(Outcome::Refused))?;
        self.shared.matched.fetch_add(1, Ordering::Relaxed);
        let mut transaction = self.own();
        let selected = transaction.admit(&message)?;
        transaction.begin_operation(&selected, &message);
        transaction.promise_end(selected.entry);
        let at = self.shared.region.layout;
        let at = at.entry(self.shared.place, selected.entry);
        transaction.add(at + entry::PENDING, 1);
        transaction.commit();
        Ok(Opened {
            entry: selected.entry,
            event: transaction.end_of(&selected, &message),
            options: selected.options,
            memory: selected.memory,
            moved: selected.moved,
        })
    }

    /// Reports the end of an operation, of which all pieces have come or gone, or none will any
    /// more.
    pub(in crate::portals) fn close(&self, opened: Opened, outcome: Outcome) -> Arrival {
        let mut transaction = self.own();
        let at = self.shared.region.layout;
        let at = at.entry(self.shared.place, opened.entry);
        let pending = transaction.get(at + entry::PENDING);
        transaction.set(at + entry::PENDING, pending.saturating_sub(1));
        let moved_bytes = if outcome == Outcome::Done {
            opened.moved
        } else {
            0
        };
        let event = Event {
            outcome,
            moved_bytes,
            ..opened.event
        };
        transaction.end_operation(opened.entry, event, true);
        transaction.commit();
        Arrival::done(moved_bytes, opened.options)
    }
}
