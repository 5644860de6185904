//! The table of settings.

use argonet_settings::{Settings, page};

pub(super) use argonet_settings::page::{manual, markdown};

/// The table with the values that hold in this process.
pub(super) fn text() -> argonet_start::Result<String> {
    Ok(page::text(&Settings::from_environment()?))
}
