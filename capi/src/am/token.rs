//! Tokens, by which a handler asks about its message, and replies.

use core::cell::Cell;
use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr::null_mut;

use argonet_am::{Category, Delivery, MessageClass};
use argonet_base::gasnet::number32;

use crate::am::entry::Entry;
use crate::export::export;
use crate::job::{Endpoint, Job, fatal, job};

/// Target of a `gex_Token_t`: a message that is being delivered.
#[repr(transparent)]
pub(crate) struct Token(Delivery<'static>);

thread_local! {
    /// The token of the handler that this thread runs.
    ///
    /// In debug builds only.
    static RUNNING: Cell<*mut Token> = const { Cell::new(null_mut()) };
}

/// A handler begins.
pub(crate) fn enter(token: *mut Token) {
    RUNNING.set(token);
}

/// It has ended.
pub(crate) fn leave() {
    RUNNING.set(null_mut());
}

impl Token {
    /// The token of a message.
    ///
    /// The client uses it for as long as the handler runs, which is for as long as the message
    /// lives.
    #[inline(always)]
    pub(crate) fn of(delivery: &mut Delivery<'_>) -> *mut Self {
        std::ptr::from_mut(delivery).cast()
    }
}

/// The message of a token.
///
/// Ends the job if there is none, or, in debug builds, if another handler runs or none.
///
/// # Safety
/// Null, or the token of a handler that runs, which does nothing else with it until the result is
/// gone.
#[inline]
pub(crate) unsafe fn delivery<'a>(token: *mut Token, function: &str) -> &'a mut Delivery<'static> {
    if token.is_null() {
        fatal(function, "token is invalid (null)");
    }
    let job = job(function);
    if job.debug && RUNNING.get() != token {
        fatal(
            function,
            "the token is not that of the handler that runs in this thread: a token is good until its handler returns",
        );
    }
    // SAFETY: this function's contract. All borrows from the message end before the handler
    // returns.
    let token = unsafe { &mut *token };
    &mut token.0
}

/// The endpoint of this process that has got a message.
#[inline]
pub(crate) fn receiving(job: &Job, delivery: &Delivery<'_>) -> &'static Endpoint {
    match delivery.endpoints().to {
        0 => job.world.endpoint(),
        index => job.further_endpoint(index),
    }
}

/// `gex_Token_Info_t`.
#[repr(C)]
pub(crate) struct Info {
    source: u32,
    endpoint: *const Endpoint,
    entry: *const Entry,
    is_request: c_int,
    is_long: c_int,
}

/// `GEX_TI_ALL`.
const ALL: u32 = number32("GEX_TI_ALL");

export! {
    fn gex_Token_Info(token: *mut Token, info: *mut Info, mask: u32) -> u32 {
        const FUNCTION: &str = "gex_Token_Info";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        if info.is_null() {
            fatal(FUNCTION, "the place for the answer is null");
        }
        if mask & !ALL != 0 {
            fatal(FUNCTION, &format!("the mask is {mask:#x}; only GEX_TI_* are known"));
        }
        let job = job(FUNCTION);
        let endpoint = receiving(job, delivery);
        let entry = endpoint.entry(job, delivery.handler().0);
        let answer = Info {
            source: delivery.source().0,
            endpoint,
            entry: entry.map_or(core::ptr::null(), std::ptr::from_ref),
            is_request: (delivery.class() == MessageClass::Request).into(),
            is_long: (delivery.category() == Category::Long).into(),
        };
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe { info.write(answer) };
        ALL
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[
    ("sizeof(gex_Token_Info_t)", size_of::<Info>()),
    (
        "offsetof(gex_Token_Info_t, gex_srcrank)",
        offset_of!(Info, source),
    ),
    (
        "offsetof(gex_Token_Info_t, gex_ep)",
        offset_of!(Info, endpoint),
    ),
    (
        "offsetof(gex_Token_Info_t, gex_entry)",
        offset_of!(Info, entry),
    ),
    (
        "offsetof(gex_Token_Info_t, gex_is_req)",
        offset_of!(Info, is_request),
    ),
    (
        "offsetof(gex_Token_Info_t, gex_is_long)",
        offset_of!(Info, is_long),
    ),
];
