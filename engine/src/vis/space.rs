//! The memory of a rank that messages of other ranks may reach, as they name it, and whether all
//! that they name lies in it.

use super::super::bound::{Access, Range, Refusal};
use super::super::core::Engine;
use super::super::limits::internal;
use super::super::regions::Outside;
use super::call::{Direction, PeerMemory};
use super::grid::Hull;
use super::walk::{Place, Runs};
use argonet_base::SegmentOffset;
use argonet_conduit::Conduit;

/// An endpoint's number, or the one that stands for the attached segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Space(pub(super) u32);

impl Space {
    pub(super) const SEGMENT: Self = Self(Range::SEGMENT);

    pub(super) fn of(memory: PeerMemory) -> Self {
        match memory {
            PeerMemory::Segment => Self::SEGMENT,
            PeerMemory::Bound(endpoint) => Self(endpoint),
        }
    }
}

impl Space {
    /// A range as messages name it.
    pub(super) fn range(self, hull: Hull) -> Range {
        Range {
            endpoint: self.0,
            address: hull.first as u64,
            len: hull.len() as u64,
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Checks that all runs lie in memory of this process that may be used so.
    ///
    /// If not all addresses between them may be used, checks the runs of `most` bytes from a place
    /// on one by one. The error names the range that may not be used.
    pub(super) fn vis_own(
        &self,
        space: Space,
        runs: &Runs<'_>,
        (from, most): (Place, usize),
        access: Access,
    ) -> Result<(), (Range, Outside)> {
        let hull = match runs.hull() {
            Ok(Some(hull)) => hull,
            Ok(None) => return Ok(()),
            Err(_) => Hull {
                first: 0,
                end: usize::MAX,
            },
        };
        let Err(outside) = self.vis_own_range(space, hull, access) else {
            return Ok(());
        };
        let everything = self.regions().is_everything(space.0);
        if matches!(runs, Runs::Lattice(_)) && !everything {
            return Err((space.range(hull), outside));
        }
        // Nothing, or memory that the transfer does not use, may lie between the pieces.
        let (mut walk, mut seen) = (runs.walk(from), 0);
        while seen < most
            && let Some((address, len)) = walk.now()
        {
            let end = address.saturating_add(len);
            let hull = Hull {
                first: address,
                end,
            };
            let checked = self.vis_own_range(space, hull, access);
            checked.map_err(|outside| (space.range(hull), outside))?;
            walk.skip(len);
            seen += len;
        }
        Ok(())
    }

    fn vis_own_range(&self, space: Space, hull: Hull, access: Access) -> Result<(), Outside> {
        if space != Space::SEGMENT {
            return self.own(space.range(hull), access).map(|_| ());
        }
        let SegmentOffset(offset) = self.offset_of(self.rank, hull.first as u64);
        let place = { &self.directory }.resolve(self.rank, SegmentOffset(offset), hull.len());
        place.map(|_| ()).ok_or_else(|| Outside::Segment {
            address: (self.segment_base)(self.rank),
            len: self.directory.attached_bytes(self.rank),
        })
    }

    /// The distance from addresses of a space to those of this process.
    pub(super) fn vis_own_way(&self, space: Space) -> isize {
        match space {
            Space::SEGMENT => self.segment_delta(self.rank),
            _ => 0,
        }
    }

    pub(super) fn vis_refusal(
        &self,
        direction: Direction,
        range: Range,
        outside: Outside,
    ) -> Refusal {
        Refusal {
            what: match direction {
                Direction::Put => internal::VIS_PUT,
                Direction::Get => internal::VIS_GET,
            },
            range,
            outside,
        }
    }
}
