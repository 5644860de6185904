//! Negotiated payloads: prepare, then commit or cancel.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use argonet_am::{AmError, Category, Delivery, MAX_ARGS, MessageClass, Payload};
use argonet_conduit::PrepareRequest;
use argonet_engine::{Context, ThreadCtx};

use crate::am::arguments::{LEAST, What, arguments, check_flags, check_handler, failed};
use crate::am::endpoints::check_there;
use crate::am::limits::{ALLOCATED, largest_medium, longest, longest_allocated};
use crate::am::local::Local;
use crate::am::place::{Given, Outgoing, destination, source};
use crate::am::reply::{answer, requester};
use crate::am::request::{both_sides, frees_payload, injection, send, sent};
use crate::am::source_descriptor::{self, Open, SourceDescriptor};
use crate::am::token::{Token, delivery};
use crate::export::export;
use crate::flags::{IMMEDIATE, SELF_OFFSET};
use crate::job::{Job, PEER_LOST, Receiver, Team, fatal, job, with_job};

/// Arguments that all prepares have.
struct Wanted {
    function: &'static str,
    class: MessageClass,
    category: Category,
    client: *const c_void,
    least: usize,
    most: usize,
    destination: *mut c_void,
    lc_opt: Local,
    flags: u32,
    nargs: u32,
}

impl Wanted {
    /// Ends the job if it cannot be had; the length of the buffer.
    fn check(&self, job: &Job) -> usize {
        let Self {
            function,
            class,
            category,
            least,
            most,
            flags,
            nargs,
            ..
        } = *self;
        source_descriptor::check_closed(function);
        check_flags(job, flags, LEAST, function);
        if flags & SELF_OFFSET != 0 {
            fatal(
                function,
                "GEX_FLAG_SELF_SEG_OFFSET is not for negotiated payloads",
            );
        }
        if nargs as usize > MAX_ARGS {
            fatal(
                function,
                &format!("numargs is {nargs}; at most {MAX_ARGS} are allowed"),
            );
        }
        let ours = self.client.is_null();
        if !ours {
            self.lc_opt.check(class, function);
        } else if !self.lc_opt.is_null() {
            fatal(function, "lc_opt must be null where client_buf is");
        }
        let limit = match category {
            Category::Long if ours => longest_allocated(job),
            Category::Long => longest(job),
            _ => largest_medium(job, class),
        };
        if least > most {
            fatal(
                function,
                &format!("least_payload is {least} and most_payload {most}"),
            );
        }
        if least > limit {
            fatal(
                function,
                &format!("least_payload is {least}; it can be {limit} at most"),
            );
        }
        most.min(limit)
    }

    /// Keeps a buffer of `size` bytes, the client's or the library's.
    fn open(&self, to: Receiver, token: *mut Token, size: usize) -> *const SourceDescriptor {
        let mut open = self.opened(to, token, self.client.cast_mut().cast(), size);
        if self.client.is_null() {
            debug_assert!(size <= ALLOCATED);
            open.own = source_descriptor::buffer(size);
            open.address = open.own.as_mut_ptr().cast();
        }
        source_descriptor::open(open)
    }

    fn opened(&self, to: Receiver, token: *mut Token, address: *mut u8, size: usize) -> Open {
        Open {
            class: self.class,
            category: self.category,
            nargs: self.nargs as usize,
            to,
            token,
            address,
            own: Vec::new(),
            size,
            destination: self.destination,
            flags: self.flags & !(IMMEDIATE | LEAST),
            lc_opt: self.lc_opt,
            prepared: None,
        }
    }
}

/// Prepares a request.
///
/// # Safety
/// A team of ours, or null.
unsafe fn prepare_request(tm: *const Team, rank: u32, wanted: &Wanted) -> *const SourceDescriptor {
    let function = wanted.function;
    // SAFETY: this function's contract.
    let (_, to) = unsafe { both_sides(tm, rank, function) };
    with_job(function, |job, ctx| {
        let engine = &job.joined.engine;
        let size = wanted.check(job);
        if to.rank.0 >= engine.size() {
            let (to, from, size) = (to.rank, engine.rank(), engine.size());
            failed(function, &AmError::NoSuchRank { to, size, from });
        }
        if !to.ends.are_primordial() && wanted.flags & IMMEDIATE == 0 {
            check_there(job, ctx, to, function);
        }
        if wanted.category == Category::Medium && wanted.client.is_null() {
            return prepare_in_place(job, ctx, to, size, wanted);
        }
        // A long's destination must not change if the payload is canceled, or is shorter in the
        // end: it is sent at commit.
        if let Err(error) = ctx.permit("a prepare", engine.rank()) {
            failed(function, &error);
        }
        ctx.enter(Context::Preparing);
        wanted.open(to, null_mut(), size)
    })
}

/// Prepares a medium in the target's memory.
fn prepare_in_place(
    job: &Job,
    ctx: &ThreadCtx,
    to: Receiver,
    most: usize,
    wanted: &Wanted,
) -> *const SourceDescriptor {
    let want = PrepareRequest {
        to: to.rank,
        class: MessageClass::Request,
        nargs: wanted.nargs as usize,
        least: wanted.least,
        most,
        offset: None,
    };
    let engine = &job.joined.engine;
    let mut prepared = match engine.prepare_endpoint(ctx, to.ends, &want, injection(wanted.flags)) {
        Ok(prepared) => prepared,
        Err(AmError::Full { .. }) if wanted.flags & IMMEDIATE != 0 => return null_mut(),
        // The commit returns PEER_LOST; until then the client writes to a buffer of the library's.
        Err(AmError::PeerLost { .. }) => {
            ctx.enter(Context::Preparing);
            return wanted.open(to, null_mut(), most);
        }
        Err(error) => failed(wanted.function, &error),
    };
    let size = prepared.capacity();
    // SAFETY: the conduit lives as long as the process.
    let address = unsafe { prepared.buffer() }.as_mut_ptr();
    let mut open = wanted.opened(to, null_mut(), address, size);
    open.prepared = Some(prepared);
    source_descriptor::open(open)
}

/// Prepares a reply.
///
/// There is room for any reply that is sent; a canceled one must not take it, so the payload is
/// written elsewhere.
///
/// # Safety
/// The token of a handler that runs, or null.
unsafe fn prepare_reply(token: *mut Token, wanted: &Wanted) -> *const SourceDescriptor {
    // SAFETY: this function's contract.
    let delivery = unsafe { delivery(token, wanted.function) };
    check_may_reply(delivery, wanted.function);
    let size = wanted.check(job(wanted.function));
    wanted.open(requester(delivery), token, size)
}

/// Ends the job where a reply would be refused at commit.
fn check_may_reply(delivery: &Delivery<'_>, function: &str) {
    let (rank, to) = (delivery.rank(), delivery.source());
    if delivery.class() == MessageClass::Reply {
        failed(function, &AmError::ReplyToReply { rank, to });
    }
    if delivery.has_replied() {
        failed(function, &AmError::RepliedTwice { rank, to });
    }
}

/// Arguments that all commits have.
struct Commit {
    function: &'static str,
    category: Category,
    what: What,
    bytes: usize,
    destination: *mut c_void,
    flags: u32,
    args: *const i32,
}

impl Commit {
    /// Calls `f` with the message.
    ///
    /// # Safety
    /// The arguments are there; the buffer that was prepared is still.
    unsafe fn with_message<R>(
        &self,
        job: &Job,
        open: &Open,
        f: impl FnOnce(&Outgoing<'_>) -> R,
    ) -> R {
        let function = self.function;
        // SAFETY: this function's contract.
        let args = unsafe { arguments(self.args, self.what, function) };
        let endpoint = job.world.endpoint();
        // SAFETY: as above.
        let bytes = unsafe { source(endpoint, open.address.cast(), self.bytes, 0, function) };
        let payload = match self.category {
            Category::Long => {
                let (to, size) = (self.destination, self.bytes);
                let at = destination(job, open.to, to, size, open.flags, function);
                Given::Long(bytes, at)
            }
            _ => Given::Plain(Payload::Medium(bytes)),
        };
        f(&Outgoing {
            handler: self.what.handler(),
            args,
            payload,
        })
    }

    fn check(&self, open: &Open) {
        open.check(self.what, self.bytes, self.destination, self.function);
        if self.flags & !IMMEDIATE != 0 {
            let flags = self.flags;
            fatal(
                self.function,
                &format!("flags are {flags:#x}; a commit takes GEX_FLAG_IMMEDIATE only"),
            );
        }
    }
}

/// Sends a request; returns the code for C.
///
/// # Safety
/// The arguments are there; the buffer that was prepared is still.
unsafe fn commit_request(handle: *const SourceDescriptor, commit: &Commit) -> c_int {
    let function = commit.function;
    let mut open =
        source_descriptor::close(handle, MessageClass::Request, commit.category, function);
    commit.check(&open);
    with_job(function, |job, ctx| {
        if let Some(prepared) = open.prepared.take() {
            let (handler, nargs) = (commit.what.handler(), commit.what.nargs());
            check_handler(
                job,
                (open.to.ends.to, handler),
                commit.category,
                MessageClass::Request,
                nargs,
                function,
            );
            // SAFETY: this function's contract.
            let args = unsafe { arguments(commit.args, commit.what, function) };
            let (engine, ends) = (&job.joined.engine, open.to.ends);
            return match engine.commit_endpoint(ctx, prepared, ends, handler, args, commit.bytes) {
                Ok(()) => sent(job, ctx, open.to.rank, function),
                Err(AmError::PeerLost { .. }) => PEER_LOST,
                Err(error) => failed(function, &error),
            };
        }
        ctx.leave_preparing();
        // SAFETY: this function's contract.
        let result = unsafe {
            commit.with_message(job, &open, |message| {
                send(
                    job,
                    ctx,
                    open.to,
                    message,
                    open.flags | commit.flags,
                    function,
                )
            })
        };
        if frees_payload(result) {
            // SAFETY: checked at prepare, and the caller's to write, as the header asks.
            unsafe { open.lc_opt.complete() };
            source_descriptor::done(open);
        } else {
            // It may be tried again.
            ctx.enter(Context::Preparing);
            source_descriptor::open(open);
        }
        result
    })
}

/// Sends a reply.
///
/// # Safety
/// The arguments are there; the buffer that was prepared is still, and the token's handler runs.
unsafe fn commit_reply(handle: *const SourceDescriptor, commit: &Commit) -> c_int {
    let function = commit.function;
    let open = source_descriptor::close(handle, MessageClass::Reply, commit.category, function);
    commit.check(&open);
    let job = job(function);
    // SAFETY: this function's contract.
    let delivery = unsafe { delivery(open.token, function) };
    // SAFETY: as above.
    unsafe {
        commit.with_message(job, &open, |message| {
            answer(job, delivery, message, function)
        })
    };
    // SAFETY: checked at prepare, and the caller's to write, as the header asks.
    unsafe { open.lc_opt.complete() };
    source_descriptor::done(open);
    0
}

/// Drops what was prepared.
fn cancel(
    handle: *const SourceDescriptor,
    class: MessageClass,
    category: Category,
    flags: u32,
    function: &str,
) -> c_int {
    if flags != 0 {
        fatal(function, &format!("flags are {flags:#x}; they must be 0"));
    }
    let mut open = source_descriptor::close(handle, class, category, function);
    if class == MessageClass::Request {
        with_job(function, |job, ctx| match open.prepared.take() {
            Some(prepared) => job.joined.engine.cancel(ctx, prepared),
            None => ctx.leave_preparing(),
        });
    }
    source_descriptor::done(open);
    0
}

export! {
    fn gex_AM_PrepareRequestMedium(tm: *const Team, rank: u32, client: *const c_void, least: usize, most: usize, lc_opt: Local, flags: u32, nargs: u32) -> *const SourceDescriptor {
        const FUNCTION: &str = "gex_AM_PrepareRequestMedium";
        let wanted = Wanted { function: FUNCTION, class: MessageClass::Request, category: Category::Medium, client, least, most, destination: null_mut(), lc_opt, flags, nargs };
        // SAFETY: a team of ours, or null.
        unsafe { prepare_request(tm, rank, &wanted) }
    }

    fn gex_AM_PrepareRequestLong(tm: *const Team, rank: u32, client: *const c_void, least: usize, most: usize, destination: *mut c_void, lc_opt: Local, flags: u32, nargs: u32) -> *const SourceDescriptor {
        const FUNCTION: &str = "gex_AM_PrepareRequestLong";
        let wanted = Wanted { function: FUNCTION, class: MessageClass::Request, category: Category::Long, client, least, most, destination, lc_opt, flags, nargs };
        // SAFETY: a team of ours, or null.
        unsafe { prepare_request(tm, rank, &wanted) }
    }

    fn gex_AM_PrepareReplyMedium(token: *mut Token, client: *const c_void, least: usize, most: usize, lc_opt: Local, flags: u32, nargs: u32) -> *const SourceDescriptor {
        const FUNCTION: &str = "gex_AM_PrepareReplyMedium";
        let wanted = Wanted { function: FUNCTION, class: MessageClass::Reply, category: Category::Medium, client, least, most, destination: null_mut(), lc_opt, flags, nargs };
        // SAFETY: the token of a handler that runs, or null.
        unsafe { prepare_reply(token, &wanted) }
    }

    fn gex_AM_PrepareReplyLong(token: *mut Token, client: *const c_void, least: usize, most: usize, destination: *mut c_void, lc_opt: Local, flags: u32, nargs: u32) -> *const SourceDescriptor {
        const FUNCTION: &str = "gex_AM_PrepareReplyLong";
        let wanted = Wanted { function: FUNCTION, class: MessageClass::Reply, category: Category::Long, client, least, most, destination, lc_opt, flags, nargs };
        // SAFETY: the token of a handler that runs, or null.
        unsafe { prepare_reply(token, &wanted) }
    }

    fn gex_AM_SrcDescAddr(handle: *const SourceDescriptor) -> *mut c_void {
        source_descriptor::look(handle, "gex_AM_SrcDescAddr").0.cast()
    }

    fn gex_AM_SrcDescSize(handle: *const SourceDescriptor) -> usize {
        source_descriptor::look(handle, "gex_AM_SrcDescSize").1
    }

    fn argonet_commit_request_medium(handle: *const SourceDescriptor, what: What, bytes: usize, flags: u32, args: *const i32) -> c_int {
        let commit = Commit { function: "gex_AM_CommitRequestMedium", category: Category::Medium, what, bytes, destination: null_mut(), flags, args };
        // SAFETY: the header's arguments; the buffer is the library's, or the client's until the
        // commit.
        unsafe { commit_request(handle, &commit) }
    }

    fn argonet_commit_request_long(handle: *const SourceDescriptor, what: What, bytes: usize, destination: *mut c_void, flags: u32, args: *const i32) -> c_int {
        let commit = Commit { function: "gex_AM_CommitRequestLong", category: Category::Long, what, bytes, destination, flags, args };
        // SAFETY: the header's arguments; the buffer is the library's, or the client's until the
        // commit.
        unsafe { commit_request(handle, &commit) }
    }

    fn argonet_commit_reply_medium(handle: *const SourceDescriptor, what: What, bytes: usize, flags: u32, args: *const i32) -> c_int {
        let commit = Commit { function: "gex_AM_CommitReplyMedium", category: Category::Medium, what, bytes, destination: null_mut(), flags, args };
        // SAFETY: the header's arguments; the buffer is the library's, or the client's until the
        // commit.
        unsafe { commit_reply(handle, &commit) }
    }

    fn argonet_commit_reply_long(handle: *const SourceDescriptor, what: What, bytes: usize, destination: *mut c_void, flags: u32, args: *const i32) -> c_int {
        let commit = Commit { function: "gex_AM_CommitReplyLong", category: Category::Long, what, bytes, destination, flags, args };
        // SAFETY: the header's arguments; the buffer is the library's, or the client's until the
        // commit.
        unsafe { commit_reply(handle, &commit) }
    }

    fn gex_AM_CancelRequestMedium(handle: *const SourceDescriptor, flags: u32) -> c_int {
        cancel(handle, MessageClass::Request, Category::Medium, flags, "gex_AM_CancelRequestMedium")
    }

    fn gex_AM_CancelRequestLong(handle: *const SourceDescriptor, flags: u32) -> c_int {
        cancel(handle, MessageClass::Request, Category::Long, flags, "gex_AM_CancelRequestLong")
    }

    fn gex_AM_CancelReplyMedium(handle: *const SourceDescriptor, flags: u32) -> c_int {
        cancel(handle, MessageClass::Reply, Category::Medium, flags, "gex_AM_CancelReplyMedium")
    }

    fn gex_AM_CancelReplyLong(handle: *const SourceDescriptor, flags: u32) -> c_int {
        cancel(handle, MessageClass::Reply, Category::Long, flags, "gex_AM_CancelReplyLong")
    }
}
