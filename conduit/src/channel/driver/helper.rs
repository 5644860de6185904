//! The thread that sends gathered messages when its rank makes no further call, and goes on to
//! connect where messages wait for a rail.
//!
//! It sleeps while there is neither.

use super::core::Core;
use crate::channel::rail::Rails;
use argonet_base::cpu::ticks;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

/// Looks that find nothing before the thread sleeps until it is called.
const IDLE_LOOKS: u32 = 20;

/// How often it looks after rails that are being made, at first and later.
const CONNECTING: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];

/// As many looks are at first.
const FIRST_LOOKS: u32 = 50;

pub(super) struct Helper<R: Rails> {
    thread: Mutex<Option<JoinHandle<()>>>,
    core: OnceLock<Weak<Core<R>>>,
    /// Whether it looks by itself.
    ///
    /// Written by the thread, read by senders after they have marked the peers of gathered
    /// messages; in one order (SeqCst) with those marks, at which the thread looks once more before
    /// it sleeps.
    awake: AtomicBool,
    stop: Mutex<bool>,
    call: Condvar,
}

impl<R: Rails> Default for Helper<R> {
    fn default() -> Self {
        Self {
            thread: Mutex::default(),
            core: OnceLock::new(),
            awake: AtomicBool::new(false),
            stop: Mutex::default(),
            call: Condvar::new(),
        }
    }
}

impl<R: Rails> Helper<R> {
    /// Attaches the helper to its core.
    pub(super) fn attach(&self, core: &Arc<Core<R>>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Something was gathered, and marked.
    #[inline]
    pub(super) fn gather(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let stop = self.stop.lock();
        self.awake.store(true, Ordering::SeqCst);
        let mut thread = self.thread.lock();
        if thread.is_none()
            && !*stop
            && let Some(core) = self.core.get()
            && core
                .upgrade()
                .is_some_and(|core| core.rails.virtual_ns().is_none())
        {
            let core = Weak::clone(core);
            // Without a thread gathered messages leave with the rank's next poll.
            *thread = argonet_base::threads::spawn("argonet-gather", move || run(&core)).ok();
        }
        self.call.notify_one();
    }

    /// Ends the thread and waits for that.
    pub(super) fn end(&self) {
        *self.stop.lock() = true;
        self.call.notify_one();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // It does not panic, and if it had there would be nothing to do.
            let _ = thread.join();
        }
    }
}

fn run<R: Rails>(core: &Weak<Core<R>>) {
    let mut idle = 0;
    let mut connecting = Connecting::default();
    while let Some(core) = core.upgrade() {
        let helper = &core.helper;
        let mut stop = helper.stop.lock();
        if *stop {
            return;
        }
        if idle < IDLE_LOOKS {
            let _ = helper.call.wait_for(&mut stop, core.sizes.gather_time);
        } else if core.unconnected.any() {
            let _ = helper.call.wait_for(&mut stop, connecting.pause());
        } else {
            helper.awake.store(false, Ordering::SeqCst);
            if !core.dirty.any() && !core.unconnected.any() {
                helper.call.wait(&mut stop);
            }
            helper.awake.store(true, Ordering::SeqCst);
            idle = 0;
            connecting = Connecting::default();
        }
        if *stop {
            return;
        }
        drop(stop);
        idle = if core.send_gathered() { 0 } else { idle + 1 };
        if core.unconnected.any() {
            connecting.go_on(&core);
        }
    }
}

/// How the thread makes rails while its rank does not poll.
#[derive(Default)]
struct Connecting {
    looks: u32,
    /// The rank's polls when the thread looked last.
    polls: u32,
}

impl Connecting {
    fn pause(&self) -> Duration {
        CONNECTING[usize::from(self.looks >= FIRST_LOOKS)]
    }

    fn go_on<R: Rails>(&mut self, core: &Core<R>) {
        self.looks = self.looks.saturating_add(1);
        let polls = core.rails.polls();
        let rank_polls = core::mem::replace(&mut self.polls, polls) != polls;
        if !rank_polls {
            core.take_made();
        }
        core.unconnected.each(|rank| {
            let Some(peer) = core.used(rank) else { return };
            let Some(mut outbound) = peer.outbound.try_lock() else {
                return;
            };
            let is_written = outbound.wire.is_some();
            let waits = match is_written {
                true => outbound.may_be_lost(),
                false => outbound.failed.is_none() && !outbound.send_stream.rests(),
            };
            if !waits {
                // Under the lock: a rank that sends meanwhile sets it again.
                core.unconnected.take(rank);
                return;
            }
            drop(outbound);
            if is_written && !rank_polls {
                // It finds the end of a rail that the peer has closed.
                core.serve(peer);
                core.sleepers.moved_and_wake(false, || core.rails.wake());
            }
        });
    }
}

impl<R: Rails> Core<R> {
    /// Sends messages that were gathered for half of their time at least.
    ///
    /// Whether there is more.
    fn send_gathered(&self) -> bool {
        let mut some = false;
        self.dirty.each(|rank| {
            // The thread that holds it sends.
            let Some(peer) = self.used(rank) else { return };
            let Some(mut outbound) = peer.outbound.try_lock() else {
                some = true;
                return;
            };
            if !outbound.is_unsent() || outbound.wire.is_none() {
                return;
            }
            some = true;
            if ticks().wrapping_sub(outbound.gathered_at)
                > argonet_base::cpu::SHORT_PAUSE_TICKS * 100
            {
                self.flush(peer, &mut outbound);
            }
        });
        some
    }
}
