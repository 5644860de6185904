//! GASNet-1, as far as `gasnet.h` cannot do it by itself: the same engine and objects as those of
//! `gasnetex.h`, by calls without an object, whose messages have the names that the program used.

mod am;
mod ctypes;
mod fill;
mod misuse;
mod permit;
mod rma;
mod start;
mod sync;
mod values;
mod vis;

pub(crate) use permit::Permit;
pub(crate) use values::ValueGets;

use crate::Prototype;

/// All functions that `argonet/legacy_*.h` call.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [
        am::PROTOTYPES,
        fill::PROTOTYPES,
        misuse::PROTOTYPES,
        rma::PROTOTYPES,
        start::PROTOTYPES,
        sync::PROTOTYPES,
        values::PROTOTYPES,
        vis::PROTOTYPES,
    ]
    .concat()
}

/// Sizes and places in structs that C declares too.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    start::LAYOUT.to_vec()
}
