//! Ticks of the processor's counter and the time of the clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use argonet_base::cpu;
use argonet_settings::{
    Settings, TSC_RATE, TSC_RATE_HARD_TOLERANCE, TSC_RATE_TOLERANCE, TSC_VERBOSE,
};
use core::ffi::c_int;
use rustix::time::{ClockId, clock_gettime};

use crate::export::export;
use crate::tools::environment::{is_any_set, settings_of};
use crate::tools::errors::{fatal, warn};
use crate::tools::state;

/// Readings so far apart, in nanoseconds, say what the rate is: reading takes 50 ns or so.
const APART_NS: u64 = 1_000_000;
/// Readings so far apart say it within some thousandths.
const COARSELY_APART_NS: u64 = 20_000;
/// Settings of the rate.
const SETTINGS: [&str; 4] = [
    "GASNET_TSC_RATE",
    "GASNET_TSC_RATE_TOLERANCE",
    "GASNET_TSC_RATE_HARD_TOLERANCE",
    "GASNET_TSC_VERBOSE",
];
/// No preset tolerance is less.
///
/// So where the user sets nothing there is nothing to look up, which would cost as much as the
/// rest.
const SURELY_WITHIN: f64 = 1e-4;
/// How often the two are read together; the pair that was read fastest counts.
const READINGS: u32 = 16;
/// Ticks a second that a user may give.
const GIVEN_RATES: std::ops::RangeInclusive<f64> = 1e6..=1e11;

/// How ticks become time.
pub(crate) struct Rate {
    /// Nanoseconds for 2^32 ticks.
    scale: u64,
    /// Cost of a reading of the counter, in microseconds.
    overhead_us: f64,
}

/// The clock, in nanoseconds; its zero means nothing.
fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Counter and clock at one time, as nearly as the machine lets.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    ticks: u64,
    ns: u64,
    /// Ticks between the reads around that of the clock.
    width: u64,
}

impl Reading {
    pub(crate) fn now() -> Self {
        let read = || {
            let before = cpu::ticks();
            let ns = clock_ns();
            let width = cpu::ticks().wrapping_sub(before);
            let ticks = before.wrapping_add(width / 2);
            Self { ticks, ns, width }
        };
        let readings = (0..READINGS).map(|_| read());
        readings
            .min_by_key(|reading| reading.width)
            .unwrap_or_else(read)
    }
}

ctor::declarative::ctor! {
    /// The reading at the beginning of the process, which the first conversion of ticks compares
    /// with, so that it need not wait.
    #[ctor(unsafe)]
    fn begin() {
        state::begin_reading();
    }
}

/// A rate, and its relative uncertainty.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Measured {
    rate: f64,
    within: f64,
}

/// The rate between two readings, if they are at least `apart_ns` apart.
fn measured(from: Reading, to: Reading, apart_ns: u64) -> Option<Measured> {
    let ns = to.ns.saturating_sub(from.ns);
    if ns < apart_ns {
        return None;
    }
    let ticks = to.ticks.wrapping_sub(from.ticks) as f64;
    Some(Measured {
        rate: ticks * 1e9 / ns as f64,
        within: (from.width + to.width) as f64 / ticks.max(1.0),
    })
}

/// The rate since the process began, or as the processor describes it.
///
/// Only in the first millisecond of a process whose processor says nothing does this wait for the
/// end of that.
fn measure(begin: Reading) -> Measured {
    let described = || {
        let rate = cpu::described_tick_rate()? as f64;
        Some(Measured { rate, within: 0.0 })
    };
    let since_begin = || measured(begin, Reading::now(), APART_NS);
    since_begin().or_else(described).unwrap_or_else(|| {
        loop {
            match since_begin() {
                Some(measured) => return measured,
                None => cpu::relax(),
            }
        }
    })
}

/// The rate as the kernel describes the first processor.
///
/// Where it gives none, the user's choice cannot be kept.
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
    /// Compares counter and clock with how they were when the process began.
    pub(crate) fn find() -> Self {
        let measured = measure(state::begin_reading());
        if measured.within < SURELY_WITHIN && !is_any_set(&SETTINGS) {
            return Self::of(measured.rate);
        }
        let settings = settings_of(&SETTINGS);
        let rate = chosen(&settings, measured.rate);
        let difference = (measured.rate / rate - 1.0).abs() + measured.within;
        let text = format!(
            "the tick counter is taken to run at {rate:.0} ticks per second, within {difference:.1e}"
        );
        if settings.get(&TSC_VERBOSE) {
            warn(&text);
        }
        if difference > settings.get(&TSC_RATE_HARD_TOLERANCE) {
            fatal(
                "",
                &format!("{text}: more than GASNET_TSC_RATE_HARD_TOLERANCE"),
            );
        }
        if difference > settings.get(&TSC_RATE_TOLERANCE) {
            warn(&format!("{text}: more than GASNET_TSC_RATE_TOLERANCE"));
        }
        Self::of(rate)
    }

    fn of(rate: f64) -> Self {
        let from = cpu::ticks();
        let last = (0..100).fold(from, |_, _| cpu::ticks());
        let overhead_us = last.wrapping_sub(from).max(1) as f64 / 100.0 / rate * 1e6;
        Self {
            scale: (1e9 / rate * (1u64 << 32) as f64).round() as u64,
            overhead_us,
        }
    }

    /// From readings that are near each other: the most ticks a second that they allow.
    ///
    /// So an interval comes out shorter than by the rate that is found later, never longer, and
    /// time that grows does not go back when that is found.
    fn coarse(measured: Measured) -> Self {
        Self::of(measured.rate * (1.0 + measured.within))
    }

    fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

/// The rate for an interval of so many ticks.
///
/// In the first millisecond of a process it is the coarse one, for which a caller waits no longer
/// than the 20 us that must lie between two readings. The coarse rate is for an interval of this
/// process alone: more ticks than it has lived are no interval but a time, and an error of
/// thousandths would be hours there. It is not used where a setting concerns the rate, as
/// tolerances are for the better one.
#[inline]
fn rate_for(ticks: u64) -> &'static Rate {
    match state::rate().get() {
        Some(rate) => rate,
        None => early_rate(ticks),
    }
}

#[cold]
fn early_rate(ticks: u64) -> &'static Rate {
    let begin = state::begin_reading();
    let lived = cpu::ticks().wrapping_sub(begin.ticks);
    let is_early = clock_ns().saturating_sub(begin.ns) < APART_NS;
    if is_early && ticks <= lived && !is_any_set(&SETTINGS) {
        return state::coarse_rate().get_or_init(|| {
            loop {
                match measured(begin, Reading::now(), COARSELY_APART_NS) {
                    Some(measured) => return Rate::coarse(measured),
                    None => cpu::relax(),
                }
            }
        });
    }
    state::rate().get_or_init(Rate::find)
}

export! {
    /// The nanoseconds that so many ticks take.
    ///
    /// A call in the first millisecond of the process may take a rate that is some thousandths too
    /// high.
    fn argonett_ticks_to_ns(ticks: u64) -> u64 {
        rate_for(ticks).ns(ticks)
    }

    /// The least difference of two ticks, in microseconds: more than zero.
    fn argonett_tick_granularity_us() -> f64 {
        rate_for(0).scale as f64 / (1u64 << 32) as f64 / 1000.0
    }

    /// Cost of a reading of the counter, in microseconds: more than zero.
    fn argonett_tick_overhead_us() -> f64 {
        rate_for(0).overhead_us
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
        // SAFETY: `time` lives; null says that the time left is not wanted.
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

    fn reading(ticks: u64, ns: u64) -> Reading {
        let width = 30;
        Reading { ticks, ns, width }
    }

    #[test]
    fn a_rate_is_ticks_a_second() {
        let from = reading(100, 1_000);
        let measured = measured(
            from,
            reading(100 + 6_000_000, 1_000 + 2 * APART_NS),
            APART_NS,
        )
        .unwrap();
        assert_eq!(measured.rate, 3e9);
        assert_eq!(measured.within, 60.0 / 6e6);
    }

    #[test]
    fn close_readings_give_no_rate() {
        let from = reading(100, 1_000);
        for to in [reading(3_000_000, 999 + APART_NS), reading(3_000_000, 0)] {
            assert_eq!(measured(from, to, APART_NS), None);
        }
    }

    #[test]
    fn the_counter_wraps() {
        let from = reading(u64::MAX - 999_999, 0);
        let measured = measured(from, reading(1_000_000, APART_NS), APART_NS).unwrap();
        assert_eq!(measured.rate, 2e9);
    }

    /// A program that measures takes a stall of a rank for the cost of what it measures.
    #[test]
    fn a_process_that_has_run_for_a_while_does_not_wait() {
        let begun = Reading::now();
        while clock_ns() < begun.ns + APART_NS {
            cpu::relax();
        }
        let now = Reading::now();
        assert!(measured(begun, now, APART_NS).is_some());
        let rate = measure(begun).rate;
        assert!((1e7..1e10).contains(&rate), "{rate}");
    }

    /// For a clock read anywhere in its width, a conversion by the coarse rate gives no more than
    /// one by the true rate.
    #[test]
    fn a_coarse_rate_never_gives_more_than_the_true_one() {
        const TRUE: f64 = 2.5e9;
        let ticks_at = |ns: u64| (ns as f64 * TRUE / 1e9) as u64;
        let width = 100;
        // Half a width early or late, at both ends.
        for (early, late) in [(0, 0), (0, width), (width, 0), (width, width)] {
            let at = |ns: u64, off: u64| Reading {
                ticks: ticks_at(ns) + off - width / 2,
                ns,
                width,
            };
            let (from, to) = (at(1_000, early), at(1_000 + COARSELY_APART_NS, late));
            let coarse = Rate::coarse(measured(from, to, COARSELY_APART_NS).unwrap());
            let fine = Rate::of(TRUE);
            for ticks in [1_000, 50_000, 2_500_000] {
                let (low, right) = (coarse.ns(ticks), fine.ns(ticks));
                assert!(low <= right, "{low} of {right}");
                assert!(low >= right - right / 100 - 1, "{low} of {right}");
            }
        }
    }
}
