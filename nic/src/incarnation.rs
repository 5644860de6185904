//! Numbers by which interfaces of one address differ.

use core::num::NonZeroU64;
use std::io;

/// A number that no earlier interface had, and that cannot be guessed.
pub(crate) fn new_incarnation() -> io::Result<NonZeroU64> {
    loop {
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        if let Some(incarnation) = NonZeroU64::new(random) {
            return Ok(incarnation);
        }
    }
}
