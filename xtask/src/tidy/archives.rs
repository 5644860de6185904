//! Archives of crates have what their build reads, and what its users look for.

use super::File;
use crate::command::cargo;
use std::collections::BTreeSet;

/// Texts that name a file for the compiler, up to the quote before its name.
const READS: [&str; 4] = [
    "include_str!(\"",
    "include_bytes!(\"",
    "include!(\"",
    "#[path = \"",
];

/// Files of every archive.
const ALL_HAVE: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Crates whose archive has a directory of the tree under another name: the crate's directory, the
/// directory, and its name in the archive.
const LINKED: [(&str, &str, &str); 1] = [("capi/", "include/", "headers/")];

/// A crate for registries: its name and its directory, which ends with a slash, or is empty.
pub(crate) struct Published<'a> {
    pub(crate) name: &'a str,
    pub(crate) directory: &'a str,
}

/// The crates that may be published.
pub(crate) fn crates(files: &[File]) -> Vec<Published<'_>> {
    let manifests = files.iter().filter_map(|file| {
        let directory = file.path.strip_suffix("Cargo.toml")?;
        let package = file.text.split("[package]\n").nth(1)?;
        let package = package.split("\n[").next()?;
        let line = |start: &str| package.lines().find_map(|line| line.strip_prefix(start));
        let name = line("name = ")?.trim_matches('"');
        (line("publish = ") != Some("false")).then_some(Published { name, directory })
    });
    manifests.collect()
}

pub(crate) fn check(files: &[File], complaints: &mut Vec<String>) {
    for one in crates(files) {
        match archived(one.name) {
            Ok(archived) => compare(&one, &archived, files, complaints),
            Err(error) => complaints.push(format!("cargo package of {}: {error}", one.name)),
        }
    }
}

/// The files of a crate's archive.
fn archived(name: &str) -> Result<BTreeSet<String>, String> {
    let mut command = cargo(&["package", "--list", "--offline", "--allow-dirty"]);
    let output = command.args(["--package", name]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

fn compare(
    one: &Published<'_>,
    archived: &BTreeSet<String>,
    files: &[File],
    complaints: &mut Vec<String>,
) {
    let name = one.name;
    let mut want = |file: String, why: &str| {
        if !archived.contains(&file) {
            complaints.push(format!("the archive of {name} lacks {file}, {why}"));
        }
    };
    for file in ALL_HAVE {
        want(file.to_owned(), "which every archive has");
    }
    for (directory, of_tree, here) in LINKED {
        let names = files.iter().map(|file| file.path.as_str());
        for file in names.filter_map(|path| path.strip_prefix(of_tree)) {
            if directory == one.directory {
                want(format!("{here}{file}"), "a file of the tree");
            }
        }
    }
    for file in files {
        let own = file.path.strip_prefix(one.directory);
        let Some(own) = own.filter(|own| archived.contains(*own) && is_built(own)) else {
            continue;
        };
        for read in reads(&file.text) {
            want(resolved(own, read), &format!("which {own} reads"));
        }
    }
}

/// Whether a user's build compiles a file of an archive.
fn is_built(path: &str) -> bool {
    path.ends_with(".rs") && (path.starts_with("src/") || path == "build.rs")
}

/// The names of files that a text of Rust reads when it is compiled.
fn reads(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for begin in READS {
        let after = text.split(begin).skip(1);
        found.extend(after.filter_map(|rest| rest.split('"').next()));
    }
    found
}

/// A name relative to the directory of a file, from the root of its crate; names outside of that
/// begin with `..`.
fn resolved(file: &str, name: &str) -> String {
    let mut words: Vec<&str> = file.split('/').collect();
    words.pop();
    for word in name.split('/') {
        match word {
            "." => {}
            ".." if words.last().is_some_and(|last| *last != "..") => {
                words.pop();
            }
            _ => words.push(word),
        }
    }
    words.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        let (path, text) = (path.to_owned(), text.to_owned());
        File { path, text }
    }

    #[test]
    fn what_a_build_reads_and_its_archive_lacks_is_found() {
        let files = [
            file(
                "a/Cargo.toml",
                "[package]\nname = \"a\"\n\n[dependencies]\n",
            ),
            file("b/Cargo.toml", "[package]\nname = \"b\"\npublish = false\n"),
            file(
                "a/src/lib.rs",
                "const A: &str = include_str!(\"../table\");\n",
            ),
            file(
                "a/src/x/mod.rs",
                "#[path = \"../../../other/y.rs\"]\nmod y;\n",
            ),
            file("a/tests/t.rs", "include_bytes!(\"../../../input\");\n"),
        ];
        let published = crates(&files);
        assert_eq!(published.len(), 1);
        let a = &published[0];
        assert_eq!((a.name, a.directory), ("a", "a/"));
        let mut list: BTreeSet<String> = ALL_HAVE.map(str::to_owned).into();
        list.extend(["src/lib.rs", "src/x/mod.rs", "tests/t.rs"].map(str::to_owned));
        let mut complaints = Vec::new();
        compare(a, &list, &files, &mut complaints);
        assert_eq!(
            complaints,
            [
                "the archive of a lacks table, which src/lib.rs reads",
                "the archive of a lacks ../other/y.rs, which src/x/mod.rs reads",
            ]
        );
        list.remove("README.md");
        list.extend(["table", "../other/y.rs"].map(str::to_owned));
        complaints.clear();
        compare(a, &list, &files, &mut complaints);
        assert_eq!(
            complaints,
            ["the archive of a lacks README.md, which every archive has"]
        );
    }

    #[test]
    fn an_archive_without_a_linked_directory_is_found() {
        let files = [file("include/x.h", "")];
        let capi = Published {
            name: "argonet-capi",
            directory: "capi/",
        };
        let mut list: BTreeSet<String> = ALL_HAVE.map(str::to_owned).into();
        let mut complaints = Vec::new();
        compare(&capi, &list, &files, &mut complaints);
        assert_eq!(
            complaints,
            ["the archive of argonet-capi lacks headers/x.h, a file of the tree"]
        );
        list.insert("headers/x.h".to_owned());
        complaints.clear();
        compare(&capi, &list, &files, &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
