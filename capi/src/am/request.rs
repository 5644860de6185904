//! Requests whose payload is there already.

use core::ffi::{c_int, c_void};

use argonet_am::record::{Head, Short};
use argonet_am::{AmError, CLIENT_BASE, Message, MessageClass, Payload};
use argonet_base::JobRank;
use argonet_engine::{Injection, Long, OpError, ThreadCtx};

use crate::am::arguments::{What, arguments, check_flags, failed};
use crate::am::endpoints::check_there;
use crate::am::local::Local;
use crate::am::place::{Given, Outgoing, check_overlap, destination, refused, source};
use crate::export::export;
use crate::flags::IMMEDIATE;
use crate::job::{Endpoint, Job, OK, PEER_LOST, Receiver, Team, given, job, with_job};

/// How to meet lack of room.
pub(crate) fn injection(flags: u32) -> Injection {
    if flags & IMMEDIATE == 0 {
        Injection::Blocking
    } else {
        Injection::Immediate
    }
}

/// The endpoint that a message comes from, and the process that it goes to, which is known to exist
/// unless the team is the world.
///
/// # Safety
/// A team of ours, or null.
#[inline(always)]
pub(crate) unsafe fn both_sides(
    tm: *const Team,
    rank: u32,
    function: &str,
) -> (&'static Endpoint, Receiver) {
    // SAFETY: this function's contract.
    let team = unsafe { given(tm, function, "tm") };
    (team.endpoint(), team.receiver(rank, function))
}

/// Whether a call has done with its payload, by its code: it was sent, or its target is lost.
pub(crate) fn frees_payload(code: c_int) -> bool {
    code == OK || code == PEER_LOST
}

/// Sends a message; returns the code for C.
#[inline]
pub(crate) fn send(
    job: &Job,
    ctx: &ThreadCtx,
    receiver: Receiver,
    message: &Outgoing<'_>,
    flags: u32,
    function: &str,
) -> c_int {
    let Receiver { rank: to, ends } = receiver;
    message.check(job, ends.to, MessageClass::Request, function);
    let injection = injection(flags);
    let is_immediate = injection == Injection::Immediate;
    if !ends.are_primordial() && !is_immediate {
        check_there(job, ctx, receiver, function);
    }
    let engine = &job.joined.engine;
    let Outgoing {
        handler,
        args,
        payload,
    } = *message;
    let outcome = match payload {
        Given::Plain(payload) => {
            let message = Message {
                handler,
                args,
                payload,
            };
            let sent = engine.request_endpoint(ctx, to, ends, &message, injection);
            sent.map_err(OpError::from)
        }
        Given::Long(bytes, at) => engine.locate(ctx, at, bytes.len()).and_then(|target| {
            check_overlap(job, target, bytes, function);
            let long = Long {
                handler,
                args,
                bytes,
            };
            engine.request_long(ctx, ends, target, &long, injection)
        }),
    };
    match outcome {
        Ok(()) => sent(job, ctx, to, function),
        Err(OpError::Am(AmError::Full { .. }) | OpError::NoHandle { .. }) if is_immediate => 1,
        Err(OpError::Am(AmError::PeerLost { .. })) => PEER_LOST,
        Err(error) => refused(job, &error, function),
    }
}

/// Finishes a request that was sent; returns the code for C.
///
/// A request to the own rank is handled at once, which clients of other implementations rely on: a
/// thread may signal the other threads of its rank by a message to that rank, and then wait outside
/// of the library.
#[inline(always)]
pub(crate) fn sent(job: &Job, ctx: &ThreadCtx, to: JobRank, function: &str) -> c_int {
    if to == job.joined.engine.rank() {
        to_itself(job, ctx, function);
    }
    0
}

#[inline(never)]
fn to_itself(job: &Job, ctx: &ThreadCtx, function: &str) {
    if let Err(error) = job.joined.engine.poll_own(ctx) {
        failed(function, &error);
    }
}

/// A short that is not sent at once: because it may not wait, is checked, or there is no room or
/// something wrong.
#[cold]
#[inline(never)]
fn with_care(
    job: &Job,
    ctx: &ThreadCtx,
    to: JobRank,
    short: Short,
    flags: u32,
    function: &str,
) -> c_int {
    check_flags(job, flags, 0, function);
    let args = short.args();
    let message = Outgoing {
        handler: short.head.handler(),
        args: &args[..short.head.nargs().min(args.len())],
        payload: Given::Plain(Payload::None),
    };
    let to = Receiver::primordial(to);
    send(job, ctx, to, &message, flags, function)
}

/// Sends a short with at most three arguments, packed.
#[inline(always)]
pub(crate) fn packed(
    job: &Job,
    ctx: &ThreadCtx,
    to: JobRank,
    short: Short,
    flags: u32,
    function: &str,
) -> c_int {
    let is_client = short.head.handler() >= CLIENT_BASE;
    let plain = is_client && flags & IMMEDIATE == 0 && !job.debug;
    if plain && job.joined.engine.request_short(ctx, to, short).is_ok() {
        return sent(job, ctx, to, function);
    }
    with_care(job, ctx, to, short, flags, function)
}

/// The same between endpoints of which one is a further one.
#[cold]
#[inline(never)]
fn packed_endpoint(to: Receiver, short: Short, flags: u32, function: &str) -> c_int {
    let args = short.args();
    let message = Outgoing {
        handler: short.head.handler(),
        args: &args[..short.head.nargs().min(args.len())],
        payload: Given::Plain(Payload::None),
    };
    with_job(function, |job, ctx| {
        check_flags(job, flags, 0, function);
        send(job, ctx, to, &message, flags, function)
    })
}

/// A request as C asks for it, under the name that C has for the call; the payload comes with the
/// method.
pub(crate) struct Request<'a> {
    pub(crate) function: &'static str,
    /// The endpoint that it comes from.
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) to: Receiver,
    pub(crate) what: What,
    /// As many as `what` says, for as long as this lives.
    pub(crate) args: *const i32,
    pub(crate) flags: u32,
}

impl Request<'_> {
    #[inline(always)]
    fn send(&self, payload: Given<'_>) -> c_int {
        // SAFETY: as the field says.
        let args = unsafe { arguments(self.args, self.what, self.function) };
        let message = Outgoing {
            handler: self.what.handler(),
            args,
            payload,
        };
        with_job(self.function, |job, ctx| {
            check_flags(job, self.flags, 0, self.function);
            send(job, ctx, self.to, &message, self.flags, self.function)
        })
    }

    #[inline(always)]
    pub(crate) fn short(&self) -> c_int {
        self.send(Given::Plain(Payload::None))
    }

    /// # Safety
    /// The caller may read `src`, and write the event behind `lc_opt`, as the header asks.
    #[inline(always)]
    pub(crate) unsafe fn medium(&self, src: *const c_void, bytes: usize, lc_opt: Local) -> c_int {
        lc_opt.check(MessageClass::Request, self.function);
        // SAFETY: this function's contract.
        let payload = unsafe { source(self.endpoint, src, bytes, self.flags, self.function) };
        let result = self.send(Given::Plain(Payload::Medium(payload)));
        if frees_payload(result) {
            // SAFETY: checked, and this function's contract.
            unsafe { lc_opt.complete() };
        }
        result
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
        lc_opt.check(MessageClass::Request, self.function);
        // SAFETY: this function's contract.
        let payload = unsafe { source(self.endpoint, src, bytes, self.flags, self.function) };
        let job = job(self.function);
        let at = destination(job, self.to, dst, bytes, self.flags, self.function);
        let result = self.send(Given::Long(payload, at));
        if frees_payload(result) {
            // SAFETY: checked, and this function's contract.
            unsafe { lc_opt.complete() };
        }
        result
    }
}

export! {
    /// A short with at most three arguments, packed.
    fn argonet_request_short(tm: *const Team, rank: u32, head: u64, rest: u64, flags: u32) -> c_int {
        const FUNCTION: &str = "gex_AM_RequestShort";
        // SAFETY: a team of ours, or null.
        let (_, to) = unsafe { both_sides(tm, rank, FUNCTION) };
        let short = Short { head: Head(head), rest };
        if !to.ends.are_primordial() {
            return packed_endpoint(to, short, flags, FUNCTION);
        }
        with_job(FUNCTION, |job, ctx| packed(job, ctx, to.rank, short, flags, FUNCTION))
    }

    fn argonet_request_short_args(tm: *const Team, rank: u32, what: What, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_RequestShort";
        // SAFETY: a team of ours, or null.
        let (endpoint, to) = unsafe { both_sides(tm, rank, FUNCTION) };
        Request { function: FUNCTION, endpoint, to, what, args, flags }.short()
    }

    fn argonet_request_medium(tm: *const Team, rank: u32, what: What, src: *const c_void, bytes: usize, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_RequestMedium";
        // SAFETY: a team of ours, or null.
        let (endpoint, to) = unsafe { both_sides(tm, rank, FUNCTION) };
        // SAFETY: the caller's memory, as the header asks.
        unsafe { Request { function: FUNCTION, endpoint, to, what, args, flags }.medium(src, bytes, lc_opt) }
    }

    fn argonet_request_long(tm: *const Team, rank: u32, what: What, src: *const c_void, bytes: usize, dst: *mut c_void, lc_opt: Local, flags: u32, args: *const i32) -> c_int {
        const FUNCTION: &str = "gex_AM_RequestLong";
        // SAFETY: a team of ours, or null.
        let (endpoint, to) = unsafe { both_sides(tm, rank, FUNCTION) };
        // SAFETY: the caller's memory, as the header asks.
        unsafe { Request { function: FUNCTION, endpoint, to, what, args, flags }.long(src, bytes, dst, lc_opt) }
    }
}
