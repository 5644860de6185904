//! Gets of values that go on after the call.
//!
//! Each has a place of its own for its value, until it is waited for.

use core::ffi::c_void;
use std::collections::BTreeSet;

use argonet_event::Event;
use parking_lot::Mutex;

use crate::context::{communicating, done};
use crate::export::export;
use crate::job::{fatal, job};
use crate::legacy::rma::get;
use crate::rma::{LocalOption, value_size};

/// Target of a `gasnet_valget_handle_t`.
pub(crate) struct ValueGet {
    value: u64,
    event: Event,
}

/// Handles that have not been waited for.
///
/// Known in debug builds of a client alone.
#[derive(Debug, Default)]
pub(crate) struct ValueGets(Mutex<BTreeSet<usize>>);

impl ValueGets {
    fn begins(&self, handle: *mut ValueGet) {
        self.0.lock().insert(handle.addr());
    }

    /// Ends the job if the handle is none, or has been waited for.
    fn ends(&self, handle: *mut ValueGet, function: &str) {
        if !self.0.lock().remove(&handle.addr()) {
            let why = "is none of gasnet_get_nb_val, or has been waited for already";
            fatal(function, &format!("handle {handle:p} {why}"));
        }
    }
}

export! {
    fn gasnet_get_nb_val(rank: u32, src: *mut c_void, bytes: usize) -> *mut ValueGet {
        const FUNCTION: &str = "gasnet_get_nb_val";
        value_size(FUNCTION, bytes);
        let place = Box::into_raw(Box::new(ValueGet { value: 0, event: Event::DONE }));
        // SAFETY: just allocated; it stays until the operation has been waited for. The value is
        // zero beyond its bytes.
        let to = unsafe { &raw mut (*place).value };
        let event = get(FUNCTION, to.cast(), rank, src, bytes).explicit(&LocalOption::Later);
        // SAFETY: as above; the operation writes the value alone.
        unsafe { (&raw mut (*place).event).write(event) };
        let job = job(FUNCTION);
        if job.debug {
            job.value_gets.begins(place);
        }
        place
    }

    fn gasnet_wait_syncnb_valget(handle: *mut ValueGet) -> u64 {
        const FUNCTION: &str = "gasnet_wait_syncnb_valget";
        if handle.is_null() {
            fatal(FUNCTION, "handle is invalid (null)");
        }
        let job = job(FUNCTION);
        if job.debug {
            job.value_gets.ends(handle, FUNCTION);
        }
        // SAFETY: `gasnet_get_nb_val` made it, and no other thread waits for it, as the header
        // asks.
        let event = unsafe { (*handle).event };
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.wait(ctx, event)));
        // SAFETY: as above; the operation is over, and nothing writes the value any more.
        unsafe { Box::from_raw(handle) }.value
    }
}
