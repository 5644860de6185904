//! Texts as the readers of installed files want them.

/// Characters that may be in the path of an installation beside letters and digits.
///
/// All others mean something to the shell, make, pkg-config, CMake or the dynamic loader, each of
/// which takes it from the same words.
const PLAIN: &str = "/-_.+@%=~";

/// The first character that not all readers of an installed path can take.
pub(super) fn unspeakable(path: &str) -> Option<char> {
    path.chars()
        .find(|&c| !c.is_alphanumeric() && c != ' ' && !PLAIN.contains(c))
}

/// A word for the shell, which make and pkg-config pass on as it is.
///
/// With backslashes rather than quotes, so that it stays one word when a script puts the whole
/// value between quotes and has a shell read it again.
pub(super) fn shell(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        if !c.is_alphanumeric() && !"/-_.,:=+@%~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Several words for the shell.
pub(super) fn shell_all<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(shell).collect();
    words.join(" ")
}

/// For the right side of sed's `s` with `|` between, within single quotes of the shell.
pub(super) fn replacement(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '|' | '&' => out.extend(['\\', c]),
            '\'' => out.push_str("'\\''"),
            c => out.push(c),
        }
    }
    out
}

/// For C, with its quotes.
pub(super) fn c_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // No trigraphs.
            '?' => out.push_str("\\?"),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_alone_are_escaped() {
        assert_eq!(shell("-L/usr/local/lib"), "-L/usr/local/lib");
        assert_eq!(shell("-L/a b/lib"), "-L/a\\ b/lib");
        assert_eq!(shell("it's"), "it\\'s");
        assert_eq!(shell_all(["gcc", "-DX=a b"]), "gcc -DX=a\\ b");
        assert_eq!(replacement("a|b&c\\d'e"), "a\\|b\\&c\\\\d'\\''e");
        assert_eq!(c_string("a\\b\"c?"), "\"a\\\\b\\\"c\\?\"");
    }

    #[test]
    fn paths_with_special_characters_are_found() {
        assert_eq!(unspeakable("/opt/argonet-1.0+x/a b/é@2%=~"), None);
        for bad in "'\"$#\\:,;`*?[](){}<>|&!^\n\t".chars() {
            assert_eq!(unspeakable(&format!("/a{bad}b")), Some(bad));
        }
    }
}
