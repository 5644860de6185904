//! Paths that documents name: they exist.

use super::File;

/// Paths that begin as some of the tree do and are of something else.
const ELSEWHERE: [&str; 4] = [
    // Files of an installation beside the headers.
    "include/gasnet_tools-",
    "include/ofi-conduit/",
    "include/portals-conduit/",
    "include/smp-conduit/",
];

/// Records say what was when they were written: their links must lead somewhere, their texts need
/// not.
const RECORDS: &str = "docs/adr/";

/// `exists`: whether the tree has a file or directory.
pub(crate) fn check(files: &[File], exists: impl Fn(&str) -> bool, complaints: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_document(&file.path)) {
        let path = &file.path;
        for (number, line) in prose(&file.text) {
            let mut complain = |what: &str, name: &str| {
                complaints.push(format!("{path}:{number}: {what} that is not there: {name}"));
            };
            for target in links(line) {
                if !exists(&resolve(path, target)) {
                    complain("a link to a file", target);
                }
            }
            if path.starts_with(RECORDS) {
                continue;
            }
            for span in spans(line).filter(|span| is_path(span, files)) {
                let is_there = match span.split_once('*') {
                    Some((begin, _)) => files.iter().any(|file| file.path.starts_with(begin)),
                    None => exists(span),
                };
                if !is_there && !ELSEWHERE.iter().any(|begin| span.starts_with(begin)) {
                    complain("a path", span);
                }
            }
        }
    }
}

fn is_document(path: &str) -> bool {
    ["README.md", "CONTRIBUTING.md"].contains(&path)
        || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// Numbered lines outside of blocks of code.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The code spans of one line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    let mut parts = line.split('`');
    parts.next();
    core::iter::from_fn(move || {
        let span = parts.next()?;
        // The text before the next one; without it the span goes on in the next line.
        parts.next()?;
        Some(span)
    })
}

/// Targets of links within the tree, without what they point to in a file.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        let target = target.split('#').next().unwrap_or_default();
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

/// Whether a span can only be a path of the tree: it begins with one of its directories.
fn is_path(span: &str, files: &[File]) -> bool {
    let is_spelled = span
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-*".contains(c));
    is_spelled
        && span.split_once('/').is_some_and(|(top, _)| {
            !top.is_empty()
                && files.iter().any(|file| {
                    let rest = file.path.strip_prefix(top);
                    rest.is_some_and(|rest| rest.starts_with('/'))
                })
        })
}

/// Where a link of a document leads, from the root.
pub(crate) fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Complaints about a document in a tree of a few files.
    fn complaints(path: &str, text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file("src/lib.rs", ""),
            file("am/src/record.rs", ""),
            file("include/gasnet.h", ""),
            file("docs/adr/0001-a.md", ""),
            file(path, text),
        ];
        let exists = |name: &str| {
            let name = name.trim_end_matches('/');
            let below = format!("{name}/");
            files
                .iter()
                .any(|file| file.path == name || file.path.starts_with(&below))
        };
        let mut complaints = Vec::new();
        check(&files, exists, &mut complaints);
        complaints
    }

    #[test]
    fn a_path_that_is_missing_is_found_with_file_and_line() {
        assert_eq!(
            complaints("docs/a.md", "x\nSee `src/lib.rs` and `am/src/gone.rs`.\n"),
            ["docs/a.md:2: a path that is not there: am/src/gone.rs"]
        );
        assert_eq!(complaints("README.md", "`src/gone/`\n").len(), 1);
        assert_eq!(complaints("CONTRIBUTING.md", "`am/gone_*.rs`\n").len(), 1);
        assert_eq!(complaints("am/README.md", "`src/gone.rs`\n").len(), 0);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_file_and_line() {
        assert_eq!(
            complaints("docs/a.md", "[x](adr/0001-a.md)\n\n[y](gone.md#part)\n"),
            ["docs/a.md:3: a link to a file that is not there: gone.md"]
        );
        assert_eq!(
            complaints("docs/adr/0002-b.md", "[x](../gone.md)\n").len(),
            1
        );
        assert_eq!(
            complaints("docs/adr/0002-b.md", "[x](0001-a.md)\n").len(),
            0
        );
    }

    #[test]
    fn existing_paths_and_other_code_spans_pass() {
        for text in [
            "`src/lib.rs`, `am/src/`, `am/src/rec*.rs`, `include/smp-conduit/smp-MODE.mak`",
            "`other/amudp`, `/dev/shm`, `record.rs`, `a / b`, `src/{a,b}.rs`, `src",
            "[x](../src/lib.rs), [y](#below), [z](https://x.org/src/gone.rs), [w](adr/)",
            "```sh\ncat `src/gone.rs` [x](gone.md)\n```",
        ] {
            assert_eq!(complaints("docs/a.md", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn records_may_name_paths_that_are_gone() {
        assert_eq!(complaints("docs/adr/0002-b.md", "`src/gone.rs`\n").len(), 0);
    }
}
