//! Names of tests: which there are, and which a text names.

use crate::tidy::File;
use std::collections::BTreeSet;

/// The names of all tests: functions with the attribute, entries of lists of tests, and cases of
/// the conformance suite.
pub(super) fn of_tests(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        if file.path.ends_with(".rs") && !file.path.starts_with("xtask/") {
            in_file(file, &mut names);
        }
    }
    names
}

fn in_file(file: &File, names: &mut BTreeSet<String>) {
    let (mut is_marked, mut in_list) = (false, false);
    for line in file.text.lines().map(str::trim) {
        let function = function(line);
        if let Some(name) = function
            && (is_marked || line.contains("<R: Rig>(rig: &R)"))
        {
            names.insert(name.to_owned());
        }
        let (entry, begins) = match line.split_once("[Test] = &[") {
            Some((_, entry)) => (entry, true),
            None => (line, false),
        };
        if (in_list || begins)
            && let Some(name) = quoted(entry)
        {
            names.insert(name.to_owned());
        }
        let stays = line.starts_with("#[") || line.starts_with("//");
        is_marked = line == "#[test]" || (is_marked && stays);
        in_list = (in_list || begins) && !line.ends_with("];");
    }
}

/// The name of the function that begins in a line.
fn function(line: &str) -> Option<&str> {
    let end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    line.strip_prefix("fn ")?.split(end).next()
}

/// The name that an entry of a list begins with.
fn quoted(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('(').unwrap_or(line).strip_prefix('"')?;
    rest.split_once('"').map(|(name, _)| name)
}

/// The quoted words of a text, as in `this`.
pub(super) fn in_text(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, text: &str) -> Vec<String> {
        let (path, text) = (path.to_owned(), text.to_owned());
        of_tests(&[File { path, text }]).into_iter().collect()
    }

    #[test]
    fn functions_with_the_attribute_are_tests() {
        let text = "#[test]\nfn one() {}\n\
                    fn helper() {}\n\
                    #[test]\n/// What it shows.\n#[cfg(unix)]\n    fn two<T>() {}\n\
                    #[test]\nlet x = 1;\nfn other() {}\n\
                    #[cfg(test)]\nfn third() {}\n";
        assert_eq!(names("am/src/a.rs", text), ["one", "two"]);
        assert!(names("xtask/src/a.rs", text).is_empty());
        assert!(names("docs/a.md", text).is_empty());
    }

    #[test]
    fn entries_of_lists_and_cases_are_tests() {
        let text = "pub(crate) const TESTS: &[Test] = &[\n\
                    (\"short\", || each(&[1], \"program\")),\n\
                    (\n\"long\",\nlive,\n),\n\
                    ];\n\
                    pub(crate) const PROGRAMS: &[Program] = &[(\"program\", run)];\n\
                    (\"other\", 1)\n\
                    const OVER_HOSTS: &[Test] = &[(\"hosts\", over)];\n\
                    (\"another\", 1)\n";
        assert_eq!(names("tests/jobs/a.rs", text), ["hosts", "long", "short"]);
        let case = "fn share<R: Rig>(rig: &R) {\nfn bench<R: Rig>(of: &R) {\n";
        assert_eq!(names("conformance/src/cases/a.rs", case), ["share"]);
    }

    #[test]
    fn quoted_words_of_a_text_are_names() {
        let of = |text| in_text(text).collect::<Vec<_>>();
        assert_eq!(
            of("some (`this_one`); `that`, and more"),
            ["this_one", "that"]
        );
        assert!(of("none").is_empty());
    }
}
