//! Texts as the readers of installed files want them.

/// For the shell, and for pkg-config: quoted where that is needed.
pub(super) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.,:=+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The value of a variable, for make and pkg-config.
pub(super) fn variable(text: &str) -> String {
    text.replace('$', "$$").replace('#', "\\#")
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
    fn only_what_needs_quotes_has_them() {
        assert_eq!(shell("-L/usr/local/lib"), "-L/usr/local/lib");
        assert_eq!(shell("-L/a b/lib"), "'-L/a b/lib'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(variable("'/a$b#c'"), "'/a$$b\\#c'");
        assert_eq!(c_string("a\\b\"c?"), "\"a\\\\b\\\"c\\?\"");
    }
}
