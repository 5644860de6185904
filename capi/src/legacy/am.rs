//! Active messages of GASNet-1.
//!
//! Payloads have been read when a call returns, those of `LongAsync` too.

use core::ffi::{c_int, c_void};

use argonet_am::record::{Head, Short};
use argonet_base::JobRank;

use crate::am::{Local, Reply, Request, Token, What, delivery, packed, packed_reply};
use crate::export::export;
use crate::job::{BAD_ARG, OK, Receiver, refuse, with_job};
use crate::legacy::permit::user;

/// A request to a rank of the job.
#[inline(always)]
fn request(function: &'static str, rank: u32, what: What, args: *const i32) -> Request<'static> {
    Request {
        function,
        endpoint: user(function).world.endpoint(),
        to: Receiver::primordial(JobRank(rank)),
        what,
        args,
        flags: 0,
    }
}

#[inline(always)]
fn reply(function: &'static str, token: *mut Token, what: What, args: *const i32) -> Reply {
    Reply {
        function,
        token,
        what,
        args,
        flags: 0,
    }
}

export! {
    /// A short with at most three arguments, packed.
    fn argonet_legacy_request_short(rank: u32, head: u64, rest: u64) -> c_int {
        const FUNCTION: &str = "gasnet_AMRequestShort";
        user(FUNCTION);
        let short = Short { head: Head(head), rest };
        with_job(FUNCTION, |job, ctx| packed(job, ctx, JobRank(rank), short, 0, FUNCTION))
    }

    fn argonet_legacy_request_short_args(rank: u32, what: What, args: *const i32) -> c_int {
        request("gasnet_AMRequestShort", rank, what, args).short()
    }

    fn argonet_legacy_request_medium(rank: u32, what: What, src: *const c_void, bytes: usize, args: *const i32) -> c_int {
        let request = request("gasnet_AMRequestMedium", rank, what, args);
        // SAFETY: the caller's memory, as the header asks.
        unsafe { request.medium(src, bytes, Local::NOW) }
    }

    fn argonet_legacy_request_long(rank: u32, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, args: *const i32) -> c_int {
        let request = request("gasnet_AMRequestLong", rank, what, args);
        // SAFETY: the caller's memory, as the header asks.
        unsafe { request.long(src, bytes, dst, Local::NOW) }
    }

    fn argonet_legacy_request_long_async(rank: u32, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, args: *const i32) -> c_int {
        let request = request("gasnet_AMRequestLongAsync", rank, what, args);
        // SAFETY: the caller's memory, as the header asks.
        unsafe { request.long(src, bytes, dst, Local::NOW) }
    }

    /// A short with at most three arguments, packed.
    fn argonet_legacy_reply_short(token: *mut Token, head: u64, rest: u64) -> c_int {
        // SAFETY: the token of a handler that runs, or null.
        unsafe { packed_reply(token, Short { head: Head(head), rest }, 0, "gasnet_AMReplyShort") }
    }

    fn argonet_legacy_reply_short_args(token: *mut Token, what: What, args: *const i32) -> c_int {
        reply("gasnet_AMReplyShort", token, what, args).short()
    }

    fn argonet_legacy_reply_medium(token: *mut Token, what: What, src: *const c_void, bytes: usize, args: *const i32) -> c_int {
        // SAFETY: the caller's memory, as the header asks.
        unsafe { reply("gasnet_AMReplyMedium", token, what, args).medium(src, bytes, Local::NOW) }
    }

    fn argonet_legacy_reply_long(token: *mut Token, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, args: *const i32) -> c_int {
        // SAFETY: the caller's memory, as the header asks.
        unsafe { reply("gasnet_AMReplyLong", token, what, args).long(src, bytes, dst, Local::NOW) }
    }

    fn gasnet_AMGetMsgSource(token: *mut Token, source: *mut u32) -> c_int {
        const FUNCTION: &str = "gasnet_AMGetMsgSource";
        // SAFETY: the token of a handler that runs, or null.
        let delivery = unsafe { delivery(token, FUNCTION) };
        if source.is_null() {
            return refuse(FUNCTION, BAD_ARG, "srcindex, the place for the rank, must not be null");
        }
        // SAFETY: not null, and the caller's to write, as the header asks.
        unsafe { *source = delivery.source().0 };
        OK
    }
}
