//! The conduit over interfaces that make any memory of a process reachable, as libraries of Portals
//! 4 do.

use super::config::{Buffers, PortalsConfig, PortalsSizes, SHORTEST_MESSAGE};
use super::core::{Portals, PortalsError};
use super::software::{SPARE, needs};
use argonet_am::credit::PlanError;
use argonet_base::JobRank;
use argonet_nic::portals::Portals as Interface;
use argonet_nic::portals::portals4::Portals4Config;
use core::ptr::NonNull;
use memmap2::MmapMut;

/// The request to a library of Portals 4, for a conduit of these sizes and `ranks` ranks.
///
/// The library reports the length of its messages later.
///
/// # Errors
/// Sizes that do not fit each other.
pub fn portals4_config(sizes: &PortalsSizes, ranks: u32) -> Result<Portals4Config, PlanError> {
    let needs = needs(sizes, JobRank(0), ranks, SHORTEST_MESSAGE)?;
    Ok(Portals4Config {
        portals: needs.portals,
        entries: needs.entries,
        descriptors: needs.descriptors,
        queues: needs.queues,
        queue_events: needs.queue_events,
        counters: needs.counters,
        // One for each ticket, and a question and an answer of the system queue for each peer.
        operations: sizes
            .messages
            .saturating_add(ranks.saturating_mul(2))
            .saturating_add(SPARE),
        ..Portals4Config::default()
    })
}

impl<N: Interface> Portals<N> {
    /// The conduit with buffers of its own, over an interface that makes any memory reachable.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if there is no memory.
    pub fn over_own_memory(nic: N, config: PortalsConfig) -> Result<Self, PortalsError> {
        let rank = config.rank;
        let needs = needs(&config.sizes, rank, config.ranks, SHORTEST_MESSAGE);
        let needs = needs.map_err(|cause| PortalsError::Plan { rank, cause })?;
        let len_bytes = needs.arena_bytes;
        let no_memory = |cause| PortalsError::NoMemory {
            rank,
            len_bytes,
            cause,
        };
        let len = usize::try_from(len_bytes);
        let len = len.map_err(|_| no_memory(std::io::ErrorKind::OutOfMemory.into()))?;
        let mut memory = MmapMut::map_anon(len).map_err(no_memory)?;
        // A mapping is not at address 0.
        let start = NonNull::new(memory.as_mut_ptr()).unwrap_or(NonNull::dangling());
        // SAFETY: the mapping is kept with the value, or here if there is none, until the interface
        // is gone, and no other code has it.
        let mut portals = unsafe { Self::new(nic, Buffers { start, len_bytes }, config)? };
        portals.memory = Some(memory);
        Ok(portals)
    }
}
