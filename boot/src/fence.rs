//! The fence: all ranks of a host wait for each other on two words of shared memory (spec P14: also
//! before the first operation).
//!
//! In a job over several hosts the last rank of a host reports to the host's agent, and the agents
//! let the ranks go when all hosts are there ([`crate::hosts`]).
//!
//! A rank adds itself to `arrived`. The last one resets `arrived`, advances `generation` and wakes
//! the others, which wait for the generation to move: first spinning, then yielding, then asleep on
//! a futex. They sleep in short stretches and look between them whether the job is ending or a
//! missing rank cannot come any more.

use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_base::sync::spin_hint;
use rustix::fs::Timespec;
use rustix::thread::{futex, sched_yield};

use crate::error::{BootError, Missing};
use crate::page::{Control, ExitWord, FenceWords, RankState};
use crate::process;

const SPINS: u32 = 200;
const YIELDS: u32 = 10;
/// Time that a rank sleeps before it looks around again.
///
/// A failure wakes it at once; this bounds the cost of a lost wake-up.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// Wakes every rank that sleeps at the fence, so that it looks around.
///
/// Async-signal-safe.
pub(crate) fn wake_all(fence: &FenceWords) {
    // Waking cannot fail on a valid address; a rank that is not woken looks around by itself.
    let _ = futex::wake(&fence.generation, futex::Flags::empty(), i32::MAX as u32);
}

/// Waits as `rank` until all ranks have entered; `limit` bounds the wait.
///
/// `all_here` is called if this rank is the last of its host in a job over several hosts.
pub(crate) fn wait(
    control: &Control,
    rank: JobRank,
    limit: Option<Duration>,
    all_here: impl FnOnce(),
) -> Result<(), BootError> {
    let fence = &control.job().fence;
    if let Some(cause) = ending(control) {
        return Err(BootError::JobEnding {
            rank,
            cause,
            missing: Missing::default(),
        });
    }
    let generation = fence.generation.load(Ordering::Acquire);
    control
        .rank_page(rank)
        .fences_entered
        .fetch_add(1, Ordering::Relaxed);
    if fence.arrived.fetch_add(1, Ordering::AcqRel) + 1 == control.part().ranks {
        fence.arrived.store(0, Ordering::Relaxed);
        let number = generation.wrapping_add(1);
        if control.is_whole_job() {
            complete(fence, number);
            return Ok(());
        }
        fence.host_arrived.store(number, Ordering::Release);
        all_here();
    }
    let passed = || fence.generation.load(Ordering::Acquire) != generation;
    for _ in 0..SPINS {
        if passed() {
            return Ok(());
        }
        spin_hint();
    }
    for _ in 0..YIELDS {
        if passed() {
            return Ok(());
        }
        sched_yield();
    }
    let begun = Instant::now();
    while !passed() {
        let nap = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(LOOK_AROUND.subsec_nanos()),
        };
        // Every outcome (woken, time-out, value changed, interrupted) leads to the same look
        // around.
        let _ = futex::wait(
            &fence.generation,
            futex::Flags::empty(),
            generation,
            Some(&nap),
        );
        if passed() {
            break;
        }
        let looked = look_around(control, rank, begun.elapsed(), limit);
        if looked.is_err() && passed() {
            break; // What it found is of later than the fence.
        }
        looked?;
    }
    Ok(())
}

/// Lets the ranks of this host go on from fence `number`, counted from 1.
pub(crate) fn complete(fence: &FenceWords, number: u32) {
    fence.generation.store(number, Ordering::Release);
    wake_all(fence);
}

/// Why the job is ending, unless ranks have time to come to their end: then this process goes on
/// waiting, until it is made to end.
fn ending(control: &Control) -> Option<ExitWord> {
    let cause = control.job().exit_word()?;
    (!process::attend(control)).then_some(cause)
}

/// The error that a rank in a fence must report, if there is one.
fn look_around(
    control: &Control,
    rank: JobRank,
    waited: Duration,
    limit: Option<Duration>,
) -> Result<(), BootError> {
    let entered = control
        .rank_page(rank)
        .fences_entered
        .load(Ordering::Relaxed);
    let absent =
        |r: &JobRank| control.rank_page(*r).fences_entered.load(Ordering::Relaxed) < entered;
    // This host does not know which ranks of other hosts have entered.
    let missing = || Missing(control.host_ranks().filter(absent).collect());
    if let Some(cause) = ending(control) {
        return Err(BootError::JobEnding {
            rank,
            cause,
            missing: missing(),
        });
    }
    let gone = |r: &JobRank| {
        let page = control.rank_page(*r);
        let by_itself = matches!(page.state(), RankState::Finalized | RankState::Ended);
        by_itself || page.lost().is_some()
    };
    // The state is looked at first: a rank that has finalized entered all its fences before.
    let deserters: Vec<_> = (0..control.size())
        .map(JobRank)
        .filter(gone)
        .filter(absent)
        .collect();
    if !deserters.is_empty() {
        return Err(BootError::FenceDeserted {
            rank,
            missing: Missing(deserters),
        });
    }
    match limit {
        Some(limit) if waited >= limit => Err(BootError::FenceTimeout {
            rank,
            missing: missing(),
            waited,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SharedFiles;
    use crate::page::{ExitKind, HostPart, JobIdentity};
    use std::sync::atomic::AtomicU32;
    use std::thread;

    fn control(size: u32) -> Control {
        part_of(size, HostPart::whole(size))
    }

    fn part_of(size: u32, part: HostPart) -> Control {
        let files = SharedFiles::create(size, None).unwrap();
        Control::create(
            &files.control,
            JobIdentity {
                job_id: 1,
                size,
                huge_pages: 0,
                launcher_pid: 1,
                part,
            },
        )
        .unwrap()
    }

    #[test]
    fn no_rank_passes_before_all_have_entered() {
        const RANKS: u32 = 5;
        const ROUNDS: u32 = 300;
        let control = control(RANKS);
        let entered = AtomicU32::new(0);
        thread::scope(|scope| {
            for rank in (0..RANKS).map(JobRank) {
                let (control, entered) = (&control, &entered);
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        entered.fetch_add(1, Ordering::Relaxed);
                        wait(control, rank, None, || ()).unwrap();
                        assert!(entered.load(Ordering::Relaxed) >= round * RANKS);
                    }
                });
            }
        });
    }

    #[test]
    fn a_fence_names_the_missing_ranks_when_its_time_is_up() {
        let control = control(3);
        thread::scope(|scope| {
            let other = scope.spawn(|| wait(&control, JobRank(0), Some(Duration::ZERO), || ()));
            let error = wait(&control, JobRank(2), Some(Duration::ZERO), || ())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("rank 2 waited") && error.contains("rank"),
                "{error}"
            );
            assert!(other.join().unwrap().is_err());
        });
        let BootError::FenceTimeout { missing, .. } = look_around(
            &control,
            JobRank(2),
            Duration::from_secs(1),
            Some(Duration::ZERO),
        )
        .unwrap_err() else {
            panic!("not a time-out")
        };
        assert_eq!(missing, Missing(vec![JobRank(1)]));
    }

    #[test]
    fn a_fence_ends_when_a_missing_rank_cannot_come_or_the_job_ends() {
        let control = control(2);
        control.rank_page(JobRank(1)).advance(RankState::Finalized);
        let error = wait(&control, JobRank(0), None, || ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("rank 1 ended or finalized"), "{error}");
        // One that is lost cannot come either.
        let lost = self::control(2);
        crate::losses::declare(&lost, JobRank(1));
        let error = wait(&lost, JobRank(0), None, || ()).unwrap_err();
        assert!(matches!(error, BootError::FenceDeserted { .. }), "{error}");
        control.job().set_exit_word(ExitWord {
            kind: ExitKind::Failed,
            rank: JobRank(1),
            code: 9,
        });
        let error = wait(&control, JobRank(0), None, || ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("rank 1 ended with code 9"), "{error}");
    }

    #[test]
    fn the_last_rank_of_a_host_wakes_its_agent_and_waits_for_the_other_hosts() {
        let part = HostPart {
            first: 2,
            ranks: 2,
            neighborhood: 2,
        };
        let control = part_of(6, part);
        let wakeups = AtomicU32::new(0);
        thread::scope(|scope| {
            for rank in part.all().map(JobRank) {
                let (control, wakeups) = (&control, &wakeups);
                scope.spawn(move || {
                    wait(control, rank, None, || {
                        assert_eq!(wakeups.fetch_add(1, Ordering::Relaxed), 0);
                    })
                });
            }
            let fence = &control.job().fence;
            while fence.host_arrived.load(Ordering::Acquire) != 1 {
                spin_hint();
            }
            assert_eq!(fence.generation.load(Ordering::Relaxed), 0);
            complete(fence, 1);
        });
        assert_eq!(wakeups.load(Ordering::Relaxed), 1);
        // The agents report a rank of another host that will not come.
        control.rank_page(JobRank(5)).advance(RankState::Finalized);
        let error = wait(&control, JobRank(2), None, || ()).unwrap_err();
        assert!(
            error.to_string().contains("rank 5 ended or finalized"),
            "{error}"
        );
        let late = wait(&part_of(6, part), JobRank(2), Some(Duration::ZERO), || ()).unwrap_err();
        assert!(late.to_string().contains("for rank 3;"), "{late}");
    }
}
