//! Steps inside of interfaces, of which a test makes one the last.

use core::sync::atomic::{AtomicU64, Ordering};
use rustix::process::{Signal, getpid, kill_process};

/// Counts steps, and kills the process at one of them.
pub(crate) struct Steps {
    /// Counted from 1; 0: never.
    kill_at: u64,
    /// Whether steps count.
    counting: bool,
    count: AtomicU64,
}

impl Steps {
    /// `count`: also where no process is killed.
    pub(crate) fn new(kill_at: u64, count: bool) -> Self {
        Self {
            kill_at,
            counting: kill_at != 0 || count,
            count: AtomicU64::new(0),
        }
    }

    /// Steps so far, if they count.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn step(&self) {
        if self.counting {
            self.count_step();
        }
    }

    #[cold]
    fn count_step(&self) {
        let step = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if step == self.kill_at {
            // It cannot fail; the process is gone when it returns.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
