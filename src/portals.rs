//! The way to ranks of this host that do not share memory with this one: interfaces in software, set up while the job starts.

use crate::error::{Error, Result};
use crate::network::{Connecting, statistics};
use argonet_base::{JobRank, Rank};
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::paths;
use argonet_conduit::portals::{NAME, Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_segment::Resolver;
use argonet_settings::Settings;
use rustix::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Interfaces that the ranks of the host agree on.
pub(crate) struct Open {
    sizes: PortalsSizes,
    interfaces: SoftwareConfig,
    /// Where statistics of credits go when the rank ends.
    pub(crate) statistics: Option<PathBuf>,
}

fn failed(
    rank: JobRank,
) -> impl Fn(Box<dyn std::error::Error + Send + Sync>) -> Error + Copy + use<> {
    move |cause| Error::Network {
        rank: Rank(rank.0),
        conduit: NAME,
        cause,
    }
}

impl Open {
    /// What the settings say, for all ranks of the job, which are on this host.
    pub(crate) fn new(boot: &LocalJob, settings: &Settings) -> Result<Self> {
        let host = boot.host_ranks();
        if host.len() != boot.size() as usize {
            boot.all_share_memory(NAME)?;
        }
        let failed = failed(boot.rank());
        let sizes = PortalsSizes::from_settings(settings).map_err(|error| failed(error.into()))?;
        let interfaces = software_config(&sizes, JobRank(host.start), host.len() as u32);
        Ok(Self {
            sizes,
            interfaces: interfaces.map_err(|error| failed(error.into()))?,
            statistics: statistics(settings, boot.rank()),
        })
    }

    /// The conduit over this rank's interface. Peers may use it after the next fence.
    pub(crate) fn conduit(self, with: Connecting<'_>) -> Result<paths::Network> {
        let boot = with.boot;
        let failed = failed(boot.rank());
        let reached = with.reached.unwrap_or_else(|| Arc::clone(with.directory));
        let resolver = Resolver::new(Arc::clone(&reached));
        let file = boot.files().interfaces.as_fd();
        let nic = Software::new(
            file,
            self.interfaces,
            boot.rank(),
            Some(resolver),
            FaultRules::default(),
        );
        let nic = nic.map_err(|error| failed(error.into()))?;
        let config = PortalsConfig {
            rank: boot.rank(),
            ranks: boot.size(),
            mode: with.mode,
            sizes: self.sizes,
            directory: Arc::clone(with.directory),
            reached,
            registered: with.registered,
            segment_len: Arc::clone(with.segment_len),
        };
        let portals = Portals::over_software(nic, config);
        Ok(Arc::new(portals.map_err(|error| failed(error.into()))?))
    }
}
