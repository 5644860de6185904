//! Interfaces in software, in a file that the ranks of the host have inherited.

use super::Cause;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::paths;
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_segment::Resolver;
use rustix::fd::AsFd;
use std::sync::Arc;

/// Interfaces that the ranks of the host agree on.
pub(super) struct Open {
    interfaces: SoftwareConfig,
}

/// Ranks are where the interface does not lead.
#[derive(Debug, thiserror::Error)]
#[error(
    "interfaces in software join ranks of one host, and {near} of the job's {size} ranks are on this one: choose an interface that spans hosts with ARGONET_PORTALS_INTERFACE (portals4), or another conduit (tcp)"
)]
struct OtherHosts {
    near: usize,
    size: u32,
}

impl Open {
    pub(super) fn new(boot: &LocalJob, sizes: &PortalsSizes) -> Result<Self, Cause> {
        let (host, size) = (boot.host_ranks(), boot.size());
        let near = host.len();
        if near != size as usize {
            return Err(OtherHosts { near, size }.into());
        }
        let interfaces = software_config(sizes, JobRank(host.start), near as u32)?;
        Ok(Self { interfaces })
    }

    pub(super) fn conduit(
        self,
        boot: &LocalJob,
        config: PortalsConfig,
    ) -> Result<paths::Network, Cause> {
        let file = boot.files().interfaces.as_fd();
        let resolver = Resolver::new(Arc::clone(&config.reached));
        let rules = FaultRules::default();
        let nic = Software::new(file, self.interfaces, config.rank, Some(resolver), rules)?;
        Ok(Arc::new(Portals::over_software(nic, config)?))
    }
}
