//! Programs of suites that live outside of this repository: built elsewhere, found in a directory,
//! run, and reported.
//!
//! Nothing here knows any of their names.

mod one;
mod report;

use crate::command::target;
use one::{Outcome, Verdict};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How programs become jobs when the command line says nothing else.
const DEFAULT_VARIABLE: &str = "GASNET_PSHM_NODES={n}";

/// Options of the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Directory with the executables; others below it are not looked at
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Numbers of ranks to run each with
    #[arg(long, value_delimiter = ',', default_value = "1,2,4",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: Vec<u32>,
    /// Command before each program; an n in braces stands for the number of ranks
    /// (docs/conformance.md)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) launcher: Option<String>,
    /// A variable for each program, with braces as above; may be given several times.
    ///
    /// Without this and without --launcher GASNET_PSHM_NODES says the number of ranks
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<String>,
    /// Seconds that a run may take
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// File for the table of results; without it the table is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("it is not NAME=VALUE".to_owned()),
    }
}

/// A program with its outcomes, one for each number of ranks.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) program: String,
    pub(crate) outcomes: Vec<Outcome>,
}

/// Runs all programs and writes the table; whether none of them failed.
pub(crate) fn conformance(options: &Options) -> bool {
    let rows = match run(options, &target().join("conformance")) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("{}: {error}", options.dir.display());
            return false;
        }
    };
    let text = report::markdown(options, &rows);
    let written = match &options.out {
        Some(file) => std::fs::write(file, text),
        None => {
            print!("{text}");
            Ok(())
        }
    };
    if let Err(error) = &written {
        eprintln!("the results could not be written: {error}");
    }
    let well = |outcome: &Outcome| matches!(outcome.verdict, Verdict::Passed | Verdict::Skipped);
    written.is_ok() && rows.iter().all(|row| row.outcomes.iter().all(well))
}

/// Runs all programs; their output goes to files in `logs`.
fn run(options: &Options, logs: &Path) -> io::Result<Vec<Row>> {
    let programs = executables(&options.dir)?;
    if programs.is_empty() {
        return Err(io::Error::other("there is no executable file"));
    }
    std::fs::create_dir_all(logs)?;
    let limit = Duration::from_secs(options.seconds);
    let mut rows = Vec::new();
    for path in programs {
        let program = name(&path);
        let mut outcomes = Vec::new();
        for &ranks in &options.ranks {
            let log = logs.join(format!("{program}-{ranks}.log"));
            let mut command = one::command(&path, ranks, options);
            let outcome = one::run(&mut command, limit, &log)?;
            println!("{program}, {ranks} ranks: {outcome}");
            outcomes.push(outcome);
        }
        rows.push(Row { program, outcomes });
    }
    Ok(rows)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The executable files of a directory, by name.
fn executables(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path().canonicalize()?;
        let metadata = path.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
