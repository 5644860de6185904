//! A socket of the system's.

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

/// Bytes that the system cuts into datagrams in one call, at most: as many as a packet of IP has.
const MOST_CUT_BYTES: usize = 65_507;

/// Datagrams over a socket.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    /// By peer.
    addresses: Box<[SocketAddr]>,
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
        Ok(Self {
            socket,
            state,
            addresses,
            refused: AtomicU64::new(0),
        })
    }

    /// Sends datagrams, waiting for room; those that the system refuses are counted.
    fn transmit(&self, peer: u32, contents: &[u8], segment_size: Option<usize>) {
        let Some(destination) = self.address(peer) else {
            return;
        };
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size,
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut writable = [PollFd::new(&self.socket, PollFlags::OUT)];
                    // The result is not needed: the next `try_send` shows it.
                    let _ = poll(&mut writable, None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    // An interface may not cut them after all.
                    match segment_size {
                        Some(each) => contents
                            .chunks(each)
                            .for_each(|datagram| self.transmit(peer, datagram, None)),
                        None => {
                            self.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    return;
                }
            }
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
    /// Buffers that the next call offers: one, as most calls find nothing and each buffer costs
    /// time; all, while buffers with little in them do not suffice.
    next: usize,
}

impl DatagramQueue for Udp {
    type ReceiveBuffers = ReceiveBuffers;

    fn receive_buffers(&self) -> ReceiveBuffers {
        ReceiveBuffers {
            buffers: vec![0; BUFFER_BYTES * BATCH].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH],
            next: 1,
        }
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.addresses.get(peer as usize).copied()
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        self.transmit(peer, datagram, None);
    }

    fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
        let (each, mut rest) = (each.max(1), bytes);
        while !rest.is_empty() {
            // The system cuts no more than that, and none where the interface cannot (UDP_SEGMENT).
            let count = (MOST_CUT_BYTES / each).min(self.state.max_gso_segments());
            let most = rest.len().min(each * count.max(1));
            let (together, others) = rest.split_at(most);
            self.transmit(peer, together, Some(each).filter(|each| most > *each));
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
            next,
        } = receive_buffers;
        let most = *next;
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
        *next = if full && taken < LONG_BYTES * count {
            BATCH
        } else {
            1
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
        let sockets = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
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
}
