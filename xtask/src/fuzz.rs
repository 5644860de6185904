//! The fuzz targets under libFuzzer.

use crate::budget;
use crate::command::{cargo, exists, root, target};
use crate::stages::{TRIPLE, sanitizers_work};
use crate::suite::Run;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The coverage that libFuzzer wants, and AddressSanitizer, from the stable compiler.
const FLAGS: [&str; 8] = [
    "--cfg fuzzing",
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// Memory of one run, in megabytes; libFuzzer ends a target that takes more.
const MEMORY_MB: u32 = 1024;
/// Time for one input, in seconds, after which libFuzzer says that the target hangs.
const INPUT_SECONDS: u32 = 10;

/// The targets: a directory of the corpus each.
///
/// A test of the targets compares both lists.
pub(crate) fn targets() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("fuzz/corpus"))
        .into_iter()
        .flatten()
        .flatten()
    {
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names
}

/// A target's name as the command line gives it.
pub(crate) fn known(name: &str) -> Result<String, String> {
    let names = targets();
    if names.iter().any(|held| held == name) {
        Ok(name.to_owned())
    } else {
        Err(format!("there are {}", names.join(", ")))
    }
}

/// All targets, for the time of a full run.
pub(crate) fn all(run: &mut Run) {
    each(
        run,
        &targets(),
        Duration::from_secs(budget::FUZZ_SECONDS_FULL),
    );
}

/// Lets libFuzzer look for inputs that make a target fail, for `time` each.
pub(crate) fn each(run: &mut Run, names: &[String], time: Duration) {
    if !sanitizers_work(run, "libFuzzer") {
        return;
    }
    if !exists("c++", &["--version"]) {
        run.tally
            .skip("libFuzzer", "no C++ compiler to build it with");
        return;
    }
    let built = target().join("fuzz");
    let package = root().join("fuzz/libfuzzer");
    // The versions that everything else is built with; the file is not kept, so it is never old.
    if let Err(error) = std::fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")) {
        eprintln!("    {}: {error}", package.display());
    }
    let mut build = cargo(&["build", "--release", "--target", TRIPLE]);
    build
        .current_dir(package)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env("CARGO_TARGET_DIR", &built);
    if !run.step("libFuzzer: build", &mut build) {
        return;
    }
    let program = built.join(TRIPLE).join("release/argonet-fuzz");
    for name in names {
        let mut command = one(&program, &built, name, time);
        run.step(
            &format!("libFuzzer: {name}, {} s", time.as_secs()),
            &mut command,
        );
    }
}

fn one(program: &Path, built: &Path, name: &str, time: Duration) -> Command {
    // Inputs that it finds are kept for the next run, outside of the repository.
    let found = built.join("corpus").join(name);
    let failures = built.join("failures");
    for directory in [&found, &failures] {
        let _ = std::fs::create_dir_all(directory);
    }
    let mut command = Command::new(program);
    command
        .env("ARGONET_FUZZ_TARGET", name)
        .arg(&found)
        .arg(root().join("fuzz/corpus").join(name))
        .arg(format!("-max_total_time={}", time.as_secs()))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!(
            "-artifact_prefix={}/{name}-",
            failures.to_string_lossy()
        ))
        .arg("-print_final_stats=1")
        .arg("-verbosity=0");
    command
}
