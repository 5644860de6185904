//! Operations that complete later: explicit ones with an event, implicit ones by category.
//!
//! An operation that is complete when it is injected takes no handle: its event is
//! [`Event::DONE`]. The handle table (spec P3) is used where a conduit answers
//! [`Injected::Pending`](argonet_conduit::Injected::Pending) or
//! [`Injected::Local`](argonet_conduit::Injected::Local).

use super::core::{Engine, Injection};
use super::thread::ThreadCtx;
use super::traced::span;
use super::vis::VisError;
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::{Completion, Conduit, OpToken, ThreadMode};
use argonet_event::{
    Category, CategoryMask, Completions, Decision, Event, EventError, Exhausted, ExhaustionPolicy,
    NbiScope, NbiToken, ThreadCache,
};
use argonet_trace::{Kind, What};

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

impl<C: Conduit> Engine<C> {
    /// A handle for an operation; at the limit the policy decides.
    pub(super) fn handle(
        &self,
        ctx: &ThreadCtx,
        completions: Completions,
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
            let taken = ctx.with_cache(&self.events, |cache| self.events.alloc(cache, completions));
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
        let done = ctx.with_cache(&self.events, |cache| self.events.test(cache, event))?;
        self.unless_ended(event, done)
    }

    /// The outcome of a test: an operation that a loss has ended is an error, once.
    #[inline(always)]
    fn unless_ended(&self, event: Event, done: bool) -> Result<bool, OpError> {
        if done {
            self.unless_failed(event.raw())?;
        }
        Ok(done)
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
        let done = self.look_at(ctx, |cache| self.events.test(cache, event))?;
        self.unless_ended(event, done)
    }

    /// Says whether at least one of the events is complete, without a poll; complete ones become
    /// [`Event::DONE`].
    ///
    /// So it does if all are so already.
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn peek_some(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<bool, OpError> {
        let before = self.before_losses(events);
        let done = self.look_at(ctx, |cache| self.events.test_some(cache, events))?;
        self.unless_any_failed(&before, events)?;
        Ok(done)
    }

    /// Says whether all events are complete, without a poll; complete ones become
    /// [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn peek_all(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<bool, OpError> {
        let before = self.before_losses(events);
        let done = self.look_at(ctx, |cache| self.events.test_all(cache, events))?;
        self.unless_any_failed(&before, events)?;
        Ok(done)
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
        self.wait_for(ctx, |cache| self.events.test(cache, event))?;
        self.unless_failed(event.raw())
    }

    /// Polls until an operation on memory that the caller has only lent is complete.
    ///
    /// A wait that fails otherwise ends the job: to return would give the memory back while the
    /// operation still reads or writes it.
    ///
    /// # Errors
    /// [`AmError::PeerLost`], and the operation has ended.
    #[inline]
    pub(super) fn wait_or_end(&self, ctx: &ThreadCtx, event: Event) -> Result<(), OpError> {
        match self.wait(ctx, event) {
            Ok(()) => Ok(()),
            Err(error @ OpError::Am(AmError::PeerLost { .. })) => Err(error),
            Err(error) => self.cannot_wait(&error),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn cannot_wait(&self, error: &OpError) -> ! {
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
        let before = self.before_losses(events);
        self.wait_for(ctx, |cache| self.events.test_some(cache, events))?;
        self.unless_any_failed(&before, events)
    }

    /// Polls until all events are complete; all become [`Event::DONE`].
    ///
    /// # Errors
    /// As [`test`](Self::test).
    pub fn wait_all(&self, ctx: &ThreadCtx, events: &mut [Event]) -> Result<(), OpError> {
        let before = self.before_losses(events);
        self.wait_for(ctx, |cache| self.events.test_all(cache, events))?;
        self.unless_any_failed(&before, events)
    }

    /// Polls until this thread's implicit operations of these categories are complete.
    ///
    /// # Errors
    /// A call inside an access region or a handler.
    pub fn wait_implicit(&self, ctx: &ThreadCtx, mask: CategoryMask) -> Result<(), OpError> {
        self.wait_for(ctx, |cache| self.events.nbi(cache).test(mask))
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
