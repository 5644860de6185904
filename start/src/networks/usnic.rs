//! Datagrams.

use super::addresses::{
    Wish, host_of, is_one_host, own_address, own_address_of_rail, read_addresses, write_addresses,
};
use super::channel::{GATHER_TIMES, sizes};
use super::datagrams::{
    Directory, Published, announce, bind, bind_at, directory, directory_of, in_words, link, seal,
};
use super::paths::{compare, partners};
use super::silence::{PathLimits, warner};
use super::{Cause, Connected, Connecting, Opened, OpenedRail, PublishedOf};
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::channel::AnyRail;
use argonet_conduit::channel::{AnyRails, Channel, ChannelConfig, ChannelSizes, Erased};
use argonet_conduit::failover::Member;
use argonet_conduit::selector;
use argonet_conduit::usnic::{DatagramRails, DatagramRailsConfig};
use argonet_nic::datagram::{FabricPort, HostNames, NicAddress, NicPort, Whereabouts};
use argonet_nic::fabric::Library;
use argonet_nic::reliable::{FIRST_DATAGRAM_BYTES, FORMAT, ReliableConfig};
use argonet_settings::{Settings, USNIC_NIC, USNIC_PROVIDER};
use core::net::SocketAddr;
use core::num::NonZeroU64;
use core::time::Duration;
use std::sync::Arc;

/// How long a rank that ends goes on at most until all that it sent has arrived.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Bytes of frames that networks have: tunnels, clouds, Ethernet, InfiniBand, jumbo frames.
const FRAME_BYTES: [usize; 10] = [1380, 1420, 1460, 1500, 2044, 4092, 8896, 9000, 9216, 65_520];

/// The datagrams that fill them, behind so many bytes of headers.
const fn filling(header_bytes: usize) -> [usize; FRAME_BYTES.len()] {
    let mut lengths = FRAME_BYTES;
    let mut at = 0;
    while at < lengths.len() {
        lengths[at] -= header_bytes;
        at += 1;
    }
    lengths
}

/// Longer datagrams that are tried, over IPv4 and IPv6.
const LONGER_DATAGRAMS: [&[usize]; 2] = [&filling(28), &filling(48)];

/// Sizes between hosts, where datagrams become as long as the path takes.
fn between_hosts(link: &mut ReliableConfig, over: SocketAddr) {
    link.datagram_bytes = FIRST_DATAGRAM_BYTES;
    link.longer_datagrams = LONGER_DATAGRAMS[usize::from(over.is_ipv6())];
}

/// An interface that this rank has opened.
struct Open {
    published: Published<NicPort>,
    sizes: ChannelSizes,
    path_limits: PathLimits,
    warn: fn(&str),
}

/// Longest datagram between ranks of one host: it passes the loopback interface over IPv6, too.
const LONGEST_DATAGRAM_BYTES: usize = 60 << 10;

/// Least size of it, where ranks have little room for arriving datagrams.
const LEAST_DATAGRAM_BYTES: usize = 16 << 10;

/// Rails to a peer, each over a channel with a window of its own.
const RAILS: u16 = 2;

/// Sizes for ranks of one host, with so much room for what arrives at each: all peers of a rank
/// together have no more payload under way to it, if the room is no smaller than some datagrams of
/// each.
fn on_one_host(link: &mut ReliableConfig, receive_bytes: usize, ranks: usize) {
    let windows = ranks.saturating_sub(1).max(1) * usize::from(RAILS);
    let most = link.window_bytes;
    link.window_bytes = (receive_bytes / windows).clamp(4 * LEAST_DATAGRAM_BYTES, most);
    link.datagram_bytes =
        (link.window_bytes / 8).clamp(LEAST_DATAGRAM_BYTES, LONGEST_DATAGRAM_BYTES);
}

/// The interface that the settings choose.
fn port(boot: &LocalJob, settings: &Settings) -> Result<NicPort, Cause> {
    if settings.get(&USNIC_NIC) != "fabric" {
        return Ok(NicPort::Udp(bind(boot, settings)?));
    }
    let library = Library::of_settings(settings)?;
    let provider = settings.get(&USNIC_PROVIDER);
    let address = own_address(boot, settings)?;
    let port = FabricPort::open(&library, provider.as_deref(), Some(address))?;
    Ok(NicPort::Fabric(Box::new(port)))
}

/// Takes an address and publishes it.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let port = port(boot, settings)?;
    let (address, incarnation) = (port.address(), port.incarnation());
    let seal = announce(boot, settings, &address, incarnation, port.receive_bytes()?)?;
    Ok(Box::new(Open {
        published: Published { port, seal },
        sizes: ChannelSizes {
            rails: RAILS,
            // A peer is there for the whole job, and costs no descriptor.
            idle_rails: Duration::ZERO,
            ..sizes(settings)
        },
        path_limits: PathLimits::of(settings),
        warn: warner(settings),
    }))
}

/// Sizes of the link to `peers`, for a rank at `own`.
fn sized(
    mut link: ReliableConfig,
    is_one_host: bool,
    receive_bytes: usize,
    own: &NicAddress,
    peers: &[NicAddress],
) -> ReliableConfig {
    if is_one_host {
        on_one_host(&mut link, receive_bytes, peers.len());
    }
    match own {
        NicAddress::Udp(own) if !is_one_host => between_hosts(&mut link, *own),
        NicAddress::Udp(_) => {}
        // The provider says what it carries, and every rank takes that of each.
        NicAddress::Fabric(own) => {
            let each = peers.iter().map(|peer| match peer {
                NicAddress::Fabric(peer) => peer.message_bytes(),
                NicAddress::Udp(_) => own.message_bytes(),
            });
            link.datagram_bytes = each.min().unwrap_or(own.message_bytes());
        }
    }
    link
}

/// An interface that this rank has opened for one of several rails.
struct OpenRail {
    published: Published<NicPort>,
    warn: fn(&str),
}

/// What a rank publishes of one of several rails, which has less room than the words of one alone:
/// the address, the incarnation, the room for what arrives and the format.
fn in_bytes(address: SocketAddr, incarnation: NonZeroU64, receive_bytes: usize) -> Vec<u8> {
    let mut bytes = write_addresses(&[address], usize::MAX);
    bytes.extend(incarnation.get().to_le_bytes());
    bytes.extend(
        u32::try_from(receive_bytes)
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    bytes.extend(FORMAT.to_le_bytes());
    bytes
}

/// The same in words; none if it is something else.
fn words_of(bytes: &[u8]) -> Option<String> {
    let (rest, format) = bytes.split_last_chunk::<4>()?;
    let (rest, receive_bytes) = rest.split_last_chunk::<4>()?;
    let (address, incarnation) = rest.split_last_chunk::<8>()?;
    let [address] = read_addresses(address)[..] else {
        return None;
    };
    if u32::from_le_bytes(*format) != FORMAT {
        return None;
    }
    let incarnation = NonZeroU64::new(u64::from_le_bytes(*incarnation))?;
    let receive_bytes = u32::from_le_bytes(*receive_bytes) as usize;
    Some(in_words(
        &NicAddress::Udp(address),
        incarnation,
        receive_bytes,
    ))
}

/// Takes an address for one of several rails; what is to be published.
pub(super) fn open_rail(
    boot: &LocalJob,
    settings: &Settings,
    wish: Option<&Wish>,
) -> Result<(Box<dyn OpenedRail>, Vec<u8>), Cause> {
    if settings.get(&USNIC_NIC) == "fabric" {
        return Err("ARGONET_USNIC_NIC=fabric cannot be one of several rails: leave it out".into());
    }
    let address = own_address_of_rail(boot, settings, wish)?;
    let port = bind_at(address, settings)?;
    let Whereabouts {
        address,
        incarnation,
    } = port.whereabouts();
    let published = in_bytes(address, incarnation, port.receive_bytes()?);
    let port = NicPort::Udp(port);
    let seal = seal(boot, settings)?;
    Ok((
        Box::new(OpenRail {
            published: Published { port, seal },
            warn: warner(settings),
        }),
        published,
    ))
}

impl OpenedRail for OpenRail {
    fn rails(
        self: Box<Self>,
        boot: &Arc<LocalJob>,
        published: PublishedOf,
    ) -> Result<(Box<dyn Member<Rail = AnyRail>>, u16), Cause> {
        let directory = directory_of(boot.size(), |peer| {
            Ok(words_of(&published(peer)).unwrap_or_default().into_bytes())
        })?;
        let patience = Patience::ForEver;
        let rails = rails(boot, self.published, directory, patience, self.warn)?;
        // Payloads beside the stream share the fate of its rail here.
        Ok((Box::new(Erased::new(rails)), 0))
    }
}

/// How long the path to a peer may be silent.
enum Patience {
    Limited(PathLimits),
    /// A rail of several is there again when its peer is heard.
    ForEver,
}

/// The rails over an interface.
fn rails(
    boot: &Arc<LocalJob>,
    Published { port, seal }: Published<NicPort>,
    directory: Directory,
    patience: Patience,
    warn: fn(&str),
) -> Result<DatagramRails<argonet_nic::datagram::Nic>, Cause> {
    let Directory {
        peers,
        receive_bytes,
    } = directory;
    let incarnations = peers.iter().map(|(_, incarnation)| *incarnation).collect();
    let addresses: Vec<NicAddress> = peers.into_iter().map(|(address, _)| address).collect();
    let mut link = sized(
        link(boot, receive_bytes / usize::from(RAILS)),
        is_one_host(boot),
        receive_bytes,
        &port.address(),
        &addresses,
    );
    match patience {
        Patience::Limited(limits) => {
            (link.unheard_after, link.stopped_for) = (limits.unheard, limits.stopped);
        }
        Patience::ForEver => link.is_patient = true,
    }
    let job = Arc::clone(boot);
    Ok(DatagramRails::new(DatagramRailsConfig {
        rank: boot.rank(),
        queue: port.open(boot.rank(), &addresses)?,
        incarnations,
        link,
        seal,
        hosts: HostNames::new(move |peer| host_of(&job, peer)),
        warn,
        exit_grace: EXIT_GRACE,
    })?)
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let boot = with.boot;
        let limits = self.path_limits;
        let rails = rails(
            boot,
            self.published,
            directory(boot)?,
            Patience::Limited(limits),
            self.warn,
        )?;
        // On one host all datagrams go the same way, which takes those of any length.
        let checked = rails.check(
            partners(boot.rank(), boot.size(), &boot.neighborhood()),
            !is_one_host(boot),
        );
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
        let network: selector::Network = Arc::new(Channel::<AnyRails>::over(
            Box::new(Erased::new(rails)),
            config,
        )?);
        Ok(Connected {
            network,
            check: Some(Box::new(move |boot| {
                let bad = checked.finish(limits.check);
                let describe = |ends, fault| checked.describe(ends, fault, limits.check);
                compare(boot, &bad, checked.datagram_bytes(), describe)
            })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_between_hosts_grow_as_far_as_windows_hold_some() {
        for (over, headers) in [("127.0.0.1:7", 28), ("[::1]:7", 48)] {
            let mut link = ReliableConfig::default();
            between_hosts(&mut link, over.parse().unwrap());
            let around = link.datagram_bytes - link.record_bytes(true);
            let longest = link.most_record_bytes(true) + around + headers;
            assert_eq!((link.datagram_bytes, longest), (1232, 65_520));
            // What Debian gives a user has room for 8 jumbo frames.
            link.window_bytes = 106_496;
            let longest = link.most_record_bytes(true) + around + headers;
            assert_eq!(longest, 9216);
        }
    }

    #[test]
    fn what_is_published_of_one_of_several_rails_is_read() {
        let incarnation = NonZeroU64::MAX;
        for address in ["10.0.0.1:7", "[fe80::7]:65535"] {
            let address: SocketAddr = address.parse().unwrap();
            let bytes = in_bytes(address, incarnation, 4 << 20);
            let words = in_words(&NicAddress::Udp(address), incarnation, 4 << 20);
            assert_eq!(words_of(&bytes), Some(words));
            for len in 0..bytes.len() {
                assert_eq!(words_of(&bytes[..len]), None, "{address} {len}");
            }
            let mut other = bytes.clone();
            *other.last_mut().unwrap() ^= 1;
            assert_eq!(words_of(&other), None);
        }
    }

    #[test]
    fn datagrams_of_a_provider_are_as_long_as_that_of_every_rank_carries() {
        let of = |bytes| format!("fabric:p:2:{bytes}:00").parse().unwrap();
        let peers: [NicAddress; 3] = [of(8192), of(1472), of(61_440)];
        for (is_one_host, window_bytes) in [(true, 512 << 10), (false, 1 << 20)] {
            let link = ReliableConfig::default();
            let link = sized(link, is_one_host, 2 << 20, &peers[0], &peers);
            assert_eq!(
                (link.datagram_bytes, link.longer_datagrams),
                (1472, &[][..])
            );
            assert_eq!(link.window_bytes, window_bytes);
        }
    }

    #[test]
    fn datagrams_and_windows_on_one_host_follow_the_room_for_them() {
        let of = |receive_bytes, ranks| {
            let mut link = ReliableConfig::default();
            on_one_host(&mut link, receive_bytes, ranks);
            (link.datagram_bytes, link.window_bytes)
        };
        assert_eq!(of(4 << 20, 2), (60 << 10, 1 << 20));
        assert_eq!(of(4 << 20, 5), (60 << 10, 512 << 10));
        assert_eq!(of(4 << 20, 1 << 20), (16 << 10, 64 << 10));
        // What Debian gives a user.
        assert_eq!(of(212_992, 2), (16 << 10, 106_496));
        assert_eq!(of(212_992, 4), (16 << 10, 64 << 10));
        assert_eq!(of(4 << 20, 1), (60 << 10, 1 << 20));
    }
}
