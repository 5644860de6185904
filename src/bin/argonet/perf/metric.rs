//! What a metric is.

use super::pair::Pair;
use std::time::Duration;

/// How much one chunk does.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Operations of one chunk.
    pub(crate) count: u64,
    /// Bytes that one operation moves; 0 where size has no meaning.
    pub(crate) bytes: usize,
}

/// One side of a metric: does one chunk. All ranks call it at the same time; the time that rank 0
/// returns counts.
pub(crate) type Side = fn(&Pair<'_>, Load) -> argonet::Result<Duration>;

/// What a figure is printed in. Chunks are compared by time whatever the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Nanoseconds an operation.
    Nanoseconds,
    /// Microseconds an operation.
    Microseconds,
    /// 1,000 MiB a second.
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

/// The raw limit of a metric.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    /// What it is.
    pub(crate) what: &'static str,
    /// Measures it.
    pub(crate) side: Side,
    /// Operations of one chunk.
    pub(crate) count: u64,
}

/// What a metric must reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Goal {
    /// Our time is at most so many times that of the limit.
    Ratio(f64),
    /// At most so many nanoseconds an operation: there is no raw limit to compare with.
    Nanoseconds(f64),
    /// None yet.
    Information,
}

/// What "equal to the limit" may differ by, because two measurements of the same thing do.
pub(crate) const EQUAL: f64 = 1.02;

/// One line of the table.
pub(crate) struct Metric {
    /// Short name, unique, by which it is chosen.
    pub(crate) name: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    /// What it is printed in.
    pub(crate) unit: Unit,
    /// Bytes that one operation moves.
    pub(crate) bytes: usize,
    /// Operations of one chunk of ours.
    pub(crate) count: u64,
    /// Our side.
    pub(crate) ours: Side,
    /// The raw side.
    pub(crate) limit: Option<Limit>,
    /// What must be reached.
    pub(crate) goal: Goal,
}

impl Metric {
    /// Whether it is a stream: a flow of operations of which nobody waits for a single one.
    pub(crate) fn is_stream(&self) -> bool {
        self.unit == Unit::Gigabytes
    }
}
