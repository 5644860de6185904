//! The rules of the house that a program can check.
//!
//! Why they are rules: docs/ARCHITECTURE.md and CONTRIBUTING.md.

pub(crate) mod archives;
mod commits;
mod conduits;
mod layers;
pub(crate) mod paths;
mod source;
mod summary;
mod text;
mod tree;

use std::path::{Path, PathBuf};

/// A file of the tree: its path from the root, and its text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Whether it is code.
    pub(crate) fn is_source(&self) -> bool {
        [".rs", ".h", ".c", ".cc"]
            .iter()
            .any(|end| self.path.ends_with(end))
    }

    /// Whether all of it is there for tests, examples or measurements.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || self.path.starts_with("examples/")
            || self.path.starts_with("conformance/src/")
            || self.path.contains("/benches/")
    }

    /// The line, counted from 0, from which on it is a test; nothing if none is.
    pub(crate) fn tests_from(&self) -> Option<usize> {
        if self.is_test() {
            return Some(0);
        }
        let begins = ["#[cfg(test)]", "#[cfg(all(test, loom))]"];
        self.text
            .lines()
            .position(|line| begins.contains(&line.trim()))
    }
}

/// Every breach of a rule in the tree at `root`, one line each.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files = files(root);
    let mut complaints = Vec::new();
    for file in &files {
        source::check(file, &mut complaints);
        text::check(file, &mut complaints);
        summary::check(file, &mut complaints);
    }
    source::check_exceptions(&files, &mut complaints);
    layers::check(&files, &mut complaints);
    paths::check(&files, |path| root.join(path).exists(), &mut complaints);
    conduits::check(&files, |path| root.join(path).exists(), &mut complaints);
    tree::check(&mut complaints);
    archives::check(&files, &mut complaints);
    commits::check(root, &mut complaints);
    match crate::numbers::stale(root) {
        Ok(stale) => complaints.extend(stale.into_iter().map(|file| {
            format!("{file}: differs from base/gasnet.tsv; run `cargo xtask numbers`")
        })),
        Err(error) => complaints.push(error),
    }
    complaints.sort();
    complaints
}

/// All text files, without build output and git's own.
pub(crate) fn files(root: &Path) -> Vec<File> {
    let mut files = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links of packages lead to files that are here, too.
            if name == ".git" || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !name.starts_with("target") {
                    directories.push(path);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path)
                && let Ok(path) = path.strip_prefix(root)
            {
                files.push(File {
                    path: path.to_string_lossy().into_owned(),
                    text,
                });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let complaints = super::check(&crate::command::root());
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
