//! Codes of datagrams by a secret of the job.

use super::datagram::SEAL_BYTES;
use core::fmt;
use zeroize::Zeroizing;

/// The purpose from which the key of datagrams is derived, so that no other use of the job's secret
/// gives the same codes.
const PURPOSE: &str = "argonet 2026 datagrams between ranks of a job";

/// Seals datagrams, and knows its own: a keyed hash (BLAKE3) of all that is in them.
///
/// A process that has the secret is of the job.
#[derive(Clone)]
pub struct Seal(Zeroizing<[u8; blake3::KEY_LEN]>);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}

impl Seal {
    /// From the secret of the job.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        Self(Zeroizing::new(blake3::derive_key(PURPOSE, secret)))
    }

    pub(super) fn code(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let hash = blake3::keyed_hash(&self.0, bytes);
        let mut code = [0; SEAL_BYTES];
        code.copy_from_slice(&hash.as_bytes()[..SEAL_BYTES]);
        code
    }

    /// Whether a code is that of these bytes; takes as long for every wrong one.
    pub(super) fn is_of(&self, code: &[u8], bytes: &[u8]) -> bool {
        let Ok(code) = <[u8; SEAL_BYTES]>::try_from(code) else {
            return false;
        };
        u128::from_le_bytes(code) ^ u128::from_le_bytes(self.code(bytes)) == 0
    }
}
