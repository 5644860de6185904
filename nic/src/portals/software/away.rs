//! Operations of this rank for ranks of other hosts: this interface begins and ends them, another
//! one carries them.

use super::deliver::Arrival;
use super::interface::Software;
use super::message::Action;
use super::operate::{Combine, Operation};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, DescriptorHandle, NicError, Part, PortalIndex, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;

/// The operation that a target is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::portals) enum Asked {
    Put,
    Get,
    Atomic {
        op: AtomicOp,
        kind: AtomicKind,
    },
    /// An atomic operation of which the target sends back the old elements.
    Fetch {
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    },
}

/// All that the target learns of an operation, except its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::portals) struct Request {
    pub(in crate::portals) asked: Asked,
    pub(in crate::portals) portal: PortalIndex,
    pub(in crate::portals) bits: u64,
    pub(in crate::portals) header: u64,
    pub(in crate::portals) offset: u64,
    pub(in crate::portals) len: u64,
    pub(in crate::portals) link: u64,
}

/// An operation for a rank of another host that has begun.
///
/// Its descriptors stay until [`Software::end_away`].
#[derive(Clone, Copy, Debug)]
pub(in crate::portals) struct Away(Operation);

impl Away {
    pub(in crate::portals) fn request(&self) -> Request {
        let message = &self.0.message;
        let asked = match message.action {
            Action::Put { .. } => Asked::Put,
            Action::Get { .. } => Asked::Get,
            Action::Atomic {
                to: None, op, kind, ..
            } => Asked::Atomic { op, kind },
            Action::Atomic {
                op, kind, compare, ..
            } => Asked::Fetch { op, kind, compare },
        };
        Request {
            asked,
            portal: message.portal,
            bits: message.bits,
            header: message.header,
            offset: message.offset,
            len: message.len,
            link: message.link,
        }
    }

    /// Where the data is that it sends, as many bytes as it is long.
    pub(in crate::portals) fn source(&self) -> Option<NonNull<u8>> {
        self.0.sends.map(|(local, _)| local.memory)
    }

    /// Where the data goes that comes back, as many bytes as it is long.
    pub(in crate::portals) fn destination(&self) -> Option<NonNull<u8>> {
        self.0.receives.map(|local| local.memory)
    }

    /// Whether its end is reported only when the target has answered.
    pub(in crate::portals) fn is_answered(&self) -> bool {
        self.0.receives.is_some() || self.0.sends.is_some_and(|(_, ack)| ack != Ack::None)
    }
}

impl Software {
    /// Has operations of `ranks` ranks come, of which most are not in the file.
    pub(in crate::portals) fn reach(&mut self, ranks: u32) {
        self.shared.reach = ranks;
    }

    /// Whether a rank shares the file.
    #[inline]
    pub(in crate::portals) fn shares_memory(&self, rank: JobRank) -> bool {
        self.shared.place_of(rank).is_some()
    }

    /// The place of a rank that does not share the file.
    fn place_away(&self, target: &Target) -> Result<u32, NicError> {
        self.initiator().check_portal(target)?;
        let place = self.shared.source_place(target.rank);
        place.ok_or(NicError::BadRank {
            rank: self.shared.rank(),
            peer: target.rank,
            ranks: self.shared.reach,
        })
    }

    pub(in crate::portals) fn put_away(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
    ) -> Result<Away, NicError> {
        let place = self.place_away(target)?;
        let begun = self
            .initiator()
            .put_to(place, source, part, ack, target, header);
        begun.map(Away)
    }

    pub(in crate::portals) fn get_away(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: &Target,
    ) -> Result<Away, NicError> {
        let place = self.place_away(target)?;
        let begun = self.initiator().get_from(place, destination, part, target);
        begun.map(Away)
    }

    /// [`AtomicKind::objection`] has checked the arguments.
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(in crate::portals) fn atomic_away(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: &Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
    ) -> Result<Away, NicError> {
        let place = self.place_away(target)?;
        let how = Combine {
            op,
            kind,
            compare: 0,
        };
        let begun = self
            .initiator()
            .atomic_at(place, source, part, ack, target, header, how);
        begun.map(Away)
    }

    /// As [`atomic_away`](Self::atomic_away).
    #[allow(clippy::too_many_arguments, reason = "as the operation has them")]
    pub(in crate::portals) fn fetch_away(
        &self,
        fetched: DescriptorHandle,
        fetched_offset: u64,
        source: DescriptorHandle,
        part: Part,
        target: &Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    ) -> Result<Away, NicError> {
        let place = self.place_away(target)?;
        let how = Combine { op, kind, compare };
        let begun = self.initiator().fetch_at(
            place,
            fetched,
            fetched_offset,
            source,
            part,
            target,
            header,
            how,
        );
        begun.map(Away)
    }

    /// Ends an operation: makes its events and counts, and lets its descriptors go.
    pub(in crate::portals) fn end_away(&self, away: &Away, arrival: Arrival) {
        self.initiator().finish(&away.0, arrival);
    }

    /// Takes back that an operation has begun: nothing of it has left.
    pub(in crate::portals) fn abandon_away(&self, away: &Away) {
        let sent = away.0.sends.map(|(local, _)| local);
        for local in [sent, away.0.receives].into_iter().flatten() {
            self.table.abandon(&local);
        }
    }
}
