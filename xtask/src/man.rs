//! Manual pages that are made from tables.

use crate::command::{cargo, root};

/// The command that prints a page, and the page's file.
const PAGES: [(&[&str], &str); 1] = [(
    &["info", "--settings", "--man"],
    "docs/man/argonet-settings.7",
)];

/// Writes all pages; false if one could not be made, which has been reported.
pub(crate) fn write() -> bool {
    PAGES.iter().all(|(args, path)| {
        let mut command = cargo(&["run", "--quiet", "--package", "argonet-cli", "--"]);
        let page = command
            .args(*args)
            .stderr(std::process::Stdio::inherit())
            .output();
        let written = match page {
            Ok(page) if page.status.success() => std::fs::write(root().join(path), page.stdout),
            Ok(page) => Err(std::io::Error::other(page.status.to_string())),
            Err(error) => Err(error),
        };
        match &written {
            Ok(()) => println!("{path}"),
            Err(error) => println!("{path}: {error}"),
        }
        written.is_ok()
    })
}
