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
    addresses: Vec<SocketAddr>,
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
            addresses,
            gate,
            inside: (0..limits.most).map(|_| None).collect(),
            open: false,
            resting_until_ns: 0,
        })
    }

    /// Listens at addresses that are new among those of these interfaces, in place of those that
    /// are not among them.
    ///
    /// Peers expect it at the same port; where another process has that, they wait until this rank
    /// connects. What the system does not allow is left out: it reports it when that changes.
    pub(super) fn readdress(
        &mut self,
        interfaces: &[Interface],
        ports: &RangeInclusive<u16>,
        waiting: &Waiting,
    ) -> rustix::io::Result<()> {
        let is_of = |address: &SocketAddr, interface: &Interface| address.ip() == interface.address;
        for interface in interfaces {
            if self
                .addresses
                .iter()
                .any(|address| is_of(address, interface))
            {
                continue;
            }
            let gone = |address: &SocketAddr| !interfaces.iter().any(|i| is_of(address, i));
            let place = self.addresses.iter().position(gone);
            let at = place.unwrap_or(self.addresses.len());
            let port = self.addresses[place.unwrap_or(0)].port();
            let bound = bind_one(interface, &(port..=port), self.me)
                .or_else(|_| bind_one(interface, ports, self.me));
            let Ok((door, address)) = bound else {
                continue;
            };
            if self.open {
                waiting.readable(&door, Source::Door(at as u32))?;
            }
            self.gate.know([address.ip()]);
            match place {
                // Closed, which ends the wait for it.
                Some(place) => {
                    (self.doors[place], self.addresses[place]) = (door, address);
                }
                None => {
                    self.doors.push(door);
                    self.addresses.push(address);
                }
            }
        }
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
