//! Memory that peers reach, as place and offset that every process turns into addresses of its own.

use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::Resolver;
use core::ptr::NonNull;

/// Memory that peers share lies in one of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// The buffers of the interface.
    Arena,
    /// The rank's segment.
    Segment,
}

/// Bits of a place that are the offset.
pub(crate) const OFFSET_BITS: u32 = 62;

/// Place in the memory of some rank, as records hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) window: Window,
    pub(crate) offset: u64,
}

impl Place {
    pub(crate) fn to_bits(self) -> u64 {
        (self.window as u64) << OFFSET_BITS | self.offset
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
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

/// Where memory of this process lies in the segment of `rank`.
pub(crate) fn locate_in_segment(
    segments: &Resolver,
    rank: JobRank,
    address: *const u8,
    len: u64,
) -> Option<Place> {
    let len = usize::try_from(len).ok()?;
    let (owner, offset) = segments.translate_range(address, len)?;
    (owner == rank && offset.0 >> OFFSET_BITS == 0).then_some(Place {
        window: Window::Segment,
        offset: offset.0,
    })
}

/// The address here of `len` bytes at an offset of a segment; `None` for any place that is not
/// there.
///
/// The segment is mapped up to `end`, where the memory that was registered ends, if it is not yet:
/// its owner has attached that much. All of it at once: else each of the puts that go through it
/// from its beginning on would map another part.
#[inline]
pub(crate) fn resolve_in_segment(
    segments: &Resolver,
    rank: JobRank,
    (at, len): (u64, u64),
    end: Option<u64>,
) -> Option<NonNull<u8>> {
    let (at, bytes) = (SegmentOffset(at), usize::try_from(len).ok()?);
    match segments.resolve(rank, at, bytes) {
        Some(address) => Some(address),
        None => {
            map_more(segments, rank, end?);
            segments.resolve(rank, at, bytes)
        }
    }
}

#[cold]
#[inline(never)]
fn map_more(segments: &Resolver, rank: JobRank, end: u64) {
    // A part that cannot be mapped is not found afterwards.
    let _ = segments.refresh(rank, end);
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
