//! Marks in comments: `spec P10` beside the code or the test of an item.

use crate::tidy::File;

/// Where an item is marked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Mark {
    pub(super) id: String,
    pub(super) in_test: bool,
    /// The file, and for a test its name.
    pub(super) place: String,
}

/// Lines after a mark in which the test that it belongs to begins.
const REACH: usize = 12;

/// All marks of a source file.
pub(super) fn of(file: &File) -> Vec<Mark> {
    let mut marks = Vec::new();
    let tests_from = file.tests_from();
    let lines: Vec<&str> = file.text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(comment) = comment_of(line) else {
            continue;
        };
        let next = lines.get(number + 1).copied();
        let in_test = tests_from.is_some_and(|from| number >= from);
        for id in ids(&with_the_rest(comment, next)) {
            let place = match test_after(&lines, number) {
                Some(name) if in_test => format!("{}: `{name}`", file.path),
                _ => file.path.clone(),
            };
            marks.push(Mark { id, in_test, place });
        }
    }
    marks.sort();
    marks.dedup();
    marks
}

/// The text behind the slashes of a line.
fn comment_of(line: &str) -> Option<&str> {
    line.split_once("//").map(|(_, comment)| comment)
}

/// A comment, with the beginning of the next line where a mark is split over both: the word ends
/// the one, the item begins the other.
fn with_the_rest(comment: &str, next: Option<&str>) -> String {
    let begun = comment.trim_end();
    let before = begun.strip_suffix("spec");
    let is_split = before.is_some_and(|before| !before.ends_with(char::is_alphanumeric));
    let next = next
        .map(str::trim_start)
        .filter(|line| line.starts_with("//"));
    match next.and_then(comment_of) {
        Some(rest) if is_split => {
            let rest = rest.trim_start_matches(['/', '!', ' ']);
            let id = rest.split(' ').next().unwrap_or_default();
            format!("{begun} {id}")
        }
        _ => comment.to_owned(),
    }
}

/// The items that a comment names: a letter of a protocol and a number after the word.
fn ids(comment: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in comment.match_indices("spec ") {
        let id: String = comment[at + word.len()..]
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        let number = id.strip_prefix(['P', 'U', 'G', 'B', 'T']);
        if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            found.push(id);
        }
    }
    found
}

/// The name of the test that a comment stands before, or in a list of tests the quoted name.
fn test_after<'a>(lines: &[&'a str], number: usize) -> Option<&'a str> {
    let near = lines.iter().skip(number + 1).take(REACH);
    near.map(|line| line.trim()).find_map(|line| {
        let name = |rest: &'a str, end: char| rest.split_once(end).map(|(name, _)| name);
        match line.strip_prefix("fn ") {
            Some(rest) => name(rest, '(').and_then(|name| name.split('<').next()),
            None => name(
                line.strip_prefix('(').unwrap_or(line).strip_prefix('"')?,
                '"',
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(path: &str, text: &str) -> Vec<(String, bool, String)> {
        let (path, text) = (path.to_owned(), text.to_owned());
        let marks = of(&File { path, text });
        marks
            .into_iter()
            .map(|m| (m.id, m.in_test, m.place))
            .collect()
    }

    #[test]
    fn marks_are_found_in_comments_only() {
        let text = "//! Handles (spec P3), spec U12.\nlet x = \"spec G1\"; // speced P4, spec Q1, spec P\n";
        let found = marks("am/src/a.rs", text);
        let place = || "am/src/a.rs".to_owned();
        assert_eq!(
            found,
            [
                ("P3".to_owned(), false, place()),
                ("U12".to_owned(), false, place())
            ]
        );
    }

    #[test]
    fn marks_split_over_two_lines_are_found() {
        for (first, second) in [
            ("    // Its reply has room; see there (spec", "    // P6)."),
            ("/// As spec", "/// P6 says."),
            ("//! spec ", "//!   P6"),
            ("let x = 1; // spec", "// P6"),
        ] {
            let found = marks("am/src/a.rs", &format!("{first}\n{second}\nfn f() {{}}\n"));
            let due = ("P6".to_owned(), false, "am/src/a.rs".to_owned());
            assert_eq!(found, [due], "{first}");
        }
        // Another word, code that is no comment, and a line between.
        for text in [
            "// inspec\n// P6\n",
            "// spec\nlet p = P6;\n",
            "// spec\n\"P6\"; // P6\n",
            "// spec\n\n// P6\n",
            "// spec",
        ] {
            assert_eq!(marks("am/src/a.rs", text), [], "{text}");
        }
        // The test after it has its name.
        let text = "    /// That it works (spec\n    /// B2).\n    #[test]\n    fn works() {}\n";
        let found = marks("am/tests/a.rs", text);
        let place = "am/tests/a.rs: `works`".to_owned();
        assert_eq!(found, [("B2".to_owned(), true, place)]);
    }

    #[test]
    fn a_mark_in_a_test_has_its_name() {
        let text = "#[cfg(test)]\nmod tests {\n    /// That it works (spec B2).\n    #[test]\n    fn works() {}\n}\n";
        let found = marks("am/src/a.rs", text);
        assert_eq!(
            found,
            [("B2".to_owned(), true, "am/src/a.rs: `works`".to_owned())]
        );
        let listed = "    // spec T1\n    (\"connects\", || {\n";
        let found = marks("tests/jobs/a.rs", listed);
        assert_eq!(
            found,
            [(
                "T1".to_owned(),
                true,
                "tests/jobs/a.rs: `connects`".to_owned()
            )]
        );
    }
}
