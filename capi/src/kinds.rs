//! Kinds of memory: the host's, and no others.

use core::ffi::{c_int, c_void};

use argonet_base::gasnet::number32;

use crate::export::export;
use crate::job::{BAD_ARG, Client, Kind, fatal, given, refuse};

/// `GEX_MK_CLASS_HOST`.
const HOST: c_int = number32("GEX_MK_CLASS_HOST") as c_int;

export! {
    /// Behind `gex_MK_Create`, with the class that it was given, -1 for none.
    fn argonet_kind_create(kind: *mut *const Kind, client: *const Client, class: c_int, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_MK_Create";
        // SAFETY: a client of ours, or null.
        unsafe { given(client, FUNCTION, "client") };
        if kind.is_null() || class < 0 || flags != 0 {
            return refuse(FUNCTION, BAD_ARG, "the place for the kind and the arguments must not be null, and flags must be 0");
        }
        if class == HOST {
            return refuse(FUNCTION, BAD_ARG, "the class is GEX_MK_CLASS_HOST, whose kind is GEX_MK_HOST and not created");
        }
        refuse(FUNCTION, BAD_ARG, &format!("this library is built without devices (class {class}), see GASNET_HAVE_MK_CLASS_*"))
    }

    /// Behind `gex_MK_Destroy`.
    fn argonet_kind_destroy(kind: *const Kind, _flags: u32) {
        let kind: *const c_void = kind.cast();
        fatal("gex_MK_Destroy", &format!("{kind:p} is no kind that gex_MK_Create made"));
    }
}
