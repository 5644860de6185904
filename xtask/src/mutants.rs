//! cargo-mutants: whether tests notice when the code of a part is changed.

use crate::command::{root, run, target};
use crate::pinned::Pinned;
use crate::suite::Run;
use std::fs::{create_dir_all, read_to_string};
use std::path::Path;
use std::process::Command;

const CARGO_MUTANTS: Pinned = Pinned {
    name: "cargo-mutants",
    release: "27.1.0",
    options: &[],
};

/// A part of the code whose mutants are tested, and how.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
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
    // The tool makes the last directory of a path alone.
    if let Err(error) = create_dir_all(&results) {
        eprintln!("    {}: {error}", results.display());
    }
    let mut command = Command::new(program);
    command
        .current_dir(root())
        .args(["mutants", "--minimum-test-timeout", HANGS])
        .args(["--package", part.package])
        .arg("--output")
        .arg(&results);
    command.args(part.files.iter().flat_map(|files| ["--file", files]));
    command.args(shard.iter().flat_map(|shard| ["--shard", shard]));
    command
        .arg("--")
        .args(part.tests)
        // It compiles the copy of the tree in a directory of its own.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", part.optimized)
        .env("PROPTEST_CASES", part.cases);
    // Its code says less than its lists.
    run(&mut command, here.until, &mut here.tally);
    let list = |name: &str| {
        let path = results.join("mutants.out").join(format!("{name}.txt"));
        read_to_string(path).map_or(0, |lines| lines.lines().count())
    };
    let [caught, timeout, missed] = ["caught", "timeout", "missed"].map(list);
    println!(
        "    {}: {caught} caught, {timeout} hang, {missed} survive",
        part.name
    );
    let name = format!("mutants of {}", part.name);
    here.tally.step(&name, missed == 0 && caught > 0);
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
}
