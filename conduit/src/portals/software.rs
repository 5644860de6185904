//! The conduit over the software interface, on one host and between hosts.

use super::config::{Buffers, PortalsConfig, PortalsSizes};
use super::core::{Portals, PortalsError};
use super::needs::Needs;
use argonet_am::credit::PlanError;
use argonet_base::JobRank;
use argonet_nic::portals::networked::Networked;
use argonet_nic::portals::software::{Software, SoftwareConfig};

/// How large the interfaces of `ranks` ranks from `first` on are, for a conduit of these sizes.
///
/// # Errors
/// Sizes that do not fit each other.
pub fn software_config(
    sizes: &PortalsSizes,
    first: JobRank,
    ranks: u32,
) -> Result<SoftwareConfig, PlanError> {
    let needs = Needs::of(sizes, ranks, u64::MAX)?;
    Ok(SoftwareConfig {
        first,
        ranks,
        portals: needs.portals,
        entries: needs.entries,
        descriptors: needs.descriptors,
        queues: needs.queues,
        queue_events: needs.queue_events,
        counters: needs.counters,
        arena_bytes: needs.buffer_bytes,
    })
}

impl Portals<Software> {
    /// The conduit over an interface in software, whose buffers no other code may use.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn over_software(nic: Software, config: PortalsConfig) -> Result<Self, PortalsError> {
        let (start, len_bytes) = nic.buffers();
        // SAFETY: the buffers are mapped as long as the interface, which the conduit owns from now
        // on; it is the only one to know them.
        unsafe { Self::new(nic, Buffers { start, len_bytes }, config) }
    }
}

impl Portals<Networked> {
    /// The conduit over an interface in software that reaches other hosts, whose buffers no other
    /// code may use.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn over_networked(nic: Networked, config: PortalsConfig) -> Result<Self, PortalsError> {
        let (start, len_bytes) = nic.software().buffers();
        // SAFETY: as in `over_software`.
        unsafe { Self::new(nic, Buffers { start, len_bytes }, config) }
    }
}
