//! The thread that sleeps on the network for a rank that sleeps on shared memory.

use super::Network;
use core::fmt;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Wakes the rank.
pub(super) type Wake = Box<dyn Fn() + Send + Sync>;

/// A rank's watch over its network.
///
/// Its thread exists once the rank has slept.
#[derive(Default)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: OnceLock<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signaled when there is something to do.
    call: Condvar,
}

#[derive(Default)]
struct State {
    /// The epoch of the network that the rank knew when it asked; `None` if it has not asked.
    asked: Option<u32>,
    ended: bool,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// From now on something that comes over the network, or has come since its epoch was `seen`,
    /// has the rank woken, once.
    ///
    /// The caller looks for work afterwards, before it sleeps. False if there is no thread, as the
    /// system gives none.
    pub(super) fn over(&self, network: &Network, seen: u32, wake: impl FnOnce() -> Wake) -> bool {
        {
            let mut state = self.shared.state.lock();
            if state.asked.is_none() {
                state.asked = Some(seen);
                self.shared.call.notify_one();
            }
        }
        let thread = self.thread.get_or_init(|| {
            let (shared, network, wake) = (Arc::clone(&self.shared), Arc::clone(network), wake());
            let run = move || shared.run(&network, &wake);
            argonet_base::threads::spawn("argonet-watch", run).ok()
        });
        thread.is_some()
    }

    /// Ends the thread and waits for that.
    pub(super) fn end(&mut self, network: &Network) {
        self.shared.state.lock().ended = true;
        self.shared.call.notify_one();
        network.wake();
        if let Some(Some(thread)) = self.thread.take() {
            // It does not panic, and if it had there would be nothing to do.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, network: &Network, wake: &Wake) {
        loop {
            let seen = {
                let mut state = self.state.lock();
                loop {
                    if state.ended {
                        return;
                    }
                    match state.asked {
                        Some(seen) => break seen,
                        None => self.call.wait(&mut state),
                    }
                }
            };
            network.sleep(None, seen);
            // Before the rank is woken: it asks again when it sleeps again.
            self.state.lock().asked = None;
            wake();
        }
    }
}
