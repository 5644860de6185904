//! A row with an effect is read: somewhere in the sources its constant is asked for.

use std::path::{Path, PathBuf};

use argonet_settings::typed_constants;

/// Code that is not of the library: the table itself, tests, build output.
const ELSEWHERE: [&str; 6] = ["settings", "tests", "benches", "examples", "xtask", "docs"];

/// The code of all source files below `directory`, without comments, unit tests and blanks.
fn code(directory: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path: PathBuf = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            let skipped = ELSEWHERE.contains(&name.as_str()) || name.starts_with("target");
            if !skipped && !name.starts_with('.') {
                code(&path, out);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or_default());
            out.push(
                lines
                    .flat_map(str::chars)
                    .filter(|c| !c.is_whitespace())
                    .collect(),
            );
        }
    }
}

/// Whether a piece of code without blanks asks for `constant`, with or without a path before it.
fn asks(code: &str, constant: &str) -> bool {
    code.match_indices(constant).any(|(at, _)| {
        let after = code[at + constant.len()..].chars().next();
        let mut before = &code[..at];
        while let Some(path) = before.strip_suffix("::") {
            before = path.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
        let reads = before.ends_with(".get(&") || before.ends_with(".get_or(&");
        reads && after.is_some_and(|c| c == ')' || c == ',')
    })
}

#[test]
fn every_row_with_an_effect_is_read() {
    let mut sources = Vec::new();
    code(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut sources,
    );
    assert!(sources.len() > 50, "only {} sources", sources.len());
    for constant in typed_constants() {
        let name = constant.constant;
        let read = sources.iter().any(|code| asks(code, name));
        assert!(
            read,
            "{} is said to have an effect, and no code reads {name}",
            constant.row.name
        );
    }
}

#[test]
fn reading_is_recognized() {
    for (code, constant, read) in [
        ("settings.get(&WAIT)", "WAIT", true),
        ("self.settings.get(&argonet_settings::WAIT)", "WAIT", true),
        ("settings.get_or(&EXIT_TIMEOUT,x)", "EXIT_TIMEOUT", true),
        ("settings.get(&EXIT_TIMEOUT_MAX)", "EXIT_TIMEOUT", false),
        ("settings.given(&WAIT)", "WAIT", false),
        ("useargonet_settings::WAIT;", "WAIT", false),
    ] {
        assert_eq!(asks(code, constant), read, "{code}");
    }
}
