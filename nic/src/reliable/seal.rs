//! Authentication and encryption of datagrams by keys made from the secret of the job.
//!
//! Each direction between two ranks has a key of its own, derived from the secret, the two ranks
//! and their incarnations, and numbers its datagrams; the number is the nonce.

#[cfg(feature = "encrypt")]
use super::cipher::Cipher;
#[cfg(feature = "encrypt")]
use super::datagram::HEADER_BYTES;
use super::datagram::{Protection, SEAL_BYTES};
use super::replays::Replays;
use argonet_base::JobRank;
use core::fmt;
use zeroize::Zeroizing;

/// The purposes from which keys are derived, so that no other use of the job's secret gives the
/// same ones.
const AUTH_PURPOSE: &str = "argonet 2026 codes of datagrams from a rank of a job to another";
const ENCRYPT_PURPOSE: &str = "argonet 2026 encrypted datagrams from a rank of a job to another";

type Key = Zeroizing<[u8; blake3::KEY_LEN]>;

/// Protects datagrams: a process that has the secret is of the job.
///
/// Adds a code (keyed BLAKE3) over the whole datagram, or encrypts its record (AES-256-GCM) and
/// adds a code over header and record.
#[derive(Clone)]
pub struct Seal {
    secret: Zeroizing<Vec<u8>>,
    encrypts: bool,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}

impl Seal {
    /// A seal that adds a code to each datagram and leaves its record readable.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        Self {
            secret: Zeroizing::new(secret.to_vec()),
            encrypts: false,
        }
    }

    /// A seal that encrypts the record of each datagram, and adds a code.
    #[cfg(feature = "encrypt")]
    #[must_use]
    pub fn encrypting(secret: &[u8]) -> Self {
        Self {
            encrypts: true,
            ..Self::from_secret(secret)
        }
    }

    pub(super) fn protection(&self) -> Protection {
        match self.encrypts {
            true => Protection::Encrypted,
            false => Protection::Auth,
        }
    }

    /// The key of one direction: no other direction, purpose, secret or incarnation has it.
    fn key(&self, ranks: [JobRank; 2], incarnations: [u64; 2]) -> Key {
        let purpose = match self.encrypts {
            true => ENCRYPT_PURPOSE,
            false => AUTH_PURPOSE,
        };
        // All but the secret have a fixed length.
        let mut material = Zeroizing::new(Vec::with_capacity(24 + self.secret.len()));
        for rank in ranks {
            material.extend(rank.0.to_le_bytes());
        }
        for incarnation in incarnations {
            material.extend(incarnation.to_le_bytes());
        }
        material.extend_from_slice(&self.secret);
        Zeroizing::new(blake3::derive_key(purpose, &material))
    }

    fn direction(&self, ranks: [JobRank; 2], incarnations: [u64; 2]) -> Direction {
        let key = self.key(ranks, incarnations);
        #[cfg(feature = "encrypt")]
        if self.encrypts {
            return Direction::Cipher(Box::new(Cipher::new(key)));
        }
        Direction::Code(key)
    }

    /// The keys of a rank and a peer, each with its incarnation.
    pub(super) fn keys(&self, [rank, peer]: [(JobRank, u64); 2]) -> Box<Keys> {
        let of = |from: (JobRank, u64), to: (JobRank, u64)| {
            self.direction([from.0, to.0], [from.1, to.1])
        };
        Box::new(Keys {
            outgoing: of(rank, peer),
            incoming: of(peer, rank),
            next: 1,
            replays: Replays::default(),
        })
    }
}

/// The key of one direction.
enum Direction {
    Code(Key),
    #[cfg(feature = "encrypt")]
    Cipher(Box<Cipher>),
}

fn code(key: &Key, bytes: &[u8]) -> [u8; SEAL_BYTES] {
    let hash = blake3::keyed_hash(key, bytes);
    let mut code = [0; SEAL_BYTES];
    code.copy_from_slice(&hash.as_bytes()[..SEAL_BYTES]);
    code
}

/// Why a datagram is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// Its code is wrong.
    Forged,
    /// Its number has arrived before, or is so old that the rank does not know.
    Replayed,
}

/// Keys between a rank and a peer, and numbers of datagrams.
pub(super) struct Keys {
    outgoing: Direction,
    incoming: Direction,
    /// The number of the next datagram; 0 is none's.
    next: u64,
    replays: Replays,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// Takes the number of the next datagram; `None` once all have been used.
    ///
    /// A retransmitted record gets a new one, so that no nonce is used twice.
    pub(super) fn number(&mut self) -> Option<u64> {
        let number = self.next;
        self.next = number.checked_add(1)?;
        Some(number)
    }

    /// Seals header and record, which lie in `datagram` before `end`, with the number in the
    /// header; all that is sent.
    ///
    /// An encrypted one is made in `sealed`, as the record may have to be sent again.
    pub(super) fn seal<'a>(
        &mut self,
        number: u64,
        datagram: &'a mut [u8],
        end: usize,
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let all = end + SEAL_BYTES;
        match &mut self.outgoing {
            Direction::Code(key) => {
                let _ = (number, sealed);
                let code = code(key, datagram.get(..end)?);
                datagram.get_mut(end..all)?.copy_from_slice(&code);
                datagram.get(..all)
            }
            #[cfg(feature = "encrypt")]
            Direction::Cipher(cipher) => {
                let (header, record) = datagram.get(..end)?.split_at_checked(HEADER_BYTES)?;
                let to = sealed.get_mut(..all)?;
                let (to_header, rest) = to.split_at_mut(HEADER_BYTES);
                let (to_record, to_code) = rest.split_at_mut(record.len());
                to_header.copy_from_slice(header);
                to_record.copy_from_slice(record);
                let code = cipher.encrypt(number, header, to_record)?;
                to_code.copy_from_slice(&code);
                Some(to)
            }
        }
    }

    /// Opens a datagram of that number in its place.
    pub(super) fn open(&mut self, number: u64, datagram: &mut [u8]) -> Result<(), Refused> {
        if !self.replays.is_fresh(number) {
            return Err(Refused::Replayed);
        }
        if !self.opened(number, datagram).unwrap_or(false) {
            return Err(Refused::Forged);
        }
        self.replays.mark(number);
        Ok(())
    }

    /// Whether its code is right; `None` if it is too short for one.
    fn opened(&mut self, number: u64, datagram: &mut [u8]) -> Option<bool> {
        let (bytes, wanted) = datagram.split_last_chunk_mut::<SEAL_BYTES>()?;
        Some(match &mut self.incoming {
            // It takes as long for every wrong one.
            Direction::Code(key) => {
                let _ = number;
                let code = code(key, bytes);
                u128::from_le_bytes(code) ^ u128::from_le_bytes(*wanted) == 0
            }
            #[cfg(feature = "encrypt")]
            Direction::Cipher(cipher) => {
                let (header, record) = bytes.split_at_mut_checked(HEADER_BYTES)?;
                cipher.decrypt(number, header, record, *wanted)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    type Identity = (Vec<u8>, bool, [u32; 2], [u64; 2]);

    fn identity() -> impl Strategy<Value = Identity> {
        // Few values, so that identities differ in one part, or in none.
        let secret = prop::collection::vec(0_u8..2, 0..3);
        let rank = prop_oneof![0_u32..3, Just(0x0100_0000)];
        let incarnation = prop_oneof![1_u64..3, Just(1 << 32), Just(1 << 56)];
        let ranks = [rank.clone(), rank];
        (
            secret,
            any::<bool>(),
            ranks,
            [incarnation.clone(), incarnation],
        )
    }

    proptest! {
        /// Directions, ranks, incarnations (so restarts), secrets (so jobs) and uses of a secret
        /// have keys of their own, and the same ones give the same key.
        #[test]
        fn a_key_belongs_to_one_direction_of_one_pair(
            all in prop::collection::vec(identity(), 1..200),
        ) {
            let mut keys: HashMap<[u8; 32], Identity> = HashMap::new();
            for identity in all {
                let (secret, encrypts, ranks, incarnations) = identity.clone();
                let seal = match encrypts {
                    true => Seal::encrypting(&secret),
                    false => Seal::from_secret(&secret),
                };
                let key = *seal.key(ranks.map(JobRank), incarnations);
                let first = keys.entry(key).or_insert_with(|| identity.clone());
                prop_assert_eq!(&*first, &identity);
            }
        }
    }

    #[test]
    fn no_number_comes_twice_and_none_behind_the_last() {
        let end = |rank| (JobRank(rank), 7);
        let mut keys = Seal::encrypting(b"secret").keys([0, 1].map(end));
        assert_eq!([1, 2, 3].map(Some), [(); 3].map(|()| keys.number()));
        keys.next = u64::MAX - 1;
        assert_eq!(keys.number(), Some(u64::MAX - 1));
        assert_eq!([None; 3], [(); 3].map(|()| keys.number()));
    }

    /// What one rank seals the other opens, and each code is that of its header and record.
    #[test]
    fn only_the_peer_opens_what_a_rank_has_sealed() {
        let (here, there, third) = ((JobRank(0), 7), (JobRank(1), 8), (JobRank(2), 9));
        for seal in [Seal::from_secret(b"secret"), Seal::encrypting(b"secret")] {
            let mut keys = seal.keys([here, there]);
            let mut plain = vec![3; HEADER_BYTES + 40 + SEAL_BYTES];
            let mut room = vec![0; plain.len()];
            let end = HEADER_BYTES + 40;
            let sealed = keys.seal(5, &mut plain, end, &mut room).unwrap().to_vec();
            let hides = sealed[HEADER_BYTES..end] != [3; 40];
            assert_eq!(hides, seal.encrypts, "the record is open");
            let mut opened = sealed.clone();
            assert_eq!(seal.keys([there, here]).open(5, &mut opened), Ok(()));
            assert_eq!(opened[HEADER_BYTES..end], [3; 40]);
            let others = [
                seal.keys([here, there]),
                seal.keys([there, third]),
                seal.keys([(there.0, 9), here]),
                Seal {
                    secret: Zeroizing::new(b"Secret".to_vec()),
                    ..seal
                }
                .keys([there, here]),
            ];
            for mut other in others {
                let refused = other.open(5, &mut sealed.clone());
                assert_eq!(refused, Err(Refused::Forged));
            }
        }
    }
}
