//! The socket where datagrams of a rank arrive, before its address is published.

use crate::incarnation::new_incarnation;
use core::net::SocketAddr;
use core::num::NonZeroU64;
use rustix::net::sockopt;
use std::io;
use std::net::UdpSocket;

/// Bytes of arriving and leaving datagrams that the system is asked to keep; it may give less.
const SOCKET_BYTES: usize = 4 << 20;

/// Where a rank is reached.
///
/// The start of the job brings it to all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    /// Host and port.
    pub address: SocketAddr,
    /// Which interface of this address it is: a number that no earlier one had.
    pub incarnation: NonZeroU64,
}

/// A socket that has its address: the first step to an interface, so that addresses can be
/// published before interfaces are made.
#[derive(Debug)]
pub struct Port {
    socket: UdpSocket,
    whereabouts: Whereabouts,
}

fn at(action: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |cause| io::Error::new(cause.kind(), format!("cannot {action}: {cause}"))
}

impl Port {
    /// Takes an address; port 0 is any that is free.
    ///
    /// # Errors
    /// The address is taken or not of this host, or there are no random numbers.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address).map_err(at("take an address for datagrams"))?;
        let address = socket
            .local_addr()
            .map_err(at("read the address for datagrams"))?;
        // The limits of the system bound both, unless this user may pass them; less only costs
        // datagrams that are sent again.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES));
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SOCKET_BYTES));
        let incarnation = new_incarnation().map_err(at("draw a random number"))?;
        Ok(Self {
            socket,
            whereabouts: Whereabouts {
                address,
                incarnation,
            },
        })
    }

    /// Where it is: the address as it was bound, so an address of the host must have been given if
    /// it is to be published.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        self.whereabouts
    }

    /// Bytes of arriving datagrams that the system keeps, of what it counts for them.
    ///
    /// # Errors
    /// What the system says.
    pub fn receive_bytes(&self) -> io::Result<usize> {
        // It says twice as many, for what it keeps beside them (socket(7)).
        Ok(sockopt::socket_recv_buffer_size(&self.socket)? / 2)
    }

    /// The socket.
    #[must_use]
    pub fn into_socket(self) -> UdpSocket {
        self.socket
    }
}
