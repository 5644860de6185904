//! Put, get and atomic operations on remote segments.
//!
//! Where the target's segment is mapped they are stores, loads and processor atomics, complete
//! when the call returns.
#![allow(unsafe_code)]

use super::core::{Engine, Outlook};
use super::events::{OpError, Transfer};
use super::thread::ThreadCtx;
use super::watch::span;
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::Conduit;
use argonet_trace::Kind;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
}

/// Integers on which remote atomic operations exist. All operations are sequentially consistent
/// with each other and with nothing weaker.
pub trait AtomicWord: sealed::Sealed + Copy + PartialEq {
    /// Adds and returns the value before; wraps around.
    ///
    /// # Safety
    /// `at` is aligned, mapped, and only accessed atomically or through the bulk routine.
    unsafe fn fetch_add(at: *mut Self, value: Self) -> Self;
    /// Bitwise and; returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn fetch_and(at: *mut Self, value: Self) -> Self;
    /// Bitwise or; returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn fetch_or(at: *mut Self, value: Self) -> Self;
    /// Bitwise exclusive or; returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn fetch_xor(at: *mut Self, value: Self) -> Self;
    /// Minimum; returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn fetch_min(at: *mut Self, value: Self) -> Self;
    /// Maximum; returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn fetch_max(at: *mut Self, value: Self) -> Self;
    /// Replaces and returns the value before.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn swap(at: *mut Self, value: Self) -> Self;
    /// Replaces `current` by `new`; returns the value before, which is `current` on success.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn compare_exchange(at: *mut Self, current: Self, new: Self) -> Self;
    /// Reads.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn load(at: *mut Self) -> Self;
    /// Writes.
    ///
    /// # Safety
    /// As [`fetch_add`](Self::fetch_add).
    unsafe fn store(at: *mut Self, value: Self);
}

macro_rules! atomic_word {
    ($($int:ty, $atomic:ty;)*) => {$(
        impl sealed::Sealed for $int {}

        impl AtomicWord for $int {
            atomic_word!(@fetch $int, $atomic: fetch_add fetch_and fetch_or fetch_xor fetch_min fetch_max swap);

            #[inline(always)]
            unsafe fn compare_exchange(at: *mut Self, current: Self, new: Self) -> Self {
                // SAFETY: the caller's promise.
                let word = unsafe { <$atomic>::from_ptr(at) };
                match word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(before) | Err(before) => before,
                }
            }

            #[inline(always)]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { <$atomic>::from_ptr(at) }.load(Ordering::SeqCst)
            }

            #[inline(always)]
            unsafe fn store(at: *mut Self, value: Self) {
                // SAFETY: the caller's promise.
                unsafe { <$atomic>::from_ptr(at) }.store(value, Ordering::SeqCst);
            }
        }
    )*};
    (@fetch $int:ty, $atomic:ty: $($op:ident)*) => {$(
        #[inline(always)]
        unsafe fn $op(at: *mut Self, value: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { <$atomic>::from_ptr(at) }.$op(value, Ordering::SeqCst)
        }
    )*};
}

atomic_word! {
    u32, AtomicU32;
    i32, AtomicI32;
    u64, AtomicU64;
    i64, AtomicI64;
}

impl<C: Conduit> Engine<C> {
    /// Address at which `len` bytes of a segment can be loaded and stored here.
    #[inline(always)]
    fn direct(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, AmError> {
        match self.directory.resolve(rank, offset, len) {
            Some(place) => Ok(place),
            None => self.direct_slow(rank, offset, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn direct_slow(
        &self,
        rank: JobRank,
        offset: SegmentOffset,
        len: usize,
    ) -> Result<NonNull<u8>, AmError> {
        self.reach(rank, offset, len)?;
        let place = self.directory.resolve(rank, offset, len);
        // `reach` accepts zero bytes anywhere in a segment; no access follows then.
        Ok(place.unwrap_or(NonNull::dangling()))
    }

    /// Does a transfer; complete, locally and remotely, on return.
    ///
    /// # Safety
    /// The transfer's own memory is readable or writable for its length.
    ///
    /// # Errors
    /// [`AmError::OutsideSegment`], [`AmError::NoSuchRank`], [`AmError::Restricted`].
    #[inline(always)]
    pub unsafe fn transfer(&self, ctx: &ThreadCtx, transfer: Transfer) -> Result<(), OpError> {
        if !ctx.is_free() {
            // SAFETY: the caller's promise.
            return unsafe { self.transfer_watched(ctx, transfer) };
        }
        // SAFETY: the caller's promise; the call returns after completion.
        let event = unsafe { self.start(ctx, transfer, Outlook::Wait) }?;
        if event.is_done() {
            return Ok(());
        }
        self.wait(ctx, event)
    }

    /// Applies an atomic operation to one aligned word of a segment.
    ///
    /// # Errors
    /// As [`transfer`](Self::transfer); an unaligned offset is outside the segment's words and refused as
    /// such.
    #[inline]
    pub fn atomic<T: AtomicWord, R>(
        &self,
        ctx: &ThreadCtx,
        rank: JobRank,
        offset: SegmentOffset,
        operation: impl FnOnce(*mut T) -> R,
    ) -> Result<R, AmError> {
        ctx.permit("an atomic operation", self.rank)?;
        let mut span = span(ctx, Kind::Atomic);
        let at = self.direct(rank, offset, size_of::<T>())?;
        if !at.cast::<T>().is_aligned() {
            return Err(self.outside(rank, offset, size_of::<T>()));
        }
        let result = operation(at.as_ptr().cast());
        if let Some(span) = &mut span {
            span.tell(self.about_bytes(rank, size_of::<T>(), 0, offset.0));
        }
        Ok(result)
    }

    #[cold]
    fn outside(&self, to: JobRank, offset: SegmentOffset, len: usize) -> AmError {
        let segment = (self.segment_len)(to);
        AmError::OutsideSegment {
            offset: offset.0,
            len,
            segment,
            from: self.rank,
            to,
        }
    }
}
