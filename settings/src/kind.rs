//! Kinds of values of variables.

use std::path::PathBuf;
use std::time::Duration;

use argonet_base::size::parse_size;

use crate::letters::Letters;
use crate::limit::{self, SegmentLimit};
use crate::nodes::NodeSet;
use crate::signal::{SignalNumber, Signals};
use crate::value::{Bytes, Value};

/// The unit in which a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
}

impl TimeUnit {
    const fn nanos(self) -> u128 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Microseconds => 1_000,
        }
    }

    const fn digits(self) -> usize {
        match self {
            Self::Seconds => 9,
            Self::Microseconds => 3,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Microseconds => "microseconds",
        }
    }

    /// Reads a decimal number, to the nanosecond.
    fn parse(self, text: &str) -> Option<Duration> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        let kept = &fraction[..fraction.len().min(self.digits())];
        let part: u128 = format!("{kept:0<width$}", width = self.digits())
            .parse()
            .ok()?;
        let nanos = u128::from(whole).checked_mul(self.nanos())? + part;
        let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
        Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
    }

    fn show(self, time: Duration) -> String {
        let (whole, part) = (
            time.as_nanos() / self.nanos(),
            time.as_nanos() % self.nanos(),
        );
        let part = format!("{part:0width$}", width = self.digits());
        match part.trim_end_matches('0') {
            "" => whole.to_string(),
            part => format!("{whole}.{part}"),
        }
    }
}

/// The values that a variable may hold.
///
/// Blanks around a value do not count, nor does case in words.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// `1`, `y`, `yes` or `0`, `n`, `no`.
    Boolean,
    /// A number of bytes, such as `64.5MB`; units are 1024-based.
    Size {
        /// Bytes at least.
        min: u64,
        /// Bytes at most.
        max: u64,
    },
    /// A size or fraction for each process or the host, such as `0.85/H`.
    Limit,
    /// A whole number of something.
    Count {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
        /// The things that it counts.
        unit: &'static str,
    },
    /// A decimal number, which may be negative.
    Number,
    /// A time, as a decimal number of a unit.
    Duration {
        /// The unit.
        unit: TimeUnit,
        /// At least.
        min: Duration,
        /// At most.
        max: Duration,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, separated by commas; their order counts.
    Choices(&'static [&'static str]),
    /// Ranks, such as `0,2-4,6`; `*` for all.
    Nodes,
    /// Letters of traces, such as `GPA`, or `^X` for all but some.
    Letters,
    /// A signal by name or number.
    Signal,
    /// Signals, separated by commas; `*` for all.
    Signals,
    /// Any text.
    Text,
    /// A file or directory.
    Path,
}

/// Any size that a process could address.
pub(crate) const SIZE: Kind = Kind::Size {
    min: 0,
    max: MAX_SIZE,
};
pub(crate) const MAX_SIZE: u64 = 1 << 56;

/// Seconds, up to a day.
pub(crate) const SECONDS: Kind = Kind::Duration {
    unit: TimeUnit::Seconds,
    min: Duration::ZERO,
    max: DAY,
};
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Any whole number of `unit`.
pub(crate) const fn count(unit: &'static str) -> Kind {
    Kind::Count {
        min: 0,
        max: u64::MAX,
        unit,
    }
}

impl Kind {
    /// Reads a value.
    ///
    /// # Errors
    /// It is not one; with the reason where there is more to say than [`allowed`](Self::allowed)
    /// does.
    pub fn parse(&self, text: &str) -> Result<Value, Option<String>> {
        let text = text.trim();
        let value = match *self {
            Self::Boolean => match text.to_ascii_lowercase().as_str() {
                "1" | "y" | "yes" => Some(Value::Boolean(true)),
                "0" | "n" | "no" => Some(Value::Boolean(false)),
                _ => None,
            },
            Self::Size { min, max } => parse_size(text)
                .ok()
                .filter(|bytes| (min..=max).contains(bytes))
                .map(|bytes| Value::Size(Bytes(bytes))),
            Self::Limit => {
                let limit = SegmentLimit::parse(text).map_err(|error| Some(error.to_string()))?;
                Some(Value::Limit(limit))
            }
            Self::Count { min, max, .. } => plain_number(text)
                .filter(|n| (min..=max).contains(n))
                .map(Value::Count),
            Self::Number => {
                let number = text.parse::<f64>().ok();
                number.filter(|n| n.is_finite()).map(Value::Number)
            }
            Self::Duration { unit, min, max } => unit
                .parse(text)
                .filter(|time| (min..=max).contains(time))
                .map(Value::Duration),
            Self::Choice(words) => word(words, text).map(Value::Choice),
            Self::Choices(words) => {
                let found: Option<Vec<_>> = text.split(',').map(|item| word(words, item)).collect();
                found.map(Value::Choices)
            }
            Self::Nodes => NodeSet::parse(text).map(Value::Nodes),
            Self::Letters => Letters::parse(text).map(Value::Letters),
            Self::Signal => SignalNumber::parse(text).map(Value::Signal),
            Self::Signals => Signals::parse(text).map(Value::Signals),
            Self::Text => Some(Value::Text(text.to_owned())),
            Self::Path => Some(Value::Path(PathBuf::from(text))),
        };
        value.ok_or(None)
    }

    /// The allowed values, in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        match *self {
            Self::Boolean => "1, y or yes; 0, n or no".into(),
            Self::Size { min, max } => format!(
                "a size from {} to {}, such as 4096, 64.5MB or 1 GiB",
                size(min),
                size(max)
            ),
            Self::Limit => limit::ALLOWED.into(),
            Self::Count { min, max, unit } => {
                let range = if max == u64::MAX {
                    format!("from {min}")
                } else {
                    format!("from {min} to {max}")
                };
                format!("a number of {unit} {range}")
            }
            Self::Number => "a decimal number".into(),
            Self::Duration { unit, min, max } => format!(
                "a number of {} from {} to {}",
                unit.word(),
                unit.show(min),
                unit.show(max)
            ),
            Self::Choice([word]) => (*word).into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Choices(words) => format!("a comma-separated list of {}", words.join(", ")),
            Self::Nodes => "ranks and ranges such as 0,2-4,6, or * for all".into(),
            Self::Letters => {
                "some of the letters GPRSWBLAXIOCDNHU, or ^ and letters for all but those".into()
            }
            Self::Signal => "a signal that can be handled, such as SIGUSR1 or 10".into(),
            Self::Signals => "signals such as SIGINT,SIGTERM, or * for all".into(),
            Self::Text => "any text".into(),
            Self::Path => "a file or directory".into(),
        }
    }

    /// The things that a number counts; empty where there is nothing to say.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Boolean => "yes or no",
            Self::Size { .. } => "bytes",
            Self::Limit => "bytes or fraction",
            Self::Count { unit, .. } => unit,
            Self::Duration { unit, .. } => unit.word(),
            Self::Number => "number",
            Self::Choice(_) => "word",
            Self::Choices(_) => "words",
            Self::Nodes => "ranks",
            Self::Letters => "letters",
            Self::Signal => "signal",
            Self::Signals => "signals",
            Self::Text => "text",
            Self::Path => "path",
        }
    }

    /// A value in a form that [`parse`](Self::parse) reads.
    #[must_use]
    pub fn show(&self, value: &Value) -> String {
        match value {
            Value::Boolean(true) => "YES".into(),
            Value::Boolean(false) => "NO".into(),
            Value::Size(Bytes(bytes)) => size(*bytes),
            Value::Limit(limit) => limit.to_string(),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Duration(time) => match self {
                Self::Duration { unit, .. } => unit.show(*time),
                _ => TimeUnit::Seconds.show(*time),
            },
            Value::Choice(word) => (*word).into(),
            Value::Choices(words) => words.join(","),
            Value::Nodes(nodes) => nodes.to_string(),
            Value::Letters(letters) => letters.to_string(),
            Value::Signal(signal) => signal.to_string(),
            Value::Signals(signals) => signals.to_string(),
            Value::Text(text) => text.clone(),
            Value::Path(path) => path.display().to_string(),
        }
    }
}

fn plain_number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn word(words: &'static [&'static str], text: &str) -> Option<&'static str> {
    let text = text.trim();
    words
        .iter()
        .copied()
        .find(|word| word.eq_ignore_ascii_case(text))
}

/// In the largest unit that is exact.
fn size(bytes: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
    let exact = |&&(shift, _): &&(u32, _)| bytes != 0 && bytes.trailing_zeros() >= shift;
    match units.iter().find(exact) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}
