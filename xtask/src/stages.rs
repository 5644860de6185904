//! The stages.

use crate::command::{End, cargo, exists, output, root, run, target};
use crate::suite::{Effort, Run};
use crate::{asan, book, budget, counts, features, oldest, sizes, tidy};
use argonet_settings::{CONDUIT_NAMES, CONDUITS, ConduitRow};
use std::process::Command;
use std::time::Instant;

// Test programs are named by themselves and run with `--workspace`. With `--package` cargo would
// build what they depend on once more for each package whose features differ.

/// Test programs that start whole jobs, but for the quick one of `argonet::test` and those of
/// examples.
///
/// They run in their own stage.
const JOB_TESTS: [&str; 4] = ["launch", "jobs", "perf", INSTALL_TEST];

/// Test programs of examples, in the stage `unit`.
const EXAMPLE_TESTS: [&str; 4] = ["small_examples", "kmers", "heat", "programs"];

/// The test program of installations, and the variable that makes it leave out the tests of where
/// these are put.
const INSTALL_TEST: &str = "install";
const PLACES: &str = "ARGONET_TEST_PLACES";

/// The test program of the stage `networks`.
const NETWORK_TESTS: &str = "jobs";

/// The test program of the stage `seeds`.
const SEED_TESTS: &str = "seeds";

/// Conduits whose suite `cargo xtask check` runs, the first ones.
const CHECKED_CONDUITS: usize = 2;

/// Test programs of the stage `c`.
const C_TESTS: [&str; 2] = ["c", "conformance"];

/// The conduit conformance suite: each of its test programs is one conduit.
///
/// It has its own stage.
pub(crate) const CONFORMANCE: &str = "argonet-conformance";

/// The test program of loom models, which nothing else runs.
const LOOM: &str = "loom";

/// Where loom models are: the package, and cargo's options for them.
const LOOM_TESTS: [(&str, &[&str]); 3] = [
    ("argonet-conduit", &["--lib"]),
    ("argonet-segment", &["--lib"]),
    ("argonet-event", &["--test", LOOM]),
];

/// Directory of a package, if the workspace has it.
fn directory(package: &str) -> Option<&str> {
    let directory = match package {
        "argonet" => ".",
        "argonet-fuzz-targets" => "fuzz/targets",
        "xtask" => "xtask",
        other => other.strip_prefix("argonet-")?,
    };
    root()
        .join(directory)
        .join("Cargo.toml")
        .exists()
        .then_some(directory)
}

/// Names of a package's test programs under `tests/`.
fn test_programs(directory: &str) -> Vec<String> {
    let mut names = Vec::new();
    let entries = std::fs::read_dir(root().join(directory).join("tests"));
    for entry in entries.into_iter().flatten().flatten() {
        let path = entry.path();
        let is_program = match path.extension() {
            Some(extension) => extension == "rs",
            None => path.join("main.rs").exists(),
        };
        if let Some(stem) = path.file_stem().filter(|_| is_program) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

/// Test programs that nothing else here names, each once.
fn unit_tests() -> Vec<String> {
    let packages = packages().into_iter().filter(|p| p != CONFORMANCE);
    let programs = packages.filter_map(|package| directory(&package).map(test_programs));
    let named = [&JOB_TESTS[..], &EXAMPLE_TESTS, &C_TESTS];
    let elsewhere: Vec<&str> = [&named.concat()[..], &[SEED_TESTS, LOOM]].concat();
    let mut names: Vec<String> = programs.flatten().collect();
    names.retain(|name| !elsewhere.contains(&name.as_str()));
    names.sort();
    names.dedup();
    names
}

/// `cargo test` of test programs, wherever in the workspace they are.
fn test<'a>(names: impl IntoIterator<Item = &'a str>) -> Command {
    let mut args = vec!["test", "--workspace", "--no-fail-fast"];
    for name in names {
        args.extend(["--test", name]);
    }
    let mut command = cargo(&args);
    command.env(BUILT, "1");
    command
}

/// Says to tests that programs of other packages lie where cargo puts them.
const BUILT: &str = "ARGONET_TEST_BUILT";

/// Builds the programs that tests start, with the features that the tests have.
fn programs(run: &mut Run) -> bool {
    let programs = ["build", "--workspace", "--bins", "--examples"];
    run.step("build of programs", &mut cargo(&programs))
}

impl Run {
    /// A command that is one test by itself.
    pub(crate) fn step(&mut self, name: &str, command: &mut Command) -> bool {
        let begun = Instant::now();
        let end = run(command, self.until, &mut self.tally);
        self.tally.step(name, end == End::Well);
        println!("    {name}: {:.1} s", begun.elapsed().as_secs_f64());
        end == End::Well
    }

    /// `cargo test`, whose tests are counted.
    ///
    /// A run that fails without a failed test (it did not compile, or died) is a failure of its
    /// own.
    pub(crate) fn tests(&mut self, name: &str, command: &mut Command) {
        let before = self.tally.failed;
        let begun = Instant::now();
        let end = run(command, self.until, &mut self.tally);
        println!("    {name}: {:.1} s", begun.elapsed().as_secs_f64());
        if end != End::Well && self.tally.failed == before {
            self.tally.step(name, false);
        }
    }

    pub(crate) fn full(&self) -> bool {
        self.effort == Effort::Full
    }
}

/// Builds all that later stages use; lints; format.
pub(crate) fn build(run: &mut Run) {
    // Not benches, which are run by hand; clippy looks at them.
    let all = [
        "build",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
    ];
    run.step("build", &mut cargo(&all));
    if run.full() {
        let release = [
            "build",
            "--release",
            "--package",
            "argonet",
            "--package",
            "argonet-cli",
            "--bins",
            "--examples",
        ];
        run.step("build for release", &mut cargo(&release));
    }
    lints(run);
    features::check(run);
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    run.step("doc", doc.env("RUSTDOCFLAGS", "-D warnings"));
    archives(run);
    if Turn::PlacesAndBook.is_in(run) {
        book::build(run);
    }
    if run.full() {
        oldest::check(run);
    }
    if Turn::Memory.is_in(run) {
        asan::build(run);
    }
}

/// Packs all crates as registries want them; in a full run those that may be published are built,
/// each from its archive, with the others from theirs.
fn archives(run: &mut Run) {
    let pack = ["package", "--offline", "--allow-dirty"];
    let mut all = cargo(&pack);
    all.args(["--workspace", "--no-verify"]);
    run.step("archives of all crates", &mut all);
    if run.full() {
        let files = tidy::files(&root());
        let mut published = cargo(&pack);
        for one in tidy::archives::crates(&files) {
            published.args(["--package", one.name]);
        }
        run.step("build of each crate from its archive", &mut published);
    }
}

fn lints(run: &mut Run) {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    run.step("clippy", &mut cargo(&clippy));
    run.step("rustfmt", &mut cargo(&["fmt", "--all", "--check"]));
}

/// What is quick of the other stages: lints, unit tests and small test programs, smp and tcp
/// through the conformance suite, some seeds, and a part of the jobs in memory.
pub(crate) fn check(run: &mut Run) {
    lints(run);
    if !programs(run) {
        return;
    }
    let kinds = ["test", "--workspace", "--lib", "--bins", "--no-fail-fast"];
    run.tests("unit tests", &mut cargo(&kinds));
    let names = unit_tests();
    let mut others = test(names.iter().map(String::as_str));
    run.tests("other test programs", &mut others);
    for conduit in CONDUIT_NAMES.into_iter().take(CHECKED_CONDUITS) {
        run.tests(conduit, &mut test([conduit]));
    }
    seeds_of(run, budget::CHECK_SEEDS, budget::CHECK_SEEDS);
    let part = format!("{}/{}", commit_number(run) % budget::PARTS, budget::PARTS);
    let mut jobs = test([NETWORK_TESTS]);
    jobs.args(["--", &at_once()]).env("ARGONET_TEST_PART", part);
    run.tests(NETWORK_TESTS, &mut jobs);
}

/// Unit tests, property tests, documentation examples and other small test programs; loom;
/// instructions of fast paths.
pub(crate) fn unit(run: &mut Run) {
    let cases = budget::PROPTEST_CASES_FULL.to_string();
    let flow = budget::FLOW_SEEDS_FULL.to_string();
    let set = |run: &Run, command: &mut Command| {
        if run.full() {
            command
                .env("PROPTEST_CASES", &cases)
                .env("ARGONET_FLOW_SEEDS", &flow);
        }
    };
    let kinds = [
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--examples",
        "--no-fail-fast",
    ];
    let mut command = cargo(&kinds);
    set(run, &mut command);
    run.tests("unit tests", &mut command);
    if run.full() {
        connections(run);
    }
    let names = unit_tests();
    let mut command = test(names.iter().map(String::as_str));
    set(run, &mut command);
    if programs(run) {
        run.tests("other test programs", &mut command);
        run.tests("examples", &mut test(EXAMPLE_TESTS));
    }
    run.tests(
        "documentation examples",
        &mut cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]),
    );
    if Turn::OrdersAndCounts.is_in(run) {
        loom(run);
    }
}

/// Making connections of tcp, keeping a stream and its payloads whole when they break, and agreeing
/// on the member that carries it: many more seeds.
fn connections(run: &mut Run) {
    let seeds = budget::CONNECTION_SEEDS_FULL.to_string();
    let mut command = cargo(&["test", "--package", "argonet-conduit", "--lib", "--"]);
    command
        .args(["tcp::join::dial", "channel::stream", "channel::frame"])
        .arg("failover")
        .env("ARGONET_SIM_SEEDS", &seeds)
        .env("PROPTEST_CASES", &seeds);
    run.tests(
        &format!("connections and classes, {seeds} seeds"),
        &mut command,
    );
}

/// All packages of the workspace that have tests of their own under `tests/`.
fn packages() -> Vec<String> {
    let mut packages = vec!["argonet".to_owned(), "argonet-fuzz-targets".to_owned()];
    for entry in std::fs::read_dir(root()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("Cargo.toml").exists() && entry.path().join("tests").is_dir() {
            packages.push(if name == "xtask" {
                name
            } else {
                format!("argonet-{name}")
            });
        }
    }
    packages.sort();
    packages
}

/// The loom models, in a target directory of their own, because the switch changes every crate.
pub(crate) fn loom(run: &mut Run) {
    let preemptions = if run.full() {
        budget::LOOM_PREEMPTIONS_FULL
    } else {
        budget::LOOM_PREEMPTIONS
    };
    for (package, how) in LOOM_TESTS {
        if directory(package).is_none() {
            continue;
        }
        let mut command = cargo(&["test", "--release", "--package", package]);
        command
            .args(how)
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target().join("loom"))
            .env("LOOM_MAX_PREEMPTIONS", preemptions.to_string())
            // The release profile is for programs; models compile faster without its last passes.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        run.tests(&format!("loom models of {package}"), &mut command);
    }
}

/// Every conduit through the suite.
pub(crate) fn conformance(run: &mut Run) {
    let programs = directory(CONFORMANCE).map(test_programs);
    for conduit in programs.unwrap_or_default() {
        let mut command = test([conduit.as_str()]);
        if run.full() {
            let seeds = budget::CONFORMANCE_SEEDS_FULL.to_string();
            command.env("CONFORMANCE_SEEDS", seeds);
            command.env("CONFORMANCE_OFI_PROVIDER", "all");
        }
        run.tests(&format!("conformance of {conduit}"), &mut command);
    }
}

/// Digits of a number that is the commit's, so that every commit tries other things and the same
/// commit the same.
fn commit_base(run: &Run) -> String {
    let mut git = Command::new("git");
    git.args(["rev-parse", "HEAD"]).current_dir(root());
    let commit = output(&mut git, run.until).unwrap_or_default();
    commit.trim().get(..12).unwrap_or("1000").to_owned()
}

/// The same as a number.
fn commit_number(run: &Run) -> u64 {
    u64::from_str_radix(&commit_base(run), 16).unwrap_or(0)
}

/// Jobs in the simulator, each another seed, from the commit's on.
pub(crate) fn seeds(run: &mut Run) {
    let count = if run.full() {
        budget::SIM_SEEDS_FULL
    } else {
        budget::SIM_SEEDS
    };
    let interfaces = if run.full() {
        budget::PORTALS_SEEDS_FULL
    } else {
        budget::PORTALS_SEEDS
    };
    seeds_of(run, count, interfaces);
}

/// `interfaces`: so many of them over the conduit of matching interfaces.
fn seeds_of(run: &mut Run, count: u64, interfaces: u64) {
    let base = commit_base(run);
    println!("    {count} seeds from 0x{base}, {interfaces} over portals");
    let mut command = test([SEED_TESTS]);
    if run.full() {
        command.arg("--release");
    }
    command
        .env("ARGONET_SIM_BASE", format!("0x{base}"))
        .env("ARGONET_SIM_SEEDS", count.to_string())
        .env("ARGONET_PORTALS_SEEDS", interfaces.to_string());
    run.tests(SEED_TESTS, &mut command);
}

/// Checks that take minutes and that few changes affect: a run makes those of one turn, which the
/// commit gives, so a fault may stay unseen for some commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// AddressSanitizer.
    Memory,
    /// Loom models and counts of instructions.
    OrdersAndCounts,
    /// Installing over, beside and instead of other files, and the book.
    PlacesAndBook,
}

impl Turn {
    const fn of(commit: u64) -> Self {
        match commit % 3 {
            0 => Self::Memory,
            1 => Self::OrdersAndCounts,
            _ => Self::PlacesAndBook,
        }
    }

    /// Whether a run has these.
    pub(crate) fn is_in(self, run: &Run) -> bool {
        let has = !run.takes_turns || Self::of(commit_number(run)) == self;
        if !has {
            println!("    the turn of other checks: {self:?} is not in this run");
        }
        has
    }
}

fn at_once() -> String {
    format!("--test-threads={}", budget::JOBS_AT_ONCE)
}

/// Jobs of real processes, started in every way.
pub(crate) fn jobs(run: &mut Run) {
    let repeats = if run.full() {
        budget::JOB_REPEATS_FULL
    } else {
        1
    };
    if !programs(run) {
        return;
    }
    for name in (0..repeats).flat_map(|_| JOB_TESTS) {
        let mut command = test([name]);
        command.args(["--", &at_once()]);
        if name == INSTALL_TEST && !Turn::PlacesAndBook.is_in(run) {
            command.env(PLACES, "none");
        }
        run.tests(name, &mut command);
    }
    if run.full() {
        let mut faults = test([NETWORK_TESTS]);
        faults
            .args(["--", "hosts_failover_again_and_again"])
            .env("ARGONET_TEST_FAULTS", budget::FAULTS_FULL.to_string());
        run.tests("faults of rails, one every 2 s", &mut faults);
    }
    // Thin link-time optimization takes minutes; only a full run waits for it.
    let (profile, directory) = if run.full() {
        ("release", "release")
    } else {
        ("dev", "debug")
    };
    let first = ["build", "--profile", profile, "--example", "first"];
    run.step("build of the README's program", &mut cargo(&first));
    let examples = target().join(directory).join("examples");
    for ranks in ["1", "4"] {
        let mut command = Command::new(examples.join("first"));
        command.env("GASNET_PSHM_NODES", ranks);
        let said = output(&mut command, run.until);
        let ok = said.is_some_and(|text| text.lines().count().to_string() == ranks);
        run.tally
            .step(&format!("the README's program on {ranks} ranks"), ok);
    }
}

/// The jobs of the library again, whose ranks reach each other over a conduit for networks:
/// connections, with neighbors and without, interfaces in software, or such over UDP, datagrams.
///
/// A full run takes all of these and all tests, another one of these and a part of the tests, which
/// the commit gives; not of conduits that need a library, whose ranks take longer to start.
pub(crate) fn networks(run: &mut Run) {
    let of_run = |row: &&&ConduitRow| run.full() || !row.needs_library;
    let networks = CONDUITS.iter().filter(|row| row.leaves_neighborhoods);
    let networks = networks.filter(of_run);
    let paths =
        networks.flat_map(|row| [1, 2].map(|neighbors| format!("{} {neighbors}", row.name)));
    let paths: Vec<String> = paths.chain(["udp 1".to_owned()]).collect();
    let number = commit_number(run);
    let paths_there = paths.len() as u64;
    let (one, part) = ((number % paths_there) as usize, number / paths_there);
    let paths = if run.full() {
        &paths[..]
    } else {
        &paths[one..=one]
    };
    if !programs(run) {
        return;
    }
    for path in paths {
        let mut command = test([NETWORK_TESTS]);
        command
            .args(["--", &at_once()])
            .env("ARGONET_TEST_PATH", path);
        if !run.full() {
            let part = format!("{}/{}", part % budget::PARTS, budget::PARTS);
            command.env("ARGONET_TEST_PART", part);
        }
        run.tests(&format!("{NETWORK_TESTS} over {path}"), &mut command);
    }
}

/// The headers as C sees them, and their promises.
pub(crate) fn c(run: &mut Run) {
    let base = commit_base(run);
    for name in C_TESTS {
        let mut command = test([name]);
        command.env("C_CONFORMANCE_BASE", format!("0x{base}"));
        run.tests(name, &mut command);
    }
    if Turn::OrdersAndCounts.is_in(run) {
        counts::check(run);
    }
    // Optimizes a release, which takes minutes.
    if run.full() {
        sizes::check(run);
    }
}

/// All conformance programs of C in all ways, one part of so many.
pub(crate) fn c_part<const PART: usize, const PARTS: usize>(run: &mut Run) {
    let [.., name] = C_TESTS;
    let mut command = test([name]);
    command.env("C_CONFORMANCE", format!("{PART}/{PARTS}"));
    run.tests(name, &mut command);
}

/// Where sanitizers and libFuzzer are set up.
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Whether this machine can link programs with the compiler's checks; otherwise `what` is skipped.
pub(crate) fn sanitizers_work(run: &mut Run, what: &str) -> bool {
    let reason = if !cfg!(all(
        target_arch = "x86_64",
        target_os = "linux",
        target_env = "gnu"
    )) {
        "it is set up for x86-64 Linux with glibc only"
    } else if !exists("cc", &["--version"]) {
        "no C compiler to link with"
    } else {
        return true;
    };
    run.tally.skip(what, reason);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_take_turns_have_one_turn_and_others_have_all() {
        let all = [Turn::Memory, Turn::OrdersAndCounts, Turn::PlacesAndBook];
        assert_eq!([3, 4, 5].map(Turn::of), all);
        let mut run = Run {
            effort: Effort::Usual,
            until: Instant::now() + std::time::Duration::from_secs(60),
            takes_turns: true,
            tally: crate::tally::Tally::default(),
        };
        let turns = all.into_iter().filter(|turn| turn.is_in(&run));
        assert_eq!(turns.count(), 1);
        run.takes_turns = false;
        assert!(all.into_iter().all(|turn| turn.is_in(&run)));
    }

    /// A program of that name in another package would run with it.
    #[test]
    fn each_program_that_a_stage_names_is_one() {
        let packages = packages().into_iter();
        let programs = packages.filter_map(|package| directory(&package).map(test_programs));
        let mut all: Vec<String> = programs.flatten().collect();
        let units = unit_tests();
        assert!(!units.is_empty());
        all.retain(|name| !units.contains(name));
        all.sort();
        let conduits = directory(CONFORMANCE).map(test_programs);
        let others = [NETWORK_TESTS, SEED_TESTS, LOOM];
        let named = [&JOB_TESTS[..], &EXAMPLE_TESTS, &C_TESTS, &others].concat();
        let named = named.into_iter().map(str::to_owned);
        let mut named: Vec<String> = named.chain(conduits.unwrap_or_default()).collect();
        named.sort();
        // Two stages run it.
        named.dedup();
        assert_eq!(all, named);
    }
}
