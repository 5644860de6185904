//! The items of the texts whose protocols argonet implements: the code and the test of each, and
//! the items that are not built yet.

mod list;
mod marks;
mod names;

use crate::command::root;
use crate::tidy::{self, File};
use marks::Mark;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How much of an item exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// All of it.
    Built,
    /// In part: the built part, by the names of tests in backticks, and the missing part.
    Partly(&'static str),
    /// Nothing before this exists.
    Waits(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Item {
    id: &'static str,
    title: &'static str,
    state: State,
}

/// Where the table is kept.
const TABLE: &str = "docs/spec-items.md";

/// Options of the command line.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Fail if the list and the marks disagree, or if docs/spec-items.md is not what would be
    /// written
    #[arg(long)]
    check: bool,
    /// Write docs/spec-items.md
    #[arg(long, conflicts_with = "check")]
    write: bool,
}

/// Prints, checks or writes the table; whether all is well.
pub(crate) fn items(options: Options) -> bool {
    let marks = marks_of(&tidy::files(&root()));
    let text = table(&list::ITEMS, &marks);
    if options.check {
        let complaints = check();
        complaints.iter().for_each(|c| println!("{c}"));
        println!("{} complaints", complaints.len());
        return complaints.is_empty();
    }
    if options.write {
        let written = std::fs::write(root().join(TABLE), &text);
        if let Err(error) = &written {
            eprintln!("{TABLE}: {error}");
        }
        return written.is_ok();
    }
    print!("{text}");
    true
}

/// Checks the tree.
fn check() -> Vec<String> {
    let files = tidy::files(&root());
    let marks = marks_of(&files);
    let mut complaints = disagreements(&list::ITEMS, &marks);
    complaints.extend(nameless(&list::ITEMS, &names::of_tests(&files)));
    let held = files.iter().find(|file| file.path == TABLE);
    if held.is_none_or(|file| file.text != table(&list::ITEMS, &marks)) {
        complaints.push(format!(
            "{TABLE} is not up to date: `cargo xtask items --write`"
        ));
    }
    complaints
}

/// All marks; this program's own examples of marks are none.
fn marks_of(files: &[File]) -> Vec<Mark> {
    files
        .iter()
        .filter(|file| file.is_source() && !file.path.starts_with("xtask/"))
        .flat_map(marks::of)
        .collect()
}

fn disagreements(items: &[Item], marks: &[Mark]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut known = BTreeSet::new();
    for item in items {
        let id = item.id;
        if !known.insert(id) {
            complaints.push(format!("{id} is listed twice"));
        }
        let marked = |in_test| marks.iter().find(|m| m.id == id && m.in_test == in_test);
        match item.state {
            State::Built | State::Partly(_) => {
                for (in_test, what) in [(false, "code"), (true, "test")] {
                    if marked(in_test).is_none() {
                        complaints.push(format!("{id} is said to be built and marks no {what}"));
                    }
                }
            }
            State::Waits(what) => {
                if let Some(conduit) = waits_for(what) {
                    complaints.push(format!(
                        "{id} is said to wait for {what}, and the conduit {conduit} exists"
                    ));
                }
                if let Some(mark) = marked(false) {
                    complaints.push(format!(
                        "{id} is said not to be built and is marked in {}; say what of it is there (xtask/src/items/list.rs)",
                        mark.place
                    ));
                }
            }
        }
    }
    for mark in marks {
        if !known.contains(mark.id.as_str()) {
            complaints.push(format!("{}: there is no item {}", mark.place, mark.id));
        }
    }
    complaints
}

/// Checks the texts of items that are in part: each names a test of the built part, so that the
/// text changes with it, and every quoted word is the name of a test.
fn nameless(items: &[Item], tests: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for Item { id, state, .. } in items {
        let State::Partly(text) = state else { continue };
        let mut named = names::in_text(text).peekable();
        if named.peek().is_none() {
            complaints.push(format!("{id} is in part, and its text names no test"));
        }
        for name in named.filter(|name| !tests.contains(*name)) {
            complaints.push(format!("{id} is in part, and there is no test `{name}`"));
        }
    }
    complaints
}

/// The conduit that exists and that a text says an item waits for: one that a job can choose, in
/// any words, or one that has a directory.
fn waits_for(what: &str) -> Option<&str> {
    let mut words = what.split(|c: char| !c.is_ascii_alphanumeric());
    let chosen = words.find(|word| argonet_settings::CONDUIT_NAMES.contains(word));
    let begun = what
        .strip_prefix("the ")
        .and_then(|rest| rest.strip_suffix(" conduit"))
        .filter(|name| root().join("conduit/src").join(name).exists());
    chosen.or(begun)
}

fn table(items: &[Item], marks: &[Mark]) -> String {
    let mut text = String::from(
        "# Items of the protocol texts\n\n\
         Written by `cargo xtask items --write`; do not edit. The items that argonet takes from the texts that it is built after:\n\
         P the Portals conduit, U usNIC, G the GNI provider, B failover of rails, T the TCP path. Code and tests carry the\n\
         item in a comment, as in `spec P3`; a test fails when this table and those comments disagree.\n\n",
    );
    let count = |of: fn(&State) -> bool| items.iter().filter(|item| of(&item.state)).count();
    let _ = writeln!(
        text,
        "{} items: {} built, {} in part, {} wait.\n",
        items.len(),
        count(|s| matches!(s, State::Built)),
        count(|s| matches!(s, State::Partly(_))),
        count(|s| matches!(s, State::Waits(_))),
    );
    text += "| item | what | state | code | tests |\n| --- | --- | --- | --- | --- |\n";
    for item in items {
        let places = |in_test| {
            let of_item = marks
                .iter()
                .filter(|m| m.id == item.id && m.in_test == in_test);
            let places: BTreeSet<&str> = of_item.map(|m| m.place.as_str()).collect();
            places.into_iter().collect::<Vec<_>>().join("<br>")
        };
        let state = match item.state {
            State::Built => "built".to_owned(),
            State::Partly(missing) => format!("in part: {missing}"),
            State::Waits(what) => format!("waits for {what}"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {state} | {} | {} |",
            item.id,
            item.title,
            places(false),
            places(true)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(id: &str, in_test: bool) -> Mark {
        let (id, place) = (id.to_owned(), "a.rs".to_owned());
        Mark { id, in_test, place }
    }

    fn item(state: State) -> [Item; 1] {
        let (id, title) = ("P1", "something");
        [Item { id, title, state }]
    }

    #[test]
    fn list_marks_and_table_agree() {
        let complaints = check();
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }

    #[test]
    fn an_item_said_to_be_built_needs_code_and_test() {
        for state in [State::Built, State::Partly("the rest")] {
            let both = [mark("P1", false), mark("P1", true)];
            assert_eq!(disagreements(&item(state), &both).len(), 0);
            assert_eq!(disagreements(&item(state), &both[..1]).len(), 1);
            assert_eq!(disagreements(&item(state), &both[1..]).len(), 1);
            assert_eq!(disagreements(&item(state), &[]).len(), 2);
        }
    }

    #[test]
    fn marks_of_unknown_and_of_waiting_items_are_found() {
        let waits = item(State::Waits("the teleport conduit"));
        assert_eq!(disagreements(&waits, &[]).len(), 0);
        assert_eq!(disagreements(&waits, &[mark("P1", false)]).len(), 1);
        let unknown = disagreements(&waits, &[mark("P99", true)]);
        assert_eq!(unknown, ["a.rs: there is no item P99"]);
        let twice = [waits, waits].concat();
        assert_eq!(disagreements(&twice, &[]).len(), 1);
    }

    #[test]
    fn no_item_waits_for_a_conduit_that_exists() {
        let waits = |what| disagreements(&item(State::Waits(what)), &[]);
        for conduit in argonet_settings::CONDUIT_NAMES {
            let of = |text: String| -> &'static str { text.leak() };
            for what in [
                of(format!("the {conduit} conduit")),
                of(format!("{conduit}: its rails")),
                of(format!("failover between rails of {conduit}")),
            ] {
                let due =
                    format!("P1 is said to wait for {what}, and the conduit {conduit} exists");
                assert_eq!(waits(what), [due]);
            }
        }
        // Words of which the name of a conduit is a part.
        for what in ["the teleport conduit", "failover of tcpdump and portals4"] {
            assert!(waits(what).is_empty(), "{what}");
        }
        // A conduit that has a directory and cannot be chosen is half built.
        assert_eq!(waits("the channel conduit").len(), 1);
    }

    #[test]
    fn an_item_in_part_names_tests_that_exist() {
        let tests = ["shows_some", "shows_more"].map(str::to_owned).into();
        let said = |text| nameless(&item(State::Partly(text)), &tests);
        assert!(said("some (`shows_some`); not the rest").is_empty());
        assert!(said("`shows_some`, `shows_more`; not the rest").is_empty());
        let none = ["P1 is in part, and its text names no test"];
        assert_eq!(said("the rest is missing: shows_some"), none);
        let gone = ["P1 is in part, and there is no test `shows_all`"];
        assert_eq!(said("some (`shows_some`, `shows_all`)"), gone);
        for state in [State::Built, State::Waits("something")] {
            assert!(nameless(&item(state), &tests).is_empty());
        }
    }

    #[test]
    fn the_table_names_code_and_tests() {
        let text = table(
            &item(State::Partly("the rest")),
            &[mark("P1", false), mark("P2", true)],
        );
        assert!(text.contains("1 items: 0 built, 1 in part, 0 wait"));
        assert!(
            text.ends_with("| P1 | something | in part: the rest | a.rs |  |\n"),
            "{text}"
        );
    }
}
