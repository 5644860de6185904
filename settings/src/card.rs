//! Single-valued settings of a rank, in the few bytes of a value that it publishes for the others.
//!
//! ```text
//! for each single-valued setting that the user gave, in the order of the table:
//! | byte 0       | byte 1                  | then                              |
//! | place in the | length of the text, or  | the text as given, or             |
//! | table        | 255: a hash follows     | the first HASH_BYTES of its hash  |
//! ```
//!
//! All hashes together always fit, so that a setting that differs can always be named; short texts
//! are there as they are as long as there is room, so that both values can be shown.

use crate::row::{Row, Scope};
use crate::settings::Settings;
use crate::table;

/// Bytes of a card at most.
pub const CARD_BYTES: usize = 240;

/// Single-valued settings at most; more would leave too few bytes for a hash.
///
/// A test compares the table with it.
const MAX_SINGLE: usize = 40;

/// Bytes of a hash, so that all fit when every single-valued setting was given.
const HASH_BYTES: usize = CARD_BYTES / MAX_SINGLE - 2;

/// In the place of a length: a hash follows.
const HASHED: u8 = 255;

/// A single-valued setting that the user gave to two ranks in different ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The variable.
    pub name: &'static str,
    /// The value of this rank.
    pub own: Option<String>,
    /// The value of the other rank.
    pub other: OtherValue,
}

/// Knowledge about another rank's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherValue {
    /// It was not given.
    NotGiven,
    /// The text.
    Text(String),
    /// Another text, too long to be published.
    Long,
}

/// The single-valued settings that have an effect, in the order of the table.
fn single() -> impl Iterator<Item = &'static Row> {
    let used = table::typed_constants().map(|constant| constant.row);
    used.filter(|row| row.scope == Scope::Job)
}

fn hash(text: &[u8]) -> [u8; HASH_BYTES] {
    let mut short = [0; HASH_BYTES];
    short.copy_from_slice(&blake3::hash(text).as_bytes()[..HASH_BYTES]);
    short
}

impl Settings {
    /// The card to publish for [`difference`](Self::difference): at most [`CARD_BYTES`].
    #[must_use]
    pub fn card(&self) -> Vec<u8> {
        let given: Vec<(u8, &str)> = (0..)
            .zip(single())
            .filter_map(|(place, row)| Some((place, self.given_text(row)?)))
            .collect();
        let hashed = |text: &str| text.len() > HASH_BYTES;
        let least = |text: &str| 2 + text.len().min(HASH_BYTES);
        let mut room = CARD_BYTES - given.iter().map(|(_, text)| least(text)).sum::<usize>();
        let mut card = Vec::with_capacity(CARD_BYTES);
        for (place, text) in given {
            let more = text.len().saturating_sub(HASH_BYTES);
            if hashed(text) && more > room {
                card.extend([place, HASHED]);
                card.extend(hash(text.as_bytes()));
            } else {
                room -= more;
                // Shorter than a card.
                card.extend([place, text.len() as u8]);
                card.extend(text.as_bytes());
            }
        }
        card
    }

    /// The first single-valued setting that the user gave to this rank otherwise than to the rank
    /// whose card this is.
    #[must_use]
    pub fn difference(&self, card: &[u8]) -> Option<Difference> {
        let mut rest = card;
        for (place, row) in (0..).zip(single()) {
            let entry = entry(&mut rest, place);
            let own = self.given_text(row);
            let same = match (own, entry) {
                (None, None) => true,
                (Some(text), Some(Entry::Text(other))) => text.as_bytes() == other,
                (Some(text), Some(Entry::Hash(other))) => hash(text.as_bytes()) == *other,
                _ => false,
            };
            if !same {
                let other = match entry {
                    None => OtherValue::NotGiven,
                    Some(Entry::Text(text)) => {
                        OtherValue::Text(String::from_utf8_lossy(text).into_owned())
                    }
                    Some(Entry::Hash(_)) => OtherValue::Long,
                };
                let own = own.map(str::to_owned);
                let name = row.name;
                return Some(Difference { name, own, other });
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Entry<'a> {
    Text(&'a [u8]),
    Hash(&'a [u8]),
}

/// Takes the entry of `place` off the front, if it comes next.
///
/// An entry that is cut short is none.
fn entry<'a>(rest: &mut &'a [u8], place: u8) -> Option<Entry<'a>> {
    let [found, len, after @ ..] = *rest else {
        return None;
    };
    if *found != place {
        return None;
    }
    let is_hash = *len == HASHED;
    let len = if is_hash {
        HASH_BYTES
    } else {
        usize::from(*len)
    };
    let (content, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(if is_hash {
        Entry::Hash(content)
    } else {
        Entry::Text(content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_fits() {
        let count = single().count();
        assert!(
            (1..=MAX_SINGLE).contains(&count),
            "{count} single-valued settings; the card must hold a hash of each"
        );
        const { assert!(HASH_BYTES >= 4) };
    }

    fn with(value: impl Fn(usize) -> String) -> Settings {
        let mut settings = Settings::default();
        for (i, row) in single().enumerate() {
            settings.give(row, &value(i));
        }
        settings
    }

    #[test]
    fn a_full_card_names_each_difference() {
        let all = with(|_| "x".repeat(300));
        assert!(all.card().len() <= CARD_BYTES);
        assert_eq!(all.difference(&all.card()), None);
        for (i, row) in single().enumerate() {
            // At the very end.
            let odd = with(|at| {
                if at == i {
                    "x".repeat(299) + "y"
                } else {
                    "x".repeat(300)
                }
            });
            let found = odd.difference(&all.card()).expect(row.name);
            assert_eq!((found.name, found.other), (row.name, OtherValue::Long));
            assert_eq!(found.own, Some("x".repeat(299) + "y"));
        }
    }

    #[test]
    fn short_values_are_shown_and_missing_ones_named() {
        let row = single().nth(1).expect("several");
        let (mut one, mut two, none) = (
            Settings::default(),
            Settings::default(),
            Settings::default(),
        );
        one.give(row, "64MB");
        two.give(row, "128MB");
        let found = two.difference(&one.card()).unwrap();
        assert_eq!(
            (found.name, found.own.as_deref()),
            (row.name, Some("128MB"))
        );
        assert_eq!(found.other, OtherValue::Text("64MB".into()));
        let found = none.difference(&one.card()).unwrap();
        assert_eq!((found.name, found.own), (row.name, None));
        let found = one.difference(&none.card()).unwrap();
        assert_eq!((found.name, found.other), (row.name, OtherValue::NotGiven));
        assert_eq!(one.difference(&one.card()), None);
    }

    #[test]
    fn a_text_in_one_card_and_a_hash_in_another_are_compared() {
        // As long as fits once; with others given too it is hashed.
        let row = single().next().expect("one");
        let text = "z".repeat(100);
        let mut alone = Settings::default();
        alone.give(row, &text);
        let mut crowded = with(|_| "w".repeat(20));
        crowded.give(row, &text);
        // The same text in both, so the first difference is another setting.
        let found = crowded.difference(&alone.card()).unwrap();
        assert_ne!(found.name, row.name);
        let found = alone.difference(&crowded.card()).unwrap();
        assert_ne!(found.name, row.name);
    }

    #[test]
    fn a_card_of_garbage_does_no_harm() {
        let all = with(|i| format!("value {i}"));
        for len in 0..CARD_BYTES {
            for byte in [0, 1, 7, 254, 255] {
                assert!(all.difference(&vec![byte; len]).is_some());
            }
            let _ = Settings::default().difference(&vec![0; len]);
        }
    }
}
