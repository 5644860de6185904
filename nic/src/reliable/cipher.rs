//! Encryption of one direction between two ranks (AES-256-GCM).

use super::datagram::SEAL_BYTES;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

/// Datagrams that a key encrypts: 2^20, the bits of a number above.
///
/// RFC 9001 (B.1) has 2^23 for packets of up to 64 KiB.
const KEY_BITS: u32 = 20;

/// Which of the keys of a direction encrypts the datagram of this number.
fn epoch_of(number: u64) -> u64 {
    number >> KEY_BITS
}

/// The nonce of a number.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..size_of::<u64>()].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// A key, and which one it is.
struct EpochKey {
    epoch: u64,
    key: LessSafeKey,
}

/// The keys of one direction: the newest that was used, and the one before or after it.
pub(super) struct Cipher {
    secret: Zeroizing<[u8; 32]>,
    newest: u64,
    /// By the last bit of the epoch; each is made when it is first needed.
    keys: [Option<EpochKey>; 2],
}

impl Cipher {
    /// With keys derived from a secret that no other direction has.
    pub(super) fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        Self {
            newest: 0,
            keys: [None, None],
            secret,
        }
    }

    fn derive(secret: &[u8; 32], epoch: u64) -> EpochKey {
        let bytes = Zeroizing::new(*blake3::keyed_hash(secret, &epoch.to_le_bytes()).as_bytes());
        let key = UnboundKey::new(&AES_256_GCM, &*bytes).expect("a key of 32 bytes");
        EpochKey {
            epoch,
            key: LessSafeKey::new(key),
        }
    }

    /// Encrypts a record in its place; the code of header and record.
    pub(super) fn encrypt(
        &mut self,
        number: u64,
        header: &[u8],
        record: &mut [u8],
    ) -> Option<[u8; SEAL_BYTES]> {
        let epoch = epoch_of(number);
        let place = &mut self.keys[(epoch % 2) as usize];
        place.take_if(|key| key.epoch != epoch);
        let EpochKey { key, .. } = place.get_or_insert_with(|| Self::derive(&self.secret, epoch));
        let code = key.seal_in_place_separate_tag(nonce(number), Aad::from(header), record);
        code.ok()?.as_ref().try_into().ok()
    }

    /// Decrypts a record in its place; whether the code is that of header and record.
    ///
    /// The record is worthless where it is not.
    pub(super) fn decrypt(
        &mut self,
        number: u64,
        header: &[u8],
        record: &mut [u8],
        code: [u8; SEAL_BYTES],
    ) -> bool {
        let epoch = epoch_of(number);
        // No rank sends as many numbers as a key has without an answer.
        if epoch > self.newest.saturating_add(1) {
            return false;
        }
        let place = &mut self.keys[(epoch % 2) as usize];
        let known = place.as_ref().filter(|key| key.epoch == epoch);
        let derived = known.is_none().then(|| Self::derive(&self.secret, epoch));
        let Some(EpochKey { key, .. }) = known.or(derived.as_ref()) else {
            return false;
        };
        let aad = Aad::from(header);
        let opened =
            key.open_in_place_separate_tag(nonce(number), aad, Tag::from(code), record, 0..);
        if opened.is_err() {
            return false;
        }
        // A key is kept for what a peer has sent, not for what a stranger has.
        if derived.is_some() {
            *place = derived;
        }
        self.newest = self.newest.max(epoch);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &[u8] = b"header";
    const LAST: u64 = (1 << KEY_BITS) - 1;

    fn pair() -> [Cipher; 2] {
        [0, 1].map(|_| Cipher::new(Zeroizing::new([7; 32])))
    }

    fn sealed(from: &mut Cipher, number: u64) -> (Vec<u8>, [u8; SEAL_BYTES]) {
        let mut record = b"a record".to_vec();
        let code = from.encrypt(number, HEADER, &mut record).unwrap();
        (record, code)
    }

    fn opens(to: &mut Cipher, number: u64, (record, code): &(Vec<u8>, [u8; SEAL_BYTES])) -> bool {
        let mut record = record.clone();
        let opened = to.decrypt(number, HEADER, &mut record, *code);
        assert!(!opened || record == b"a record");
        opened
    }

    /// Over the change of a key in any order, and far behind it.
    #[test]
    fn keys_change_with_the_numbers_of_datagrams() {
        let [mut from, mut to] = pair();
        for first in [LAST, 2 * LAST + 1, 3 * LAST + 2] {
            let numbers = [first - 1, first, first + 1, first + 2];
            let all = numbers.map(|number| sealed(&mut from, number));
            for at in [2, 0, 3, 1] {
                assert!(opens(&mut to, numbers[at], &all[at]), "{:#x}", numbers[at]);
            }
            // Another number has another key or nonce.
            for (at, other) in [(0, 1), (1, 2), (2, 1)] {
                assert!(!opens(&mut to, numbers[other], &all[at]));
            }
        }
    }

    /// The same bytes under the same number of two keys would be the same.
    #[test]
    fn each_key_is_another_one() {
        let keys = [0, 1, 2, 3].map(|epoch| Cipher::derive(&[7; 32], epoch));
        let codes = keys.map(|key| {
            let code = key
                .key
                .seal_in_place_separate_tag(nonce(1), Aad::from(HEADER), &mut []);
            code.unwrap().as_ref().to_vec()
        });
        for (at, code) in codes.iter().enumerate() {
            assert!(!codes[at + 1..].contains(code));
        }
    }

    /// What strangers send neither changes keys nor makes a rank derive one far ahead.
    #[test]
    fn forged_numbers_change_no_keys() {
        let [mut from, mut to] = pair();
        let now = sealed(&mut from, 5);
        for number in [LAST + 1, 2 * LAST + 2, u64::MAX] {
            assert!(!opens(&mut to, number, &now));
        }
        assert!(to.newest == 0 && to.keys.iter().all(Option::is_none));
        assert!(opens(&mut to, 5, &now));
        let epochs = to
            .keys
            .each_ref()
            .map(|key| key.as_ref().map(|key| key.epoch));
        assert_eq!(epochs, [Some(0), None]);
        // Not even with the right code: it skips a key.
        let far = sealed(&mut from, 2 * LAST + 2);
        assert!(!opens(&mut to, 2 * LAST + 2, &far));
    }

    proptest! {
        /// Numbers are distinct and so are their nonces.
        #[test]
        fn a_nonce_belongs_to_one_number(a: u64, b: u64) {
            let [one, other] = [a, b].map(nonce);
            prop_assert_eq!(one.as_ref() == other.as_ref(), a == b);
        }
    }
}
