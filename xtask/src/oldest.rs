//! The minimum Rust version: a full run compiles everything with it.

use crate::command::{cargo, output, target};
use crate::suite::Run;
use std::process::Command;

/// As the manifest of the workspace says.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Compiles all targets, without code, by the compiler of that version.
pub(crate) fn check(run: &mut Run) {
    let name = format!("check with Rust {VERSION}");
    let Some(rustc) = compiler(run) else {
        run.tally.skip(&name, "rustup cannot install that version");
        return;
    };
    let mut check = cargo(&["check", "--workspace", "--all-targets"]);
    check
        .env("RUSTC", rustc)
        .env("CARGO_TARGET_DIR", target().join("oldest"));
    run.step(&name, &mut check);
}

/// Where rustup has the compiler, which it installs if it is missing.
fn compiler(run: &Run) -> Option<String> {
    let which = || {
        let mut which = Command::new("rustup");
        output(
            which.args(["which", "--toolchain", VERSION, "rustc"]),
            run.until,
        )
    };
    let found = which().or_else(|| {
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", "--profile", "minimal", VERSION]);
        output(&mut install, run.until)?;
        which()
    })?;
    Some(found.trim().to_owned())
}
