//! Operations of this rank that events will report.
//!
//! An event at the initiator has 64 bits of the initiator's and little else, so the data of the
//! trait's event about the operation is kept here, under the number that the library carries in
//! those bits.

use super::abi;
use super::outcome;
use super::queue::Report;
use crate::portals::slots::Slots;
use crate::portals::{DescriptorHandle, Event, EventKind, NicError, Outcome, Target};
use argonet_base::JobRank;
use std::collections::VecDeque;

/// Kinds of events as bits.
pub(super) const SEND: u8 = 1;
pub(super) const ACK: u8 = 2;
pub(super) const REPLY: u8 = 4;

/// A descriptor of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) handle: DescriptorHandle,
    pub(super) user: u64,
    pub(super) offset: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The source, if `SEND` or `ACK` are awaited.
    pub(super) sends: Option<Side>,
    /// Where the answer goes, if `REPLY` is awaited.
    pub(super) receives: Option<Side>,
    pub(super) target: Target,
    pub(super) header: u64,
    pub(super) requested: u64,
    /// Which events will come.
    pub(super) awaits: u8,
}

struct Kept {
    operation: Operation,
    link: u64,
    /// Kinds of events that were reported before they came.
    reported: u8,
}

pub(super) struct Outstanding {
    operations: Slots<Kept>,
    /// By descriptor: of how many operations it is a side.
    pending: Vec<u32>,
    links: u64,
}

fn number(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

impl Outstanding {
    pub(super) fn new(rank: JobRank, limit: u32) -> Self {
        Self {
            operations: Slots::new(rank, "operation with events", limit),
            pending: Vec::new(),
            links: 0,
        }
    }

    fn sides(operation: &Operation) -> impl Iterator<Item = usize> + use<> {
        let index = |side: Side| side.handle.index as usize;
        operation
            .sends
            .map(index)
            .into_iter()
            .chain(operation.receives.map(index))
    }

    /// Keeps an operation until its last event; its number.
    pub(super) fn begin(&mut self, operation: Operation) -> Result<u64, NicError> {
        self.operations.room()?;
        for side in Self::sides(&operation) {
            if self.pending.len() <= side {
                self.pending.resize(side + 1, 0);
            }
            self.pending[side] += 1;
        }
        self.links += 1;
        let (index, generation) = self.operations.insert(Kept {
            operation,
            link: self.links,
            reported: 0,
        });
        Ok(number(index, generation))
    }

    /// Forgets an operation: it has ended, or has not begun after all.
    pub(super) fn end(&mut self, number: u64) {
        let kept = self.operations.remove(number as u32, (number >> 32) as u32);
        if let Some(kept) = kept {
            for side in Self::sides(&kept.operation) {
                self.pending[side] -= 1;
            }
        }
    }

    /// Whether events of operations of this descriptor are to come.
    pub(super) fn has(&self, descriptor: DescriptorHandle) -> bool {
        let index = descriptor.index as usize;
        self.pending.get(index).is_some_and(|count| *count != 0)
    }

    /// Forgets all operations of a descriptor, whose events were dropped.
    pub(super) fn forget(&mut self, descriptor: DescriptorHandle) {
        let of = |side: Option<Side>| side.is_some_and(|side| side.handle == descriptor);
        let numbers: Vec<u64> = self
            .operations
            .entries()
            .filter(|(_, _, kept)| of(kept.operation.sends) || of(kept.operation.receives))
            .map(|(index, generation, _)| number(index, generation))
            .collect();
        numbers.into_iter().for_each(|number| self.end(number));
    }

    /// Translates an event at the initiator.
    ///
    /// `SendEnd` comes before `Ack` also where the library has them the other way round.
    ///
    /// Events of forgotten operations are passed over.
    pub(super) fn event(&mut self, raw: &abi::RawEvent, ready: &mut VecDeque<Report>) {
        let (index, generation) = (raw.user as u32, (raw.user >> 32) as u32);
        let Ok(kept) = self.operations.get_mut(index, generation) else {
            return;
        };
        let bit = match raw.kind {
            abi::EVENT_SEND => SEND,
            abi::EVENT_ACK => ACK,
            _ => REPLY,
        };
        let (outcome, operation) = (outcome::of(raw.fail), kept.operation);
        if bit == ACK && operation.awaits & SEND != 0 && kept.reported & SEND == 0 {
            kept.reported |= SEND;
            ready.extend(kept.event(SEND, Outcome::Done, operation.requested));
        }
        if kept.reported & bit == 0 {
            let moved = if bit == SEND {
                operation.requested
            } else if outcome == Outcome::Done {
                raw.moved
            } else {
                0
            };
            ready.extend(kept.event(bit, outcome, moved));
        }
        kept.operation.awaits &= !bit;
        if kept.operation.awaits == 0 {
            self.end(raw.user);
        }
    }
}

impl Kept {
    fn event(&self, bit: u8, outcome: Outcome, moved_bytes: u64) -> Option<Report> {
        let operation = &self.operation;
        let (side, kind) = match bit {
            SEND => (operation.sends, EventKind::SendEnd),
            ACK => (operation.sends, EventKind::Ack),
            _ => (operation.receives, EventKind::ReplyEnd),
        };
        let side = side?;
        Some(Report::Event(Event {
            kind,
            outcome,
            peer: operation.target.rank,
            portal: operation.target.portal,
            bits: operation.target.bits,
            header: operation.header,
            requested_bytes: operation.requested,
            moved_bytes,
            offset_bytes: side.offset,
            user: side.user,
            object: side.handle.to_bits(),
            link: self.link,
        }))
    }
}
