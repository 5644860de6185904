//! Sets of types, operations and facts about tokens, written out.

use core::ffi::c_char;

use crate::export::export;
use crate::job_tools::put;

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

export! {
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
