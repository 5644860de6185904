//! Which errors each call of the trait of matching interfaces has, as its text says.

use std::collections::{BTreeMap, BTreeSet};

/// The trait.
const TEXT: &str = include_str!("../../src/portals/interface.rs");

/// Names of errors by the names of calls.
pub(crate) type Errors = BTreeMap<String, BTreeSet<String>>;

/// All calls that can fail, with their errors.
pub(crate) fn documented() -> Errors {
    let mut all = Errors::new();
    // Calls whose text refers to that of another.
    let mut as_others: Vec<(String, String)> = Vec::new();
    let mut errors: Option<String> = None;
    for line in TEXT.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            match text.trim() {
                "# Errors" => errors = Some(String::new()),
                "# Safety" => {}
                text => {
                    if let Some(errors) = &mut errors {
                        errors.push_str(text);
                        errors.push(' ');
                    }
                }
            }
            continue;
        }
        let words = line.strip_prefix("unsafe ").unwrap_or(line);
        let Some(name) = words.strip_prefix("fn ") else {
            continue;
        };
        let name = name.split('(').next().unwrap_or_default().to_owned();
        let Some(text) = errors.take() else {
            continue;
        };
        let named = after(&text, "NicError::");
        let others = after(&text, "As [`");
        as_others.extend(others.into_iter().map(|other| (name.clone(), other)));
        all.insert(name, named.into_iter().collect());
    }
    // A text may refer to one that refers to another.
    for _ in 0..as_others.len() {
        for (name, other) in &as_others {
            let theirs = all[other].clone();
            all.get_mut(name).expect("was put there").extend(theirs);
        }
    }
    all
}

/// The words that follow each place where a text has these letters.
fn after(text: &str, letters: &str) -> Vec<String> {
    let word = |rest: &str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    text.split(letters).skip(1).map(word).collect()
}
