//! The book, made into pages by mdBook.

use crate::command::{root, target};
use crate::pinned::Pinned;
use crate::suite::Run;
use std::process::Command;

const MDBOOK: Pinned = Pinned {
    name: "mdbook",
    release: "0.5.4",
    // It makes pages; it serves none.
    options: &["--no-default-features", "--features", "search"],
};

/// Builds the book into `target/book`.
pub(crate) fn build(run: &mut Run) {
    let Some(program) = MDBOOK.installed(run) else {
        return;
    };
    let mut book = Command::new(program);
    book.arg("build")
        .arg(root().join("docs/book"))
        .arg("--dest-dir")
        .arg(target().join("book"));
    run.step("book", &mut book);
}
