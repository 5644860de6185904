//! `cargo xtask numbers`: constants of the headers, from the table that Rust's are from too,
//! `base/gasnet.tsv`; and the values in that table, from the headers of an installed release of
//! GASNet-EX.

mod headers;
mod probe;
mod release;

use crate::command::root;
use std::path::{Path, PathBuf};

/// Options of the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Ask the headers of the release that is installed there for the values of the table first
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
}

/// The table, from the directory of the workspace.
pub(crate) const TABLE: &str = "base/gasnet.tsv";

/// Writes the headers, and before them the table if there is a release; whether that worked.
pub(crate) fn numbers(options: &Options) -> bool {
    match run(&root(), options) {
        Ok(files) => {
            files.iter().for_each(|file| println!("{file}"));
            true
        }
        Err(error) => {
            eprintln!("cargo xtask numbers: {error}");
            false
        }
    }
}

/// Writes the headers; returns the names of the files.
fn run(root: &Path, options: &Options) -> Result<Vec<String>, String> {
    let path = root.join(TABLE);
    let mut table = read(&path)?;
    let mut files = Vec::new();
    if let Some(release) = &options.release {
        table = release::refresh(&table, release)?;
        write(&path, &table)?;
        files.push(TABLE.to_owned());
    }
    for (file, text) in made(root, &table)? {
        write(&root.join(&file), &text)?;
        files.push(file);
    }
    Ok(files)
}

/// Parts of the headers that are not what the table says, by name.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>, String> {
    let table = read(&root.join(TABLE))?;
    let mut stale = made(root, &table)?;
    stale.retain(|(file, text)| read(&root.join(file)).ok().as_ref() != Some(text));
    Ok(stale.into_iter().map(|(file, _)| file).collect())
}

/// Files that the table makes, with their texts.
fn made(root: &Path, table: &str) -> Result<Vec<(String, String)>, String> {
    let include = |part: &str| format!("include/{part}");
    let read_part = |part: &str| read(&root.join(include(part)));
    let parts = headers::parts(table, read_part)?;
    Ok(parts
        .into_iter()
        .map(|(part, text)| (include(&part), text))
        .collect())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
