//! Moves and calls of the bulk routine on aarch64.
//!
//! Only base NEON registers are used, which every aarch64 Linux has.
//!
//! Loads of a block all come before its stores, so that the processor may overlap them.

use core::arch::asm;
use core::ffi::{c_int, c_void};

macro_rules! single_move {
    ($name:ident, $len:literal, $load:literal, $store:literal, $reg:literal, $class:ident) => {
        #[doc = concat!("Copies ", $len, " bytes with one load and one store.")]
        ///
        /// # Safety
        ///
        /// The contract of `bulk::copy` for that length.
        #[inline(always)]
        pub(super) unsafe fn $name(dst: *mut u8, src: *const u8) {
            // SAFETY: the block reads and writes exactly the bytes that the caller vouches for,
            // touches no stack and no flags.
            unsafe {
                asm!(
                    concat!($load, " ", $reg, ", [{s}]"),
                    concat!($store, " ", $reg, ", [{d}]"),
                    s = in(reg) src,
                    d = in(reg) dst,
                    t = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

single_move!(move_1, "1", "ldrb", "strb", "{t:w}", reg);
single_move!(move_2, "2", "ldrh", "strh", "{t:w}", reg);
single_move!(move_4, "4", "ldr", "str", "{t:w}", reg);
single_move!(move_8, "8", "ldr", "str", "{t:x}", reg);
single_move!(move_16, "16", "ldr", "str", "{t:q}", vreg);

macro_rules! pair_move {
    ($name:ident, $len:literal, $a:literal, $b:literal, $class:ident) => {
        #[doc = concat!("Copies ", $len, " to twice as many bytes with two overlapping moves.")]
        ///
        /// # Safety
        ///
        /// The contract of `bulk::copy`, and `len` is in that range.
        #[inline(always)]
        pub(super) unsafe fn $name(dst: *mut u8, src: *const u8, len: usize) {
            // SAFETY: the two moves cover [0, n) and [len - n, len); with n <= len <= 2n, which the
            // caller vouches for, both lie inside [0, len) and together are all of it. The two
            // pointers that are computed lie inside the same ranges.
            unsafe {
                asm!(
                    concat!("ldr ", $a, ", [{s}]"),
                    concat!("ldr ", $b, ", [{s2}]"),
                    concat!("str ", $a, ", [{d}]"),
                    concat!("str ", $b, ", [{d2}]"),
                    s = in(reg) src,
                    s2 = in(reg) src.add(len - $len),
                    d = in(reg) dst,
                    d2 = in(reg) dst.add(len - $len),
                    a = out($class) _,
                    b = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

pair_move!(move_4_pair, 4, "{a:w}", "{b:w}", reg);
pair_move!(move_8_pair, 8, "{a:x}", "{b:x}", reg);
pair_move!(move_16_pair, 16, "{a:q}", "{b:q}", vreg);

/// Copies 32 to 64 bytes with four overlapping moves.
///
/// # Safety
///
/// The contract of `bulk::copy`, and `32 <= len <= 64`.
#[inline(always)]
pub(super) unsafe fn move_16_quad(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the moves cover [0, 32) and [len - 32, len); with 32 <= len <= 64, which the caller
    // vouches for, both lie inside [0, len) and together are all of it.
    unsafe {
        asm!(
            "ldp {a:q}, {b:q}, [{s}]",
            "ldp {c:q}, {e:q}, [{s2}]",
            "stp {a:q}, {b:q}, [{d}]",
            "stp {c:q}, {e:q}, [{d2}]",
            s = in(reg) src,
            s2 = in(reg) src.add(len - 32),
            d = in(reg) dst,
            d2 = in(reg) dst.add(len - 32),
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            e = out(vreg) _,
            options(nostack, preserves_flags),
        );
    }
}

macro_rules! single_put {
    ($name:ident, $len:literal, $store:literal, $reg:literal) => {
        #[doc = concat!("Stores the low ", $len, " bytes of a word with one store.")]
        ///
        /// # Safety
        ///
        /// The contract of `bulk::fill` for that length.
        #[inline(always)]
        pub(super) unsafe fn $name(dst: *mut u8, word: u64) {
            // SAFETY: the block writes exactly the bytes that the caller vouches for.
            unsafe {
                asm!(
                    concat!($store, " ", $reg, ", [{d}]"),
                    d = in(reg) dst,
                    w = in(reg) word,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

single_put!(put_1, "1", "strb", "{w:w}");
single_put!(put_2, "2", "strh", "{w:w}");
single_put!(put_4, "4", "str", "{w:w}");
single_put!(put_8, "8", "str", "{w:x}");

macro_rules! single_get {
    ($name:ident, $len:literal, $load:literal, $reg:literal) => {
        #[doc = concat!("Loads ", $len, " bytes with one load, as the low bytes of a word.")]
        ///
        /// # Safety
        ///
        /// `src` as in the contract of `bulk::copy` for that length.
        #[inline(always)]
        pub(super) unsafe fn $name(src: *const u8) -> u64 {
            let word: u64;
            // SAFETY: the block reads exactly the bytes that the caller vouches for. A write to the
            // low half of a register clears the other.
            unsafe {
                asm!(
                    concat!($load, " ", $reg, ", [{s}]"),
                    s = in(reg) src,
                    w = lateout(reg) word,
                    options(nostack, preserves_flags, readonly),
                );
            }
            word
        }
    };
}

single_get!(get_1, "1", "ldrb", "{w:w}");
single_get!(get_2, "2", "ldrh", "{w:w}");
single_get!(get_4, "4", "ldr", "{w:w}");
single_get!(get_8, "8", "ldr", "{w:x}");

/// Calls libc's `memcpy` without the compiler seeing what is called.
///
/// # Safety
///
/// The contract of `bulk::copy`.
#[inline]
pub(super) unsafe fn copy_call(dst: *mut u8, src: *const u8, len: usize) {
    let memcpy: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void =
        libc::memcpy;
    // SAFETY: the AAPCS64 calling convention: three arguments in x0 to x2, every register that a
    // callee may change (the link register among them) declared as changed, the stack aligned for
    // a call because `nostack` is not given. memcpy reads and writes what the caller vouches for
    // and does not unwind.
    unsafe {
        asm!(
            "blr {f}",
            f = in(reg) memcpy,
            in("x0") dst,
            in("x1") src,
            in("x2") len,
            clobber_abi("C"),
        );
    }
}

/// Calls libc's `memset` without the compiler seeing what is called.
///
/// # Safety
///
/// The contract of `bulk::fill`.
#[inline]
pub(super) unsafe fn fill_call(dst: *mut u8, byte: u8, len: usize) {
    let memset: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void = libc::memset;
    // SAFETY: as in `copy_call`; the byte travels as a C int in w1.
    unsafe {
        asm!(
            "blr {f}",
            f = in(reg) memset,
            in("x0") dst,
            in("w1") c_int::from(byte),
            in("x2") len,
            clobber_abi("C"),
        );
    }
}
