//! The part of a call that must be the same at all members, as every message and every cell carries
//! it.
//!
//! ```text
//! bits   63 ... 60   59 ... 54      53 ... 45   44 ... 31   30 ... 0
//!        kind        root, mod 64   operation   element     bytes of a block, mod 2^31
//! ```
//! A cell carries one such word, so that members compare with one instruction. Messages carry root
//! and length in full.

use super::call::{AllSync, Kind};
use core::any::TypeId;
use core::fmt;
use core::hash::{Hash, Hasher};

const ROOT_BITS: u32 = 6;
const OPERATION_BITS: u32 = 9;
const ELEMENT_BITS: u32 = 14;
const LEN_BITS: u32 = 31;

const ELEMENT_AT: u32 = LEN_BITS;
const OPERATION_AT: u32 = ELEMENT_AT + ELEMENT_BITS;
const ROOT_AT: u32 = OPERATION_AT + OPERATION_BITS;
const KIND_AT: u32 = ROOT_AT + ROOT_BITS;

static_assertions::const_assert_eq!(KIND_AT + 4, 64);

/// Bits of a [`Label::digest`].
pub(super) const DIGEST_BITS: u32 = ELEMENT_BITS + OPERATION_BITS + 2;

/// How values are combined, beside the operations that C can name
/// ([`Folding::signature_of`](super::Folding::signature_of)).
const OWN_OPERATIONS: u16 = 1 << 8 | 7 << 5;

/// The type of an element by [`Signature::element`], from 1 on.
const ELEMENTS: [&str; 14] = [
    "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "u128", "i128", "usize", "isize", "f32",
    "f64",
];

/// Set in the element of a type that is not in [`ELEMENTS`]; a hash follows.
const HASHED: u16 = 1 << (ELEMENT_BITS - 1);

/// The values of a call as members compare them: their type, and how they are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    /// How values are combined, below 2^9; 0 where they are not.
    pub operation: u16,
    /// The type, below 2^14: see [`element`](Self::element); 0 where only bytes count.
    pub element: u16,
}

/// Takes one number of a hash; the last bits of it are as good as any.
struct Plain(u64);

impl Hasher for Plain {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Signature {
    /// Ranks agree about the arguments of a call, in a call of the library's own.
    pub const VOTE: Self = Self::own(5);
    /// The names of a barrier.
    pub(crate) const NAMES: Self = Self::own(6);

    /// A combination that the library knows: one of four by its number, from 0 on.
    #[must_use]
    pub const fn reduction(number: u16) -> Self {
        Self::own(number)
    }

    /// A combination that the client has written.
    pub const CLOSURE: Self = Self::own(4);

    const fn own(number: u16) -> Self {
        Self {
            operation: OWN_OPERATIONS | number,
            element: 0,
        }
    }

    /// The same of elements of a type.
    #[inline(always)]
    #[must_use]
    pub fn on<T: 'static>(self) -> Self {
        Self {
            element: Self::element::<T>(),
            ..self
        }
    }

    /// A type as ranks compare it.
    ///
    /// All ranks run the same program, so types that differ there differ in their `TypeId`; two
    /// types of a program's own are taken for the same with a chance of 1 in 8192.
    #[inline(always)]
    #[must_use]
    pub fn element<T: 'static>() -> u16 {
        let id = TypeId::of::<T>();
        macro_rules! known {
            ($($type:ident)*) => {{
                let mut number = 0;
                $(
                    number += 1;
                    if id == TypeId::of::<$type>() {
                        return number;
                    }
                )*
                let _ = number;
            }};
        }
        known!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64);
        let mut hash = Plain(0);
        id.hash(&mut hash);
        HASHED | (hash.finish() >> 51) as u16
    }

    #[inline(always)]
    fn digest(self) -> u32 {
        let Self { operation, element } = self;
        debug_assert!(operation >> OPERATION_BITS == 0 && element >> ELEMENT_BITS == 0);
        u32::from(operation) << ELEMENT_BITS | u32::from(element)
    }

    fn of_digest(digest: u32) -> Self {
        Self {
            operation: (digest >> ELEMENT_BITS) as u16 & ((1 << OPERATION_BITS) - 1),
            element: digest as u16 & ((1 << ELEMENT_BITS) - 1),
        }
    }
}

/// The part of a call that must be the same at all members; every message has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) kind: Kind,
    pub(crate) root: u32,
    /// Bytes of a block.
    pub(crate) len: u64,
    /// The signature, and the call's [`AllSync`].
    pub(crate) digest: u32,
}

impl Label {
    #[inline(always)]
    pub(crate) fn new(kind: Kind, root: u32, len: u64, signature: Signature) -> Self {
        Self {
            kind,
            root,
            len,
            digest: signature.digest(),
        }
    }

    #[inline(always)]
    pub(super) fn with(self, all_sync: AllSync) -> Self {
        let all_sync = u32::from(all_sync.before) << 1 | u32::from(all_sync.after);
        Self {
            digest: self.digest | all_sync << (DIGEST_BITS - 2),
            ..self
        }
    }

    /// As a word that members compare, where the root is one of 64 or compared besides.
    #[inline(always)]
    pub(crate) fn to_word(self) -> u64 {
        let kind: u8 = self.kind.into();
        // 0 for lengths that fit their field; of longer ones the field says nothing by itself.
        let spread = (self.len >> LEN_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LEN_BITS);
        u64::from(kind) << KIND_AT
            | (u64::from(self.root) & ((1 << ROOT_BITS) - 1)) << ROOT_AT
            | (u64::from(self.digest) & ((1 << (ELEMENT_BITS + OPERATION_BITS)) - 1)) << ELEMENT_AT
            | self.len & ((1 << LEN_BITS) - 1) ^ spread
    }

    /// `None` for a word that no rank writes.
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        Some(Self {
            kind: Kind::try_from((word >> KIND_AT) as u8).ok()?,
            root: (word >> ROOT_AT) as u32 & ((1 << ROOT_BITS) - 1),
            digest: (word >> ELEMENT_AT) as u32 & ((1 << (ELEMENT_BITS + OPERATION_BITS)) - 1),
            len: word & ((1 << LEN_BITS) - 1),
        })
    }

    /// Whether a member must call this before another one can be done with it.
    pub(crate) fn waits_for(&self, member: u32, other: u32) -> bool {
        match self.kind {
            Kind::Broadcast | Kind::Scatter | Kind::ScatterV => other == self.root,
            Kind::Reduce | Kind::Gather | Kind::GatherV => member == self.root,
            Kind::Scan | Kind::ExclusiveScan => other < member,
            _ => true,
        }
    }
}

/// A hash of the partial calls of a team, in 31 bits.
///
/// It is mixed into the words of calls in which all members read the cells of all: if those words
/// are equal, the partial calls before them were, too.
///
/// A call is partial if some member reads only some others' cells: two roots of one broadcast read
/// no cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct History(u64);

impl History {
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word of a call in which all members read the cells of all.
    #[inline(always)]
    pub(crate) fn mix(self, word: u64) -> u64 {
        word ^ (self.0 >> (64 - LEN_BITS))
    }

    /// The history after a partial call.
    pub(crate) fn after(self, word: u64) -> u64 {
        (self.0.rotate_left(7) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The label in a word of a cell, if its writer has this history.
    pub(crate) fn read(self, word: u64) -> Option<Label> {
        let label = Label::from_word(word)?;
        if label.kind.is_partial() {
            return Some(label);
        }
        Label::from_word(self.mix(word))
    }
}

impl Kind {
    /// Whether some member reads only some others' cells.
    #[inline(always)]
    pub(crate) fn is_partial(self) -> bool {
        self.is_rooted() || matches!(self, Self::Scan | Self::ExclusiveScan)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            root,
            len,
            digest,
        } = *self;
        let Signature { operation, element } = Signature::of_digest(digest);
        if operation == Signature::VOTE.operation {
            return f.write_str("a call of the library's own, about the arguments of a call");
        }
        let name = match kind {
            Kind::ExchangeV if len > 0 => "gather-all of unequal blocks",
            _ => kind.name(),
        };
        let article = if name.starts_with('e') { "an" } else { "a" };
        write!(f, "{article} {name}")?;
        let element_name = ELEMENTS.get(usize::from(element).wrapping_sub(1));
        if kind.is_unequal() {
            if kind.is_rooted() {
                write!(f, " with root {root}")?;
            }
            return match (element_name, element) {
                (Some(name), _) => write!(f, ", {name}"),
                (None, 0) => f.write_str(", bytes"),
                (None, own) => write!(f, ", a type of its own ({own:#06x})"),
            };
        }
        if kind.is_rooted() {
            write!(f, " with root {root} and ")?;
        } else if !matches!(kind, Kind::Barrier | Kind::Window) {
            f.write_str(" of ")?;
        } else {
            return Ok(());
        }
        match (element_name, element) {
            (Some(name), _) => write!(f, "{} {name}", len / bytes_of(name).unwrap_or(1))?,
            (None, 0) => write!(f, "{len} bytes")?,
            (None, own) => write!(f, "{len} bytes of a type of its own ({own:#06x})")?,
        }
        match operation.checked_sub(OWN_OPERATIONS) {
            Some(own) => {
                let names = ["Sum", "Product", "Min", "Max", "a combination of its own"];
                let name = names
                    .get(usize::from(own))
                    .unwrap_or(&"another combination");
                write!(f, " by {name}")
            }
            None if kind.folds() => write!(f, " by operation {operation:#06x}"),
            None => Ok(()),
        }
    }
}

/// Bytes of a type that is named with its bits.
fn bytes_of(name: &str) -> Option<u64> {
    match name {
        "usize" | "isize" => Some(size_of::<usize>() as u64),
        _ => Some(name.get(1..)?.parse::<u64>().ok()? / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_written() {
        for kind in (1..=15).map(|kind| Kind::try_from(kind).unwrap()) {
            let signature = Signature::reduction(3).on::<f64>();
            let label = Label::new(kind, 63, (1 << LEN_BITS) - 1, signature);
            assert_eq!(Label::from_word(label.to_word()), Some(label));
            let before = History::from_bits(History::default().after(77));
            let word = match kind.is_partial() {
                true => label.to_word(),
                false => before.mix(label.to_word()),
            };
            assert_eq!(before.read(word), Some(label));
        }
        assert_eq!(Label::from_word(0), None);
    }

    #[test]
    fn types_differ_and_are_named() {
        #[derive(Clone, Copy)]
        struct Own;
        struct Other;
        let all = [
            Signature::element::<u64>(),
            Signature::element::<f64>(),
            Signature::element::<[u64; 1]>(),
            Signature::element::<Own>(),
            Signature::element::<Other>(),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(one >> ELEMENT_BITS == 0);
            assert!(!all[..i].contains(one), "{all:?}");
        }
        let shown = |kind, len, signature| Label::new(kind, 2, len, signature).to_string();
        for (shown, due) in [
            (
                shown(Kind::ReduceAll, 24, Signature::reduction(0).on::<u64>()),
                "a reduce-to-all of 3 u64 by Sum",
            ),
            (
                shown(Kind::Broadcast, 8, Signature::default().on::<f32>()),
                "a broadcast with root 2 and 2 f32",
            ),
            (
                shown(Kind::Gather, 7, Signature::default()),
                "a gather with root 2 and 7 bytes",
            ),
            (shown(Kind::Barrier, 0, Signature::default()), "a barrier"),
            (
                shown(Kind::Exchange, 4, Signature::default().on::<u32>()),
                "an exchange of 1 u32",
            ),
            (
                shown(Kind::ExchangeV, 0, Signature::default().on::<u32>()),
                "an exchange of unequal blocks, u32",
            ),
            (
                shown(Kind::ExchangeV, 4, Signature::default().on::<u32>()),
                "a gather-all of unequal blocks, u32",
            ),
            (
                shown(Kind::ScatterV, 0, Signature::default()),
                "a scatter of unequal blocks with root 2, bytes",
            ),
        ] {
            assert_eq!(shown, due);
        }
        let own = shown(Kind::ReduceAll, 8, Signature::CLOSURE.on::<Own>());
        assert!(
            own.starts_with("a reduce-to-all of 8 bytes of a type of its own (0x"),
            "{own}"
        );
        assert!(own.ends_with(") by a combination of its own"), "{own}");
    }

    #[test]
    fn histories_of_other_roots_differ() {
        let broadcast = |root| Label::new(Kind::Broadcast, root, 8, Signature::default()).to_word();
        let barrier = Label::new(Kind::Barrier, 0, 0, Signature::default()).to_word();
        let after = |words: &[u64]| {
            let history = words.iter().fold(History::default(), |history, word| {
                History::from_bits(history.after(*word))
            });
            history.mix(barrier)
        };
        assert_eq!(after(&[]), barrier);
        assert_ne!(after(&[broadcast(0)]), after(&[broadcast(1)]));
        assert_ne!(
            after(&[broadcast(0), broadcast(1)]),
            after(&[broadcast(1), broadcast(0)])
        );
        assert_ne!(after(&[broadcast(0)]), after(&[broadcast(0), broadcast(0)]));
    }

    #[test]
    fn lengths_4_gib_apart_have_different_words() {
        let label = |len| Label {
            kind: Kind::ReduceAll,
            root: 0,
            len,
            digest: 0x1c3,
        };
        let lens = [24, 24 + (1 << 32), 24 + (2 << 32), 24 + (1 << 44), 1 << 33];
        for (at, len) in lens.iter().enumerate() {
            for other in &lens[at + 1..] {
                assert_ne!(label(*len).to_word(), label(*other).to_word());
            }
        }
        assert_eq!(Label::from_word(label(24).to_word()), Some(label(24)));
    }
}
