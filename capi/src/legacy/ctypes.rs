//! Types of GASNet-1's functions under C's names.

use crate::export::names;
use crate::legacy::start::HandlerEntry;
use crate::legacy::values::ValueGet;
use crate::legacy::vis::LegacyPiece;

names! {
    *mut HandlerEntry = "gasnet_handlerentry_t *",
    *mut ValueGet = "gasnet_valget_handle_t",
    *const LegacyPiece = "const gasnet_memvec_t *",
}
