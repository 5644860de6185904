//! cargo-mutants: whether tests notice when the code of a part is changed.

use crate::command::{output, root, run, target};
use crate::pinned::Pinned;
use crate::suite::Run;
use std::fs::{create_dir_all, read_to_string, remove_dir_all};
use std::path::Path;
use std::process::Command;

const CARGO_MUTANTS: Pinned = Pinned {
    name: "cargo-mutants",
    release: "27.1.0",
    options: &[],
};

/// A part of the code whose mutants are tested, and how.
#[derive(Debug)]
struct Part {
    name: &'static str,
    package: &'static str,
    /// Its files, if they are not all of the package's.
    files: Option<&'static str>,
    /// Tests that run, as cargo's and the test program's options.
    tests: &'static [&'static str],
    /// What is compiled sooner is often worth more than what runs faster.
    optimized: &'static str,
    /// Cases a property, enough to see what a mutant does.
    cases: &'static str,
}

/// The protocol's own logic, with tests that start no job.
const PARTS: [Part; 4] = [
    Part {
        name: "am",
        package: "argonet-am",
        files: None,
        tests: &["--lib"],
        optimized: "0",
        cases: "256",
    },
    Part {
        name: "event",
        package: "argonet-event",
        files: None,
        tests: &["--lib", "--tests"],
        optimized: "1",
        cases: "256",
    },
    Part {
        name: "segment",
        package: "argonet-segment",
        files: None,
        tests: &["--lib", "--tests"],
        optimized: "1",
        cases: "256",
    },
    Part {
        name: "stream",
        package: "argonet-conduit",
        files: Some("conduit/src/channel/stream/**"),
        tests: &["--lib", "--", "channel::stream"],
        optimized: "0",
        cases: "24",
    },
];

/// Seconds that tests may take at least before they count as hanging; more where they need
/// more than a fifth of it without a change.
const HANGS: &str = "20";

/// Fewer of a part's mutants may survive, in percent of those that compile.
const SURVIVE_PERCENT: usize = 5;

/// A part by its name on the command line.
pub(crate) fn known(name: &str) -> Result<String, String> {
    let names = PARTS.map(|part| part.name);
    if names.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("there are {}", names.join(", ")))
    }
}

/// Tests the mutants of the parts named, or of all; `shard` is one of several shares of them, as
/// `1/4`.
pub(crate) fn each(run: &mut Run, names: &[String], shard: Option<&str>) {
    let Some(program) = CARGO_MUTANTS.installed(run) else {
        return;
    };
    for part in &PARTS {
        if names.is_empty() || names.iter().any(|name| name == part.name) {
            test(run, &program, part, shard);
        }
    }
}

fn test(here: &mut Run, program: &Path, part: &Part, shard: Option<&str>) {
    let results = target().join("mutants").join(part.name);
    // Lists of an earlier run say nothing, and the tool makes the last directory of a path alone.
    let _ = remove_dir_all(&results);
    if let Err(error) = create_dir_all(&results) {
        eprintln!("    {}: {error}", results.display());
    }
    let of_part = || {
        let mut command = Command::new(program);
        command
            .current_dir(root())
            .args(["mutants", "--package", part.package])
            .args(part.files.iter().flat_map(|files| ["--file", files]))
            .args(shard.iter().flat_map(|shard| ["--shard", shard]));
        command
    };
    let mut tested = of_part();
    tested
        .args(["--minimum-test-timeout", HANGS])
        .arg("--output")
        .arg(&results)
        .arg("--")
        .args(part.tests)
        // It compiles the copy of the tree in a directory of its own.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", part.optimized)
        .env("PROPTEST_CASES", part.cases);
    let all = output(of_part().arg("--list"), here.until).map_or(0, |list| list.lines().count());
    // Its code says less than its lists.
    run(&mut tested, here.until, &mut here.tally);
    let outcome = Outcome::of(|name| {
        let path = results.join("mutants.out").join(format!("{name}.txt"));
        read_to_string(path).map_or(0, |lines| lines.lines().count())
    });
    let name = part.name;
    println!("    {name}: {outcome:?} of {all}");
    let name = format!("mutants of {name}");
    here.tally.step(&name, outcome.is_well(all));
}

/// How many mutants ended in which way.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    caught: usize,
    hang: usize,
    survive: usize,
    /// They do not compile.
    none: usize,
}

impl Outcome {
    /// By the tool's lists.
    fn of(lines: impl Fn(&str) -> usize) -> Self {
        Self {
            caught: lines("caught"),
            hang: lines("timeout"),
            survive: lines("missed"),
            none: lines("unviable"),
        }
    }

    /// Whether all were tested and few survive.
    fn is_well(self, all: usize) -> bool {
        let noticed = self.caught + self.hang;
        let tested = noticed + self.survive;
        all > 0 && tested + self.none == all && self.survive * 100 < tested * SURVIVE_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_where_they_are_said_to_be() {
        for part in &PARTS {
            let directory = match part.files {
                Some(files) => files.trim_end_matches("/**"),
                None => part.name,
            };
            assert!(root().join(directory).is_dir(), "{directory}");
            assert_eq!(known(part.name).as_deref(), Ok(part.name));
        }
        assert!(known("engine").is_err());
    }

    #[test]
    fn a_run_is_well_if_it_is_whole_and_few_survive() {
        let outcome = |caught, hang, survive, none| Outcome {
            caught,
            hang,
            survive,
            none,
        };
        assert!(outcome(90, 6, 4, 9).is_well(109));
        assert!(!outcome(90, 5, 5, 9).is_well(109), "too many survive");
        assert!(!outcome(90, 6, 4, 9).is_well(110), "one was not tested");
        assert!(!outcome(0, 0, 0, 0).is_well(0));
        let lists = |name: &str| {
            ["caught", "timeout", "missed", "unviable"]
                .iter()
                .position(|held| *held == name)
                .unwrap()
        };
        assert!(matches!(
            Outcome::of(lists),
            Outcome {
                caught: 0,
                hang: 1,
                survive: 2,
                none: 3
            }
        ));
    }
}
