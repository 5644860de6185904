//! Client code that handlers leave to a later time, when it may communicate.
//!
//! A handler may not communicate, so the layer above keeps calls that do in a queue of its own, and
//! sets a mark here while any waits in it. Threads that poll, or wait for messages, then call the
//! layer's function after their handlers have returned. Threads that wait for room do not: they are
//! in the midst of a call that sends, and room comes without any client code.
//!
//! Such code may start operations and wait for those that need no more than handlers of others. It
//! may make no collective call, as the thread may be inside one, and while it runs its thread runs
//! none besides, whatever it waits for.
//!
//! # Draining
//!
//! Such code sends messages that make others run such code, so a drain is over only when no chain
//! goes on. A rank is *idle* when no such code waits or runs here, no handler has left anything to
//! be sent, and its conduit is quiescent: a network's when all that the rank has sent has been
//! handled, that of shared memory when the rank has taken all that was sent to it. Ranks enter
//! barriers, each when it is idle, and say whether they have run any such code since they were
//! idle before the one before.
//!
//! If none has, nothing of the kind is left. Say that each rank was idle at a time A, entered a
//! barrier, was idle again at B, and has run no such code in between. A message that calls for such
//! code was sent before its sender's A. Over a network it had been handled by then; in shared
//! memory it lay before its target when the barrier ended, so before the target's B. Either way the
//! target has run the code before its own A, or would not have been idle at B.
//!
//! Messages and replies of plain handlers need a barrier more. After the first one no rank sends
//! requests. When ranks enter the second one, each being idle, all requests have been handled and
//! so all replies are sent; when they enter the third one, those have been handled, too. The notice
//! of a non-contiguous put is a request that follows a reply: of a put that its rank has not waited
//! for it may come after the drain.

use super::background::{Background, kind};
use super::core::Engine;
use super::thread::ThreadCtx;
use super::tree::BarrierKind;
use argonet_am::AmError;
use argonet_boot::Waiting;
use argonet_conduit::{Conduit, ThreadMode};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Runs some of the code that waits; returns how much.
pub type RunDeferred = Box<dyn Fn() -> usize + Send + Sync>;

/// The function of the layer above, and what it has done.
#[derive(Default)]
pub(super) struct Deferred {
    run: OnceLock<RunDeferred>,
    /// Threads in the function.
    running: AtomicU32,
    /// How often the function has run something.
    ///
    /// Changed before `running` goes down (Release), so a drain that sees no thread there sees it.
    ran: AtomicU64,
    /// Whether nothing runs any more: survivors of a loss leave.
    is_closed: AtomicBool,
}

impl Deferred {
    /// How often the function has run something.
    pub(super) fn count(&self) -> u64 {
        self.ran.load(Ordering::Acquire)
    }
}

/// The mark that client code waits for a time when it may communicate.
///
/// The layer above changes it under the lock of its queue, so that the mark is there for as long as
/// anything waits in the queue.
#[derive(Clone)]
pub struct DeferredMark(Arc<Background>);

impl DeferredMark {
    /// Something waits; any thread may call it, also in a handler, that holds the queue's lock.
    pub fn set(&self) {
        self.0.begin(kind::DEFERRED);
    }

    /// Nothing waits any more; the caller holds the queue's lock.
    pub fn clear(&self) {
        self.0.end(kind::DEFERRED);
    }
}

impl<C: Conduit> Engine<C> {
    /// Sets the function that runs client code which handlers have left, and returns its mark.
    ///
    /// It runs in polls and waits while the mark is set, in any thread that calls this engine; its
    /// panic ends the job. The first function stays. All ranks set one, or none does.
    pub fn on_deferred(&self, run: RunDeferred) -> DeferredMark {
        // A second one would be a mistake of this library's.
        let is_first = self.background.deferred.run.set(run).is_ok();
        debug_assert!(is_first);
        DeferredMark(Arc::clone(&self.background))
    }

    /// Runs some of the client code that waits, unless this thread runs such code.
    pub(super) fn run_deferred(&self, ctx: &ThreadCtx) -> usize {
        let deferred = &self.background.deferred;
        let Some(run) = deferred.run.get() else {
            return 0;
        };
        if deferred.is_closed.load(Ordering::Relaxed) {
            return 0;
        }
        if !ctx.begin_deferred() {
            return 0;
        }
        deferred.running.fetch_add(1, Ordering::Relaxed);
        // It does not unwind.
        let ran = self.call_deferred(run);
        if ran > 0 {
            deferred.ran.fetch_add(1, Ordering::Release);
            self.background.quiescence.did(ran);
        }
        deferred.running.fetch_sub(1, Ordering::Release);
        ctx.end_deferred();
        if self.mode == ThreadMode::Par {
            // A thread that drains waits for this one.
            self.background.stepped();
            self.conduit.wake();
        }
        ran
    }

    /// Whether this rank is idle, and has been since the count of what it has run was loaded.
    ///
    /// Messages first: a handler of another thread that took the last one has set the mark by then.
    /// Then the mark: a thread that clears it counts as running since before that. The count again
    /// last: such a thread may have come and gone in between.
    pub(super) fn is_idle_since(&self, ran: u64) -> bool {
        let deferred = &self.background.deferred;
        if !self.nothing_is_left() {
            return false;
        }
        fence(Ordering::Acquire);
        if self.background.pending() & kind::DEFERRED != 0 {
            return false;
        }
        fence(Ordering::Acquire);
        deferred.running.load(Ordering::Acquire) == 0 && deferred.ran.load(Ordering::Relaxed) == ran
    }

    /// Waits until this rank is idle; how often it has run such code by then.
    #[inline(never)]
    fn wait_idle(&self, ctx: &ThreadCtx, kind: BarrierKind) -> Result<u64, AmError> {
        let deferred = &self.background.deferred;
        let mut lost = Ok(());
        let mut ran = 0;
        self.wait_until(ctx, Waiting::new(kind.into()), || {
            lost = self.unless_any_lost();
            ran = deferred.count();
            let is_over = lost.is_err() || self.is_idle_since(ran);
            // Others wait likewise.
            self.conduit.acknowledge();
            is_over
        })?;
        lost.map(|()| ran)
    }

    /// Waits until nothing that any rank sent before is left anywhere, with barriers of that kind.
    ///
    /// Collective; polls. `no_code_left` is called when no such code is left on any rank; it says
    /// whether it may have sent messages, and does so on all ranks.
    pub(super) fn drain_all(
        &self,
        ctx: &ThreadCtx,
        kind: BarrierKind,
        no_code_left: impl FnOnce() -> Result<bool, AmError>,
    ) -> Result<(), AmError> {
        let mut before = 0;
        if self.background.deferred.run.get().is_some() {
            before = self.wait_idle(ctx, kind)?;
        }
        self.barrier_while(ctx, kind, false)?;
        loop {
            let ran = self.wait_idle(ctx, kind)?;
            let goes_on = core::mem::replace(&mut before, ran) != ran;
            if !self.barrier_while(ctx, kind, goes_on)? {
                break;
            }
        }
        if no_code_left()? {
            self.wait_idle(ctx, kind)?;
            self.barrier_while(ctx, kind, false)?;
        }
        self.wait_idle(ctx, kind)?;
        if kind == BarrierKind::Finalize {
            // Here every operation of this rank is done.
            argonet_trace::end(true);
        }
        self.barrier_while(ctx, kind, false)?;
        Ok(())
    }

    /// Runs no such code any more: what waits is given up.
    pub(super) fn close_deferred(&self) {
        let deferred = &self.background.deferred;
        deferred.is_closed.store(true, Ordering::Relaxed);
    }
}
