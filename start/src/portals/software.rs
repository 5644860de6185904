//! Interfaces in software: in a file that the ranks of the host have inherited, and over UDP, whose
//! ranks learn each other's addresses from the key store.

use super::Cause;
use crate::network::{addresses, host_of, publish_host};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, software_config};
use argonet_conduit::selector;
use argonet_nic::portals::networked::{HostNames, Networked, NetworkedConfig, Port, Whereabouts};
use argonet_nic::portals::software::{FaultRules, Software, SoftwareConfig};
use argonet_nic::reliable::Seal;
use argonet_segment::Resolver;
use argonet_settings::Settings;
use core::net::SocketAddr;
use core::num::NonZeroU64;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::sync::Arc;

/// Bytes of datagrams between ranks of one host, where no network cuts them to frames.
const LOOPBACK_DATAGRAM_BYTES: usize = 16 << 10;

/// A rank has left no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {peer} has published no address for datagrams but {got:?}: does it have the same ARGONET_PORTALS_INTERFACE, and the same version of argonet?"
)]
struct NoAddress {
    peer: JobRank,
    got: String,
}

/// Interfaces that the ranks of the host agree on, and where this one is reached by others.
pub(super) struct Open {
    interfaces: SoftwareConfig,
    /// The file of an interface that no other is with; otherwise that of the host.
    own_file: Option<OwnedFd>,
    port: Option<Port>,
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
        let port = match near.len() == boot.size() as usize {
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
            port,
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
        let Some(port) = self.port else {
            return Ok(Arc::new(Portals::over_software(nic, config)?));
        };
        let peers: Vec<Whereabouts> = (0..config.ranks)
            .map(|peer| whereabouts(boot, JobRank(peer)))
            .collect::<Result<_, Cause>>()?;
        let mut network = network_config(config.ranks, is_one_host(boot));
        let job = Arc::clone(boot);
        network.hosts = HostNames::new(move |peer| host_of(&job, peer));
        network.seal = Some(Seal::from_secret(boot.job_key().bytes()));
        let nic = Networked::new(nic, port, &peers, &network)?;
        Ok(Arc::new(Portals::over_networked(nic, config)?))
    }
}

/// Sizes and times between ranks of one host, which no network divides, or of several.
fn network_config(ranks: u32, one_host: bool) -> NetworkedConfig {
    let mut network = NetworkedConfig::of_ranks(ranks);
    if one_host {
        network.link.datagram_bytes = LOOPBACK_DATAGRAM_BYTES;
    }
    network
}

fn is_one_host(boot: &LocalJob) -> bool {
    boot.host_ranks().len() == boot.size() as usize
}

/// Takes a port at the first of the addresses that tcp would use, and publishes it.
fn publish(boot: &LocalJob, settings: &Settings) -> Result<Port, Cause> {
    let chosen = addresses(settings, is_one_host(boot))?;
    let first = chosen.first().ok_or("there is no address for datagrams")?;
    let port = Port::bind(SocketAddr::new(first.address, 0))?;
    let Whereabouts {
        address,
        incarnation,
    } = port.whereabouts();
    boot.publish(Key::Address, format!("{address} {incarnation}").as_bytes())?;
    publish_host(boot)?;
    Ok(port)
}

/// The address that a rank has published.
fn whereabouts(boot: &LocalJob, peer: JobRank) -> Result<Whereabouts, Cause> {
    let text = boot.lookup(peer, Key::Address)?;
    let text = String::from_utf8_lossy(&text);
    let read = text.split_once(' ').and_then(|(address, incarnation)| {
        let incarnation: NonZeroU64 = incarnation.parse().ok()?;
        Some(Whereabouts {
            address: address.parse().ok()?,
            incarnation,
        })
    });
    let got = || text.chars().take(64).collect();
    Ok(read.ok_or_else(|| NoAddress { peer, got: got() })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_between_hosts_fit_frames_and_others_are_long() {
        // A frame of Ethernet has 1500 bytes, of which the headers of IPv4 and UDP take 28.
        let of = |one_host| network_config(4, one_host).link.datagram_bytes;
        assert_eq!([of(false), of(true)], [1472, 16_384]);
    }
}
