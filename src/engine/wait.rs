//! Waiting: spin briefly, then yield, then sleep.

use core::time::Duration;

/// How long a rank spins and yields before it sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitPolicy {
    /// Empty polls before the first yield.
    pub spins: u32,
    /// Yields before the first sleep.
    pub yields: u32,
}

impl WaitPolicy {
    /// The policy for `ranks` ranks that share `processors` processors.
    ///
    /// With a processor for each rank, spinning costs nobody anything; with fewer, a spinning
    /// rank keeps the one that it waits for from running.
    #[must_use]
    pub const fn for_host(ranks: u32, processors: u32) -> Self {
        if ranks <= processors {
            Self {
                spins: 20_000,
                yields: 50,
            }
        } else {
            Self {
                spins: 20,
                yields: 20,
            }
        }
    }
}

/// What to do after a poll that found nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Poll again.
    Spin,
    /// Let another process run, then poll again.
    Yield,
    /// Sleep until something arrives or the time is over.
    Sleep(Duration),
}

impl Step {
    /// This, but no longer asleep than `limit`.
    #[must_use]
    pub fn at_most(self, limit: Duration) -> Self {
        match self {
            Self::Sleep(time) => Self::Sleep(time.min(limit)),
            step => step,
        }
    }
}

/// The patience of one wait.
#[derive(Debug)]
pub struct Patience {
    policy: WaitPolicy,
    empty: u32,
    /// Longest sleep: short where nobody rings for what is waited for.
    longest_sleep: Duration,
    /// The conduit's epoch before the waiting thread looked last.
    seen: u32,
}

impl Patience {
    /// Waiting for a message: the sender rings, the long sleep is only a second net.
    #[must_use]
    pub const fn for_message(policy: WaitPolicy) -> Self {
        Self {
            policy,
            empty: 0,
            longest_sleep: Duration::from_millis(500),
            seen: 0,
        }
    }

    /// Waiting for room at a peer: nobody rings when it frees some.
    #[must_use]
    pub const fn for_room(policy: WaitPolicy) -> Self {
        Self {
            policy,
            empty: 0,
            longest_sleep: Duration::from_micros(100),
            seen: 0,
        }
    }

    /// The conduit's epoch is `epoch`, and the waiting thread looks next.
    #[inline]
    pub const fn saw(&mut self, epoch: u32) {
        self.seen = epoch;
    }

    /// What [`saw`](Self::saw) was told. A sleep follows some pauses, so it is never asked before.
    #[must_use]
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// Something happened: start over.
    #[inline]
    pub const fn reset(&mut self) {
        self.empty = 0;
    }

    /// Nothing happened: what now?
    #[inline]
    pub const fn next(&mut self) -> Step {
        self.empty = self.empty.saturating_add(1);
        if self.empty <= self.policy.spins {
            Step::Spin
        } else if self.empty - self.policy.spins <= self.policy.yields {
            Step::Yield
        } else {
            Step::Sleep(self.longest_sleep)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_then_yields_then_sleeps_and_starts_over() {
        let mut patience = Patience::for_message(WaitPolicy {
            spins: 2,
            yields: 1,
        });
        assert_eq!(patience.next(), Step::Spin);
        assert_eq!(patience.next(), Step::Spin);
        assert_eq!(patience.next(), Step::Yield);
        assert!(matches!(patience.next(), Step::Sleep(_)));
        patience.reset();
        assert_eq!(patience.next(), Step::Spin);
    }

    #[test]
    fn fewer_processors_than_ranks_means_little_spinning() {
        let crowded = WaitPolicy::for_host(8, 2);
        let roomy = WaitPolicy::for_host(2, 2);
        assert!(crowded.spins * 100 < roomy.spins);
    }
}
