//! Memory of a process that others reach, and `GASNET_SEGMENT_EVERYTHING`: all of it, from the
//! start.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_engine::{BarrierKind, ThreadCtx};
use argonet_segment::cross_memory::allow_descendants_of;
use argonet_settings::CROSS_MEMORY;
use argonet_start::Joined;

use crate::job::Job;

/// The segment configuration that a program was linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentMode {
    /// Segments as long as a network can pin; of this host's memory, with smp.
    Fast,
    /// Segments as long as the host's memory allows.
    Large,
    /// All memory.
    Everything,
}

/// Lets all ranks reach all memory of this process.
///
/// Before the start, so that none comes too early.
pub(crate) fn bind(joined: &Joined) {
    let crossing = joined.settings.get(&CROSS_MEMORY);
    let boot = Arc::clone(&joined.boot);
    if crossing {
        // The ranks of a host descend from the launcher, or from the rank that forked the others.
        allow_descendants_of(boot.job_page().launcher_pid());
    }
    let process = move |rank: JobRank| {
        let process = boot.rank_page(rank).pid();
        (process != 0).then_some(process)
    };
    let processes = crossing.then(|| Box::new(process) as _);
    // SAFETY: by linking this variant the client says that others may write where they are given
    // addresses.
    unsafe { joined.engine.bind_everything(processes) };
}

/// The mapped table: of all ranks only this one is reached by loads and stores.
pub(crate) fn deltas(rank: u32, size: u32) -> Box<[Option<isize>]> {
    (0..size)
        .map(|other| (other == rank).then_some(0))
        .collect()
}

/// Attaching where there is nothing to attach: a barrier.
pub(crate) fn attach(job: &Job, ctx: &ThreadCtx) -> Result<(), String> {
    job.was_attached.store(true, Ordering::Relaxed);
    let met = job.joined.engine.barrier(ctx, BarrierKind::Segments);
    match met {
        // There is nothing that a loss could leave undone.
        Ok(()) | Err(AmError::PeerLost { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
