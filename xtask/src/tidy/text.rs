//! Rules for comments and pages: how wide lines are, and which words they do without.

use super::File;

/// Columns of a line of a comment or a page.
const COLUMNS: usize = 100;

/// Lines of a chapter of the book: two screens, as a tall window shows them.
const CHAPTER: usize = 132;

/// Where the chapters are.
const BOOK: &str = "docs/book/src/";

/// Words of comments and pages that docs/GLOSSARY.md replaces, outside of code spans.
const REPLACED: [&str; 17] = [
    "tell",
    "tells",
    "told",
    "telling",
    "whoever",
    "whomever",
    "somebody",
    "anybody",
    "nobody",
    "linger",
    "lingers",
    "neighbour",
    "neighbours",
    "behaviour",
    "colour",
    "initialise",
    "serialise",
];

/// Those that names and strings in Rust do without, too.
const REPLACED_IN_CODE: &[&str] = REPLACED.split_at(9).0;

/// The file that lists them.
const LIST: &str = "xtask/src/tidy/text.rs";

/// Pages that have them: the list of replaced words, and old names.
const WITH_OLD_WORDS: [&str; 2] = ["docs/GLOSSARY.md", "CHANGELOG.md"];

/// Pages that a command writes.
const WRITTEN: [&str; 2] = ["docs/spec-items.md", "docs/test-results.md"];

pub(crate) fn check(file: &File, complaints: &mut Vec<String>) {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| file.path.ends_with(end));
    let (is_page, is_c) = (ends_with(&[".md"]), ends_with(&[".c", ".h"]));
    if WRITTEN.contains(&file.path.as_str()) || !(is_page || is_c || ends_with(&[".rs"])) {
        return;
    }
    let lines = file.text.lines().count();
    if file.path.starts_with(BOOK) && lines > CHAPTER {
        let path = &file.path;
        complaints.push(format!("{path}: {lines} lines, at most {CHAPTER}"));
    }
    let (mut is_code, mut is_open) = (false, false);
    for (number, line) in (1..).zip(file.text.lines()) {
        let text = match (is_page, is_c) {
            (true, _) => Some(line),
            (_, true) => comment_in_c(line, &mut is_open),
            _ => comment(line),
        };
        let Some(text) = text.map(str::trim) else {
            // The next comment is another one.
            is_code = false;
            for word in replaced_in_code(line).filter(|_| file.path != LIST) {
                let path = &file.path;
                complaints.push(format!("{path}:{number}: {word}: see docs/GLOSSARY.md"));
            }
            continue;
        };
        if text.starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && !WITH_OLD_WORDS.contains(&file.path.as_str()) {
            for word in replaced(text) {
                let path = &file.path;
                complaints.push(format!("{path}:{number}: {word}: see docs/GLOSSARY.md"));
            }
        }
        let columns = line.chars().count();
        if columns > COLUMNS && !is_code && !is_one_line(text) {
            let path = &file.path;
            complaints.push(format!(
                "{path}:{number}: {columns} columns, at most {COLUMNS}"
            ));
        }
    }
}

/// The replaced words of a line.
///
/// Text in backticks is code.
fn replaced(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split('`').step_by(2);
    let words = prose.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| REPLACED.iter().any(|old| old.eq_ignore_ascii_case(word)))
}

/// The replaced words of a line of code: parts of names, and words of strings.
fn replaced_in_code(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| {
        REPLACED_IN_CODE
            .iter()
            .any(|old| old.eq_ignore_ascii_case(word))
    })
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let markers = ["///", "//!", "//"];
    markers.iter().find_map(|marker| line.strip_prefix(marker))
}

/// The same in C, where a comment may have begun in a line before.
///
/// `is_open` says so, and is set for the line behind this one.
fn comment_in_c<'a>(line: &'a str, is_open: &mut bool) -> Option<&'a str> {
    let line = line.trim();
    if !*is_open && !line.starts_with("/*") {
        return line.strip_prefix("//");
    }
    *is_open = !line.contains("*/");
    // What stands behind its end is code.
    (*is_open || line.ends_with("*/")).then_some(line.trim_matches(['/', '*']))
}

/// Rows of tables, headings, the targets of links, and text without a space cannot be wrapped.
fn is_one_line(text: &str) -> bool {
    let is_target = text.starts_with('[') && text.contains("]: ");
    text.starts_with(['|', '#']) || is_target || !text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut complaints = Vec::new();
        check(&file, &mut complaints);
        complaints.len()
    }

    #[test]
    fn lines_are_at_most_100_columns_wide() {
        let (just, wide) = ("a ".repeat(48), "a ".repeat(60));
        assert_eq!(complaints("src/a.rs", &format!("    // {just}\n")), 1);
        assert_eq!(complaints("src/a.rs", &format!("/// {just}\n")), 0);
        assert_eq!(
            complaints("src/a.rs", &format!("let a = 1; // {wide}\n")),
            0
        );
        assert_eq!(complaints("docs/a.md", &wide), 1);
        assert_eq!(complaints("docs/spec-items.md", &wide), 0);
        let columns = "é".repeat(50) + " " + &"é".repeat(49);
        assert_eq!(complaints("docs/a.md", &columns), 0);
    }

    #[test]
    fn a_chapter_fits_two_screens() {
        let (just, more) = ("a\n".repeat(CHAPTER), "a\n".repeat(CHAPTER + 1));
        assert_eq!(complaints("docs/book/src/a.md", &just), 0);
        assert_eq!(complaints("docs/book/src/a.md", &more), 1);
        assert_eq!(complaints("docs/a.md", &more), 0);
    }

    #[test]
    fn comments_of_c_have_the_same_rules() {
        let wide = "a ".repeat(60);
        for text in [
            format!("/* {wide}*/\n"),
            format!("int a;\n    // {wide}\n"),
            format!("/* a\n * {wide}*/\n"),
            format!("/* a\n   {wide}\n */\n"),
            format!("/*\n * {wide}\n */\nint a;\n"),
        ] {
            assert_eq!(complaints("include/a.h", &text), 1, "{text}");
        }
        for text in [
            format!("int a; /* {wide}*/\n"),
            format!("/* a */\nint a; {wide}\n"),
            format!("/* a\n * b */\nint a; {wide}\n"),
        ] {
            assert_eq!(complaints("tests/c/a.c", &text), 0, "{text}");
        }
        let word = concat!("to", "ld");
        assert_eq!(complaints("a.c", &format!("/* It is\n * {word}. */\n")), 1);
        assert_eq!(complaints("a.c", &format!("int {word};\n")), 1);
    }

    #[test]
    fn replaced_words_are_found_in_prose() {
        let word = concat!("to", "ld");
        assert_eq!(complaints("src/a.rs", &format!("// It is {word}.\n")), 1);
        assert_eq!(
            complaints("docs/a.md", &format!("`{word}` and a{word}\n")),
            0
        );
        assert_eq!(complaints("docs/a.md", &format!("```\n{word}\n```\n")), 0);
        for code in ["let {} = 1;", "let x_{} = 1;", "f(\"It is {}.\");"] {
            let code = code.replace("{}", word);
            assert_eq!(complaints("src/a.rs", &code), 1, "{code}");
        }
        assert_eq!(complaints("src/a.rs", &format!("let a{word} = 1;\n")), 0);
        assert_eq!(complaints("CHANGELOG.md", word), 0);
    }

    #[test]
    fn lines_that_cannot_be_wrapped_may_be_wider() {
        let wide = "a ".repeat(60);
        assert_eq!(complaints("docs/a.md", &format!("```\n{wide}\n```\n")), 0);
        assert_eq!(
            complaints("docs/a.md", &format!("```\na\n```\n{wide}\n")),
            1
        );
        assert_eq!(complaints("src/a.rs", &format!("//! | {wide} |\n")), 0);
        assert_eq!(complaints("docs/a.md", &format!("## {wide}\n")), 0);
        // A fence that a comment leaves open ends with the comment.
        assert_eq!(
            complaints("src/a.rs", &format!("/// ```\nfn f() {{}}\n// {wide}\n")),
            1
        );
    }
}
