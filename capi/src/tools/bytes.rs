//! Counting and summing bytes.

use core::ffi::{c_int, c_void};
use std::{ptr, slice};

use crate::export::export;

/// # Safety
/// `from` holds `count` bytes that no thread writes.
unsafe fn bytes<'a>(from: *const c_void, count: usize) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; no bytes need no pointer.
    unsafe { slice::from_raw_parts(from.cast(), count) }
}

fn zeros(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == 0).count()
}

export! {
    /// A sum that differs for most different contents (FNV-1a).
    ///
    /// The header's `gasnett_checksum`.
    fn argonett_checksum(from: *const c_void, count: c_int) -> u64 {
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the header asks for `count` readable bytes.
        let bytes = unsafe { bytes(from, count) };
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// How many bytes are zero.
    fn argonett_count0s(from: *const c_void, count: usize) -> usize {
        // SAFETY: the header asks for `count` readable bytes.
        zeros(unsafe { bytes(from, count) })
    }

    /// Copies, and says how many bytes are zero.
    fn argonett_count0s_copy(to: *mut c_void, from: *const c_void, count: usize) -> usize {
        if count > 0 {
            // SAFETY: the header asks for `count` readable and as many writable bytes that do not
            // overlap.
            unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), count) };
        }
        // SAFETY: as above.
        zeros(unsafe { bytes(from, count) })
    }
}
