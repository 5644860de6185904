//! Values of the key store on their way between hosts.
//!
//! ```text
//! 0   4   rank
//! 4   1   key
//! 5   4   bytes of the value, at most MAX_VALUE_BYTES
//! 9   .   value
//! ```

use argonet_base::JobRank;

use crate::bootstrap::{KEYS, MAX_VALUE_BYTES};
use crate::hosts::frame::Garbled;
use crate::hosts::message::BULK_BYTES;
use crate::hosts::words::{Reader, put_bytes, put_u32};

/// A published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) rank: JobRank,
    /// Below [`KEYS`].
    pub(crate) key: usize,
    pub(crate) bytes: &'a [u8],
}

impl Value<'_> {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        debug_assert!(self.bytes.len() <= MAX_VALUE_BYTES);
        put_u32(to, self.rank.0);
        to.push(self.key as u8);
        put_bytes(to, self.bytes);
    }

    const fn encoded_bytes(&self) -> usize {
        9 + self.bytes.len()
    }
}

/// The values in a body.
pub(crate) fn parse(body: &[u8]) -> Result<Vec<Value<'_>>, Garbled> {
    let mut reader = Reader::new(body);
    let mut values = Vec::new();
    while !reader.is_empty() {
        let value = next(&mut reader);
        values.push(value.ok_or_else(|| Garbled("a value that is none".into()))?);
    }
    Ok(values)
}

fn next<'a>(reader: &mut Reader<'a>) -> Option<Value<'a>> {
    let (rank, key) = (JobRank(reader.u32()?), usize::from(reader.u8()?));
    let bytes = reader.bytes(MAX_VALUE_BYTES)?;
    (key < KEYS).then_some(Value { rank, key, bytes })
}

/// Cuts encoded values into parts that fit a message.
pub(crate) fn pieces(mut values: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while values.len() > BULK_BYTES {
        let mut reader = Reader::new(values);
        let mut end = 0;
        while let Some(value) = next(&mut reader)
            && end + value.encoded_bytes() <= BULK_BYTES
        {
            end += value.encoded_bytes();
        }
        if end == 0 {
            break; // No values, so nothing to cut.
        }
        let (piece, rest) = values.split_at(end);
        pieces.push(piece);
        values = rest;
    }
    if !values.is_empty() {
        pieces.push(values);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_back_in_pieces_that_fit(
            all in vec((any::<u32>(), 0..KEYS, vec(any::<u8>(), 0..=MAX_VALUE_BYTES)), 0..700),
        ) {
            let values: Vec<Value<'_>> = all
                .iter()
                .map(|(rank, key, bytes)| Value { rank: JobRank(*rank), key: *key, bytes })
                .collect();
            let mut encoded = Vec::new();
            values.iter().for_each(|v| v.encode(&mut encoded));
            let mut read = Vec::new();
            for piece in pieces(&encoded) {
                prop_assert!((1..=BULK_BYTES).contains(&piece.len()));
                read.extend(parse(piece).unwrap());
            }
            prop_assert_eq!(read, values);
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn bad_keys_and_lengths_are_refused() {
        let encoded = |key: usize, len: u32| {
            let mut bytes = vec![0, 0, 0, 0, key as u8];
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.resize(9 + MAX_VALUE_BYTES + 1, 0);
            bytes.truncate(9 + len as usize);
            bytes
        };
        assert!(parse(&encoded(KEYS - 1, MAX_VALUE_BYTES as u32)).is_ok());
        assert!(parse(&encoded(KEYS, 1)).is_err());
        assert!(parse(&encoded(0, MAX_VALUE_BYTES as u32 + 1)).is_err());
        assert!(parse(&encoded(0, 9)[..10]).is_err());
    }
}
