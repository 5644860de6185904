//! The thread that serves puts, gets and new rails while its rank makes no call.
//!
//! It runs no handlers: messages are set aside for the rank's next poll.
//!
//! A rank that polls serves itself, and sooner than any thread can; two that read the same rail
//! only get into each other's way. So the thread looks at the rank first. While that polls and
//! something comes, the thread only looks, every [`PERIOD`], whether it still does. When nothing
//! comes, it waits at the rails, each of which wakes it once. While the rank sleeps, it does, too.

use super::core::Core;
use super::peer_poll::Served;
use crate::channel::rail::{RailId, Rails, Ready};
use core::sync::atomic::{AtomicBool, Ordering, fence};
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// A rank that has not polled for so long computes.
const PERIOD: Duration = Duration::from_micros(60);

/// Looks at a rank that polls and takes nothing, after which the thread waits at the rails.
const IDLE_LOOKS: u32 = 16;

/// Whether a rank should have the thread that serves while it computes, if no setting says: when
/// the host has cores that its `ranks` do not use.
#[must_use]
pub fn progress_by_default(ranks: u32) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (ranks as usize) < cores
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: Mutex<bool>,
    call: Condvar,
    /// The thread sleeps because its rank does.
    ///
    /// In one order (SeqCst) with the count of sleepers.
    sleeps: AtomicBool,
}

impl<R: Rails> Core<R> {
    /// Begins, where rails can be served.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn begin_serving(self: &Arc<Self>) -> io::Result<()> {
        if self.rails.server().is_some() {
            let core = Arc::downgrade(self);
            let thread = argonet_base::threads::spawn("argonet-serve", move || run(&core))?;
            *self.progress.thread.lock() = Some(thread);
        }
        Ok(())
    }

    /// A thread of the rank does not sleep any more.
    #[inline]
    pub(super) fn awake(&self) {
        if self.rails.server().is_some() {
            let progress = &self.progress;
            fence(Ordering::SeqCst);
            if progress.sleeps.load(Ordering::SeqCst) {
                let _stop = progress.stop.lock();
                progress.call.notify_one();
            }
        }
    }

    /// Ends the thread and waits for that.
    pub(super) fn end_serving(&self) {
        let Some(server) = self.rails.server() else {
            return;
        };
        let progress = &self.progress;
        *progress.stop.lock() = true;
        progress.call.notify_one();
        server.end();
        let thread = progress.thread.lock().take();
        if let Some(thread) = thread {
            // It does not panic, and if it had there would be nothing to do.
            let _ = thread.join();
        }
    }
}

fn run<R: Rails>(core: &Weak<Core<R>>) {
    // Else the system lets a thread sleep for some 50 us longer than it asked. Where it refuses, it
    // does so. SAFETY: the call takes a number and concerns the calling thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
    let Some(core) = core.upgrade() else { return };
    let mut serving = Serving {
        core: &core,
        fired: Vec::new(),
        made: false,
        held: Vec::new(),
        polls: core.rails.polls(),
    };
    // The conduit ends this thread before it gives the rest of it up.
    while serving.step() {}
}

/// The state of the serving thread.
struct Serving<'a, R: Rails> {
    core: &'a Core<R>,
    /// Rails that are waited at again.
    fired: Vec<RailId>,
    /// The same for rails that are made.
    made: bool,
    /// Rails that are waited at again once the rank has polled.
    held: Vec<RailId>,
    /// Polls of the rank, when it was looked at last.
    polls: u32,
}

/// How the rank was found.
#[derive(PartialEq, Eq)]
enum Found {
    /// It has made no call for a period.
    Computing,
    /// It polls, and nothing comes.
    Idle,
    /// The conduit ends.
    Ended,
}

impl<R: Rails> Serving<'_, R> {
    fn polls(&self) -> u32 {
        self.core.rails.polls()
    }

    /// Waits until the rank is not busy with what comes; then at the rails, for work for the
    /// thread.
    ///
    /// Whether it goes on.
    fn step(&mut self) -> bool {
        if self.look() == Found::Ended {
            return false;
        }
        self.fired.append(&mut self.held);
        self.wait_again();
        let Some(server) = self.core.rails.server() else {
            return false;
        };
        loop {
            let mut found = Ready::new();
            if !server.wait(&mut found) {
                return false;
            }
            self.fired.extend_from_slice(found.rails());
            self.made |= found.has_made();
            if self.polls() != self.polls {
                // It has polled since, and perhaps still does.
                return true;
            }
            if found.has_made() {
                self.core.take_made();
            }
            for id in found.rails() {
                if !self.serve(*id) {
                    return true;
                }
            }
            self.wait_again();
        }
    }

    /// Looks at the rank until it computes or has nothing to do.
    fn look(&mut self) -> Found {
        let progress = &self.core.progress;
        let mut idle = 0;
        let mut stop = progress.stop.lock();
        loop {
            if *stop {
                return Found::Ended;
            }
            let (polls, epoch) = (self.polls(), self.core.sleepers.epoch());
            progress.sleeps.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if self.core.sleepers.any() {
                progress.call.wait(&mut stop);
                progress.sleeps.store(false, Ordering::SeqCst);
                continue;
            }
            progress.sleeps.store(false, Ordering::SeqCst);
            let _ = progress.call.wait_for(&mut stop, PERIOD);
            self.polls = self.polls();
            if self.core.sleepers.any() {
                continue;
            }
            if self.polls == polls {
                return Found::Computing;
            }
            idle = if self.core.sleepers.epoch() == epoch {
                idle + 1
            } else {
                0
            };
            if idle > IDLE_LOOKS {
                return Found::Idle;
            }
        }
    }

    /// Takes the frames of one.
    ///
    /// Whether the rank still makes no call.
    fn serve(&mut self, id: RailId) -> bool {
        let Some(peer) = self.core.used(id.peer.0) else {
            return true;
        };
        if id.number > 0 {
            peer.ready_rails.fetch_or(id.bit(), Ordering::Relaxed);
        }
        loop {
            match self.core.serve(peer) {
                Served::Some if self.polls() == self.polls => {}
                Served::All | Served::Some => return true,
                Served::Held => {
                    self.fired.retain(|fired| *fired != id);
                    self.held.push(id);
                    return true;
                }
                Served::Busy => return false,
            }
        }
    }

    /// Waits again at all that have had something.
    fn wait_again(&mut self) {
        let Some(server) = self.core.rails.server() else {
            return;
        };
        if core::mem::take(&mut self.made) {
            server.again_made();
        }
        for id in core::mem::take(&mut self.fired) {
            if let Some(peer) = self.core.used(id.peer.0)
                && let Some(rail) = peer.outbound.lock().rail(id.number)
            {
                server.again(id, rail);
            }
        }
    }
}
