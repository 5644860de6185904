//! The thread that sends what was gathered when its rank makes no further call. It sleeps while nothing is
//! gathered.

use super::core::Core;
use argonet_base::cpu::ticks;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

/// Looks that find nothing before the thread sleeps until it is called.
const IDLE_LOOKS: u32 = 20;

#[derive(Debug, Default)]
pub(super) struct Helper {
    thread: Mutex<Option<JoinHandle<()>>>,
    core: OnceLock<Weak<Core>>,
    /// Whether it looks by itself. Written by the thread, read by senders after they have marked what they gathered; in
    /// one order (SeqCst) with those marks, at which the thread looks once more before it sleeps.
    awake: AtomicBool,
    stop: Mutex<bool>,
    call: Condvar,
}

impl Helper {
    /// Whose helper it is.
    pub(super) fn attach(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Something was gathered, and marked.
    #[inline]
    pub(super) fn gather(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        let stop = self.stop.lock();
        self.awake.store(true, Ordering::SeqCst);
        let mut thread = self.thread.lock();
        if thread.is_none()
            && !*stop
            && let Some(core) = self.core.get().cloned()
        {
            let builder = std::thread::Builder::new().name("argonet-tcp".into());
            // Without a thread what was gathered leaves with the rank's next poll.
            *thread = builder.spawn(move || run(&core)).ok();
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

fn run(core: &Weak<Core>) {
    let mut idle = 0;
    while let Some(core) = core.upgrade() {
        let helper = &core.helper;
        let mut stop = helper.stop.lock();
        if *stop {
            return;
        }
        if idle < IDLE_LOOKS {
            let _ = helper.call.wait_for(&mut stop, core.sizes.gather_time);
        } else {
            helper.awake.store(false, Ordering::SeqCst);
            if !core.dirty.any() {
                helper.call.wait(&mut stop);
            }
            helper.awake.store(true, Ordering::SeqCst);
            idle = 0;
        }
        if *stop {
            return;
        }
        drop(stop);
        idle = if core.send_gathered() { 0 } else { idle + 1 };
    }
}

impl Core {
    /// Sends what was gathered and not sent for half of its time at least. Whether there is more.
    fn send_gathered(&self) -> bool {
        let mut some = false;
        self.dirty.each(|rank| {
            // Whoever holds it sends.
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
