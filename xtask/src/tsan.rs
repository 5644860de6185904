//! Tests of threads under ThreadSanitizer.

use crate::command::{cargo, output, root, target};
use crate::stages::{TRIPLE, sanitizers_work};
use crate::suite::Run;
use crate::tsan_c;
use std::path::PathBuf;
use std::process::Command;

/// Flags that ThreadSanitizer needs of the stable compiler; std is not compiled anew, hence the
/// second.
const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";

/// Packages whose unit tests run, and further test programs of theirs.
const PACKAGES: [(&str, &[&str]); 6] = [
    ("argonet-event", &["stress"]),
    ("argonet-segment", &[]),
    ("argonet-conduit", &[]),
    ("argonet-engine", &[]),
    ("argonet-start", &[]),
    ("argonet", &[]),
];

/// Programs of `tests/jobs` in which several threads use one world.
///
/// A job of one rank sends to itself through the same rings and locks; forking and launching would
/// be the sanitizer's own affair more than ours.
const PROGRAMS: [&str; 5] = [
    "threads-2",
    "threads-4",
    "threads-short-lived",
    "threads-order",
    "threads-calls",
];

/// How often each of those runs.
const REPEATS: u32 = 3;

pub(crate) fn options() -> String {
    let suppressions = root().join("xtask/tsan/suppressions.txt");
    // With the longest history: of a race whose first half it has forgotten it says nothing, and a
    // ring comes round late.
    format!("history_size=7 suppressions={}", suppressions.display())
}

pub(crate) fn built_in() -> PathBuf {
    target().join("tsan")
}

/// A command of cargo that compiles for it.
pub(crate) fn sanitized(subcommand: &str) -> Command {
    let mut command = cargo(&[subcommand, "--target", TRIPLE]);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env("TSAN_OPTIONS", options())
        .env("CARGO_TARGET_DIR", built_in())
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("PROPTEST_CASES", "32");
    command
}

/// Runs all of it.
pub(crate) fn tsan(run: &mut Run) {
    if !sanitizers_work(run, "ThreadSanitizer") {
        return;
    }
    planted(run);
    for (package, programs) in PACKAGES {
        let mut command = sanitized("test");
        command.args(["--package", package, "--lib", "--no-fail-fast"]);
        for program in programs {
            command.args(["--test", program]);
        }
        // The harness itself hands tests over in ways that are reported; with one thread, in few.
        command.args(["--", "--test-threads=1"]);
        run.tests(&format!("ThreadSanitizer: {package}"), &mut command);
    }
    worlds(run);
    tsan_c::programs(run);
}

/// The race that must be found.
fn planted(run: &mut Run) {
    let name = "ThreadSanitizer finds a planted race";
    let built = built_in().join("planted_race");
    let _ = std::fs::create_dir_all(built_in());
    let mut rustc = Command::new("rustc");
    rustc
        .env("RUSTC_BOOTSTRAP", "1")
        .args(FLAGS.split(' '))
        .args(["--edition", "2024", "-O", "-o"])
        .arg(&built)
        .arg(root().join("xtask/tsan/planted_race.rs"));
    if output(&mut rustc, run.until).is_none() {
        run.tally
            .step(&format!("{name}: it does not compile"), false);
        return;
    }
    let said = Command::new(&built).env("TSAN_OPTIONS", options()).output();
    let found = said.is_ok_and(|said| {
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        !said.status.success() && text.contains("data race") && text.contains("planted_race")
    });
    run.tally.step(name, found);
}

/// Worlds that several threads use.
fn worlds(run: &mut Run) {
    let mut command = sanitized("test");
    command.args(["--package", "argonet", "--test", "jobs", "--no-run"]);
    command.arg("--message-format=json");
    let said = output(&mut command, run.until).unwrap_or_default();
    let Some(program) = said.lines().filter_map(executable).next_back() else {
        run.tally.step("ThreadSanitizer: build of jobs", false);
        return;
    };
    for name in PROGRAMS {
        let clean = (0..REPEATS).all(|_| {
            let mut command = Command::new(&program);
            command
                .env("ARGONET_TEST_PROGRAM", name)
                .env("TSAN_OPTIONS", options());
            output(&mut command, run.until).is_some()
        });
        run.tally.step(&format!("ThreadSanitizer: {name}"), clean);
    }
}

/// The program that a line of cargo's messages says was built.
fn executable(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("\"executable\":\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suppression_has_its_reason_and_none_hides_all_threads() {
        let text = std::fs::read_to_string(root().join("xtask/tsan/suppressions.txt")).unwrap();
        let mut argued = false;
        for line in text.lines() {
            if line.starts_with('#') {
                argued = true;
            } else if line.is_empty() {
                argued = false;
            } else {
                assert!(argued, "no reason for {line}");
                let kind = line.split_once(':').unwrap();
                assert!(["race", "race_top"].contains(&kind.0), "{line}");
                for everywhere in ["std::thread::spawn", "argonet::world::poll", "thread_start"] {
                    assert!(!everywhere.contains(kind.1), "{line} hides too much");
                }
            }
        }
    }

    /// The handles of scoped threads that are dropped: the line of each.
    fn unjoined(text: &str) -> Vec<usize> {
        let begins = text.match_indices(".spawn(").filter(|(at, _)| {
            let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
            ["s", "scope"].contains(&text[line..*at].trim())
        });
        let dropped = begins.filter(|(at, call)| {
            let mut depth = 1;
            let rest = &text[at + call.len()..];
            let end = rest.find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            end.is_some_and(|end| rest[end + 1..].starts_with(';'))
        });
        dropped.map(|(at, _)| text[..at].lines().count()).collect()
    }

    #[test]
    fn scoped_threads_are_joined() {
        assert_eq!(unjoined("x\n  s.spawn(|| f(1));\n"), [2]);
        assert!(unjoined("let a = s.spawn(f);\nmap(|x| {\n s.spawn(f(x))\n})").is_empty());
        let mut open = [
            "event",
            "segment",
            "conduit",
            "src",
            "tests/jobs/threads.rs",
        ]
        .map(|path| root().join(path))
        .to_vec();
        let mut looked_at = 0;
        while let Some(path) = open.pop() {
            if let Ok(directory) = std::fs::read_dir(&path) {
                open.extend(directory.map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(unjoined(&text), [0; 0], "{}", path.display());
                looked_at += 1;
            }
        }
        assert!(looked_at > 100, "{looked_at} files");
    }

    #[test]
    fn the_executable_is_found_in_cargos_messages() {
        let line = r#"{"reason":"x","executable":"/t/jobs-1","fresh":true}"#;
        assert_eq!(executable(line).as_deref(), Some("/t/jobs-1"));
        assert_eq!(executable(r#"{"executable":null}"#), None);
    }
}
