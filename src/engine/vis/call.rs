//! What callers ask for, and what becomes of it: a copy at once where the peer's memory is mapped here, else messages or
//! puts and gets of pieces.

use super::super::core::{Engine, Outlook};
use super::super::events::OpError;
use super::super::far::{Access, Range};
use super::super::thread::ThreadCtx;
use super::super::watch::span;
use super::copy::{self, Ways};
use super::far::Journey;
use super::grid::{Grid, Hull, Leaves, Side, hull};
use super::notice::Notice;
use super::shape::{Part, Pieces, Shape, Strided, VisError};
use super::space::Space;
use super::walk::{Place, Runs};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::{Conduit, OpToken};
use argonet_event::{Category, Event, NbiToken, Parts};
use argonet_trace::Kind;

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From here to the peer.
    Put,
    /// From the peer to here.
    Get,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Put => "a non-contiguous put",
            Self::Get => "a non-contiguous get",
        }
    }

    /// The side that is the peer's.
    pub(super) fn remote(self) -> Side {
        match self {
            Self::Put => Side::To,
            Self::Get => Side::From,
        }
    }

    pub(super) fn category(self) -> Category {
        match self {
            Self::Put => Category::Put,
            Self::Get => Category::Get,
        }
    }

    /// How the peer's memory is used.
    pub(super) fn access(self) -> Access {
        match self {
            Self::Put => Access::ReadWrite,
            Self::Get => Access::Read,
        }
    }
}

/// Which memory of a peer is meant. Addresses in it are those of the peer's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerMemory {
    /// Its segment.
    Segment,
    /// What it has bound to this endpoint.
    Bound(u32),
}

/// A non-contiguous put or get.
#[derive(Clone, Copy, Debug)]
pub struct VisTransfer<'a> {
    /// Which way.
    pub direction: Direction,
    /// Whose memory the other side is.
    pub rank: JobRank,
    /// Which of its memory.
    pub memory: PeerMemory,
    /// What moves.
    pub shape: Shape<'a>,
    /// What the peer is told when all of a put lies there.
    pub notice: Option<Notice>,
}

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
    unsafe fn copy(&self, ways: Ways) {
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

/// How an operation is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Explicitly,
    Implicitly,
}

impl<C: Conduit> Engine<C> {
    /// Does a non-contiguous put or get; complete, locally and remotely, on return.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    ///
    /// # Errors
    /// As [`vis_start`](Self::vis_start).
    pub unsafe fn vis(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        outlook: Outlook,
    ) -> Result<(), OpError> {
        let kinds = [Kind::Put, Kind::Get];
        // SAFETY: the caller's promise; this returns after completion.
        let event = unsafe { self.vis_begin(ctx, transfer, outlook, Counts::Explicitly, kinds) }?;
        if event.is_done() {
            return Ok(());
        }
        self.wait(ctx, event)
    }

    /// Starts a non-contiguous put or get and returns the event of its completion;
    /// [`leaf`](Self::leaf) gives that of a put's local completion. With [`Outlook::Immediate`] only
    /// the first message may be refused.
    ///
    /// A range that the peer has not bound ends the job; one outside of a segment that is mapped
    /// here is an error, and nothing has been moved.
    ///
    /// # Safety
    /// Addresses of this side have their provenance exposed. Those of a get's destination are writable until the
    /// event is complete, those of a put's source readable until its leaf of local completion is. Lists of pieces are
    /// there as long as the event is not complete; strides and counts are not needed after the call.
    ///
    /// # Errors
    /// [`VisError`], [`AmError::NoSuchRank`], a call from inside a handler; with [`Outlook::Immediate`] also that there
    /// is no room or no handle, and nothing has been sent then.
    pub unsafe fn vis_start(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        outlook: Outlook,
    ) -> Result<Event, OpError> {
        let kinds = [Kind::PutNb, Kind::GetNb];
        // SAFETY: the caller's promise.
        unsafe { self.vis_begin(ctx, transfer, outlook, Counts::Explicitly, kinds) }
    }

    /// [`vis_start`](Self::vis_start) of an operation that counts for the thread's access region, or else for its
    /// implicit operations.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start), until the implicit operations, or the region, are complete.
    ///
    /// # Errors
    /// As [`vis_start`](Self::vis_start).
    pub unsafe fn vis_start_implicit(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        outlook: Outlook,
    ) -> Result<(), OpError> {
        let kinds = [Kind::PutNbi, Kind::GetNbi];
        // SAFETY: the caller's promise.
        unsafe { self.vis_begin(ctx, transfer, outlook, Counts::Implicitly, kinds) }?;
        Ok(())
    }

    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_begin(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        outlook: Outlook,
        counts: Counts,
        kinds: [Kind; 2],
    ) -> Result<Event, OpError> {
        let VisTransfer {
            direction, rank, ..
        } = *transfer;
        self.permit_far(ctx, direction.name(), rank)?;
        let mut span = span(ctx, kinds[usize::from(direction == Direction::Get)]);
        // SAFETY: the caller's promise.
        let begun = unsafe { self.vis_do(ctx, transfer, outlook, counts) };
        if let Some(span) = &mut span {
            match &begun {
                Ok((_, bytes)) => span.tell(self.about_bytes(rank, *bytes, 0, 0)),
                Err(_) => span.forget(),
            }
        }
        Ok(begun?.0)
    }

    /// The event, and how many bytes there are.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_do(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        outlook: Outlook,
        counts: Counts,
    ) -> Result<(Event, usize), OpError> {
        let VisTransfer {
            direction,
            rank,
            memory,
            notice,
            ..
        } = *transfer;
        let Some((mut plan, hull, bytes)) = self.vis_plan(transfer)? else {
            self.vis_notify(ctx, rank, notice)?;
            return Ok((Event::DONE, 0));
        };
        if let Some(way) = self.vis_way(transfer, &plan, hull)? {
            if let Plan::Grid(grid) = &mut plan {
                grid.simplify(Side::To);
            }
            let ways = match direction {
                Direction::Put => Ways { to: way, from: 0 },
                Direction::Get => Ways { to: 0, from: way },
            };
            // SAFETY: the peer's side was checked and is mapped at that distance; ours is the caller's promise.
            unsafe { plan.copy(ways) };
            self.vis_notify(ctx, rank, notice)?;
            return Ok((Event::DONE, bytes));
        }
        if let Plan::Grid(grid) = &mut plan {
            grid.simplify(direction.remote());
        }
        let journey = Journey {
            direction,
            rank,
            space: Space::of(memory),
            bytes,
            notice,
        };
        // SAFETY: the caller's promise.
        let event = unsafe { self.vis_far(ctx, journey, &plan, outlook, counts) }?;
        Ok((event, bytes))
    }

    /// A transfer as a plan, all addresses of the peer's side, and its bytes; `None` if there are none.
    fn vis_plan<'a>(
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

    /// What has to be added to addresses of the peer's side to have them here; `None` if they are not mapped here.
    fn vis_way(
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
            self.fatal(&refusal.tell(rank, rank));
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
        match self.reach_or_far(rank, offset, hull.len()) {
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

    /// A token for an operation of so many parts, and its event if it has one of its own.
    pub(super) fn vis_token(
        &self,
        ctx: &ThreadCtx,
        counts: Counts,
        category: Category,
        (local, remote): (u32, u32),
        outlook: Outlook,
    ) -> Result<(OpToken, Event), OpError> {
        if counts == Counts::Explicitly {
            let event = self.handle(ctx, Parts::new(local, remote)?, outlook)?;
            let token = OpToken {
                handle: event.raw(),
                implicit: false,
            };
            return Ok((token, event));
        }
        let token = self.implicit(ctx, |scope| {
            let token = scope.initiate(category, remote)?;
            if local > 0
                && let Err(error) = scope.initiate(Category::Lc, local)
            {
                self.events.complete_nbi(token, remote)?;
                return Err(error);
            }
            Ok(token)
        })?;
        let op = OpToken {
            handle: token.raw(),
            implicit: true,
        };
        Ok((op, Event::DONE))
    }

    /// Takes a token back of which nothing has been sent.
    pub(super) fn vis_untoken(
        &self,
        ctx: &ThreadCtx,
        token: OpToken,
        (local, remote): (u32, u32),
    ) -> Result<(), OpError> {
        if !token.implicit {
            let event = Event::from_raw(token.handle);
            ctx.with_cache(&self.events, |cache| self.events.cancel(cache, event))?;
            return Ok(());
        }
        let token = NbiToken::from_raw(token.handle);
        self.events.complete_nbi(token, remote)?;
        if local > 0 {
            let token = token.with_category(Category::Lc);
            self.events.complete_nbi(token, local)?;
        }
        Ok(())
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
