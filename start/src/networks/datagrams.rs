//! Ranks that send each other datagrams, and learn each other's addresses from the key store.

use super::Cause;
use super::addresses::{is_one_host, own_address, ports, publish_host};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_nic::datagram::{NicAddress, Port, Whereabouts};
use argonet_nic::reliable::{FORMAT, ReliableConfig, Seal};
use argonet_settings::{Sealing, Settings};
use core::net::IpAddr;
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

/// An interface that is published.
pub(super) struct Published<P> {
    pub(super) port: P,
    /// For its datagrams.
    pub(super) seal: Option<Seal>,
}

/// For programs whose crates leave the ciphers out.
#[cfg(not(feature = "encrypt"))]
const NOT_BUILT: &str = "ARGONET_SEAL=encrypt needs the feature `encrypt` of the crate argonet, without which this program \
     was built; add it to the program's Cargo.toml";

/// Takes a socket's port at that address.
pub(super) fn bind(boot: &LocalJob, settings: &Settings) -> Result<Port, Cause> {
    bind_at(own_address(boot, settings)?, settings)
}

/// The same at that address.
pub(super) fn bind_at(address: IpAddr, settings: &Settings) -> Result<Port, Cause> {
    Ok(Port::bind_in(address, &ports(settings)?)?)
}

/// Takes a socket's port, and publishes it.
pub(super) fn publish(boot: &LocalJob, settings: &Settings) -> Result<Published<Port>, Cause> {
    let port = bind(boot, settings)?;
    let Whereabouts {
        address,
        incarnation,
    } = port.whereabouts();
    let address = NicAddress::Udp(address);
    let seal = announce(boot, settings, &address, incarnation, port.receive_bytes()?)?;
    Ok(Published { port, seal })
}

/// Publishes where this rank is reached, and gives the seal of its datagrams.
pub(super) fn announce(
    boot: &LocalJob,
    settings: &Settings,
    address: &NicAddress,
    incarnation: NonZeroU64,
    receive_bytes: usize,
) -> Result<Option<Seal>, Cause> {
    let published = in_words(address, incarnation, receive_bytes);
    boot.publish(Key::Address, published.as_bytes())?;
    publish_host(boot)?;
    seal(boot, settings)
}

/// Where a rank is reached, as it publishes that.
pub(super) fn in_words(
    address: &NicAddress,
    incarnation: NonZeroU64,
    receive_bytes: usize,
) -> String {
    // A rank of a version with other datagrams finds a word too few, or another one.
    format!("{address} {incarnation} {receive_bytes} {FORMAT}")
}

/// The seal that the settings choose.
pub(super) fn seal(boot: &LocalJob, settings: &Settings) -> Result<Option<Seal>, Cause> {
    Ok(match settings.get(&argonet_settings::SEAL) {
        Sealing::Auth => Some(Seal::from_secret(boot.job_key().bytes())),
        #[cfg(feature = "encrypt")]
        Sealing::Encrypt => Some(Seal::encrypting(boot.job_key().bytes())),
        #[cfg(not(feature = "encrypt"))]
        Sealing::Encrypt => return Err(NOT_BUILT.into()),
        Sealing::Off => None,
    })
}

/// What all ranks have published.
pub(super) struct Directory {
    /// Where each rank is reached, and which interface of that address it is.
    pub(super) peers: Vec<(NicAddress, NonZeroU64)>,
    /// Bytes of arriving datagrams that every rank has room for.
    pub(super) receive_bytes: usize,
}

impl Directory {
    /// Where each rank is reached, if all are by sockets.
    pub(super) fn sockets(&self) -> Result<Vec<Whereabouts>, Cause> {
        let ranks = (0..).map(JobRank).zip(&self.peers);
        let socket = |(peer, (address, incarnation)): (_, &(NicAddress, NonZeroU64))| match address
        {
            NicAddress::Udp(address) => Ok(Whereabouts {
                address: *address,
                incarnation: *incarnation,
            }),
            NicAddress::Fabric(address) => Err(Cause::from(NoAddress {
                peer,
                got: address.to_string(),
            })),
        };
        ranks.map(socket).collect()
    }
}

/// The directory, after a fence.
pub(super) fn directory(boot: &LocalJob) -> Result<Directory, Cause> {
    directory_of(boot.size(), |peer| Ok(boot.lookup(peer, Key::Address)?))
}

/// The same of what `published` says.
pub(super) fn directory_of(
    ranks: u32,
    published: impl Fn(JobRank) -> Result<Vec<u8>, Cause>,
) -> Result<Directory, Cause> {
    let mut receive_bytes = usize::MAX;
    let of_rank = |peer| {
        let (address, incarnation, bytes) = of_rank(peer, &published(peer)?)?;
        receive_bytes = receive_bytes.min(bytes);
        Ok((address, incarnation))
    };
    let peers: Result<_, Cause> = (0..ranks).map(JobRank).map(of_rank).collect();
    Ok(Directory {
        peers: peers?,
        receive_bytes,
    })
}

fn of_rank(peer: JobRank, published: &[u8]) -> Result<(NicAddress, NonZeroU64, usize), Cause> {
    let published = String::from_utf8_lossy(published);
    let got = || published.chars().take(64).collect();
    Ok(read(&published).ok_or_else(|| NoAddress { peer, got: got() })?)
}

/// What a rank has published, if its datagrams are of the same format.
fn read(published: &str) -> Option<(NicAddress, NonZeroU64, usize)> {
    let mut words = published.split(' ');
    let address = words.next()?.parse().ok()?;
    let incarnation: NonZeroU64 = words.next()?.parse().ok()?;
    let receive_bytes = words.next()?.parse().ok()?;
    let format: u32 = words.next()?.parse().ok()?;
    let is_all = words.next().is_none() && format == FORMAT;
    is_all.then_some((address, incarnation, receive_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_boot::MAX_VALUE_BYTES;

    #[test]
    fn datagrams_between_hosts_fit_frames_and_others_are_long() {
        // A frame of Ethernet has 1500 bytes, of which the headers of IPv4 and UDP take 28.
        let of = |one_host| sized(one_host, 4 << 20).datagram_bytes;
        assert_eq!([of(false), of(true)], [1472, 16_384]);
    }

    #[test]
    fn a_rank_with_datagrams_of_another_format_has_no_address() {
        let this = format!("127.0.0.1:7 8 9000 {FORMAT}");
        assert_eq!(read(&this).map(|(_, _, bytes)| bytes), Some(9000));
        let earlier = "127.0.0.1:7 8 9000";
        let later = format!("127.0.0.1:7 8 9000 {}", FORMAT + 1);
        for other in [earlier, &later, &format!("{this} 1")] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    /// The least that MAX_VALUE_BYTES leaves for it is more than what providers have.
    #[test]
    fn addresses_of_every_provider_fit_what_a_rank_publishes() {
        let address = format!("fabric:a-provider:4294967295:61440:{}", "00".repeat(64));
        let most = u64::MAX;
        let published = format!("{address} {most} {most} {}", u32::MAX);
        assert!(published.len() <= MAX_VALUE_BYTES, "{}", published.len());
        let published = format!("{address} {most} {most} {FORMAT}");
        let (read, ..) = read(&published).unwrap();
        assert_eq!(read.to_string(), address);
        // Sockets do not reach it.
        let incarnation = NonZeroU64::MIN;
        let directory = Directory {
            peers: vec![
                ("127.0.0.1:7".parse().unwrap(), incarnation),
                (read, incarnation),
            ],
            receive_bytes: 0,
        };
        let error = directory.sockets().unwrap_err().to_string();
        assert!(error.contains("rank 1 has published no address"), "{error}");
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
