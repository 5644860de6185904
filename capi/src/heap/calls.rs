//! The functions that C calls.

use core::ffi::{c_char, c_int, c_void};
use core::mem::offset_of;

use crate::export::{export, names};
use crate::heap::report;
use crate::heap::table::{Call, Stats, table};
use crate::tools::text;

names! {
    *mut Stats = "gasnett_heapstats_t *",
}

/// A copy of `bytes` bytes of a text, with a 0 behind them.
///
/// # Safety
/// `from` leads to that many bytes.
unsafe fn copy(from: *const c_char, bytes: usize, call: Call) -> *mut c_char {
    let to = table().allocate(bytes + 1, call);
    // SAFETY: this function's contract, and a new block of one byte more.
    unsafe {
        to.copy_from_nonoverlapping(from.cast(), bytes);
        to.add(bytes).write(0);
    }
    to.cast()
}

fn given(from: *const c_char, call: Call) {
    if from.is_null() {
        call.fatal("s is NULL");
    }
}

export! {
    /// A block.
    fn argonet_debug_malloc(bytes: usize, place: *const c_char) -> *mut c_void {
        table().allocate(bytes, Call::new("gasnett_debug_malloc", place)).cast()
    }

    /// A block of zeros.
    fn argonet_debug_calloc(count: usize, bytes: usize, place: *const c_char) -> *mut c_void {
        let call = Call::new("gasnett_debug_calloc", place);
        let Some(all) = count.checked_mul(bytes) else {
            call.fatal(&format!("{count} times {bytes} bytes is more than there can be"));
        };
        let block = table().allocate(all, call);
        // SAFETY: the new block's bytes.
        unsafe { block.write_bytes(0, all) };
        block.cast()
    }

    /// A block with what another has held, which is freed; a new one for null.
    fn argonet_debug_realloc(block: *mut c_void, bytes: usize, place: *const c_char) -> *mut c_void {
        let call = Call::new("gasnett_debug_realloc", place);
        let mut table = table();
        if block.is_null() {
            return table.allocate(bytes, call).cast();
        }
        let old = table.known(block.cast(), call);
        let new = table.allocate(bytes, call);
        // SAFETY: both blocks have that many bytes, and are two.
        unsafe { new.copy_from_nonoverlapping(block.cast(), old.bytes.min(bytes)) };
        table.free(block.cast(), call);
        new.cast()
    }

    /// Frees a block; nothing for null.
    fn argonet_debug_free(block: *mut c_void, place: *const c_char) {
        if !block.is_null() {
            table().free(block.cast(), Call::new("gasnett_debug_free", place));
        }
    }

    /// A copy of a string.
    fn argonet_debug_strdup(from: *const c_char, place: *const c_char) -> *mut c_char {
        let call = Call::new("gasnett_debug_strdup", place);
        given(from, call);
        // SAFETY: a string, as the header says, so its bytes are there.
        unsafe { copy(from, libc::strlen(from), call) }
    }

    /// A copy of the first bytes of a string.
    fn argonet_debug_strndup(from: *const c_char, most: usize, place: *const c_char) -> *mut c_char {
        let call = Call::new("gasnett_debug_strndup", place);
        given(from, call);
        // SAFETY: a string or at least `most` bytes, as the header says; the count is of bytes that
        // are there.
        unsafe { copy(from, libc::strnlen(from, most), call) }
    }

    /// Ends the program unless this is a block and whole.
    fn argonet_debug_memcheck(block: *mut c_void, place: *const c_char) {
        table().known(block.cast(), Call::new("gasnett_debug_memcheck", place));
    }

    /// Checks one block, each time another.
    fn argonet_debug_memcheck_one(place: *const c_char) {
        table().check_one(Call::new("gasnett_debug_memcheck_one", place));
    }

    /// Checks all blocks.
    fn argonet_debug_memcheck_all(place: *const c_char) {
        table().check_all(Call::new("gasnett_debug_memcheck_all", place));
    }

    /// The counts; always 0.
    fn argonet_getheapstats(to: *mut Stats) -> c_int {
        let stats = table().stats();
        // SAFETY: the header asks for a struct of the caller's; null is none.
        if let Some(to) = unsafe { to.as_mut() } {
            *to = stats;
        }
        0
    }

    /// Writes the report now; null means standard error.
    fn argonet_heapinfo_dump(file: *const c_char, lists: c_int) {
        // SAFETY: a string or null, as the header says.
        let file = unsafe { text(file) };
        let file = if file.is_empty() { "-" } else { &file };
        report::write(&table(), file, lists != 0);
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(gasnett_heapstats_t)", size_of::<Stats>()),
    (
        "offsetof(gasnett_heapstats_t, live_bytes)",
        offset_of!(Stats, live_bytes),
    ),
    (
        "offsetof(gasnett_heapstats_t, live_objects_max)",
        offset_of!(Stats, live_objects_max),
    ),
    (
        "offsetof(gasnett_heapstats_t, overhead_bytes)",
        offset_of!(Stats, overhead_bytes),
    ),
];
