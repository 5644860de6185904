//! Settings of a world: warnings, output, and their comparison between ranks.

use crate::error::{Result, StartError};
use argonet_base::{JobRank, Rank};
use argonet_boot::{Bootstrap, Key};
use argonet_settings::{OtherValue, QUIET, Settings, VERBOSE_ENV};
use std::io::Write;

/// Rank 0 warns and prints for all.
pub(crate) fn report(settings: &Settings, rank: Rank) {
    if rank.0 != 0 {
        return settings.keep_quiet();
    }
    if !settings.get(&QUIET) {
        for warning in settings.warnings() {
            say(&format!("argonet: warning: {warning}"));
        }
    }
    if settings.get(&VERBOSE_ENV) {
        settings.announce(say);
    } else {
        settings.keep_quiet();
    }
}

/// A line on standard error, in one piece, since other ranks may write too.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Publishes the settings for [`compare`], which follows after the next fence.
pub(crate) fn publish(boot: &dyn Bootstrap, settings: &Settings) -> Result<()> {
    Ok(boot.publish(Key::Settings, &settings.card())?)
}

/// Single-valued settings are the same here as on rank 0.
pub(crate) fn compare(boot: &dyn Bootstrap, settings: &Settings) -> Result<()> {
    let other = JobRank(0);
    let Some(found) = settings.difference(&boot.lookup(other, Key::Settings)?) else {
        return Ok(());
    };
    let quoted = |text: &str| format!("\"{}\"", text.escape_debug());
    let own = found.own.as_deref().map(quoted);
    Err(StartError::DifferentSettings {
        rank: Rank(boot.rank().0),
        name: found.name,
        own: own.unwrap_or_else(|| "not set".into()),
        other: Rank(other.0),
        theirs: match found.other {
            OtherValue::NotGiven => "not set".into(),
            OtherValue::Text(text) => quoted(&text),
            OtherValue::Long => "another text, too long to be shown".into(),
        },
    })
}
