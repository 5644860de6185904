//! The one place where the process's environment is read.

use std::ffi::OsString;

use crate::error::SettingsError;
use crate::settings::Settings;

impl Settings {
    /// The settings of this process.
    ///
    /// Not while another thread changes the environment.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::from_pairs(std::env::vars_os())
    }
}

/// All variables of this process.
///
/// Not while another thread changes the environment.
#[must_use]
pub fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Whether this process has the variable, with any value.
///
/// Not while another thread changes the environment.
#[must_use]
pub fn is_set(name: &str) -> bool {
    variables().iter().any(|(known, _)| known == name)
}

/// The name most like `name` of a variable that this process has; none if all differ in more than a
/// third of its letters.
///
/// Not while another thread changes the environment.
#[must_use]
pub fn nearest(name: &str) -> Option<String> {
    let names = variables()
        .into_iter()
        .filter_map(|(known, _)| known.into_string().ok());
    let distance = |known: &String| strsim::damerau_levenshtein(known, name);
    let nearest = names.min_by_key(distance)?;
    (distance(&nearest) * 3 <= name.len()).then_some(nearest)
}
