//! Replies whose payload is there already.

use core::ffi::{c_int, c_void};

use argonet_am::record::{Head, Short};
use argonet_am::{Delivery, Lane, Message, Payload};

use crate::am::arguments::{What, arguments, check_flags, check_handler};
use crate::am::far;
use crate::am::local::Local;
use crate::am::place::{check_overlap, destination, source};
use crate::am::room;
use crate::am::token::{Token, delivery};
use crate::export::export;
use crate::job::{Job, fatal, job};

/// Sends a reply. There is room for it, so that it is sent at once, whatever the flags say.
#[inline]
pub(crate) fn answer(
    job: &Job,
    delivery: &mut Delivery<'_>,
    message: &Message<'_>,
    flags: u32,
    function: &str,
) {
    let (category, nargs) = (message.payload.category(), message.args.len());
    check_handler(job, message.handler, category, Lane::Reply, nargs, function);
    if let Err(error) = delivery.reply(message) {
        far::reply(job, delivery, message, flags, &error, function);
    }
}

/// In debug builds, ends the job if flags are wrong, or a negotiated payload has been begun.
#[inline]
fn check(job: &Job, flags: u32, function: &str) {
    if job.debug {
        check_flags(job, flags, 0, function);
        if room::is_open() {
            fatal(
                function,
                "called between prepare and commit of a negotiated payload",
            );
        }
    }
}

export! {
    /// A short with at most three arguments, packed.
    fn argonet_reply_short(token: *mut Token, head: u64, rest: u64, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_AM_ReplyShort";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        let job = job(FUNCTION);
        check(job, flags, FUNCTION);
        let short = Short { head: Head(head), rest };
        let args = short.args();
        let args = &args[..short.head.nargs().min(args.len())];
        answer(job, delivery, &Message { handler: short.head.handler(), args, payload: Payload::None }, flags, FUNCTION);
        0
    }

    fn argonet_reply_short_args(token: *mut Token, what: What, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_ReplyShort";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        let job = job(FUNCTION);
        check(job, flags, FUNCTION);
        // SAFETY: the header's array has as many arguments.
        let args = unsafe { arguments(args, what, FUNCTION) };
        answer(job, delivery, &Message { handler: what.handler(), args, payload: Payload::None }, flags, FUNCTION);
        0
    }

    fn argonet_reply_medium(token: *mut Token, what: What, src: *const c_void, bytes: usize, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_ReplyMedium";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        let job = job(FUNCTION);
        check(job, flags, FUNCTION);
        lc_opt.check(Lane::Reply, FUNCTION);
        // SAFETY: the caller's memory, as the header asks; the handler's own payload may be among it.
        let payload = unsafe { source(job.world.endpoint(), src, bytes, flags, FUNCTION) };
        // SAFETY: the header's array has as many arguments.
        let args = unsafe { arguments(args, what, FUNCTION) };
        answer(job, delivery, &Message { handler: what.handler(), args, payload: Payload::Medium(payload) }, flags, FUNCTION);
        // SAFETY: checked, and the caller's to write, as the header asks.
        unsafe { lc_opt.complete() };
        0
    }

    fn argonet_reply_long(token: *mut Token, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_ReplyLong";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        let job = job(FUNCTION);
        check(job, flags, FUNCTION);
        lc_opt.check(Lane::Reply, FUNCTION);
        // SAFETY: the caller's memory, as the header asks; the handler's own payload may be among it.
        let payload = unsafe { source(job.world.endpoint(), src, bytes, flags, FUNCTION) };
        // SAFETY: the header's array has as many arguments.
        let args = unsafe { arguments(args, what, FUNCTION) };
        let to = delivery.source();
        let offset = destination(job, to, dst, bytes, flags, FUNCTION);
        check_overlap(job, to, offset, payload, FUNCTION);
        answer(job, delivery, &Message { handler: what.handler(), args, payload: Payload::Long(payload, offset) }, flags, FUNCTION);
        // SAFETY: checked, and the caller's to write, as the header asks.
        unsafe { lc_opt.complete() };
        0
    }
}
