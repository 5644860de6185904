//! What stands before each message.
//!
//! ```text
//! | 8 bytes | 4      | 4      | 4                    | 1    | 3     |
//! | token   | sender | number | how much it has read | kind | zeros |
//! ```
//!
//! All numbers are little-endian. The token of a direction between two ranks is made from the
//! secret of the job, both ranks and both incarnations: a message with another one is of a
//! stranger, or of an earlier process. Nothing else is authenticated.

use argonet_base::JobRank;
use core::num::NonZeroU64;
use num_enum::TryFromPrimitive;
use zeroize::Zeroizing;

pub(super) const HEADER_BYTES: usize = 24;

/// The purpose for which tokens are derived, so that no other use of the secret gives the same.
const PURPOSE: &str = "argonet 2026 tokens of messages from a rank of a job to another";

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromPrimitive)]
#[repr(u8)]
pub(super) enum Kind {
    /// The next bytes of the rail.
    Data = 1,
    /// Nothing but how much the sender has read.
    Grant = 2,
    /// The receiver sends something back, to show that it lives.
    Ask = 3,
    /// The sender sends no data any more, and takes none.
    Leave = 4,
    /// The receiver's `Leave` has come, and so has all before it.
    Seen = 5,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) token: u64,
    pub(super) from: JobRank,
    /// Counts the messages of this direction.
    pub(super) number: u32,
    /// How much of the receiver's messages the sender has read, in what windows count.
    pub(super) taken: u32,
    pub(super) kind: Kind,
}

impl Header {
    /// Writes it to the beginning of a message.
    pub(super) fn write(&self, place: &mut [u8; HEADER_BYTES]) {
        let Self {
            token,
            from,
            number,
            taken,
            kind,
        } = *self;
        place[..8].copy_from_slice(&token.to_le_bytes());
        place[8..12].copy_from_slice(&from.0.to_le_bytes());
        place[12..16].copy_from_slice(&number.to_le_bytes());
        place[16..20].copy_from_slice(&taken.to_le_bytes());
        place[20..].copy_from_slice(&[kind as u8, 0, 0, 0]);
    }

    /// The header of a message and what is behind it; `None` if it has none.
    pub(super) fn read(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, behind) = message.split_first_chunk::<HEADER_BYTES>()?;
        let (token, rest) = header.split_first_chunk()?;
        let (words, kind) = rest.split_at(12);
        let (words, _) = words.as_chunks();
        let word = |at: usize| words.get(at).copied().map(u32::from_le_bytes);
        let (&[kind], &[0, 0, 0]) = (kind.first_chunk()?, kind.last_chunk()?) else {
            return None;
        };
        let header = Self {
            token: u64::from_le_bytes(*token),
            from: JobRank(word(0)?),
            number: word(1)?,
            taken: word(2)?,
            kind: Kind::try_from(kind).ok()?,
        };
        Some((header, behind))
    }
}

/// Makes tokens.
pub(super) struct Tokens {
    pub(super) secret: Zeroizing<Vec<u8>>,
    pub(super) incarnations: Vec<NonZeroU64>,
}

impl Tokens {
    /// Of messages from a rank to another; `None` if there is no such rank.
    pub(super) fn token(&self, from: JobRank, to: JobRank) -> Option<u64> {
        let mut material = Zeroizing::new(Vec::with_capacity(24 + self.secret.len()));
        // All but the secret have a fixed length.
        for rank in [from, to] {
            let incarnation = self.incarnations.get(rank.index())?;
            material.extend(rank.0.to_le_bytes());
            material.extend(incarnation.get().to_le_bytes());
        }
        material.extend_from_slice(&self.secret);
        let key = Zeroizing::new(blake3::derive_key(PURPOSE, &material));
        key.first_chunk().copied().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        token: 0x1122_3344_5566_7788,
        from: JobRank(9),
        number: u32::MAX,
        taken: 0x0102_0304,
        kind: Kind::Leave,
    };

    #[test]
    fn headers_come_back_and_nothing_else_is_one() {
        let mut message = [7; HEADER_BYTES + 2];
        HEADER.write(message.first_chunk_mut().unwrap());
        assert_eq!(Header::read(&message), Some((HEADER, &[7, 7][..])));
        assert_eq!(Header::read(&message[..HEADER_BYTES - 1]), None);
        for (at, byte) in [(20, 0), (20, 6), (21, 1), (23, 1)] {
            let mut bad = message;
            bad[at] = byte;
            assert_eq!(Header::read(&bad), None, "{at}: {byte}");
        }
    }

    #[test]
    fn each_direction_secret_and_incarnation_has_a_token_of_its_own() {
        let tokens = |secret: &[u8], second: u64| Tokens {
            secret: Zeroizing::new(secret.to_vec()),
            incarnations: [7, second].map(|n| NonZeroU64::new(n).unwrap()).into(),
        };
        let (zero, one) = (JobRank(0), JobRank(1));
        let all = [
            tokens(b"secret", 8).token(zero, one).unwrap(),
            tokens(b"secret", 8).token(one, zero).unwrap(),
            tokens(b"secret", 9).token(zero, one).unwrap(),
            tokens(b"other", 8).token(zero, one).unwrap(),
        ];
        for (at, token) in all.iter().enumerate() {
            assert!(!all[..at].contains(token), "{all:x?}");
        }
        assert_eq!(tokens(b"secret", 8).token(zero, JobRank(2)), None);
    }
}
