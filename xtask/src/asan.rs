//! Unit tests under AddressSanitizer, which the stable compiler has behind a switch.

use crate::command::{cargo, target};
use crate::stages::{CONFORMANCE, TRIPLE, Turn, sanitizers_work};
use crate::suite::Run;
use std::process::Command;

const NAME: &str = "AddressSanitizer";

/// Packages whose unit tests run under it: those with unsafe code that needs no job, and their
/// dependencies.
const PACKAGES: [&str; 4] = [
    "argonet-segment",
    "argonet-am",
    "argonet-nic",
    "argonet-conduit",
];

/// Compiles with AddressSanitizer, in a directory of its own.
fn checked(command: &mut Command) {
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", target().join("asan"))
        // Enough for the lines in a report, and compiled sooner.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
}

/// `cargo test` of the libraries, and of smp through the conformance suite.
fn commands() -> [(&'static str, Command); 2] {
    let mut units = cargo(&["test", "--target", TRIPLE, "--lib", "--no-fail-fast"]);
    for package in PACKAGES {
        units.args(["--package", package]);
    }
    let mut smp = cargo(&["test", "--target", TRIPLE, "--package", CONFORMANCE]);
    smp.args(["--test", "smp"]);
    let mut both = [
        ("AddressSanitizer", units),
        ("AddressSanitizer, conformance of smp", smp),
    ];
    both.iter_mut().for_each(|(_, command)| checked(command));
    both
}

/// Builds what [`asan`] runs.
pub(crate) fn build(run: &mut Run) {
    if sanitizers_work(run, NAME) {
        for (name, mut command) in commands() {
            run.step(&format!("build for {name}"), command.arg("--no-run"));
        }
    }
}

/// The unit tests of the engine, of starting and of the Rust API in full runs: safe plans, which
/// take most of their time, are left to the stage `unit`.
fn library() -> Command {
    let mut command = cargo(&["test", "--target", TRIPLE, "--lib"]);
    command.args(["--package", "argonet-engine", "--package", "argonet-start"]);
    command.args(["--package", "argonet", "--", "--skip", "collective::plan"]);
    checked(&mut command);
    // Tests leave engines behind that have ended by an error, with what they own.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    command
}

/// The tests.
pub(crate) fn asan(run: &mut Run) {
    if !Turn::Memory.is_in(run) || !sanitizers_work(run, NAME) {
        return;
    }
    let cases = if run.full() { "2048" } else { "32" };
    let [(units, mut unit_tests), (smp, mut smp_tests)] = commands();
    run.tests(units, unit_tests.env("PROPTEST_CASES", cases));
    // The thread mode that takes locks; the others run less code.
    run.tests(smp, smp_tests.args(["--", "smp par::"]));
    if run.full() {
        run.tests("AddressSanitizer, the library", &mut library());
    }
}
