//! Failures of operations.

use super::abi;
use crate::portals::Outcome;

/// The meaning of `ni_fail_type`.
pub(super) fn of(fail: u8) -> Outcome {
    match fail {
        abi::FAIL_NONE => Outcome::Done,
        // Permission is asked of the entry that matches, which is not passed over.
        abi::FAIL_DROPPED | abi::FAIL_NO_MATCH | abi::FAIL_PERMISSION | abi::FAIL_OPERATION => {
            Outcome::NoMatch
        }
        abi::FAIL_DISABLED => Outcome::Disabled,
        abi::FAIL_UNDELIVERABLE => Outcome::PeerDied,
        // Among them the target's memory that is not mapped.
        _ => Outcome::Corrupt,
    }
}
