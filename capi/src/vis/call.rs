//! One transfer as C asks for it.

use core::ffi::{c_int, c_void};

use argonet_am::Endpoints;
use argonet_base::JobRank;
use argonet_base::gasnet::number32;
use argonet_engine::{
    self, Direction, Injection, Notice, Piece, Pieces, Shape, ThreadCtx, VisTransfer,
};
use argonet_event::Event;

use crate::am;
use crate::context::communicating;
use crate::flags::IMMEDIATE;
use crate::job::{Job, Receiver, Team, fatal, known, team};
use crate::rma::{code, started};
use crate::vis::checks;

/// `GEX_FLAG_ENABLE_LEAF_LC`.
pub(super) const ENABLE_LEAF_LC: u32 = number32("GEX_FLAG_ENABLE_LEAF_LC");

/// How the caller learns that it is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Blocking,
    Implicit,
    Explicit,
}

/// The data of a transfer, as C describes it.
pub(crate) trait Described {
    /// The shape; `None` if nothing moves and nothing else is to be looked at.
    ///
    /// # Safety
    /// Lists have as many entries as C says, and stay as they are until the operation is complete,
    /// strides and counts until the call returns.
    unsafe fn shape(&self, function: &str) -> Option<Shape<'_>>;
}

/// Lists of pieces.
pub(crate) struct Vector {
    pub(crate) dst_count: usize,
    pub(crate) dst: *const Piece,
    pub(crate) src_count: usize,
    pub(crate) src: *const Piece,
}

/// Lists of addresses of pieces of one length.
pub(crate) struct Indexed {
    pub(crate) dst_count: usize,
    pub(crate) dst: *const *mut c_void,
    pub(crate) dst_len: usize,
    pub(crate) src_count: usize,
    pub(crate) src: *const *mut c_void,
    pub(crate) src_len: usize,
}

/// Elements at regular distances.
pub(crate) struct Strided {
    pub(crate) dst: *mut c_void,
    pub(crate) dst_strides: *const isize,
    pub(crate) src: *mut c_void,
    pub(crate) src_strides: *const isize,
    pub(crate) element: usize,
    pub(crate) counts: *const usize,
    pub(crate) levels: usize,
}

/// A slice that C passes as an address and a count.
///
/// # Safety
/// It leads to `count` values that do not change while the result is used.
unsafe fn listed<'a, T>(function: &str, name: &str, from: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    if from.is_null() {
        fatal(
            function,
            &format!("{name} is null, and has {count} entries"),
        );
    }
    // SAFETY: this function's contract.
    unsafe { core::slice::from_raw_parts(from, count) }
}

impl Described for Vector {
    unsafe fn shape(&self, function: &str) -> Option<Shape<'_>> {
        // SAFETY: the caller's promise.
        unsafe {
            Some(Shape::Pieces {
                to: Pieces::Vector(listed(function, "dstlist", self.dst, self.dst_count)),
                from: Pieces::Vector(listed(function, "srclist", self.src, self.src_count)),
            })
        }
    }
}

impl Described for Indexed {
    unsafe fn shape(&self, function: &str) -> Option<Shape<'_>> {
        // SAFETY: the caller's promise; a pointer is read as the number that it is.
        let list = |name, from: *const *mut c_void, count, len| unsafe {
            Pieces::Indexed {
                addresses: listed(function, name, from.cast(), count),
                len,
            }
        };
        Some(Shape::Pieces {
            to: list("dstlist", self.dst, self.dst_count, self.dst_len),
            from: list("srclist", self.src, self.src_count, self.src_len),
        })
    }
}

impl Described for Strided {
    unsafe fn shape(&self, function: &str) -> Option<Shape<'_>> {
        if self.element == 0 {
            return None;
        }
        // SAFETY: the caller's promise.
        let (counts, to_strides, from_strides) = unsafe {
            (
                listed(function, "count", self.counts, self.levels),
                listed(function, "dststrides", self.dst_strides, self.levels),
                listed(function, "srcstrides", self.src_strides, self.levels),
            )
        };
        if counts.contains(&0) {
            return None;
        }
        Some(Shape::Strided(argonet_engine::Strided {
            to: self.dst.expose_provenance(),
            to_strides,
            from: self.src.expose_provenance(),
            from_strides,
            element: self.element,
            counts,
        }))
    }
}

/// A put or get, without its data.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(super) function: &'static str,
    tm: *const Team,
    pub(super) rank: u32,
    pub(super) direction: Direction,
    pub(super) flags: u32,
}

impl Call {
    pub(crate) fn new(
        function: &'static str,
        tm: *const Team,
        rank: u32,
        direction: Direction,
        flags: u32,
    ) -> Self {
        Self {
            function,
            tm,
            rank,
            direction,
            flags,
        }
    }

    fn injection(&self) -> Injection {
        match self.flags & IMMEDIATE {
            0 => Injection::Blocking,
            _ => Injection::Immediate,
        }
    }

    /// Waits until it is complete; non-zero if it was not started.
    pub(crate) fn block(&self, what: &impl Described) -> c_int {
        self.with(what, Form::Blocking, |job, ctx, transfer| {
            let engine = &job.joined.engine;
            // SAFETY: the caller's memory, which it leaves alone until this returns.
            let outcome = unsafe { engine.vis(ctx, transfer, self.injection()) };
            code(started(self.function, self.injection(), outcome).is_some())
        })
        .unwrap_or(0)
    }

    /// Starts it among the implicit ones; non-zero if it was not.
    pub(crate) fn implicit(&self, what: &impl Described) -> c_int {
        self.with(what, Form::Implicit, |job, ctx, transfer| {
            let engine = &job.joined.engine;
            // SAFETY: the caller's memory and lists, which it leaves alone until the completion
            // that it asked for.
            let outcome = unsafe { engine.vis_start_implicit(ctx, transfer, self.injection()) };
            code(started(self.function, self.injection(), outcome).is_some())
        })
        .unwrap_or(0)
    }

    /// Starts it; [`Event::NO_OP`] if it was not.
    pub(crate) fn explicit(&self, what: &impl Described) -> Event {
        self.with(what, Form::Explicit, |job, ctx, transfer| {
            let engine = &job.joined.engine;
            // SAFETY: as above.
            let outcome = unsafe { engine.vis_start(ctx, transfer, self.injection()) };
            started(self.function, self.injection(), outcome).unwrap_or(Event::NO_OP)
        })
        .unwrap_or(Event::DONE)
    }

    /// Calls `f` with the transfer as the engine takes it; `None` if there is none.
    fn with<R>(
        &self,
        what: &impl Described,
        form: Form,
        f: impl FnOnce(&'static Job, &ThreadCtx, &VisTransfer<'_>) -> R,
    ) -> Option<R> {
        communicating(self.function, |job, ctx| {
            if job.debug {
                checks::flags(self, form);
            }
            // SAFETY: lists, strides and counts are as the header asks.
            let shape = unsafe { what.shape(self.function) };
            let notice = match self.direction {
                Direction::Put => ctx.take_armed(),
                Direction::Get => None,
            };
            if job.debug && notice.is_some() {
                checks::peer_completion(self);
            }
            if shape.is_none() && (notice.is_none() || !self.has_peer()) {
                return None;
            }
            // SAFETY: a team of ours, or null.
            let team = unsafe { team(self.tm, self.function) };
            let rank = JobRank(known(team, self.rank, self.function));
            let endpoint = team.remote_endpoint(self.rank);
            let notice = notice.map(|notice| {
                // There are no more than 32, so that nothing is cut off.
                let ends = Endpoints {
                    from: team.endpoint().index() as u8,
                    to: endpoint as u8,
                };
                am::check_exists(job, ctx, Receiver { rank, ends }, self.function);
                Notice { ends, ..notice }
            });
            let transfer = VisTransfer {
                direction: self.direction,
                rank,
                memory: job.joined.engine.memory_at(rank, endpoint),
                shape: shape.unwrap_or(NOTHING),
                notice,
            };
            if job.debug {
                checks::shape(self, &transfer);
            }
            Some(f(job, ctx, &transfer))
        })
    }

    /// Whether the arguments name a rank: they need not mean anything where nothing moves.
    fn has_peer(&self) -> bool {
        // SAFETY: not null, and then a team of ours.
        !self.tm.is_null() && self.rank < unsafe { team(self.tm, self.function) }.size()
    }
}

/// No bytes.
const NOTHING: Shape<'static> = Shape::Pieces {
    to: Pieces::Vector(&[]),
    from: Pieces::Vector(&[]),
};
