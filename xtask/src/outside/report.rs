//! The table of results.

use super::one::{Outcome, Verdict};
use super::{Options, Row};
use crate::record;
use std::fmt::Write as _;

/// Lines of output shown of a run that did not pass.
const SHOWN_LINES: usize = 12;

const VERDICTS: [Verdict; 5] = [
    Verdict::Passed,
    Verdict::Failed,
    Verdict::Skipped,
    Verdict::TimedOut,
    Verdict::Crashed,
];

pub(super) fn markdown(options: &Options, rows: &[Row]) -> String {
    let mut text =
        String::from("# Results of a suite\n\nWritten by `cargo xtask conformance`.\n\n");
    text += &record::circumstances();
    let how = match (&options.launcher, options.variables.as_slice()) {
        (None, []) => super::DEFAULT_VARIABLE.to_owned(),
        (launcher, variables) => {
            let texts = variables.iter().chain(launcher);
            let words = texts.flat_map(|text| text.split_whitespace());
            // The report leaves out where a program lies on this machine.
            let short = words.map(|word| match word.rsplit_once('/') {
                Some((_, last)) if word.starts_with('/') => last,
                _ => word,
            });
            short.collect::<Vec<_>>().join(" ")
        }
    };
    let _ = writeln!(text, "| started by | `{how}` |");
    let _ = writeln!(text, "| limit of a run | {} s |\n", options.seconds);

    text += "| program |";
    for ranks in &options.ranks {
        let _ = write!(text, " {ranks} ranks |");
    }
    text += "\n| --- |";
    text += &" --- |".repeat(options.ranks.len());
    text += "\n";
    for row in rows {
        let _ = write!(text, "| `{}` |", row.program);
        for outcome in &row.outcomes {
            let _ = write!(text, " {} |", outcome.to_string().replace('|', "\\|"));
        }
        text += "\n";
    }
    text += "\n";
    let all = || rows.iter().flat_map(|row| &row.outcomes);
    let counts = VERDICTS.map(|verdict| {
        let count = all().filter(|outcome| outcome.verdict == verdict).count();
        format!("{count} {verdict}")
    });
    let _ = writeln!(text, "{}", counts.join(", "));
    for row in rows {
        for (outcome, ranks) in row.outcomes.iter().zip(&options.ranks) {
            if !matches!(outcome.verdict, Verdict::Passed | Verdict::Skipped) {
                details(&mut text, &row.program, *ranks, outcome);
            }
        }
    }
    text
}

fn details(text: &mut String, program: &str, ranks: u32, outcome: &Outcome) {
    let _ = writeln!(text, "\n## `{program}`, {ranks} ranks: {outcome}\n");
    let lines: Vec<&str> = outcome.tail.lines().collect();
    let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..);
    for line in shown.unwrap_or_default() {
        // Four blanks make it a block of code, with any content.
        let _ = writeln!(text, "    {line}");
    }
}
