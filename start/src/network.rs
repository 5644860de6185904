//! The way to ranks that do not share memory with this one, set up while the job starts.

use crate::error::{Result, StartError};
use crate::portals;
use crate::process;
use crate::published::Reaches;
use crate::usnic;
use argonet_am::Registered;
use argonet_base::{JobRank, Rank};
use argonet_boot::{Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_conduit::channel::ChannelCredits;
use argonet_conduit::channel::{ChannelConfig, ChannelSizes};
use argonet_conduit::selector;
use argonet_conduit::{ExitCounts, Gauges, SegmentLen, ThreadMode};
use argonet_conduit::smp::Smp;
use argonet_conduit::tcp::join::{
    JobKey, JoinService, Joiner, Joining, Whereabouts, from_settings, interfaces, read_addresses,
    write_addresses,
};
use argonet_conduit::tcp::{Tcp, TcpConfig};
use argonet_segment::Directory;
use argonet_settings::{
    CONDUIT, CREDITS_FILE, Letter, PORTAL_CREDIT_STATS, Settings, TCP_CONNECTIONS, TCP_EAGER_SIZE,
    TCP_FRAGMENT_SIZE, TCP_PROGRESS, TCP_SILENCE_TIMEOUT,
};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A network that this rank has joined.
///
/// The other ranks know its addresses after the next fence.
pub(crate) enum Network {
    /// All ranks share memory.
    None,
    Tcp(Box<Open>),
    Portals(Box<portals::Open>),
    Usnic(Box<usnic::Open>),
}

/// Arguments for making a network's conduit.
pub(crate) struct Connecting<'a> {
    pub(crate) boot: &'a Arc<LocalJob>,
    pub(crate) mode: ThreadMode,
    pub(crate) directory: &'a Arc<Directory>,
    /// Segments of all ranks of the host, where the network moves data between them.
    pub(crate) reached: Option<Arc<Directory>>,
    pub(crate) registered: Registered,
    pub(crate) segment_len: &'a SegmentLen,
    pub(crate) processor_to_spare: bool,
}

/// Makes the call that reports to a network that more of this rank's segment may be reached.
pub(crate) fn reaches(network: &selector::Network, rank: Rank) -> Reaches {
    let network = Arc::downgrade(network);
    Box::new(move || {
        let Some(network) = network.upgrade() else {
            return Ok(());
        };
        let (conduit, grown) = (network.name(), network.segment_grown());
        grown.map_err(|cause| StartError::Network {
            rank,
            conduit,
            cause: cause.into(),
        })
    })
}

pub(crate) struct Open {
    joiner: Joiner,
    sizes: ChannelSizes,
    /// Whether a thread serves others; where no setting says, if there is a processor to spare.
    progress: Option<bool>,
    /// Where statistics of credits go when the rank ends.
    statistics: Option<PathBuf>,
}

impl Network {
    /// Opens the network that the settings name, where one is needed, and publishes where this rank
    /// can be reached.
    pub(crate) fn open(boot: &LocalJob, settings: &Settings) -> Result<Self> {
        if boot.neighborhood().len() == boot.size() as usize {
            return Ok(Self::None);
        }
        let rank = boot.rank();
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| StartError::Network {
            rank: Rank(rank.0),
            conduit: Tcp::NAME,
            cause,
        };
        match settings.get(&CONDUIT) {
            Tcp::NAME => {}
            argonet_conduit::portals::NAME => {
                return Ok(Self::Portals(Box::new(portals::Open::new(boot, settings)?)));
            }
            argonet_conduit::usnic::NAME => {
                return Ok(Self::Usnic(Box::new(usnic::Open::new(boot, settings)?)));
            }
            _ => boot.all_share_memory(Smp::NAME)?,
        }
        let (config, _) = from_settings(settings).map_err(|error| failed(error.into()))?;
        let one_host = boot.host_ranks().len() == boot.size() as usize;
        let chosen = addresses(settings, one_host).map_err(failed)?;
        let key = JobKey::from_bytes(*boot.job_key().bytes());
        let joiner = Joiner::new(config, key, rank, boot.size(), chosen);
        let joiner = joiner.map_err(|error| failed(error.into()))?;
        let addresses = write_addresses(joiner.addresses(), MAX_VALUE_BYTES);
        boot.publish(Key::Address, &addresses)?;
        publish_host(boot)?;
        Ok(Self::Tcp(Box::new(Open {
            joiner,
            sizes: sizes(settings),
            progress: settings.get(&TCP_PROGRESS),
            statistics: statistics(settings, rank),
        })))
    }

    /// The conduit over it, after a fence.
    pub(crate) fn conduit(self, with: Connecting<'_>) -> Result<Option<selector::Network>> {
        let rank = with.boot.rank();
        let boot = Arc::downgrade(with.boot);
        let (network, statistics) = match self {
            Self::None => return Ok(None),
            Self::Tcp(mut open) => {
                let statistics = open.statistics.take();
                (open.conduit(with)?, statistics)
            }
            Self::Portals(mut open) => {
                let statistics = open.statistics.take();
                (open.conduit(with)?, statistics)
            }
            Self::Usnic(mut open) => {
                let statistics = open.statistics.take();
                (open.conduit(with)?, statistics)
            }
        };
        publish_summary(&network);
        let (last, gauges) = (Arc::downgrade(&network), network.gauges());
        process::at_end(Box::new(move || {
            // This rank may have left a barrier while messages that others wait for there still
            // wait for their connection.
            if let Some(network) = last.upgrade() {
                let job = boot.upgrade();
                let limit = job.map_or(Duration::MAX, |job| job.exit_grace());
                network.exit_grace(limit);
            }
            if let Some(path) = &statistics {
                write_statistics(gauges.as_deref(), rank, path);
            }
        }));
        Ok(Some(network))
    }
}

impl Open {
    fn conduit(self, with: Connecting<'_>) -> Result<selector::Network> {
        let open = self;
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
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| StartError::Network {
            rank: Rank(rank.0),
            conduit: Tcp::NAME,
            cause,
        };
        let job = Arc::clone(boot);
        let directory_of_ranks = Box::new(move |peer| whereabouts(&job, peer));
        let service = JoinService::new(open.joiner, directory_of_ranks)
            .map_err(|error| failed(error.into()))?;
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
        let tcp = Tcp::new(config).map_err(|error| failed(error.into()))?;
        Ok(Arc::new(tcp))
    }
}

/// How long gathered messages wait for a rank that makes no call: where the progress thread takes
/// the processor of a rank, and where there is a processor to spare.
pub(crate) const GATHER_TIMES: [Duration; 2] =
    [Duration::from_micros(500), Duration::from_micros(50)];

/// Sizes of a channel as the settings of tcp have them.
pub(crate) fn sizes(settings: &Settings) -> ChannelSizes {
    ChannelSizes {
        rails: settings.get(&TCP_CONNECTIONS) as u16,
        eager_bytes: settings.get(&TCP_EAGER_SIZE).0 as usize,
        fragment_bytes: settings.get(&TCP_FRAGMENT_SIZE).0 as usize,
        silent_time: settings.get(&TCP_SILENCE_TIMEOUT),
        credits: ChannelCredits::from_settings(settings),
        ..ChannelSizes::default()
    }
}

/// Where statistics of credits go, if anywhere.
pub(crate) fn statistics(settings: &Settings, rank: JobRank) -> Option<PathBuf> {
    let of_portals = || {
        let wanted = settings.get(&PORTAL_CREDIT_STATS);
        wanted.then(|| PathBuf::from("gasnet_credits.%"))
    };
    let pattern = settings.get(&CREDITS_FILE).or_else(of_portals)?;
    let text = pattern.to_string_lossy();
    Some(text.replace('%', &rank.to_string()).into())
}

fn write_statistics(gauges: Option<&Gauges>, rank: JobRank, path: &Path) {
    let text = match gauges {
        Some(gauges) => gauges.report().to_string(),
        None => format!("rank {rank}: there is no flow control by credits (ARGONET_CREDITS)\n"),
    };
    if let Err(error) = std::fs::write(path, text) {
        let path = path.display();
        eprintln!(
            "argonet: rank {rank} cannot write statistics of credits to {path} (ARGONET_CREDITS_FILE): {error}"
        );
    }
}

/// Writes the memory kept for connections, the peers that have connected, and the exits sent and
/// received into the rank's statistics.
fn publish_summary(network: &selector::Network) {
    let network = Arc::downgrade(network);
    argonet_trace::on_summary_of_library(Box::new(move || {
        let Some(network) = network.upgrade() else {
            return;
        };
        if let Some(all) = network.connections() {
            argonet_trace::count_text(Letter::Conduit, &format!("connections of {all}"));
        }
        if let Some(all) = network.datagrams() {
            argonet_trace::count_text(Letter::Conduit, &format!("datagrams of {all}"));
        }
        if let Some(exits) = network.exits().filter(|all| *all != ExitCounts::default()) {
            argonet_trace::count_text(Letter::Conduit, &format!("exits: {exits}"));
        }
    }));
}

/// Reports the end of the job, and follows reports of others, over a network's system queue.
// spec P13: shutdown on the system queue.
pub(crate) fn follow_exits(network: &selector::Network, boot: &Arc<LocalJob>) {
    let job = Arc::clone(boot);
    network.on_exit(Box::new(move |from, code| {
        argonet_trace::note_with(Letter::Conduit, || {
            format!("rank {from} says over the system queue that it exits with code {code}")
        });
        job.heard_exit(from, code);
    }));
    let network = Arc::downgrade(network);
    process::report_exits_by(Box::new(move |exit| {
        let network = network.upgrade();
        network.is_none_or(|network| network.report_exit(exit))
    }));
}

/// Interfaces of this host that the settings choose to reach others by; `one_host`: the job has no
/// other.
pub(crate) fn addresses(
    settings: &Settings,
    one_host: bool,
) -> Result<Vec<interfaces::Interface>, Box<dyn std::error::Error + Send + Sync>> {
    let (_, wish) = from_settings(settings)?;
    let host = host_name();
    let all = interfaces::list(&host)?;
    Ok(interfaces::choose(&all, &wish, one_host, &host)?)
}

/// The name of this host, for messages.
fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Publishes the name of this host, which errors of other ranks name.
pub(crate) fn publish_host(boot: &LocalJob) -> Result<()> {
    let name = host_name();
    let name = name.as_bytes();
    Ok(boot.publish(Key::Host, &name[..name.len().min(MAX_VALUE_BYTES)])?)
}

/// The name of a rank's host, as it has published it; empty if it has not.
pub(crate) fn host_of(boot: &LocalJob, peer: JobRank) -> String {
    let name = boot.lookup(peer, Key::Host).unwrap_or_default();
    String::from_utf8_lossy(&name).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> ChannelSizes {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        sizes(&Settings::from_pairs(pairs).expect("settings"))
    }

    #[test]
    fn without_settings_tcp_has_its_own_sizes() {
        assert_eq!(of(&[]), ChannelSizes::default());
    }

    /// spec T5: sizes of eager messages and fragments.
    #[test]
    fn sizes_of_tcp_are_those_of_the_settings_and_possible() {
        for (eager, fragment, bytes) in [
            ("64", "4 KB", (64, 4 << 10)),
            ("8 KB", "65536", (8 << 10, 64 << 10)),
            ("64 KB", "1 MB", (64 << 10, 1 << 20)),
        ] {
            let sizes = of(&[
                ("ARGONET_TCP_EAGER_SIZE", eager),
                ("ARGONET_TCP_FRAGMENT_SIZE", fragment),
            ]);
            assert_eq!((sizes.eager_bytes, sizes.fragment_bytes), bytes);
            assert_eq!(sizes.check(), Ok(()));
        }
    }
}
