//! What the system and the network say to a datagram that may not arrive.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;

/// A question to the system and the network whether a datagram arrives somewhere.
///
/// A socket of its own sends empty ones, from an address of this host. What refuses them is the
/// system, which has no way there or filters it, or a host on the way or at its end (ICMP), where
/// nothing has the port or a firewall rejects it. A process that is stopped has its port. A host
/// that is not on the path can forge such an answer only by guessing the port of this socket.
#[derive(Debug)]
pub struct Inquiry(UdpSocket);

impl Inquiry {
    /// Asks.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        // What this process may not do says nothing of a path.
        let socket = UdpSocket::bind((from, 0)).map_err(io::Error::other)?;
        // The system reports answers to sockets that have one peer.
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let inquiry = Self(socket);
        inquiry.ask()?;
        Ok(inquiry)
    }

    /// Asks again.
    ///
    /// # Errors
    /// What the system says, or the answer that has come.
    pub fn ask(&self) -> io::Result<()> {
        match self.0.send(&[]) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// What has come, once.
    ///
    /// # Errors
    /// The answer.
    pub fn answer(&self) -> io::Result<()> {
        self.0.take_error()?.map_or(Ok(()), Err)
    }

    /// Waits at most that long for it.
    fn wait(&self, limit: Duration) -> io::Result<()> {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let mut wakes = [PollFd::new(&self.0, PollFlags::IN)];
        // Whatever it was, the socket has what came.
        let _ = poll(&mut wakes, Some(&limit));
        self.answer()
    }
}

/// Whether an error says that a datagram does not arrive, not that this process lacks something.
#[must_use]
pub fn refuses(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::PermissionDenied
    )
}

/// Makes an [`Inquiry`] and waits at most that long for a refusal; `None` if nothing objects.
#[must_use]
pub fn answer_to(from: IpAddr, to: SocketAddr, wait: Duration) -> Option<io::Error> {
    let inquiry = Inquiry::new(from, to);
    inquiry.and_then(|inquiry| inquiry.wait(wait)).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
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
        assert!(refuses(&answer));
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it waits for nothing"
        );
        // The system itself does not send there.
        let nowhere = SocketAddr::new(Ipv4Addr::BROADCAST.into(), 7);
        assert!(answer_to(here, nowhere, Duration::ZERO).is_some_and(|error| refuses(&error)));
        // What this process lacks says nothing of a path.
        assert!(!refuses(&io::Error::from_raw_os_error(libc::EMFILE)));
        assert!(!refuses(&io::Error::from_raw_os_error(libc::ENOBUFS)));
    }
}
