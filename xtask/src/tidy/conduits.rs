//! Conduits: each has all its parts, and no file of another part of the tree names one.
//!
//! A new conduit has files of its name and a place in the lists; no other code changes.

use super::File;
use argonet_settings::{CONDUITS, ConduitRow};

/// Where the table of conduits stands, as their rows say.
const PAGE: &str = "README.md";

/// The headers that know the names by which C programs are linked.
const HEADER: &str = "include/argonet/config.h";

/// Files and directories that name conduits though they are not of that name, each with its reason.
const NAMING: &[(&str, &str)] = &[
    ("settings/src/conduits/mod.rs", "the list of rows"),
    ("conduit/src/lib.rs", "the modules of this crate"),
    ("conduit/src/descriptor.rs", "the list of descriptors"),
    (
        "start/src/networks/mod.rs",
        "the list of those that a rank opens",
    ),
    (
        "conduit/src/selector/",
        "joins shared memory with another conduit",
    ),
    ("start/src/join.rs", "neighbors of every job share memory"),
    (
        "start/src/plan.rs",
        "so it counts the memory of their rings",
    ),
    (
        "start/src/networks/addresses.rs",
        "chosen by the settings of connections, for datagrams, too",
    ),
    ("conduit/src/usnic/descriptor.rs", "the same"),
    ("nic/src/lib.rs", "the module of an interface with its name"),
    ("nic/src/rdm.rs", "the names of libfabric's providers"),
    (
        "cli/src/doctor/",
        "asks whether connections between hosts would work",
    ),
    (
        "cli/src/perf/engines.rs",
        "engines of both thread modes over shared memory alone",
    ),
    ("cli/src/perf/modes.rs", "the same"),
    ("cli/src/perf/threads.rs", "the same"),
    ("cli/src/perf/mesh.rs", "counts files that are connections"),
    (
        "xtask/src/asan.rs",
        "checks the unsafe code of shared memory",
    ),
    (
        "xtask/src/counts_c.rs",
        "the rows that are counted over each",
    ),
    (
        "xtask/src/numbers/release.rs",
        "conduits of GASNet's releases",
    ),
];

/// Programs and crates that are there for tests and measurements.
const TESTS: [&str; 4] = ["benches/", "conformance/", "fuzz/", "sim/"];

pub(crate) fn check(files: &[File], exists: impl Fn(&str) -> bool, complaints: &mut Vec<String>) {
    let text_of = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.map_or("", |file| file.text.as_str())
    };
    let wanted: Vec<String> = CONDUITS.iter().map(|row| line(row)).collect();
    if !text_of(PAGE).contains(&wanted.concat()) {
        complaints.push(format!(
            "{PAGE}: its table of conduits is not that of settings/src/conduits:\n{}",
            wanted.concat()
        ));
    }
    for row in CONDUITS {
        for part in parts(row) {
            if !exists(&part) {
                complaints.push(format!("{part}: the conduit {} has no such file", row.name));
            }
        }
        for link in row.links {
            let define = format!("#define GASNET_CONDUIT_{} 1\n", link.name.to_uppercase());
            if !text_of(HEADER).contains(&define) {
                complaints.push(format!("{HEADER}: has no {}", define.trim_end()));
            }
        }
    }
    let mut needed = vec![false; NAMING.len()];
    for file in files.iter().filter(|file| is_product(file)) {
        for (number, name) in named(file) {
            let may = NAMING
                .iter()
                .position(|(path, _)| file.path.starts_with(path));
            match may {
                Some(at) => needed[at] = true,
                None => complaints.push(format!(
                    "{}:{number}: names the conduit {name} (xtask/src/tidy/conduits.rs)",
                    file.path
                )),
            }
        }
    }
    for ((path, _), _) in NAMING.iter().zip(&needed).filter(|(_, needed)| !**needed) {
        complaints.push(format!("{path}: may name conduits and names none"));
    }
}

/// Its line of the table.
fn line(row: &ConduitRow) -> String {
    let page = row.page.map(|page| format!(" ([details]({page}))"));
    let page = page.unwrap_or_default();
    format!("| `{}` | {}{page} |\n", row.name, row.about)
}

/// Files that every conduit has.
fn parts(row: &ConduitRow) -> Vec<String> {
    let name = row.name;
    let mut parts = vec![
        format!("conduit/src/{name}/descriptor.rs"),
        format!("conformance/tests/{name}.rs"),
        format!("conformance/tests/rigs/{name}.rs"),
    ];
    let page = |name: &str| format!("docs/man/gasnetrun_{name}.1");
    parts.extend(row.links.iter().map(|link| page(link.name)));
    parts
}

fn is_product(file: &File) -> bool {
    file.path.ends_with(".rs")
        && !file.is_test()
        && !TESTS.iter().any(|begin| file.path.starts_with(begin))
}

/// Lines of a file that name a conduit other than the one whose name the file or one of its
/// directories has.
fn named(file: &File) -> Vec<(usize, &'static str)> {
    let own = |name: &str| {
        let path = file.path.trim_end_matches(".rs");
        path.split('/').any(|part| part == name)
    };
    let others: Vec<_> = CONDUITS.iter().filter(|row| !own(row.name)).collect();
    let words = words(product(&file.text)).into_iter();
    words
        .filter_map(|(number, word)| {
            let word = word.to_lowercase();
            let word = word.trim_end_matches("_row");
            let row = others.iter().find(|row| row.name == word)?;
            Some((number, row.name))
        })
        .collect()
}

/// A file's text without its tests, which stand at its end.
fn product(text: &str) -> &str {
    let mut at = 0;
    let mut is_test = false;
    for line in text.split_inclusive('\n') {
        if is_test && line.starts_with("mod ") && line.trim_end().ends_with('{') {
            return &text[..at];
        }
        is_test = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
        at += line.len();
    }
    text
}

/// The identifiers of Rust code, and the strings in it, with the numbers of the lines on which they
/// begin.
///
/// Comments have none.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut rest, mut number) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            'r' if rest.starts_with("r#\"") => rest.find("\"#").map_or(rest.len(), |at| at + 2),
            '"' => string(rest),
            _ if is_word(first) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            // A quote in quotes begins no string.
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\\"'") => 4,
            _ => first.len_utf8(),
        };
        let word = &rest[..len];
        found.push((number, word.trim_matches('"')));
        number += word.matches('\n').count();
        rest = &rest[len..];
    }
    found
}

/// Bytes of the string that code begins with.
fn string(code: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    code.len()
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let (path, text) = (path.to_owned(), text.to_owned());
        named(&File { path, text })
    }

    #[test]
    fn names_in_code_and_whole_strings_are_found() {
        let path = "engine/src/core.rs";
        assert_eq!(names(path, "x;\nuse a::tcp::Socket;\n"), [(2, "tcp")]);
        assert_eq!(names(path, "let a = Smp::NAME;\n"), [(1, "smp")]);
        assert_eq!(names(path, "f(\"x\", \"usnic\");\n"), [(1, "usnic")]);
        assert_eq!(names(path, "f('\"', &PORTALS_ROW);\n"), [(1, "portals")]);
        let both = [(1, "tcp"), (1, "smp")];
        assert_eq!(names(path, "if c == \"tcp\" { Smp }\n"), both);
    }

    #[test]
    fn comments_longer_words_texts_and_tests_name_none() {
        for text in [
            "// over tcp\n",
            "f(); // tcp\n",
            "let tcp_progress = TCP_PROGRESS;\n",
            "say(\"over tcp, \\\"tcp\\\" or smp\");\n",
            "say(\"lines\n of tcp\");\nsay(r#\"a \"tcp\" b\"#);\n",
            "TcpStream::connect(\"portals4\");\n",
            "f();\n#[cfg(test)]\nmod tests {\n    use tcp;\n}\n",
        ] {
            assert_eq!(names("engine/src/core.rs", text), [], "{text}");
        }
        let below = "#[cfg(test)]\nmod tests;\nuse tcp;\n";
        assert_eq!(names("engine/src/core.rs", below), [(3, "tcp")]);
    }

    #[test]
    fn files_of_a_conduit_name_it_and_no_other() {
        for path in ["conduit/src/tcp/mod.rs", "settings/src/conduits/tcp.rs"] {
            assert_eq!(names(path, "tcp + smp\n"), [(1, "smp")], "{path}");
        }
    }
}
