//! Programs of others that a command of ours runs: each in one release, built with the lockfile
//! that it comes with.

use crate::command::{cargo, target};
use crate::suite::Run;
use std::path::PathBuf;

/// A program of others.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// Its name as a package and as a program.
    pub(crate) name: &'static str,
    pub(crate) release: &'static str,
    /// Further options of `cargo install`.
    pub(crate) options: &'static [&'static str],
}

impl Pinned {
    /// The program, which is built first where this release is not there yet; `None` if it cannot
    /// be.
    pub(crate) fn installed(&self, run: &mut Run) -> Option<PathBuf> {
        let directory = target().join(self.name);
        let tools = directory.join(self.release);
        let program = tools.join("bin").join(self.name);
        if program.exists() {
            return Some(program);
        }
        let mut install = cargo(&["install", self.name, "--version", self.release, "--locked"]);
        install
            .args(["--debug"])
            .args(self.options)
            .arg("--root")
            .arg(&tools)
            .env("CARGO_TARGET_DIR", directory.join("build"));
        run.step(&format!("build of {}", self.name), &mut install)
            .then_some(program)
    }
}
