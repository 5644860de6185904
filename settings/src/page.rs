//! The table as a document: plain text with the values that hold, Markdown, and a manual page.

use std::fmt::Write;

use crate::row::{Effect, Preset, Row};
use crate::settings::Settings;
use crate::table::{Section, table};

/// How to bring `docs/man/argonet-settings.7` up to date.
pub const REGENERATE: &str = "cargo xtask man";

/// The rows that are shown to users.
fn rows(section: &Section) -> impl Iterator<Item = &'static Row> + use<> {
    section.rows().filter(|row| row.effect != Effect::Internal)
}

fn preset(row: &Row) -> &'static str {
    match row.preset {
        Preset::Is(text) | Preset::Words(text) => text,
        Preset::Unset => "not set",
    }
}

/// The table as plain text, with the values that hold in this process.
#[must_use]
pub fn text(settings: &Settings) -> String {
    let mut out = String::new();
    for section in table() {
        let _ = writeln!(out, "{}", section.title);
        for row in rows(section) {
            let (shown, is_default) = settings.shown(row);
            let mark = if is_default { " (default)" } else { "" };
            let _ = writeln!(
                out,
                "  {} = {shown}{mark}   [{}; {}]",
                row.name,
                row.kind.unit(),
                row.scope.word()
            );
            let _ = writeln!(out, "      {}", row.about);
            if let Effect::NoEffect(reason) = row.effect {
                let _ = writeln!(out, "      No effect: {reason}.");
            }
        }
        out.push('\n');
    }
    out
}

/// The table in Markdown.
#[must_use]
pub fn markdown() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut out = String::from("# Settings\n");
    for section in table() {
        let _ = write!(
            out,
            "\n## {}\n\n| variable | meaning | unit | default | scope | effect |\n| --- | --- | --- | --- | --- | --- |\n",
            section.title
        );
        for row in rows(section) {
            let effect = match row.effect {
                Effect::NoEffect(reason) => format!("none: {reason}"),
                _ => "yes".into(),
            };
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} |",
                cell(row.name),
                cell(row.about),
                row.kind.unit(),
                cell(preset(row)),
                row.scope.word(),
                cell(&effect)
            );
        }
    }
    out
}

/// The manual page argonet-settings(7).
#[must_use]
pub fn manual() -> String {
    let mut out = format!(
        ".\\\" Made from the table of settings by `{REGENERATE}`; do not edit.\n\
         .TH ARGONET\\-SETTINGS 7 \"\" \"argonet {}\" \"argonet\"\n\
         .SH NAME\n\
         argonet\\-settings \\- environment variables that argonet knows\n\
         .SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION")
    );
    for paragraph in [
        "Jobs are set up by environment variables. An empty or blank value counts as not given. A value that is not \
         allowed is an error that says what is; the job does not start.",
        "Variables of scope job must be the same on all ranks, as the user gave them; ranks that differ refuse to start \
         and name the variable. Those of scope rank may differ.",
        "Names that begin with GASNET_, ARGONET_, AMUDP_ or AMMPI_ and are unknown are warned of, with the nearest name \
         that is known; GASNET_TEST_ and UCX's GASNET_UCX_ are left alone. A name that GASNet knows and that has no effect \
         here is warned of, too. GASNET_QUIET=1 silences warnings, and GASNET_VERBOSEENV=1 prints what is read.",
        "The values that hold in a shell are printed by argonet info --settings.",
    ] {
        let _ = writeln!(out, "{}\n.PP", roff(paragraph));
    }
    // The last paragraph needs no break after it.
    out.truncate(out.len() - ".PP\n".len());
    for section in table() {
        let _ = writeln!(out, ".SH {}", roff(&section.title.to_uppercase()));
        for row in rows(section) {
            let _ = writeln!(
                out,
                ".TP\n.B {}\n{} ({}; default: {}; scope: {})",
                roff(row.name),
                roff(row.about),
                roff(row.kind.unit()),
                roff(preset(row)),
                row.scope.word()
            );
            match row.effect {
                Effect::Used => {
                    let _ = writeln!(out, ".br\nAllowed: {}.", roff(&row.kind.allowed()));
                }
                Effect::NoEffect(reason) => {
                    let _ = writeln!(out, ".br\nNo effect: {}.", roff(reason));
                }
                Effect::Internal => {}
            }
        }
    }
    out.push_str(".SH SEE ALSO\nargonet\\-run(1)\n");
    out
}

/// Text that troff prints as it is.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_every_row() {
        let texts = [text(&Settings::default()), markdown(), manual()];
        let mut count = 0;
        for row in table().iter().flat_map(rows) {
            count += 1;
            assert!(
                texts[0].contains(&format!("\n  {} = ", row.name)),
                "{}",
                row.name
            );
            assert!(
                texts[1].contains(&format!("| `{}` |", row.name)),
                "{}",
                row.name
            );
            let named = format!("\n.B {}\n", roff(row.name));
            assert!(texts[2].contains(&named), "{}", row.name);
        }
        assert!(count > 300, "{count}");
        assert!(texts.iter().all(|text| !text.contains("ARGONET_BOOT")));
    }

    #[test]
    fn no_line_of_the_manual_is_taken_for_a_request() {
        let requests = [".TH", ".SH", ".PP", ".TP", ".B ", ".br", ".\\\""];
        for line in manual()
            .lines()
            .filter(|line| line.starts_with(['.', '\'']))
        {
            assert!(requests.iter().any(|r| line.starts_with(r)), "{line}");
        }
        assert_eq!(roff(".5\\-"), "\\&.5\\e\\-");
    }
}
