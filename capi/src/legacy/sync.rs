//! Waiting for operations of GASNet-1.
//!
//! A function with `try` in its name polls first, unless the name ends with `_nopoll`.

use core::ffi::c_int;

use argonet_engine::Engine;
use argonet_event::{Category, CategoryMask, Event};

use crate::context::{communicating, done};
use crate::events::{code, peek_all, several, wait_implicit};
use crate::export::export;

const GETS: CategoryMask = Category::Get.mask();
const PUTS: CategoryMask = Category::Put.mask();
const ALL: CategoryMask = CategoryMask::ALL;

fn poll(function: &str) {
    communicating(function, |job, ctx| {
        done(function, job.joined.engine.poll(ctx).map_err(Into::into))
    });
}

fn test(function: &str, handle: Event) -> c_int {
    communicating(function, |job, ctx| {
        code(done(function, job.joined.engine.peek(ctx, handle)))
    })
}

fn try_implicit(function: &str, mask: CategoryMask) -> c_int {
    poll(function);
    communicating(function, |job, ctx| {
        code(done(function, job.joined.engine.peek_implicit(ctx, mask)))
    })
}

export! {
    fn gasnet_try_syncnb(handle: Event) -> c_int {
        const FUNCTION: &str = "gasnet_try_syncnb";
        poll(FUNCTION);
        test(FUNCTION, handle)
    }

    fn gasnet_try_syncnb_some(handles: *mut Event, count: usize) -> c_int {
        const FUNCTION: &str = "gasnet_try_syncnb_some";
        poll(FUNCTION);
        // SAFETY: as the header asks.
        code(unsafe { several(FUNCTION, handles, count, 0, Engine::peek_some, true) })
    }

    fn gasnet_try_syncnb_all(handles: *mut Event, count: usize) -> c_int {
        const FUNCTION: &str = "gasnet_try_syncnb_all";
        poll(FUNCTION);
        // SAFETY: as the header asks.
        code(unsafe { several(FUNCTION, handles, count, 0, peek_all, true) })
    }

    fn argonet_legacy_try_syncnb_nopoll(handle: Event) -> c_int {
        test("gasnet_try_syncnb_nopoll", handle)
    }

    fn gasnet_try_syncnb_some_nopoll(handles: *mut Event, count: usize) -> c_int {
        // SAFETY: as the header asks.
        code(unsafe { several("gasnet_try_syncnb_some_nopoll", handles, count, 0, Engine::peek_some, true) })
    }

    fn gasnet_try_syncnb_all_nopoll(handles: *mut Event, count: usize) -> c_int {
        // SAFETY: as the header asks.
        code(unsafe { several("gasnet_try_syncnb_all_nopoll", handles, count, 0, peek_all, true) })
    }

    fn argonet_legacy_wait_syncnb(handle: Event) {
        const FUNCTION: &str = "gasnet_wait_syncnb";
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.wait(ctx, handle)));
    }

    fn gasnet_wait_syncnb_some(handles: *mut Event, count: usize) {
        // SAFETY: as the header asks.
        unsafe { several("gasnet_wait_syncnb_some", handles, count, 0, Engine::wait_some, ()) };
    }

    fn gasnet_wait_syncnb_all(handles: *mut Event, count: usize) {
        // SAFETY: as the header asks.
        unsafe { several("gasnet_wait_syncnb_all", handles, count, 0, Engine::wait_all, ()) };
    }

    fn gasnet_try_syncnbi_gets() -> c_int {
        try_implicit("gasnet_try_syncnbi_gets", GETS)
    }

    fn gasnet_try_syncnbi_puts() -> c_int {
        try_implicit("gasnet_try_syncnbi_puts", PUTS)
    }

    fn gasnet_try_syncnbi_all() -> c_int {
        try_implicit("gasnet_try_syncnbi_all", ALL)
    }

    fn gasnet_wait_syncnbi_gets() {
        wait_implicit("gasnet_wait_syncnbi_gets", GETS);
    }

    fn gasnet_wait_syncnbi_puts() {
        wait_implicit("gasnet_wait_syncnbi_puts", PUTS);
    }

    fn gasnet_wait_syncnbi_all() {
        wait_implicit("gasnet_wait_syncnbi_all", ALL);
    }

    fn gasnet_begin_nbi_accessregion() {
        const FUNCTION: &str = "gasnet_begin_nbi_accessregion";
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.begin_region(ctx)));
    }

    fn gasnet_end_nbi_accessregion() -> Event {
        const FUNCTION: &str = "gasnet_end_nbi_accessregion";
        communicating(FUNCTION, |job, ctx| done(FUNCTION, job.joined.engine.end_region(ctx)))
    }
}
