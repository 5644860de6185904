//! Figures, and tables of them for people: columns of text, or Markdown.

use super::jobs::Fact;
use super::machine::Machine;
use super::metric::{Goal, Subject, Unit};
use super::stats::{self, Chunks, Comparison};
use std::fmt::Write;

/// Result of a metric.
pub(crate) struct Measured {
    pub(crate) subject: Subject,
    pub(crate) chunks: Chunks,
    pub(crate) comparison: Option<Comparison>,
}

impl Measured {
    pub(crate) fn new(subject: Subject, chunks: Chunks) -> Self {
        let Chunks { ours, limit } = &chunks;
        let comparison = (!limit.is_empty()).then(|| Comparison::of(ours, limit));
        Self {
            subject,
            chunks,
            comparison,
        }
    }

    /// Median of the limit's chunks divided by its best: 1 on a machine that does nothing else.
    pub(crate) fn noise(&self) -> f64 {
        let Chunks { ours, limit } = &self.chunks;
        let quiet = if limit.is_empty() { ours } else { limit };
        stats::median(quiet) / stats::best(quiet)
    }

    /// Share of all chunks, ours and the limit's, that took more than twice their best: other
    /// processes ran then.
    pub(crate) fn disturbed(&self) -> f64 {
        let beyond = |series: &[f64]| {
            let twice = 2.0 * stats::best(series);
            series.iter().filter(|time| **time > twice).count()
        };
        let Chunks { ours, limit } = &self.chunks;
        (beyond(ours) + beyond(limit)) as f64 / (ours.len() + limit.len()) as f64
    }

    /// Whether the goal is reached; nothing where there is none.
    ///
    /// A stream, a flow of operations without a wait for a single one, needs it by its best chunk
    /// too.
    pub(crate) fn holds(&self) -> Option<bool> {
        let stream = self.subject.unit == Unit::Gigabytes;
        match (self.subject.goal, &self.comparison) {
            (Goal::Ratio(goal), Some(c)) => Some(c.median <= goal && (!stream || c.best <= goal)),
            (Goal::Nanoseconds(goal), _) => Some(stats::median(&self.chunks.ours) <= goal),
            _ => None,
        }
    }

    /// A figure from nanoseconds an operation.
    pub(crate) fn figure(&self, ns: f64) -> f64 {
        self.subject.unit.figure(ns, self.subject.bytes)
    }

    /// Best and median of a series as printed.
    fn figures(&self, series: &[f64]) -> String {
        if series.is_empty() {
            return "-".into();
        }
        let [best, median] = [stats::best(series), stats::median(series)];
        format!(
            "{}/{}",
            number(self.figure(best)),
            number(self.figure(median))
        )
    }

    fn cells(&self) -> [String; 10] {
        let subject = &self.subject;
        let dash = || "-".to_owned();
        let [ratio, spread, best] = match self.comparison {
            Some(c) => [
                format!("{:.2}", c.median),
                format!("{:.2}-{:.2}", c.p10, c.p90),
                format!("{:.2}", c.best),
            ],
            None => [dash(), dash(), dash()],
        };
        let goal = match subject.goal {
            Goal::Ratio(goal) => format!("{goal:.2}"),
            Goal::Nanoseconds(ns) => format!("{ns}ns"),
            Goal::Information => dash(),
        };
        let limit_is = match subject.limit_is {
            "" => dash(),
            what => what.to_owned(),
        };
        [
            subject.what.clone(),
            subject.unit.name().into(),
            self.figures(&self.chunks.ours),
            self.figures(&self.chunks.limit),
            ratio,
            spread,
            best,
            goal,
            verdict(self.holds()).into(),
            limit_is,
        ]
    }
}

const METRIC_COLUMNS: [&str; 10] = [
    "metric", "unit", "ours", "limit", "ratio", "spread", "best", "goal", "holds", "limit is",
];

const FACT_COLUMNS: [&str; 6] = ["whole jobs", "unit", "best", "median", "goal", "holds"];

fn fact_cells(fact: &Fact) -> [String; 6] {
    [
        fact.what.clone(),
        fact.unit.clone(),
        number(fact.best),
        number(fact.median),
        fact.goal.map_or("-".into(), |goal| goal.to_string()),
        verdict(fact.holds()).into(),
    ]
}

fn verdict(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "yes",
        Some(false) => "no",
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

/// Everything that was measured, and where.
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) commit: Option<String>,
    pub(crate) load_average: [Option<f64>; 2],
    pub(crate) conduit: String,
    pub(crate) ranks: u32,
    pub(crate) threads: u32,
    pub(crate) chunks: usize,
    pub(crate) measured: Vec<Measured>,
    pub(crate) facts: Vec<Fact>,
}

impl Report {
    /// Machine, commit and options.
    pub(crate) fn heading(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        let load = |i: usize| self.load_average[i].map_or("?".into(), |l: f64| l.to_string());
        format!(
            "Commit {commit}, {}; conduit {}, {} ranks, {} threads, {} chunks of each in turn; load average before {}, after {}.",
            self.machine,
            self.conduit,
            self.ranks,
            self.threads,
            self.chunks,
            load(0),
            load(1)
        )
    }

    /// Noise of the machine, as the chunks show it.
    fn noise(&self) -> Option<String> {
        if self.measured.is_empty() {
            return None;
        }
        let noise: Vec<f64> = self.measured.iter().map(Measured::noise).collect();
        let disturbed: Vec<f64> = self.measured.iter().map(Measured::disturbed).collect();
        let share = disturbed.iter().sum::<f64>() / disturbed.len() as f64;
        Some(format!(
            "Noise (the limit's median chunk divided by its best): median {:.2}, largest {:.2}. {:.0} % of all chunks took more than twice the best of their kind.",
            stats::median(&noise),
            stats::quantile(&noise, 1.0),
            100.0 * share
        ))
    }

    fn rows(&self) -> (Vec<[String; 10]>, Vec<[String; 6]>) {
        let metrics = self.measured.iter().map(Measured::cells).collect();
        (metrics, self.facts.iter().map(fact_cells).collect())
    }

    /// Tables for people.
    pub(crate) fn text(&self) -> String {
        let (metrics, facts) = self.rows();
        let mut out = String::new();
        columns(&mut out, METRIC_COLUMNS, &metrics);
        columns(&mut out, FACT_COLUMNS, &facts);
        if !self.measured.is_empty() {
            out += "ours, limit: best and median chunk. ratio: our time divided by the limit's, median of neighboring chunks; spread:\n\
                    its 10th and 90th percentile; best: best chunk against best chunk. 1 GB/s is 1,000 MiB/s. A goal is a ratio, or ns;\n\
                    a stream needs it by both ratios.\n";
        }
        for line in self.noise().into_iter().chain([self.heading()]) {
            out += &line;
            out.push('\n');
        }
        out
    }

    /// The same for a page.
    pub(crate) fn markdown(&self) -> String {
        let (metrics, facts) = self.rows();
        let mut out = format!("{}\n\n", self.heading());
        markdown_table(&mut out, METRIC_COLUMNS, &metrics);
        markdown_table(&mut out, FACT_COLUMNS, &facts);
        if let Some(noise) = self.noise() {
            out += &noise;
            out.push('\n');
        }
        out
    }
}

/// Adds a table in columns, the first and the last to the left, unless it is empty.
fn columns<const N: usize>(out: &mut String, names: [&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    let header = names.map(str::to_owned);
    let all = || std::iter::once(&header).chain(rows);
    let widths: [usize; N] =
        std::array::from_fn(|i| all().map(|row| row[i].chars().count()).max().unwrap_or(0));
    for row in all() {
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string does not fail.
            let _ = match i {
                0 => write!(line, "{cell:width$}"),
                i if i + 1 == N => write!(line, "  {cell}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push('\n');
}

/// Adds a Markdown table, unless it is empty.
fn markdown_table<const N: usize>(out: &mut String, names: [&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    let mut line = |cells: &[String]| {
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    };
    line(&names.map(str::to_owned));
    line(&names.map(|_| "---".to_owned()));
    rows.iter().for_each(|row| line(row));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(unit: Unit, goal: Goal, ours: &[f64], limit: &[f64]) -> Measured {
        let subject = Subject {
            name: "x".into(),
            what: "X".into(),
            unit,
            bytes: 1000,
            limit_is: "Y",
            goal,
            curve: None,
        };
        let (ours, limit) = (ours.to_vec(), limit.to_vec());
        Measured::new(subject, Chunks { ours, limit })
    }

    #[test]
    fn goals_hold_up_to_their_value() {
        let ratio = |unit, goal, ours: &[f64]| {
            measured(unit, Goal::Ratio(goal), ours, &[10.0, 10.0, 10.0]).holds()
        };
        assert_eq!(
            ratio(Unit::Nanoseconds, 1.5, &[5.0, 15.0, 90.0]),
            Some(true)
        );
        assert_eq!(
            ratio(Unit::Nanoseconds, 1.4, &[5.0, 15.0, 90.0]),
            Some(false)
        );
        // A stream by its best chunk too.
        let streams = [[16.0, 15.0, 15.0], [16.0, 16.0, 14.0]];
        assert_eq!(ratio(Unit::Gigabytes, 1.5, &streams[0]), Some(true));
        assert_eq!(ratio(Unit::Gigabytes, 1.5, &streams[1]), Some(false));
        let absolute = |goal| measured(Unit::Nanoseconds, Goal::Nanoseconds(goal), &[7.0], &[]);
        assert_eq!(absolute(7.0).holds(), Some(true));
        assert_eq!(absolute(6.9).holds(), Some(false));
        assert_eq!(
            measured(Unit::Nanoseconds, Goal::Information, &[7.0], &[1.0]).holds(),
            None
        );
    }

    #[test]
    fn tables_have_a_line_for_each_row() {
        let mut report = Report {
            machine: Machine::here(),
            commit: Some("abc".into()),
            load_average: [Some(0.5), None],
            conduit: "smp".into(),
            ranks: 2,
            threads: 2,
            chunks: 1,
            measured: vec![measured(Unit::Gigabytes, Goal::Ratio(1.0), &[1e3], &[1e3])],
            facts: Vec::new(),
        };
        let row =
            "| X | GB/s | 0.954/0.954 | 0.954/0.954 | 1.00 | 1.00-1.00 | 1.00 | 1.00 | yes | Y |";
        assert!(report.markdown().contains(row), "{}", report.markdown());
        assert!(report.markdown().starts_with("Commit abc, "));
        assert!(
            report.text().starts_with("metric  unit"),
            "{}",
            report.text()
        );
        report.measured.clear();
        assert!(!report.text().contains("metric"), "{}", report.text());
    }
}
