//! Limits of the stages: time in `cargo xtask ci`, and tests that may be left out there and in
//! `cargo xtask full`.
//!
//! This is the one place for these numbers.

use std::time::Duration;

/// A stage and its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Name as it is printed, and as `cargo xtask test --only` takes it.
    pub(crate) stage: &'static str,
    /// A stage that takes longer fails; one that takes twice as long is ended.
    pub(crate) time: Duration,
    /// Tests that may be left out because the machine lacks something.
    ///
    /// More are a failure.
    pub(crate) skips: usize,
}

const fn minutes(stage: &'static str, minutes: u64, skips: usize) -> Budget {
    seconds(stage, minutes * 60, skips)
}

const fn seconds(stage: &'static str, seconds: u64, skips: usize) -> Budget {
    Budget {
        stage,
        time: Duration::from_secs(seconds),
        skips,
    }
}

/// Everything is built for testing, for use and with AddressSanitizer; clippy and rustfmt have
/// nothing to say.
///
/// From an empty target directory on two processors. The book is built in its turn. A full run
/// checks with the minimum Rust version, too, and needs rustup if another one is used.
pub(crate) const BUILD: Budget = seconds("build", 1040, 0);
/// Unit tests, property tests, documentation examples, the tidy test, loom models.
///
/// Tests over a library of Portals 4 are left out where there is none, as no package has one.
pub(crate) const UNIT: Budget = seconds("unit", 430, 1);
/// The conduit conformance suite over every conduit.
pub(crate) const CONFORMANCE: Budget = seconds("conformance", 480, 0);
/// Jobs of real processes, and installations, with what they make of examples.
///
/// Some need the right to mount and to make network namespaces, and tools for it; `.ci/run` has all
/// of these.
pub(crate) const JOBS: Budget = seconds("jobs", 700, 0);
/// Jobs whose ranks reach each other over networks.
pub(crate) const NETWORKS: Budget = seconds("networks", 90, 0);
/// The headers as C sees them, and programs in C for the promises of GASNet's texts.
///
/// In their turn also counts of instructions of fast paths, which need valgrind.
pub(crate) const C: Budget = seconds("c", 640, 0);
/// Seeds of the simulator.
pub(crate) const SEEDS: Budget = seconds("seeds", 110, 0);
/// Unit tests and smp through the conformance suite under AddressSanitizer.
pub(crate) const ASAN: Budget = seconds("asan", 240, 0);

/// One of so many parts of the job tests is run over connections, too, each time.
pub(crate) const PARTS: u64 = 6;

/// Only in `cargo xtask full`: all of the conformance programs of C, in parts.
pub(crate) const C_PARTS: [Budget; 4] = [
    minutes("c-1", 20, 0),
    minutes("c-2", 20, 0),
    minutes("c-3", 20, 0),
    minutes("c-4", 20, 0),
];
/// Only in `cargo xtask full`: tests of threads under ThreadSanitizer.
///
/// Programs in C need a compiler that knows it.
pub(crate) const TSAN: Budget = minutes("tsan", 10, 1);
/// Only in `cargo xtask full`: each fuzz target for [`FUZZ_SECONDS_FULL`], and building them.
pub(crate) const FUZZ: Budget = minutes("fuzz", 15, 0);

/// Only in `cargo xtask mutants`, which does not end it: some thousand builds and runs of tests.
pub(crate) const MUTANTS: Budget = minutes("mutants", 480, 0);

/// Only in `cargo xtask check`, which does not end it: what is quick of the others.
pub(crate) const CHECK: Budget = minutes("check", 8, 1);
/// Seeds of the simulator in `cargo xtask check`.
pub(crate) const CHECK_SEEDS: u64 = 200;

/// The time limit of a whole `cargo xtask ci`.
///
/// The limits of its stages add up to no more than 5/4 of it: machines differ in what they are slow
/// at, and one stage that takes longer than its share is no failure while the whole is in time.
pub(crate) const WHOLE: Duration = Duration::from_secs(2990);

/// Seconds for which `cargo xtask fuzz` runs each target, unless `--seconds` says otherwise.
pub(crate) const FUZZ_SECONDS: u64 = 30;
/// The same in `cargo xtask full`.
pub(crate) const FUZZ_SECONDS_FULL: u64 = 120;

/// Preemptions that loom explores in a model.
pub(crate) const LOOM_PREEMPTIONS: u32 = 3;
/// The same in `cargo xtask full`.
pub(crate) const LOOM_PREEMPTIONS_FULL: u32 = 4;
/// Cases of each property test in `cargo xtask full`; 256 otherwise.
pub(crate) const PROPTEST_CASES_FULL: u32 = 10_000;
/// Seeds of faulty wires in the conformance suite in `cargo xtask full`; 1 or 2 otherwise.
pub(crate) const CONFORMANCE_SEEDS_FULL: u32 = 40;
/// Seeds of the simulator, from a first one that changes with the commit.
pub(crate) const SIM_SEEDS: u64 = 2_500;
/// The same in `cargo xtask full`.
pub(crate) const SIM_SEEDS_FULL: u64 = 10_000;
/// Seeds over the portals conduit: some 20 s on two processors.
pub(crate) const PORTALS_SEEDS: u64 = 1_000;
/// In a full run.
pub(crate) const PORTALS_SEEDS_FULL: u64 = 100_000;
/// Small jobs of flow control with faults in `cargo xtask full`; 400 otherwise.
pub(crate) const FLOW_SEEDS_FULL: u32 = 100_000;
/// Seeds of connections that are made, and cases of classes and frames, in `cargo xtask full`;
/// 3,000 and 256 otherwise.
pub(crate) const CONNECTION_SEEDS_FULL: u32 = 100_000;
/// Faults of rails under load in `cargo xtask full`, one every 2 s; 4 otherwise.
pub(crate) const FAULTS_FULL: u32 = 300;
/// How often `cargo xtask full` runs the whole jobs.
pub(crate) const JOB_REPEATS_FULL: u32 = 3;
/// Tests of whole jobs that run at once: each is several processes already.
pub(crate) const JOBS_AT_ONCE: u32 = 3;
