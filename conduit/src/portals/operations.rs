//! Operations under way.

use crate::conduit::OpToken;
use crate::keyed::Keyed;
use crate::owned::Owned;
use crate::wire::UserPlace;
use argonet_base::JobRank;
use argonet_base::kept::Kept;
use argonet_nic::portals::{DescriptorHandle, PortalIndex};

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

/// Operations of a rank by their handles: as many as there are tickets, each of which holds one.
// spec P3: 24 bits name an operation.
pub(super) type Table = Owned<Keyed<Operation, 8>>;
