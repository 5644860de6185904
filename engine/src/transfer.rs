//! Puts and gets of one piece of memory, blocking, explicit and implicit.
//!
//! A transfer whose memory is mapped here, or which the kernel may copy, is complete when the call
//! returns and takes no handle: its event is [`Event::DONE`]. The conduit takes those to other
//! segments; those to other bound memory go in messages to its owner.
#![allow(unsafe_code)]

use super::core::{Engine, Injection};
use super::events::OpError;
use super::location::Target;
use super::thread::ThreadCtx;
use super::token::Counts;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Completion, Conduit, Injected, OpToken, SMALL_PUT, SendError};
use argonet_event::{Category, Event};
use argonet_segment::bulk;
use core::cell::Cell;

/// The direction of a transfer, and this process's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// From here to the target: readable until local completion.
    Put(*const u8),
    /// From the target to here: writable until completion.
    Get(*mut u8),
}

impl Side {
    pub(super) fn is_put(self) -> bool {
        matches!(self, Self::Put(_))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Put(_) => "a put",
            Self::Get(_) => "a get",
        }
    }

    fn category(self) -> Category {
        match self {
            Self::Put(_) => Category::Put,
            Self::Get(_) => Category::Get,
        }
    }
}

/// A put or get of `len` bytes between this process's memory and that of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The memory of the rank.
    pub target: Target,
    /// This process's memory.
    pub side: Side,
    /// Bytes.
    pub len: usize,
}

/// How far the local completion of an implicit transfer is when the call that started it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalCompletion {
    /// The source of a put may be changed, the destination of a get may be read.
    Done,
    /// The memory is in use until [`Engine::wait_local`] has returned, or the operation is
    /// complete.
    Pending,
}

impl<C: Conduit> Engine<C> {
    /// Does the transfer now if the segment is mapped here; says whether it did.
    ///
    /// # Safety
    /// The transfer's own memory is readable or writable for its length.
    #[inline(always)]
    unsafe fn transfer_directly(&self, transfer: Transfer) -> bool {
        let Transfer { target, side, len } = transfer;
        let Target::Segment { rank, offset } = target else {
            return false;
        };
        if len == 0 && rank.0 < self.size {
            return true;
        }
        let Some(place) = self.directory.resolve(rank, offset, len) else {
            return false;
        };
        match side {
            // SAFETY: the directory has checked the segment's side, the caller promises the other.
            Side::Put(src) => unsafe { bulk::copy(place.as_ptr(), src, len) },
            // SAFETY: as above.
            Side::Get(dst) => unsafe { bulk::copy(dst, place.as_ptr(), len) },
        }
        true
    }

    /// Does a transfer that needs no message, also to a segment that has grown, or that the conduit
    /// does during the call; says whether it did.
    ///
    /// # Safety
    /// As [`transfer_directly`](Self::transfer_directly).
    pub(super) unsafe fn transfer_here(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
    ) -> Result<bool, AmError> {
        let Transfer { target, side, len } = transfer;
        match target {
            Target::Segment { rank, offset } => {
                if self.is_unmapped(rank) {
                    self.is_in_unmapped_segment(rank, offset, len)?;
                    // SAFETY: the caller's promise.
                    return Ok(unsafe {
                        match side {
                            Side::Put(src) => self.conduit.put_now(rank, offset, src, len),
                            Side::Get(dst) => self.conduit.get_now(rank, offset, dst, len),
                        }
                    });
                }
                let is_mapped = self.ensure_mapped(rank, offset, len)?;
                // SAFETY: the caller's promise.
                Ok(is_mapped && unsafe { self.transfer_directly(transfer) })
            }
            Target::Bound(place) => {
                self.permit_messages(ctx, side.name(), place.rank)?;
                // SAFETY: the caller's promise.
                Ok(unsafe { self.bound_here(place, side, len) })
            }
        }
    }

    /// Does a transfer; complete, locally and remotely, on return.
    ///
    /// # Safety
    /// The transfer's own memory is readable or writable for its length.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`], [`NoSuchRank`](AmError::NoSuchRank),
    /// [`Restricted`](AmError::Restricted).
    #[inline(always)]
    pub unsafe fn transfer(&self, ctx: &ThreadCtx, transfer: Transfer) -> Result<(), OpError> {
        if !ctx.is_free() {
            // SAFETY: the caller's promise.
            return unsafe { self.transfer_traced(ctx, transfer) };
        }
        // SAFETY: the caller's promise; the call returns after completion.
        let event = unsafe { self.start(ctx, transfer, Injection::Blocking) }?;
        if event.is_done() {
            return Ok(());
        }
        self.wait_or_end(ctx, event)
    }

    /// Starts a transfer and returns the event of its completion; [`leaf`](Self::leaf) gives that
    /// of its local completion.
    ///
    /// A range of bound memory that its owner refuses ends the job.
    ///
    /// # Safety
    /// The transfer's own memory stays readable or writable until the completion that its
    /// [`Side`] names.
    ///
    /// # Errors
    /// The error of the transfer or the calling context; with [`Injection::Immediate`] also that
    /// there is no room or no handle, and nothing has been sent then.
    #[inline(always)]
    pub unsafe fn start(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<Event, OpError> {
        if !ctx.is_free() {
            // SAFETY: the caller's promise.
            return unsafe { self.start_traced(ctx, transfer, injection) };
        }
        // SAFETY: the caller's promise.
        if unsafe { self.transfer_directly(transfer) } {
            return Ok(Event::DONE);
        }
        // SAFETY: the caller's promise.
        let started = unsafe { self.start_unmapped(ctx, transfer, Counts::Explicitly, injection) }?;
        Ok(started.0)
    }

    /// Starts an implicit transfer: it counts for the thread's access region if there is one, else
    /// for its implicit operations.
    ///
    /// Says whether its local completion is over already, as it is where the conduit has copied the
    /// payload.
    ///
    /// # Safety
    /// As [`start`](Self::start), until [`wait_implicit`](Self::wait_implicit) or the region's
    /// event says that it is complete.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[inline]
    pub unsafe fn start_implicit(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<LocalCompletion, OpError> {
        if !ctx.is_free() {
            // SAFETY: the caller's promise.
            return unsafe { self.start_implicit_traced(ctx, transfer, injection) };
        }
        // SAFETY: the caller's promise.
        if unsafe { self.transfer_directly(transfer) } {
            return Ok(LocalCompletion::Done);
        }
        // SAFETY: the caller's promise.
        let started = unsafe { self.start_unmapped(ctx, transfer, Counts::Implicitly, injection) }?;
        Ok(started.1)
    }

    /// Starts a transfer to memory that is not mapped here, or not yet; returns its event and how
    /// far its local completion is.
    ///
    /// # Safety
    /// As [`start`](Self::start) or [`start_implicit`](Self::start_implicit).
    #[cold]
    #[inline(never)]
    unsafe fn start_unmapped(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        counts: Counts,
        injection: Injection,
    ) -> Result<(Event, LocalCompletion), OpError> {
        // SAFETY: the caller's promise.
        if unsafe { self.transfer_here(ctx, transfer) }? {
            return Ok((Event::DONE, LocalCompletion::Done));
        }
        let Transfer { side, len, .. } = transfer;
        // Nothing waits for the local completion of a small implicit put.
        let is_counted = counts == Counts::Explicitly || len > SMALL_PUT;
        let local = u32::from(side.is_put() && is_counted);
        let (op, event) = self.token(ctx, counts, side.category(), (local, 1), injection)?;
        // SAFETY: the caller's promise.
        match unsafe { self.launch(ctx, transfer, op, injection) } {
            Ok(Injected::Pending) => Ok((event, LocalCompletion::Pending)),
            Ok(Injected::Local) => {
                if local > 0 {
                    self.complete(op, Completion::Local, local);
                }
                Ok((event, LocalCompletion::Done))
            }
            outcome => {
                self.untoken(ctx, op, (local, 1))?;
                outcome.map(|_| (Event::DONE, LocalCompletion::Done))
            }
        }
    }

    /// Gives a transfer to the conduit, or sends the messages that it goes in, waiting for room.
    ///
    /// # Safety
    /// As [`start`](Self::start), and bound memory has at least one byte.
    pub(super) unsafe fn launch(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        op: OpToken,
        injection: Injection,
    ) -> Result<Injected, OpError> {
        let Transfer { target, side, len } = transfer;
        let (rank, offset) = match target {
            Target::Segment { rank, offset } => (rank, offset),
            Target::Bound(place) => {
                // SAFETY: the caller's promise.
                unsafe { self.bound_send(ctx, place, side, len, injection, op) }?;
                return Ok(match side {
                    // The messages have the payload.
                    Side::Put(_) => Injected::Local,
                    Side::Get(_) => Injected::Pending,
                });
            }
        };
        let attempt = || match side {
            // SAFETY: the caller's promise.
            Side::Put(src) => unsafe { self.conduit.put(rank, offset, src, len, op) },
            // SAFETY: the caller's promise.
            Side::Get(dst) => unsafe { self.conduit.get(rank, offset, dst, len, op) },
        };
        match attempt() {
            Ok(injected) => Ok(injected),
            Err(error) => self.launch_later(ctx, rank, injection, error, attempt),
        }
    }

    /// Waits for room in the conduit after an `attempt` that gave `error`, and tries again.
    #[cold]
    #[inline(never)]
    fn launch_later(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        injection: Injection,
        mut error: SendError,
        attempt: impl Fn() -> Result<Injected, SendError>,
    ) -> Result<Injected, OpError> {
        let mut wait = self.waiting_unannounced(Waiting::on(WaitFor::Room, rank));
        loop {
            match error {
                SendError::Message(error) => {
                    drop(wait);
                    return Err(self.refusal(ctx, error, injection).into());
                }
                _ if injection == Injection::Immediate => {
                    let (from, to) = (self.rank, rank);
                    return Err(AmError::Full { from, to }.into());
                }
                _ => _ = wait.pause(ctx),
            }
            match attempt() {
                Ok(injected) => return Ok(injected),
                Err(again) => error = again,
            }
        }
    }

    /// Starts an implicit transfer for which [`wait_outside`](Self::wait_outside) waits if
    /// `started` says so afterwards: in an access region, and where the segment is mapped, it is
    /// complete on return.
    ///
    /// # Safety
    /// As [`start`](Self::start), until that has returned.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[inline]
    pub unsafe fn start_outside(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        started: &Cell<bool>,
    ) -> Result<(), OpError> {
        // SAFETY: the caller's promise.
        if unsafe { ctx.is_free() && self.transfer_directly(transfer) } {
            return Ok(());
        }
        // It may be the first call of its thread, which must be let in before it has handles.
        ctx.permit(transfer.side.name(), self.rank)?;
        if ctx.with_cache(&self.events, |cache| self.events.nbi(cache).in_region()) {
            // SAFETY: the caller's promise.
            return unsafe { self.transfer(ctx, transfer) };
        }
        // Before the call: if that panics, the operation may be under way.
        let started_before = started.replace(true);
        // SAFETY: the caller's promise.
        let outcome = unsafe { self.start_implicit(ctx, transfer, Injection::Blocking) };
        if outcome.is_err() {
            // A refused operation is not under way. A handler has all refused, and the end of its
            // scope must not wait.
            started.set(started_before);
        }
        outcome.map(|_| ())
    }
}
