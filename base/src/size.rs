//! Sizes in bytes as users write them in settings: `4096`, `64.5MB`, `1 GiB`.
//!
//! All units count in powers of 1024, with or without the `i`: that is how GASNet reads `KB`, `MB`
//! and `GB`, and a setting must not change its value when a program moves to argonet.

use core::fmt;

use thiserror::Error;

/// Why a text is not a size.
///
/// The message quotes the text and says what is allowed; the caller adds the name of the setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// The text is empty or holds only blanks.
    #[error("an empty text is not a size; {ALLOWED}")]
    Empty,
    /// The text is not a decimal number with an optional unit.
    #[error("'{text}' is not a size; {ALLOWED}")]
    NotASize {
        /// The text as given.
        text: String,
    },
    /// The number is well-formed, the unit is not known.
    #[error("'{unit}' in '{text}' is not a unit; {ALLOWED}")]
    UnknownUnit {
        /// The text as given.
        text: String,
        /// The part that stands where a unit should.
        unit: String,
    },
    /// The number is negative.
    #[error("'{text}' is negative; {ALLOWED}")]
    Negative {
        /// The text as given.
        text: String,
    },
    /// The number has a fraction, and the unit is single bytes.
    #[error("'{text}' is not a whole number of bytes; {ALLOWED}")]
    FractionOfByte {
        /// The text as given.
        text: String,
    },
    /// The size does not fit 64 bits.
    #[error("'{text}' is larger than 2^64-1 bytes; {ALLOWED}")]
    TooLarge {
        /// The text as given.
        text: String,
    },
}

const ALLOWED: &str = "allowed is a number of bytes or a number with the unit KB, MB, GB or TB (1024-based), such as 4096 or 64.5MB";

/// Digits after the point that count; further ones cannot change a whole number of bytes below
/// 2^64 by more than one.
const FRACTION_DIGITS: usize = 18;

/// Reads a size as users write it.
///
/// A decimal number, with or without a fraction, then optional blanks, then an optional unit in
/// any case: `B`, `K`, `KB`, `KiB`, `M`, `MB`, `MiB`, `G`, `GB`, `GiB`, `T`, `TB`, `TiB`. Every
/// unit is 1024-based. A fraction is exact in decimal and the result is rounded down to a byte, so
/// `64.5MB` is 67633152 on every machine.
///
/// # Errors
///
/// Anything else is refused: signs, hexadecimal, exponents, `nan`, `inf`, unknown units, a
/// fraction of a byte, and more than 2^64-1 bytes.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(SizeError::Empty);
    }
    let owned = || text.to_owned();
    if let Some(rest) = trimmed.strip_prefix('-') {
        return Err(
            if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                SizeError::Negative { text: owned() }
            } else {
                SizeError::NotASize { text: owned() }
            },
        );
    }

    let number_len = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_len);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(SizeError::NotASize { text: owned() });
    }
    let unit = unit.trim_start();
    let shift = unit_shift(unit).ok_or_else(|| SizeError::UnknownUnit {
        text: owned(),
        unit: unit.to_owned(),
    })?;

    let too_large = || SizeError::TooLarge { text: owned() };
    let whole = digits(whole).ok_or_else(too_large)?;
    let fraction = fraction.trim_end_matches('0');
    if shift == 0 && !fraction.is_empty() {
        return Err(SizeError::FractionOfByte { text: owned() });
    }
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let scale = 10_u128.pow(fraction.len() as u32);
    // Below 10^18 * 2^40 < 2^100: no overflow in 128 bits.
    let part = (digits(fraction).ok_or_else(too_large)? << shift) / scale;
    whole
        .checked_mul(1 << shift)
        .and_then(|bytes| bytes.checked_add(part))
        .and_then(|bytes| u64::try_from(bytes).ok())
        .ok_or_else(too_large)
}

/// The value of a string of ASCII digits (zero when empty), `None` when it exceeds 64 bits.
fn digits(text: &str) -> Option<u128> {
    let mut value = 0_u64;
    for digit in text.bytes() {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some(u128::from(value))
}

fn unit_shift(unit: &str) -> Option<u32> {
    match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    }
}

/// A number of bytes that displays as people read it: `512 B`, `64.5 MiB`, `1 TiB`.
///
/// At most two decimals, rounded down, in a form that [`parse_size`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanSize(pub u64);

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, unit) = match self.0 {
            0..0x400 => return write!(f, "{} B", self.0),
            0x400..0x10_0000 => (10, "KiB"),
            0x10_0000..0x4000_0000 => (20, "MiB"),
            0x4000_0000..0x100_0000_0000 => (30, "GiB"),
            _ => (40, "TiB"),
        };
        let whole = self.0 >> shift;
        let rest = u128::from(self.0) & ((1 << shift) - 1);
        let hundredths = (rest * 100) >> shift;
        if hundredths == 0 {
            write!(f, "{whole} {unit}")
        } else if hundredths % 10 == 0 {
            write!(f, "{whole}.{} {unit}", hundredths / 10)
        } else {
            write!(f, "{whole}.{hundredths:02} {unit}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HumanSize, SizeError, parse_size};

    #[test]
    fn sizes_that_users_write() {
        let mib = 1 << 20;
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("4096.0", 4096),
            ("67108864", 64 * mib),
            ("64.5MB", 64 * mib + mib / 2),
            ("64.0MB", 64 * mib),
            ("1 GiB", 1 << 30),
            (" 1gib ", 1 << 30),
            ("16K", 16 << 10),
            ("16kb", 16 << 10),
            ("16KiB", 16 << 10),
            ("3M", 3 * mib),
            (".5G", 1 << 29),
            ("2.T", 2 << 40),
            ("0.1KB", 102),
            ("1.3GB", 1_395_864_371),
            ("18446744073709551615", u64::MAX),
            ("0.0000000000000000000000001T", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn digits_beyond_the_eighteenth_do_not_count() {
        let bytes = parse_size("16777215.99999999999999999999TB").unwrap();
        assert!(u64::MAX - bytes < 4, "{bytes}");
    }

    #[test]
    fn bad_sizes_are_refused_with_a_reason() {
        type Is = fn(&SizeError) -> bool;
        let not_a_size: Is = |e| matches!(e, SizeError::NotASize { .. });
        let unit: Is = |e| matches!(e, SizeError::UnknownUnit { .. });
        let negative: Is = |e| matches!(e, SizeError::Negative { .. });
        let large: Is = |e| matches!(e, SizeError::TooLarge { .. });
        let byte: Is = |e| matches!(e, SizeError::FractionOfByte { .. });
        let empty: Is = |e| matches!(e, SizeError::Empty);
        for (text, is) in [
            ("", empty),
            ("  ", empty),
            ("-1", negative),
            ("-.5G", negative),
            ("-", not_a_size),
            ("--1", not_a_size),
            ("+1", not_a_size),
            (".", not_a_size),
            ("..5", not_a_size),
            ("1.2.3", not_a_size),
            ("MB", not_a_size),
            ("nan", not_a_size),
            ("NaN MB", not_a_size),
            ("inf", not_a_size),
            ("1e9", unit),
            ("0x1000", unit),
            ("1 2", unit),
            ("4 EB", unit),
            ("4KBB", unit),
            ("4K B", unit),
            ("1\u{ff13}", unit),
            ("0.5", byte),
            ("1.5B", byte),
            ("18446744073709551616", large),
            ("99999999999999999999999999", large),
            ("16777216TB", large),
        ] {
            let error = parse_size(text).expect_err(text);
            assert!(is(&error), "{text}: {error}");
            assert!(error.to_string().contains("allowed is"), "{error}");
        }
    }

    #[test]
    fn display_is_short_and_reads_back() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (64 << 20 | 1 << 19, "64.5 MiB"),
            ((1 << 30) + (1 << 30) / 100 * 5, "1.04 GiB"),
            (1 << 40, "1 TiB"),
            (u64::MAX, "16777215.99 TiB"),
        ] {
            assert_eq!(HumanSize(bytes).to_string(), text);
            let back = parse_size(text).unwrap();
            assert!(back <= bytes && bytes - back <= bytes / 100 + 1, "{text}");
        }
    }
}
