//! Ticks of the processor's counter and the time of the clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use argonet_base::cpu;
use argonet_settings::{
    Settings, TSC_RATE, TSC_RATE_HARD_TOLERANCE, TSC_RATE_TOLERANCE, TSC_VERBOSE,
};
use core::ffi::c_int;
use rustix::time::{ClockId, clock_gettime};

use crate::export::export;
use crate::tools::environment::settings_of;
use crate::tools::errors::{fatal, warn};
use crate::tools::state;

/// For how long the counter is compared with the clock, in nanoseconds.
const COMPARED_NS: u64 = 10_000_000;
/// How often the two are read together; the pair that was read fastest counts.
const READINGS: u32 = 16;
/// Ticks a second that a user may give.
const GIVEN_RATES: std::ops::RangeInclusive<f64> = 1e6..=1e11;

/// How ticks become time.
pub(crate) struct Rate {
    /// Nanoseconds for 2^32 ticks.
    scale: u64,
    /// What reading the counter costs, in microseconds.
    overhead_us: f64,
}

/// The clock, in nanoseconds; its zero means nothing.
fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Ticks and clock at one time, as nearly as the machine lets.
fn together() -> (u64, u64) {
    let read = || {
        let before = cpu::ticks();
        let ns = clock_ns();
        let after = cpu::ticks();
        (after.wrapping_sub(before), before, ns)
    };
    let (width, before, ns) = (0..READINGS).map(|_| read()).min().unwrap_or_else(read);
    (before.wrapping_add(width / 2), ns)
}

/// Ticks a second between two readings.
fn rate_between(from: (u64, u64), to: (u64, u64)) -> f64 {
    to.0.wrapping_sub(from.0) as f64 * 1e9 / to.1.saturating_sub(from.1).max(1) as f64
}

fn together_after(ns: u64) -> (u64, u64) {
    let end = clock_ns() + ns;
    while clock_ns() < end {
        cpu::relax();
    }
    together()
}

/// The rate as the kernel describes the first processor. Where it gives none, the user's choice cannot be kept.
fn described() -> f64 {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("cpu MHz"));
    let mhz = line
        .and_then(|line| line.split(':').nth(1))
        .and_then(|number| number.trim().parse::<f64>().ok());
    match mhz {
        Some(mhz) if mhz > 0.0 => mhz * 1e6,
        _ => fatal(
            "",
            "GASNET_TSC_RATE is cpuinfo, and /proc/cpuinfo has no \"cpu MHz\"; allowed: walltime, or ticks per second",
        ),
    }
}

fn chosen(settings: &Settings, measured: f64) -> f64 {
    let word = settings.get(&TSC_RATE);
    match word.as_str() {
        "walltime" => measured,
        "cpuinfo" => described(),
        text => match text.parse::<u64>() {
            Ok(rate) if GIVEN_RATES.contains(&(rate as f64)) => rate as f64,
            _ => fatal(
                "",
                &format!(
                    "the environment variable GASNET_TSC_RATE is \"{}\"; allowed: walltime, cpuinfo, or ticks per second \
                     from 1000000 to 100000000000",
                    text.escape_debug()
                ),
            ),
        },
    }
}

impl Rate {
    /// Compares counter and clock, which takes a little more than 10 ms.
    pub(crate) fn find() -> Self {
        let settings = settings_of(&[
            "GASNET_TSC_RATE",
            "GASNET_TSC_RATE_TOLERANCE",
            "GASNET_TSC_RATE_HARD_TOLERANCE",
            "GASNET_TSC_VERBOSE",
        ]);
        let first = together();
        let second = together_after(COMPARED_NS / 2);
        let third = together_after(COMPARED_NS / 2);
        let measured = rate_between(first, third);
        let rate = chosen(&settings, measured);
        // Of a measured rate both halves must say the same.
        let halves = [rate_between(first, second), rate_between(second, third)];
        let error = |other: &f64| (other / rate - 1.0).abs();
        let difference = halves.iter().map(error).fold(0.0, f64::max);
        let told = format!(
            "the tick counter is taken to run at {rate:.0} ticks per second, within {difference:.1e}"
        );
        if settings.get(&TSC_VERBOSE) {
            warn(&told);
        }
        if difference > settings.get(&TSC_RATE_HARD_TOLERANCE) {
            fatal(
                "",
                &format!("{told}: more than GASNET_TSC_RATE_HARD_TOLERANCE"),
            );
        }
        if difference > settings.get(&TSC_RATE_TOLERANCE) {
            warn(&format!("{told}: more than GASNET_TSC_RATE_TOLERANCE"));
        }
        let from = cpu::ticks();
        let last = (0..1000).fold(from, |_, _| cpu::ticks());
        let overhead_us = last.wrapping_sub(from).max(1) as f64 / 1000.0 / rate * 1e6;
        Self {
            scale: (1e9 / rate * (1u64 << 32) as f64).round() as u64,
            overhead_us,
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

export! {
    /// The nanoseconds that so many ticks take. The first call finds the rate, which takes 10 ms.
    fn argonett_ticks_to_ns(ticks: u64) -> u64 {
        state::rate().ns(ticks)
    }

    /// The least difference of two ticks, in microseconds: more than zero.
    fn argonett_tick_granularity_us() -> f64 {
        state::rate().scale as f64 / (1u64 << 32) as f64 / 1000.0
    }

    /// What reading the counter costs, in microseconds: more than zero.
    fn argonett_tick_overhead_us() -> f64 {
        state::rate().overhead_us
    }

    /// Microseconds since 1970.
    fn argonett_gettimeofday_us() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or(Duration::ZERO).as_micros() as u64
    }

    /// Sleeps for at least `ns` nanoseconds: 0, or -1 with `errno` `EINTR` after a signal.
    fn argonett_nsleep(ns: u64) -> c_int {
        if ns == 0 {
            return 0;
        }
        let time = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `time` lives; nobody asks for what is left.
        unsafe { libc::nanosleep(&time, std::ptr::null_mut()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_time_without_overflow() {
        let rate = Rate {
            scale: (1u64 << 32) / 2,
            overhead_us: 1.0,
        };
        assert_eq!(rate.ns(0), 0);
        assert_eq!(rate.ns(3), 1);
        assert_eq!(rate.ns(u64::MAX), u64::MAX / 2);
    }

    #[test]
    fn a_rate_is_ticks_a_second() {
        assert_eq!(rate_between((100, 1_000), (400, 1_100)), 3e9);
    }
}
