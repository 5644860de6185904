//! A socket of the system's.

use super::direct::Direct;
use super::lean::{make_lean, take_apart};
use super::{Batch, DatagramQueue};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;

/// Bytes of a buffer for arriving datagrams: as many as the system puts together (UDP_GRO).
const BUFFER_BYTES: usize = 1 << 16;

/// Datagrams that are taken by one call of the system.
///
/// More cost less for each, and more memory, which has left the caches when it is read.
const BATCH: usize = 8;

static_assertions::const_assert!(BATCH <= quinn_udp::BATCH_SIZE);

/// Where buffers have so many bytes on average, one is taken by a call: several would leave the
/// nearest cache before they are read.
const LONG_BYTES: usize = 8 << 10;

/// Calls that find one datagram each before the next call takes a batch.
const SINGLES: u32 = 2;

/// Bytes that the system cuts into datagrams in one call, at most: as many as a packet of IP has.
const MOST_CUT_BYTES: usize = 65_507;

/// Datagrams over a socket.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    /// By peer.
    addresses: Box<[SocketAddr]>,
    direct: Direct,
    /// All peers are at the rank's own address: none of them sends datagrams that the system puts
    /// together, and each arrives by itself.
    is_one_host: bool,
    /// Datagrams that the system did not take.
    ///
    /// A statistic.
    refused: AtomicU64,
}

impl Udp {
    /// Takes a bound socket, and where each peer is reached.
    ///
    /// # Errors
    /// The system does not let the socket be set up.
    pub fn new(socket: UdpSocket, addresses: Box<[SocketAddr]>) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        make_lean(&socket);
        let own = socket.local_addr()?.ip();
        let is_one_host = addresses.iter().all(|address| address.ip() == own);
        if is_one_host {
            take_apart(&socket)?;
        }
        Ok(Self {
            is_one_host,
            direct: Direct::new(&socket, &addresses)?,
            socket,
            state,
            addresses,
            refused: AtomicU64::new(0),
        })
    }

    /// Sends a datagram, waiting for room; one that the system refuses is counted.
    fn transmit(&self, peer: u32, datagram: &[u8]) {
        let Some(destination) = self.address(peer) else {
            return;
        };
        if let Some(socket) = self.direct.socket(peer, destination)
            && when_writable(socket, || socket.send(datagram)).is_ok()
        {
            return;
        }
        // Also where a socket that is connected reports what became of an earlier datagram.
        if when_writable(&self.socket, || self.socket.send_to(datagram, destination)).is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends several datagrams of `each` bytes, the last of which may be shorter, by one call.
    fn transmit_cut(&self, peer: u32, contents: &[u8], each: usize) {
        let Some(destination) = self.address(peer) else {
            return;
        };
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: Some(each),
            src_ip: None,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        if when_writable(&self.socket, send).is_err() {
            // An interface may not cut them after all.
            let datagrams = contents.chunks(each);
            datagrams.for_each(|datagram| self.transmit(peer, datagram));
        }
    }
}

/// Calls `send` until the socket has had room.
fn when_writable<T>(socket: &UdpSocket, send: impl Fn() -> io::Result<T>) -> io::Result<T> {
    loop {
        match send() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut writable = [PollFd::new(socket, PollFlags::OUT)];
                // The result is not needed: the next `send` shows it.
                let _ = poll(&mut writable, None);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for a batch of datagrams that arrive at a socket.
pub struct ReceiveBuffers {
    buffers: Box<[u8]>,
    meta: [RecvMeta; BATCH],
    /// Calls for one datagram that have found one, since a call found less than it had room for:
    /// most find nothing, and a call for a batch costs more.
    singles: u32,
}

impl DatagramQueue for Udp {
    type ReceiveBuffers = ReceiveBuffers;

    fn receive_buffers(&self) -> ReceiveBuffers {
        ReceiveBuffers {
            buffers: vec![0; BUFFER_BYTES * BATCH].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH],
            singles: 0,
        }
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.addresses.get(peer as usize).copied()
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        self.transmit(peer, datagram);
    }

    fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
        let (each, mut rest) = (each.max(1), bytes);
        while !rest.is_empty() {
            // The system cuts no more than that, and none where the interface cannot (UDP_SEGMENT).
            let count = (MOST_CUT_BYTES / each).min(self.state.max_gso_segments());
            let most = rest.len().min(each * count.max(1));
            let (together, others) = rest.split_at(most);
            match most > each {
                true => self.transmit_cut(peer, together, each),
                false => self.transmit(peer, together),
            }
            rest = others;
        }
    }

    fn receive(
        &self,
        receive_buffers: &mut ReceiveBuffers,
        take: &mut dyn FnMut(&mut [u8]),
    ) -> Batch {
        let ReceiveBuffers {
            buffers,
            meta,
            singles,
        } = receive_buffers;
        let is_single = *singles < SINGLES;
        if is_single && self.is_one_host {
            // The cheapest call.
            let Ok(len) = self.socket.recv(&mut buffers[..BUFFER_BYTES]) else {
                *singles = 0;
                return Batch {
                    any: false,
                    full: false,
                };
            };
            take(&mut buffers[..len.min(BUFFER_BYTES)]);
            *singles = if len < LONG_BYTES { *singles + 1 } else { 0 };
            return Batch {
                any: true,
                full: true,
            };
        }
        let most = if is_single { 1 } else { BATCH };
        let mut chunks = buffers.chunks_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BATCH] = core::array::from_fn(|place| {
            let chunk = if place < most { chunks.next() } else { None };
            IoSliceMut::new(chunk.unwrap_or_default())
        });
        let received = self.state.recv(
            (&self.socket).into(),
            &mut slices[..most],
            &mut meta[..most],
        );
        let count = received.unwrap_or(0);
        for (meta, buffer) in meta.iter().zip(&mut slices).take(count) {
            let bytes = buffer.get_mut(..meta.len).unwrap_or_default();
            if bytes.is_empty() {
                take(bytes);
            }
            bytes.chunks_mut(meta.stride.max(1)).for_each(&mut *take);
        }
        let full = count == most;
        let taken: usize = meta.iter().take(count).map(|meta| meta.len).sum();
        *singles = if full && taken < LONG_BYTES * count {
            *singles + 1
        } else {
            0
        };
        Batch {
            any: count > 0,
            full,
        }
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn datagrams_of_every_length_arrive_whole() {
        let sockets = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let addresses = sockets.each_ref().map(|s| s.local_addr().unwrap());
        let [a, b] = sockets.map(|socket| Udp::new(socket, addresses.into()).unwrap());
        let mut receive_buffers = b.receive_buffers();
        for len in [0, 1, 1472, 1473, 9000, 65_507] {
            let sent: Vec<u8> = (0..len).map(|i| i as u8).collect();
            a.send(1, &sent);
            let mut came = Vec::new();
            let mut readable = [PollFd::new(&b, PollFlags::IN)];
            assert_eq!(poll(&mut readable, None), Ok(1));
            let batch = b.receive(&mut receive_buffers, &mut |datagram| {
                came.push(datagram.to_vec())
            });
            assert!(batch.any && came == [sent], "{len} bytes");
        }
        // A peer that is not there, and one that UDP has no datagrams for.
        a.send(2, b"x");
        assert_eq!((a.address(2), a.refused()), (None, 0));
        a.send(1, &[0; 65_508]);
        assert_eq!(a.refused(), 1);
        let nothing = b.receive(&mut receive_buffers, &mut |_| panic!("nothing was sent"));
        assert!(!nothing.any && !nothing.full);
    }

    #[test]
    fn datagrams_that_are_sent_together_arrive_apart() {
        sent_together([1, 1]);
        // As between hosts, where the system puts them together for the target.
        sent_together([1, 2]);
    }

    fn sent_together(hosts: [u8; 2]) {
        let host = |last| Ipv4Addr::new(127, 0, 0, last);
        let sockets = hosts.map(|last| UdpSocket::bind((host(last), 0)).unwrap());
        let addresses = sockets.each_ref().map(|s| s.local_addr().unwrap());
        let [a, b] = sockets.map(|socket| Udp::new(socket, addresses.into()).unwrap());
        let mut receive_buffers = b.receive_buffers();
        for (len, each) in [
            (1, 7),
            (7, 7),
            (15, 7),
            (30_000, 1232),
            (100_000, 1232),
            (5, 0),
        ] {
            let sent: Vec<u8> = (0..len).map(|i| (i ^ i >> 8) as u8).collect();
            a.send_cut(1, &sent, each);
            let wanted: Vec<&[u8]> = sent.chunks(each.max(1)).collect();
            let mut came: Vec<Vec<u8>> = Vec::new();
            while came.len() < wanted.len() {
                let mut readable = [PollFd::new(&b, PollFlags::IN)];
                assert_eq!(poll(&mut readable, None), Ok(1));
                b.receive(&mut receive_buffers, &mut |datagram| {
                    came.push(datagram.to_vec());
                });
            }
            assert!(came == wanted, "{len} bytes in datagrams of {each}");
        }
        assert_eq!(a.refused(), 0);
    }

    #[test]
    fn a_peer_that_was_away_is_reached_again() {
        let sockets = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let addresses = sockets.each_ref().map(|s| s.local_addr().unwrap());
        let [a, b] = sockets;
        let a = Udp::new(a, addresses.into()).unwrap();
        drop(b);
        // The system refuses some of those that go over the socket for the peer.
        for _ in 0..200 {
            a.send(1, b"lost");
        }
        assert_eq!(a.refused(), 0);
        let b = UdpSocket::bind(addresses[1]).unwrap();
        a.send(1, b"found");
        let mut room = [0; 16];
        let len = b.recv(&mut room).unwrap();
        assert_eq!(&room[..len], b"found");
    }
}
