//! What the system and the network say to a datagram that may not arrive.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::UdpSocket;

/// Sends an empty datagram from an address of this host, by a socket of its own, and waits at most
/// that long for a refusal: of the system, which has no way there or filters it, or of a host on
/// the way or at its end (ICMP), where nothing has the port or a firewall rejects it.
///
/// `None` if nothing objects. Anyone on the network can send such answers: they explain a fault
/// that was found otherwise, and are none.
#[must_use]
pub fn answer_to(from: IpAddr, to: SocketAddr, wait: Duration) -> Option<io::Error> {
    asked(from, to, wait).err()
}

fn asked(from: IpAddr, to: SocketAddr, wait: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((from, 0))?;
    // The system reports answers to sockets that have one peer.
    socket.connect(to)?;
    socket.send(&[])?;
    let wait = Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: wait.subsec_nanos().into(),
    };
    let mut wakes = [PollFd::new(&socket, PollFlags::IN)];
    // Whatever it was, the socket has what came.
    let _ = poll(&mut wakes, Some(&wait));
    socket.take_error()?.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use std::io::ErrorKind;
    use std::time::Instant;

    #[test]
    fn a_port_that_nothing_has_is_refused_and_another_one_is_not() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let socket = UdpSocket::bind((here, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        assert!(answer_to(here, address, Duration::from_millis(1)).is_none());
        assert_eq!(
            socket.recv(&mut [0; 1]).unwrap(),
            0,
            "an empty one has come"
        );
        drop(socket);
        let begun = Instant::now();
        let answer = answer_to(here, address, Duration::from_secs(60)).unwrap();
        assert_eq!(answer.kind(), ErrorKind::ConnectionRefused);
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it waits for nothing"
        );
        // The system itself has no way there.
        let nowhere = SocketAddr::new(Ipv4Addr::BROADCAST.into(), 7);
        assert!(answer_to(here, nowhere, Duration::ZERO).is_some());
    }
}
