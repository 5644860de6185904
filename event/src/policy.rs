//! Decides what the engine does when no handle is free.
//!
//! Sans-IO: the engine says how long it has been refused; no clock is read here.

use core::time::Duration;

use argonet_base::JobRank;
use thiserror::Error;

use crate::Exhausted;

/// How many threads of the process use the library, as the client promised when it was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadMode {
    /// One thread only: no other thread can free a handle.
    Seq,
    /// Several threads, one at a time.
    ParSync,
    /// Several threads at once.
    Par,
}

/// The next step of the engine after an allocation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Poll, then try again.
    Retry,
    /// Report to the client that the operation was not started.
    SayImmediate,
    /// End the job with this error.
    Fatal(FatalExhaustion),
}

/// The job cannot go on: all handles of a rank are in use and none came free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "rank {rank}: no handle for another explicit operation came free in {} ms: {} of at most {} are in use; \
     synchronize events (gex_Event_Wait and its relatives) before starting more operations, \
     or start them as implicit ones",
    .waited.as_millis(), .exhausted.in_use, .exhausted.limit
)]
pub struct FatalExhaustion {
    /// The rank whose table is full.
    pub rank: JobRank,
    /// The limit of the table and how many handles are in use.
    pub exhausted: Exhausted,
    /// The time since the first refusal.
    pub waited: Duration,
}

/// Decides between reporting to the client, trying again and giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExhaustionPolicy {
    /// Whether another thread could free a handle.
    pub mode: ThreadMode,
    /// Whether the client passed `GEX_FLAG_IMMEDIATE`.
    pub immediate: bool,
    /// The rank named in the error.
    pub rank: JobRank,
}

impl ExhaustionPolicy {
    /// How long a thread waits for another to free a handle before the job ends.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// Decides after a refusal.
    ///
    /// `now` and `first_refusal` are readings of one monotonic clock, the latter taken when this
    /// operation was first refused.
    #[must_use]
    pub fn decide(&self, now: Duration, first_refusal: Duration, exhausted: Exhausted) -> Decision {
        let waited = now.saturating_sub(first_refusal);
        if self.immediate {
            return Decision::SayImmediate;
        }
        let patience = match self.mode {
            // The only thread that could free a handle is the one that would wait.
            ThreadMode::Seq => Duration::ZERO,
            ThreadMode::ParSync | ThreadMode::Par => Self::PATIENCE,
        };
        if waited < patience {
            return Decision::Retry;
        }
        Decision::Fatal(FatalExhaustion {
            rank: self.rank,
            exhausted,
            waited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Exhausted = Exhausted {
        limit: 1000,
        in_use: 999,
    };
    const START: Duration = Duration::from_secs(77);

    fn decide(mode: ThreadMode, immediate: bool, waited: Duration) -> Decision {
        let rank = JobRank(5);
        ExhaustionPolicy {
            mode,
            immediate,
            rank,
        }
        .decide(START + waited, START, FULL)
    }

    #[test]
    fn immediate_is_reported_in_every_mode() {
        for mode in [ThreadMode::Seq, ThreadMode::ParSync, ThreadMode::Par] {
            let long = 2 * ExhaustionPolicy::PATIENCE;
            assert_eq!(decide(mode, true, Duration::ZERO), Decision::SayImmediate);
            assert_eq!(decide(mode, true, long), Decision::SayImmediate);
        }
    }

    #[test]
    fn one_thread_gives_up_at_once() {
        let fatal = decide(ThreadMode::Seq, false, Duration::ZERO);
        assert!(matches!(fatal, Decision::Fatal(_)));
    }

    #[test]
    fn several_threads_retry_until_patience_ends_and_the_error_says_all() {
        let nearly = ExhaustionPolicy::PATIENCE - Duration::from_nanos(1);
        for mode in [ThreadMode::ParSync, ThreadMode::Par] {
            assert_eq!(decide(mode, false, nearly), Decision::Retry);
            let Decision::Fatal(error) = decide(mode, false, ExhaustionPolicy::PATIENCE) else {
                panic!("patience has ended");
            };
            let text = error.to_string();
            for part in ["rank 5", "999", "1000", "10000 ms"] {
                assert!(text.contains(part), "{part} is missing in {text}");
            }
        }
    }

    #[test]
    fn a_clock_that_steps_back_is_a_short_wait() {
        let policy = ExhaustionPolicy {
            mode: ThreadMode::Par,
            immediate: false,
            rank: JobRank(0),
        };
        assert_eq!(policy.decide(Duration::ZERO, START, FULL), Decision::Retry);
    }
}
