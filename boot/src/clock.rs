//! Clocks of a process, in ms; async-signal-safe.

use rustix::time::{ClockId, clock_gettime};

/// A monotonic clock; never 0.
pub(crate) fn now_ms() -> u64 {
    ms_of(ClockId::Monotonic).max(1)
}

/// Processor time of this process.
pub(crate) fn processor_ms() -> u64 {
    ms_of(ClockId::ProcessCPUTime)
}

fn ms_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
