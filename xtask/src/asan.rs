//! Unit tests under AddressSanitizer, which the stable compiler has behind a switch.

use crate::command::{cargo, target};
use crate::stages::{CONFORMANCE, TRIPLE, sanitizers_work};
use crate::suite::Run;
use std::process::Command;

const NAME: &str = "AddressSanitizer";

/// Packages whose unit tests run under it: those with unsafe code that needs no job, and what they
/// stand on.
const PACKAGES: [&str; 4] = [
    "argonet-segment",
    "argonet-am",
    "argonet-nic",
    "argonet-conduit",
];

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
    for (_, command) in &mut both {
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", target().join("asan"))
            // Enough for the lines in a report, and compiled sooner.
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    }
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

/// The tests.
pub(crate) fn asan(run: &mut Run) {
    if !sanitizers_work(run, NAME) {
        return;
    }
    let cases = if run.full() { "2048" } else { "32" };
    let [(units, mut unit_tests), (smp, mut smp_tests)] = commands();
    run.tests(units, unit_tests.env("PROPTEST_CASES", cases));
    // The thread mode that takes locks; the others run less code.
    run.tests(smp, smp_tests.args(["--", "smp par::"]));
}
