//! Programs that use the library compile few crates, and none of the dependencies of the command.

use crate::command::cargo;
use std::collections::BTreeSet;

/// Crates that a program compiles which depends on the library, itself left out.
const CRATES: usize = 59;

/// The library, and dependencies of commands, examples and tests.
const LIBRARY: &str = "argonet";
const OF_COMMANDS: [&str; 4] = ["clap", "plotters", "serde_json", "indicatif"];

pub(crate) fn check(complaints: &mut Vec<String>) {
    let args = ["tree", "--package", LIBRARY, "--edges", "normal,build"];
    let mut command = cargo(&args);
    command.args(["--prefix", "none", "--format", "{p}"]);
    match command.output() {
        Ok(output) if output.status.success() => {
            named(&String::from_utf8_lossy(&output.stdout), complaints);
        }
        Ok(output) => complaints.push(format!(
            "cargo tree: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => complaints.push(format!("cargo tree: {error}")),
    }
}

/// Complains of a tree whose lines are names and versions.
fn named(tree: &str, complaints: &mut Vec<String>) {
    let packages = || tree.lines().filter_map(|line| line.split(' ').next());
    // A line that has come before ends with a mark.
    let crates: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    if crates.len() > CRATES {
        complaints.push(format!(
            "Cargo.lock: a program that depends on {LIBRARY} compiles {} crates, at most {CRATES}",
            crates.len()
        ));
    }
    if packages().next() != Some(LIBRARY) {
        complaints.push(format!("cargo tree: it does not begin with {LIBRARY}"));
    }
    for name in OF_COMMANDS {
        if packages().any(|package| package == name) {
            complaints.push(format!(
                "Cargo.toml: {LIBRARY} depends on {name}, which is for commands; `cargo tree --package {LIBRARY} --edges normal --invert {name}` says how"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(tree: &str) -> usize {
        let mut complaints = Vec::new();
        named(tree, &mut complaints);
        complaints.len()
    }

    #[test]
    fn a_dependency_of_commands_is_found() {
        assert_eq!(complaints("argonet v0.1.0 (/x)\nserde v1.0.0\n"), 0);
        assert_eq!(complaints("argonet v0.1.0 (/x)\nclap_lex v1.0.0\n"), 0);
        assert_eq!(complaints("argonet v0.1.0 (/x)\nclap v4.6.0\n"), 1);
        assert_eq!(complaints(""), 1);
    }

    #[test]
    fn one_crate_too_many_is_found() {
        let tree = |crates: usize| {
            let others: String = (1..crates).map(|i| format!("a v{i}\n")).collect();
            format!("argonet v0.1.0 (/x)\n{others}a v1\na v1 (*)\n")
        };
        assert_eq!(complaints(&tree(CRATES)), 0);
        assert_eq!(complaints(&tree(CRATES + 1)), 1);
    }
}
