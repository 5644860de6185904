//! The manual page is that of the table.

use argonet_settings::page;

#[test]
fn the_manual_page_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/man/argonet-settings.7"
    );
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page::manual(),
        "docs/man/argonet-settings.7 differs from the table of settings: run `{}`",
        page::REGENERATE
    );
}
