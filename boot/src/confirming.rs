//! Time limit of a rank that exits for the confirmations of others.

use std::time::Duration;

/// The limit with the exit time-outs that a job has by itself.
const LIMIT: Duration = Duration::from_millis(100);

/// The part of a short exit time-out that bounds it.
const SHORT_PART: u32 = 8;

/// The part of a long exit time-out that it is at least.
const LONG_PART: u32 = 200;

/// Longest wait of a rank that exits for the confirmations of others.
///
/// A longer exit time-out leaves more to ranks that have to wait for a processor.
pub(crate) fn confirming_limit(timeout: Duration) -> Duration {
    let limit = LIMIT.max(timeout / LONG_PART);
    limit.min(timeout / SHORT_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmations_have_a_part_of_the_time_out() {
        let rows_ms = [
            // The exit time-out, and how long confirmations are waited for.
            (0, 0),
            (80, 10),
            (799, 99),
            (800, 100),
            (5_000, 100),
            (20_000, 100),
            (20_200, 101),
            (200_000, 1_000),
        ];
        for (timeout, limit) in rows_ms {
            let found = confirming_limit(Duration::from_millis(timeout));
            assert_eq!(found.as_millis(), limit, "{timeout} ms");
        }
        assert!(confirming_limit(Duration::MAX) < Duration::MAX / 100);
    }
}
