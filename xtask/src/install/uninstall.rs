//! `cargo xtask uninstall`: takes out of a tree what an installation has put there, and nothing
//! else.

use super::manifest::{MANIFEST, Manifest};
use super::tree::{LAST, lock, remove_aside};
use super::{at, place};
use std::path::{Path, PathBuf};

/// Options of the command line.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Directory that was installed into
    #[arg(long, value_name = "DIR")]
    pub(crate) prefix: PathBuf,
    /// Directory below which the tree was put
    #[arg(long, value_name = "DIR")]
    pub(crate) destdir: Option<PathBuf>,
}

/// Uninstalls; whether that worked.
pub(crate) fn uninstall(options: &Options) -> bool {
    match run(options) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("cargo xtask uninstall: {error}");
            false
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let prefix = at(&options.prefix, std::path::absolute(&options.prefix))?;
    let prefix = place(&prefix, options.destdir.as_deref())?;
    let none = || {
        format!(
            "--prefix: {} holds no installation: {MANIFEST} is missing",
            prefix.display()
        )
    };
    if !prefix.is_dir() {
        return Err(none());
    }
    let lock = lock(&prefix)?;
    let manifest = Manifest::read(&prefix)?.ok_or_else(none)?;
    if !manifest.complete {
        println!("the installation was interrupted; its files are removed");
    }
    let kept = files(&prefix, &manifest)?;
    let own = prefix.join(MANIFEST);
    at(&own, std::fs::remove_file(&own))?;
    remove_aside(&prefix);
    for path in kept {
        println!("left, as it has been changed: {}", path.display());
    }
    // Inner ones first: a longer path follows a shorter one that it begins with.
    for name in manifest
        .directories
        .iter()
        .filter(|name| *name != ".")
        .rev()
    {
        leave(&prefix.join(name));
    }
    drop(lock);
    if manifest.directories.contains(".") {
        leave(&prefix);
    }
    println!("uninstalled from {}", prefix.display());
    Ok(())
}

/// Removes the files; those that are not as they were installed stay.
fn files(prefix: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, String> {
    let mut kept = Vec::new();
    // The headers cannot be used from the first step on.
    let first = manifest.files.keys().filter(|name| *name == LAST);
    let rest = manifest.files.keys().filter(|name| *name != LAST);
    for name in first.chain(rest) {
        let path = prefix.join(name);
        if path.symlink_metadata().is_err() {
            continue;
        }
        if path.is_dir() && !path.is_symlink() || !manifest.has(prefix, name)? {
            kept.push(path);
        } else {
            at(&path, std::fs::remove_file(&path))?;
        }
    }
    Ok(kept)
}

/// Removes a directory, or says what keeps it.
fn leave(path: &Path) {
    let Ok(entries) = std::fs::read_dir(path) else {
        return;
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    if names.is_empty() {
        if let Err(error) = std::fs::remove_dir(path) {
            println!("left: {}: {error}", path.display());
        }
    } else {
        println!("left: {} holds {}", path.display(), names.join(", "));
    }
}
