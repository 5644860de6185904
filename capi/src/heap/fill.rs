//! Patterns that fill memory when it is allocated or freed.

/// One byte again and again, or a word of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill([u8; 8]);

impl Fill {
    /// A number of 0 to 255 is one byte; any other, decimal or with `0x`, is a word; `NAN`, `qNAN`
    /// and `sNAN` are the words that these are as a `double`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let word = match text.to_ascii_lowercase().as_str() {
            "nan" | "qnan" => 0x7FF8_0000_0000_0001,
            "snan" => 0x7FF0_0000_0000_0001,
            number => match number.strip_prefix("0x") {
                Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok()?,
                Some(_) => return None,
                None if number.starts_with('-') => number.parse::<i64>().ok()? as u64,
                None => number.parse().ok()?,
            },
        };
        Some(match u8::try_from(word) {
            Ok(byte) => Self([byte; 8]),
            Err(_) => Self(word.to_ne_bytes()),
        })
    }

    pub(super) fn byte(self, at: usize) -> u8 {
        self.0[at % 8]
    }

    /// Fills memory.
    ///
    /// # Safety
    /// `bytes` bytes at `to` may be written.
    pub(super) unsafe fn write(self, to: *mut u8, bytes: usize) {
        for at in 0..bytes {
            // SAFETY: this function's contract.
            unsafe { to.add(at).write(self.byte(at)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fill;

    #[test]
    fn numbers_and_words_are_read() {
        assert_eq!(Fill::parse("0"), Some(Fill([0; 8])));
        assert_eq!(Fill::parse(" 0xFf "), Some(Fill([255; 8])));
        assert_eq!(Fill::parse("256"), Some(Fill(256u64.to_ne_bytes())));
        assert_eq!(Fill::parse("-1"), Some(Fill([255; 8])));
        for (word, quiet) in [("NAN", true), ("qNAN", true), ("sNAN", false)] {
            let Some(Fill(bytes)) = Fill::parse(word) else {
                panic!("{word} is not read");
            };
            let bits = u64::from_ne_bytes(bytes);
            assert!(f64::from_bits(bits).is_nan(), "{word}");
            assert_eq!(bits >> 51 & 1 == 1, quiet, "{word}");
        }
        for wrong in ["", "x", "0x", "0x+1", "1.5", "99999999999999999999"] {
            assert_eq!(Fill::parse(wrong), None, "{wrong}");
        }
    }
}
