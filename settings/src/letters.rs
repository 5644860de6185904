//! Sets of the letters by which traces and statistics are chosen: `GPA`, or `^X` for all but X.

use core::fmt;

/// Subjects of records of a trace, one letter each, as GASNet has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Letter {
    /// `G`: gets.
    Get,
    /// `P`: puts.
    Put,
    /// `R`: remote atomic operations.
    Atomic,
    /// `S`: tests of operations, and waits.
    Sync,
    /// `W`: collective operations but for barriers.
    Collective,
    /// `B`: barriers.
    Barrier,
    /// `L`: locks.
    Lock,
    /// `A`: active messages.
    Message,
    /// `X`: polls.
    Poll,
    /// `I`: reports of the library.
    Info,
    /// `O`: objects that are made or changed.
    Object,
    /// `C`: work of the conduit.
    Conduit,
    /// `D`: addresses and bytes of what `G`, `P` and `A` have.
    Detail,
    /// `N`: lines of the client's source.
    Line,
    /// `H`: the client's own messages.
    Client,
    /// `U`: records that are always written.
    Always,
}

/// The letters, in the order of [`Letter`].
const LETTERS: &str = "GPRSWBLAXIOCDNHU";

impl Letter {
    /// The letter itself.
    #[must_use]
    pub fn letter(self) -> char {
        char::from(LETTERS.as_bytes()[self as usize])
    }
}

/// Some of the letters.
///
/// `U` is always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters(u16);

impl Letters {
    /// All of them.
    pub const ALL: Self = Self(u16::MAX);

    /// Reads letters, or `^` and letters that are left out; `None` if something else is among them.
    ///
    /// Capitals only, so that words are not taken for letters. Blanks do not count; nothing means
    /// all.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (complement, listed) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (text.is_empty(), text),
        };
        let mut bits = 0u16;
        for letter in listed.chars().filter(|c| !c.is_whitespace()) {
            bits |= 1 << LETTERS.find(letter)?;
        }
        let bits = if complement { !bits } else { bits };
        Some(Self(bits | 1 << Letter::Always as u8))
    }

    /// Whether `letter` is one of them.
    #[must_use]
    pub const fn contains(self, letter: Letter) -> bool {
        self.0 >> letter as u8 & 1 != 0
    }

    /// One bit for each letter, in the order of [`Letter`].
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The letters of [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits | 1 << Letter::Always as u8)
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = |(bit, _): &(usize, char)| self.0 >> bit & 1 != 0;
        LETTERS
            .chars()
            .enumerate()
            .filter(held)
            .try_for_each(|(_, letter)| fmt::Write::write_char(f, letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_all_but_some() {
        for (text, shown) in [
            ("GP", "GPU"),
            (" P G ", "GPU"),
            ("^X", "GPRSWBLAIOCDNHU"),
            ("^U", "GPRSWBLAXIOCDNHU"),
            ("^", "GPRSWBLAXIOCDNHU"),
            ("", "GPRSWBLAXIOCDNHU"),
            ("U", "U"),
            ("^GPRSWBLAXIOCDNHU", "U"),
        ] {
            assert_eq!(Letters::parse(text).unwrap().to_string(), shown, "{text}");
        }
        for bad in ["GZ", "G,P", "G^P", "^^", "7", "all"] {
            assert_eq!(Letters::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_letter_is_its_own() {
        let all = [
            Letter::Get,
            Letter::Put,
            Letter::Atomic,
            Letter::Sync,
            Letter::Collective,
            Letter::Barrier,
            Letter::Lock,
            Letter::Message,
            Letter::Poll,
            Letter::Info,
            Letter::Object,
            Letter::Conduit,
            Letter::Detail,
            Letter::Line,
            Letter::Client,
            Letter::Always,
        ];
        let spelt: String = all.iter().map(|letter| letter.letter()).collect();
        assert_eq!(spelt, LETTERS);
        for letter in all {
            let only = Letters::parse(&letter.letter().to_string()).unwrap();
            let held: Vec<_> = all.iter().filter(|l| only.contains(**l)).collect();
            let expected = if letter == Letter::Always { 1 } else { 2 };
            assert!(only.contains(letter) && held.len() == expected);
            assert_eq!(Letters::from_bits(only.bits()), only);
        }
    }
}
