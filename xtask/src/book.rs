//! The book, made into pages by mdBook.

use crate::command::{cargo, root, target};
use crate::suite::Run;
use std::process::Command;

/// The release that makes it, built with the lockfile that it comes with.
const MDBOOK: &str = "0.5.4";

/// Builds the book into `target/book`; first mdBook itself, where this release is not there yet.
pub(crate) fn build(run: &mut Run) {
    let tools = target().join("mdbook").join(MDBOOK);
    let program = tools.join("bin/mdbook");
    if !program.exists() {
        let version = ["install", "mdbook", "--version", MDBOOK, "--locked"];
        let mut install = cargo(&version);
        install
            // It makes pages; it serves none.
            .args(["--no-default-features", "--features", "search", "--debug"])
            .arg("--root")
            .arg(&tools)
            .env("CARGO_TARGET_DIR", target().join("mdbook/build"));
        if !run.step("build of mdBook", &mut install) {
            return;
        }
    }
    let mut book = Command::new(program);
    book.arg("build")
        .arg(root().join("docs/book"))
        .arg("--dest-dir")
        .arg(target().join("book"));
    run.step("book", &mut book);
}
