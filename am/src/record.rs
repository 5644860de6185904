//! The record: how a message lies in a ring of 16-byte units.
//!
//! ```text
//! unit 0   byte 0     1        2..4     4..8      8..16
//!          kind|nargs handler  units    arg 0     short:  args 1, 2
//!                                                 medium: payload length (u32), arg 1
//!                                                 long:   segment offset (u64)
//! unit 1   short:  args 3..7        medium: args 2..6    long: length (u64), args 1, 2
//! ...      further arguments four a unit, then the payload of a medium, 16-byte aligned
//! ```
//!
//! Byte 0 holds the kind in its low three bits (1 short, 2 medium, 3 long, 4 skip) and the number
//! of arguments in the high five. A kind is never zero, so the first word of a record is never
//! zero: a zero word at the reader's position means "nothing yet". `units` is the length of the
//! whole record, which may be larger than its contents need (a negotiated payload that shrank).
//! A skip covers the rest of the ring when the next record would not fit before its end.

use crate::limits::{MAX_CARRIED, MAX_MEDIUM};
use crate::message::Category;
use argonet_base::HandlerIndex;

/// Bytes of one unit.
pub const UNIT: usize = 16;

/// Words of the largest header: unit 0, length and 17 arguments.
pub const MAX_HEADER_WORDS: usize = 12;

/// Units of the largest record.
pub const MAX_UNITS: u32 = (header_units(Category::Medium, MAX_CARRIED) + MAX_MEDIUM / UNIT) as u32;

const KIND_SKIP: u8 = 4;

/// Units that kind and arguments take, before the payload of a medium.
#[inline]
#[must_use]
pub const fn header_units(category: Category, nargs: usize) -> usize {
    // Bytes: 4 fixed, the arguments, and the length or offset fields of the category.
    let fields = match category {
        Category::Short => 4,
        Category::Medium => 8,
        Category::Long => 20,
    };
    // Argument 0 has its place in word 0 whether it is used or not.
    let args = if nargs == 0 { 1 } else { nargs };
    (fields + args * 4).div_ceil(UNIT)
}

/// Units of a whole record.
#[inline]
#[must_use]
pub const fn record_units(category: Category, nargs: usize, payload: usize) -> u32 {
    let inline_payload = match category {
        Category::Medium => payload.div_ceil(UNIT),
        Category::Short | Category::Long => 0,
    };
    (header_units(category, nargs) + inline_payload) as u32
}

/// The first word of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head(pub u64);

/// Why a record that arrived cannot be used.
///
/// The peer that wrote it is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The kind is none that exists.
    #[error("unknown record kind {0}")]
    Kind(u8),
    /// More arguments than a record can carry.
    #[error("{0} arguments, at most {MAX_CARRIED} can be carried")]
    Args(usize),
    /// The record is shorter than its contents or reaches past the end of its ring.
    #[error("record of {units} units where {needed} are needed and {available} are left")]
    Units {
        /// Units the record claims.
        units: u32,
        /// Units its contents need.
        needed: u32,
        /// Units up to the end of the ring.
        available: u32,
    },
    /// The payload is longer than the category allows.
    #[error("payload of {len} bytes, at most {max} are allowed")]
    Payload {
        /// Claimed length.
        len: u64,
        /// Limit.
        max: u64,
    },
    /// A frame that does not follow the one before it in its stream.
    #[error("a frame at position {got} of its stream where {expected} is expected")]
    Position {
        /// Low bits of where it says it is.
        got: u32,
        /// Low bits of where the stream stands.
        expected: u32,
    },
    /// It says that more was taken, granted or answered than can have been.
    #[error("{what} up to {got}, where at most {most} is possible")]
    Account {
        /// Which account.
        what: &'static str,
        /// Its value.
        got: u64,
        /// Its limit.
        most: u64,
    },
}

/// The kind of a record, by its first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A message.
    Message(Category),
    /// Unused units up to the end of the ring.
    Skip,
}

impl Head {
    /// First word of a message.
    #[inline(always)]
    #[must_use]
    pub const fn message(
        category: Category,
        handler: HandlerIndex,
        nargs: usize,
        arg0: u32,
        units: u32,
    ) -> Self {
        Head(
            (category as u64)
                | (nargs as u64) << 3
                | (handler.0 as u64) << 8
                | (units as u64) << 16
                | (arg0 as u64) << 32,
        )
    }

    /// First word of a skip.
    #[inline]
    #[must_use]
    pub const fn skip(units: u32) -> Self {
        Head(KIND_SKIP as u64 | (units as u64) << 16)
    }

    /// Kind of the record.
    #[inline(always)]
    pub const fn kind(self) -> Result<Kind, RecordError> {
        match (self.0 & 7) as u8 {
            1 => Ok(Kind::Message(Category::Short)),
            2 => Ok(Kind::Message(Category::Medium)),
            3 => Ok(Kind::Message(Category::Long)),
            KIND_SKIP => Ok(Kind::Skip),
            other => Err(RecordError::Kind(other)),
        }
    }

    /// Whether it is a short message of one unit with at most three arguments, which needs no
    /// further check.
    #[inline(always)]
    #[must_use]
    pub const fn is_one_unit_short(self) -> bool {
        // Kind 1, the high bits of the number of arguments 0, length 1.
        self.0 & 0xffff_00e7 == 0x0001_0001
    }

    /// Number of arguments, unchecked.
    #[inline(always)]
    #[must_use]
    pub const fn nargs(self) -> usize {
        (self.0 as u8 >> 3) as usize
    }

    /// Handler that the message names.
    #[inline(always)]
    #[must_use]
    pub const fn handler(self) -> HandlerIndex {
        HandlerIndex((self.0 >> 8) as u8)
    }

    /// Length of the record in units.
    #[inline(always)]
    #[must_use]
    pub const fn units(self) -> u32 {
        (self.0 >> 16) as u16 as u32
    }

    /// Argument 0.
    #[inline(always)]
    #[must_use]
    pub const fn arg0(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A short message of one unit, packed: the commonest message travels in two registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Short {
    /// First word.
    pub head: Head,
    /// Second word: arguments 1 and 2.
    pub rest: u64,
}

impl Short {
    /// Most arguments that fit.
    pub const MAX_ARGS: usize = 3;

    /// Packs a message, if it has few enough arguments.
    #[inline(always)]
    #[must_use]
    pub fn pack(handler: HandlerIndex, args: &[u32]) -> Option<Self> {
        if args.len() > Self::MAX_ARGS {
            return None;
        }
        let arg = |i: usize| args.get(i).copied().unwrap_or(0);
        Some(Self {
            head: Head::message(Category::Short, handler, args.len(), arg(0), 1),
            rest: u64::from(arg(1)) | u64::from(arg(2)) << 32,
        })
    }

    /// The arguments; [`Head::nargs`] of them count.
    #[inline(always)]
    #[must_use]
    pub const fn args(self) -> [u32; 3] {
        [self.head.arg0(), self.rest as u32, (self.rest >> 32) as u32]
    }
}

/// The header of a medium message that fits one unit: at most two arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Medium {
    /// First word.
    pub head: Head,
    /// Second word: payload length and argument 1.
    pub rest: u64,
}

impl Medium {
    /// Most arguments that fit.
    pub const MAX_ARGS: usize = 2;

    /// Packs a header, if there are few enough arguments.
    ///
    /// `len` is at most [`MAX_MEDIUM`].
    #[inline(always)]
    #[must_use]
    pub fn pack(handler: HandlerIndex, args: &[u32], len: usize) -> Option<Self> {
        if args.len() > Self::MAX_ARGS || len > MAX_MEDIUM {
            return None;
        }
        let arg = |i: usize| args.get(i).copied().unwrap_or(0);
        let units = 1 + len.div_ceil(UNIT) as u32;
        Some(Self {
            head: Head::message(Category::Medium, handler, args.len(), arg(0), units),
            rest: len as u64 | u64::from(arg(1)) << 32,
        })
    }

    /// Reads a header back, if it is one of these and its record holds what it says.
    ///
    /// `available` is the number of units up to the end of the ring.
    #[inline(always)]
    #[must_use]
    pub fn check(head: Head, rest: u64, available: u32) -> Option<Self> {
        let this = Self { head, rest };
        let fits = head.0 & 7 == Category::Medium as u64
            && head.nargs() <= Self::MAX_ARGS
            && this.len() <= MAX_MEDIUM
            && head.units() as usize > this.len().div_ceil(UNIT)
            && head.units() <= available;
        fits.then_some(this)
    }

    /// Payload length in bytes.
    #[inline(always)]
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "of the payload, not of a collection"
    )]
    pub const fn len(self) -> usize {
        self.rest as u32 as usize
    }

    /// The arguments; [`Head::nargs`] of them count.
    #[inline(always)]
    #[must_use]
    pub const fn args(self) -> [u32; 2] {
        [self.head.arg0(), (self.rest >> 32) as u32]
    }
}

static_assertions::const_assert!(MAX_UNITS <= u16::MAX as u32);
static_assertions::const_assert!(header_units(Category::Long, MAX_CARRIED) * 2 <= MAX_HEADER_WORDS);
static_assertions::const_assert!(header_units(Category::Short, 3) == 1);

/// A header packed into words, ready to be stored; the payload of a medium follows it in the ring.
#[derive(Clone, Copy)]
pub struct Packed {
    /// The words; word 0 is the [`Head`] and is stored last, to publish the record.
    pub words: [u64; MAX_HEADER_WORDS],
    /// How many of them count.
    pub count: usize,
}

/// Packs everything but the payload.
///
/// `payload` is its length in bytes, `offset` where a long goes, `units` the length of the record.
///
/// # Panics
/// If there are more than [`MAX_CARRIED`] arguments; callers have checked that.
#[inline]
#[must_use]
pub fn pack(
    category: Category,
    handler: HandlerIndex,
    args: &[u32],
    payload: u64,
    offset: u64,
    units: u32,
) -> Packed {
    assert!(
        args.len() <= MAX_CARRIED,
        "argument count is checked before packing"
    );
    let mut half = [0u32; MAX_HEADER_WORDS * 2];
    let mut at = 2;
    match category {
        Category::Short => {}
        Category::Medium => {
            half[2] = payload as u32;
            at = 3;
        }
        Category::Long => {
            half[2] = offset as u32;
            half[3] = (offset >> 32) as u32;
            half[4] = payload as u32;
            half[5] = (payload >> 32) as u32;
            at = 6;
        }
    }
    let arg0 = args.first().copied().unwrap_or(0);
    let rest = args.get(1..).unwrap_or(&[]);
    half[at..at + rest.len()].copy_from_slice(rest);
    let mut words = [0u64; MAX_HEADER_WORDS];
    for (word, pair) in words.iter_mut().zip(half.chunks_exact(2)) {
        *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
    words[0] = Head::message(category, handler, args.len(), arg0, units).0;
    Packed {
        words,
        count: (at + rest.len()).div_ceil(2),
    }
}

/// Room for the arguments of the message that is being delivered.
pub type Scratch = [u32; MAX_HEADER_WORDS * 2];

/// A record read back and checked.
#[derive(Clone, Copy, Debug)]
pub struct Unpacked {
    /// Category of the message.
    pub category: Category,
    /// First argument's place in the scratch; [`Head::nargs`] of them follow.
    pub args_at: usize,
    /// Number of arguments.
    pub nargs: usize,
    /// Payload length in bytes.
    pub payload: u64,
    /// Segment offset of a long.
    pub offset: u64,
    /// Units before the payload of a medium.
    pub header_units: u32,
}

impl Unpacked {
    /// The arguments within the scratch that the record was unpacked into.
    #[inline(always)]
    #[must_use]
    pub fn args<'s>(&self, scratch: &'s Scratch) -> &'s [u32] {
        &scratch[self.args_at..self.args_at + self.nargs]
    }
}

/// Reads a record whose first word is `head`; `load(i)` gives word `i` of it.
///
/// `available` is the number of units up to the end of the ring.
///
/// # Errors
/// [`RecordError`] for a record that does not fit its own description: nothing of it is used.
#[inline(always)]
pub fn unpack(
    head: Head,
    category: Category,
    available: u32,
    scratch: &mut Scratch,
    load: impl Fn(usize) -> u64,
) -> Result<Unpacked, RecordError> {
    let nargs = head.nargs();
    if nargs > MAX_CARRIED {
        return Err(RecordError::Args(nargs));
    }
    let header = header_units(category, nargs);
    let units = head.units();
    if units < header as u32 || units > available {
        return Err(RecordError::Units {
            units,
            needed: header as u32,
            available,
        });
    }
    for i in 1..header * 2 {
        let word = load(i);
        scratch[2 * i] = word as u32;
        scratch[2 * i + 1] = (word >> 32) as u32;
    }
    let (args_at, payload, offset) = match category {
        Category::Short => (1, 0, 0),
        Category::Medium => (2, u64::from(scratch[2]), 0),
        Category::Long => (
            5,
            u64::from(scratch[4]) | u64::from(scratch[5]) << 32,
            u64::from(scratch[2]) | u64::from(scratch[3]) << 32,
        ),
    };
    scratch[args_at] = head.arg0();
    if category == Category::Medium {
        if payload > MAX_MEDIUM as u64 {
            return Err(RecordError::Payload {
                len: payload,
                max: MAX_MEDIUM as u64,
            });
        }
        let needed = record_units(category, nargs, payload as usize);
        if units < needed {
            return Err(RecordError::Units {
                units,
                needed,
                available,
            });
        }
    }
    Ok(Unpacked {
        category,
        args_at,
        nargs,
        payload,
        offset,
        header_units: header as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(category: Category, args: &[u32], payload: u64, offset: u64) {
        let units = record_units(category, args.len(), payload as usize);
        let packed = pack(category, HandlerIndex(200), args, payload, offset, units);
        let head = Head(packed.words[0]);
        assert_eq!(head.kind(), Ok(Kind::Message(category)));
        assert_eq!(head.handler(), HandlerIndex(200));
        assert_eq!(head.units(), units);
        let mut scratch = Scratch::default();
        let got = unpack(head, category, units, &mut scratch, |i| packed.words[i]).unwrap();
        assert_eq!(got.args(&scratch), args);
        assert_eq!(got.payload, payload);
        assert_eq!(got.offset, offset);
        assert!(packed.count <= header_units(category, args.len()) * 2);
    }

    #[test]
    fn every_argument_count_survives() {
        let all: Vec<u32> = (1..=MAX_CARRIED as u32).map(|i| i * 0x0101_0101).collect();
        for n in 0..=MAX_CARRIED {
            round_trip(Category::Short, &all[..n], 0, 0);
            for len in [0, 1, 15, 16, 17, MAX_MEDIUM as u64] {
                round_trip(Category::Medium, &all[..n], len, 0);
            }
            round_trip(Category::Long, &all[..n], u64::MAX / 3, u64::MAX - 5);
        }
    }

    #[test]
    fn a_packed_short_is_the_record_of_its_message() {
        let all = [7, 8, 9, 10];
        for n in 0..=3 {
            let short = Short::pack(HandlerIndex(140), &all[..n]).unwrap();
            let packed = pack(Category::Short, HandlerIndex(140), &all[..n], 0, 0, 1);
            assert_eq!([short.head.0, short.rest], packed.words[..2]);
            assert_eq!(short.args()[..n], all[..n]);
        }
        assert_eq!(Short::pack(HandlerIndex(140), &all), None);
    }

    #[test]
    fn a_medium_header_of_one_unit_is_that_of_its_message() {
        let all = [7, 8, 9];
        for n in 0..=2 {
            for len in [0, 1, 16, 17, MAX_MEDIUM] {
                let args = &all[..n];
                let units = record_units(Category::Medium, n, len);
                let medium = Medium::pack(HandlerIndex(140), args, len).unwrap();
                let handler = HandlerIndex(140);
                let packed = pack(Category::Medium, handler, args, len as u64, 0, units);
                assert_eq!([medium.head.0, medium.rest], packed.words[..2]);
                let back = Medium::check(medium.head, medium.rest, units).unwrap();
                assert_eq!((back.len(), &back.args()[..n]), (len, args));
                // Past the end of the ring, and longer than the record.
                assert_eq!(Medium::check(medium.head, medium.rest, units - 1), None);
                let longer = medium.rest + u64::from(units) * UNIT as u64;
                assert_eq!(Medium::check(medium.head, longer, u32::MAX), None);
            }
        }
        assert_eq!(Medium::pack(HandlerIndex(140), &all, 0), None);
        assert_eq!(Medium::pack(HandlerIndex(140), &[], MAX_MEDIUM + 1), None);
        let short = Short::pack(HandlerIndex(140), &[]).unwrap();
        assert_eq!(Medium::check(short.head, short.rest, 9), None);
    }

    #[test]
    fn three_arguments_fit_one_unit_and_a_line_holds_four() {
        assert_eq!(record_units(Category::Short, 0, 0), 1);
        assert_eq!(record_units(Category::Short, 3, 0), 1);
        assert_eq!(record_units(Category::Short, 4, 0), 2);
        assert_eq!(record_units(Category::Medium, 2, 0), 1);
        assert_eq!(UNIT * 4, 64);
        for category in [Category::Short, Category::Medium, Category::Long] {
            for nargs in 0..=MAX_CARRIED {
                for units in [1, 2, 0x101] {
                    let head = Head::message(category, HandlerIndex(255), nargs, u32::MAX, units);
                    let plain = category == Category::Short && nargs <= 3 && units == 1;
                    assert_eq!(head.is_one_unit_short(), plain);
                }
            }
        }
    }

    #[test]
    fn a_skip_is_as_long_as_it_says() {
        for units in [1, 2, 0x1234, u32::from(u16::MAX)] {
            let skip = Head::skip(units);
            assert_eq!((skip.kind(), skip.units()), (Ok(Kind::Skip), units));
        }
    }

    #[test]
    fn the_largest_record_is_a_medium_with_all_arguments() {
        let largest = record_units(Category::Medium, MAX_CARRIED, MAX_MEDIUM);
        assert_eq!((MAX_UNITS, MAX_MEDIUM), (largest, 65_536));
    }

    #[test]
    fn a_record_that_lies_is_refused() {
        let mut scratch = Scratch::default();
        let head =
            |category, nargs, units| Head::message(category, HandlerIndex(1), nargs, 0, units);
        let words = |i: usize| if i == 1 { u64::from(u32::MAX) } else { 0 };
        assert_eq!(Head(0x7).kind(), Err(RecordError::Kind(7)));
        assert_eq!(
            unpack(
                head(Category::Short, 18, 9),
                Category::Short,
                9,
                &mut scratch,
                words
            )
            .unwrap_err(),
            RecordError::Args(18)
        );
        assert!(matches!(
            unpack(
                head(Category::Short, 4, 1),
                Category::Short,
                9,
                &mut scratch,
                words
            ),
            Err(RecordError::Units { .. })
        ));
        assert!(matches!(
            unpack(
                head(Category::Short, 4, 10),
                Category::Short,
                9,
                &mut scratch,
                words
            ),
            Err(RecordError::Units { .. })
        ));
        assert!(matches!(
            unpack(
                head(Category::Medium, 1, 9),
                Category::Medium,
                9,
                &mut scratch,
                words
            ),
            Err(RecordError::Payload { .. })
        ));
        let words = |i: usize| if i == 1 { 1000 } else { 0 };
        assert!(matches!(
            unpack(
                head(Category::Medium, 1, 9),
                Category::Medium,
                9,
                &mut scratch,
                words
            ),
            Err(RecordError::Units { .. })
        ));
    }
}
