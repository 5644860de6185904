//! Whether rank 0 of a job that started itself gets another grace, or is killed.
//!
//! The user waits for the process of rank 0, so a kill loses the job's code and its report. A rank
//! 0 that is on its way to its end gets further graces, a bounded number of them:
//!
//! * one of its threads had no processor for most of the grace, for any code of the job;
//! * one of its threads computed, or could have, for most of it, and the job ends with 0.
//!
//! Each thread is judged by itself. The exit may wait for any of them, as in `pthread_join`, and
//! the short work of many threads that rest would look like one that computes.

use std::time::Duration;

use crate::guardian::RANK_0_GRACE;
use crate::processor_time::ThreadTime;

/// Further graces of a rank 0 that is on its way.
const MORE_GRACES: u32 = 4;

/// The part of a grace that counts as most of it.
const MOST: Duration = RANK_0_GRACE.checked_div(2).expect("2 is not 0");

/// Whether a grace that is over is followed by another.
///
/// `before` and `now` are the threads of the process when the grace began and when it ended,
/// `given` is the number of further graces so far, and `code` that of the job.
pub(crate) fn has_another(before: &[ThreadTime], now: &[ThreadTime], given: u32, code: u8) -> bool {
    let is_on_its_way = |now: &ThreadTime| {
        let before = before.iter().find(|before| before.thread == now.thread);
        let Share { ran, waited } = Share::of_grace(before, now);
        waited >= MOST || code == 0 && ran + waited >= MOST
    };
    given < MORE_GRACES && now.iter().any(is_on_its_way)
}

/// Processor time of a thread during one grace.
struct Share {
    ran: Duration,
    waited: Duration,
}

impl Share {
    /// `before` is missing for a thread that began during the grace.
    fn of_grace(before: Option<&ThreadTime>, now: &ThreadTime) -> Self {
        let Some(before) = before else {
            let &ThreadTime { ran, waited, .. } = now;
            return Self { ran, waited };
        };
        let ran = now.ran.saturating_sub(before.ran);
        let waited = now.waited.saturating_sub(before.waited);
        // A wait that goes on is not counted yet. A thread that has never run is one of a system
        // that does not count.
        let still_waits = now.is_ready && !now.ran.is_zero() && ran.is_zero() && waited.is_zero();
        let waited = if still_waits { RANK_0_GRACE } else { waited };
        Self { ran, waited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(thread: u32, ran_ms: u64, waited_ms: u64, is_ready: bool) -> ThreadTime {
        ThreadTime {
            thread,
            ran: Duration::from_millis(ran_ms),
            waited: Duration::from_millis(waited_ms),
            is_ready,
        }
    }

    const READY: bool = true;
    const RESTS: bool = false;

    #[test]
    fn graces_of_one_thread() {
        let rows = [
            // Ran and waited in ms, state, graces so far, code, and whether there is another.
            (0, 0, RESTS, 0, 0, false),
            (0, 0, RESTS, 0, 7, false),
            // Works on.
            (999, 0, RESTS, 0, 0, false),
            (1000, 0, RESTS, 0, 0, true),
            (2000, 0, READY, 0, 0, true),
            (2000, 0, READY, 0, 1, false),
            (2000, 0, READY, 0, 7, false),
            (2000, 0, READY, 0, 255, false),
            (500, 500, READY, 0, 0, true),
            (500, 499, READY, 0, 0, false),
            (500, 500, READY, 0, 7, false),
            // Lacked a processor.
            (0, 999, READY, 0, 0, false),
            (0, 999, READY, 0, 7, false),
            (0, 1000, READY, 0, 0, true),
            (0, 1000, RESTS, 0, 7, true),
            (1001, 999, READY, 0, 7, false),
            (1000, 1000, READY, 0, 7, true),
            // Has waited since before the grace.
            (0, 0, READY, 0, 0, true),
            (0, 0, READY, 0, 7, true),
            (1, 0, READY, 0, 7, false),
            (0, 1, READY, 0, 7, false),
            // The number of graces is bounded.
            (1000, 1000, READY, 3, 0, true),
            (1000, 1000, READY, 3, 7, true),
            (1000, 1000, READY, 4, 0, false),
            (1000, 1000, READY, 4, 7, false),
            (1000, 1000, READY, u32::MAX, 0, false),
        ];
        for (ran_ms, waited_ms, state, given, code, another) in rows {
            let before = [time(1, 5_000, 3_000, RESTS)];
            let now = [time(1, 5_000 + ran_ms, 3_000 + waited_ms, state)];
            let row = (ran_ms, waited_ms, state, given, code);
            assert_eq!(has_another(&before, &now, given, code), another, "{row:?}");
        }
    }

    #[test]
    fn each_thread_is_judged_by_itself() {
        /// Run and wait times of the threads in ms, the code, and whether there is another grace.
        type Row = (&'static [(u64, u64)], u8, bool);
        let rows: [Row; 8] = [
            (&[(0, 0), (1500, 0)], 0, true),
            (&[(0, 0), (1500, 0)], 7, false),
            (&[(0, 0), (0, 1500)], 7, true),
            (&[(600, 0), (600, 0)], 0, false),
            (&[(0, 600), (0, 600)], 0, false),
            (&[(0, 600), (0, 600)], 7, false),
            (&[(1500, 0), (0, 999)], 7, false),
            (&[(100, 100); 64], 0, false),
        ];
        for (threads, code, another) in rows {
            let ids = || threads.iter().zip(1..);
            let before: Vec<_> = ids().map(|(_, id)| time(id, 9_000, 9_000, RESTS)).collect();
            let now: Vec<_> = ids()
                .map(|(&(ran, waited), id)| time(id, 9_000 + ran, 9_000 + waited, RESTS))
                .collect();
            assert_eq!(
                has_another(&before, &now, 0, code),
                another,
                "{threads:?} {code}"
            );
        }
    }

    #[test]
    fn threads_begin_and_end_during_a_grace() {
        let (old, new) = (time(1, 9_000, 9_000, RESTS), time(2, 1_000, 0, READY));
        // The new thread computes; the earlier time of the others does not count.
        assert!(has_another(&[old], &[old, new], 0, 0));
        assert!(!has_another(&[old], &[old, new], 0, 7));
        // It is ready, and has had no time to wait.
        assert!(!has_another(&[old], &[old, time(2, 0, 0, READY)], 0, 0));
        // A thread that has ended takes nothing from the others.
        let works = time(1, 11_000, 9_000, READY);
        assert!(has_another(
            &[old, time(3, 50_000, 0, RESTS)],
            &[works],
            0,
            0
        ));
        // The process has ended.
        assert!(!has_another(&[old], &[], 0, 0));
    }
}
