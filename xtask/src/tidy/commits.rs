//! Subjects of commits: CONTRIBUTING.md says how they read.

use std::path::Path;
use std::process::Command;

/// Characters of a subject.
const SUBJECT: usize = 72;

/// Commits up to this one are older than the rule.
///
/// Once there is a tag, the last tag counts.
const BEFORE_THE_RULE: &str = "d0c7fca2d2a692ba6c98943a791280e8ffdc72aa";

/// Verbs in the imperative that end as other forms do.
const IMPERATIVES: [&str; 17] = [
    "address", "bring", "bypass", "compress", "cross", "discuss", "embed", "exceed", "express",
    "feed", "focus", "need", "pass", "press", "process", "seed", "speed",
];

/// Complains of the commits since the last tag.
///
/// A tree without its history has none.
pub(crate) fn check(root: &Path, complaints: &mut Vec<String>) {
    let tag = said(root, &["describe", "--tags", "--abbrev=0"]);
    let since = tag.as_deref().map_or(BEFORE_THE_RULE, str::trim);
    let range = format!("{since}..HEAD");
    let log = said(root, &["log", "--no-merges", "--format=%h %s", &range]);
    for line in log.unwrap_or_default().lines() {
        let Some((commit, subject)) = line.split_once(' ') else {
            continue;
        };
        if let Some(why) = wrong(subject) {
            complaints.push(format!("commit {commit}: {subject:?}: {why}"));
        }
    }
}

/// Why a subject is not as it should be.
fn wrong(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT {
        return Some(format!("{length} characters, at most {SUBJECT}"));
    }
    if subject.starts_with("Revert \"") {
        return None;
    }
    let Some((_, act)) = subject.split_once(": ") else {
        return Some("the part of the tree and a colon come first".to_owned());
    };
    let verb = act.split(' ').next().unwrap_or_default();
    let is_other_form = ["s", "ed", "ing"].iter().any(|end| verb.ends_with(end));
    if verb.chars().any(char::is_uppercase) {
        return Some("the verb is not capitalized".to_owned());
    }
    (is_other_form && !IMPERATIVES.contains(&verb))
        .then(|| format!("{verb:?} is no verb in the imperative"))
}

/// What git says, if it knows.
fn said(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_short_and_in_the_imperative() {
        for (subject, is_right) in [
            ("tcp: take the route from the rail", true),
            ("boot, nic: process orders first", true),
            ("Revert \"tcp: take the route\"", true),
            ("tcp: routes are taken from the rail", false),
            ("tcp: took, and taking", true),
            ("tcp: added a route", false),
            ("tcp: adding a route", false),
            ("tcp: Take the route", false),
            ("take the route", false),
        ] {
            assert_eq!(wrong(subject).is_none(), is_right, "{subject}");
        }
        let long = |length: usize| format!("tcp: add {}", "x".repeat(length - "tcp: add ".len()));
        assert_eq!(wrong(&long(SUBJECT)), None);
        assert!(wrong(&long(SUBJECT + 1)).is_some());
    }
}
