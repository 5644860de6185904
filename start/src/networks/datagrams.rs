//! Ranks that send each other datagrams, and learn each other's addresses from the key store.

use super::Cause;
use super::addresses::{addresses, publish_host};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_nic::datagram::{Port, Whereabouts};
use argonet_nic::reliable::ReliableConfig;
use argonet_settings::Settings;
use core::net::SocketAddr;
use core::num::NonZeroU64;

/// Bytes of datagrams between ranks of one host, where no network cuts them to frames.
const LOOPBACK_DATAGRAM_BYTES: usize = 16 << 10;

/// A rank has left no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {peer} has published no address for datagrams but {got:?}: does it have the same ARGONET_CONDUIT and ARGONET_PORTALS_INTERFACE, and the same version of argonet?"
)]
struct NoAddress {
    peer: JobRank,
    got: String,
}

/// Sizes and times between ranks of one host, which no network divides, or of several.
pub(super) fn link(boot: &LocalJob) -> ReliableConfig {
    sized(is_one_host(boot))
}

fn sized(one_host: bool) -> ReliableConfig {
    let mut link = ReliableConfig::default();
    if one_host {
        link.datagram_bytes = LOOPBACK_DATAGRAM_BYTES;
    }
    link
}

fn is_one_host(boot: &LocalJob) -> bool {
    boot.host_ranks().len() == boot.size() as usize
}

/// Takes a port at the first of the addresses that tcp would use, and publishes it.
pub(super) fn publish(boot: &LocalJob, settings: &Settings) -> Result<Port, Cause> {
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

/// The addresses that all ranks have published, after a fence.
pub(super) fn whereabouts(boot: &LocalJob) -> Result<Vec<Whereabouts>, Cause> {
    let ranks = (0..boot.size()).map(JobRank);
    ranks.map(|peer| of_rank(boot, peer)).collect()
}

fn of_rank(boot: &LocalJob, peer: JobRank) -> Result<Whereabouts, Cause> {
    let published = boot.lookup(peer, Key::Address)?;
    let published = String::from_utf8_lossy(&published);
    let read = published
        .split_once(' ')
        .and_then(|(address, incarnation)| {
            let incarnation: NonZeroU64 = incarnation.parse().ok()?;
            Some(Whereabouts {
                address: address.parse().ok()?,
                incarnation,
            })
        });
    let got = || published.chars().take(64).collect();
    Ok(read.ok_or_else(|| NoAddress { peer, got: got() })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_between_hosts_fit_frames_and_others_are_long() {
        // A frame of Ethernet has 1500 bytes, of which the headers of IPv4 and UDP take 28.
        let of = |one_host| sized(one_host).datagram_bytes;
        assert_eq!([of(false), of(true)], [1472, 16_384]);
    }
}
