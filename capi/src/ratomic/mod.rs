//! Remote atomic operations, where a header does not do them by itself: words that are not mapped
//! here, and debug builds.

mod calls;
mod checks;
mod domain;
mod operation;

use argonet_engine::{DataType, Operation};

use crate::Prototype;
use crate::export::names;
use domain::Domain;

names! {
    *const Domain = "gex_AD_t",
    *mut *const Domain = "gex_AD_t *",
    *mut i64 = "int64_t *",
    *mut u64 = "uint64_t *",
    *mut f32 = "float *",
    *mut f64 = "double *",
    f32 = "float",
}

/// All functions that `argonet/ratomic.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    [calls::PROTOTYPES, domain::PROTOTYPES].concat()
}

/// The values of `gex_DT_t` and `gex_OP_t`, and the fields of a domain that `argonet/ratomic.h`
/// uses.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    let types = DataType::ALL.map(|dt| (dt.name(), u32::from(dt) as usize));
    let operations = Operation::all().map(|op| (op.name(), op.bit() as usize));
    domain::LAYOUT
        .iter()
        .copied()
        .chain(types)
        .chain(operations)
        .collect()
}
