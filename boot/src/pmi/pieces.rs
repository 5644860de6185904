//! Values of any bytes as texts that a store takes: hexadecimal digits, in pieces.
//!
//! ```text
//! piece 0: number of pieces, "-", digits      pieces 1, 2, ...: digits
//! ```

use std::fmt::Write;

/// The most pieces of a value.
const MAX_PIECES: usize = 1024;

/// The shortest piece that makes sense.
pub(super) const MIN_PIECE_BYTES: usize = 16;

/// The pieces of a value, none longer than `most` bytes; `None` if there would be too many.
pub(super) fn cut(value: &[u8], most: usize) -> Option<Vec<String>> {
    let mut digits = String::with_capacity(2 * value.len());
    for byte in value {
        let _ = write!(digits, "{byte:02x}");
    }
    // The head of the first piece is as long as that of the largest number.
    let head = MAX_PIECES.to_string().len() + 1;
    let most = most.checked_sub(head).filter(|most| *most > 0)?;
    let pieces: Vec<&str> = digits.as_bytes().chunks(most).map(text).collect();
    let count = pieces.len().max(1);
    let mut pieces: Vec<String> = pieces.into_iter().map(str::to_owned).collect();
    let first = pieces.first().map_or("", String::as_str);
    let first = format!("{count}-{first}");
    match pieces.first_mut() {
        Some(begin) => *begin = first,
        None => pieces.push(first),
    }
    (count <= MAX_PIECES).then_some(pieces)
}

fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

/// The number of pieces, and the digits of the first one; else why it is none.
pub(super) fn first(piece: &str) -> Result<(usize, &str), String> {
    let (count, digits) = piece.split_once('-').ok_or("it has no number of pieces")?;
    let number = count.parse().ok();
    let number = number.filter(|number| (1..=MAX_PIECES).contains(number));
    match number {
        Some(number) if count.bytes().all(|byte| byte.is_ascii_digit()) => Ok((number, digits)),
        _ => Err(format!("\"{count}\" is no number of pieces")),
    }
}

/// The bytes that the digits of all pieces stand for; else why they are none.
pub(super) fn joined(digits: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.ok_or_else(|| "it is not made of pairs of hexadecimal digits".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_back_from_pieces_of_any_length(
            value in proptest::collection::vec(any::<u8>(), 0..300),
            most in MIN_PIECE_BYTES..700,
        ) {
            let pieces = cut(&value, most).unwrap();
            prop_assert!(pieces.iter().all(|piece| piece.len() <= most));
            prop_assert!(pieces.iter().all(|piece| !piece.contains([' ', '=', '\n'])));
            let (count, digits) = first(&pieces[0]).unwrap();
            prop_assert_eq!(count, pieces.len());
            let digits = [digits, &pieces[1..].concat()].concat();
            prop_assert_eq!(joined(&digits).unwrap(), value);
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for piece in ["", "ff", "0-ff", "-ff", "1025-ff", "+1-ff", "x-ff"] {
            assert!(first(piece).is_err(), "{piece}");
        }
        assert_eq!(first("1-"), Ok((1, "")));
        for digits in ["f", "0g", "0F", "+1", "\u{fc}"] {
            assert!(joined(digits).is_err(), "{digits}");
        }
        assert_eq!(cut(&[0; 10_000], MIN_PIECE_BYTES), None, "too many");
        assert_eq!(cut(b"", 3), None, "no room");
    }
}
