//! Connections over TCP.

use super::addresses::{addresses, host_of, publish_host};
use super::channel::{GATHER_TIMES, sizes};
use super::{Cause, Connected, Connecting, Opened};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_conduit::channel::{ChannelConfig, ChannelSizes};
use argonet_conduit::selector;
use argonet_conduit::tcp::join::{
    JobKey, JoinService, Joiner, Joining, Whereabouts, from_settings, read_addresses,
    write_addresses,
};
use argonet_conduit::tcp::{Tcp, TcpConfig};
use argonet_settings::{Settings, TCP_PROGRESS};
use std::sync::Arc;

/// A rank that listens.
struct Open {
    joiner: Joiner,
    sizes: ChannelSizes,
    /// Whether a thread serves others; where no setting says, if there is a processor to spare.
    progress: Option<bool>,
}

/// Listens, and publishes the addresses.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let (config, _) = from_settings(settings)?;
    let one_host = boot.host_ranks().len() == boot.size() as usize;
    let chosen = addresses(settings, one_host)?;
    let key = JobKey::from_bytes(*boot.job_key().bytes());
    let joiner = Joiner::new(config, key, boot.rank(), boot.size(), chosen)?;
    let addresses = write_addresses(joiner.addresses(), MAX_VALUE_BYTES);
    boot.publish(Key::Address, &addresses)?;
    publish_host(boot)?;
    Ok(Box::new(Open {
        joiner,
        sizes: sizes(settings),
        progress: settings.get(&TCP_PROGRESS),
    }))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let open = *self;
        let Connecting {
            boot,
            mode,
            directory,
            registered,
            segment_len,
            processor_to_spare,
            ..
        } = with;
        let (rank, ranks) = (boot.rank(), boot.size());
        let job = Arc::clone(boot);
        let directory_of_ranks = Box::new(move |peer| whereabouts(&job, peer));
        let service = JoinService::new(open.joiner, directory_of_ranks)?;
        let known = (0..ranks).map(|peer| whereabouts(boot, JobRank(peer)));
        service.know(known.flat_map(|place| place.addresses).map(|at| at.ip()));
        let config = TcpConfig {
            channel: ChannelConfig {
                rank,
                ranks,
                mode,
                sizes: ChannelSizes {
                    gather_time: GATHER_TIMES[usize::from(processor_to_spare)],
                    ..open.sizes
                },
                directory: Arc::clone(directory),
                registered,
                segment_len: Arc::clone(segment_len),
            },
            progress: open.progress.unwrap_or(processor_to_spare),
            connector: Arc::new(Joining::new(service, rank)),
        };
        let tcp: selector::Network = Arc::new(Tcp::new(config)?);
        Ok(tcp.into())
    }
}

/// Where a rank can be reached, as it has published.
fn whereabouts(boot: &LocalJob, peer: JobRank) -> Whereabouts {
    // The address of a rank that has published none is empty, an error when the peer is wanted.
    let address = boot.lookup(peer, Key::Address).unwrap_or_default();
    Whereabouts {
        host: host_of(boot, peer),
        addresses: read_addresses(&address),
    }
}
