//! Findings of the examination, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

/// Severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// A job works, and not as well as it could, or not for long.
    Warning,
    /// A job does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The check, in one word.
    pub(super) check: &'static str,
    /// The hosts that it is about.
    pub(super) hosts: Vec<String>,
    /// The state that the check found.
    pub(super) found: String,
    /// The state that there should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) need: Option<String>,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

/// A host that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Patient {
    pub(super) name: String,
    pub(super) first_rank: u32,
    pub(super) ranks: u32,
    /// After how long its agent answered; nothing if it did not.
    pub(super) answered_ms: Option<f64>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    pub(super) way: String,
    pub(super) hosts: Vec<Patient>,
    pub(super) findings: Vec<Finding>,
}

impl Finding {
    /// All is well.
    pub(super) fn ok(check: &'static str, found: String) -> Self {
        Self {
            level: Level::Ok,
            check,
            hosts: Vec::new(),
            found,
            need: None,
            remedy: None,
        }
    }
}

impl Report {
    /// Whether a job would work.
    pub(super) fn is_well(&self) -> bool {
        self.count(Level::Problem) == 0
    }

    fn count(&self, level: Level) -> usize {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.level == level).count()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let ranks: u32 = self.hosts.iter().map(|host| host.ranks).sum();
        let hosts = self.hosts.len();
        let mut text = format!("hosts: {hosts}, ranks: {ranks}, reached {}\n", self.way);
        // Writing to a string cannot fail.
        for finding in &self.findings {
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Problem => "PROBLEM",
            };
            let mut lines = finding.found.lines();
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(text, "{level:<8} {:<11} {first}", finding.check);
            for line in lines {
                let _ = writeln!(text, "{:21}{line}", "");
            }
            for (what, words) in [("need", &finding.need), ("remedy", &finding.remedy)] {
                if let Some(words) = words {
                    let _ = writeln!(text, "{:21}{what}: {words}", "");
                }
            }
        }
        let counted = |level, word| match self.count(level) {
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let warnings = counted(Level::Warning, "warning");
        let _ = match self.count(Level::Problem) {
            0 => writeln!(text, "a job over these hosts would work ({warnings})"),
            _ => writeln!(
                text,
                "a job over these hosts would not work: {}, {warnings}",
                counted(Level::Problem, "problem")
            ),
        };
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> String {
        let document = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "well": self.is_well(),
            "way": self.way,
            "hosts": self.hosts,
            "findings": self.findings,
        });
        format!("{document:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line of a report with so many problems and warnings.
    fn verdict(problems: usize, warnings: usize) -> String {
        let of = |level| Finding {
            level,
            ..Finding::ok("network", String::new())
        };
        let problems = (0..problems).map(|_| of(Level::Problem));
        let warnings = (0..warnings).map(|_| of(Level::Warning));
        let report = Report {
            way: String::new(),
            hosts: Vec::new(),
            findings: problems.chain(warnings).collect(),
        };
        report.text().lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_last_line_counts() {
        for (problems, warnings, expected) in [
            (0, 0, "a job over these hosts would work (0 warnings)"),
            (0, 1, "a job over these hosts would work (1 warning)"),
            (
                1,
                2,
                "a job over these hosts would not work: 1 problem, 2 warnings",
            ),
            (
                3,
                0,
                "a job over these hosts would not work: 3 problems, 0 warnings",
            ),
        ] {
            assert_eq!(verdict(problems, warnings), expected);
        }
    }
}
