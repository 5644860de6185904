//! The interface for datagrams that a job has chosen.

use super::fabric::Taken;
use super::{Batch, DatagramQueue, Fabric, FabricPort, Port, Udp, Whereabouts, udp};
use crate::fabric::{FabricAddress, FabricError};
use argonet_base::JobRank;
use core::fmt;
use core::net::SocketAddr;
use core::num::NonZeroU64;
use core::str::FromStr;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use thiserror::Error;

/// Where a rank is reached, as ranks publish it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NicAddress {
    /// A socket of the system.
    Udp(SocketAddr),
    /// An endpoint of libfabric.
    Fabric(FabricAddress),
}

impl NicAddress {
    /// In words, for messages.
    fn in_words(&self) -> String {
        match self {
            Self::Udp(address) => format!("a socket of the system at {address}"),
            Self::Fabric(address) => address.in_words(),
        }
    }
}

impl fmt::Display for NicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Fabric(address) => address.fmt(f),
        }
    }
}

impl FromStr for NicAddress {
    type Err = core::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(address) => Ok(Self::Fabric(address)),
            Err(_) => text.parse().map(Self::Udp),
        }
    }
}

/// An interface that cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NicError {
    /// The system refused.
    #[error(transparent)]
    Os(#[from] io::Error),
    /// libfabric refused.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// Two ranks whose interfaces do not reach each other.
    #[error(
        "rank {rank} sends datagrams through {own}, and rank {peer} through {theirs}, which do not reach each other: give all ranks the same ARGONET_USNIC_NIC and ARGONET_USNIC_PROVIDER"
    )]
    Mixed {
        /// The rank that would send.
        rank: JobRank,
        /// Its interface.
        own: String,
        /// The other one.
        peer: JobRank,
        /// The other one's interface.
        theirs: String,
    },
}

/// An interface that has its address, and does not know those of peers.
pub enum NicPort {
    /// Over a socket of the system.
    Udp(Port),
    /// Over an endpoint of libfabric.
    Fabric(Box<FabricPort>),
}

impl NicPort {
    /// Where it is reached.
    #[must_use]
    pub fn address(&self) -> NicAddress {
        match self {
            Self::Udp(port) => NicAddress::Udp(port.whereabouts().address),
            Self::Fabric(port) => NicAddress::Fabric(port.address().clone()),
        }
    }

    /// Which interface of this address it is: a number that no earlier one had.
    #[must_use]
    pub fn incarnation(&self) -> NonZeroU64 {
        match self {
            Self::Udp(port) => {
                let Whereabouts { incarnation, .. } = port.whereabouts();
                incarnation
            }
            Self::Fabric(port) => port.incarnation(),
        }
    }

    /// Bytes of arriving datagrams for which there is room while the rank does not poll.
    ///
    /// # Errors
    /// What the system says.
    pub fn receive_bytes(&self) -> io::Result<usize> {
        match self {
            Self::Udp(port) => port.receive_bytes(),
            Self::Fabric(port) => Ok(port.receive_bytes()),
        }
    }

    /// The interface of this rank, given where each rank is reached.
    ///
    /// # Errors
    /// A rank that it does not reach, or what the system or the library says.
    pub fn open(self, rank: JobRank, peers: &[NicAddress]) -> Result<Nic, NicError> {
        let own = self.address();
        for (peer, address) in (0..).map(JobRank).zip(peers) {
            let is_alike = match (&own, address) {
                (NicAddress::Udp(_), NicAddress::Udp(_)) => true,
                (NicAddress::Fabric(own), NicAddress::Fabric(theirs)) => own.is_alike(theirs),
                _ => false,
            };
            if !is_alike {
                return Err(NicError::Mixed {
                    rank,
                    own: own.in_words(),
                    peer,
                    theirs: address.in_words(),
                });
            }
        }
        Ok(match self {
            Self::Udp(port) => {
                let sockets = peers.iter().filter_map(|peer| match peer {
                    NicAddress::Udp(address) => Some(*address),
                    NicAddress::Fabric(_) => None,
                });
                Nic::Udp(Udp::new(port.into_socket(), sockets.collect())?)
            }
            Self::Fabric(port) => {
                let addresses = peers.iter().filter_map(|peer| match peer {
                    NicAddress::Udp(_) => None,
                    NicAddress::Fabric(address) => Some(address.clone()),
                });
                let addresses: Vec<FabricAddress> = addresses.collect();
                Nic::Fabric(Box::new(Fabric::new(*port, &addresses)?))
            }
        })
    }
}

/// The interface that a job has chosen.
///
/// One type for all, so that programs have what stands above it once.
pub enum Nic {
    /// Sockets of the system.
    Udp(Udp),
    /// A provider of libfabric.
    Fabric(Box<Fabric>),
}

/// Buffers of either.
pub enum NicBuffers {
    /// Of a socket.
    Udp(Box<udp::ReceiveBuffers>),
    /// Of an endpoint of libfabric.
    Fabric(Taken),
}

impl AsFd for Nic {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(queue) => queue.as_fd(),
            Self::Fabric(queue) => queue.as_fd(),
        }
    }
}

impl DatagramQueue for Nic {
    type ReceiveBuffers = NicBuffers;

    fn receive_buffers(&self) -> NicBuffers {
        match self {
            Self::Udp(queue) => NicBuffers::Udp(Box::new(queue.receive_buffers())),
            Self::Fabric(queue) => NicBuffers::Fabric(queue.receive_buffers()),
        }
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        match self {
            Self::Udp(queue) => queue.address(peer),
            Self::Fabric(queue) => queue.address(peer),
        }
    }

    fn place(&self, peer: u32) -> Option<String> {
        match self {
            Self::Udp(queue) => queue.place(peer),
            Self::Fabric(queue) => queue.place(peer),
        }
    }

    fn provider(&self) -> Option<&str> {
        match self {
            Self::Udp(queue) => queue.provider(),
            Self::Fabric(queue) => queue.provider(),
        }
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        match self {
            Self::Udp(queue) => queue.send(peer, datagram),
            Self::Fabric(queue) => queue.send(peer, datagram),
        }
    }

    fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
        match self {
            Self::Udp(queue) => queue.send_cut(peer, bytes, each),
            Self::Fabric(queue) => queue.send_cut(peer, bytes, each),
        }
    }

    fn receive(&self, buffers: &mut NicBuffers, take: &mut dyn FnMut(&mut [u8])) -> Batch {
        match (self, buffers) {
            (Self::Udp(queue), NicBuffers::Udp(buffers)) => queue.receive(buffers, take),
            (Self::Fabric(queue), NicBuffers::Fabric(taken)) => queue.receive(taken, take),
            // Buffers of another interface.
            _ => Batch {
                any: false,
                full: false,
            },
        }
    }

    fn arm(&self) -> bool {
        match self {
            Self::Udp(queue) => queue.arm(),
            Self::Fabric(queue) => queue.arm(),
        }
    }

    fn refused(&self) -> u64 {
        match self {
            Self::Udp(queue) => queue.refused(),
            Self::Fabric(queue) => queue.refused(),
        }
    }

    fn trouble(&self) -> Option<String> {
        match self {
            Self::Udp(queue) => queue.trouble(),
            Self::Fabric(queue) => queue.trouble(),
        }
    }
}
