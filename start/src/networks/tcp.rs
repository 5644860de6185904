//! Connections over TCP.

use super::addresses::{Wish, addresses_of_rail, host_of, is_one_host, publish_host, wished_now};
use super::channel::{GATHER_TIMES, sizes};
use super::{Cause, Connected, Connecting, Opened, OpenedRail, PublishedOf};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_conduit::channel::{AnyRail, ChannelConfig, ChannelSizes, Erased};
use argonet_conduit::failover::Member;
use argonet_conduit::selector;
use argonet_conduit::tcp::join::{
    JobKey, JoinConfig, JoinService, Joiner, Joining, OwnInterfaces, Whereabouts, from_settings,
    read_addresses, write_addresses,
};
use argonet_conduit::tcp::{Sockets, Tcp, TcpConfig};
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
    let joiner = listen(boot, settings, None, false)?;
    let addresses = write_addresses(joiner.addresses(), MAX_VALUE_BYTES);
    boot.publish(Key::Address, &addresses)?;
    publish_host(boot)?;
    Ok(Box::new(Open {
        joiner,
        sizes: sizes(settings),
        progress: settings.get(&TCP_PROGRESS),
    }))
}

/// Begins to listen.
fn listen(
    boot: &LocalJob,
    settings: &Settings,
    wish: Option<&Wish>,
    follows: bool,
) -> Result<Joiner, Cause> {
    let (config, _) = from_settings(settings)?;
    let config = JoinConfig { follows, ..config };
    let chosen = addresses_of_rail(boot, settings, wish)?;
    let key = JobKey::from_bytes(*boot.job_key().bytes());
    Ok(Joiner::new(config, key, boot.rank(), boot.size(), chosen)?)
}

/// What makes the connections of a rank that listens.
fn service(
    boot: &Arc<LocalJob>,
    joiner: Joiner,
    published: PublishedOf,
) -> Result<JoinService, Cause> {
    let ranks = boot.size();
    let whereabouts = {
        let job = Arc::clone(boot);
        move |peer| whereabouts(&job, peer, &*published)
    };
    let known: Vec<_> = (0..ranks).map(|peer| whereabouts(JobRank(peer))).collect();
    let service = JoinService::new(joiner, Box::new(whereabouts))?;
    let addresses = known.into_iter().flat_map(|place| place.addresses);
    service.know(addresses.map(|at| at.ip()));
    Ok(service)
}

/// A rank that listens at one of several rails.
struct OpenRail {
    joiner: Joiner,
    own: OwnInterfaces,
    connections: u16,
}

/// Bytes of addresses of one of several rails, at most: nine over IPv4.
const RAIL_BYTES: usize = 64;

/// Listens, for one of several rails; what is to be published.
pub(super) fn open_rail(
    boot: &LocalJob,
    settings: &Settings,
    wish: Option<&Wish>,
) -> Result<(Box<dyn OpenedRail>, Vec<u8>), Cause> {
    let joiner = listen(boot, settings, wish, true)?;
    let addresses = write_addresses(joiner.addresses(), RAIL_BYTES);
    let connections = sizes(settings).rails;
    let wish = match wish {
        Some(wish) => wish.clone(),
        None => from_settings(settings)?.1,
    };
    let names = joiner.names().map(str::to_owned).collect::<Vec<_>>();
    let one_host = is_one_host(boot);
    let own = move || wished_now(&wish, one_host, &names).ok();
    Ok((
        Box::new(OpenRail {
            joiner,
            own: Box::new(own),
            connections,
        }),
        addresses,
    ))
}

impl OpenedRail for OpenRail {
    fn rails(
        self: Box<Self>,
        boot: &Arc<LocalJob>,
        published: PublishedOf,
    ) -> Result<(Box<dyn Member<Rail = AnyRail>>, u16), Cause> {
        let service = service(boot, self.joiner, published)?.with_own(self.own);
        let connector = Arc::new(Joining::new(service, boot.rank()));
        let sockets = Sockets::new(connector, false)?;
        let further = self.connections.saturating_sub(1);
        Ok((Box::new(Erased::new(sockets)), further))
    }
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
        let published = Arc::new(move |peer| {
            // The address of a rank that has published none is empty, an error when the peer is
            // wanted.
            job.lookup(peer, Key::Address).unwrap_or_default()
        });
        let service = service(boot, open.joiner, published)?;
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
        let tcp: selector::Network = Arc::new(Tcp::over_connections(config)?);
        Ok(tcp.into())
    }
}

/// Where a rank can be reached, as it has published.
fn whereabouts(
    boot: &LocalJob,
    peer: JobRank,
    published: &dyn Fn(JobRank) -> Vec<u8>,
) -> Whereabouts {
    Whereabouts {
        host: host_of(boot, peer),
        addresses: read_addresses(&published(peer)),
    }
}
