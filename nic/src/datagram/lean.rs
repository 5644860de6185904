//! Options of sockets that cost time for each datagram.

use argonet_base::socket_option;
use libc::c_int;
use std::io;
use std::net::UdpSocket;

/// What `quinn-udp` has the system say of each datagram that arrives, and is not used: when it
/// came, the address that it was sent to, and its class of traffic.
const UNUSED: [(c_int, c_int); 5] = [
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
    (libc::IPPROTO_IP, libc::IP_PKTINFO),
    (libc::IPPROTO_IP, libc::IP_RECVTOS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
];

/// Has the system say nothing of datagrams that arrive but what they are.
///
/// An option that cannot be turned off, or that a socket of this kind does not have, costs time
/// alone.
pub(super) fn make_lean(socket: &UdpSocket) {
    for (level, option) in UNUSED {
        let _ = socket_option::set(socket, level, option, 0);
    }
}

/// Has each datagram arrive by itself.
///
/// # Errors
/// What the system says, unless it puts none together.
pub(super) fn take_apart(socket: &UdpSocket) -> io::Result<()> {
    match socket_option::set(socket, libc::SOL_UDP, libc::UDP_GRO, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use quinn_udp::UdpSocketState;
    use rustix::fd::AsRawFd;

    fn is_on(socket: &UdpSocket, level: c_int, option: c_int) -> bool {
        let (mut value, mut len): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
        // SAFETY: both places outlive the call, and the length is that of the value.
        let code = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                level,
                option,
                (&raw mut value).cast(),
                &raw mut len,
            )
        };
        assert_eq!(code, 0);
        value != 0
    }

    #[test]
    fn nothing_is_said_of_datagrams_that_is_not_used() {
        let four = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let sockets = four
            .into_iter()
            .chain(UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)));
        for socket in sockets {
            UdpSocketState::new((&socket).into()).unwrap();
            let is_six = socket.local_addr().unwrap().is_ipv6();
            let options = || {
                UNUSED
                    .iter()
                    .filter(|(level, _)| is_six || *level != libc::IPPROTO_IPV6)
            };
            assert!(options().any(|&(level, option)| is_on(&socket, level, option)));
            make_lean(&socket);
            assert!(!options().any(|&(level, option)| is_on(&socket, level, option)));
        }
    }
}
