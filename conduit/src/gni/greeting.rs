//! The datagram by which a rank says where its mailbox for a peer is.
//!
//! ```text
//! | 4      | 16     | 8      | 4        | 4             | 32    |
//! | format | handle | offset | messages | message bytes | proof |
//! ```
//!
//! All numbers are little-endian. The proof is a code of all before it under a key made from the
//! secret of the job and both ranks: a datagram with another one is of a stranger.

use argonet_base::JobRank;
use argonet_nic::gni::{DATAGRAM_BYTES, Mailbox, MemHandle, Shape};
use zeroize::Zeroizing;

/// The number of the format of datagrams and messages: ranks of one job have the same.
const FORMAT: u32 = 1;

const BODY_BYTES: usize = 36;
pub(super) const GREETING_BYTES: usize = BODY_BYTES + blake3::OUT_LEN;

static_assertions::const_assert!(GREETING_BYTES <= DATAGRAM_BYTES);

/// The purposes for which keys are derived, so that no other use of the secret gives the same.
const OF_GREETINGS: &str = "argonet 2026 greetings of gni from a rank of a job to another";
const OF_MAILBOXES: &str = "argonet 2026 key of gni by which ranks of a job reach mailboxes";
const OF_SEGMENTS: &str = "argonet 2026 key of gni by which ranks of a job reach a segment";

/// Proves greetings, and makes keys of memory.
pub(super) struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(super) fn new(secret: Vec<u8>) -> Self {
        Self(Zeroizing::new(secret))
    }

    fn derive(&self, purpose: &str) -> Zeroizing<[u8; blake3::KEY_LEN]> {
        Zeroizing::new(blake3::derive_key(purpose, &self.0))
    }

    /// The key under which a rank registers its segment; never 0.
    pub(super) fn segment_key(&self, rank: JobRank) -> u64 {
        self.key(OF_SEGMENTS, rank)
    }

    /// The key under which a rank registers its mailboxes; never 0.
    pub(super) fn mailboxes_key(&self, rank: JobRank) -> u64 {
        self.key(OF_MAILBOXES, rank)
    }

    fn key(&self, purpose: &str, rank: JobRank) -> u64 {
        let hash = blake3::keyed_hash(&self.derive(purpose), &rank.0.to_le_bytes());
        let (first, _) = hash.as_bytes().as_chunks();
        first
            .first()
            .map_or(1, |key| u64::from_le_bytes(*key).max(1))
    }

    fn proof(&self, from: JobRank, to: JobRank, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.derive(OF_GREETINGS));
        hasher.update(&from.0.to_le_bytes());
        hasher.update(&to.0.to_le_bytes());
        hasher.update(body);
        hasher.finalize()
    }

    /// The datagram of this mailbox.
    pub(super) fn greet(
        &self,
        from: JobRank,
        to: JobRank,
        mailbox: &Mailbox,
    ) -> [u8; GREETING_BYTES] {
        let mut datagram = [0; GREETING_BYTES];
        let [handle, key] = mailbox.handle.to_words();
        let mut at = 0;
        let mut write = |bytes: &[u8]| {
            datagram[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        write(&FORMAT.to_le_bytes());
        write(&handle.to_le_bytes());
        write(&key.to_le_bytes());
        write(&mailbox.offset.to_le_bytes());
        write(&mailbox.shape.messages.to_le_bytes());
        write(&mailbox.shape.message_bytes.to_le_bytes());
        let (body, proof) = datagram.split_at_mut(BODY_BYTES);
        proof.copy_from_slice(self.proof(from, to, body).as_bytes());
        datagram
    }

    /// The mailbox of a datagram that has come; `None` if it is of no rank of the job, or of
    /// another version.
    pub(super) fn read(&self, from: JobRank, to: JobRank, datagram: &[u8]) -> Option<Mailbox> {
        let (body, proof) = datagram.split_at_checked(BODY_BYTES)?;
        let proof: [u8; blake3::OUT_LEN] = proof.try_into().ok()?;
        // Compared in constant time.
        if self.proof(from, to, body) != blake3::Hash::from_bytes(proof) {
            return None;
        }
        let (format, body) = body.split_first_chunk()?;
        let (handle, body) = body.split_first_chunk()?;
        let (key, body) = body.split_first_chunk()?;
        let (offset, body) = body.split_first_chunk()?;
        let (messages, body) = body.split_first_chunk()?;
        let (message_bytes, _) = body.split_first_chunk()?;
        let words = [u64::from_le_bytes(*handle), u64::from_le_bytes(*key)];
        (u32::from_le_bytes(*format) == FORMAT).then_some(Mailbox {
            handle: MemHandle::from_words(words),
            offset: u64::from_le_bytes(*offset),
            shape: Shape {
                messages: u32::from_le_bytes(*messages),
                message_bytes: u32::from_le_bytes(*message_bytes),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_nic::gni::NicAddress;

    fn mailbox() -> Mailbox {
        let of = NicAddress {
            rank: JobRank(3),
            nic: 0,
        };
        let key = u64::MAX - 4;
        Mailbox {
            handle: MemHandle { of, index: 1, key },
            offset: 1 << 40,
            shape: Shape {
                messages: 16,
                message_bytes: 4096,
            },
        }
    }

    #[test]
    fn a_greeting_is_read_by_its_peer_alone() {
        let secret = Secret::new(b"of a job".to_vec());
        let (from, to) = (JobRank(3), JobRank(4));
        let greeting = secret.greet(from, to, &mailbox());
        assert_eq!(secret.read(from, to, &greeting), Some(mailbox()));
        assert_eq!(secret.read(to, from, &greeting), None, "another direction");
        let other = Secret::new(b"of another".to_vec());
        assert_eq!(other.read(from, to, &greeting), None);
        assert_eq!(secret.read(from, to, &greeting[1..]), None);
        assert_eq!(secret.read(from, to, &[]), None);
        for at in 0..GREETING_BYTES {
            let mut changed = greeting;
            changed[at] ^= 1;
            assert_eq!(secret.read(from, to, &changed), None, "byte {at}");
        }
    }

    #[test]
    fn keys_of_segments_differ() {
        let secret = Secret::new(b"of a job".to_vec());
        let mut keys: Vec<u64> = (0..100).map(|r| secret.segment_key(JobRank(r))).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100);
    }
}
