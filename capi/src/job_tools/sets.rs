//! Sets of types, operations and facts about tokens, written out.

use core::ffi::c_char;

use argonet_base::gasnet::number32;
use argonet_engine::{DataType, Operation};

use crate::export::export;
use crate::job_tools::put;

const FACTS: [(u32, &str); 5] = [
    (number32("GEX_TI_SRCRANK"), "GEX_TI_SRCRANK"),
    (number32("GEX_TI_EP"), "GEX_TI_EP"),
    (number32("GEX_TI_ENTRY"), "GEX_TI_ENTRY"),
    (number32("GEX_TI_IS_REQ"), "GEX_TI_IS_REQ"),
    (number32("GEX_TI_IS_LONG"), "GEX_TI_IS_LONG"),
];

/// The set as C would write it, `0` if it is empty.
///
/// Bits without a name come as one number.
fn written(names: impl IntoIterator<Item = (u32, &'static str)>, set: u32) -> String {
    let mut known = 0;
    let mut words = Vec::new();
    for (bit, name) in names {
        known |= bit;
        if set & bit != 0 {
            words.push(name.to_owned());
        }
    }
    let unknown = set & !known;
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
        // SAFETY: null, or room for as much as a call with null returned, as the header says.
        unsafe { put(to, &written(DataType::ALL.map(|dt| (dt.into(), dt.name())), set)) }
    }

    /// A set of operations.
    fn argonet_format_op(to: *mut c_char, set: u32) -> usize {
        // SAFETY: as above.
        unsafe { put(to, &written(Operation::all().map(|op| (op.bit(), op.name())), set)) }
    }

    /// A set of facts about a token.
    fn argonet_format_ti(to: *mut c_char, set: u32) -> usize {
        // SAFETY: as above.
        unsafe { put(to, &written(FACTS, set)) }
    }
}
