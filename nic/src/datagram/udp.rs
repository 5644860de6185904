//! A socket of the system's.

use super::direct::Direct;
use super::lean::make_lean;
use super::{Batch, DatagramQueue};
use crate::reliable::datagram_bytes;
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
        make_lean(&socket)?;
        Ok(Self {
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

    /// Takes one datagram, or several of one length that the system has put together, by the
    /// cheapest call.
    ///
    /// Nothing else says where one ends then, so they say it themselves.
    fn receive_one(&self, buffer: &mut [u8], take: &mut dyn FnMut(&mut [u8])) -> Option<usize> {
        let len = self.socket.recv(buffer).ok()?;
        let bytes = buffer.get_mut(..len)?;
        cut(bytes, datagram_bytes(bytes).unwrap_or(len), take);
        Some(len)
    }
}

/// Gives datagrams of `each` bytes to `take`, the last of which may be shorter.
fn cut(bytes: &mut [u8], each: usize, take: &mut dyn FnMut(&mut [u8])) {
    match bytes.is_empty() {
        true => take(bytes),
        false => bytes.chunks_mut(each.max(1)).for_each(take),
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
        if *singles < SINGLES {
            let taken = self.receive_one(&mut buffers[..BUFFER_BYTES], take);
            *singles = match taken {
                Some(taken) if taken < LONG_BYTES => *singles + 1,
                _ => 0,
            };
            let any = taken.is_some();
            return Batch { any, full: any };
        }
        let mut chunks = buffers.chunks_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            core::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = self.state.recv((&self.socket).into(), &mut slices, meta);
        let count = received.unwrap_or(0);
        for (meta, buffer) in meta.iter().zip(&mut slices).take(count) {
            let bytes = buffer.get_mut(..meta.len).unwrap_or_default();
            cut(bytes, meta.stride, take);
        }
        let full = count == BATCH;
        let taken: usize = meta.iter().take(count).map(|meta| meta.len).sum();
        if !full || taken >= LONG_BYTES * count {
            *singles = 0;
        }
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
    use crate::reliable::open_datagram;
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
        let sockets = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let addresses = sockets.each_ref().map(|s| s.local_addr().unwrap());
        let [a, b] = sockets.map(|socket| Udp::new(socket, addresses.into()).unwrap());
        let mut receive_buffers = b.receive_buffers();
        // Lengths of records, and how often they are sent.
        for (len, count) in [(0, 1), (0, 5), (400, 100), (1160, 1), (1160, 90), (1160, 3)] {
            let wanted: Vec<Vec<u8>> = (0..count)
                .map(|number| {
                    // The last one is shorter, where it can be.
                    let is_last = number + 1 == count;
                    open_datagram(&vec![number as u8; if is_last { len / 2 } else { len }])
                })
                .collect();
            a.send_cut(1, &wanted.concat(), wanted[0].len());
            let mut came: Vec<Vec<u8>> = Vec::new();
            while came.len() < wanted.len() {
                let mut readable = [PollFd::new(&b, PollFlags::IN)];
                assert_eq!(poll(&mut readable, None), Ok(1));
                b.receive(&mut receive_buffers, &mut |datagram| {
                    came.push(datagram.to_vec());
                });
            }
            assert!(came == wanted, "{count} datagrams with {len} bytes");
        }
        a.send_cut(1, b"no", 0);
        assert_eq!(a.refused(), 0);
    }
}
