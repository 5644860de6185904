//! GNI interfaces in software, in a file that the ranks of the host have inherited.

use super::channel::{GATHER_TIMES, sizes};
use super::silence::PathLimits;
use super::{Cause, Connected, Connecting, Opened};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::channel::{AnyRails, Channel, ChannelConfig, ChannelSizes, Erased};
use argonet_conduit::gni::{MailboxRails, MailboxRailsConfig, software_config};
use argonet_conduit::selector;
use argonet_nic::gni::software::{FaultRules, Software};
use argonet_nic::gni::{Credentials, NicAddress, Shape};
use argonet_segment::Resolver;
use argonet_settings::{GNI_MAILBOX_CREDITS, GNI_MAILBOX_MESSAGE, Settings};
use core::time::Duration;
use rustix::fd::AsFd;
use std::sync::Arc;

/// A job has ranks on other hosts.
#[derive(Debug, thiserror::Error)]
#[error(
    "gni reaches the ranks of one host, and {host_ranks} of the {ranks} ranks are on that of rank {rank}: start all on one, or choose another --conduit"
)]
struct OtherHosts {
    rank: JobRank,
    host_ranks: usize,
    ranks: u32,
}

/// What the settings say.
struct Open {
    shape: Shape,
    sizes: ChannelSizes,
    silence: Duration,
}

/// Reads the settings; there is nothing to publish, as ranks of a host know where their interfaces
/// are.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let (rank, ranks, host_ranks) = (boot.rank(), boot.size(), boot.host_ranks().len());
    if host_ranks != ranks as usize {
        return Err(Cause::from(OtherHosts {
            rank,
            host_ranks,
            ranks,
        }));
    }
    Ok(Box::new(Open {
        shape: Shape {
            messages: settings.get(&GNI_MAILBOX_CREDITS) as u32,
            message_bytes: settings.get(&GNI_MAILBOX_MESSAGE).0 as u32,
        },
        sizes: ChannelSizes {
            rails: 1,
            // A peer is there for the whole job.
            idle_rails: Duration::ZERO,
            ..sizes(settings)
        },
        silence: PathLimits::of(settings).stopped,
    }))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let Self {
            shape,
            sizes,
            silence,
        } = *self;
        let (boot, rank) = (with.boot, with.boot.rank());
        let peers = (JobRank(0), boot.size());
        let reached = with.reached.unwrap_or_else(|| Arc::clone(with.directory));
        let config = software_config(peers, shape)?;
        let secret = boot.job_key().bytes();
        // Interfaces of other jobs are in other files: the tag is one of many.
        let credentials = Credentials { ptag: 1, cookie: 0 };
        let nic = Software::new(
            boot.files().interfaces.as_fd(),
            config,
            NicAddress { rank, nic: 0 },
            credentials,
            Some(Resolver::new(Arc::clone(&reached))),
            FaultRules::default(),
        )?;
        let rails = MailboxRails::new(MailboxRailsConfig {
            rank,
            peers,
            nic,
            shape,
            secret: secret.to_vec(),
            directory: Arc::clone(with.directory),
            reached,
            silence,
        })?;
        let config = ChannelConfig {
            rank,
            ranks: boot.size(),
            mode: with.mode,
            sizes: ChannelSizes {
                gather_time: GATHER_TIMES[usize::from(with.processor_to_spare)],
                ..sizes
            },
            directory: Arc::clone(with.directory),
            registered: with.registered,
            segment_len: Arc::clone(with.segment_len),
        };
        let network: selector::Network = Arc::new(Channel::<AnyRails>::over(
            Box::new(Erased::new(rails)),
            config,
        )?);
        Ok(network.into())
    }
}
