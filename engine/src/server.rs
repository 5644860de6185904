//! A thread that serves other ranks while those of the program compute.

use super::core::Engine;
use super::thread::ThreadCtx;
use super::waiting::Wait;
use argonet_conduit::Conduit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

/// How long the server leaves messages to threads of the program that have taken the last ones.
///
/// Meanwhile no sender has to wake it.
const LEFT_TO_OTHERS: Duration = Duration::from_micros(200);

/// What other threads of the rank know of its server.
#[derive(Default)]
pub(super) struct Server {
    /// It polls or runs a handler.
    is_at_work: AtomicBool,
    /// It has slept since it called its client last.
    has_rested: AtomicBool,
}

impl Server {
    /// Whether it may do something now by itself.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_at_work.load(Ordering::Acquire)
    }

    /// Sleeps, as the server does between polls.
    ///
    /// What it does after a thread has found it at rest counts as activity of the rank, which is
    /// looked for in a second round.
    pub(super) fn rest(&self, sleep: impl FnOnce()) {
        self.is_at_work.store(false, Ordering::Release);
        sleep();
        self.is_at_work.store(true, Ordering::Release);
        self.has_rested.store(true, Ordering::Relaxed);
    }
}

impl<C: Conduit> Engine<C> {
    /// Serves other ranks until `is_over`: polls, and sleeps when nothing comes.
    ///
    /// For one thread of a rank, which [`argonet_base::threads::spawn`] has started, so that the
    /// threads of the program count where a job is looked for that cannot end. Where those take
    /// messages themselves it leaves them to them. Who ends it wakes the conduit.
    ///
    /// It calls `served` after a poll, of its own or of another thread, that has taken something,
    /// and after each sleep: what has completed an operation meanwhile has woken it.
    pub fn serve_peers(&self, ctx: &ThreadCtx, is_over: &dyn Fn() -> bool, served: &dyn Fn()) {
        self.server.is_at_work.store(true, Ordering::Release);
        let mut wait = Wait::of_server(self);
        let epochs = || (self.conduit.epoch(), self.background.epoch());
        let mut seen = epochs();
        while !is_over() {
            let taken = wait.pause(ctx);
            let before = core::mem::replace(&mut seen, epochs());
            let others_took = taken == 0 && seen != before;
            let has_rested = self.server.has_rested.swap(false, Ordering::Relaxed);
            if taken > 0 || others_took || has_rested {
                served();
            }
            if others_took {
                self.server.rest(|| std::thread::sleep(LEFT_TO_OTHERS));
            }
        }
        self.server.is_at_work.store(false, Ordering::Release);
    }
}
