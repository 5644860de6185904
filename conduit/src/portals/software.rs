//! The conduit over the software interface, on one host and between hosts.

use super::config::{Buffers, PortalsConfig, PortalsSizes};
use super::core::{Portals, PortalsError};
use super::roles;
use super::setup::{Depths, buffer_bytes};
use argonet_am::credit::PlanError;
use argonet_base::JobRank;
use argonet_nic::portals::networked::Networked;
use argonet_nic::portals::software::{Software, SoftwareConfig};

/// Entries, descriptors and operations besides those that sizes say: of segments that have grown
/// several times while operations were under way.
pub(super) const SPARE: u32 = 64;

/// How large the interfaces of `ranks` ranks from `first` on are, for a conduit of these sizes.
///
/// # Errors
/// Sizes that do not fit each other.
pub fn software_config(
    sizes: &PortalsSizes,
    first: JobRank,
    ranks: u32,
) -> Result<SoftwareConfig, PlanError> {
    needs(sizes, first, ranks, u64::MAX)
}

/// The same of interfaces whose messages are that long.
pub(super) fn needs(
    sizes: &PortalsSizes,
    first: JobRank,
    ranks: u32,
    message_bytes: u64,
) -> Result<SoftwareConfig, PlanError> {
    let plan = sizes.plan(ranks)?;
    let depths = Depths::of(sizes, ranks, &plan, message_bytes);
    let deepest = depths.system.max(depths.safe).max(depths.requests);
    Ok(SoftwareConfig {
        first,
        ranks,
        portals: roles::PORTALS,
        entries: plan.space().buffers + 2 * sizes.large_buffers + SPARE,
        descriptors: sizes.temporaries + SPARE,
        queues: 3,
        queue_events: deepest,
        counters: 1,
        arena_bytes: buffer_bytes(sizes, &plan),
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
