//! A handshake on a socket.

use super::handshake::{HANDSHAKE_BYTES, Handshake, Progress, Refused};
use argonet_base::random;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::time::Duration;

/// When an idle connection is asked whether it still stands, and how often until it counts as
/// broken.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMES: u32 = 4;

/// A socket whose other end has not proved who it is, or does not know who this is.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) socket: OwnedFd,
    pub(super) handshake: Handshake,
}

/// Why it came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    Closed,
    System(Errno),
    Refused(Refused),
}

impl Exchange {
    /// Sends and takes the bytes that there are.
    ///
    /// Never reads beyond the handshake.
    pub(super) fn advance(&mut self) -> Result<Progress, Broken> {
        let mut buffer = [0; HANDSHAKE_BYTES];
        loop {
            self.flush()?;
            let wanted = self.handshake.wanted();
            if wanted == 0 {
                break;
            }
            match recv(&self.socket, &mut buffer[..wanted], RecvFlags::empty()) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Err(Broken::Closed),
                Ok((count, _)) => {
                    let taken = self.handshake.take(&buffer[..count]);
                    taken.map_err(Broken::Refused)?;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Broken::System(error)),
            }
        }
        let (_, progress) = self.handshake.take(&[]).map_err(Broken::Refused)?;
        Ok(progress)
    }

    /// Sends all that there is to send.
    ///
    /// A message is shorter than the smallest send buffer, which has at most one other in it, so
    /// that a part that is left means trouble: then the connection is given up.
    pub(super) fn flush(&mut self) -> Result<(), Broken> {
        while !self.handshake.to_send().is_empty() {
            match send(&self.socket, self.handshake.to_send(), SendFlags::NOSIGNAL) {
                Ok(count) => self.handshake.sent(count),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Broken::Closed),
                Err(error) => return Err(Broken::System(error)),
            }
        }
        Ok(())
    }
}

/// Sets the options of a connection of the conduit: no delay of small messages, and keepalive
/// probes of the other host.
pub(super) fn prepare(socket: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_TIMES)
}

/// A number that no process can predict and that never comes again.
pub(super) fn nonce() -> rustix::io::Result<[u8; 32]> {
    let mut nonce = [0; 32];
    random::fill(&mut nonce)?;
    Ok(nonce)
}
