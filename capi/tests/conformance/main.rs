//! GASNet-EX from C's side: programs written from the specification, in `tests/c/`, each run with
//! several numbers of ranks.
//!
//! README.md beside them says what each one is about.

mod bad;
mod building;
mod cases;
mod chosen;
mod coll_cases;
#[path = "../c/compiler.rs"]
#[allow(dead_code, reason = "shared with a test that compiles in more ways")]
mod compiler;
mod diagnosing;
mod endpoint_cases;
mod everything_cases;
mod exits;
#[path = "../c/files.rs"]
#[allow(
    dead_code,
    reason = "shared with a test that has its programs elsewhere"
)]
mod files;
mod foreign;
mod launcher;
mod leaking;
mod legacy_cases;
mod lost;
mod network;
mod ratomic_cases;
mod running;
mod team_cases;
mod threads;
mod tracing;

use std::collections::BTreeSet;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let chosen = chosen::Chosen::of_environment();
    let mut trials = running::trials(chosen);
    trials.extend(exits::trials(chosen));
    trials.extend(tracing::trials());
    trials.extend(bad::trials(chosen));
    trials.extend(diagnosing::trials());
    trials.extend(leaking::trials());
    trials.extend(launcher::trials());
    trials.extend(foreign::trials());
    trials.extend(lost::trials());
    trials.extend(chosen::trials());
    trials.push(Trial::test("each work place is another", work_places));
    trials.extend(threads::trials(chosen));
    let outcome = libtest_mimic::run(&Arguments::from_args(), trials);
    building::end();
    outcome.exit();
}

/// Programs of two trials in one directory would be each other's.
fn work_places() -> Result<(), Failed> {
    let places: Result<Vec<_>, _> = (0..10).map(|_| compiler::Workplace::new()).collect();
    let paths: BTreeSet<_> = places?.iter().map(|place| place.file("program")).collect();
    if paths.len() == 10 {
        return Ok(());
    }
    Err(format!("10 places are {paths:?}").into())
}
