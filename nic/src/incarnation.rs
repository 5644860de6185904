//! Numbers by which interfaces of one address differ.

use argonet_base::random;
use core::num::NonZeroU64;
use std::io;

/// A number that no earlier interface had, and that cannot be guessed.
pub(crate) fn new_incarnation() -> io::Result<NonZeroU64> {
    loop {
        if let Some(incarnation) = NonZeroU64::new(random::number()?) {
            return Ok(incarnation);
        }
    }
}
