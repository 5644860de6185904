//! Gets of values that go on after the call. Each has a place of its own for its value, until it is waited for.

use core::ffi::c_void;

use argonet_event::Event;

use crate::context::{communicating, done};
use crate::export::export;
use crate::job::fatal;
use crate::legacy::rma::get;
use crate::rma::{LocalOption, value_size};

/// What a `gasnet_valget_handle_t` leads to.
pub(crate) struct ValueGet {
    value: u64,
    event: Event,
}

export! {
    fn gasnet_get_nb_val(rank: u32, src: *mut c_void, bytes: usize) -> *mut ValueGet {
        const FUNCTION: &str = "gasnet_get_nb_val";
        value_size(FUNCTION, bytes);
        let place = Box::into_raw(Box::new(ValueGet { value: 0, event: Event::DONE }));
        // SAFETY: just allocated; it stays until the operation has been waited for. The value is zero beyond its bytes.
        let to = unsafe { &raw mut (*place).value };
        let event = get(FUNCTION, to.cast(), rank, src, bytes).explicit(&LocalOption::Later);
        // SAFETY: as above; the operation writes the value alone.
        unsafe { (&raw mut (*place).event).write(event) };
        place
    }

    fn gasnet_wait_syncnb_valget(handle: *mut ValueGet) -> u64 {
        const FUNCTION: &str = "gasnet_wait_syncnb_valget";
        if handle.is_null() {
            fatal(FUNCTION, "handle is invalid (null)");
        }
        // SAFETY: `gasnet_get_nb_val` made it, and nobody else waits for it, as the header asks.
        let event = unsafe { (*handle).event };
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.wait(ctx, event)));
        // SAFETY: as above; the operation is over, and nobody writes the value any more.
        unsafe { Box::from_raw(handle) }.value
    }
}
