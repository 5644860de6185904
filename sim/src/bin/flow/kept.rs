//! Results of cases in files, so that runs of hours can be stopped and gone on with.

use crate::cases::Case;
use argonet_sim::flow::Sample;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Results of a run for the table and the plots.
pub(crate) struct Outcome {
    /// Its line of the table.
    pub(crate) row: String,
    /// One for each epoch.
    pub(crate) epochs: Vec<Sample>,
    /// Nothing went wrong.
    pub(crate) is_well: bool,
}

fn path(directory: &Path, case: &Case) -> PathBuf {
    let name = format!("{} ranks, {}.txt", case.ranks(), case.label());
    directory.join(name.replace(", ", "-").replace(' ', "_"))
}

/// The outcome of a case that has run before.
///
/// `None` if there is none, or nothing that can be read.
pub(crate) fn load(directory: &Path, case: &Case) -> Option<Outcome> {
    let text = fs::read_to_string(path(directory, case)).ok()?;
    let (row, epochs) = text.split_once('\n')?;
    let epochs: Option<Vec<Sample>> = epochs.lines().map(sample).collect();
    Some(Outcome {
        row: row.to_owned(),
        epochs: epochs?,
        is_well: true,
    })
}

fn sample(line: &str) -> Option<Sample> {
    let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
    let [requests, stalls, stalled_ns, moved, system] = numbers.ok()?.try_into().ok()?;
    Some(Sample {
        requests,
        stalls,
        stalled_ns,
        moved,
        system,
    })
}

/// Keeps the outcome of a case in which nothing went wrong.
///
/// # Errors
/// Those of the file system.
pub(crate) fn save(directory: &Path, case: &Case, outcome: &Outcome) -> io::Result<()> {
    if !outcome.is_well {
        return Ok(());
    }
    let mut text = format!("{}\n", outcome.row);
    for s in &outcome.epochs {
        let (requests, stalls, stalled_ns) = (s.requests, s.stalls, s.stalled_ns);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{requests} {stalls} {stalled_ns} {} {}",
            s.moved, s.system
        );
    }
    fs::create_dir_all(directory)?;
    fs::write(path(directory, case), text)
}
