//! Ends a case that hangs inside a call, after a report of all endpoints.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Far beyond what any case takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(180);

/// Counts of each endpoint, for a report by another thread.
pub(crate) struct Board {
    name: String,
    /// The present wait.
    pub(crate) phase: Mutex<String>,
    ranks: Box<[Counts]>,
}

/// Counts of one endpoint.
///
/// Written by the thread that drives it, read for reports only: Relaxed.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: AtomicU64,
    pub(crate) full: AtomicU64,
    pub(crate) polls: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) replies: AtomicU64,
    pub(crate) completions: AtomicU64,
}

impl Board {
    pub(crate) fn new(name: String, ranks: u32) -> Arc<Self> {
        Arc::new(Self {
            name,
            phase: Mutex::new("start".into()),
            ranks: (0..ranks).map(|_| Counts::default()).collect(),
        })
    }

    pub(crate) fn counts(&self, rank: usize) -> &Counts {
        &self.ranks[rank]
    }

    /// Notes the next step of the case.
    pub(crate) fn phase(&self, what: &str) {
        if let Ok(mut phase) = self.phase.lock() {
            what.clone_into(&mut phase);
        }
    }

    /// All that is known, one line an endpoint.
    pub(crate) fn report(&self) -> String {
        let phase = self.phase.lock().map(|p| p.clone()).unwrap_or_default();
        let mut text = format!("{}: {phase}", self.name);
        for (rank, counts) in self.ranks.iter().enumerate() {
            let n = |count: &AtomicU64| count.load(Ordering::Relaxed);
            text += &format!(
                "\n  rank {rank}: {} sent, {} times full, {} polls, {} requests and {} replies handled, {} completions",
                n(&counts.sent),
                n(&counts.full),
                n(&counts.polls),
                n(&counts.requests),
                n(&counts.replies),
                n(&counts.completions),
            );
        }
        text
    }
}

/// Watches until it is dropped.
pub(crate) struct Watchdog {
    /// Dropped with the watchdog, which the thread notices.
    _alive: Sender<()>,
}

impl Watchdog {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(TOO_LONG) == Err(RecvTimeoutError::Timeout) {
                eprintln!("no end after {TOO_LONG:?}: {}", board.report());
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}

/// Reports to threads that wait for each other that one of them has failed.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

/// Stops the others when its thread panics.
pub(crate) struct Guard<'a>(&'a Stop);

impl Stop {
    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
