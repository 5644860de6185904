//! The parts of operations.

use super::{Outcome, PortalIndex};
use argonet_base::JobRank;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// A part of a descriptor's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub len_bytes: u64,
}

/// The outcome of an operation that is over when its call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes that were moved; less where the target truncates.
    pub moved_bytes: u64,
}

/// Where an operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The rank that has the memory.
    pub rank: JobRank,
    /// Which list.
    pub portal: PortalIndex,
    /// Bits that select the entry; bits that an entry ignores are free for the client.
    pub bits: u64,
    /// Where in the entry, unless that manages its offset itself.
    pub offset_bytes: u64,
}

/// Whether and how remote completion of a put is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// Not at all.
    None,
    /// By an event in the descriptor's queue.
    Event,
    /// By the descriptor's counter.
    Count,
}

/// The function of an atomic operation, for each element of the target: `target = target op
/// operand`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub enum AtomicOp {
    /// The less of both.
    Min = 0,
    /// The greater of both.
    Max,
    /// Sum, wrapping for integers.
    Sum,
    /// Product, wrapping for integers.
    Product,
    /// Bitwise or; not for floats.
    Or,
    /// Bitwise and; not for floats.
    And,
    /// Bitwise exclusive or; not for floats.
    Xor,
    /// The operand.
    Swap,
    /// The operand if the target equals the compared value, which is one element; else the target
    /// stays.
    CompareSwap,
}

/// The elements of an atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub enum AtomicKind {
    /// Signed, 4 bytes.
    I32 = 0,
    /// Unsigned, 4 bytes.
    U32,
    /// Signed, 8 bytes.
    I64,
    /// Unsigned, 8 bytes.
    U64,
    /// IEEE 754, 4 bytes.
    F32,
    /// IEEE 754, 8 bytes.
    F64,
}

impl AtomicKind {
    /// Size and alignment of an element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether elements are floats.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether this operation is one of such elements.
    #[must_use]
    pub const fn has(self, op: AtomicOp) -> bool {
        !(self.is_float() && matches!(op, AtomicOp::Or | AtomicOp::And | AtomicOp::Xor))
    }

    /// The fault of an atomic operation on such elements, if it has one: `len` bytes at an offset
    /// in the target's entry, on an interface for `most` at a time.
    pub(super) fn objection(
        self,
        op: AtomicOp,
        len: u64,
        offset: u64,
        fetches: bool,
        most: u64,
    ) -> Option<&'static str> {
        let size = self.bytes() as u64;
        if !self.has(op) {
            return Some("floats have no bitwise operations");
        }
        if !len.is_multiple_of(size) || !offset.is_multiple_of(size) {
            return Some("an atomic operation on parts of elements");
        }
        if len > most {
            return Some("an atomic operation longer than the interface's limit");
        }
        if op == AtomicOp::CompareSwap && (!fetches || len != size) {
            return Some("compare-and-swap fetches, and is for one element");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_operations_that_cannot_be_are_objected_to() {
        use AtomicKind::{F64, U32, U64};
        use AtomicOp::{CompareSwap, Sum, Xor};
        const MOST: u64 = 64;
        for (kind, op, len, offset, fetches, objection) in [
            (U64, Sum, MOST, 8, false, ""),
            (U64, Sum, MOST + 8, 8, false, "longer than"),
            (U64, Sum, 12, 0, true, "parts of elements"),
            (U64, Sum, 8, 4, true, "parts of elements"),
            (U32, Sum, 12, 4, true, ""),
            (F64, Sum, 0, 0, false, ""),
            (F64, Xor, 8, 0, true, "bitwise"),
            (U32, CompareSwap, 4, 4, true, ""),
            (U32, CompareSwap, 8, 0, true, "one element"),
            (U32, CompareSwap, 4, 0, false, "fetches"),
        ] {
            let found = kind.objection(op, len, offset, fetches, MOST);
            assert_eq!(found.is_some(), !objection.is_empty(), "{found:?}");
            assert!(found.unwrap_or_default().contains(objection), "{found:?}");
        }
    }
}
