//! Time limits of a rank that ends for what it waits for: confirmations of others, and others that
//! have all they need of it.

use std::time::Duration;

use crate::clock::now_ms;
use crate::page::Control;

/// The part of the time that is left in which a process that ends may wait for others.
const LINGER_PART: u32 = 2;

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

/// For how long a process that ends in the job of `control` may wait until others have all that
/// they need of it, such as acknowledgements: no longer than half of the time that is left until it
/// is killed, since the rest of its end needs time, too.
///
/// Without a limit while the job is not ending.
pub(crate) fn exit_grace(control: &Control) -> Duration {
    let left = control.job().time_until_forced(now_ms());
    left.map_or(Duration::MAX, |left| left / LINGER_PART)
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
