//! What each stage runs.

use crate::command::{End, cargo, exists, output, root, run, target};
use crate::suite::{Effort, Run};
use crate::{asan, budget, counts, sizes};
use std::process::Command;
use std::time::Instant;

/// Test programs that start whole jobs: package and name. They run in their own stage, all other
/// test programs in the stage `unit`.
const JOB_TESTS: [(&str, &str); 6] = [
    ("argonet-boot", "jobs"),
    ("argonet", "jobs"),
    ("argonet", "kmers"),
    ("argonet", "heat"),
    ("argonet-cli", "perf"),
    ("xtask", "install"),
];

/// The test program of the stage `seeds`.
const SEED_TESTS: [(&str, &str); 1] = [("argonet-sim", "seeds")];

/// Test programs of the stage `c`.
const C_TESTS: [(&str, &str); 2] = [("argonet-capi", "c"), ("argonet-capi", "conformance")];

/// The conduit conformance suite: each of its test programs is one conduit. It has its own stage.
pub(crate) const CONFORMANCE: &str = "argonet-conformance";

/// Where loom models are: the package, and cargo's options for them.
const LOOM_TESTS: [(&str, &[&str]); 3] = [
    ("argonet-conduit", &["--lib"]),
    ("argonet-segment", &["--lib"]),
    ("argonet-event", &["--test", "loom"]),
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

fn has_test(package: &str, name: &str) -> bool {
    directory(package).is_some_and(|d| test_programs(d).iter().any(|n| n == name))
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

    /// `cargo test`, whose tests are counted. A run that fails without a failed test (it did not
    /// compile, or died) is a failure of its own.
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
    // As test programs build it that start jobs: with the features of its own dependencies alone.
    let command = ["build", "--package", "argonet-cli", "--bin", "argonet"];
    run.step("build of the command", &mut cargo(&command));
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
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    run.step("doc", doc.env("RUSTDOCFLAGS", "-D warnings"));
    asan::build(run);
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
    for package in packages().into_iter().filter(|p| p != CONFORMANCE) {
        let programs = directory(&package).map(test_programs).unwrap_or_default();
        let mut args = vec!["test", "--package", &package, "--no-fail-fast"];
        let fixed = args.len();
        for name in &programs {
            let elsewhere = JOB_TESTS
                .iter()
                .chain(&C_TESTS)
                .chain(&SEED_TESTS)
                .any(|&(p, n)| p == package && n == name)
                || name == "loom";
            if !elsewhere {
                args.extend(["--test", name.as_str()]);
            }
        }
        if args.len() > fixed {
            let mut command = cargo(&args);
            set(run, &mut command);
            run.tests(&package, &mut command);
        }
    }
    run.tests(
        "documentation examples",
        &mut cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]),
    );
    loom(run);
}

/// How connections of tcp are made, and what becomes of a stream and of what travels beside it when
/// they break: many more seeds.
fn connections(run: &mut Run) {
    let seeds = budget::CONNECTION_SEEDS_FULL.to_string();
    let mut command = cargo(&["test", "--package", "argonet-conduit", "--lib", "--"]);
    command
        .args(["tcp::join::dial", "channel::stream", "channel::frame"])
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
        let args = ["test", "--package", CONFORMANCE, "--test", &conduit];
        let mut command = cargo(&args);
        if run.full() {
            let seeds = budget::CONFORMANCE_SEEDS_FULL.to_string();
            command.env("CONFORMANCE_SEEDS", seeds);
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

/// Jobs in the simulator, each another seed, from the commit's on.
pub(crate) fn seeds(run: &mut Run) {
    let base = commit_base(run);
    let count = if run.full() {
        budget::SIM_SEEDS_FULL
    } else {
        budget::SIM_SEEDS
    };
    let portals = if run.full() {
        budget::PORTALS_SEEDS_FULL
    } else {
        budget::PORTALS_SEEDS
    };
    println!("    {count} seeds from 0x{base}, {portals} over portals");
    for (package, name) in SEED_TESTS {
        let mut command = cargo(&["test", "--package", package, "--test", name]);
        if run.full() {
            command.arg("--release");
        }
        command
            .env("ARGONET_SIM_BASE", format!("0x{base}"))
            .env("ARGONET_SIM_SEEDS", count.to_string())
            .env("ARGONET_PORTALS_SEEDS", portals.to_string());
        run.tests(&format!("{package} {name}"), &mut command);
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
    let threads = at_once();
    for _ in 0..repeats {
        for (package, name) in JOB_TESTS {
            if has_test(package, name) {
                let args = ["test", "--package", package, "--test", name, "--", &threads];
                run.tests(&format!("{package} {name}"), &mut cargo(&args));
            }
        }
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
/// connections, with neighbors and without, interfaces in software, or such over UDP. A full run
/// takes all of these and all tests, another one of these and a part of the tests, which the commit
/// gives.
pub(crate) fn networks(run: &mut Run) {
    const PATHS: [&str; 5] = ["tcp 1", "tcp 2", "portals 1", "portals 2", "udp 1"];
    let (package, name) = ("argonet", "jobs");
    let base = commit_base(run);
    let turn = u64::from_str_radix(&base, 16).unwrap_or(0);
    let paths_there = PATHS.len() as u64;
    let (one, turn) = ((turn % paths_there) as usize, turn / paths_there);
    let paths = if run.full() {
        &PATHS[..]
    } else {
        &PATHS[one..=one]
    };
    for path in paths {
        let args = ["test", "--package", package, "--test", name, "--"];
        let mut command = cargo(&args);
        command.arg(at_once()).env("ARGONET_TEST_PATH", path);
        if !run.full() {
            let part = format!("{}/{}", turn % budget::PARTS, budget::PARTS);
            command.env("ARGONET_TEST_PART", part);
        }
        run.tests(&format!("{package} {name} over {path}"), &mut command);
    }
}

/// What C sees, and what it is promised.
pub(crate) fn c(run: &mut Run) {
    let base = commit_base(run);
    for (package, name) in C_TESTS {
        if has_test(package, name) {
            let mut command = cargo(&["test", "--package", package, "--test", name]);
            if run.full() {
                command.env("C_CONFORMANCE", "all");
            } else {
                command.env("C_CONFORMANCE_BASE", format!("0x{base}"));
            }
            run.tests(&format!("{package} {name}"), &mut command);
        }
    }
    counts::check(run);
    // Optimizes a release, which takes minutes.
    if run.full() {
        sizes::check(run);
    }
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
    fn a_stage_leaves_out_no_program_that_it_names() {
        for (package, name) in [JOB_TESTS.as_slice(), &SEED_TESTS, &C_TESTS].concat() {
            assert!(has_test(package, name), "{package} {name} would not run");
        }
        assert!(!has_test("argonet", "no such program"));
    }
}
