//! Bytes that show their place: a payload that is shifted, cut, repeated or another one's is found.

use argonet_am::Delivery;

/// Bytes 8 `i` to 8 `i` + 7 of the pattern of `seed`.
#[inline(always)]
fn word(seed: u64, i: usize) -> [u8; 8] {
    let word = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (seed + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    (word ^ word >> 29).to_le_bytes()
}

/// `len` bytes of the pattern of `seed`.
pub(crate) fn bytes(seed: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (i, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word(seed.into(), i)[..chunk.len()]);
    }
    bytes
}

/// The first place where `bytes` differs from the pattern, to 8 bytes.
pub(crate) fn first_wrong(seed: u32, bytes: &[u8]) -> Option<usize> {
    let mut chunks = bytes.chunks(8).enumerate();
    let wrong = chunks.find(|(i, chunk)| **chunk != word(seed.into(), *i)[..chunk.len()]);
    wrong.map(|(i, _)| 8 * i)
}

/// Argument `i` of a message with tag `tag`: the tag first, then words with all bits in use.
pub(crate) fn arg(tag: u32, i: usize) -> u32 {
    if i == 0 {
        tag
    } else {
        (tag ^ 0x8000_0001)
            .wrapping_mul(0x9e37_79b1)
            .rotate_left(i as u32)
            ^ (i as u32) << 28
    }
}

/// `n` arguments of a message with tag `tag`.
pub(crate) fn args(tag: u32, n: usize) -> Vec<u32> {
    (0..n).map(|i| arg(tag, i)).collect()
}

/// The error in a message that carries patterns of its own tag, which is its first argument, or its
/// payload's length where it has no argument.
///
/// The arguments of one that `asks` are its own.
pub(crate) fn fault(delivery: &Delivery<'_>, asks: bool) -> Option<String> {
    let tag = match delivery.args() {
        [] => delivery.payload().len() as u32,
        [tag, ..] => *tag,
    };
    let wrong = (0..delivery.args().len()).find(|&i| delivery.args()[i] != arg(tag, i));
    if let Some(i) = wrong.filter(|_| !asks) {
        return Some(format!("argument {i} is {:#x}", delivery.args()[i]));
    }
    let payload = delivery.payload().to_vec();
    let wrong = first_wrong(tag, &payload)?;
    let len = payload.len();
    Some(format!("of {len} bytes, one from {wrong} on is wrong"))
}

/// A small generator of numbers that look random, the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_a_cut_and_another_seed_show() {
        let whole = bytes(7, 4096);
        assert_eq!(first_wrong(7, &whole), None);
        for shift in [1, 2, 8, 16, 64, 1024] {
            assert!(
                first_wrong(7, &whole[shift..shift + 16]).is_some(),
                "{shift}"
            );
        }
        assert!(first_wrong(8, &whole[..16]).is_some());
        let mut short = whole.clone();
        short[4095] ^= 1;
        assert_eq!(first_wrong(7, &short), Some(4088));
    }
}
