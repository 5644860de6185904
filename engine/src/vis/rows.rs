//! Rows at equal distances on both sides, which most non-contiguous transfers are, to or from
//! memory that is mapped here: nothing is looked at but one range.
#![allow(unsafe_code)]

use super::super::core::Engine;
use super::super::thread::ThreadCtx;
use super::call::Direction;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::Conduit;
use argonet_segment::bulk;

/// Rows on one side of a transfer, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct RowsAt<P> {
    /// Where the first begins.
    pub first: P,
    /// From a row to the next.
    pub stride: isize,
}

impl<C: Conduit> Engine<C> {
    /// Moves `count` rows of `len` bytes each, complete on return, if the peer's are mapped here
    /// and the calling thread may communicate and is not traced; whether it has.
    ///
    /// The peer's rows lie in `span` bytes from `lowest` on; the first begins `first` bytes behind
    /// that.
    ///
    /// # Safety
    /// Rows of this side are readable, or writable for a get. Those of the peer lie in the span.
    #[inline]
    pub unsafe fn vis_rows(
        &self,
        ctx: &ThreadCtx,
        direction: Direction,
        (rank, lowest, span): (JobRank, SegmentOffset, usize),
        there: RowsAt<usize>,
        here: RowsAt<*mut u8>,
        (count, len): (usize, usize),
    ) -> bool {
        if !ctx.is_free() {
            return false;
        }
        let Some(base) = self.directory.resolve(rank, lowest, span) else {
            return false;
        };
        let mut theirs = base.as_ptr().wrapping_add(there.first);
        let mut ours = here.first;
        for _ in 0..count {
            // SAFETY: the directory has checked the span, in which the peer's rows lie; ours are
            // the caller's promise.
            unsafe {
                match direction {
                    Direction::Put => bulk::copy(theirs, ours, len),
                    Direction::Get => bulk::copy(ours, theirs, len),
                }
            }
            theirs = theirs.wrapping_offset(there.stride);
            ours = ours.wrapping_offset(here.stride);
        }
        true
    }
}
