//! The job's key, kept where it can be forgotten.

use core::fmt;
use core::hint::black_box;

use argonet_base::random;

use crate::error::BootError;

/// Bytes of a [`Secret`].
pub const SECRET_BYTES: usize = 32;

/// A key that the processes of a job share: random, never printed, overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// A new one.
    pub(crate) fn new() -> Result<Self, BootError> {
        let mut secret = Self([0; SECRET_BYTES]);
        random::fill(&mut secret.0)
            .map_err(|e| BootError::system("getting random bytes for the job's key", e))?;
        Ok(secret)
    }

    pub(crate) const fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key itself.
    ///
    /// The caller wipes every copy that it makes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever they differ.
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Overwrites bytes that are not used any more.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // For the optimizer they are used, so they are written.
    black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_printed() {
        let (a, b) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert!(a != b && a == a.clone());
        let known = Secret::from_bytes([0x5a; SECRET_BYTES]);
        assert_eq!(format!("{known:?}"), "Secret(..)");
        assert_eq!(known.clone().bytes(), &[0x5a; SECRET_BYTES]);
    }
}
