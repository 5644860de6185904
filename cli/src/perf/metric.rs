//! Metrics.

use super::pair::Pair;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Amount of work of one chunk.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Operations of one chunk.
    pub(crate) count: u64,
    /// Bytes that one operation moves; 0 where size has no meaning.
    pub(crate) bytes: usize,
}

/// One side of a metric: does one chunk.
///
/// All ranks call it at the same time; the time that rank 0 returns counts.
pub(crate) type Side = fn(&Pair<'_>, Load) -> argonet::Result<Duration>;

/// Unit in which a figure is printed.
///
/// Chunks are compared by time in any unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Nanoseconds an operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Microseconds an operation.
    #[serde(rename = "us")]
    Microseconds,
    /// 1,000 MiB a second.
    #[serde(rename = "GB/s")]
    Gigabytes,
}

impl Unit {
    /// As printed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Gigabytes => "GB/s",
        }
    }

    /// A figure from nanoseconds an operation.
    pub(crate) fn figure(self, ns: f64, bytes: usize) -> f64 {
        match self {
            Unit::Nanoseconds => ns,
            Unit::Microseconds => ns / 1e3,
            Unit::Gigabytes => bytes as f64 / ns * 1e9 / (1000.0 * 1024.0 * 1024.0),
        }
    }
}

/// Goal of a metric.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// Our time is at most so many times that of the limit.
    Ratio(f64),
    /// At most so many nanoseconds an operation: there is no raw limit to compare with.
    Nanoseconds(f64),
    /// None yet.
    Information,
}

/// Ratio up to which two figures count as equal, because two measurements of one thing differ.
pub(crate) const EQUAL: f64 = 1.02;

/// Operations of one chunk, for operations of about so many nanoseconds: a chunk lasts about a
/// millisecond, short beside a time slice, long beside the clock.
pub(crate) fn chunk_of(estimate_ns: u64) -> u64 {
    (1_000_000 / estimate_ns).max(1)
}

/// The measured quantity, without its functions.
#[derive(Clone)]
pub(crate) struct Subject {
    /// Short name, unique, by which it is chosen.
    pub(crate) name: String,
    /// The quantity in words.
    pub(crate) what: String,
    /// Unit in which it is printed.
    pub(crate) unit: Unit,
    /// Bytes that one operation moves.
    pub(crate) bytes: usize,
    /// The limit in words; empty if there is none.
    pub(crate) limit_is: &'static str,
    /// The goal.
    pub(crate) goal: Goal,
    /// The curve of the plot that it is a point of.
    pub(crate) curve: Option<&'static str>,
}

/// One line of the table.
pub(crate) struct Metric {
    pub(crate) subject: Subject,
    /// Operations of one chunk.
    pub(crate) count: u64,
    /// Our side.
    pub(crate) ours: Side,
    /// The raw side, or what else it is compared with.
    pub(crate) limit: Option<Side>,
}

impl Metric {
    /// A metric without a limit and without a goal, whose operations take about `estimate_ns`.
    pub(crate) fn new(
        name: impl Into<String>,
        what: impl Into<String>,
        unit: Unit,
        bytes: usize,
        estimate_ns: u64,
        ours: Side,
    ) -> Self {
        Self {
            subject: Subject {
                name: name.into(),
                what: what.into(),
                unit,
                bytes,
                limit_is: "",
                goal: Goal::Information,
                curve: None,
            },
            count: chunk_of(estimate_ns),
            ours,
            limit: None,
        }
    }

    /// Chunks that last so many milliseconds, where one says little.
    pub(crate) fn lasting(mut self, milliseconds: u64) -> Self {
        self.count = self.count.saturating_mul(milliseconds);
        self
    }

    pub(crate) fn limit(mut self, what: &'static str, side: Side) -> Self {
        self.subject.limit_is = what;
        self.limit = Some(side);
        self
    }

    /// At most so many times the time of the limit.
    pub(crate) fn within(self, ratio: f64) -> Self {
        self.goal(Goal::Ratio(ratio))
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.subject.goal = goal;
        self
    }

    pub(crate) fn equal(self) -> Self {
        self.within(EQUAL)
    }

    pub(crate) fn within_ns(self, ns: f64) -> Self {
        self.goal(Goal::Nanoseconds(ns))
    }

    pub(crate) fn curve(mut self, curve: &'static str) -> Self {
        self.subject.curve = Some(curve);
        self
    }
}
