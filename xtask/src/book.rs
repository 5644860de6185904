//! The book, made into pages by mdBook.
//!
//! Its chapters refer to other pages of the repository. mdBook makes pages of what its summary
//! names, so the summary of this copy has all pages.

use crate::command::{root, target};
use crate::pinned::Pinned;
use crate::suite::Run;
use crate::tidy::{self, File, paths};
use std::fs::{copy, create_dir_all, remove_dir_all, write};
use std::io;
use std::path::Path;
use std::process::Command;

const MDBOOK: Pinned = Pinned {
    name: "mdbook",
    release: "0.5.4",
    // It makes pages; it serves none.
    options: &["--no-default-features", "--features", "search"],
};

/// Where the chapters are, and their summary.
const CHAPTERS: &str = "docs/book/src/";
const SUMMARY: &str = "docs/book/src/SUMMARY.md";

/// Builds the book into `target/book`.
pub(crate) fn build(run: &mut Run) {
    let Some(program) = MDBOOK.installed(run) else {
        return;
    };
    let (copied, made) = (target().join("book-sources"), target().join("book"));
    let files = tidy::files(&root());
    if let Err(error) = lay_out(&files, &copied) {
        eprintln!("    {}: {error}", copied.display());
        return run.tally.step("sources of the book", false);
    }
    let mut book = Command::new(program);
    book.arg("build").arg(&copied).arg("--dest-dir").arg(&made);
    if run.step("book", &mut book) {
        let missing = missing(&made);
        missing.iter().for_each(|link| println!("    {link}"));
        run.tally.step("links of the book", missing.is_empty());
    }
}

/// Writes the sources of the book: all pages, what else they refer to, and a summary of all.
fn lay_out(files: &[File], copied: &Path) -> io::Result<()> {
    let sources = copied.join("src");
    if copied.exists() {
        remove_dir_all(copied)?;
    }
    let put = |path: &str, text: &str| {
        let path = sources.join(path);
        path.parent().map_or(Ok(()), create_dir_all)?;
        write(path, text)
    };
    let mut pages: Vec<&File> = files.iter().filter(|file| is_page(&file.path)).collect();
    pages.sort_by_key(|page| (page.path.contains('/'), &page.path));
    for page in &pages {
        put(&page.path, &with_pages(&page.text))?;
        let lines = paths::prose(&page.text);
        for link in lines.flat_map(|(_, line)| paths::links(line)) {
            let target = paths::resolve(&page.path, link);
            let file = files.iter().find(|file| file.path == target);
            if let Some(file) = file.filter(|file| !is_page(&file.path)) {
                put(&file.path, &file.text)?;
            }
        }
    }
    let chapters = pages.iter().find(|page| page.path == SUMMARY);
    let chapters = chapters.map_or("", |page| &page.text);
    put("SUMMARY.md", &summary(chapters, &pages))?;
    copy(root().join("docs/book/book.toml"), copied.join("book.toml"))?;
    Ok(())
}

/// The text with links to what mdBook makes: `README.md` is the index of its directory, and the
/// summary is beside each page.
fn with_pages(text: &str) -> String {
    let mut text = text.to_owned();
    for (page, made) in [("SUMMARY.md", "first.md"), ("README.md", "index.md")] {
        for end in [")", "#"] {
            text = text.replace(&format!("{page}{end}"), &format!("{made}{end}"));
        }
    }
    text
}

/// Pages that people read.
fn is_page(path: &str) -> bool {
    path.ends_with(".md") && !path.starts_with("fuzz/")
}

/// The chapters, and behind them all other pages by their titles.
fn summary(chapters: &str, pages: &[&File]) -> String {
    let mut text = chapters.replace("](", &format!("]({CHAPTERS}"));
    text += "\n# Further pages\n\n";
    for page in pages {
        let path = &page.path;
        if path == SUMMARY || chapters.contains(path.trim_start_matches(CHAPTERS)) {
            continue;
        }
        let title = page.text.lines().find_map(|line| line.strip_prefix("# "));
        text += &format!("- [{}]({path})\n", title.unwrap_or(path));
    }
    text
}

/// Links of the pages made that lead to no file, each with its page.
fn missing(made: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for page in tidy::files(made) {
        let beside = made.join(&page.path);
        let directory = beside.parent().unwrap_or(made);
        let links = page.path.ends_with(".html").then(|| hrefs(&page.text));
        let broken = links.into_iter().flatten();
        let broken = broken.filter(|link| !directory.join(link).exists());
        missing.extend(broken.map(|link| format!("{}: {link}", page.path)));
    }
    missing
}

/// What a page refers to beside it, without places within pages.
fn hrefs(text: &str) -> impl Iterator<Item = &str> {
    text.split("href=\"").skip(1).filter_map(|rest| {
        let (link, _) = rest.split_once('"')?;
        let link = link.split('#').next().unwrap_or_default();
        (!link.is_empty() && !link.contains(':')).then_some(link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_summary_has_all_pages_once() {
        let chapters = "# Summary\n\n- [First](first.md)\n";
        let pages = [
            page("README.md", "# argonet\n"),
            page("docs/book/src/first.md", "# A first program\n"),
            page(SUMMARY, chapters),
            page("docs/a.md", "no title\n"),
        ];
        let pages: Vec<&File> = pages.iter().collect();
        let expected = "# Summary\n\n- [First](docs/book/src/first.md)\n\n# Further pages\n\n\
                        - [argonet](README.md)\n- [docs/a.md](docs/a.md)\n";
        assert_eq!(summary(chapters, &pages), expected);
    }

    #[test]
    fn links_lead_to_pages_that_are_made() {
        let text = "[a](x/README.md#c), `README.md`, [b](book/src/SUMMARY.md)";
        let expected = "[a](x/index.md#c), `README.md`, [b](book/src/first.md)";
        assert_eq!(with_pages(text), expected);
    }

    #[test]
    fn links_to_other_places_and_within_a_page_are_passed_over() {
        let text = r##"<a href="a.html#b"> <a href="#c"> <a href="https://x"> <a href="../d">"##;
        assert_eq!(Vec::from_iter(hrefs(text)), ["a.html", "../d"]);
    }
}
