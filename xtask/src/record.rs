//! The last full run of each stage, written down.

use crate::command::root;
use crate::suite::{Effort, Outcome};
use std::path::PathBuf;
use std::process::Command;

/// The output of a command; nothing if it cannot be run.
pub(crate) fn say(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.unwrap_or_default()
}

/// When, of what and where a run was: a table of two columns that goes on.
pub(crate) fn circumstances() -> String {
    let commit = say("git", &["rev-parse", "HEAD"]);
    let changed = if say("git", &["status", "--porcelain"]).is_empty() {
        ""
    } else {
        " with changes"
    };
    let date = say("date", &["-u", "+%Y-%m-%d %H:%M UTC"]);
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "| | |\n| --- | --- |\n| date | {date} |\n| commit | {commit}{changed} |\n| compiler | {} |\n\
         | kernel | {} |\n| processors | {processors} |\n",
        say("rustc", &["-V"]),
        say("uname", &["-srm"]),
    )
}

/// The page above the table.
const HEAD: &str = "# Last full run

Written by `cargo xtask full`, a row after each stage. `cargo xtask full --only STAGE` replaces one
row. [testing.md](testing.md) says what the stages are.

| stage | passed | failed | skipped | seconds | date | commit | |
| --- | ---: | ---: | ---: | ---: | --- | --- | --- |
";

/// Keeps the results of full runs in `docs/test-results.md`.
#[derive(Debug)]
pub(crate) struct Record {
    file: PathBuf,
    /// As it was when the run began: the file itself is a change from the first stage on.
    commit: String,
    machine: String,
}

impl Record {
    pub(crate) fn new() -> Self {
        let changed = !say("git", &["status", "--porcelain"]).is_empty();
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Self {
            file: root().join("docs/test-results.md"),
            commit: say("git", &["rev-parse", "--short=12", "HEAD"])
                + if changed { " with changes" } else { "" },
            machine: format!(
                "{}, {}, {processors} processors",
                say("rustc", &["-V"]),
                say("uname", &["-srm"])
            ),
        }
    }

    /// Writes the row of a stage, in the place of its last one.
    ///
    /// `order` has all stages.
    pub(crate) fn write(&self, outcome: &Outcome, order: &[&str]) -> std::io::Result<()> {
        let before = std::fs::read_to_string(&self.file).unwrap_or_default();
        let date = say("date", &["-u", "+%Y-%m-%d %H:%M"]);
        let row = row(outcome, &date, &self.commit);
        let text = with_row(&before, outcome.budget.stage, &row, order);
        std::fs::write(
            &self.file,
            format!("{text}\nThe machine of the last one: {}.\n", self.machine),
        )
    }
}

fn row(outcome: &Outcome, date: &str, commit: &str) -> String {
    let tally = &outcome.tally;
    let mut words: Vec<String> = Vec::new();
    words.extend(tally.failures.iter().map(|name| format!("failed: {name}")));
    words.extend(tally.skipped.iter().map(|name| format!("skipped: {name}")));
    if words.is_empty() && !outcome.ok(Effort::Full) {
        words.push("failed".to_owned());
    }
    format!(
        "| {} | {} | {} | {} | {:.0} | {date} | {commit} | {} |",
        outcome.budget.stage,
        tally.passed,
        tally.failed,
        tally.skipped.len(),
        outcome.took.as_secs_f64(),
        words.join("; ").replace('|', "/"),
    )
}

/// The document with one row anew, all rows in order.
///
/// Rows of other shapes are left out.
fn with_row(before: &str, stage: &str, row: &str, order: &[&str]) -> String {
    let mut text = String::from(HEAD);
    for &name in order {
        let kept = || {
            let begin = format!("| {name} |");
            let mut lines = before.lines();
            lines.find(|line| line.starts_with(&begin) && line.matches('|').count() == 9)
        };
        if let Some(line) = if name == stage { Some(row) } else { kept() } {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;
    use crate::tally::Tally;
    use std::time::Duration;

    #[test]
    fn a_stage_replaces_its_own_row_alone() {
        let outcome = |passed, failures: &[&str]| Outcome {
            budget: budget::UNIT,
            took: Duration::from_secs(3),
            used: Duration::ZERO,
            tally: Tally {
                passed,
                failed: failures.len(),
                failures: failures.iter().map(|&name| name.to_owned()).collect(),
                ..Tally::default()
            },
        };
        let order = ["build", "unit", "seeds"];
        let other = "| seeds | 8 | 0 | 0 | 9 | 2026-01-01 00:00 | abc |  |";
        let old = format!("{HEAD}{other}\n| unit | 386 | 0 | 0 | 510 |  |\n");
        let first = row(&outcome(1, &["a | b"]), "2026-01-02 00:00", "def");
        let text = with_row(&old, "unit", &first, &order);
        assert_eq!(
            text,
            format!(
                "{HEAD}| unit | 1 | 1 | 0 | 3 | 2026-01-02 00:00 | def | failed: a / b |\n{other}\n"
            )
        );
        let second = row(&outcome(2, &[]), "2026-01-03 00:00", "fed");
        let text = with_row(&text, "unit", &second, &order);
        assert_eq!(
            text,
            format!("{HEAD}| unit | 2 | 0 | 0 | 3 | 2026-01-03 00:00 | fed |  |\n{other}\n")
        );
    }
}
