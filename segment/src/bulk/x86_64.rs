//! Moves and calls of the bulk routine on x86-64.
//!
//! Only SSE2 is used, which every x86-64 has.
//!
//! Loads of a block all come before its stores, so that the processor may overlap them.

use core::arch::asm;
use core::ffi::{c_int, c_void};

macro_rules! single_move {
    ($name:ident, $len:literal, $width:literal, $reg:literal, $class:ident) => {
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
                    concat!("mov ", $reg, ", ", $width, " ptr [{s}]"),
                    concat!("mov ", $width, " ptr [{d}], ", $reg),
                    s = in(reg) src,
                    d = in(reg) dst,
                    t = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

single_move!(move_1, "1", "byte", "{t}", reg_byte);
single_move!(move_2, "2", "word", "{t:x}", reg);
single_move!(move_4, "4", "dword", "{t:e}", reg);
single_move!(move_8, "8", "qword", "{t:r}", reg);

/// Copies 16 bytes with one load and one store.
///
/// # Safety
///
/// The contract of `bulk::copy` for 16 bytes.
#[inline(always)]
pub(super) unsafe fn move_16(dst: *mut u8, src: *const u8) {
    // SAFETY: the block reads and writes exactly the 16 bytes that the caller vouches for.
    unsafe {
        asm!(
            "movups {t}, xmmword ptr [{s}]",
            "movups xmmword ptr [{d}], {t}",
            s = in(reg) src,
            d = in(reg) dst,
            t = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

macro_rules! pair_move {
    ($name:ident, $len:literal, $op:literal, $width:literal, $a:literal, $b:literal, $class:ident) => {
        #[doc = concat!("Copies ", $len, " to twice as many bytes with two overlapping moves.")]
        ///
        /// # Safety
        ///
        /// The contract of `bulk::copy`, and `len` is in that range.
        #[inline(always)]
        pub(super) unsafe fn $name(dst: *mut u8, src: *const u8, len: usize) {
            // SAFETY: the two moves cover [0, n) and [len - n, len); with n <= len <= 2n, which the
            // caller vouches for, both lie inside [0, len) and together are all of it.
            unsafe {
                asm!(
                    concat!($op, " ", $a, ", ", $width, " ptr [{s}]"),
                    concat!($op, " ", $b, ", ", $width, " ptr [{s} + {n} - ", $len, "]"),
                    concat!($op, " ", $width, " ptr [{d}], ", $a),
                    concat!($op, " ", $width, " ptr [{d} + {n} - ", $len, "], ", $b),
                    s = in(reg) src,
                    d = in(reg) dst,
                    n = in(reg) len,
                    a = out($class) _,
                    b = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

pair_move!(move_4_pair, "4", "mov", "dword", "{a:e}", "{b:e}", reg);
pair_move!(move_8_pair, "8", "mov", "qword", "{a:r}", "{b:r}", reg);
pair_move!(
    move_16_pair,
    "16",
    "movups",
    "xmmword",
    "{a}",
    "{b}",
    xmm_reg
);

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
            "movups {a}, xmmword ptr [{s}]",
            "movups {b}, xmmword ptr [{s} + 16]",
            "movups {c}, xmmword ptr [{s} + {n} - 32]",
            "movups {e}, xmmword ptr [{s} + {n} - 16]",
            "movups xmmword ptr [{d}], {a}",
            "movups xmmword ptr [{d} + 16], {b}",
            "movups xmmword ptr [{d} + {n} - 32], {c}",
            "movups xmmword ptr [{d} + {n} - 16], {e}",
            s = in(reg) src,
            d = in(reg) dst,
            n = in(reg) len,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            e = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

macro_rules! single_put {
    ($name:ident, $len:literal, $width:literal, $reg:literal, $class:ident, $as:ty) => {
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
                    concat!("mov ", $width, " ptr [{d}], ", $reg),
                    d = in(reg) dst,
                    w = in($class) word as $as,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

single_put!(put_1, "1", "byte", "{w}", reg_byte, u8);
single_put!(put_2, "2", "word", "{w:x}", reg, u16);
single_put!(put_4, "4", "dword", "{w:e}", reg, u32);
single_put!(put_8, "8", "qword", "{w:r}", reg, u64);

macro_rules! single_get {
    ($name:ident, $len:literal, $load:literal, $reg:literal, $width:literal) => {
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
                    concat!($load, " ", $reg, ", ", $width, " ptr [{s}]"),
                    s = in(reg) src,
                    w = lateout(reg) word,
                    options(nostack, preserves_flags, readonly),
                );
            }
            word
        }
    };
}

single_get!(get_1, "1", "movzx", "{w:e}", "byte");
single_get!(get_2, "2", "movzx", "{w:e}", "word");
single_get!(get_4, "4", "mov", "{w:e}", "dword");
single_get!(get_8, "8", "mov", "{w:r}", "qword");

/// Calls libc's `memcpy` without the compiler seeing what is called.
///
/// # Safety
///
/// The contract of `bulk::copy`.
#[inline]
pub(super) unsafe fn copy_call(dst: *mut u8, src: *const u8, len: usize) {
    let memcpy: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void =
        libc::memcpy;
    // SAFETY: the System V calling convention: three arguments in rdi, rsi and rdx, every register
    // that a callee may change declared as changed, the stack aligned for a call because `nostack`
    // is not given. memcpy reads and writes what the caller vouches for and does not unwind.
    unsafe {
        asm!(
            "call {f}",
            f = in(reg) memcpy,
            in("rdi") dst,
            in("rsi") src,
            in("rdx") len,
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
    // SAFETY: as in `copy_call`; the byte travels as a C int in esi.
    unsafe {
        asm!(
            "call {f}",
            f = in(reg) memset,
            in("rdi") dst,
            in("esi") c_int::from(byte),
            in("rdx") len,
            clobber_abi("C"),
        );
    }
}
