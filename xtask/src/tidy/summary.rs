//! The first paragraph of rustdoc is its summary, which lists of items show: one sentence.

use super::File;

/// Abbreviations whose last character ends no sentence.
const ABBREVIATIONS: [&str; 5] = ["e.g.", "i.e.", "cf.", "etc.", "vs."];

pub(crate) fn check(file: &File, complaints: &mut Vec<String>) {
    if !file.path.ends_with(".rs") {
        return;
    }
    let mut lines = (1..).zip(file.text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let Some((marker, first)) = doc(line) else {
            continue;
        };
        let mut summary = first.to_owned();
        let mut is_summary = !ends_summary(first);
        while let Some((next, more)) = lines.peek().and_then(|(_, line)| doc(line)) {
            if next != marker {
                break;
            }
            is_summary &= !ends_summary(more);
            if is_summary {
                summary.push(' ');
                summary.push_str(more);
            }
            lines.next();
        }
        if !ends_summary(first) && sentences(&summary) > 1 {
            complaints.push(format!(
                "{}:{number}: a summary is one sentence; what follows is another paragraph",
                file.path
            ));
        }
    }
}

/// Marker and text of a line of rustdoc.
fn doc(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    let found = ["///", "//!"].into_iter().find_map(|marker| {
        let text = line.strip_prefix(marker)?;
        Some((marker, text))
    });
    // Four slashes are a common comment.
    found
        .filter(|(_, text)| text.is_empty() || text.starts_with(' '))
        .map(|(marker, text)| (marker, text.trim()))
}

/// Whether a line is no text of a paragraph.
fn ends_summary(text: &str) -> bool {
    text.is_empty() || text.starts_with(['#', '*', '-', '|', '>']) || text.starts_with("```")
}

/// How many sentences end in a text, but for the last one, whose end may be missing.
fn sentences(text: &str) -> usize {
    let mut is_code = false;
    let mut ends = 0;
    let mut word = String::new();
    let mut ended = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            word.clear();
            continue;
        }
        let begins = word.is_empty();
        if begins && ended {
            let is_start = letter.is_uppercase()
                || letter.is_ascii_digit()
                || ['`', '[', '(', '"', '*', '<'].contains(&letter);
            ends += usize::from(is_start && !is_code);
        }
        is_code ^= letter == '`';
        word.push(letter);
        let bare = word.trim_end_matches([')', '"', '”', '\'', '*', '_', '`']);
        ended = !is_code
            && bare.ends_with(['.', '!', '?'])
            && !ABBREVIATIONS.contains(&bare.trim_start_matches('(').to_lowercase().as_str());
    }
    ends + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        let file = File {
            path: "src/a.rs".to_owned(),
            text: text.to_owned(),
        };
        let mut complaints = Vec::new();
        check(&file, &mut complaints);
        complaints.len()
    }

    #[test]
    fn a_summary_is_one_sentence() {
        assert_eq!(complaints("/// Puts. It blocks.\nfn f() {}\n"), 1);
        assert_eq!(complaints("/// Puts.\n///\n/// It blocks. It ends.\n"), 0);
        assert_eq!(
            complaints("    //! Puts and\n    //! waits. [`It`] is\n"),
            1
        );
        assert_eq!(complaints("/// Puts.\n/// * One. Two.\n"), 0);
        assert_eq!(complaints("/// # Errors. Or not.\n"), 0);
        // The first paragraph of the next comment is another one.
        assert_eq!(complaints("//! Puts.\n/// Gets.\n"), 0);
    }

    #[test]
    fn what_is_no_end_of_a_sentence_does_not_count() {
        for text in [
            "/// Of `a. B` and `c.`. ",
            "/// As 1.5 does, e.g. Rank 0 and U1.",
            "// Puts. It blocks.",
            "//// Puts. It blocks.",
            "/// Nothing (see f.g) follows.",
        ] {
            assert_eq!(complaints(text), 0, "{text}");
        }
        assert_eq!(complaints("/// Puts (it waits.) It ends"), 1);
        assert_eq!(complaints("/// Is `x`. `Y` is not."), 1);
    }
}
