//! How many lines of code there are, by crate and by part of the conduits.

use crate::command::root;
use crate::tidy::{self, File};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `cargo xtask lines`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Another checkout to count, such as one of an earlier commit
    checkout: Option<PathBuf>,
}

/// Directories that are counted besides the crates that they are a part of.
const PARTS: [&str; 9] = [
    "conduit/src/channel/driver",
    "conduit/src/channel/frame",
    "conduit/src/channel/stream",
    "conduit/src/channel",
    "conduit/src/portals",
    "conduit/src/selector",
    "conduit/src/smp",
    "conduit/src/tcp/join",
    "conduit/src/tcp",
];

/// Prints the table.
pub(crate) fn lines(options: &Options) -> bool {
    let directory = options.checkout.clone().unwrap_or_else(root);
    let files = tidy::files(&directory);
    println!("| directory | lines of code |\n| --- | ---: |");
    let crates = by_crate(&files);
    for (name, count) in &crates {
        println!("| `{name}` | {count} |");
    }
    println!("| all | {} |", crates.values().sum::<usize>());
    for part in PARTS {
        let inside = |file: &&File| file.path.starts_with(&format!("{part}/"));
        let count: usize = files.iter().filter(inside).filter_map(product).sum();
        println!("| `{part}` | {count} |");
    }
    !crates.is_empty()
}

/// Lines of product code by the directory of each crate.
fn by_crate(files: &[File]) -> BTreeMap<String, usize> {
    let mut crates = BTreeMap::new();
    for file in files {
        if let Some(count) = product(file) {
            let name = file.path.split('/').next().unwrap_or_default();
            *crates.entry(name.to_owned()).or_default() += count;
        }
    }
    crates
}

/// Lines of code of a file of a crate's sources, without comments, blank lines and tests; `None`
/// for other files.
fn product(file: &File) -> Option<usize> {
    let parts: Vec<&str> = file.path.split('/').collect();
    let is_source = parts.first() == Some(&"src") || parts.get(1) == Some(&"src");
    let is_test =
        |part: &&str| *part == "tests" || *part == "tests.rs" || part.starts_with("loom_");
    if !is_source || !file.path.ends_with(".rs") || parts.iter().any(is_test) {
        return None;
    }
    Some(code(&file.text))
}

/// Lines that are neither blank nor comments, up to the unit tests that end a file.
fn code(text: &str) -> usize {
    let before = text.split("\n#[cfg(test)]\nmod tests {").next();
    let lines = before.unwrap_or_default().lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.into(),
            text: text.into(),
        }
    }

    #[test]
    fn comments_blanks_and_tests_do_not_count() {
        let text = "//! A module.\n\nuse a::b; // why\n/// A number.\nconst A: u32 = 1;\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        assert_eq!(code(text), 2);
    }

    #[test]
    fn only_sources_of_crates_count() {
        let text = "fn f() {}\n";
        let files = [
            file("am/src/lib.rs", text),
            file("am/src/credit/mod.rs", text),
            file("am/src/credit/tests.rs", text),
            file("am/src/tests/walk.rs", text),
            file("am/tests/flow.rs", text),
            file("am/src/notes.md", text),
            file("src/lib.rs", text),
            file("conduit/src/smp/loom_tests.rs", text),
        ];
        let counts = by_crate(&files);
        assert_eq!(counts, [("am".into(), 2), ("src".into(), 1)].into());
    }
}
