//! The signals that a launcher passes on to the ranks, and the one that asks it for a report.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Signal;

use crate::sys::{SIGNAL_RECORD_BYTES, SignalSet};

/// The signal that asks for a report of all ranks.
///
/// It is not passed on.
pub(crate) const REPORT: Signal = Signal::USR2;

/// Signals that a user or a batch system sends to a launcher.
const COLLECTED: [Signal; 8] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    REPORT,
    Signal::TSTP,
    Signal::CONT,
];

/// The collected signals, blocked in this thread (and those it starts) and readable from a
/// descriptor.
pub(crate) struct LauncherSignals {
    descriptor: OwnedFd,
    before: SignalSet,
}

impl LauncherSignals {
    /// Starts to collect the signals.
    pub(crate) fn collect() -> io::Result<Self> {
        let set = SignalSet::of(&COLLECTED.map(Signal::as_raw));
        let before = set.block();
        match set.descriptor() {
            Ok(descriptor) => Ok(Self { descriptor, before }),
            Err(e) => {
                before.restore();
                Err(e)
            }
        }
    }

    /// The signals that were blocked before; the ranks start with these.
    pub(crate) fn mask_before(&self) -> SignalSet {
        self.before
    }

    /// The next signal that has arrived, if any.
    pub(crate) fn next(&self) -> Option<Signal> {
        let mut record = [0; SIGNAL_RECORD_BYTES];
        let n = rustix::io::read(&self.descriptor, &mut record).ok()?;
        let number = record[..n].first_chunk().map(|b| u32::from_ne_bytes(*b))?;
        COLLECTED.into_iter().find(|s| s.as_raw() as u32 == number)
    }
}

impl AsFd for LauncherSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for LauncherSignals {
    /// Signals have their former actions again.
    fn drop(&mut self) {
        self.before.restore();
    }
}

/// Whether a second one of these means that the user has lost patience.
pub(crate) fn asks_to_end(signal: Signal) -> bool {
    signal == Signal::INT || signal == Signal::TERM
}

/// Whether a collected signal ends a process that does nothing about it, and stands for the wish to
/// end.
pub(crate) fn ends_by_default(signal: Signal) -> bool {
    asks_to_end(signal) || signal == Signal::HUP || signal == Signal::QUIT
}
