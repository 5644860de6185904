//! Put and get on remote segments that wait for their end.
#![allow(unsafe_code)]

use super::core::{Engine, Injection};
use super::events::{OpError, Transfer};
use super::thread::ThreadCtx;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::Conduit;
use core::ptr::NonNull;

impl<C: Conduit> Engine<C> {
    /// Where `len` bytes of a segment are mapped here, for a thread that may load and store there
    /// without asking.
    ///
    /// `None` says nothing but that [`transfer`](Self::transfer) has to find out.
    #[inline(always)]
    pub fn mapped(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Option<NonNull<u8>> {
        if !ctx.is_free() {
            return None;
        }
        self.directory.resolve(rank, offset, len)
    }

    /// Where `len` bytes of a segment are mapped here, if they are, in any context of the thread.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`](argonet_am::AmError::OutsideSegment),
    /// [`NoSuchRank`](argonet_am::AmError::NoSuchRank).
    pub fn reach(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<Option<NonNull<u8>>, OpError> {
        self.reach_or_far(rank, offset, len)?;
        Ok(self.directory.resolve(rank, offset, len))
    }

    /// Does a transfer; complete, locally and remotely, on return.
    ///
    /// # Safety
    /// The transfer's own memory is readable or writable for its length.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`](argonet_am::AmError::OutsideSegment),
    /// [`NoSuchRank`](argonet_am::AmError::NoSuchRank),
    /// [`Restricted`](argonet_am::AmError::Restricted).
    #[inline(always)]
    pub unsafe fn transfer(&self, ctx: &ThreadCtx, transfer: Transfer) -> Result<(), OpError> {
        if !ctx.is_free() {
            // SAFETY: the caller's promise.
            return unsafe { self.transfer_traced(ctx, transfer) };
        }
        // SAFETY: the caller's promise; the call returns after completion.
        let event = unsafe { self.start(ctx, transfer, Injection::Blocking) }?;
        if event.is_done() {
            return Ok(());
        }
        self.wait_or_end(ctx, event);
        Ok(())
    }
}
