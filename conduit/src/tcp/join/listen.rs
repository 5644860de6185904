//! Listening sockets, and connections that come through them.

use super::exchange::{Broken, Exchange, nonce, prepare};
use super::gate::{Admission, Gate, GateCounts, GateLimits, Left};
use super::handshake::{Handshake, Hello, Progress, Verdict};
use super::interfaces::Interface;
use super::key::JobKey;
use super::wait::{Place, Source, Waiting};
use argonet_base::JobRank;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

/// Connections that the kernel keeps for a rank that does not poll; it may allow fewer.
const BACKLOG: i32 = 4096;

/// For how long nothing is accepted when there are no descriptors, ns.
const OUT_OF_DESCRIPTORS_NS: u64 = 100_000_000;

/// Listening sockets of a rank whose interfaces get more and more addresses.
const MOST_DOORS: usize = 64;

/// Why a rank cannot listen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Others have the ports.
    #[error(
        "rank {rank} cannot listen on {address} of {interface}: all ports from {first} to {last} are in use; widen \
         ARGONET_TCP_PORTS, which needs a port for each rank of a host"
    )]
    Ports {
        /// The rank.
        rank: JobRank,
        /// The interface.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// The first port tried.
        first: u16,
        /// The last port tried.
        last: u16,
    },
    /// The system does not allow it.
    #[error("rank {rank} cannot listen on {address} of {interface}: {cause}")]
    System {
        /// The rank.
        rank: JobRank,
        /// The interface.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// The system's error.
        cause: Errno,
    },
}

/// The listening sockets of a rank, and the connections that have not proved anything.
#[derive(Debug)]
pub(super) struct Listener {
    me: JobRank,
    ranks: u32,
    key: JobKey,
    doors: Vec<OwnedFd>,
    /// Names of their interfaces.
    names: Vec<String>,
    addresses: Vec<SocketAddr>,
    /// Those of the beginning.
    published: Vec<SocketAddr>,
    gate: Gate,
    /// By place in the gate.
    inside: Vec<Option<(Place, Exchange)>>,
    /// Whether the doors are waited for.
    open: bool,
    /// Nothing is accepted until then.
    resting_until_ns: u64,
}

/// A peer that has proved who it is and waits for the answer.
#[derive(Debug)]
pub(super) struct Proven {
    exchange: Exchange,
    pub(super) hello: Hello,
}

impl Listener {
    /// Listens on these interfaces, at a port of the range each; port 0 is any.
    pub(super) fn bind(
        interfaces: &[Interface],
        ports: &RangeInclusive<u16>,
        limits: GateLimits,
        key: JobKey,
        me: JobRank,
        ranks: u32,
    ) -> Result<Self, ListenError> {
        let mut doors = Vec::new();
        let mut addresses = Vec::new();
        for interface in interfaces {
            let (door, address) = bind_one(interface, ports, me)?;
            doors.push(door);
            addresses.push(address);
        }
        let gate = Gate::new(limits, addresses.iter().map(SocketAddr::ip));
        Ok(Self {
            me,
            ranks,
            key,
            doors,
            names: interfaces.iter().map(|at| at.name.clone()).collect(),
            published: addresses.clone(),
            addresses,
            gate,
            inside: (0..limits.most).map(|_| None).collect(),
            open: false,
            resting_until_ns: 0,
        })
    }

    /// Listens at addresses that are new among those of these interfaces, each in place of one that
    /// its interface has no more.
    ///
    /// # Errors
    /// That of the last address at which it cannot listen; it does at all others.
    pub(super) fn readdress(
        &mut self,
        interfaces: &[Interface],
        ports: &RangeInclusive<u16>,
        waiting: &Waiting,
    ) -> Result<(), ListenError> {
        let mut outcome = Ok(());
        for interface in interfaces {
            let is_there = |at: &SocketAddr| at.ip() == interface.address;
            if self.addresses.iter().any(is_there) || self.doors.len() >= MOST_DOORS {
                continue;
            }
            let mut wanted = self.wanted_ports(interface).into_iter();
            let bound = wanted.find_map(|port| bind_one(interface, &(port..=port), self.me).ok());
            let bound = bound.map_or_else(|| bind_one(interface, ports, self.me), Ok);
            let put = bound.and_then(|door| self.put(interface, interfaces, waiting, door));
            outcome = put.and(outcome);
        }
        outcome
    }

    /// Ports at which peers expect a new address of an interface: that of an address that it had
    /// before, that of others that it has, any that was published.
    ///
    /// Where other processes have all of these, peers wait until this rank connects.
    fn wanted_ports(&self, interface: &Interface) -> Vec<u16> {
        let is_alike = |at: &SocketAddr| at.is_ipv4() == interface.address.is_ipv4();
        let published = self.published.iter();
        let before = published.clone().filter(|at| at.ip() == interface.address);
        let doors = self.names.iter().zip(&self.addresses);
        let same = doors.filter(|(name, at)| **name == interface.name && is_alike(at));
        let of_family = published.filter(|at| is_alike(at));
        let all = before.chain(same.map(|(_, at)| at)).chain(of_family);
        all.map(SocketAddr::port).collect()
    }

    fn put(
        &mut self,
        interface: &Interface,
        interfaces: &[Interface],
        waiting: &Waiting,
        (door, address): (OwnedFd, SocketAddr),
    ) -> Result<(), ListenError> {
        let is_gone = |at: &usize| {
            let before = self.addresses[*at];
            self.names[*at] == interface.name
                && before.is_ipv4() == address.is_ipv4()
                && !interfaces.iter().any(|other| other.address == before.ip())
        };
        let place = (0..self.doors.len()).find(is_gone);
        if self.open {
            let at = place.unwrap_or(self.doors.len()) as u32;
            let added = waiting.readable(&door, Source::Door(at));
            added.map_err(|cause| ListenError::System {
                rank: self.me,
                interface: interface.name.clone(),
                address: interface.address,
                cause,
            })?;
        }
        self.gate.know([address.ip()]);
        let Some(place) = place else {
            self.doors.push(door);
            self.names.push(interface.name.clone());
            self.addresses.push(address);
            return Ok(());
        };
        let before = core::mem::replace(&mut self.doors[place], door);
        self.addresses[place] = address;
        // A process that was forked may have it, too.
        if self.open {
            let _ = waiting.forget(&before);
        }
        let _ = net::shutdown(&before, net::Shutdown::Both);
        Ok(())
    }

    /// Where it listens.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(super) fn counts(&self) -> GateCounts {
        self.gate.counts()
    }

    pub(super) fn know(&mut self, hosts: impl IntoIterator<Item = IpAddr>) {
        self.gate.know(hosts);
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        let rests = self.resting_until_ns > 0;
        let resting = rests.then_some(self.resting_until_ns);
        [self.gate.poll_timeout(), resting]
            .into_iter()
            .flatten()
            .min()
    }

    /// Drops connections whose time is over, and opens or closes the listening sockets.
    pub(super) fn tend(&mut self, waiting: &Waiting, now_ns: u64) -> rustix::io::Result<()> {
        while let Some(who) = self.gate.expire(now_ns) {
            self.drop_exchange(who);
        }
        if now_ns >= self.resting_until_ns {
            self.resting_until_ns = 0;
        }
        let open = self.gate.is_open() && self.resting_until_ns == 0;
        if open != self.open {
            for (i, door) in (0..).zip(&self.doors) {
                if open {
                    waiting.readable(door, Source::Door(i))?;
                } else {
                    waiting.forget(door)?;
                }
            }
            self.open = open;
        }
        Ok(())
    }

    /// Accepts connections at a listening socket.
    ///
    /// Each that is let in may have sent its first message already.
    pub(super) fn accept(&mut self, waiting: &Waiting, now_ns: u64, door: u32) -> Vec<Place> {
        let mut admitted = Vec::new();
        let Some(door) = self.doors.get(door as usize) else {
            return admitted;
        };
        // Bounded, so that a flood of strangers does not keep the rank here.
        for _ in 0..self.inside.len() {
            if !self.gate.is_open() {
                break;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (socket, from) = match net::acceptfrom_with(door, flags) {
                Ok((socket, Some(from))) => (socket, from),
                // Closed again before it was taken.
                Ok((_, None)) | Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    // No descriptors or no memory: asking again at once would not help.
                    self.resting_until_ns = now_ns + OUT_OF_DESCRIPTORS_NS;
                    break;
                }
            };
            let Ok(from) = SocketAddr::try_from(from) else {
                continue;
            };
            let (who, evicted) = match self.gate.admit(now_ns, from.ip()) {
                Admission::Admitted(who) => (who, None),
                Admission::Instead { admitted, evicted } => (admitted, Some(evicted)),
                Admission::Full => continue,
            };
            if let Some(place) = evicted.and_then(|who| self.inside.get_mut(who.index as usize)) {
                *place = None;
            }
            let begun = nonce().and_then(|nonce| {
                prepare(&socket)?;
                waiting.readable(&socket, Source::Stranger(who))?;
                let handshake = Handshake::accept(&self.key, self.me, self.ranks, nonce);
                Ok(Exchange { socket, handshake })
            });
            match (begun, self.inside.get_mut(who.index as usize)) {
                (Ok(exchange), Some(place)) => {
                    *place = Some((who, exchange));
                    admitted.push(who);
                }
                _ => self.gate.leave(who, Left::Closed),
            }
        }
        admitted
    }

    /// An unknown connection has something to say.
    ///
    /// Yields it when it has proved who it is.
    pub(super) fn hear(&mut self, waiting: &Waiting, who: Place) -> Option<Proven> {
        let place = self.inside.get_mut(who.index as usize)?;
        let (_, exchange) = place.as_mut().filter(|(has, _)| *has == who)?;
        let left = match exchange.advance() {
            Ok(Progress::Peer(hello)) => {
                let (_, exchange) = place.take()?;
                self.gate.leave(who, Left::Proven);
                return waiting
                    .forget(&exchange.socket)
                    .ok()
                    .map(|()| Proven { exchange, hello });
            }
            Ok(Progress::More | Progress::Done(_)) => return None,
            Err(Broken::Refused(why)) => Left::Refused(why),
            Err(Broken::Closed | Broken::System(_)) => Left::Closed,
        };
        self.gate.leave(who, left);
        self.drop_exchange(who);
        None
    }

    fn drop_exchange(&mut self, who: Place) {
        if let Some(place) = self.inside.get_mut(who.index as usize)
            && place.as_ref().is_some_and(|(has, _)| *has == who)
        {
            *place = None;
        }
    }
}

impl Proven {
    /// The address from which it has connected.
    pub(super) fn from(&self) -> Option<IpAddr> {
        let from = net::getpeername(&self.exchange.socket).ok()??;
        let from = SocketAddr::try_from(from).ok()?;
        Some(from.ip().to_canonical())
    }

    /// Reports to the peer that its connection is used, if the socket takes that.
    pub(super) fn answer(mut self, incarnation: u64, received: u64) -> Option<OwnedFd> {
        self.exchange.handshake.answer_as(incarnation, received);
        let flushed = self.exchange.flush();
        flushed.ok().map(|()| self.exchange.socket)
    }

    /// Reports to the peer why not, if the socket takes that.
    pub(super) fn refuse(mut self, verdict: Verdict, incarnation: u64) {
        self.exchange.handshake.refuse(verdict, incarnation);
        // Else the peer finds the connection closed, and tries again.
        let _ = self.exchange.flush();
    }
}

fn bind_one(
    interface: &Interface,
    ports: &RangeInclusive<u16>,
    rank: JobRank,
) -> Result<(OwnedFd, SocketAddr), ListenError> {
    let address = interface.address;
    let system = |cause| ListenError::System {
        rank,
        interface: interface.name.clone(),
        address,
        cause,
    };
    for port in ports.clone() {
        match listen_at(SocketAddr::new(address, port)) {
            Err(Errno::ADDRINUSE) => {}
            Ok(door) => return Ok(door),
            Err(cause) => return Err(system(cause)),
        }
    }
    Err(ListenError::Ports {
        rank,
        interface: interface.name.clone(),
        address,
        first: *ports.start(),
        last: *ports.end(),
    })
}

fn listen_at(address: SocketAddr) -> rustix::io::Result<(OwnedFd, SocketAddr)> {
    let family = family(&address);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let door = net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier job may still occupy this port.
    sockopt::set_socket_reuseaddr(&door, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&door, true)?;
    }
    net::bind(&door, &address)?;
    net::listen(&door, BACKLOG)?;
    let bound = SocketAddr::try_from(net::getsockname(&door)?)?;
    Ok((door, bound))
}

pub(super) fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    }
}
