//! Warnings to users in a job that can start all the same.

use std::fmt;

use crate::row::{Effect, Row};
use crate::table;

/// One warning; its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// A name that looks like ours, and is none.
    Unknown {
        /// The name.
        name: String,
        /// The known name that is most like it.
        nearest: &'static str,
    },
    /// A name that GASNet knows, and nothing here.
    NoEffect {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest } => write!(
                f,
                "the environment variable {name} is unknown; the nearest name that is known is {nearest}"
            ),
            Self::NoEffect { name, reason } => {
                write!(f, "{name} has no effect in argonet: {reason}")
            }
        }
    }
}

/// Prefixes of names that no other program uses.
const OURS: [&str; 4] = ["GASNET_", "ARGONET_", "AMUDP_", "AMMPI_"];

/// Prefixes that tests and tools of GASNet and argonet use as they like.
const TESTS: [&str; 2] = ["GASNET_TEST_", "ARGONET_TEST_"];

/// UCX reads its own settings with the prefix of the program that uses it.
const UCX: &str = "GASNET_UCX_";

fn is_ours(name: &str) -> bool {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    begins(&OURS) && !begins(&TESTS)
}

pub(crate) fn no_effect(name: &str, reason: &'static str) -> Option<Warning> {
    is_ours(name).then(|| Warning::NoEffect {
        name: name.into(),
        reason,
    })
}

pub(crate) fn unknown(name: &str) -> Option<Warning> {
    if !is_ours(name) || name.starts_with(UCX) {
        return None;
    }
    // Of names equally near the one that has an effect.
    let distance = |row: &&Row| {
        let distance = strsim::damerau_levenshtein(row.name, name);
        (distance, row.effect != Effect::Used)
    };
    let known = table::rows()
        .filter(|row| row.is_one_name() && is_ours(row.name) && row.effect != Effect::Internal);
    let nearest = known.min_by_key(distance)?.name;
    Some(Warning::Unknown {
        name: name.into(),
        nearest,
    })
}
