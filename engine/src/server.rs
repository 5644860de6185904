//! A thread that serves other ranks while those of the program compute.

use super::core::Engine;
use super::thread::ThreadCtx;
use super::waiting::Wait;
use argonet_am::AmError;
use argonet_conduit::Conduit;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::thread::ThreadId;
use std::time::Instant;

/// How long the server leaves messages to threads of the program that have taken the last ones.
///
/// Meanwhile no sender has to wake it.
const LEFT_TO_OTHERS: Duration = Duration::from_micros(200);

/// Shorter sleeps found something that the server cannot take, such as a message that another
/// thread is handling.
const SHORT: Duration = Duration::from_micros(20);

/// What the server does.
mod state {
    /// It does not exist, or sleeps.
    pub(super) const RESTS: u8 = 0;
    /// It polls or runs a handler.
    pub(super) const WORKS: u8 = 1;
    /// It rests until the thread that holds it lets it go.
    pub(super) const HELD: u8 = 2;
}

/// What other threads of the rank know of its server.
#[derive(Default)]
pub(super) struct Server {
    state: AtomicU8,
    thread: Mutex<Option<ThreadId>>,
    /// It leaves messages to others, until a thread wakes it.
    leaves: AtomicBool,
    /// It has slept since it called its client last.
    has_rested: AtomicBool,
    /// Its last sleep was a short one.
    was_short: AtomicBool,
    /// The epochs of the conduit and of the background up to which its client knows what has come.
    served: [AtomicU32; 2],
}

impl Server {
    /// Begins to sleep, as the server does between polls; returns when that was.
    ///
    /// What it does after a thread has found it at rest counts as activity of the rank, which is
    /// looked for in a second round.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_rest(&self) -> Instant {
        self.state.store(state::RESTS, Ordering::Release);
        Instant::now()
    }

    /// Has slept since then.
    #[cold]
    #[inline(never)]
    pub(super) fn end_rest(&self, begun: Instant) {
        self.was_short
            .store(begun.elapsed() < SHORT, Ordering::Relaxed);
        self.work();
        self.has_rested.store(true, Ordering::Relaxed);
    }

    /// Whether the server, if there is one, works or has not yet called its client after the last
    /// thing that came.
    #[cold]
    #[inline(never)]
    pub(super) fn owes(&self, epochs: [u32; 2]) -> bool {
        let thread = *self.thread.lock();
        if thread.is_none() || thread == Some(std::thread::current().id()) {
            return false;
        }
        let mut served = self.served.iter().zip(epochs);
        self.state.load(Ordering::Acquire) == state::WORKS
            || served.any(|(served, epoch)| served.load(Ordering::Acquire) != epoch)
    }

    /// Its client knows what has come up to these epochs.
    fn has_served(&self, epochs: [u32; 2]) {
        for (served, epoch) in self.served.iter().zip(epochs) {
            served.store(epoch, Ordering::Release);
        }
    }

    /// Leaves messages to the threads that take them, for a while.
    ///
    /// A thread that waits for the server from then on wakes it.
    fn leave_to_others(&self, unless: &dyn Fn() -> bool) {
        let begun = self.begin_rest();
        self.leaves.store(true, Ordering::SeqCst);
        if !unless() {
            std::thread::park_timeout(LEFT_TO_OTHERS);
        }
        self.leaves.store(false, Ordering::SeqCst);
        self.end_rest(begun);
        // A nudge may have ended it, and not something that the server cannot take.
        self.was_short.store(false, Ordering::Relaxed);
    }

    /// Begins to work, once no thread holds the server.
    fn work(&self) {
        while !self.turn(state::WORKS) {
            std::thread::sleep(LEFT_TO_OTHERS);
        }
    }

    /// Leaves the state of rest for another one, if it is that.
    fn turn(&self, to: u8) -> bool {
        let turned =
            self.state
                .compare_exchange(state::RESTS, to, Ordering::AcqRel, Ordering::Relaxed);
        turned.is_ok()
    }
}

/// Keeps the server of a rank from polling until it is dropped.
pub struct HeldServer<'e>(&'e Server);

impl Drop for HeldServer<'_> {
    fn drop(&mut self) {
        self.0.state.store(state::RESTS, Ordering::Release);
    }
}

/// Whatever ends the server: it does nothing any more.
struct Ends<'e>(&'e Server);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        *self.0.thread.lock() = None;
        self.0.state.store(state::RESTS, Ordering::Release);
    }
}

impl<C: Conduit> Engine<C> {
    /// Serves other ranks until `is_over`: polls, and sleeps when nothing comes.
    ///
    /// For one thread of a rank, which [`argonet_base::threads::spawn`] has started, so that the
    /// threads of the program count where a job is looked for that cannot end. Where those take
    /// messages themselves it leaves them to them, unless something `is_awaited` that needs its
    /// call. The thread that ends it wakes the conduit.
    ///
    /// It calls `served` after a poll, of its own or of another thread, that has taken something,
    /// and after each sleep: what has completed an operation meanwhile has woken it. But not while
    /// [deferred](Self::on_deferred) code runs on it.
    pub fn serve_peers(
        &self,
        ctx: &ThreadCtx,
        is_over: &dyn Fn() -> bool,
        is_awaited: &dyn Fn() -> bool,
        served: &dyn Fn(),
    ) {
        let server = &self.server;
        *server.thread.lock() = Some(std::thread::current().id());
        server.work();
        let _ends = Ends(server);
        let mut wait = Wait::of_server(self);
        let mut seen = self.epochs();
        server.has_served(seen);
        while !is_over() {
            let taken = wait.pause(ctx);
            let before = core::mem::replace(&mut seen, self.epochs());
            let others_took = taken == 0 && seen != before;
            let has_rested = server.has_rested.swap(false, Ordering::Relaxed);
            if taken > 0 || others_took || has_rested {
                served();
                server.has_served(seen);
            }
            if taken == 0 && server.was_short.swap(false, Ordering::Relaxed) {
                server.leave_to_others(&|| false);
            } else if others_took && !is_awaited() {
                server.leave_to_others(is_awaited);
            }
        }
    }

    /// Numbers that change with what polls take, and with steps in the background.
    pub(super) fn epochs(&self) -> [u32; 2] {
        [self.conduit.epoch(), self.background.epoch()]
    }

    /// Something is awaited that needs the server: has it look for room at a peer, of which no
    /// wakeup comes, if something waits for that.
    ///
    /// Whether the caller is to unpark its thread, which leaves messages to others.
    #[must_use]
    pub fn nudge_server(&self) -> bool {
        if self.background.is_stuck() {
            self.conduit.wake();
        }
        self.server.leaves.swap(false, Ordering::SeqCst)
    }

    /// Whether operations go on in the background, or client code waits: polls go on with them, and
    /// no message may come that ends a sleep.
    pub fn has_background(&self) -> bool {
        self.background.pending() != 0
    }

    /// Keeps the server, if there is one, from polling, handling and acknowledging losses.
    ///
    /// Waits until it rests. Not for the server's own thread.
    pub fn hold_server(&self) -> HeldServer<'_> {
        while !self.server.turn(state::HELD) {
            std::thread::yield_now();
        }
        HeldServer(&self.server)
    }

    /// The server's context may communicate.
    ///
    /// # Errors
    /// More threads than the conduit has room for.
    pub fn permit_server(&self, ctx: &ThreadCtx) -> Result<(), AmError> {
        ctx.permit("serving other ranks", self.rank)
    }
}
