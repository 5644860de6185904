//! Bad values.

use std::fmt;

/// A variable with a value that it may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The error in it, where more can be said than that it is not allowed.
    pub reason: Option<String>,
    /// The allowed values.
    pub allowed: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, .. } = self;
        // One variable is one line, for any value.
        write!(
            f,
            "the environment variable {name} is \"{}\"",
            value.escape_debug()
        )?;
        if let Some(reason) = &self.reason {
            write!(f, " ({reason})")?;
        }
        write!(f, "; allowed: {}", self.allowed)
    }
}

/// The environment holds values that cannot be used: all of them, sorted by name; one line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SettingsError {
    /// At least one.
    pub bad: Vec<BadValue>,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, bad) in self.bad.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{bad}")?;
        }
        Ok(())
    }
}
