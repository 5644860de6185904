//! Figures of a run.

use core::fmt;

/// Sums over all ranks within one epoch (of the ranks on average).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Requests that were sent.
    pub requests: u64,
    /// Requests that had to wait for credits.
    pub stalls: u64,
    /// Virtual time for which they waited, in ns.
    pub stalled_ns: u64,
    /// Credits lent in addition and given back.
    pub moved: u64,
    /// System messages.
    pub system: u64,
}

impl Sample {
    pub(super) fn since(&self, before: &Sample) -> Sample {
        Sample {
            requests: self.requests - before.requests,
            stalls: self.stalls - before.stalls,
            stalled_ns: self.stalled_ns - before.stalled_ns,
            moved: self.moved - before.moved,
            system: self.system - before.system,
        }
    }
}

/// A run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Ranks.
    pub ranks: u32,
    /// One for each epoch.
    pub epochs: Vec<Sample>,
    /// Sums over all of them, and over the rest after the last whole one.
    pub total: Sample,
    /// Virtual time of the run in ns.
    pub took_ns: u64,
    /// Most credits of a rank that were in use at once.
    pub fullest: u64,
    /// Credits of a rank.
    pub credits: u64,
    /// Requests that found the receive space full, and requests refused for want of a loan.
    pub overflows: u64,
    /// Bytes of state of all peers at the end, over all ranks.
    pub state_bytes: u64,
    /// Peers that were used, over all ranks.
    pub peers_used: u64,
    /// Violations; empty if all is well.
    pub violations: Vec<String>,
}

impl Figures {
    /// Stalled virtual time a rank, in ms.
    #[must_use]
    pub fn stalled_ms(&self) -> f64 {
        self.total.stalled_ns as f64 / 1e6 / f64::from(self.ranks.max(1))
    }

    /// Stalls of a hundred requests.
    #[must_use]
    pub fn stalls_per_hundred(&self) -> f64 {
        self.total.stalls as f64 * 100.0 / self.total.requests.max(1) as f64
    }

    /// Epochs until the last credit has moved.
    #[must_use]
    pub fn is_quiescent(&self) -> usize {
        let last = self.epochs.iter().rposition(|sample| sample.moved > 0);
        last.map_or(0, |at| at + 1)
    }

    /// Credits moved from that epoch on.
    #[must_use]
    pub fn moved_from(&self, epoch: usize) -> u64 {
        self.epochs.iter().skip(epoch).map(|s| s.moved).sum()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks = f64::from(self.ranks.max(1));
        let epochs = self.epochs.len().max(1) as f64;
        write!(
            f,
            "{:>9.3} | {:>6.2} | {:>8.2} | {:>7} | {:>8.2} | {:>6}",
            self.stalled_ms(),
            self.stalls_per_hundred(),
            self.total.moved as f64 / ranks / epochs,
            self.is_quiescent(),
            self.total.system as f64 / ranks / epochs,
            self.fullest,
        )?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}
