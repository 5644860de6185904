//! Memory of another process as C names it, and where that is.

use core::ffi::c_void;

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_engine::{BoundPlace, OpError, PeerAddress, Target, ThreadCtx};

use crate::context::refused;
use crate::job::{Job, Team, fatal};

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

impl Remote<'_> {
    /// Ends the job if it is in no segment, as far as this rank knows.
    #[inline]
    pub(crate) fn find(&self, job: &Job, ctx: &ThreadCtx) -> Target {
        let at = PeerAddress {
            rank: self.owner(),
            endpoint: self.team.remote_endpoint(self.rank),
            address: self.at.addr() as u64,
            is_offset: self.is_offset,
        };
        match job.joined.engine.locate(ctx, at, self.bytes) {
            Ok(target) => target,
            Err(OpError::Am(AmError::OutsideSegment { .. })) => self.outside(job),
            // A place that only messages reach: they are refused, so that nothing is accessed.
            Err(OpError::Am(AmError::PeerLost { peer, .. })) => Target::Bound(BoundPlace {
                rank: peer,
                endpoint: 0,
                address: 0,
            }),
            Err(error) => refused(self.function, &error),
        }
    }

    fn owner(&self) -> JobRank {
        JobRank(self.team.job_rank(self.rank))
    }

    #[cold]
    fn outside(&self, job: &Job) -> ! {
        let Self {
            function,
            argument,
            bytes,
            at,
            ..
        } = *self;
        let rank = self.owner();
        let (base, segment) = job.joined.engine.published_segment(rank);
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
