//! One put or get, and where it goes.

use core::ffi::c_void;
use core::marker::PhantomData;

use argonet_base::JobRank;
use argonet_engine::{
    FarPlace, Injection, LocalCompletion, OpError, Span, ThreadCtx, Transfer, span,
};
use argonet_event::Event;
use argonet_trace::Kind;

use crate::context::communicating;
use crate::flags::{IMMEDIATE, PEER_OFFSET, SELF_OFFSET};
use crate::job::{Job, Team, fatal, known, team};
use crate::rma::checks;
use crate::rma::remote::{Found, Remote, own_offset};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Put,
    Get,
}

/// Both sides of an operation.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In an attached segment.
    Mapped(Transfer),
    /// In memory that only its owner knows, and here.
    Far(FarPlace, *mut u8),
}

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

    /// Starts it, with an event of its own.
    ///
    /// # Safety
    /// The place is this operation's, and the caller leaves its memory alone until it is complete.
    #[inline]
    pub(super) unsafe fn start(
        &self,
        job: &Job,
        ctx: &ThreadCtx,
        place: Place,
    ) -> Result<Event, OpError> {
        let (engine, injection) = (&job.joined.engine, self.injection());
        // SAFETY: the caller's promise.
        unsafe {
            match (place, self.direction) {
                (Place::Mapped(transfer), _) => engine.start(ctx, transfer, injection),
                (Place::Far(far, src), Direction::Put) => {
                    engine.far_put(ctx, far, src, self.bytes, injection)
                }
                (Place::Far(far, dst), Direction::Get) => {
                    engine.far_get(ctx, far, dst, self.bytes, injection)
                }
            }
        }
    }

    /// Starts it, among the implicit ones.
    ///
    /// # Safety
    /// As [`start`](Self::start).
    #[inline]
    pub(super) unsafe fn start_implicit(
        &self,
        job: &Job,
        ctx: &ThreadCtx,
        place: Place,
    ) -> Result<LocalCompletion, OpError> {
        let (engine, injection) = (&job.joined.engine, self.injection());
        // SAFETY: the caller's promise.
        unsafe {
            match (place, self.direction) {
                (Place::Mapped(transfer), _) => engine.start_implicit(ctx, transfer, injection),
                // The messages have the payload.
                (Place::Far(far, src), Direction::Put) => engine
                    .far_put_implicit(ctx, far, src, self.bytes, injection)
                    .map(|()| LocalCompletion::Done),
                (Place::Far(far, dst), Direction::Get) => engine
                    .far_get_implicit(ctx, far, dst, self.bytes, injection)
                    .map(|()| LocalCompletion::Pending),
            }
        }
    }

    /// Checks it, and calls `f` with it as the engine takes it.
    ///
    /// An operation of no bytes is `None`: its addresses mean nothing.
    #[inline]
    pub(super) fn place<R>(
        &self,
        f: impl FnOnce(&'static Job, &ThreadCtx, Option<Place>) -> R,
    ) -> R {
        communicating(self.function, |job, ctx| {
            known(self.team, self.rank, self.function);
            if job.debug {
                checks::flags(self, job);
            }
            if self.bytes == 0 {
                return f(job, ctx, None);
            }
            let place = self.find(job, ctx);
            if job.debug {
                match place {
                    Place::Mapped(transfer) => checks::overlap(self, job, transfer),
                    Place::Far(far, local) => checks::overlap_of_own(self, job, far, local),
                }
            }
            f(job, ctx, Some(place))
        })
    }

    /// Ends the job if it cannot be, as far as this rank knows; moves nothing.
    pub(crate) fn check(&self) {
        communicating(self.function, |job, ctx| {
            known(self.team, self.rank, self.function);
            if self.bytes > 0 {
                self.find(job, ctx);
            }
        });
    }

    fn find(&self, job: &Job, ctx: &ThreadCtx) -> Place {
        let (local, len) = (self.local_address(), self.bytes);
        let remote = Remote {
            function: self.function,
            team: self.team,
            rank: self.rank,
            at: self.remote,
            is_offset: self.flags & PEER_OFFSET != 0,
            bytes: len,
            argument: match self.direction {
                Direction::Put => "dest",
                Direction::Get => "src",
            },
        };
        match (remote.find(job, ctx), self.direction) {
            (Found::Far(far), _) => Place::Far(far, local),
            (Found::Segment(rank, offset), Direction::Put) => Place::Mapped(Transfer::Put {
                rank,
                offset,
                src: local,
                len,
            }),
            (Found::Segment(rank, offset), Direction::Get) => Place::Mapped(Transfer::Get {
                rank,
                offset,
                dst: local,
                len,
            }),
        }
    }

    /// This process's side.
    fn local_address(&self) -> *mut u8 {
        let (function, bytes) = (self.function, self.bytes);
        if self.flags & SELF_OFFSET != 0 {
            return own_offset(self.team, self.local.addr(), bytes, function);
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
