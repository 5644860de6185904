//! The one routine through which memory that a peer may write at any moment is read and written in
//! bulk.
//!
//! # Why it exists
//!
//! A segment is written by other processes without warning. Under Rust's memory model a plain load
//! that races with a store is undefined behavior for any meaning of the bytes, and a `&[u8]` over
//! such memory promises the compiler something untrue. Atomics of one byte each would be defined,
//! and far too slow for a megabyte.
//!
//! Inline assembly is the way out: the compiler may assume nothing about what an `asm!` block does
//! to the memory that it can reach, except that it is something which *some* Rust code could do.
//! For each block here that code is a loop of relaxed atomic loads and stores of single bytes. A
//! race may therefore tear a value into a mix of old and new bytes, and is never undefined
//! behavior. The bounds on the typed accessors make torn values harmless (`FromBytes`: each pattern
//! of bytes is a value).
//!
//! # Parts
//!
//! * [`copy`] and [`fill`]: up to 64 bytes inline moves, written by hand for each processor (one
//!   file each); above that libc's `memcpy` and `memset`, called from inline assembly so that
//!   the compiler cannot see through the call.
//! * [`put_value`] and [`get_value`]: one value, in a register if it fits one.
//! * [`load_u8`] to [`load_u64`] and [`store_u8`] to [`store_u64`]: aligned values, as relaxed
//!   atomics. They never tear.
//! * [`SharedBytes`] and [`SharedBytesMut`]: safe, bounds-checked views on top.
//!
//! Sizes of 1, 2, 4, 8 and 16 bytes are stored exactly once by one instruction, so that an aligned
//! flag of up to 8 bytes that a peer polls is written once and whole. Other sizes may store a byte
//! twice (with the same value), as every `memcpy` may.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;
mod shared;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("argonet has its copy routine for x86-64 and aarch64 only; add a file beside them");

pub use shared::{OutOfRange, SharedBytes, SharedBytesMut};

use core::mem::{MaybeUninit, transmute_copy};

/// Longest copy that is made with inline moves instead of a call.
pub const INLINE_BYTES: usize = 64;

/// Copies `len` bytes from `src` to `dst`, either or both of which a peer may be writing.
///
/// The copy is complete when the call returns, in the sense of the processor's memory model: the
/// stores are ordered after nothing and before nothing (use a fence or an atomic for that). Bytes
/// that a peer writes meanwhile are seen old or new, each by itself. No alignment is needed. With a
/// length of 0 the pointers are not looked at.
///
/// # Safety
///
/// * `src` is valid for reads and `dst` for writes of `len` bytes: mapped, or allocated by Rust.
/// * The two ranges do not overlap.
/// * Nothing in this process accesses `dst` at the same time, or writes `src`, by plain
///   Rust loads and stores; this routine, atomics and other processes may.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's contract is the one that both branches ask for; the first also needs
    // len <= INLINE_BYTES, which the condition establishes.
    unsafe {
        if len <= INLINE_BYTES {
            copy_inline(dst, src, len);
        } else {
            arch::copy_call(dst, src, len);
        }
    }
}

/// Stores one value: [`copy`] from `value`, without a detour through memory where it has 1, 2, 4 or
/// 8 bytes.
///
/// # Safety
///
/// `dst` as for [`copy`] with the size of `T`, all of whose bytes are initialized (no padding).
#[inline(always)]
pub unsafe fn put_value<T: Copy>(dst: *mut u8, value: T) {
    // SAFETY: the caller's contract is that of all branches; `value` is a place of its own, and
    // each `transmute_copy` reads as many bytes as `T` has, which are initialized.
    unsafe {
        match size_of::<T>() {
            1 => arch::put_1(dst, u64::from(transmute_copy::<T, u8>(&value))),
            2 => arch::put_2(dst, u64::from(transmute_copy::<T, u16>(&value))),
            4 => arch::put_4(dst, u64::from(transmute_copy::<T, u32>(&value))),
            8 => arch::put_8(dst, transmute_copy::<T, u64>(&value)),
            len => copy(dst, (&raw const value).cast(), len),
        }
    }
}

/// Loads one value, the other way around.
///
/// # Safety
///
/// `src` as for [`copy`] with the size of `T`, for which any bytes are a value.
#[inline(always)]
#[must_use]
pub unsafe fn get_value<T: Copy>(src: *const u8) -> T {
    // SAFETY: as in `put_value`; any bytes are a `T`. The integers are cut to its size, and the
    // rest of each word is zero.
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&(arch::get_1(src) as u8)),
            2 => transmute_copy(&(arch::get_2(src) as u16)),
            4 => transmute_copy(&(arch::get_4(src) as u32)),
            8 => transmute_copy(&arch::get_8(src)),
            len => {
                let mut value = MaybeUninit::<T>::uninit();
                copy(value.as_mut_ptr().cast(), src, len);
                value.assume_init()
            }
        }
    }
}

/// Sets `len` bytes at `dst` to `byte`; like [`copy`] in every other respect.
///
/// # Safety
///
/// As for `dst` of [`copy`].
#[inline]
pub unsafe fn fill(dst: *mut u8, byte: u8, len: usize) {
    // SAFETY: as in `copy`.
    unsafe {
        if len <= INLINE_BYTES {
            fill_inline(dst, byte, len);
        } else {
            arch::fill_call(dst, byte, len);
        }
    }
}

/// # Safety
///
/// The contract of [`copy`], and `len <= INLINE_BYTES`.
#[inline(always)]
unsafe fn copy_inline(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: each arm moves bytes inside [0, len) of both ranges and no others: an exact move of
    // `len` bytes, or a pair of moves of `n` bytes at 0 and at len - n with n <= len <= 2n (four
    // moves for 32 <= len <= 64).
    unsafe {
        match len {
            // The sizes of flags and pointers come first: the exact test costs one predictable
            // branch, and none where the caller's length is a constant.
            8 => arch::move_8(dst, src),
            4 => arch::move_4(dst, src),
            0 => {}
            1 => arch::move_1(dst, src),
            2 => arch::move_2(dst, src),
            3 => {
                arch::move_2(dst, src);
                arch::move_1(dst.add(2), src.add(2));
            }
            5..8 => arch::move_4_pair(dst, src, len),
            9..16 => arch::move_8_pair(dst, src, len),
            16 => arch::move_16(dst, src),
            17..=32 => arch::move_16_pair(dst, src, len),
            _ => arch::move_16_quad(dst, src, len),
        }
    }
}

/// # Safety
///
/// The contract of [`fill`], and `len <= INLINE_BYTES`.
#[inline(always)]
unsafe fn fill_inline(dst: *mut u8, byte: u8, len: usize) {
    let word = u64::from(byte) * 0x0101_0101_0101_0101;
    // SAFETY: as in `copy_inline`, for stores only.
    unsafe {
        match len {
            8 => arch::put_8(dst, word),
            0 => {}
            1 => arch::put_1(dst, word),
            2 => arch::put_2(dst, word),
            3 => {
                arch::put_2(dst, word);
                arch::put_1(dst.add(2), word);
            }
            4 => arch::put_4(dst, word),
            5..8 => {
                arch::put_4(dst, word);
                arch::put_4(dst.add(len - 4), word);
            }
            9..=16 => {
                arch::put_8(dst, word);
                arch::put_8(dst.add(len - 8), word);
            }
            _ => {
                let mut at = 0;
                while at + 8 < len {
                    arch::put_8(dst.add(at), word);
                    at += 8;
                }
                arch::put_8(dst.add(len - 8), word);
            }
        }
    }
}

macro_rules! atomic_access {
    ($load:ident, $store:ident, $int:ty, $atomic:ty) => {
        /// Loads an aligned value that a peer may write at any moment, as a relaxed atomic: it is
        /// never torn, and nothing is ordered by it.
        ///
        /// # Safety
        ///
        /// `ptr` is aligned to its size, valid for reads, and in this process accessed at the same
        /// time only by atomics of this size or by [`copy`] and [`fill`].
        #[inline]
        #[must_use]
        pub unsafe fn $load(ptr: *const $int) -> $int {
            debug_assert!(ptr.is_aligned());
            // SAFETY: alignment, validity and the absence of plain accesses are the caller's
            // contract; a load never writes, so the cast from const is not used to write.
            unsafe { <$atomic>::from_ptr(ptr.cast_mut()) }
                .load(core::sync::atomic::Ordering::Relaxed)
        }

        /// Stores an aligned value that a peer may read at any moment, as a relaxed atomic: it is
        /// never torn, and nothing is ordered by it.
        ///
        /// # Safety
        ///
        /// `ptr` is aligned to its size, valid for writes, and in this process accessed at the
        /// same time only by atomics of this size or by [`copy`] and [`fill`].
        #[inline]
        pub unsafe fn $store(ptr: *mut $int, value: $int) {
            debug_assert!(ptr.is_aligned());
            // SAFETY: alignment, validity and the absence of plain accesses are the caller's
            // contract.
            unsafe { <$atomic>::from_ptr(ptr) }.store(value, core::sync::atomic::Ordering::Relaxed);
        }
    };
}

atomic_access!(load_u8, store_u8, u8, core::sync::atomic::AtomicU8);
atomic_access!(load_u16, store_u16, u16, core::sync::atomic::AtomicU16);
atomic_access!(load_u32, store_u32, u32, core::sync::atomic::AtomicU32);
atomic_access!(load_u64, store_u64, u64, core::sync::atomic::AtomicU64);

#[cfg(test)]
mod tests;
