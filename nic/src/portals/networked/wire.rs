//! The socket, and the addresses of the ranks.

use super::faults::Faults;
use super::port::{Port, Whereabouts};
use crate::portals::NicError;
use core::net::SocketAddr;
use parking_lot::Mutex;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a buffer for arriving datagrams: as many as the system puts together (UDP_GRO).
const BUFFER_BYTES: usize = 1 << 16;

pub(super) struct Wire {
    pub(super) socket: UdpSocket,
    state: UdpSocketState,
    addresses: Box<[SocketAddr]>,
    faults: Option<Mutex<Faults>>,
    /// Datagrams that the system did not take. They count as lost, and are sent again.
    refused: AtomicU64,
}

impl Wire {
    pub(super) fn new(
        port: Port,
        peers: &[Whereabouts],
        faults: Option<Faults>,
    ) -> Result<Self, NicError> {
        let socket = port.socket;
        let state = UdpSocketState::new((&socket).into()).map_err(|source| NicError::Os {
            action: "prepare a socket for datagrams",
            source,
        })?;
        Ok(Self {
            socket,
            state,
            addresses: peers.iter().map(|peer| peer.address).collect(),
            faults: faults.map(Mutex::new),
            refused: AtomicU64::new(0),
        })
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.addresses.get(peer as usize).copied()
    }

    /// Sends a datagram, waiting where the system has no room for it.
    pub(super) fn send(&self, peer: u32, bytes: &[u8]) {
        match &self.faults {
            None => self.push(peer, bytes),
            Some(faults) => faults.lock().send(peer, bytes, |p, b| self.push(p, b)),
        }
    }

    fn push(&self, peer: u32, bytes: &[u8]) {
        let Some(destination) = self.address(peer) else {
            return;
        };
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: bytes,
            segment_size: None,
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
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

/// The datagrams that a look into the socket has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    /// Whether anything had arrived.
    pub(super) any: bool,
    /// Whether there may be more.
    pub(super) full: bool,
}

/// Room for a batch of arriving datagrams.
pub(super) struct Inbox {
    buffers: Box<[u8]>,
    meta: [RecvMeta; BATCH_SIZE],
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            buffers: vec![0; BUFFER_BYTES * BATCH_SIZE].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH_SIZE],
        }
    }

    /// Receives a batch, and gives each datagram to `take`.
    pub(super) fn receive(&mut self, wire: &Wire, mut take: impl FnMut(&[u8])) -> Batch {
        let mut chunks = self.buffers.chunks_mut(BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            core::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = wire
            .state
            .recv((&wire.socket).into(), &mut slices, &mut self.meta);
        let count = received.unwrap_or(0);
        for (meta, buffer) in self.meta.iter().zip(&slices).take(count) {
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            if bytes.is_empty() {
                take(bytes);
            }
            bytes.chunks(meta.stride.max(1)).for_each(&mut take);
        }
        Batch {
            any: count > 0,
            full: count == BATCH_SIZE,
        }
    }
}
