//! The conduit over the software interface.

use super::config::{Buffers, PortalsConfig, PortalsSizes};
use super::core::{Portals, PortalsError};
use super::roles;
use super::setup::{Depths, buffer_bytes};
use argonet_am::credit::PlanError;
use argonet_base::JobRank;
use argonet_nic::portals::software::{Software, SoftwareConfig};

/// Entries and descriptors besides those that sizes say: of segments that have grown several times while operations were under way.
const SPARE: u32 = 64;

/// How large the interfaces of `ranks` ranks from `first` on are, for a conduit of these sizes.
///
/// # Errors
/// Sizes that do not fit each other.
pub fn software_config(
    sizes: &PortalsSizes,
    first: JobRank,
    ranks: u32,
) -> Result<SoftwareConfig, PlanError> {
    let plan = sizes.plan(ranks)?;
    let Depths {
        system,
        safe,
        requests,
    } = Depths::of(sizes, ranks, &plan);
    Ok(SoftwareConfig {
        first,
        ranks,
        portals: roles::PORTALS,
        entries: plan.space().buffers + 2 * sizes.large_buffers + SPARE,
        descriptors: sizes.temporaries + SPARE,
        queues: 3,
        queue_events: system.max(safe).max(requests),
        counters: 1,
        arena_bytes: buffer_bytes(sizes, &plan),
    })
}

impl Portals<Software> {
    /// The conduit over an interface in software, whose buffers nobody else may use.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn over_software(nic: Software, config: PortalsConfig) -> Result<Self, PortalsError> {
        let (start, len_bytes) = nic.buffers();
        // SAFETY: the buffers are mapped as long as the interface, which the conduit owns from now on; it is the only one to know them.
        unsafe { Self::new(nic, Buffers { start, len_bytes }, config) }
    }
}
