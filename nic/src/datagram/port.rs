//! The socket where datagrams of a rank arrive, before its address is published.

use crate::incarnation::new_incarnation;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU64;
use core::ops::RangeInclusive;
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
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
        let taken = |cause: io::Error| {
            let text = format!("cannot take the UDP address {address}: {cause}");
            io::Error::new(cause.kind(), text)
        };
        Self::of(UdpSocket::bind(address).map_err(taken)?)
    }

    /// Takes the first free port of a range; 0 to 0 is any that is free.
    ///
    /// # Errors
    /// As [`bind`](Self::bind); all ports are taken.
    pub fn bind_in(address: IpAddr, ports: &RangeInclusive<u16>) -> io::Result<Self> {
        for port in ports.clone() {
            match Self::bind(SocketAddr::new(address, port)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                bound => return bound,
            }
        }
        let (first, last) = (ports.start(), ports.end());
        let text = format!(
            "all UDP ports from {first} to {last} of {address} are in use; widen ARGONET_TCP_PORTS, which needs a port for each rank of a host"
        );
        Err(io::Error::new(ErrorKind::AddrInUse, text))
    }

    fn of(socket: UdpSocket) -> io::Result<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn the_first_free_port_is_taken_and_none_is_an_error_with_a_way_out() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let first = Port::bind_in(here, &(0..=0)).unwrap();
        let taken = first.whereabouts().address;
        let port = taken.port();
        let error = Port::bind_in(here, &(port..=port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let text = error.to_string();
        let wanted = format!("all UDP ports from {port} to {port} of 127.0.0.1 are in use");
        assert!(text.starts_with(&wanted), "{text}");
        assert!(text.contains("ARGONET_TCP_PORTS"), "{text}");
        let error = Port::bind(taken).unwrap_err().to_string();
        assert!(error.contains(&taken.to_string()), "{error}");
        // No address of this host.
        let elsewhere = Ipv4Addr::new(192, 0, 2, 1).into();
        let error = Port::bind_in(elsewhere, &(port..=port)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        drop(first);
        let again = Port::bind_in(here, &(port..=port)).unwrap();
        assert_eq!(again.whereabouts().address, taken);
    }
}
