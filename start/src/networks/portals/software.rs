//! Interfaces in software: in a file that the ranks of the host have inherited, and over UDP, whose
//! ranks learn each other's addresses from the key store.

use crate::networks::Cause;
use crate::networks::addresses::host_of;
use crate::networks::datagrams::{Published, directory, link, publish};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_conduit::selector;
use argonet_nic::datagram::Port;
use argonet_nic::portals::networked::{HostNames, Networked, NetworkedConfig};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_segment::Resolver;
use argonet_settings::Settings;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

/// Interfaces that the ranks of the host agree on, and where this one is reached by others.
pub(super) struct Open {
    interfaces: SoftwareConfig,
    /// The file of an interface that no other is with; otherwise that of the host.
    own_file: Option<OwnedFd>,
    published: Option<Published<Port>>,
}

impl Open {
    /// `alone`: all others are reached over UDP, also those of the host.
    pub(super) fn new(
        boot: &LocalJob,
        settings: &Settings,
        sizes: &PortalsSizes,
        alone: bool,
    ) -> Result<Self, Cause> {
        let rank = boot.rank();
        let near = match alone {
            true => rank.0..rank.0 + 1,
            false => boot.host_ranks(),
        };
        let interfaces = SoftwareConfig {
            ranks: near.len() as u32,
            ..software_config(sizes, JobRank(near.start), boot.size())?
        };
        let published = match near.len() == boot.size() as usize {
            true => None,
            false => Some(publish(boot, settings)?),
        };
        let own_file = match alone {
            true => Some(memfd_create("argonet-interface", MemfdFlags::CLOEXEC)?),
            false => None,
        };
        Ok(Self {
            interfaces,
            own_file,
            published,
        })
    }

    pub(super) fn conduit(
        self,
        boot: &Arc<LocalJob>,
        config: PortalsConfig,
    ) -> Result<selector::Network, Cause> {
        let file = match &self.own_file {
            Some(file) => file.as_fd(),
            None => boot.files().interfaces.as_fd(),
        };
        let resolver = Resolver::new(Arc::clone(&config.reached));
        let rules = FaultRules::default();
        let nic = Software::new(file, self.interfaces, config.rank, Some(resolver), rules)?;
        let Some(Published { port, seal }) = self.published else {
            return Ok(Arc::new(Portals::over_software(nic, config)?));
        };
        let directory = directory(boot)?;
        let peers = directory.sockets()?;
        let mut network = NetworkedConfig::of_ranks(config.ranks);
        network.link = link(boot, directory.receive_bytes);
        let job = Arc::clone(boot);
        network.hosts = HostNames::new(move |peer| host_of(&job, peer));
        network.seal = seal;
        let nic = Networked::new(nic, port, &peers, &network)?;
        Ok(Arc::new(Portals::over_networked(nic, config)?))
    }
}
