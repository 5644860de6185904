//! The report for programs: JSON with a schema that stays.
//!
//! New fields may come; those that are here keep their names, types and meaning for as long as
//! [`SCHEMA`] is the same.

use super::jobs::Fact;
use super::machine::Machine;
use super::metric::{Goal, Unit};
use super::report::{Measured, Report};
use super::stats::{self, Comparison};
use serde::{Deserialize, Serialize};

/// Name of the schema.
pub(crate) const SCHEMA: &str = "argonet-perf-1";

/// The whole report.
#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// Of the library.
    pub(crate) version: String,
    /// Commit that the library was built from, if it was given.
    pub(crate) commit: Option<String>,
    pub(crate) machine: Machine,
    /// The kernel's average before and after.
    pub(crate) load_average: [Option<f64>; 2],
    /// Through which the ranks communicated.
    pub(crate) conduit: String,
    pub(crate) ranks: u32,
    /// Of the metric with several threads.
    pub(crate) threads: u32,
    /// Chunks of each series.
    pub(crate) chunks: usize,
    pub(crate) metrics: Vec<MetricRecord>,
    /// Figures of whole jobs.
    pub(crate) jobs: Vec<JobRecord>,
}

/// A metric.
///
/// Figures are in its unit; ratios are of times, for any unit: less is better.
#[derive(Serialize, Deserialize)]
pub(crate) struct MetricRecord {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// Bytes of an operation; 0 where size has no meaning.
    pub(crate) bytes: usize,
    pub(crate) ours: Series,
    /// The series that it is compared with.
    pub(crate) limit: Option<Series>,
    pub(crate) limit_is: Option<String>,
    /// Our time divided by the limit's, of neighboring chunks.
    pub(crate) ratio: Option<Comparison>,
    pub(crate) goal: Option<Goal>,
    /// Whether the goal is reached.
    pub(crate) holds: Option<bool>,
    /// Median of the limit's chunks divided by its best.
    pub(crate) noise: f64,
    /// Share of chunks that took more than twice the best of their kind.
    pub(crate) disturbed: f64,
}

/// Figures of one side, over its chunks.
#[derive(Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) best: f64,
    pub(crate) median: f64,
    /// A tenth of the chunks took less time.
    pub(crate) p10: f64,
    /// A tenth of the chunks took more time.
    pub(crate) p90: f64,
    /// Operations a second, by the median.
    pub(crate) per_second: f64,
}

/// A figure of whole jobs.
#[derive(Serialize, Deserialize)]
pub(crate) struct JobRecord {
    #[serde(flatten)]
    pub(crate) fact: Fact,
    /// Whether the goal is reached.
    pub(crate) holds: Option<bool>,
}

impl Document {
    pub(crate) fn of(report: &Report) -> Self {
        Self {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: report.commit.clone(),
            machine: report.machine.clone(),
            load_average: report.load_average,
            conduit: report.conduit.clone(),
            ranks: report.ranks,
            threads: report.threads,
            chunks: report.chunks,
            metrics: report.measured.iter().map(metric).collect(),
            jobs: report
                .facts
                .iter()
                .map(|fact| JobRecord {
                    fact: fact.clone(),
                    holds: fact.holds(),
                })
                .collect(),
        }
    }
}

fn metric(measured: &Measured) -> MetricRecord {
    let subject = &measured.subject;
    let limit = &measured.chunks.limit;
    MetricRecord {
        name: subject.name.clone(),
        what: subject.what.clone(),
        unit: subject.unit,
        bytes: subject.bytes,
        ours: series(measured, &measured.chunks.ours),
        limit: (!limit.is_empty()).then(|| series(measured, limit)),
        limit_is: (!limit.is_empty()).then(|| subject.limit_is.into()),
        ratio: measured.comparison,
        goal: (subject.goal != Goal::Information).then_some(subject.goal),
        holds: measured.holds(),
        noise: measured.noise(),
        disturbed: measured.disturbed(),
    }
}

fn series(measured: &Measured, chunks: &[f64]) -> Series {
    let figure = |ns| measured.figure(ns);
    Series {
        best: figure(stats::best(chunks)),
        median: figure(stats::median(chunks)),
        p10: figure(stats::quantile(chunks, 0.1)),
        p90: figure(stats::quantile(chunks, 0.9)),
        per_second: 1e9 / stats::median(chunks),
    }
}
