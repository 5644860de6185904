//! Transfers in their simplest form, the errors of those that have none, and the place of the
//! peer's side here.

use super::super::core::Engine;
use super::super::events::OpError;
use super::call::{PeerMemory, VisTransfer};
use super::copy::{self, Ways};
use super::grid::{Grid, Hull, Leaves, Side, hull};
use super::shape::{Part, Pieces, Shape, Strided, VisError};
use super::space::Space;
use super::walk::{Place, Runs};
use argonet_am::AmError;
use argonet_conduit::Conduit;

// spec T8: data with holes is packed once, into the message that carries it.
/// A transfer of at least one byte, in its simplest form.
pub(super) enum Plan<'a> {
    Grid(Grid),
    Pieces { to: Pieces<'a>, from: Pieces<'a> },
}

impl Plan<'_> {
    pub(super) fn side(&self, side: Side) -> Runs<'_> {
        match (self, side) {
            (Self::Grid(grid), side) => Runs::Lattice(grid.side(side)),
            (Self::Pieces { to, .. }, Side::To) => (*to).into(),
            (Self::Pieces { from, .. }, Side::From) => (*from).into(),
        }
    }

    /// # Safety
    /// With the ways added, the destination is writable and the source readable.
    pub(super) unsafe fn copy(&self, ways: Ways) {
        match self {
            // SAFETY: the caller's promise.
            Self::Grid(grid) => unsafe { copy::grid(grid, ways) },
            // SAFETY: the caller's promise.
            Self::Pieces { to, from } => unsafe { copy::pieces(*to, *from, ways) },
        }
    }
}

/// A place to begin at, and bytes from there on: all of a side.
const ALL: (Place, usize) = (
    Place {
        index: 0,
        within: 0,
    },
    usize::MAX,
);

impl<C: Conduit> Engine<C> {
    /// A transfer as a plan, all addresses of the peer's side, and its bytes; `None` if there are
    /// none.
    pub(super) fn vis_plan<'a>(
        &self,
        transfer: &VisTransfer<'a>,
    ) -> Result<Option<(Plan<'a>, Hull, usize)>, VisError> {
        let remote = transfer.direction.remote();
        match transfer.shape {
            Shape::Strided(shape) => {
                let Some(grid) = Grid::new(&shape) else {
                    return Ok(None);
                };
                let too_large = |leaves: Leaves| self.too_large(leaves.side, leaves.part);
                let to = hull(&shape, Side::To, |_| true).map_err(too_large)?;
                let from = hull(&shape, Side::From, |_| true).map_err(too_large)?;
                let last = Part::Dimension {
                    number: shape.counts.len().saturating_sub(1),
                    count: shape.counts.last().copied().unwrap_or(1),
                    stride: shape.to_strides.last().copied().unwrap_or(0),
                };
                let bytes = grid.bytes();
                let bytes = bytes.ok_or_else(|| self.too_large(Side::To, last))?;
                let hull = if remote == Side::To { to } else { from };
                Ok(Some((Plan::Grid(grid), hull, bytes)))
            }
            Shape::Pieces { to, from } => {
                let (to_runs, from_runs) = (Runs::from(to), Runs::from(from));
                let count = |runs: &Runs<'_>, side| {
                    let bytes = runs.bytes();
                    bytes.ok_or_else(|| self.too_large(side, Part::Entry(0)))
                };
                let bytes = count(&to_runs, Side::To)?;
                let other = count(&from_runs, Side::From)?;
                if bytes != other {
                    return Err(VisError::TotalsDiffer {
                        rank: self.rank,
                        to: bytes,
                        from: other,
                    });
                }
                let runs = if remote == Side::To {
                    to_runs
                } else {
                    from_runs
                };
                let hull = runs.hull();
                let hull = hull.map_err(|entry| self.too_large(remote, Part::Entry(entry)))?;
                Ok(hull.map(|hull| (Plan::Pieces { to, from }, hull, bytes)))
            }
        }
    }

    fn too_large(&self, side: Side, part: Part) -> VisError {
        VisError::TooLarge {
            rank: self.rank,
            side: side.name(),
            part,
        }
    }

    /// The distance from addresses of the peer's side to those here; `None` if they are not mapped
    /// here.
    pub(super) fn vis_way(
        &self,
        transfer: &VisTransfer<'_>,
        plan: &Plan<'_>,
        hull: Hull,
    ) -> Result<Option<isize>, OpError> {
        let VisTransfer {
            rank, direction, ..
        } = *transfer;
        let PeerMemory::Bound(endpoint) = transfer.memory else {
            return self.vis_segment(transfer, hull);
        };
        if rank != self.rank {
            return Ok(None);
        }
        let runs = plan.side(direction.remote());
        if let Err((range, outside)) = self.vis_own(Space(endpoint), &runs, ALL, direction.access())
        {
            let refusal = self.vis_refusal(direction, range, outside);
            self.fatal(&refusal.message(rank, rank));
        }
        Ok(Some(0))
    }

    fn vis_segment(
        &self,
        transfer: &VisTransfer<'_>,
        hull: Hull,
    ) -> Result<Option<isize>, OpError> {
        let rank = transfer.rank;
        let offset = self.offset_of(rank, hull.first as u64);
        match self.ensure_mapped(rank, offset, hull.len()) {
            Ok(true) => {
                let place = self.directory.resolve(rank, offset, hull.len());
                let place = place.map_or(0, |place| place.as_ptr().expose_provenance());
                Ok(Some(place.wrapping_sub(hull.first) as isize))
            }
            Ok(false) => Ok(None),
            Err(AmError::OutsideSegment { segment, .. }) => {
                Err(self.vis_outside(transfer, segment).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Says which part of a shape leaves the peer's segment.
    #[cold]
    fn vis_outside(&self, transfer: &VisTransfer<'_>, segment: u64) -> VisError {
        let (to, side) = (transfer.rank, transfer.direction.remote());
        let base = (self.segment_base)(to);
        let inside = |hull: Hull| {
            let offset = (hull.first as u64).wrapping_sub(base);
            let end = offset.checked_add(hull.len() as u64);
            end.is_some_and(|end| end <= segment)
        };
        let (part, hull) = match transfer.shape {
            Shape::Strided(shape) => outside_of(&shape, side, inside),
            Shape::Pieces { to, from } => {
                let runs = Runs::from(if side == Side::To { to } else { from });
                let mut walk = runs.all();
                let mut outside = (Part::Entry(0), None);
                while let Some((address, len)) = walk.now() {
                    let hull = Hull::of(address, len);
                    if !hull.is_some_and(inside) {
                        outside = (Part::Entry(walk.place().index), hull);
                        break;
                    }
                    walk.skip(len);
                }
                outside
            }
        };
        VisError::OutsideSegment {
            side: side.name(),
            part,
            address: hull.map_or(0, |hull| hull.first),
            len: hull.map_or(0, Hull::len),
            base,
            segment,
            from: self.rank,
            to,
        }
    }
}

fn outside_of(
    shape: &Strided<'_>,
    side: Side,
    inside: impl Fn(Hull) -> bool,
) -> (Part, Option<Hull>) {
    match hull(shape, side, inside) {
        Ok(hull) => (Part::Element, Some(hull)),
        Err(leaves) => (leaves.part, leaves.hull),
    }
}
