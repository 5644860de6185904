//! The tools of `gasnet_tools.h` that only a program with `gasnetex.h` has.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::export::export;
use crate::job::fatal;

/// The bits of a set, from the lowest on, by the names that headers give them.
type Names = &'static [&'static str];

const TYPES: Names = &["I32", "U32", "I64", "U64", "FLT", "DBL", "USER"];
const OPERATIONS: Names = &[
    "AND", "OR", "XOR", "ADD", "SUB", "MULT", "MIN", "MAX", "INC", "DEC", "SET", "CAS", "FAND",
    "FOR", "FXOR", "FADD", "FSUB", "FMULT", "FMIN", "FMAX", "FINC", "FDEC", "SWAP", "FCAS", "GET",
    "USER", "USER_NC",
];
const FACTS: Names = &["SRCRANK", "EP", "ENTRY", "IS_REQ", "IS_LONG"];

/// The set as C would write it, `0` if it is empty. Bits without a name come as one number.
fn written(prefix: &str, names: Names, set: u32) -> String {
    let mut words: Vec<String> = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| set >> bit & 1 != 0)
        .map(|(_, name)| format!("{prefix}{name}"))
        .collect();
    let unknown = set & !((1 << names.len()) - 1);
    if unknown != 0 {
        words.push(format!("{unknown:#x}"));
    }
    if words.is_empty() {
        return "0".to_owned();
    }
    words.join("|")
}

/// Writes the text to `to` unless that is null; the bytes that it takes.
///
/// # Safety
/// `to` is null or has room for the text and a 0.
unsafe fn put(to: *mut c_char, text: &str) -> usize {
    if !to.is_null() {
        // SAFETY: by this function's contract; the caller's buffer is not the new text.
        unsafe {
            to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
            to.add(text.len()).write(0);
        }
    }
    text.len() + 1
}

export! {
    /// Memory of the process's own, which begins with a page.
    fn argonet_map_memory(bytes: usize) -> *mut c_void {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever there is room.
        match unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) } {
            Ok(memory) => memory,
            Err(error) => fatal("gasnett_mmap", &format!("{bytes} bytes could not be mapped: {error}")),
        }
    }

    /// A set of types.
    fn argonet_format_dt(to: *mut c_char, set: u32) -> usize {
        // SAFETY: null, or room for as much as a call with null told, as the header says.
        unsafe { put(to, &written("GEX_DT_", TYPES, set)) }
    }

    /// A set of operations.
    fn argonet_format_op(to: *mut c_char, set: u32) -> usize {
        // SAFETY: as above.
        unsafe { put(to, &written("GEX_OP_", OPERATIONS, set)) }
    }

    /// A set of facts about a token.
    fn argonet_format_ti(to: *mut c_char, set: u32) -> usize {
        // SAFETY: as above.
        unsafe { put(to, &written("GEX_TI_", FACTS, set)) }
    }
}
