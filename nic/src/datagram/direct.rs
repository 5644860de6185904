//! Sockets for peers of the same host that datagrams often go to.
//!
//! The system looks up the route of each datagram anew, unless its socket is connected: that is a
//! tenth of a short round trip on one host. A connected socket takes datagrams of its peer away
//! from others of the same port, so these have ports of their own, and only send. They are for
//! peers at the rank's own address: between hosts, a firewall may let answers pass that come from
//! where a question went to, and from nowhere else.

use super::lean::make_lean;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU32, Ordering};
use quinn_udp::UdpSocketState;
use rustix::net::sockopt;
use std::io;
use std::net::UdpSocket;
use std::sync::OnceLock;

/// Datagrams to a peer after which it has a socket.
const OFTEN: u32 = 64;

/// Sockets of a rank, at most: each takes a descriptor and a port of the host.
const MOST_SOCKETS: u32 = 16;

/// A peer.
#[derive(Debug, Default)]
struct Place {
    /// Datagrams to it, until there are [`OFTEN`]; threads that send count.
    sent: AtomicU32,
    /// From then on; `None` where it has none.
    socket: OnceLock<Option<UdpSocket>>,
}

/// Such sockets of a rank.
#[derive(Debug)]
pub(super) struct Direct {
    /// Where datagrams arrive at the rank.
    own: SocketAddr,
    /// Bytes that the system is asked to keep until they have left.
    send_bytes: usize,
    /// The first peer at the own address.
    first: usize,
    /// Peers from there to the last one at the own address, as ranks of a host mostly follow each
    /// other; a peer of another host has a place for nothing.
    places: Box<[Place]>,
    /// Sockets; threads that make one count.
    made: AtomicU32,
}

impl Direct {
    /// None yet, beside the socket where datagrams arrive.
    ///
    /// # Errors
    /// What the system says of that one.
    pub(super) fn new(socket: &UdpSocket, addresses: &[SocketAddr]) -> io::Result<Self> {
        let own = socket.local_addr()?;
        let is_here = |address: &SocketAddr| address.ip() == own.ip();
        let first = addresses.iter().position(is_here).unwrap_or(0);
        let end = addresses
            .iter()
            .rposition(is_here)
            .map_or(0, |last| last + 1);
        Ok(Self {
            own,
            // It says twice what it was asked for (socket(7)).
            send_bytes: sockopt::socket_send_buffer_size(socket)? / 2,
            first,
            places: (first..end).map(|_| Place::default()).collect(),
            made: AtomicU32::new(0),
        })
    }

    /// The socket for a peer, if it has one.
    #[inline]
    pub(super) fn socket(&self, peer: u32, destination: SocketAddr) -> Option<&UdpSocket> {
        let place = self.places.get((peer as usize).wrapping_sub(self.first))?;
        match place.socket.get() {
            Some(socket) => socket.as_ref(),
            None => self.count(place, destination),
        }
    }

    #[cold]
    fn count<'a>(&self, place: &'a Place, destination: SocketAddr) -> Option<&'a UdpSocket> {
        if place.sent.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return None;
        }
        let made = place.socket.get_or_init(|| {
            let is_here = destination.ip() == self.own.ip();
            let has_room = is_here && self.made.fetch_add(1, Ordering::Relaxed) < MOST_SOCKETS;
            // Without it, datagrams leave as before.
            has_room.then(|| self.connected(destination).ok()).flatten()
        });
        made.as_ref()
    }

    fn connected(&self, destination: SocketAddr) -> io::Result<UdpSocket> {
        let mut own = self.own;
        own.set_port(0);
        let socket = UdpSocket::bind(own)?;
        // The options of the other socket: datagrams are not cut on their way.
        UdpSocketState::new((&socket).into())?;
        make_lean(&socket);
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, self.send_bytes)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, self.send_bytes));
        // What comes to it is not read.
        sockopt::set_socket_recv_buffer_size(&socket, 0)?;
        socket.connect(destination)?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn bound(last: u8) -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap()
    }

    fn use_often(direct: &Direct, peer: u32, destination: SocketAddr) {
        for _ in 0..OFTEN {
            assert!(direct.socket(peer, destination).is_none());
        }
    }

    #[test]
    fn only_peers_at_the_own_address_that_are_used_often_have_a_socket() {
        let (socket, peer, other) = (bound(1), bound(1), bound(2));
        let addresses = [&peer, &other].map(|socket| socket.local_addr().unwrap());
        let direct = Direct::new(&socket, &addresses).unwrap();
        use_often(&direct, 0, addresses[0]);
        let made = direct.socket(0, addresses[0]).unwrap();
        made.send(b"datagram").unwrap();
        let mut room = [0; 16];
        let (len, from) = peer.recv_from(&mut room).unwrap();
        assert_eq!(
            (&room[..len], from),
            (&b"datagram"[..], made.local_addr().unwrap())
        );
        assert_ne!(from, socket.local_addr().unwrap());
        use_often(&direct, 1, addresses[1]);
        assert!(direct.socket(1, addresses[1]).is_none());
        assert_eq!(
            (direct.places.len(), direct.first),
            (1, 0),
            "places for other hosts"
        );
        assert!(direct.socket(2, addresses[1]).is_none());
    }

    #[test]
    fn a_rank_has_so_many_sockets_and_no_more() {
        let (socket, peer) = (bound(1), bound(1).local_addr().unwrap());
        let peers = MOST_SOCKETS + 2;
        let direct = Direct::new(&socket, &vec![peer; peers as usize]).unwrap();
        for number in 0..peers {
            use_often(&direct, number, peer);
            assert_eq!(direct.socket(number, peer).is_some(), number < MOST_SOCKETS);
        }
    }
}
