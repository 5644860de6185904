//! Datagrams.

use super::channel::{GATHER_TIMES, sizes};
use super::datagrams::{link, publish, whereabouts};
use super::{Cause, Connecting, Opened};
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::channel::{Channel, ChannelConfig, ChannelSizes};
use argonet_conduit::selector;
use argonet_conduit::usnic::{DatagramRails, DatagramRailsConfig};
use argonet_nic::datagram::{Port, Udp};
use argonet_nic::reliable::Seal;
use argonet_settings::Settings;
use core::time::Duration;
use std::sync::Arc;

/// How long a rank that ends goes on at most until all that it sent has arrived.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Longest datagram between hosts: it passes wherever IPv6 does, whose frames have 1,280 bytes, of
/// which headers take 48.
///
/// The path is not probed.
const DATAGRAM_BYTES: usize = 1232;

/// A socket that this rank has bound.
struct Open {
    port: Port,
    sizes: ChannelSizes,
}

/// Takes an address and publishes it.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    Ok(Box::new(Open {
        port: publish(boot, settings)?,
        sizes: ChannelSizes {
            rails: 1,
            ..sizes(settings)
        },
    }))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<selector::Network, Cause> {
        let boot = with.boot;
        let peers = whereabouts(boot)?;
        let addresses = peers.iter().map(|peer| peer.address).collect();
        let mut link = link(boot);
        if boot.host_ranks().len() != boot.size() as usize {
            link.datagram_bytes = DATAGRAM_BYTES;
        }
        let rails = DatagramRails::new(DatagramRailsConfig {
            rank: boot.rank(),
            queue: Udp::new(self.port.into_socket(), addresses)?,
            incarnations: peers.iter().map(|peer| peer.incarnation).collect(),
            link,
            seal: Some(Seal::from_secret(boot.job_key().bytes())),
            exit_grace: EXIT_GRACE,
        })?;
        let config = ChannelConfig {
            rank: boot.rank(),
            ranks: boot.size(),
            mode: with.mode,
            sizes: ChannelSizes {
                gather_time: GATHER_TIMES[usize::from(with.processor_to_spare)],
                ..self.sizes
            },
            directory: Arc::clone(with.directory),
            registered: with.registered,
            segment_len: Arc::clone(with.segment_len),
        };
        Ok(Arc::new(Channel::over(rails, config)?))
    }
}
