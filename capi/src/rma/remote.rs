//! Memory of another process as C names it, and where that is.

use core::ffi::c_void;

use argonet_base::JobRank;
use argonet_base::SegmentOffset;
use argonet_engine::{FarPlace, ThreadCtx};

use crate::job::{Job, Team, far_base, fatal, job};

/// Memory of a rank.
pub(crate) struct Remote<'a> {
    /// The function that asks.
    pub(crate) function: &'static str,
    pub(crate) team: &'a Team,
    /// A rank of the team that exists.
    pub(crate) rank: u32,
    /// An address of that rank's process, or an offset in what is bound to its endpoint.
    pub(crate) at: *mut c_void,
    pub(crate) is_offset: bool,
    pub(crate) bytes: usize,
    /// Name of the address in C.
    pub(crate) argument: &'static str,
}

/// Where it is.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    /// In an attached segment.
    Segment(JobRank, SegmentOffset),
    /// In memory that only its owner knows.
    Far(FarPlace),
}

impl Remote<'_> {
    /// Ends the job if it is in no segment, as far as this rank knows.
    #[inline]
    pub(crate) fn find(&self, job: &Job, ctx: &ThreadCtx) -> Found {
        let engine = &job.joined.engine;
        let (rank, len) = (self.owner(), self.bytes);
        let (base, segment) = match self.team.remote_endpoint(self.rank) {
            0 => engine.published_segment(rank),
            _ => (0, 0),
        };
        if segment == 0 {
            return Found::Far(self.far_place(job, ctx));
        }
        let remote = self.at.addr() as u64;
        let offset = if self.is_offset {
            remote
        } else {
            remote.wrapping_sub(base)
        };
        if offset > segment || len as u64 > segment - offset {
            self.outside(base, segment);
        }
        Found::Segment(rank, engine.offset_of(rank, base + offset))
    }

    fn owner(&self) -> JobRank {
        JobRank(self.team.job_rank(self.rank))
    }

    /// Memory that is not attached: its owner checks what it has bound there.
    #[cold]
    fn far_place(&self, job: &Job, ctx: &ThreadCtx) -> FarPlace {
        let (rank, endpoint) = (self.owner(), self.team.remote_endpoint(self.rank));
        let mut address = self.at.addr() as u64;
        if self.is_offset {
            let base = far_base(job, ctx, rank, endpoint, self.function);
            address = address.wrapping_add(base);
        }
        FarPlace {
            rank,
            endpoint,
            address,
        }
    }

    #[cold]
    fn outside(&self, base: u64, segment: u64) -> ! {
        let Self {
            function,
            argument,
            bytes,
            at,
            ..
        } = *self;
        let rank = self.owner();
        let what = if self.is_offset { "offset " } else { "" };
        let has = format!("which is {segment} bytes at {base:#x}");
        fatal(
            function,
            &format!(
                "{argument} is {what}{at:p}; {bytes} bytes there are not in the segment of rank {rank}, {has}"
            ),
        )
    }
}

/// Memory of this process, by its offset in what is bound to the endpoint of a team.
pub(crate) fn own_offset(team: &Team, offset: usize, bytes: usize, function: &str) -> *mut u8 {
    let Some(segment) = team.endpoint().segment() else {
        if job(function).is_everything() && team.endpoint().index() == 0 {
            // All memory is bound, from address 0.
            return core::ptr::with_exposed_provenance_mut(offset);
        }
        fatal(
            function,
            "GEX_FLAG_SELF_SEG_OFFSET is given, but the endpoint of tm has no segment",
        )
    };
    let length = segment.bytes();
    if offset > length || bytes > length - offset {
        fatal(
            function,
            &format!(
                "{bytes} bytes at offset {offset} of the own segment go beyond its end; it has {length} bytes"
            ),
        );
    }
    segment.base().wrapping_add(offset)
}
