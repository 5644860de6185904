//! Operations that complete later: explicit ones with an event, implicit ones by category.
//!
//! An operation that is complete when it is injected takes no handle: its event is
//! [`Event::DONE`]. The handle table (spec P3) is used where a conduit answers
//! [`Injected::Pending`] or [`Injected::Local`].
#![allow(unsafe_code)]

use super::core::{Engine, Injection};
use super::thread::ThreadCtx;
use super::traced::span;
use super::vis::VisError;
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Completion, Conduit, Injected, OpToken, SMALL_PUT, SendError, ThreadMode};
use argonet_event::{
    Category, CategoryMask, Completions, Decision, Event, EventError, Exhausted, ExhaustionPolicy,
    NbiScope, NbiToken, ThreadCache,
};
use argonet_segment::bulk;
use argonet_trace::{Kind, What};
use core::cell::Cell;

/// Why an operation was not started, or an event cannot be waited for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// The operation itself, or where it was called.
    #[error(transparent)]
    Am(#[from] AmError),
    /// The event, or the implicit operations.
    #[error(transparent)]
    Event(#[from] EventError),
    /// An atomic operation on something that is no word.
    #[error(
        "rank {rank}: an atomic operation on {bytes} bytes at {place:#x} of rank {peer} is not aligned; pass a place that is a multiple of {bytes}"
    )]
    Unaligned {
        /// The rank.
        rank: JobRank,
        /// The rank of the memory.
        peer: JobRank,
        /// Address in it, or offset in its segment.
        place: u64,
        /// Size and alignment of the word.
        bytes: usize,
    },
    /// The shape of a non-contiguous transfer.
    #[error(transparent)]
    Shape(#[from] VisError),
    /// All handles are in use, and the caller does not want to wait.
    #[error("rank {rank}: {cause}")]
    NoHandle {
        /// The rank.
        rank: JobRank,
        /// How many there are.
        cause: Exhausted,
    },
}

/// A put or get of `len` bytes between this process's memory and a segment.
#[derive(Clone, Copy, Debug)]
pub enum Transfer {
    /// From `src` to the segment.
    Put {
        /// The rank of the segment.
        rank: JobRank,
        /// Where in it.
        offset: SegmentOffset,
        /// Readable for `len` bytes until local completion.
        src: *const u8,
        /// Bytes.
        len: usize,
    },
    /// From the segment to `dst`.
    Get {
        /// The rank of the segment.
        rank: JobRank,
        /// Where in it.
        offset: SegmentOffset,
        /// Writable for `len` bytes until completion.
        dst: *mut u8,
        /// Bytes.
        len: usize,
    },
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

impl Transfer {
    fn target(self) -> (JobRank, SegmentOffset, usize) {
        match self {
            Transfer::Put {
                rank, offset, len, ..
            }
            | Transfer::Get {
                rank, offset, len, ..
            } => (rank, offset, len),
        }
    }

    pub(super) fn is_put(self) -> bool {
        matches!(self, Transfer::Put { .. })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Transfer::Put { .. } => "a put",
            Transfer::Get { .. } => "a get",
        }
    }

    /// Whether a conduit may read its source after it has taken the transfer.
    fn reads_later(self) -> bool {
        matches!(self, Transfer::Put { len, .. } if len > SMALL_PUT)
    }

    fn parts(self) -> Completions {
        match self {
            Transfer::Put { .. } => Completions::BOTH,
            Transfer::Get { .. } => Completions::REMOTE,
        }
    }

    fn category(self) -> Category {
        match self {
            Transfer::Put { .. } => Category::Put,
            Transfer::Get { .. } => Category::Get,
        }
    }
}

impl<C: Conduit> Engine<C> {
    /// Does the transfer now if the segment is mapped here; says whether it did.
    ///
    /// # Safety
    /// The transfer's own memory is readable or writable for its length.
    #[inline(always)]
    unsafe fn transfer_directly(&self, transfer: Transfer) -> bool {
        let (rank, offset, len) = transfer.target();
        if len == 0 && rank.0 < self.size {
            return true;
        }
        let Some(place) = self.directory.resolve(rank, offset, len) else {
            return false;
        };
        match transfer {
            // SAFETY: the directory has checked the segment's side, the caller promises the other.
            Transfer::Put { src, .. } => unsafe { bulk::copy(place.as_ptr(), src, len) },
            // SAFETY: as above.
            Transfer::Get { dst, .. } => unsafe { bulk::copy(dst, place.as_ptr(), len) },
        }
        true
    }

    /// Starts a transfer and returns the event of its completion; [`leaf`](Self::leaf) gives that
    /// of its local completion.
    ///
    /// # Safety
    /// The transfer's own memory stays readable or writable until the completion that it names.
    ///
    /// # Errors
    /// The error of the transfer or the calling context; with [`Injection::Immediate`] also that
    /// there is no room or no handle.
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
        unsafe { self.start_far(ctx, transfer, injection) }
    }

    /// # Safety
    /// As [`start`](Self::start).
    #[cold]
    #[inline(never)]
    unsafe fn start_far(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<Event, OpError> {
        // SAFETY: the caller's promise.
        if self.extend(transfer)? && unsafe { self.transfer_directly(transfer) } {
            return Ok(Event::DONE);
        }
        let event = self.handle(ctx, transfer.parts(), injection)?;
        let op = OpToken {
            handle: event.raw(),
            implicit: false,
        };
        // SAFETY: the caller's promise.
        match unsafe { self.launch(ctx, transfer, op, injection) } {
            Ok(Injected::Pending) => Ok(event),
            Ok(Injected::Local) => {
                self.complete(op, Completion::Local, 1);
                Ok(event)
            }
            outcome => {
                ctx.with_cache(&self.events, |cache| self.events.cancel(cache, event))?;
                outcome.map(|_| Event::DONE)
            }
        }
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
        unsafe { self.start_implicit_far(ctx, transfer, injection) }
    }

    /// # Safety
    /// As [`start_implicit`](Self::start_implicit).
    #[cold]
    #[inline(never)]
    unsafe fn start_implicit_far(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        injection: Injection,
    ) -> Result<LocalCompletion, OpError> {
        // SAFETY: the caller's promise.
        if self.extend(transfer)? && unsafe { self.transfer_directly(transfer) } {
            return Ok(LocalCompletion::Done);
        }
        let local = transfer.reads_later();
        let token = self.implicit(ctx, |scope| {
            let token = scope.initiate(transfer.category(), 1)?;
            if local && let Err(error) = scope.initiate(Category::Lc, 1) {
                self.events.complete_nbi(token, 1)?;
                return Err(error);
            }
            Ok(token)
        })?;
        let op = OpToken {
            handle: token.raw(),
            implicit: true,
        };
        // SAFETY: the caller's promise.
        match unsafe { self.launch(ctx, transfer, op, injection) } {
            Ok(Injected::Pending) => Ok(LocalCompletion::Pending),
            Ok(Injected::Local) => {
                if local {
                    self.complete(op, Completion::Local, 1);
                }
                Ok(LocalCompletion::Done)
            }
            outcome => {
                self.events.complete_nbi(token, 1)?;
                if local {
                    self.events
                        .complete_nbi(token.with_category(Category::Lc), 1)?;
                }
                outcome.map(|_| LocalCompletion::Done)
            }
        }
    }

    /// Extends the mapping of a segment that has grown; whether anything is mapped of it.
    fn extend(&self, transfer: Transfer) -> Result<bool, AmError> {
        let (rank, offset, len) = transfer.target();
        self.reach_or_far(rank, offset, len)
    }

    /// Gives a transfer to the conduit, waiting for room.
    ///
    /// # Safety
    /// As [`start`](Self::start).
    pub(super) unsafe fn launch(
        &self,
        ctx: &ThreadCtx,
        transfer: Transfer,
        op: OpToken,
        injection: Injection,
    ) -> Result<Injected, OpError> {
        let (peer, ..) = transfer.target();
        let mut wait = self.waiting_unannounced(Waiting::on(WaitFor::Room, peer));
        loop {
            let outcome = match transfer {
                Transfer::Put {
                    rank,
                    offset,
                    src,
                    len,
                } => {
                    // SAFETY: the caller's promise.
                    unsafe { self.conduit.put(rank, offset, src, len, op) }
                }
                Transfer::Get {
                    rank,
                    offset,
                    dst,
                    len,
                } => {
                    // SAFETY: the caller's promise.
                    unsafe { self.conduit.get(rank, offset, dst, len, op) }
                }
            };
            match outcome {
                Ok(injected) => return Ok(injected),
                Err(SendError::Message(error)) => return Err(error.into()),
                Err(_) if injection == Injection::Immediate => {
                    let (to, ..) = transfer.target();
                    return Err(AmError::Full {
                        from: self.rank,
                        to,
                    }
                    .into());
                }
                Err(_) => _ = wait.pause(ctx),
            }
        }
    }

    /// A handle for an operation; at the limit the policy decides.
    pub(super) fn handle(
        &self,
        ctx: &ThreadCtx,
        parts: Completions,
        injection: Injection,
    ) -> Result<Event, OpError> {
        let policy = ExhaustionPolicy {
            mode: match self.mode {
                ThreadMode::Seq => argonet_event::ThreadMode::Seq,
                ThreadMode::Parsync => argonet_event::ThreadMode::ParSync,
                ThreadMode::Par => argonet_event::ThreadMode::Par,
            },
            immediate: injection == Injection::Immediate,
            rank: self.rank,
        };
        let mut first = None;
        let mut wait = self.waiting_unannounced(Waiting::new(WaitFor::Handle));
        loop {
            let taken = ctx.with_cache(&self.events, |cache| self.events.alloc(cache, parts));
            let cause = match taken {
                Ok(event) => return Ok(event),
                Err(cause) => cause,
            };
            let now = (self.clock)();
            match policy.decide(now, *first.get_or_insert(now), cause) {
                Decision::Retry => _ = wait.pause(ctx),
                Decision::SayImmediate => {
                    return Err(OpError::NoHandle {
                        rank: self.rank,
                        cause,
                    });
                }
                Decision::Fatal(error) => self.fatal(&error.to_string()),
            }
        }
    }

    /// A conduit reports a completion.
    pub(super) fn complete(&self, op: OpToken, completion: Completion, count: u32) {
        let outcome = if op.implicit {
            let token = NbiToken::from_raw(op.handle);
            let token = match completion {
                Completion::Local => token.with_category(Category::Lc),
                Completion::Remote => token,
            };
            self.events.complete_nbi(token, count)
        } else {
            let completion = match completion {
                Completion::Local => argonet_event::Completion::Local,
                Completion::Remote => argonet_event::Completion::Remote,
            };
            self.events
                .complete(Event::from_raw(op.handle), completion, count)
        };
        if let Err(error) = outcome {
            let name = self.conduit.name();
            self.fatal(&format!(
                "the {name} conduit completed an operation wrongly: {error}"
            ));
        }
    }

    /// The event of the local completion of `root`, or of a category of an access region.
    ///
    /// # Errors
    /// [`EventError`] for an event that is stale or has no such leaf.
    pub fn leaf(&self, root: Event, category: Category) -> Result<Event, EventError> {
        self.events.query_leaf(root, category)
    }

    /// Polls once, and says whether the event is complete; if so it is gone.
    ///
    /// # Errors
    /// A stale event; a call from inside a handler.
    pub fn test(&self, ctx: &ThreadCtx, event: Event) -> Result<bool, OpError> {
        if event.is_done() {
            return Ok(true);
        }
        self.poll(ctx)?;
        Ok(ctx.with_cache(&self.events, |cache| self.events.test(cache, event))?)
    }

    /// Says whether the event is complete, without a poll; if so it is gone.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    #[inline]
    pub fn peek(&self, ctx: &ThreadCtx, event: Event) -> Result<bool, OpError> {
        if event.is_done() {
            return Ok(true);
        }
        self.look_at(ctx, |cache| self.events.test(cache, event))
    }

    /// Says whether at least one of the events is complete, without a poll; complete ones become
    /// [`Event::DONE`].
    ///
    /// So it does if all are so already.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn peek_some(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<bool, OpError> {
        self.look_at(ctx, |cache| self.events.test_some(cache, events))
    }

    /// Says whether all events are complete, without a poll; complete ones become
    /// [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn peek_all(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<bool, OpError> {
        self.look_at(ctx, |cache| self.events.test_all(cache, events))
    }

    /// Says whether this thread's implicit operations of these categories are complete, without a
    /// poll.
    ///
    /// # Errors
    /// As [`wait_implicit`](Self::wait_implicit).
    pub fn peek_implicit(&self, ctx: &ThreadCtx, mask: CategoryMask) -> Result<bool, OpError> {
        self.look_at(ctx, |cache| self.events.nbi(cache).test(mask))
    }

    /// Whether this thread has no implicit operation of these categories outstanding and is in no
    /// access region, so that there is nothing to wait for.
    ///
    /// Neither polls nor changes anything, and may be called in a handler.
    #[must_use]
    pub fn is_idle(&self, ctx: &ThreadCtx, mask: CategoryMask) -> bool {
        let idle = ctx.look_at_cache(|cache| self.events.nbi(cache).test(mask) == Ok(true));
        idle.unwrap_or(true)
    }

    /// A test without a poll.
    #[inline]
    fn look_at(
        &self,
        ctx: &ThreadCtx,
        test: impl FnOnce(&ThreadCache) -> Result<bool, EventError>,
    ) -> Result<bool, OpError> {
        ctx.permit("a test", self.rank)?;
        let mut span = span(ctx, Kind::TestSync);
        let done = ctx.with_cache(&self.events, test)?;
        if let Some(span) = &mut span {
            span.describe(What::Value(done.into()));
        }
        Ok(done)
    }

    /// Polls until the event is complete.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    #[inline]
    pub fn wait(&self, ctx: &ThreadCtx, event: Event) -> Result<(), OpError> {
        if event.is_done() {
            return Ok(());
        }
        self.wait_for(ctx, |cache| self.events.test(cache, event))
    }

    /// Polls until an operation on memory that the caller has only lent is complete.
    ///
    /// A wait that fails ends the job: to return would give the memory back while the operation
    /// still reads or writes it.
    #[inline]
    pub(super) fn wait_or_end(&self, ctx: &ThreadCtx, event: Event) {
        if let Err(error) = self.wait(ctx, event) {
            self.cannot_wait(&error);
        }
    }

    #[cold]
    #[inline(never)]
    fn cannot_wait(&self, error: &OpError) -> ! {
        self.fatal(&format!(
            "a blocking operation has begun and cannot be waited for: {error}"
        ))
    }

    /// Polls until at least one of the events is complete; complete ones become [`Event::DONE`].
    ///
    /// Returns at once if all are so already.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_some(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| self.events.test_some(cache, events))
    }

    /// Polls until all events are complete; all become [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_all(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| self.events.test_all(cache, events))
    }

    /// Polls until this thread's implicit operations of these categories are complete.
    ///
    /// # Errors
    /// A call inside an access region or a handler.
    pub fn wait_implicit(&self, ctx: &ThreadCtx, mask: CategoryMask) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| self.events.nbi(cache).test(mask))
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
        ctx.permit(transfer.name(), self.rank)?;
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

    /// Polls until the puts that count for the thread's access region, or else for its implicit
    /// operations, are locally complete.
    ///
    /// # Errors
    /// A call inside a handler, and nothing else.
    pub fn wait_local(&self, ctx: &ThreadCtx) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| Ok(self.events.nbi(cache).is_local()))
    }

    /// Polls until this thread's implicit operations outside of access regions are complete.
    ///
    /// # Errors
    /// A call inside a handler, and nothing else.
    pub fn wait_outside(&self, ctx: &ThreadCtx) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| {
            Ok(self.events.nbi(cache).test_outside(CategoryMask::ALL))
        })
    }

    /// Polls once, and says whether this thread's implicit operations of these categories are
    /// complete.
    ///
    /// # Errors
    /// As [`wait_implicit`](Self::wait_implicit).
    pub fn test_implicit(&self, ctx: &ThreadCtx, mask: CategoryMask) -> Result<bool, OpError> {
        self.poll(ctx)?;
        Ok(self.implicit(ctx, |scope| scope.test(mask))?)
    }

    /// Begins an access region: this thread's implicit operations count for it from now on.
    ///
    /// # Errors
    /// A region is open already; a call inside a handler.
    pub fn begin_region(&self, ctx: &ThreadCtx) -> Result<(), OpError> {
        ctx.permit("an access region", self.rank)?;
        Ok(self.implicit(ctx, |scope| scope.begin_region())?)
    }

    /// Ends the access region and returns the event of all that was started in it.
    ///
    /// # Errors
    /// No region is open; a call inside a handler.
    pub fn end_region(&self, ctx: &ThreadCtx) -> Result<Event, OpError> {
        ctx.permit("an access region", self.rank)?;
        Ok(self.implicit(ctx, |scope| scope.end_region())?)
    }

    /// Calls `f` with this thread's implicit operations.
    pub(super) fn implicit<R>(&self, ctx: &ThreadCtx, f: impl FnOnce(NbiScope<'_>) -> R) -> R {
        ctx.with_cache(&self.events, |cache| f(self.events.nbi(cache)))
    }

    fn wait_for(
        &self,
        ctx: &ThreadCtx,
        mut test: impl FnMut(&ThreadCache) -> Result<bool, EventError>,
    ) -> Result<(), OpError> {
        let _span = span(ctx, Kind::WaitSync);
        let mut outcome = Ok(false);
        self.wait_until(ctx, Waiting::new(WaitFor::Operations), || {
            outcome = ctx.with_cache(&self.events, &mut test);
            !matches!(outcome, Ok(false))
        })?;
        outcome?;
        Ok(())
    }
}
