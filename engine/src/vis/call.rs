//! The calls for transfers, each done by a copy at once where the peer's memory is mapped here,
//! else by messages or by puts and gets of pieces.

use super::super::bound::Access;
use super::super::core::{Engine, Injection};
use super::super::events::OpError;
use super::super::thread::ThreadCtx;
use super::super::token::Counts;
use super::super::traced::span;
use super::copy::Ways;
use super::grid::Side;
use super::messages::Journey;
use super::notice::Notice;
use super::plan::Plan;
use super::shape::Shape;
use super::space::Space;
use argonet_base::JobRank;
use argonet_conduit::Conduit;
use argonet_event::{Category, Event};
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

/// Which memory of a peer is meant.
///
/// Addresses in it are those of the peer's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerMemory {
    /// Its segment.
    Segment,
    /// The memory that it has bound to this endpoint.
    Bound(u32),
}

/// A non-contiguous put or get.
#[derive(Clone, Copy, Debug)]
pub struct VisTransfer<'a> {
    /// Which way.
    pub direction: Direction,
    /// The rank whose memory the other side is.
    pub rank: JobRank,
    /// Which of its memory.
    pub memory: PeerMemory,
    /// The memory on both sides.
    pub shape: Shape<'a>,
    /// The notice that the peer gets when all of a put lies there.
    pub notice: Option<Notice>,
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
        injection: Injection,
    ) -> Result<(), OpError> {
        let kinds = [Kind::Put, Kind::Get];
        // SAFETY: the caller's promise; this returns after completion.
        let event = unsafe { self.vis_begin(ctx, transfer, injection, Counts::Explicitly, kinds) }?;
        if event.is_done() {
            return Ok(());
        }
        self.wait_or_end(ctx, event)
    }

    /// Starts a non-contiguous put or get and returns the event of its completion;
    /// [`leaf`](Self::leaf) gives that of a put's local completion.
    ///
    /// With [`Injection::Immediate`] only the first message may be refused.
    ///
    /// A range that the peer has not bound ends the job; one outside of a segment that is mapped
    /// here is an error, and nothing has been moved.
    ///
    /// # Safety
    /// Addresses of this side have their provenance exposed. The destination of a get is writable
    /// until the event is complete, the source of a put readable until its leaf of local completion
    /// is. Lists of pieces are there as long as the event is not complete; strides and counts are
    /// not needed after the call.
    ///
    /// # Errors
    /// [`VisError`](super::VisError), [`NoSuchRank`](argonet_am::AmError::NoSuchRank), a call from
    /// inside a handler; with [`Injection::Immediate`] also that there is no room or no handle, and
    /// nothing has been sent then.
    pub unsafe fn vis_start(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        injection: Injection,
    ) -> Result<Event, OpError> {
        let kinds = [Kind::PutNb, Kind::GetNb];
        // SAFETY: the caller's promise.
        unsafe { self.vis_begin(ctx, transfer, injection, Counts::Explicitly, kinds) }
    }

    /// [`vis_start`](Self::vis_start) of an operation that counts for the thread's access region,
    /// or else for its implicit operations.
    ///
    /// # Safety
    /// As [`vis_start`](Self::vis_start), until the implicit operations, or the region, are
    /// complete.
    ///
    /// # Errors
    /// As [`vis_start`](Self::vis_start).
    pub unsafe fn vis_start_implicit(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        injection: Injection,
    ) -> Result<(), OpError> {
        let kinds = [Kind::PutNbi, Kind::GetNbi];
        // SAFETY: the caller's promise.
        unsafe { self.vis_begin(ctx, transfer, injection, Counts::Implicitly, kinds) }?;
        Ok(())
    }

    /// # Safety
    /// As [`vis_start`](Self::vis_start).
    unsafe fn vis_begin(
        &self,
        ctx: &ThreadCtx,
        transfer: &VisTransfer<'_>,
        injection: Injection,
        counts: Counts,
        kinds: [Kind; 2],
    ) -> Result<Event, OpError> {
        let VisTransfer {
            direction, rank, ..
        } = *transfer;
        self.permit_messages(ctx, direction.name(), rank)?;
        let mut span = span(ctx, kinds[usize::from(direction == Direction::Get)]);
        // SAFETY: the caller's promise.
        let begun = unsafe { self.vis_do(ctx, transfer, injection, counts) };
        if let Some(span) = &mut span {
            match &begun {
                Ok((_, bytes)) => span.describe(self.about_bytes(rank, *bytes, 0, 0)),
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
        injection: Injection,
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
            // SAFETY: the peer's side was checked and is mapped at that distance; ours is the
            // caller's promise.
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
        let event = unsafe { self.vis_by_messages(ctx, journey, &plan, injection, counts) }?;
        Ok((event, bytes))
    }
}
