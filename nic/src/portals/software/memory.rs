//! Memory that entries make reachable, as place and offset that every process turns into addresses
//! of its own.

use super::region::Region;
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::Resolver;
use core::ptr::NonNull;

/// Memory that peers share lies in one of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// The buffers of the interface.
    Arena,
    /// The rank's segment.
    Segment,
}

/// Bits of a place that are the offset.
const OFFSET_BITS: u32 = 62;

/// Place in the memory of some rank, as entries hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) window: Window,
    pub(super) offset: u64,
}

impl Place {
    pub(super) fn to_bits(self) -> u64 {
        (self.window as u64) << OFFSET_BITS | self.offset
    }

    #[inline(always)]
    pub(super) fn from_bits(bits: u64) -> Self {
        let window = match bits >> OFFSET_BITS {
            0 => Window::Arena,
            _ => Window::Segment,
        };
        Self {
            window,
            offset: bits & ((1 << OFFSET_BITS) - 1),
        }
    }
}

/// The memory of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) place: Place,
    /// Bytes.
    pub(super) len: u64,
}

/// Turns places into addresses and back.
pub(super) struct Memory {
    pub(super) segments: Option<Resolver>,
}

impl Memory {
    /// Where memory of this process lies, if peers can reach it.
    pub(super) fn locate(
        &self,
        region: &Region,
        place: u32,
        rank: JobRank,
        address: *const u8,
        len: u64,
    ) -> Option<Place> {
        if let Some(offset) = region.in_arena(place, address.addr(), len) {
            return Some(Place {
                window: Window::Arena,
                offset,
            });
        }
        let len = usize::try_from(len).ok()?;
        let (owner, offset) = self.segments.as_ref()?.translate_range(address, len)?;
        (owner == rank && offset.0 >> OFFSET_BITS == 0).then_some(Place {
            window: Window::Segment,
            offset: offset.0,
        })
    }

    /// The address here of `len` bytes at an offset of an entry's memory; `None` for any place that
    /// is not there.
    #[inline]
    pub(super) fn resolve(
        &self,
        region: &Region,
        place: u32,
        rank: JobRank,
        whole: Span,
        (offset, len): (u64, u64),
    ) -> Option<NonNull<u8>> {
        let Place {
            window,
            offset: base,
        } = whole.place;
        let at = base.checked_add(offset)?;
        if window == Window::Arena {
            return region.arena(place, at, len);
        }
        let segments = self.segments.as_ref()?;
        let (at, bytes) = (SegmentOffset(at), usize::try_from(len).ok()?);
        match segments.resolve(rank, at, bytes) {
            Some(address) => Some(address),
            None => {
                self.map_more(rank, base.checked_add(whole.len)?);
                segments.resolve(rank, at, bytes)
            }
        }
    }

    /// Maps a segment up to the end of an entry's memory.
    ///
    /// Its owner has attached that much, since an entry covers it, and this process has not mapped
    /// it yet. All of it at once: else each of the puts that go through it from its beginning on
    /// would map another part.
    #[cold]
    #[inline(never)]
    fn map_more(&self, rank: JobRank, end: u64) {
        if let Some(segments) = &self.segments {
            // A part that cannot be mapped is not found afterwards.
            let _ = segments.refresh(rank, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_and_back() {
        for window in [Window::Arena, Window::Segment] {
            for offset in [0, 1, (1 << OFFSET_BITS) - 1] {
                let place = Place { window, offset };
                assert_eq!(Place::from_bits(place.to_bits()), place);
            }
        }
    }
}
