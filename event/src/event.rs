//! The values that name operations: explicit ones by [`Event`], implicit ones by [`NbiToken`].
//!
//! Both have one layout, and the words of a slot keep the generation in the same place, so that
//! the check of a generation is one exclusive-or and one shift:
//!
//! ```text
//!  63                                27 26  24 23                     0
//! +------------------------------------+------+------------------------+
//! | generation (odd while it lives)    | kind | index of the slot + 2  |
//! +------------------------------------+------+------------------------+
//! ```
//!
//! A slot's generation grows when it is allocated and when it is freed. An odd generation is a
//! living operation, so no value ever matches a free slot. The two lowest values name no slot:
//! [`Event::DONE`] and [`Event::NO_OP`], the numbers of which are GASNet's.

use core::fmt;

use argonet_base::gasnet::number;

use crate::Category;

/// Bits of `index + FIRST`.
pub(crate) const INDEX_BITS: u32 = 24;
pub(crate) const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// The number that stands for slot 0: `index + FIRST` names a slot.
const FIRST: u32 = 2;
const KIND_MASK: u64 = 0b111;
/// Position of the generation, here and in the words of a slot.
pub(crate) const GENERATION_SHIFT: u32 = 27;
/// One step of the generation.
pub(crate) const GENERATION_STEP: u64 = 1 << GENERATION_SHIFT;
/// The number of slots that the index can name, 2^24 - 2.
pub(crate) const MAX_SLOTS: u32 = (1 << INDEX_BITS) - FIRST;

/// The kind of thing that a value names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An explicit operation.
    Operation,
    /// The local completion of an explicit operation.
    OperationLocal,
    /// An access region that has ended.
    Region,
    /// One category of a scope: the leaf of a region, or the token of an implicit operation.
    Scope(Category),
}

impl Kind {
    const fn bits(self) -> u64 {
        match self {
            Self::Operation => 0,
            Self::OperationLocal => 1,
            Self::Region => 2,
            Self::Scope(category) => 3 + category as u64,
        }
    }

    fn of(raw: u64) -> Self {
        match (raw >> INDEX_BITS) & KIND_MASK {
            0 => Self::Operation,
            1 => Self::OperationLocal,
            2 => Self::Region,
            3 => Self::Scope(Category::Get),
            4 => Self::Scope(Category::Put),
            5 => Self::Scope(Category::Am),
            6 => Self::Scope(Category::Lc),
            _ => Self::Scope(Category::Rmw),
        }
    }
}

/// Puts a value together; `word` gives the generation, its other bits are ignored.
const fn encode(word: u64, kind: Kind, index: u32) -> u64 {
    (word >> GENERATION_SHIFT << GENERATION_SHIFT)
        | (kind.bits() << INDEX_BITS)
        | (index as u64 + FIRST as u64)
}

/// The index that a value names; `None` if its low 24 bits are none of a slot.
const fn index_of(raw: u64) -> Option<u32> {
    ((raw & INDEX_MASK) as u32).checked_sub(FIRST)
}

/// Whether `word`, the word of a slot, holds the living generation that `raw` names.
pub(crate) const fn same_generation(word: u64, raw: u64) -> bool {
    (word ^ raw) >> GENERATION_SHIFT == 0 && is_live(word)
}

/// Whether the generation in `word` is that of a living operation.
pub(crate) const fn is_live(word: u64) -> bool {
    word & GENERATION_STEP != 0
}

/// The word of the next generation with all other bits zero.
pub(crate) const fn next_generation(word: u64) -> u64 {
    (word >> GENERATION_SHIFT << GENERATION_SHIFT).wrapping_add(GENERATION_STEP)
}

/// Names an explicit operation (a *root*) or some of its completions (a *leaf*).
///
/// It is what C calls `gex_Event_t`. Any thread may test it. A root ends with the test that finds
/// it complete, and its leaves end with it; a leaf may be tested again and again until then.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Event(u64);

// Neither names a slot.
const _: () = assert!(Event::DONE.0 == 0 && Event::NO_OP.0 != 0 && Event::NO_OP.0 < FIRST as u64);

impl Event {
    /// The operation is complete; no handle is held (`GEX_EVENT_INVALID`).
    pub const DONE: Self = Self(number("GEX_EVENT_INVALID"));

    /// The operation was not started (`GEX_EVENT_NO_OP`).
    ///
    /// It must not be tested.
    pub const NO_OP: Self = Self(number("GEX_EVENT_NO_OP"));

    /// The value as it goes through C or over a network.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// An event from a value that came from outside.
    ///
    /// Every use of it is checked by the table.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Whether this is [`Event::DONE`].
    ///
    /// It says nothing about the progress of a living event.
    #[must_use]
    pub const fn is_done(self) -> bool {
        self.0 == 0
    }

    /// Whether the event is a leaf, the end of which is not the end of its operation.
    #[must_use]
    pub fn is_leaf(self) -> bool {
        index_of(self.0).is_some() && matches!(self.kind(), Kind::OperationLocal | Kind::Scope(_))
    }

    pub(crate) const fn new(word: u64, kind: Kind, index: u32) -> Self {
        Self(encode(word, kind, index))
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.0)
    }

    pub(crate) const fn index(self) -> Option<u32> {
        index_of(self.0)
    }

    /// The same operation under another kind.
    pub(crate) const fn with_kind(self, kind: Kind) -> Self {
        Self(self.0 & !(KIND_MASK << INDEX_BITS) | (kind.bits() << INDEX_BITS))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.index()) {
            (Self::DONE, _) => f.write_str("event done"),
            (_, None) => write!(f, "no event ({:#x})", self.0),
            (_, Some(index)) => write!(
                f,
                "event {index} generation {} {:?}",
                self.0 >> GENERATION_SHIFT,
                self.kind()
            ),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Names the scope and the category of an outstanding implicit operation, for the thread that
/// completes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NbiToken(u64);

impl NbiToken {
    /// The value as it goes over a network; it is never zero.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// A token from a value that came from outside.
    ///
    /// Every use of it is checked by the table.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The token of another category in the same scope: a put that was counted under
    /// [`Category::Put`] and [`Category::Lc`] needs to carry only one of the two.
    #[must_use]
    pub const fn with_category(self, category: Category) -> Self {
        Self(Event(self.0).with_kind(Kind::Scope(category)).0)
    }

    /// The category that a completion with this token counts for; `None` for a value that is no
    /// token.
    #[must_use]
    pub fn category(self) -> Option<Category> {
        match Kind::of(self.0) {
            Kind::Scope(category) => Some(category),
            _ => None,
        }
    }

    pub(crate) const fn new(word: u64, category: Category, index: u32) -> Self {
        Self(encode(word, Kind::Scope(category), index))
    }

    pub(crate) const fn index(self) -> Option<u32> {
        index_of(self.0)
    }
}

impl fmt::Debug for NbiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "implicit {:?}", Event(self.0))
    }
}

static_assertions::assert_eq_size!(Event, u64);
static_assertions::assert_eq_size!(NbiToken, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_the_last_index_survive_encoding() {
        let scopes = Category::ALL.map(Kind::Scope);
        for kind in [Kind::Operation, Kind::OperationLocal, Kind::Region]
            .into_iter()
            .chain(scopes)
        {
            let event = Event::new(u64::MAX, kind, MAX_SLOTS - 1);
            assert_eq!((event.kind(), event.index()), (kind, Some(MAX_SLOTS - 1)));
            assert!(same_generation(u64::MAX, event.raw()));
            assert_eq!(event.with_kind(Kind::Operation).with_kind(kind), event);
        }
    }

    #[test]
    fn the_index_names_all_slots_but_those_of_special_values() {
        assert_eq!(MAX_SLOTS, (1 << 24) - 2);
        let last = Event::new(GENERATION_STEP, Kind::Operation, MAX_SLOTS - 1);
        assert_eq!(last.raw() & INDEX_MASK, INDEX_MASK);
    }

    #[test]
    fn values_print_what_they_name() {
        let operation = Event::new(3 * GENERATION_STEP, Kind::Operation, 7);
        let token = NbiToken::new(GENERATION_STEP, Category::Put, 9);
        for (text, expected) in [
            (format!("{:?}", Event::DONE), "event done"),
            (format!("{:?}", Event::NO_OP), "no event (0x1)"),
            (format!("{operation:?}"), "event 7 generation 3 Operation"),
            (format!("{operation}"), "event 7 generation 3 Operation"),
            (
                format!("{token:?}"),
                "implicit event 9 generation 1 Scope(Put)",
            ),
        ] {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn special_values_name_no_slot() {
        assert_eq!(Event::DONE.index(), None);
        assert_eq!(Event::NO_OP.index(), None);
        assert_ne!(Event::DONE, Event::NO_OP);
        assert!(!Event::NO_OP.is_leaf());
    }

    #[test]
    fn an_even_generation_never_matches() {
        let free = 2 * GENERATION_STEP;
        assert!(!same_generation(
            free,
            Event::new(free, Kind::Operation, 0).raw()
        ));
    }

    #[test]
    fn the_generation_wraps_to_a_free_one() {
        assert_eq!(next_generation(u64::MAX), 0);
        assert!(!is_live(0));
    }

    #[test]
    fn a_token_changes_its_category_only() {
        let token = NbiToken::new(GENERATION_STEP, Category::Put, 7);
        let local = token.with_category(Category::Lc);
        assert_eq!(local.category(), Some(Category::Lc));
        assert_eq!(local.index(), Some(7));
        assert_eq!(local.with_category(Category::Put), token);
        assert_eq!(NbiToken::from_raw(1).category(), None);
    }
}
