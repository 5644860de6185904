//! Areas of segments by writer, so that no two writes race.
//!
//! ```text
//! segment of a rank   | area of rank 0 | area of rank 1 | ...      written by that rank alone
//! area                | 8 slots for puts and gets (half) | 4 for long requests | 4 for long replies |
//! ```

use argonet_base::SegmentOffset;

/// Slots of each kind.
pub(super) const PUT_SLOTS: usize = 8;
/// Slots for longs, and as many for long replies.
pub(super) const LONG_SLOTS: usize = 4;

/// Layout of an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    area_bytes: u64,
}

impl Layout {
    pub(super) fn new(area_bytes: u64) -> Self {
        Self { area_bytes }
    }

    /// Bytes of a slot for puts.
    pub(super) fn put_bytes(self) -> usize {
        (self.area_bytes / 2) as usize / PUT_SLOTS
    }

    /// Bytes of a slot for longs.
    pub(super) fn long_bytes(self) -> usize {
        (self.area_bytes / 4) as usize / LONG_SLOTS
    }

    pub(super) fn area(self, writer: u32) -> SegmentOffset {
        SegmentOffset(u64::from(writer) * self.area_bytes)
    }

    /// Where a writer's slot for puts begins.
    pub(super) fn put(self, writer: u32, slot: usize) -> SegmentOffset {
        SegmentOffset(self.area(writer).0 + (slot * self.put_bytes()) as u64)
    }

    /// Where a writer's slot for long requests begins.
    pub(super) fn long(self, writer: u32, slot: usize) -> SegmentOffset {
        let at = self.area_bytes / 2 + (slot * self.long_bytes()) as u64;
        SegmentOffset(self.area(writer).0 + at)
    }

    /// Where a writer's slot for long replies begins.
    pub(super) fn reply(self, writer: u32, slot: usize) -> SegmentOffset {
        SegmentOffset(self.long(writer, slot).0 + self.area_bytes / 4)
    }
}

/// A byte that depends on everything, so that none can be mistaken for another.
pub(super) fn byte(from: u32, to: u32, number: u32, at: usize) -> u8 {
    let mut word = u64::from(from) << 40 ^ u64::from(to) << 20 ^ u64::from(number);
    word = (word ^ (at as u64 / 8) << 50).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word >> (8 * (at % 8))) as u8
}

/// The payload of a message, or the bytes of a put.
pub(super) fn bytes(from: u32, to: u32, number: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| byte(from, to, number, at)).collect()
}
