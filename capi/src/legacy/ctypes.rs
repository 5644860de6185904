//! Types of GASNet-1's functions under C's names.

use crate::export::names;
use crate::legacy::start::HandlerEntry;
use crate::legacy::values::ValueGet;

names! {
    *mut HandlerEntry = "gasnet_handlerentry_t *",
    *mut ValueGet = "gasnet_valget_handle_t",
}
