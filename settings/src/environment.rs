//! The one place where the process's environment is read.

use std::ffi::OsString;

use crate::error::SettingsError;
use crate::settings::Settings;

impl Settings {
    /// The settings of this process. Not while another thread changes the environment.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::from_pairs(std::env::vars_os())
    }
}

/// All variables of this process. Not while another thread changes the environment.
#[must_use]
pub fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}
