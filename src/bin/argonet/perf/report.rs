//! Figures as a table, or as JSON.

use super::metric::{Goal, Metric};
use super::startup::Started;
use super::stats::{self, Comparison};
use std::fmt::Write;

/// How quiet the machine was.
pub(crate) struct Conditions {
    load_before: String,
    load_after: String,
}

/// Runnable processes over the last minute, as the kernel averages them.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").into()
}

impl Conditions {
    pub(crate) fn before() -> Self {
        Self {
            load_before: load(),
            load_after: String::new(),
        }
    }

    pub(crate) fn after(&mut self) {
        self.load_after = load();
    }
}

/// What came of a metric: nanoseconds an operation, chunk by chunk.
pub(crate) struct Measured {
    metric: &'static Metric,
    ours: Vec<f64>,
    limit: Vec<f64>,
    comparison: Option<Comparison>,
}

impl Measured {
    pub(crate) fn new(metric: &'static Metric, ours: Vec<f64>, limit: Vec<f64>) -> Self {
        let comparison = (!limit.is_empty()).then(|| Comparison::of(&ours, &limit));
        Self {
            metric,
            ours,
            limit,
            comparison,
        }
    }

    /// Median of the limit's chunks divided by its best: 1 on a machine that does nothing else.
    fn noise(&self) -> f64 {
        let quiet = if self.limit.is_empty() {
            &self.ours
        } else {
            &self.limit
        };
        stats::median(quiet) / stats::best(quiet)
    }

    /// Share of all chunks, ours and the limit's, that took more than twice their best: other
    /// processes ran then.
    fn disturbed(&self) -> f64 {
        let beyond = |series: &[f64]| {
            let twice = 2.0 * stats::best(series);
            series.iter().filter(|time| **time > twice).count()
        };
        let chunks = self.ours.len() + self.limit.len();
        (beyond(&self.ours) + beyond(&self.limit)) as f64 / chunks as f64
    }

    /// Whether the goal is reached; nothing where there is none.
    fn holds(&self) -> Option<bool> {
        match (self.metric.goal, &self.comparison) {
            (Goal::Ratio(goal), Some(c)) => {
                Some(c.median <= goal && (!self.metric.is_stream() || c.best <= goal))
            }
            (Goal::Nanoseconds(goal), _) => Some(stats::median(&self.ours) <= goal),
            _ => None,
        }
    }

    fn figure(&self, ns: f64) -> f64 {
        self.metric.unit.figure(ns, self.metric.bytes)
    }

    /// Best and median of a series as printed.
    fn figures(&self, series: &[f64]) -> (f64, f64) {
        (
            self.figure(stats::best(series)),
            self.figure(stats::median(series)),
        )
    }
}

/// Everything that was measured.
pub(crate) struct Report {
    pub(crate) conditions: Conditions,
    pub(crate) ranks: u32,
    pub(crate) chunks: usize,
    pub(crate) measured: Vec<Measured>,
    pub(crate) started: Vec<Started>,
}

fn verdict(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
}

/// A number with as many digits as mean something.
fn number(value: f64) -> String {
    match value {
        v if !v.is_finite() => "-".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.3}"),
    }
}

impl Report {
    fn disturbed(&self) -> f64 {
        let sum: f64 = self.measured.iter().map(Measured::disturbed).sum();
        sum / self.measured.len() as f64
    }

    /// A table for people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        if !self.measured.is_empty() {
            writeln!(
                out,
                "{:36} {:4} {:>15} {:>15} {:>6} {:>13} {:>6} {:>6} {:>5} {:>5}  limit",
                "metric",
                "unit",
                "ours best/med",
                "limit best/med",
                "ratio",
                "p10-p90",
                "best",
                "goal",
                "holds",
                "noise"
            )?;
        }
        for measured in &self.measured {
            self.write_line(out, measured)?;
        }
        for started in &self.started {
            let (name, goal) = (started.hello.ranks, started.hello.goal_s);
            let holds = verdict(Some(started.median_s() <= goal));
            writeln!(
                out,
                "hello, whole job of {name:2} ranks: best {:.3} s, median {:.3} s, goal {goal} s, holds: {holds}",
                started.best_s(),
                started.median_s()
            )?;
            let mib = started.resident_mib;
            write!(out, "resident memory of its largest rank: {mib:.2} MiB")?;
            match started.hello.goal_mib {
                Some(goal) => {
                    writeln!(
                        out,
                        ", goal {goal} MiB, holds: {}",
                        verdict(Some(mib <= goal))
                    )?;
                }
                None => writeln!(out)?,
            }
        }
        if !self.measured.is_empty() {
            let noise: Vec<f64> = self.measured.iter().map(Measured::noise).collect();
            writeln!(
                out,
                "\n{} chunks of each in turn, {} ranks. ratio: our time divided by the limit's, median of neighbouring chunks;\n\
                 best: our best chunk divided by the limit's; noise: the limit's median chunk divided by its best (median {:.2},\n\
                 largest {:.2}). 1 GB/s is 1,000 MiB/s. A goal is a ratio, or ns where there is no limit; streams need it by both ratios.\n\
                 {:.0} % of all chunks took more than twice the best of their kind.",
                self.chunks,
                self.ranks,
                stats::median(&noise),
                stats::quantile(&noise, 1.0),
                100.0 * self.disturbed()
            )?;
        }
        let Conditions {
            load_before,
            load_after,
        } = &self.conditions;
        writeln!(out, "load average before {load_before}, after {load_after}")
    }

    fn write_line(&self, out: &mut String, measured: &Measured) -> std::fmt::Result {
        let metric = measured.metric;
        let pair = |series: &[f64]| {
            let (best, median) = measured.figures(series);
            format!("{}/{}", number(best), number(median))
        };
        let limit = if measured.limit.is_empty() {
            "-".into()
        } else {
            pair(&measured.limit)
        };
        let (ratio, spread, best) = match measured.comparison {
            Some(c) => (
                format!("{:.2}", c.median),
                format!("{:.2}-{:.2}", c.p10, c.p90),
                format!("{:.2}", c.best),
            ),
            None => ("-".into(), "-".into(), "-".into()),
        };
        let goal = match metric.goal {
            Goal::Ratio(goal) => format!("{goal:.2}"),
            Goal::Nanoseconds(ns) => format!("{ns}ns"),
            Goal::Information => "-".into(),
        };
        writeln!(
            out,
            "{:36} {:4} {:>15} {limit:>15} {ratio:>6} {spread:>13} {best:>6} {goal:>6} {:>5} {:>5.2}  {}",
            metric.what,
            metric.unit.name(),
            pair(&measured.ours),
            verdict(measured.holds()),
            measured.noise(),
            metric.limit.map_or("-", |limit| limit.what)
        )
    }

    /// The same for programs. Names and units need no escaping.
    pub(crate) fn json(&self) -> String {
        let metrics: Vec<String> = self.measured.iter().map(json_metric).collect();
        let started: Vec<String> = self.started.iter().map(json_started).collect();
        format!(
            "{{\"ranks\":{},\"chunks\":{},\"load_before\":{:?},\"load_after\":{:?},\n\"metrics\":[\n{}\n],\n\"jobs\":[\n{}\n]}}\n",
            self.ranks,
            self.chunks,
            self.conditions.load_before,
            self.conditions.load_after,
            metrics.join(",\n"),
            started.join(",\n")
        )
    }
}

/// A JSON number; null where there is none.
fn json_number(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.4}")
    } else {
        "null".into()
    }
}

fn json_series(measured: &Measured, series: &[f64]) -> String {
    if series.is_empty() {
        return "null".into();
    }
    let (best, median) = measured.figures(series);
    let (best, median) = (json_number(best), json_number(median));
    format!("{{\"best\":{best},\"median\":{median}}}")
}

fn json_metric(measured: &Measured) -> String {
    let metric = measured.metric;
    let ratio = measured.comparison.map_or("null".into(), |c| {
        let [median, p10, p90, best] = [c.median, c.p10, c.p90, c.best].map(json_number);
        format!("{{\"median\":{median},\"p10\":{p10},\"p90\":{p90},\"best\":{best}}}")
    });
    let goal = match metric.goal {
        Goal::Ratio(ratio) => format!("{{\"ratio\":{}}}", json_number(ratio)),
        Goal::Nanoseconds(ns) => format!("{{\"ns\":{}}}", json_number(ns)),
        Goal::Information => "null".into(),
    };
    let holds = measured.holds().map_or("null".into(), |h| h.to_string());
    format!(
        "{{\"name\":\"{}\",\"what\":\"{}\",\"unit\":\"{}\",\"bytes\":{},\"ours\":{},\"limit\":{},\"limit_is\":{:?},\"ratio\":{ratio},\"goal\":{goal},\"holds\":{holds},\"noise\":{},\"disturbed\":{}}}",
        metric.name,
        metric.what,
        metric.unit.name(),
        metric.bytes,
        json_series(measured, &measured.ours),
        json_series(measured, &measured.limit),
        metric.limit.map_or("", |limit| limit.what),
        json_number(measured.noise()),
        json_number(measured.disturbed())
    )
}

fn json_started(started: &Started) -> String {
    let hello = started.hello;
    format!(
        "{{\"name\":\"{}\",\"ranks\":{},\"seconds\":{{\"best\":{},\"median\":{}}},\"goal_s\":{},\"resident_mib\":{},\"goal_mib\":{}}}",
        hello.name,
        hello.ranks,
        json_number(started.best_s()),
        json_number(started.median_s()),
        json_number(hello.goal_s),
        json_number(started.resident_mib),
        hello.goal_mib.map_or("null".into(), json_number)
    )
}
