//! One put or get, and where it goes.

use core::ffi::c_void;
use core::marker::PhantomData;

use argonet_base::JobRank;
use argonet_engine::{Direction, Injection, Side, Span, ThreadCtx, Transfer, span};
use argonet_trace::Kind;

use crate::context::communicating;
use crate::flags::{IMMEDIATE, PEER_OFFSET, SELF_OFFSET};
use crate::job::{Job, Team, fatal, known, team};
use crate::rma::checks;
use crate::rma::remote::Remote;

/// The operation that C asks for.
pub(crate) struct Operation<'a> {
    pub(super) function: &'static str,
    pub(super) team: &'a Team,
    pub(super) rank: u32,
    pub(super) direction: Direction,
    /// As C has it: an address of this process, or an offset.
    local: *mut c_void,
    /// As C has it: an address of the other process, or an offset.
    remote: *mut c_void,
    pub(super) bytes: usize,
    pub(super) flags: u32,
    /// The value that `local` leads to, if it does not lead to C's memory.
    value: PhantomData<&'a u64>,
}

impl<'a> Operation<'a> {
    pub(crate) fn put(
        function: &'static str,
        tm: *const Team,
        rank: u32,
        dst: *mut c_void,
        src: *const c_void,
        bytes: usize,
        flags: u32,
    ) -> Self {
        let (local, remote) = (src.cast_mut(), dst);
        Self::new(
            function,
            Direction::Put,
            tm,
            rank,
            local,
            remote,
            bytes,
            flags,
        )
    }

    pub(crate) fn get(
        function: &'static str,
        tm: *const Team,
        dst: *mut c_void,
        rank: u32,
        src: *mut c_void,
        bytes: usize,
        flags: u32,
    ) -> Self {
        Self::new(function, Direction::Get, tm, rank, dst, src, bytes, flags)
    }

    #[expect(clippy::too_many_arguments, reason = "C gives as many")]
    fn new(
        function: &'static str,
        direction: Direction,
        tm: *const Team,
        rank: u32,
        local: *mut c_void,
        remote: *mut c_void,
        bytes: usize,
        flags: u32,
    ) -> Self {
        Self {
            function,
            // SAFETY: a team of ours, or null.
            team: unsafe { team(tm, function) },
            rank,
            direction,
            local,
            remote,
            bytes,
            flags,
            value: PhantomData,
        }
    }

    /// The operation as one event of a trace, of the first kind if it is a put, else of the second.
    pub(super) fn span<'c>(
        &self,
        job: &Job,
        ctx: &'c ThreadCtx,
        kinds: [Kind; 2],
    ) -> Option<Span<'c>> {
        let mut span = span(ctx, kinds[usize::from(self.direction == Direction::Get)]);
        if let Some(span) = &mut span {
            let (here, there) = (self.local.addr(), self.remote.addr() as u64);
            let engine = &job.joined.engine;
            span.describe(engine.about_bytes(self.to(), self.bytes, here, there));
        }
        span
    }

    /// The process of the other side, whose rank is known to exist.
    pub(super) fn to(&self) -> JobRank {
        JobRank(self.team.job_rank(self.rank))
    }

    pub(super) fn injection(&self) -> Injection {
        if self.flags & IMMEDIATE == 0 {
            Injection::Blocking
        } else {
            Injection::Immediate
        }
    }

    /// Checks it, and calls `f` with it as the engine takes it.
    ///
    /// An operation of no bytes is `None`: its addresses mean nothing.
    #[inline]
    pub(super) fn checked<R>(
        &self,
        f: impl FnOnce(&'static Job, &ThreadCtx, Option<Transfer>) -> R,
    ) -> R {
        communicating(self.function, |job, ctx| {
            known(self.team, self.rank, self.function);
            if job.debug {
                checks::flags(self, job);
            }
            if self.bytes == 0 {
                return f(job, ctx, None);
            }
            let transfer = self.transfer(job, ctx);
            if job.debug {
                checks::overlap(self, job, transfer);
            }
            f(job, ctx, Some(transfer))
        })
    }

    /// Ends the job if it cannot be, as far as this rank knows; moves nothing.
    pub(crate) fn check(&self) {
        communicating(self.function, |job, ctx| {
            known(self.team, self.rank, self.function);
            if self.bytes > 0 {
                self.transfer(job, ctx);
            }
        });
    }

    fn transfer(&self, job: &Job, ctx: &ThreadCtx) -> Transfer {
        let (local, len) = (self.local_address(), self.bytes);
        let (side, argument) = match self.direction {
            Direction::Put => (Side::Put(local), "dest"),
            Direction::Get => (Side::Get(local), "src"),
        };
        let remote = Remote {
            function: self.function,
            team: self.team,
            rank: self.rank,
            at: self.remote,
            is_offset: self.flags & PEER_OFFSET != 0,
            bytes: len,
            argument,
        };
        let target = remote.find(job, ctx);
        Transfer { target, side, len }
    }

    /// This process's side.
    fn local_address(&self) -> *mut u8 {
        let (function, bytes) = (self.function, self.bytes);
        if self.flags & SELF_OFFSET != 0 {
            let endpoint = self.team.endpoint();
            return endpoint.own_offset(self.local.addr(), bytes, function);
        }
        if self.local.is_null() {
            let argument = match self.direction {
                Direction::Put => "src",
                Direction::Get => "dest",
            };
            fatal(function, &format!("{argument} is null, and nbytes {bytes}"));
        }
        self.local.cast()
    }
}
