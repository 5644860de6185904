//! Operations under way, named by 24 bits.

use crate::conduit::OpToken;
use crate::owned::Owned;
use crate::threads::ThreadMode;
use crate::wire::UserPlace;
use argonet_base::JobRank;
use argonet_base::kept::Kept;
use argonet_nic::portals::{DescriptorHandle, PortalIndex};

/// Bits of a handle that are its place; the others say how often that was used before.
const PLACE_BITS: u32 = 16;

/// Source and target of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) to: JobRank,
    pub(super) portal: PortalIndex,
    /// There.
    pub(super) offset: u64,
    /// Bytes that are not moved yet.
    pub(super) len: u64,
    /// Of the whole operation.
    pub(super) total: u64,
    pub(super) lid: u32,
    pub(super) object: DescriptorHandle,
    /// In the descriptor.
    pub(super) from: u64,
    pub(super) gets: bool,
}

impl Transfer {
    /// Bytes that the interface moves at once.
    pub(super) fn part(&self, most: u64) -> u64 {
        self.len.min(most)
    }

    /// The rest when so much of it was moved; `None` if there is none.
    pub(super) fn rest(&self, moved: u64) -> Option<Self> {
        let len = self.len.checked_sub(moved).filter(|len| *len > 0)?;
        Some(Self {
            offset: self.offset + moved,
            from: self.from + moved,
            len,
            ..*self
        })
    }
}

/// The holder of the memory here.
// spec P3: the three cases of put and get.
#[derive(Debug)]
pub(super) enum Source {
    /// The segment (RARSRC).
    Segment,
    /// A chunk of ReqSB that the data passes through.
    Bounce(u32),
    /// The slot of a large medium.
    Slot(u32),
    /// A temporary descriptor (TMPMD), with its memory where that is the conduit's.
    Temporary(DescriptorHandle, Option<Kept<u8>>),
}

/// The report when it is complete.
#[derive(Debug)]
pub(super) enum Then {
    /// A put, whose local part is reported with the remote part or was reported before.
    Put(OpToken, bool),
    /// A get, and where to if it passes through a chunk.
    Get(OpToken, UserPlace),
    /// The data half of a message, and the request whose local part is reported.
    Half(Option<OpToken>),
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) transfer: Transfer,
    pub(super) source: Source,
    pub(super) then: Then,
}

/// Operations of a rank: as many as there are tickets, each of which holds one.
pub(super) struct Table(Owned<Places>);

struct Places {
    places: Vec<(u8, Option<Operation>)>,
    free: Vec<u32>,
}

impl Table {
    pub(super) fn new(mode: ThreadMode, count: u32) -> Self {
        Self(Owned::new(
            mode,
            Places {
                places: (0..count).map(|_| (0, None)).collect(),
                free: (0..count).rev().collect(),
            },
        ))
    }

    /// Keeps an operation; its handle.
    ///
    /// `None` without a place, which a caller with a ticket never gets.
    pub(super) fn begin(&self, operation: Operation) -> Option<u32> {
        let mut table = self.0.lock();
        let place = table.free.pop()?;
        let (generation, kept) = table.places.get_mut(place as usize)?;
        *kept = Some(operation);
        Some(u32::from(*generation) << PLACE_BITS | place)
    }

    /// How many are kept.
    pub(super) fn count(&self) -> u32 {
        let table = self.0.lock();
        (table.places.len() - table.free.len()) as u32
    }

    /// The transfer of an operation; `None` if there is no such one.
    pub(super) fn transfer(&self, handle: u32) -> Option<Transfer> {
        let mut table = self.0.lock();
        Some(table.find(handle)?.1.as_ref()?.transfer)
    }

    /// Takes an operation out.
    pub(super) fn end(&self, handle: u32) -> Option<Operation> {
        let mut table = self.0.lock();
        let (generation, kept) = table.find(handle)?;
        let operation = kept.take()?;
        *generation = generation.wrapping_add(1);
        table.free.push(handle & ((1 << PLACE_BITS) - 1));
        Some(operation)
    }
}

impl Places {
    fn find(&mut self, handle: u32) -> Option<&mut (u8, Option<Operation>)> {
        let place = (handle & ((1 << PLACE_BITS) - 1)) as usize;
        let kept = self.places.get_mut(place)?;
        (u32::from(kept.0) == handle >> PLACE_BITS).then_some(kept)
    }
}
