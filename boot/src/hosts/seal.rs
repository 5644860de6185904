//! Codes of the frames on a control connection that goes over a network of its own.
//!
//! Connections through a remote shell need none. Here both ends know a secret, and each begins with
//! a number that it has never used before:
//!
//! ```text
//! agent                                               root
//!   | -- "\nargonet-comes\0\1", first rank, nonce ----> |   52 bytes
//!   | <- "\nargonet-hears\0\1", nonce ----------------- |   48 bytes
//!   | == greeting ====================================> |   frames, each followed by its code
//!   | <= beat ========================================= |   proves to the agent that this is the root
//!   | <= other frames ================================> |
//! ```
//!
//! The keys of the codes follow from the secret, both nonces and the rank, one for each direction:
//! so a frame with the right code was sent by the other end, in this connection and in this place.
//! What frames say is not secret; the key of the job is not among it.

use argonet_base::random;
use blake3::Hasher;

use crate::error::BootError;
use crate::secret::{SECRET_BYTES, Secret, wipe};

/// Bytes of a code.
pub(crate) const CODE_BYTES: usize = 32;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 32;

const COMES: [u8; 16] = *b"\nargonet-comes\0\x01";
const HEARS: [u8; 16] = *b"\nargonet-hears\0\x01";

/// Bytes with which an agent begins.
pub(crate) const COMES_BYTES: usize = 16 + 4 + NONCE_BYTES;
/// Bytes of the answer.
pub(crate) const HEARS_BYTES: usize = 16 + NONCE_BYTES;

/// A number that is used once.
pub(crate) struct Nonce([u8; NONCE_BYTES]);

impl Nonce {
    pub(crate) fn new() -> Result<Self, BootError> {
        let mut bytes = [0; NONCE_BYTES];
        random::fill(&mut bytes).map_err(|error| {
            BootError::system("getting random bytes for a control connection", error)
        })?;
        Ok(Self(bytes))
    }

    /// What the agent of the host whose first rank this is begins with.
    pub(crate) fn comes(&self, first: u32) -> [u8; COMES_BYTES] {
        let mut bytes = [0; COMES_BYTES];
        bytes[..16].copy_from_slice(&COMES);
        bytes[16..20].copy_from_slice(&first.to_le_bytes());
        bytes[20..].copy_from_slice(&self.0);
        bytes
    }

    /// What it is answered.
    pub(crate) fn hears(&self) -> [u8; HEARS_BYTES] {
        let mut bytes = [0; HEARS_BYTES];
        bytes[..16].copy_from_slice(&HEARS);
        bytes[16..].copy_from_slice(&self.0);
        bytes
    }

    /// The first rank and the nonce of an agent's beginning.
    pub(crate) fn of_agent(bytes: &[u8; COMES_BYTES]) -> Option<(u32, Self)> {
        let (magic, rest) = bytes.split_first_chunk::<16>()?;
        let (first, nonce) = rest.split_first_chunk::<4>()?;
        let nonce = Self(nonce.try_into().ok()?);
        (*magic == COMES).then_some((u32::from_le_bytes(*first), nonce))
    }

    /// The nonce of the answer to it.
    pub(crate) fn of_root(bytes: &[u8; HEARS_BYTES]) -> Option<Self> {
        let (magic, nonce) = bytes.split_first_chunk::<16>()?;
        let nonce = Self(nonce.try_into().ok()?);
        (*magic == HEARS).then_some(nonce)
    }
}

/// Codes of one direction, frame by frame.
pub(crate) struct Seal {
    key: Secret,
    /// Number of the next frame.
    next: u64,
}

impl Seal {
    /// Those of both directions, upwards and downwards, for the agent of the host whose first rank
    /// this is.
    pub(crate) fn pair(secret: &Secret, first: u32, agent: &Nonce, root: &Nonce) -> [Self; 2] {
        ["upwards", "downwards"].map(|direction| {
            let mut hasher = Hasher::new_keyed(secret.bytes());
            for part in [
                &agent.0[..],
                &root.0,
                &first.to_le_bytes(),
                direction.as_bytes(),
            ] {
                hasher.update(part);
            }
            let mut bytes: [u8; SECRET_BYTES] = hasher.finalize().into();
            let key = Secret::from_bytes(bytes);
            wipe(&mut bytes);
            Self { key, next: 0 }
        })
    }

    /// The code of the next frame.
    pub(crate) fn code(&mut self, frame: &[u8]) -> [u8; CODE_BYTES] {
        self.hash(frame).into()
    }

    /// Whether the next frame has this code.
    pub(crate) fn check(&mut self, frame: &[u8], code: &[u8]) -> bool {
        // Takes the same time wherever they differ.
        self.hash(frame) == *code
    }

    fn hash(&mut self, frame: &[u8]) -> blake3::Hash {
        let mut hasher = Hasher::new_keyed(self.key.bytes());
        hasher.update(&self.next.to_le_bytes()).update(frame);
        self.next += 1;
        hasher.finalize()
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seal({})", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; SECRET_BYTES])
    }

    #[test]
    fn beginnings_are_read_back() {
        let nonce = Nonce::new().unwrap();
        let (first, read) = Nonce::of_agent(&nonce.comes(77)).unwrap();
        assert_eq!((first, read.0), (77, nonce.0));
        assert_eq!(Nonce::of_root(&nonce.hears()).unwrap().0, nonce.0);
        assert_ne!(nonce.0, Nonce::new().unwrap().0);
        let mut other = nonce.comes(77);
        other[0] = b'G';
        assert!(Nonce::of_agent(&other).is_none(), "another protocol");
        let mut echo = nonce.hears();
        echo[..16].copy_from_slice(&COMES);
        assert!(Nonce::of_root(&echo).is_none(), "an echo");
    }

    #[test]
    fn a_code_fits_one_frame_in_one_place_of_one_connection() {
        let (a, b) = (Nonce::new().unwrap(), Nonce::new().unwrap());
        let seals = |key, first, a: &Nonce, b: &Nonce| Seal::pair(&secret(key), first, a, b);
        let code = |[mut up, _]: [Seal; 2]| up.code(b"frame");
        let right = code(seals(1, 0, &a, &b));
        let [mut up, mut down] = seals(1, 0, &a, &b);
        assert!(!down.check(b"frame", &right), "sent back");
        assert!(up.check(b"frame", &right));
        assert!(!up.check(b"frame", &right), "said again");
        for other in [
            seals(2, 0, &a, &b),
            seals(1, 4, &a, &b),
            seals(1, 0, &b, &b),
            seals(1, 0, &a, &a),
        ] {
            assert_ne!(code(other), right);
        }
        let [mut up, _] = seals(1, 0, &a, &b);
        assert!(!up.check(b"frames", &right) && !up.check(b"frame", &right[1..]));
    }
}
