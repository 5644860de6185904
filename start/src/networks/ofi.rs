//! Messages over libfabric.

use super::addresses::{own_address, publish_host};
use super::channel::{GATHER_TIMES, sizes};
use super::silence::{PathLimits, warner};
use super::{Cause, Connected, Connecting, Opened};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_conduit::channel::{AnyRails, Channel, ChannelConfig, ChannelSizes, Erased};
use argonet_conduit::ofi::{FORMAT, MessageRails, MessageRailsConfig};
use argonet_conduit::selector;
use argonet_nic::fabric::{FabricAddress, Library};
use argonet_nic::rdm::RdmPort;
use argonet_settings::{OFI_PROVIDER, Settings};
use core::num::NonZeroU64;
use core::time::Duration;
use std::sync::Arc;

/// How long a rank that ends goes on at most until its peers have seen that.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A rank has left no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {peer} has published no address for messages but {got:?}: does it have the same ARGONET_CONDUIT, and the same version of argonet?"
)]
struct NoAddress {
    peer: JobRank,
    got: String,
}

/// Two ranks whose endpoints do not reach each other.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {rank} sends messages through {own}, and rank {peer} through {theirs}, which do not reach each other: give all ranks the same ARGONET_OFI_PROVIDER"
)]
struct Mixed {
    rank: JobRank,
    own: String,
    peer: JobRank,
    theirs: String,
}

/// An endpoint that is published.
struct Open {
    port: RdmPort,
    sizes: ChannelSizes,
    limits: PathLimits,
    warn: fn(&str),
}

/// Opens an endpoint and publishes its address.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let library = Library::of_settings(settings)?;
    let provider = settings.get(&OFI_PROVIDER);
    // Some providers have no use for it.
    let address = own_address(boot, settings);
    let known = address.as_ref().ok().copied();
    let port = RdmPort::open(&library, provider.as_deref(), known)?;
    if port.address().is_internet() {
        address?;
    }
    let published = format!("{} {} {FORMAT}", port.address(), port.incarnation());
    boot.publish(Key::Address, published.as_bytes())?;
    publish_host(boot)?;
    Ok(Box::new(Open {
        port,
        sizes: ChannelSizes {
            rails: 1,
            // A peer is there for the whole job.
            idle_rails: Duration::ZERO,
            ..sizes(settings)
        },
        limits: PathLimits::of(settings),
        warn: warner(settings),
    }))
}

fn of_rank(boot: &LocalJob, peer: JobRank) -> Result<(FabricAddress, NonZeroU64), Cause> {
    let published = boot.lookup(peer, Key::Address)?;
    let published = String::from_utf8_lossy(&published);
    let got = || published.chars().take(64).collect();
    Ok(read(&published).ok_or_else(|| NoAddress { peer, got: got() })?)
}

/// What a rank has published, if its messages are of the same format.
fn read(published: &str) -> Option<(FabricAddress, NonZeroU64)> {
    // A provider's name has no spaces.
    let mut words = published.split(' ');
    let address = words.next()?.parse().ok()?;
    let incarnation = words.next()?.parse().ok()?;
    let format: u32 = words.next()?.parse().ok()?;
    (words.next().is_none() && format == FORMAT).then_some((address, incarnation))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let Self {
            port,
            sizes,
            limits,
            warn,
        } = *self;
        let (boot, rank) = (with.boot, with.boot.rank());
        let (mut peers, mut incarnations) = (Vec::new(), Vec::new());
        for peer in (0..boot.size()).map(JobRank) {
            let (address, incarnation) = of_rank(boot, peer)?;
            if !port.address().is_alike(&address) {
                return Err(Cause::from(Mixed {
                    rank,
                    own: port.address().in_words(),
                    peer,
                    theirs: address.in_words(),
                }));
            }
            peers.push(address);
            incarnations.push(incarnation);
        }
        let (queue, sleep) = port.connect(&peers)?;
        let rails = MessageRails::new(MessageRailsConfig {
            rank,
            queue,
            sleep,
            incarnations,
            secret: boot.job_key().bytes().to_vec(),
            silence: limits.stopped,
            warn,
            exit_grace: EXIT_GRACE,
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

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_boot::MAX_VALUE_BYTES;

    #[test]
    fn what_a_rank_publishes_is_read_if_it_has_this_format() {
        let address = format!(
            "fabric:a-provider;layer:4294967295:16384:{}",
            "0f".repeat(64)
        );
        let published = format!("{address} {} {FORMAT}", u64::MAX);
        assert!(published.len() <= MAX_VALUE_BYTES, "{}", published.len());
        let (got, incarnation) = read(&published).unwrap();
        assert_eq!(
            (got.to_string(), incarnation.get()),
            (address.clone(), u64::MAX)
        );
        let later = format!("{address} 7 {}", FORMAT + 1);
        let zero = format!("{address} 0 {FORMAT}");
        let datagrams = format!("127.0.0.1:7 7 {FORMAT}");
        let longer = format!("{published} 1");
        for other in [&later, &zero, &datagrams, &longer, &address] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
