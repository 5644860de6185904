//! Memory that entries make reachable, as place and offset that every process turns into addresses
//! of its own.

use super::region::Region;
use crate::place::{locate_in_segment, resolve_in_segment};
use argonet_base::JobRank;
use argonet_segment::Resolver;
use core::ptr::NonNull;

pub(super) use crate::place::{Place, Window};

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
        locate_in_segment(self.segments.as_ref()?, rank, address, len)
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
        let end = base.checked_add(whole.len);
        resolve_in_segment(self.segments.as_ref()?, rank, (at, len), end)
    }
}
