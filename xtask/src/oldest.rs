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

/// The compiler that is used, if it is of that version, or where rustup has that one, which it
/// installs if it is missing.
fn compiler(run: &Run) -> Option<String> {
    let used = output(Command::new("rustc").arg("--version"), run.until)?;
    if is_of(&used, VERSION) {
        return Some("rustc".to_owned());
    }
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

/// Whether a compiler that says so is of a version without its last number, or with it.
fn is_of(said: &str, version: &str) -> bool {
    let number = said.split(' ').nth(1).unwrap_or_default();
    let rest = number.strip_prefix(version);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_by_its_first_numbers() {
        let said = "rustc 1.95.0 (59807616e 2026-04-14)";
        assert!(is_of(said, "1.95") && is_of(said, "1.95.0"));
        assert!(!is_of(said, "1.9") && !is_of(said, "1.96") && !is_of("", "1.95"));
    }
}
