//! Client code that handlers leave to a later time, when it may communicate.
//!
//! A handler may not communicate, so a layer above keeps what needs to in a queue of its own and
//! marks here that something waits in it. Threads that poll, or wait for messages, then call the
//! layer's function after their handlers have returned. Threads that wait for room do not: they are
//! in the midst of a call that sends, and room comes without any client code.
//!
//! Such code may start operations and wait for those that need no more than handlers of others. It
//! may make no collective call, as the thread may be inside one, and while it runs its thread runs
//! none besides, whatever it waits for.

use super::background::{Background, kind};
use super::client::ClientCode;
use super::core::Engine;
use super::thread::ThreadCtx;
use argonet_conduit::Conduit;
use std::sync::{Arc, OnceLock};

/// Runs some of the code that waits; returns how much.
pub type RunDeferred = Box<dyn Fn() -> usize + Send + Sync>;

/// The function of the layer above.
#[derive(Default)]
pub(super) struct Deferred {
    run: OnceLock<RunDeferred>,
}

/// The mark that client code waits for a time when it may communicate.
///
/// The layer above changes it under the lock of its queue, so that the mark is there for as long as
/// anything waits in the queue.
#[derive(Clone)]
pub struct DeferredMark(Arc<Background>);

impl DeferredMark {
    /// Something waits; any thread may call it, also in a handler.
    pub fn set(&self) {
        self.0.begin(kind::DEFERRED);
    }

    /// Nothing waits any more.
    pub fn clear(&self) {
        self.0.end(kind::DEFERRED);
    }
}

impl<C: Conduit> Engine<C> {
    /// Sets the function that runs client code which handlers have left, and returns its mark.
    ///
    /// It runs in polls and waits while the mark is set, in any thread that calls this engine; its
    /// panic ends the job. The first function stays.
    pub fn on_deferred(&self, run: RunDeferred) -> DeferredMark {
        // A second one would be a mistake of this library's.
        let is_first = self.background.deferred.run.set(run).is_ok();
        debug_assert!(is_first);
        DeferredMark(Arc::clone(&self.background))
    }

    /// Runs some of the client code that waits, unless this thread runs such code.
    #[inline(always)]
    pub(super) fn run_deferred(&self, ctx: &ThreadCtx) -> usize {
        match self.background.pending() & kind::DEFERRED {
            0 => 0,
            _ => self.run_deferred_now(ctx),
        }
    }

    #[cold]
    #[inline(never)]
    fn run_deferred_now(&self, ctx: &ThreadCtx) -> usize {
        let Some(run) = self.background.deferred.run.get() else {
            return 0;
        };
        let Some(_running) = ctx.begin_deferred() else {
            return 0;
        };
        let ran = self.call_deferred(ClientCode::Deferred, run);
        self.background.quiescence.did(ran);
        ran
    }
}
