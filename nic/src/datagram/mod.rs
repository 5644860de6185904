//! Interfaces that carry datagrams, which may be lost, repeated, overtaken or changed.
//!
//! * [`udp`] — sockets of the system.
//! * [`Inquiry`] — what the network says to a datagram.
//! * [`fabric`] — a provider of libfabric.
//! * [`faults`] — a layer over any of them that does by rule and seed what a bad wire does, so that
//!   what stands above is tried where the system has no faulty wires.
//!
//! A rank takes a [`Port`] and publishes [where it is](Whereabouts) before it makes anything of it.
//! [`Nic`] is whichever of them a job chooses.
//! [`reliable`](crate::reliable) makes records of datagrams that arrive once and in order.

mod answer;
mod direct;
pub mod fabric;
pub mod faults;
mod hosts;
mod lean;
mod nic;
mod port;
pub mod udp;

pub use answer::{Inquiry, answer_to, refuses};
pub use fabric::{Fabric, FabricPort};
pub use faults::{Faulty, WireFaults};
pub use hosts::HostNames;
pub use nic::{Nic, NicAddress, NicError, NicPort};
pub use port::{Port, Whereabouts};
pub use udp::Udp;

use core::net::SocketAddr;
use rustix::fd::AsFd;

/// A pair of queues of an interface: datagrams that go out, and buffers for those that come.
///
/// usNIC calls it a channel and has two, of which the shorter one is faster. Any thread may call;
/// peers are numbered as they were given when it was made. Its descriptor can be read while
/// something has come, for a thread that has [armed](Self::arm) it.
pub trait DatagramQueue: AsFd + Send + Sync {
    /// Buffers for a batch of what arrives.
    type ReceiveBuffers: Send;

    /// Such buffers, for one thread at a time.
    fn receive_buffers(&self) -> Self::ReceiveBuffers;

    /// Where a peer is reached; `None` for one that is not there, or not on the Internet.
    fn address(&self, peer: u32) -> Option<SocketAddr>;

    /// The same in words, for messages; `None` for one that is not there.
    fn place(&self, peer: u32) -> Option<String> {
        self.address(peer).map(|address| format!("UDP {address}"))
    }

    /// The provider of libfabric that carries datagrams; `None` for sockets of the system, for
    /// which an [`Inquiry`] has a meaning.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Sends a datagram, and waits where the system has no room for it.
    ///
    /// One that the system refuses counts as lost, as the wire may lose any.
    fn send(&self, peer: u32, datagram: &[u8]);

    /// Sends several datagrams to a peer: `bytes` cut into ones of `each` bytes, the last of which
    /// may be shorter.
    ///
    /// As [`send`](Self::send) of each, in one call of the system where it can.
    fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
        let datagrams = bytes.chunks(each.max(1));
        datagrams.for_each(|datagram| self.send(peer, datagram));
    }

    /// Takes a batch of what has arrived, and gives each datagram to `take`, which may decrypt it
    /// in its place.
    ///
    /// Does not wait.
    fn receive(
        &self,
        receive_buffers: &mut Self::ReceiveBuffers,
        take: &mut dyn FnMut(&mut [u8]),
    ) -> Batch;

    /// Before a thread sleeps at the descriptor: whether it wakes for what comes from now on.
    ///
    /// If not, something may have come, and the caller looks again before it sleeps.
    fn arm(&self) -> bool {
        true
    }

    /// How many datagrams the system has refused to send.
    fn refused(&self) -> u64;

    /// What the interface has reported of operations that failed, in its words.
    ///
    /// Their datagrams are lost, as on the wire.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// What a look for arrivals has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Whether anything had arrived.
    pub any: bool,
    /// Whether there may be more.
    pub full: bool,
}
