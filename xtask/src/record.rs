//! The last full run, written down.

use crate::command::root;
use crate::suite::{Effort, Outcome};
use std::fmt::Write as _;
use std::process::Command;

fn say(program: &str, args: &[&str]) -> String {
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

/// Writes `docs/test-results.md`.
pub(crate) fn write(outcomes: &[Outcome]) -> std::io::Result<()> {
    let mut text = String::from(
        "# Last full run\n\nWritten by `cargo xtask full`. What the stages are: [testing.md](testing.md).\n\n",
    );
    text += &circumstances();
    text += "\n";
    text += "| stage | passed | failed | skipped | seconds | |\n| --- | ---: | ---: | ---: | ---: | --- |\n";
    for outcome in outcomes {
        let verdict = if outcome.ok(Effort::Full) {
            ""
        } else {
            "failed"
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.0} | {verdict} |",
            outcome.budget.stage,
            outcome.tally.passed,
            outcome.tally.failed,
            outcome.tally.skipped.len(),
            outcome.took.as_secs_f64(),
        );
    }
    for outcome in outcomes {
        for name in &outcome.tally.failures {
            let _ = writeln!(text, "\nFailed: {name}");
        }
        for name in &outcome.tally.skipped {
            let _ = writeln!(text, "\nSkipped: {name}");
        }
    }
    std::fs::write(root().join("docs/test-results.md"), text)
}
