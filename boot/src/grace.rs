//! Whether rank 0 of a job that started itself gets another grace, or is killed.
//!
//! The user waits for the process of rank 0, so a kill loses the job's code and its report. A rank 0
//! that is on its way to its end gets further graces, a bounded number of them.

use std::time::Duration;

use crate::guardian::RANK_0_GRACE;
use crate::processor_time::ProcessorTime;

/// Further graces of a rank 0 that is on its way.
const MORE_GRACES: u32 = 4;

/// The part of a grace that counts as most of it.
const MOST: Duration = RANK_0_GRACE.checked_div(2).expect("2 is not 0");

/// Whether a grace that is over is followed by another. `before` and `now` are what the process had
/// of the processors when the grace began and when it ended, `given` is the number of further
/// graces so far, and `code` that of the job.
pub(crate) fn has_another(before: ProcessorTime, now: ProcessorTime, given: u32, code: u8) -> bool {
    let ran = now.ran.saturating_sub(before.ran);
    let waited = now.waited.saturating_sub(before.waited);
    let lacked_a_processor = waited >= MOST;
    let works_on = code == 0 && ran + waited >= MOST;
    given < MORE_GRACES && (lacked_a_processor || works_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(ran_ms: u64, waited_ms: u64) -> ProcessorTime {
        ProcessorTime {
            ran: Duration::from_millis(ran_ms),
            waited: Duration::from_millis(waited_ms),
        }
    }

    #[test]
    fn graces_are_for_what_is_on_its_way() {
        let rows = [
            // Ran and waited in ms, graces so far, code, and whether there is another.
            (0, 0, 0, 0, false),
            (0, 0, 0, 7, false),
            (999, 0, 0, 0, false),
            (1000, 0, 0, 0, true),
            (2000, 0, 0, 0, true),
            (2000, 0, 0, 1, false),
            (2000, 0, 0, 7, false),
            (2000, 0, 0, 255, false),
            (0, 999, 0, 0, false),
            (0, 999, 0, 7, false),
            (0, 1000, 0, 0, true),
            (0, 1000, 0, 7, true),
            (500, 500, 0, 0, true),
            (500, 499, 0, 0, false),
            (500, 500, 0, 7, false),
            (1001, 999, 0, 7, false),
            (1000, 1000, 3, 0, true),
            (1000, 1000, 3, 7, true),
            (1000, 1000, 4, 0, false),
            (1000, 1000, 4, 7, false),
            (1000, 1000, u32::MAX, 0, false),
        ];
        for (ran_ms, waited_ms, given, code, another) in rows {
            let before = time(5_000, 3_000);
            let now = time(5_000 + ran_ms, 3_000 + waited_ms);
            let row = (ran_ms, waited_ms, given, code);
            assert_eq!(has_another(before, now, given, code), another, "{row:?}");
        }
    }

    #[test]
    fn what_was_before_the_grace_does_not_count() {
        let long = time(100_000, 100_000);
        assert!(!has_another(long, long, 0, 0));
        // The threads that had it have ended.
        assert!(!has_another(long, time(0, 0), 0, 0));
    }
}
