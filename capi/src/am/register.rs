//! `gex_EP_RegisterHandlers`.

use core::ffi::c_int;

use crate::am::entry::Entry;
use crate::am::handlers::Refusal;
use crate::export::export;
use crate::job::{BAD_ARG, Endpoint, OK, RESOURCE, given, refuse};

export! {
    fn gex_EP_RegisterHandlers(ep: *const Endpoint, table: *mut Entry, count: usize) -> c_int {
        const FUNCTION: &str = "gex_EP_RegisterHandlers";
        // SAFETY: an endpoint of ours, or null.
        let endpoint = unsafe { given(ep, FUNCTION, "ep") };
        let Some(handlers) = endpoint.handlers() else {
            return refuse(FUNCTION, BAD_ARG, &format!("endpoint {} was created without GEX_EP_CAPABILITY_AM", endpoint.index()));
        };
        if count == 0 {
            return OK;
        }
        if table.is_null() {
            return refuse(FUNCTION, BAD_ARG, "the table must not be null");
        }
        if count > isize::MAX as usize / size_of::<Entry>() {
            return refuse(FUNCTION, BAD_ARG, &format!("the table cannot have {count} entries"));
        }
        // SAFETY: a table of so many entries that is the caller's to write, as the header asks.
        let table = unsafe { core::slice::from_raw_parts_mut(table, count) };
        match handlers.add(table) {
            Ok(()) => OK,
            Err(Refusal::Bad(why)) => refuse(FUNCTION, BAD_ARG, &why),
            Err(Refusal::Full(why)) => refuse(FUNCTION, RESOURCE, &why),
        }
    }
}
