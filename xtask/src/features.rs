//! Programs that are built without some conduits.

use crate::command::{cargo, target};
use crate::suite::Run;
use argonet_settings::CONDUIT_NAMES;
use std::process::Command;

/// Conduits that are in every program, for one host and for several.
const ALWAYS: usize = 2;

/// A part of the error for a conduit that was not compiled, which `argonet-start` has.
const REFUSAL: &str = "this program was built without it";

/// The library passes clippy without any of them; in a full run also with each alone, and a program
/// without any is started.
pub(crate) fn check(run: &mut Run) {
    lint(run, "");
    if run.full() {
        for conduit in &CONDUIT_NAMES[ALWAYS..] {
            lint(run, conduit);
        }
        program(run);
    }
}

/// The library passes clippy with these features alone.
fn lint(run: &mut Run, features: &str) {
    let mut clippy = cargo(&["clippy", "--package", "argonet", "--no-default-features"]);
    clippy.args(["--features", features, "--", "-D", "warnings"]);
    let with = if features.is_empty() { "no" } else { features };
    run.step(&format!("clippy with {with} features"), &mut clippy);
}

/// A program without any of them runs over the conduits that it has, and ends with an error over
/// each other one.
fn program(run: &mut Run) {
    // Other tests start programs of the usual directory, which have all.
    let apart = target().join("features");
    let mut build = cargo(&["build", "--package", "argonet", "--no-default-features"]);
    build
        .args(["--example", "hello"])
        .env("CARGO_TARGET_DIR", &apart);
    if !run.step("build of a program with no features", &mut build) {
        return;
    }
    let hello = apart.join("debug/examples/hello");
    let over = |conduit: &str| {
        let mut job = Command::new(target().join("debug/argonet"));
        job.args(["run", "--ranks", "2", "--timeout", "60", "--conduit"])
            .args([conduit.as_ref(), hello.as_os_str()])
            .env("GASNET_SUPERNODE_MAXSIZE", "1");
        job
    };
    let between = CONDUIT_NAMES[ALWAYS - 1];
    let name = format!("a program with no features over {between}");
    run.step(&name, &mut over(between));
    for conduit in &CONDUIT_NAMES[ALWAYS..] {
        let name = format!("a program with no features over {conduit}");
        let refused = over(conduit).output().is_ok_and(|ended| {
            !ended.status.success() && String::from_utf8_lossy(&ended.stderr).contains(REFUSAL)
        });
        run.tally.step(&name, refused);
    }
}
