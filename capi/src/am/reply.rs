//! Replies whose payload is there already.

use core::ffi::{c_int, c_void};

use argonet_am::record::{Head, Short};
use argonet_am::{AmError, Delivery, Message, MessageClass, Payload};
use argonet_engine::Long;

use crate::am::arguments::{What, arguments, check_flags};
use crate::am::local::Local;
use crate::am::place::{Given, Outgoing, check_overlap, destination, refused, source};
use crate::am::source_descriptor;
use crate::am::token::{Token, delivery, receiving};
use crate::export::export;
use crate::job::{Job, Receiver, fatal, job};

/// Sends a reply.
///
/// There is room for it, so it is sent at once.
#[inline]
pub(crate) fn answer(
    job: &Job,
    delivery: &mut Delivery<'_>,
    message: &Outgoing<'_>,
    function: &str,
) {
    message.check(
        job,
        delivery.endpoints().from,
        MessageClass::Reply,
        function,
    );
    let Outgoing {
        handler,
        args,
        payload,
    } = *message;
    let sent = match payload {
        Given::Plain(payload) => delivery.reply(&Message {
            handler,
            args,
            payload,
        }),
        Given::Long(bytes, at) => {
            let engine = &job.joined.engine;
            if job.debug
                && let Ok(Some(target)) = engine.locate_known(at, bytes.len())
            {
                check_overlap(job, target, bytes, function);
            }
            let long = Long {
                handler,
                args,
                bytes,
            };
            engine.reply_long(delivery, at, &long)
        }
    };
    match sent {
        // A reply to a lost rank has no receiver.
        Ok(()) | Err(AmError::PeerLost { .. }) => {}
        Err(error) => refused(job, &error.into(), function),
    }
}

/// In debug builds, ends the job if flags are wrong, or a negotiated payload has been begun.
#[inline]
fn check(job: &Job, flags: u32, function: &str) {
    if job.debug {
        check_flags(job, flags, 0, function);
        if source_descriptor::is_open() {
            fatal(
                function,
                "called between prepare and commit of a negotiated payload",
            );
        }
    }
}

/// The receiver of the reply to a message.
#[inline]
pub(crate) fn requester(delivery: &Delivery<'_>) -> Receiver {
    Receiver {
        rank: delivery.source(),
        ends: delivery.endpoints().reversed(),
    }
}

/// A reply as C asks for it, under the name that C has for the call; the payload comes with the
/// method.
pub(crate) struct Reply {
    pub(crate) function: &'static str,
    /// The token of a handler that runs, or null.
    pub(crate) token: *mut Token,
    pub(crate) what: What,
    /// As many as `what` says, for as long as this lives.
    pub(crate) args: *const i32,
    pub(crate) flags: u32,
}

impl Reply {
    /// The request that is replied to.
    ///
    /// Ends the job if there is nothing, or it cannot be now.
    ///
    /// # Safety
    /// The token is as the field says; nothing else is done with it until the result is gone.
    #[inline(always)]
    unsafe fn begin<'a>(&self) -> (&'static Job, &'a mut Delivery<'static>) {
        // SAFETY: this function's contract.
        let delivery = unsafe { delivery(self.token, self.function) };
        let job = job(self.function);
        check(job, self.flags, self.function);
        (job, delivery)
    }

    #[inline(always)]
    fn send(&self, job: &Job, delivery: &mut Delivery<'_>, payload: Given<'_>) {
        // SAFETY: as the field says.
        let args = unsafe { arguments(self.args, self.what, self.function) };
        let message = Outgoing {
            handler: self.what.handler(),
            args,
            payload,
        };
        answer(job, delivery, &message, self.function);
    }

    #[inline(always)]
    pub(crate) fn short(&self) -> c_int {
        // SAFETY: as the field says; the reply is the only use of it here.
        let (job, delivery) = unsafe { self.begin() };
        self.send(job, delivery, Given::Plain(Payload::None));
        0
    }

    /// # Safety
    /// The caller may read `src`, and write the event behind `lc_opt`, as the header asks. The
    /// handler's own payload may be among the source.
    #[inline(always)]
    pub(crate) unsafe fn medium(&self, src: *const c_void, bytes: usize, lc_opt: Local) -> c_int {
        // SAFETY: as the field says; the reply is the only use of it here.
        let (job, delivery) = unsafe { self.begin() };
        lc_opt.check(MessageClass::Reply, self.function);
        let endpoint = receiving(job, delivery);
        // SAFETY: this function's contract.
        let payload = unsafe { source(endpoint, src, bytes, self.flags, self.function) };
        self.send(job, delivery, Given::Plain(Payload::Medium(payload)));
        // SAFETY: checked, and this function's contract.
        unsafe { lc_opt.complete() };
        0
    }

    /// # Safety
    /// As [`medium`](Self::medium).
    #[inline(always)]
    pub(crate) unsafe fn long(
        &self,
        src: *const c_void,
        bytes: usize,
        dst: *mut c_void,
        lc_opt: Local,
    ) -> c_int {
        // SAFETY: as the field says; the reply is the only use of it here.
        let (job, delivery) = unsafe { self.begin() };
        lc_opt.check(MessageClass::Reply, self.function);
        let endpoint = receiving(job, delivery);
        // SAFETY: this function's contract.
        let payload = unsafe { source(endpoint, src, bytes, self.flags, self.function) };
        let to = requester(delivery);
        let at = destination(job, to, dst, bytes, self.flags, self.function);
        self.send(job, delivery, Given::Long(payload, at));
        // SAFETY: checked, and this function's contract.
        unsafe { lc_opt.complete() };
        0
    }
}

/// Replies by a short with at most three arguments, packed.
///
/// # Safety
/// The token of a handler that runs, or null.
#[inline(always)]
pub(crate) unsafe fn packed_reply(
    token: *mut Token,
    short: Short,
    flags: u32,
    function: &str,
) -> c_int {
    // SAFETY: this function's contract.
    let delivery = unsafe { delivery(token, function) };
    let job = job(function);
    check(job, flags, function);
    let args = short.args();
    let message = Outgoing {
        handler: short.head.handler(),
        args: &args[..short.head.nargs().min(args.len())],
        payload: Given::Plain(Payload::None),
    };
    answer(job, delivery, &message, function);
    0
}

export! {
    /// A short with at most three arguments, packed.
    fn argonet_reply_short(token: *mut Token, head: u64, rest: u64, flags: u32) -> c_int {
        // SAFETY: the token of a handler that runs, or null.
        unsafe { packed_reply(token, Short { head: Head(head), rest }, flags, "gex_AM_ReplyShort") }
    }

    fn argonet_reply_short_args(token: *mut Token, what: What, flags: u32, args: *const i32) -> c_int {
        Reply { function: "gex_AM_ReplyShort", token, what, args, flags }.short()
    }

    fn argonet_reply_medium(token: *mut Token, what: What, src: *const c_void, bytes: usize, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        let reply = Reply { function: "gex_AM_ReplyMedium", token, what, args, flags };
        // SAFETY: the caller's memory, as the header asks.
        unsafe { reply.medium(src, bytes, lc_opt) }
    }

    fn argonet_reply_long(token: *mut Token, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        let reply = Reply { function: "gex_AM_ReplyLong", token, what, args, flags };
        // SAFETY: the caller's memory, as the header asks.
        unsafe { reply.long(src, bytes, dst, lc_opt) }
    }
}
