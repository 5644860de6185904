//! The memory that a job takes of its host, and how it will wait there, decided from settings and
//! host alone.
//!
//! A job decides by the same functions when it starts; `argonet info` shows it beforehand.

use crate::error::{Result, StartError};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, MAX_VALUE_BYTES, control_bytes};
use argonet_conduit::smp::Layout;
use argonet_engine::{WaitMode, WaitPolicy};
use argonet_segment::{HostMemory, PageKind, SegmentError, admit};
use argonet_settings::{Bytes, HUGE_PAGES, MAX_SEGSIZE, SEGMENT, SegmentLimit, Settings, WAIT};
use core::ops::Range;
use rustix::thread::CpuSet;
use static_assertions::const_assert;

/// Length of a segment at the start, where neither the user nor the program sets another.
const SEGMENT_BYTES: u64 = 16 << 20;

/// A job of some ranks on this host.
///
/// ```
/// let plan = argonet_start::Plan::for_ranks(4).unwrap();
/// assert!(plan.segment_bytes <= plan.segment_limit_bytes);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Ranks of the job.
    pub ranks: u32,
    /// Bytes of each rank's segment at the start, unless the program asks for more or less.
    pub segment_bytes: u64,
    /// Bytes that a segment may grow to.
    pub segment_limit_bytes: u64,
    /// Page size that segments ask for; `None` for the system's usual pages.
    pub huge_page_bytes: Option<u64>,
    /// Memory of the host, or of the tightest control group.
    pub host: HostMemory,
    /// Why the job would not start; `Ok` where the segments fit.
    pub admitted: std::result::Result<(), SegmentError>,
    /// Bytes of the rings between all ranks, if every pair fills its rings.
    ///
    /// Only touched pages take memory, and the rings do not count when segments are compared with
    /// the host's memory.
    pub rings_most_bytes: u64,
    /// The most bytes that reductions of ranks that share memory take, if teams fill all slots.
    pub pools_most_bytes: u64,
    /// Bytes of the job's control memory.
    pub control_bytes: u64,
    /// Processors that the ranks may run on, as this process sees them.
    pub processors: u32,
    /// Processor time that a control group allows, in processors, where that is less.
    pub quota: Option<u32>,
    /// How ranks wait.
    pub wait: WaitMode,
    /// The policy of one thread of a rank in that mode.
    pub policy: WaitPolicy,
}

impl Plan {
    /// A job of `ranks` ranks with the settings of this process's environment.
    ///
    /// # Errors
    /// Settings that are wrong; a host that cannot be examined.
    pub fn for_ranks(ranks: u32) -> Result<Self> {
        Self::new(ranks, &Settings::from_environment()?)
    }

    fn new(ranks: u32, settings: &Settings) -> Result<Self> {
        let ranks = ranks.max(1);
        let host = HostMemory::probe()?;
        let segment_limit_bytes = segment_limit(&host, ranks, None, settings);
        let segment_bytes = segment_request(segment_limit_bytes, None, settings)?;
        let processors = count(&own_processors());
        let allowed = allowed();
        let layout = Layout::new(JobRank(0), ranks);
        let wait = settings.get(&WAIT);
        let automatic = WaitPolicy::for_host(ranks, together(&[], &own_processors(), allowed));
        Ok(Self {
            ranks,
            segment_bytes,
            segment_limit_bytes,
            huge_page_bytes: settings.get(&HUGE_PAGES).map(|size| size.bytes()),
            admitted: admit(&vec![segment_bytes; ranks as usize], &host),
            host,
            rings_most_bytes: (layout.bytes() - layout.pools_bytes()) as u64,
            pools_most_bytes: layout.pools_bytes() as u64,
            control_bytes: control_bytes(ranks) as u64,
            processors: processors.max(allowed),
            quota: (allowed < processors).then_some(allowed),
            wait,
            policy: WaitPolicy::for_mode(wait, automatic),
        })
    }
}

/// Bytes of a mask of processors: a bit for each that the system's calls know.
const MASK_BYTES: usize = CpuSet::MAX_CPU / 8;
const_assert!(MASK_BYTES <= MAX_VALUE_BYTES);

/// Processors that this process may run on, one bit each.
pub(crate) fn own_processors() -> [u8; MASK_BYTES] {
    let mut mask = [0; MASK_BYTES];
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        for cpu in (0..mask.len() * 8).filter(|&cpu| set.is_set(cpu)) {
            mask[cpu / 8] |= 1 << (cpu % 8);
        }
    }
    mask
}

/// Processors that the ranks of this host, these, have together: ranks that are bound, one to each
/// processor, are not crowded although each sees only one.
pub(crate) fn processors(boot: &dyn Bootstrap, on_host: Range<u32>) -> Result<u32> {
    let masks: Result<Vec<Vec<u8>>> = on_host
        .map(|rank| Ok(boot.lookup(JobRank(rank), Key::Processors)?))
        .collect();
    Ok(together(&masks?, &own_processors(), allowed()))
}

/// Processors that affinity and control groups leave this process.
fn allowed() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

fn count(mask: &[u8]) -> u32 {
    mask.iter().map(|byte| byte.count_ones()).sum()
}

/// How many processors the masks of all ranks have, unless a control group allows this rank less
/// time than its own processors have, or there are no masks.
fn together(masks: &[Vec<u8>], own: &[u8], allowed: u32) -> u32 {
    if allowed < count(own) || count(own) == 0 {
        return allowed;
    }
    let mut all = [0; MASK_BYTES];
    all[..own.len()].copy_from_slice(own);
    for mask in masks {
        for (all, byte) in all.iter_mut().zip(mask) {
            *all |= byte;
        }
    }
    count(&all)
}

/// Length that a segment of this host may grow to, in bytes; `preset` where the settings give no
/// limit.
pub(crate) fn segment_limit(
    host: &HostMemory,
    ranks: u32,
    preset: Option<SegmentLimit>,
    settings: &Settings,
) -> u64 {
    let preset = preset.filter(|_| settings.given(&MAX_SEGSIZE).is_none());
    let limit = preset.unwrap_or_else(|| settings.get(&MAX_SEGSIZE));
    limit.per_rank(host.total_bytes(), ranks, PageKind::Normal.page_bytes())
}

/// Length of a segment at the start, in bytes, if it may grow to `limit` bytes.
pub fn segment_request(limit: u64, asked: Option<u64>, settings: &Settings) -> Result<u64> {
    let page = PageKind::Normal.page_bytes();
    let Bytes(request) = settings.get_or(&SEGMENT, Bytes(asked.unwrap_or(SEGMENT_BYTES)));
    // A limit below the default holds as it is; a larger request is an error where it is used.
    let request = if asked.is_none() && settings.given(&SEGMENT).is_none() {
        request.min(limit)
    } else {
        request
    };
    let request = request.max(1).checked_next_multiple_of(page);
    request.ok_or_else(|| StartError::Setting {
        name: "Builder::segment_bytes",
        value: asked.unwrap_or(SEGMENT_BYTES).to_string(),
        allowed: SEGMENT.row().kind.allowed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_ranks_are_not_crowded() {
        let mask = |bits: u8| vec![bits, 0];
        // Two ranks bound to a processor each; four bound to two; two that share two.
        assert_eq!(together(&[mask(1), mask(2)], &mask(1), 1), 2);
        assert_eq!(
            together(&[mask(1), mask(2), mask(1), mask(2)], &mask(1), 1),
            2
        );
        assert_eq!(together(&[mask(3), mask(3)], &mask(3), 2), 2);
        // A control group that allows one of eight; a host with more processors than a mask holds.
        assert_eq!(together(&[mask(255), mask(255)], &mask(255), 1), 1);
        assert_eq!(together(&[mask(0), mask(0)], &mask(0), 2000), 2000);
    }
}
