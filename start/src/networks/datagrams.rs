//! Ranks that send each other datagrams, and learn each other's addresses from the key store.

use super::Cause;
use super::addresses::{addresses, ports, publish_host};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_nic::datagram::{Port, Whereabouts};
use argonet_nic::reliable::{FORMAT, ReliableConfig, Seal};
use argonet_settings::{Sealing, Settings};
use core::num::NonZeroU64;

/// Bytes of datagrams between ranks of one host, where no network cuts them to frames.
const LOOPBACK_DATAGRAM_BYTES: usize = 16 << 10;

/// Least window between hosts, however little room sockets have.
const LEAST_WINDOW_BYTES: usize = 64 << 10;

/// A rank has left no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {peer} has published no address for datagrams but {got:?}: does it have the same ARGONET_CONDUIT and ARGONET_PORTALS_INTERFACE, and the same version of argonet?"
)]
struct NoAddress {
    peer: JobRank,
    got: String,
}

/// Sizes and times between ranks of one host, which no network divides, or of several, with so much
/// room for what arrives at each.
pub(super) fn link(boot: &LocalJob, receive_bytes: usize) -> ReliableConfig {
    sized(is_one_host(boot), receive_bytes)
}

fn sized(one_host: bool, receive_bytes: usize) -> ReliableConfig {
    let mut link = ReliableConfig::default();
    if one_host {
        link.datagram_bytes = LOOPBACK_DATAGRAM_BYTES;
    } else {
        // One peer alone does not fill the socket of a rank that computes.
        link.window_bytes = receive_bytes.clamp(LEAST_WINDOW_BYTES, link.window_bytes);
    }
    link
}

pub(super) fn is_one_host(boot: &LocalJob) -> bool {
    boot.host_ranks().len() == boot.size() as usize
}

/// A port that is published.
pub(super) struct Published {
    pub(super) port: Port,
    /// For its datagrams.
    pub(super) seal: Option<Seal>,
}

/// For programs whose crates leave the ciphers out.
#[cfg(not(feature = "encrypt"))]
const NOT_BUILT: &str = "ARGONET_SEAL=encrypt needs the feature `encrypt` of the crate argonet, without which this program \
     was built; add it to the program's Cargo.toml";

/// Takes a port at the first of the addresses that tcp would use, and publishes it.
pub(super) fn publish(boot: &LocalJob, settings: &Settings) -> Result<Published, Cause> {
    let chosen = addresses(settings, is_one_host(boot))?;
    let first = chosen.first().ok_or("there is no address for datagrams")?;
    let port = Port::bind_in(first.address, &ports(settings)?)?;
    let Whereabouts {
        address,
        incarnation,
    } = port.whereabouts();
    // A rank of a version with other datagrams finds a word too few, or another one.
    let published = format!("{address} {incarnation} {} {FORMAT}", port.receive_bytes()?);
    boot.publish(Key::Address, published.as_bytes())?;
    publish_host(boot)?;
    let seal = match settings.get(&argonet_settings::SEAL) {
        Sealing::Auth => Some(Seal::from_secret(boot.job_key().bytes())),
        #[cfg(feature = "encrypt")]
        Sealing::Encrypt => Some(Seal::encrypting(boot.job_key().bytes())),
        #[cfg(not(feature = "encrypt"))]
        Sealing::Encrypt => return Err(NOT_BUILT.into()),
        Sealing::Off => None,
    };
    Ok(Published { port, seal })
}

/// What all ranks have published.
pub(super) struct Directory {
    /// Where each rank is reached.
    pub(super) peers: Vec<Whereabouts>,
    /// Bytes of arriving datagrams that the system keeps for every rank.
    pub(super) receive_bytes: usize,
}

/// The directory, after a fence.
pub(super) fn directory(boot: &LocalJob) -> Result<Directory, Cause> {
    let mut receive_bytes = usize::MAX;
    let of_rank = |peer| {
        let (whereabouts, bytes) = of_rank(boot, peer)?;
        receive_bytes = receive_bytes.min(bytes);
        Ok(whereabouts)
    };
    let peers: Result<_, Cause> = (0..boot.size()).map(JobRank).map(of_rank).collect();
    Ok(Directory {
        peers: peers?,
        receive_bytes,
    })
}

fn of_rank(boot: &LocalJob, peer: JobRank) -> Result<(Whereabouts, usize), Cause> {
    let published = boot.lookup(peer, Key::Address)?;
    let published = String::from_utf8_lossy(&published);
    let got = || published.chars().take(64).collect();
    Ok(read(&published).ok_or_else(|| NoAddress { peer, got: got() })?)
}

/// What a rank has published, if its datagrams are of the same format.
fn read(published: &str) -> Option<(Whereabouts, usize)> {
    let mut words = published.split(' ');
    let address = words.next()?.parse().ok()?;
    let incarnation: NonZeroU64 = words.next()?.parse().ok()?;
    let receive_bytes = words.next()?.parse().ok()?;
    let format: u32 = words.next()?.parse().ok()?;
    let whereabouts = Whereabouts {
        address,
        incarnation,
    };
    let is_all = words.next().is_none() && format == FORMAT;
    is_all.then_some((whereabouts, receive_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_between_hosts_fit_frames_and_others_are_long() {
        // A frame of Ethernet has 1500 bytes, of which the headers of IPv4 and UDP take 28.
        let of = |one_host| sized(one_host, 4 << 20).datagram_bytes;
        assert_eq!([of(false), of(true)], [1472, 16_384]);
    }

    #[test]
    fn a_rank_with_datagrams_of_another_format_has_no_address() {
        let this = format!("127.0.0.1:7 8 9000 {FORMAT}");
        assert_eq!(read(&this).map(|(_, bytes)| bytes), Some(9000));
        let earlier = "127.0.0.1:7 8 9000";
        let later = format!("127.0.0.1:7 8 9000 {}", FORMAT + 1);
        for other in [earlier, &later, &format!("{this} 1")] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn windows_between_hosts_are_no_longer_than_a_socket_has_room() {
        let of = |receive_bytes| sized(false, receive_bytes).window_bytes;
        assert_eq!(of(4 << 20), 1 << 20);
        // What Debian gives a user.
        assert_eq!(of(212_992), 212_992);
        assert_eq!(of(1000), LEAST_WINDOW_BYTES);
    }
}
