//! Files of the repository for an installation, and the library that cargo builds.

use super::at;
use super::tools::said;
use super::tree::Tree;
use crate::command::{cargo, root, target};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the static library for C; where it is.
pub(super) fn library() -> Result<PathBuf, String> {
    let mut command = cargo(&["rustc", "--release", "--package", "argonet-capi", "--lib"]);
    // Cargo optimizes over all crates only what is nothing but a program or an archive. All crates
    // as one unit make a program for C a tenth smaller than "thin".
    command.args(["--crate-type", "staticlib"]);
    command.args(["--config", "profile.release.lto=\"fat\""]);
    let status = command
        .status()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err("argonet-capi cannot be built".to_owned());
    }
    Ok(target().join("release/libargonet_capi.a"))
}

/// Files of the repository.
pub(super) struct Sources {
    root: PathBuf,
    /// The commit, where that is known.
    commit: Option<String>,
}

impl Sources {
    pub(super) fn new() -> Self {
        let root = root();
        let asked = said(
            Command::new("git")
                .args(["rev-parse", "--short=12", "HEAD"])
                .current_dir(&root),
        );
        let commit = asked.ok().map(|(out, _)| out.trim().to_owned());
        Self { root, commit }
    }

    pub(super) fn build_id(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("no-commit");
        format!("argonet-{}-{commit}", env!("CARGO_PKG_VERSION"))
    }

    /// Sources of each variant.
    ///
    /// Programs get the objects that they use.
    pub(super) fn variant(&self) -> Result<Vec<PathBuf>, String> {
        let directory = self.root.join("capi/variant");
        let mut files = vec![directory.join("variant.c")];
        let diagnostics = directory.join("diagnostics");
        for entry in at(&diagnostics, std::fs::read_dir(&diagnostics))? {
            let path = at(&diagnostics, entry)?.path();
            files.extend((path.extension() == Some(OsStr::new("c"))).then_some(path));
        }
        files.sort();
        Ok(files)
    }

    /// Macros of that code.
    pub(super) fn idents(&self) -> Vec<(&'static str, String)> {
        let system = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut all = vec![("ARGONET_SYSTEM_NAME", system.trim().to_owned())];
        if let Some(commit) = &self.commit {
            all.push(("ARGONET_GIT_HASH", commit.clone()));
        }
        all
    }

    /// Copies all headers.
    pub(super) fn headers(&self, tree: &mut Tree) -> Result<(), String> {
        copy_headers(&self.root.join("include"), "include", tree)
    }

    /// A manual page, for the program or the subject of that name.
    pub(super) fn page(&self, file: &str, tree: &mut Tree) -> Result<(), String> {
        let section = file.rsplit('.').next().unwrap_or_default();
        let from = self.root.join("docs/man").join(file);
        tree.copy(&from, &format!("share/man/man{section}/{file}"))
    }

    /// The release, as `gasnet_config.h` has it.
    pub(super) fn version(&self) -> Result<String, String> {
        let path = self.root.join("include/gasnet_config.h");
        let text = at(&path, std::fs::read_to_string(&path))?;
        let start = "#define GASNETI_RELEASE_VERSION ";
        let line = text.lines().find_map(|line| line.strip_prefix(start));
        let version = line.map(|value| value.trim_matches('"').to_owned());
        version.ok_or_else(|| format!("{}: GASNETI_RELEASE_VERSION is missing", path.display()))
    }
}

fn copy_headers(from: &Path, to: &str, tree: &mut Tree) -> Result<(), String> {
    for entry in at(from, std::fs::read_dir(from))? {
        let path = at(from, entry)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let to = format!("{to}/{name}");
        if path.is_dir() {
            copy_headers(&path, &to, tree)?;
        } else if path.extension() == Some(OsStr::new("h")) {
            tree.copy(&path, &to)?;
        }
    }
    Ok(())
}
