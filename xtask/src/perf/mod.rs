//! `cargo xtask perf`: the tables of docs/performance.md.

mod rows;

use crate::command::{cargo, root, target};
use crate::record::say;
use argonet_settings::CONDUIT_NAMES;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The line of the page behind the tables; [`begin`] stands before them.
const END: &str = "<!-- end -->";

/// Options of the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Put the tables into docs/performance.md
    #[arg(long)]
    write: bool,
    /// A release of GASNet-EX, installed outside of this repository, to measure the rows of C
    /// beside
    #[arg(long, value_name = "PREFIX")]
    peer: Option<PathBuf>,
    /// Runs of the program in C, each of the peer's in turn with one of ours
    #[arg(long, value_name = "N", default_value_t = 6)]
    runs: u32,
    /// Ranks of the program in C; with other numbers than 2 only collective operations are measured
    #[arg(long, value_name = "N", default_value_t = 2)]
    ranks: u32,
    /// Measure from C alone
    #[arg(long)]
    only_c: bool,
    /// Options of `argonet perf`
    #[arg(last = true, value_name = "OPTION")]
    rust: Vec<String>,
}

/// Chunks of each row of the program in C.
const CHUNKS: u32 = 9;

/// The conduit that the options name.
fn conduit(options: &[String]) -> &str {
    let at = options.iter().position(|option| option == "--conduit");
    at.and_then(|at| options.get(at + 1))
        .map_or(CONDUIT_NAMES[0], String::as_str)
}

/// The line of the page before the tables that this command writes.
fn begin(options: &Options) -> String {
    let only_c = if options.only_c { "--only-c " } else { "" };
    let rest = match conduit(&options.rust) {
        preset if preset == CONDUIT_NAMES[0] => String::new(),
        other => format!(" -- --conduit {other}"),
    };
    format!("<!-- begin of what `cargo xtask perf {only_c}--write{rest}` writes -->")
}

/// Builds for release, measures, and prints the tables, or puts them into the page; whether all
/// went well.
pub(crate) fn perf(options: &Options) -> bool {
    match all(options).and_then(|tables| {
        if options.write {
            put(&begin(options), &tables)
        } else {
            print(&tables)
        }
    }) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

/// The measurements in Rust, and those in C of the same conduit.
fn all(options: &Options) -> Result<String, String> {
    let mut text = String::new();
    if !options.only_c {
        text += &tables(&options.rust)?;
    }
    // A user who asks for some metrics of the Rust program, or for a list of them, wants no others.
    let some = ["--only", "--list"];
    if options.only_c
        || !options
            .rust
            .iter()
            .any(|option| some.contains(&option.as_str()))
    {
        text.push('\n');
        text += &rows::table(&rows::Question {
            stamp: stamp(),
            conduit: conduit(&options.rust).to_owned(),
            ranks: options.ranks,
            runs: options.runs,
            chunks: CHUNKS,
            peer: options.peer.clone(),
        })?;
    }
    Ok(text)
}

fn tables(options: &[String]) -> Result<String, String> {
    let build = [
        "build",
        "--release",
        "--package",
        "argonet-cli",
        "--bin",
        "argonet",
    ];
    let built = cargo(&build).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the release build failed".into());
    }
    let output = Command::new(target().join("release/argonet"))
        .args(["perf", "--markdown", "--commit", &commit()])
        .args(options)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("argonet perf: {error}"))?;
    if !output.status.success() {
        return Err(format!("argonet perf ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// What is measured, and today's date.
fn stamp() -> String {
    format!("commit {}, {}", commit(), say("date", &["-u", "+%Y-%m-%d"]))
}

/// The commit that is checked out, marked if files differ from it.
fn commit() -> String {
    let args = [
        "describe",
        "--always",
        "--abbrev=7",
        "--exclude=*",
        "--dirty=+changes",
    ];
    match say("git", &args) {
        said if said.is_empty() => "unknown".into(),
        said => said,
    }
}

#[allow(clippy::unnecessary_wraps, reason = "writing the page can fail")]
fn print(tables: &str) -> Result<(), String> {
    print!("{tables}");
    Ok(())
}

fn page() -> PathBuf {
    root().join("docs/performance.md")
}

fn put(begin: &str, tables: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", page().display());
    let text = std::fs::read_to_string(page()).map_err(failed)?;
    let text = replaced(&text, begin, tables)
        .ok_or_else(|| format!("{} lacks the lines {begin} and {END}", page().display()))?;
    std::fs::write(page(), text).map_err(failed)
}

/// The page with other tables.
fn replaced(page: &str, begin: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!(
        "{before}{begin}\n\n{}\n\n{END}{after}",
        tables.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(conduit: &str, only_c: bool) -> Options {
        Options {
            write: true,
            peer: None,
            runs: 6,
            ranks: 2,
            only_c,
            rust: vec!["--conduit".into(), conduit.into()],
        }
    }

    #[test]
    fn only_the_tables_are_replaced() {
        let begin = begin(&options("smp", false));
        let page = format!("# Speed\n\n{begin}\n\nold\n\n{END}\n\nmore\n");
        let wanted = format!("# Speed\n\n{begin}\n\nnew\n\n{END}\n\nmore\n");
        assert_eq!(replaced(&page, &begin, "new\n\n"), Some(wanted));
        assert_eq!(replaced("# Speed\n", &begin, "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_them() {
        let page = std::fs::read_to_string(page()).unwrap();
        let of_both = ["smp", "tcp", "usnic"].map(|conduit| options(conduit, false));
        let of_c = ["smp", "tcp", "portals", "usnic"].map(|conduit| options(conduit, true));
        for options in of_both.iter().chain(&of_c) {
            let begin = begin(options);
            assert!(replaced(&page, &begin, "new").is_some(), "{begin}");
        }
    }
}
