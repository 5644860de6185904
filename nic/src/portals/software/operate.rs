//! Operations, at their initiator: their checks before they begin, their execution, the report of
//! their end.

use super::bound::{Local, Table};
use super::deliver::Arrival;
use super::message::{Action, Message};
use super::shared::Shared;
use super::transaction::Transaction;
use crate::portals::interface::not_synchronous;
use crate::portals::{
    Ack, Answer, AtomicKind, AtomicOp, Descriptor, DescriptorHandle, Event, EventKind, NicError,
    Outcome, Part, PortalIndex, Target,
};
use argonet_base::JobRank;

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) message: Message,
    /// The place of its target.
    pub(super) place: u32,
    /// Its source, and whether the target is to acknowledge it.
    pub(super) sends: Option<(Local, Ack)>,
    /// Where the answer goes.
    pub(super) receives: Option<Local>,
}

/// How the target combines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combine {
    pub(super) op: AtomicOp,
    pub(super) kind: AtomicKind,
    pub(super) compare: u64,
}

/// Longest atomic operation: it is carried under the lock.
pub(in crate::portals) const ATOMIC_BYTES: u64 = super::deliver::UNDER_LOCK_BYTES;

/// Access of one rank's operations to the file and to its descriptors.
pub(super) struct Initiator<'a> {
    pub(super) shared: &'a Shared,
    pub(super) table: &'a Table,
}

impl Initiator<'_> {
    fn rank(&self) -> JobRank {
        self.shared.rank()
    }

    fn invalid(&self, what: &'static str) -> NicError {
        NicError::Invalid {
            rank: self.rank(),
            what,
        }
    }

    /// All ranks have as many portals.
    pub(super) fn check_portal(&self, target: &Target) -> Result<(), NicError> {
        let config = &self.shared.region.layout.config;
        if target.portal.0 >= config.portals {
            return Err(NicError::BadPortal {
                rank: self.rank(),
                portal: target.portal.0,
                portals: config.portals,
            });
        }
        Ok(())
    }

    fn place(&self, target: &Target) -> Result<u32, NicError> {
        self.check_portal(target)?;
        self.shared.place_of(target.rank).ok_or(NicError::BadRank {
            rank: self.rank(),
            peer: target.rank,
            ranks: self.shared.ranks(),
        })
    }

    fn check_ack(&self, ack: Ack, options: &Descriptor) -> Result<(), NicError> {
        match ack {
            Ack::Event if options.queue.is_none() => {
                Err(self.invalid("an acknowledgement by event of a descriptor without a queue"))
            }
            Ack::Count if options.count.is_none() => {
                Err(self.invalid("an acknowledgement by count of a descriptor without a counter"))
            }
            _ => Ok(()),
        }
    }

    fn message(
        &self,
        action: Action,
        target: &Target,
        header: u64,
        len: u64,
        link: u64,
    ) -> Message {
        Message {
            action,
            initiator: self.shared.place,
            portal: target.portal,
            bits: target.bits,
            header,
            offset: target.offset_bytes,
            len,
            link,
        }
    }

    #[inline]
    pub(super) fn put(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
    ) -> Result<(), NicError> {
        let place = self.place(target)?;
        self.start(self.put_to(place, source, part, ack, target, header)?);
        Ok(())
    }

    /// A put to the rank at a place, which may be that of a rank of another host.
    #[inline]
    pub(super) fn put_to(
        &self,
        place: u32,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
    ) -> Result<Operation, NicError> {
        let local = self.table.begin(source, part)?;
        if let Err(error) = self.check_ack(ack, &local.options) {
            self.table.abandon(&local);
            return Err(error);
        }
        let action = Action::Put { from: local.memory };
        Ok(Operation {
            message: self.message(action, target, header, part.len_bytes, local.link),
            place,
            sends: Some((local, ack)),
            receives: None,
        })
    }

    #[inline]
    pub(super) fn get(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: &Target,
    ) -> Result<(), NicError> {
        let place = self.place(target)?;
        self.start(self.get_from(place, destination, part, target)?);
        Ok(())
    }

    /// A get from the rank at a place, as [`put_to`](Self::put_to).
    #[inline]
    pub(super) fn get_from(
        &self,
        place: u32,
        destination: DescriptorHandle,
        part: Part,
        target: &Target,
    ) -> Result<Operation, NicError> {
        let local = self.table.begin(destination, part)?;
        let action = Action::Get { to: local.memory };
        Ok(Operation {
            message: self.message(action, target, 0, part.len_bytes, local.link),
            place,
            sends: None,
            receives: Some(local),
        })
    }

    #[inline]
    pub(super) fn put_answered(
        &self,
        source: DescriptorHandle,
        part: Part,
        target: &Target,
        header: u64,
    ) -> Result<Answer, NicError> {
        let place = self.place(target)?;
        self.check_synchronous()?;
        let begun = self.put_to(place, source, part, Ack::None, target, header)?;
        Ok(self.answer(&begun))
    }

    #[inline]
    pub(super) fn get_answered(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: &Target,
    ) -> Result<Answer, NicError> {
        let place = self.place(target)?;
        self.check_synchronous()?;
        let begun = self.get_from(place, destination, part, target)?;
        Ok(self.answer(&begun))
    }

    /// Faults may hold operations back.
    #[inline]
    fn check_synchronous(&self) -> Result<(), NicError> {
        match self.shared.faults.is_active() {
            true => Err(not_synchronous(self.rank())),
            false => Ok(()),
        }
    }

    /// Carries an operation to its end.
    #[inline]
    fn answer(&self, operation: &Operation) -> Answer {
        let arrival = self.go(operation);
        self.finish(operation, arrival);
        Answer {
            outcome: arrival.outcome,
            moved_bytes: arrival.moved,
        }
    }

    fn check_atomic(
        &self,
        part: Part,
        target: &Target,
        how: &Combine,
        fetches: bool,
    ) -> Result<(), NicError> {
        let (len, offset) = (part.len_bytes, target.offset_bytes);
        let objection = how
            .kind
            .objection(how.op, len, offset, fetches, ATOMIC_BYTES);
        objection.map_or(Ok(()), |wrong| Err(self.invalid(wrong)))
    }

    pub(super) fn atomic(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
        how: Combine,
    ) -> Result<(), NicError> {
        self.check_atomic(part, target, &how, false)?;
        let place = self.place(target)?;
        self.start(self.atomic_at(place, source, part, ack, target, header, how)?);
        Ok(())
    }

    /// An atomic operation at the rank at a place, as [`put_to`](Self::put_to).
    ///
    /// The arguments were checked.
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(super) fn atomic_at(
        &self,
        place: u32,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
        how: Combine,
    ) -> Result<Operation, NicError> {
        let local = self.table.begin(source, part)?;
        if let Err(error) = self.check_ack(ack, &local.options) {
            self.table.abandon(&local);
            return Err(error);
        }
        let action = how.action(&local, None);
        Ok(Operation {
            message: self.message(action, target, header, part.len_bytes, local.link),
            place,
            sends: Some((local, ack)),
            receives: None,
        })
    }

    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(super) fn fetch_atomic(
        &self,
        fetched: DescriptorHandle,
        fetched_offset: u64,
        source: DescriptorHandle,
        part: Part,
        target: &Target,
        header: u64,
        how: Combine,
    ) -> Result<(), NicError> {
        self.check_atomic(part, target, &how, true)?;
        let place = self.place(target)?;
        let begun = self.fetch_at(
            place,
            fetched,
            fetched_offset,
            source,
            part,
            target,
            header,
            how,
        )?;
        self.start(begun);
        Ok(())
    }

    /// A fetching atomic operation, as [`atomic_at`](Self::atomic_at).
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(super) fn fetch_at(
        &self,
        place: u32,
        fetched: DescriptorHandle,
        fetched_offset: u64,
        source: DescriptorHandle,
        part: Part,
        target: &Target,
        header: u64,
        how: Combine,
    ) -> Result<Operation, NicError> {
        let local = self.table.begin(source, part)?;
        let answer = Part {
            offset_bytes: fetched_offset,
            ..part
        };
        let receives = match self.table.begin(fetched, answer) {
            Ok(receives) => receives,
            Err(error) => {
                self.table.abandon(&local);
                return Err(error);
            }
        };
        let action = how.action(&local, Some(&receives));
        Ok(Operation {
            message: self.message(action, target, header, part.len_bytes, local.link),
            place,
            sends: Some((local, Ack::None)),
            receives: Some(receives),
        })
    }

    #[inline]
    fn start(&self, operation: Operation) {
        if !self.shared.faults.is_active() {
            self.finish(&operation, self.go(&operation));
            return;
        }
        self.progress();
        if let Some(operation) = self.shared.faults.hold(operation) {
            self.go_faulty(operation);
        }
    }

    fn go_faulty(&self, operation: Operation) {
        let arrival = self.go(&operation);
        if let Some(operation) = self.shared.faults.hold_answer(operation, arrival) {
            self.finish(&operation, arrival);
        }
    }

    #[inline]
    fn go(&self, operation: &Operation) -> Arrival {
        // SAFETY: the action names parts of bound descriptors, checked against their length; their
        // binder keeps them while operations are under way, and they are until `finish`.
        unsafe { self.shared.carry(operation.place, &operation.message) }
    }

    /// Lets operations go on that a fault holds back.
    pub(super) fn progress(&self) {
        let mut new_call = true;
        while let Some(held) = self.shared.faults.release(new_call) {
            new_call = false;
            match held.arrival {
                Some(arrival) => self.finish(&held.operation, arrival),
                None => self.go_faulty(held.operation),
            }
        }
    }

    /// Ends an operation: events and counts in one transaction, then the descriptors.
    #[inline]
    pub(super) fn finish(&self, operation: &Operation, arrival: Arrival) {
        let sent = operation
            .sends
            .map(|(local, _)| (local, self.table.end(&local, arrival.moved)));
        let received = operation
            .receives
            .map(|local| (local, self.table.end(&local, arrival.moved)));
        if !is_reported(
            operation,
            sent.is_some_and(|s| s.1),
            received.is_some_and(|r| r.1),
        ) {
            return;
        }
        let mut transaction = self.shared.transaction(self.shared.place);
        let whole = (Outcome::Done, operation.message.len);
        let moved = (arrival.outcome, arrival.moved);
        if let (Some((local, released)), Some((_, ack))) = (sent, operation.sends) {
            let mut post = |kind, end| self.post(&mut transaction, operation, &local, kind, end);
            if local.options.events.start {
                post(EventKind::SendStart, (Outcome::Done, 0));
            }
            if local.options.events.end {
                post(EventKind::SendEnd, whole);
            }
            if ack == Ack::Event && arrival.acknowledged {
                post(EventKind::Ack, moved);
            }
            if released {
                post(EventKind::Unlink, (Outcome::Done, 0));
            }
            if ack == Ack::Count && arrival.acknowledged {
                count(&mut transaction, &local, &arrival);
            }
        }
        if let Some((local, released)) = received {
            let mut post = |kind, end| self.post(&mut transaction, operation, &local, kind, end);
            if local.options.events.start {
                post(EventKind::ReplyStart, (Outcome::Done, 0));
            }
            if local.options.events.end {
                post(EventKind::ReplyEnd, moved);
            }
            if released {
                post(EventKind::Unlink, (Outcome::Done, 0));
            }
            count(&mut transaction, &local, &arrival);
        }
        transaction.commit();
    }

    /// Reports an operation to the queue of a descriptor, if it has one.
    #[inline]
    fn post(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &Operation,
        local: &Local,
        kind: EventKind,
        (outcome, moved): (Outcome, u64),
    ) {
        if let Some(queue) = local.options.queue {
            let event = self.event(operation, local, kind, outcome, moved);
            transaction.post(queue.index, &event);
        }
    }

    fn event(
        &self,
        operation: &Operation,
        local: &Local,
        kind: EventKind,
        outcome: Outcome,
        moved_bytes: u64,
    ) -> Event {
        let message = &operation.message;
        Event {
            kind,
            outcome,
            peer: self.shared.rank_at(operation.place),
            portal: PortalIndex(message.portal.0),
            bits: message.bits,
            header: message.header,
            requested_bytes: message.len,
            moved_bytes,
            offset_bytes: local.offset,
            user: local.options.user,
            object: local.handle.to_bits(),
            link: message.link,
        }
    }
}

/// Counts the end of an operation where its descriptor has a counter.
#[inline]
fn count(transaction: &mut Transaction<'_>, local: &Local, arrival: &Arrival) {
    if let Some(count) = local.options.count {
        let bytes = count.bytes.then_some(arrival.moved);
        let is_done = arrival.outcome == Outcome::Done;
        transaction.count_event(count.counter.index, bytes, is_done);
    }
}

/// Whether the end of an operation makes an event or counts, so that the own interface must be
/// locked.
#[inline]
fn is_reported(operation: &Operation, sent_released: bool, received_released: bool) -> bool {
    let events = |local: &Local, released| {
        let options = &local.options;
        options.queue.is_some() && (options.events.start || options.events.end || released)
    };
    operation
        .sends
        .is_some_and(|(local, ack)| ack != Ack::None || events(&local, sent_released))
        || operation
            .receives
            .is_some_and(|local| local.options.count.is_some() || events(&local, received_released))
}

impl Combine {
    fn action(self, from: &Local, to: Option<&Local>) -> Action {
        Action::Atomic {
            from: from.memory,
            to: to.map(|local| local.memory),
            op: self.op,
            kind: self.kind,
            compare: self.compare,
        }
    }
}
