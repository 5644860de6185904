//! A rank's line to its starter: a socket on which the job's key has been written before the
//! rank starts, and on which the rank rings afterwards when its host's agent should look at the
//! control memory.
//!
//! The key goes this way because a socket's content is nowhere to be found once it has been read:
//! not in arguments, not in the environment, not in a file. A ring is a byte without a meaning: the
//! event is in the control memory, so that rings may run together, and may be lost while one is
//! waiting to be read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::error::BootError;
use crate::files::moved_up;
use crate::secret::{SECRET_BYTES, Secret};

/// The rank's end.
///
/// Without a descriptor where there is no agent.
#[derive(Debug, Default)]
pub(crate) struct Line(Option<OwnedFd>);

impl Line {
    /// The end that was inherited, once the key has been taken from it; kept only if there is an
    /// agent to ring.
    pub(crate) fn new(socket: OwnedFd, has_agent: bool) -> Self {
        Self(has_agent.then_some(socket))
    }

    pub(crate) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self(match &self.0 {
            Some(socket) => Some(socket.try_clone()?),
            None => None,
        }))
    }

    /// Makes the agent look.
    ///
    /// Async-signal-safe.
    pub(crate) fn ring(&self) {
        if let Some(socket) = &self.0 {
            // A full socket rings already, and an agent that has gone is the guardian's affair.
            let _ = send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

fn failed(error: Errno) -> BootError {
    BootError::system("making the line to a rank", error)
}

/// Makes a line for a rank that has the key already: the agent's end and the rank's.
pub(crate) fn without_key() -> Result<[OwnedFd; 2], BootError> {
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let (ours, theirs) = socketpair(family, SocketType::STREAM, flags, None).map_err(failed)?;
    Ok([ours, theirs])
}

/// Makes a line with the key on it: the launcher's end and the rank's.
pub(crate) fn make(key: &Secret) -> Result<[OwnedFd; 2], BootError> {
    let [ours, theirs] = without_key()?;
    // So few bytes always find room in a new socket.
    send(&ours, key.bytes(), SendFlags::NOSIGNAL).map_err(failed)?;
    Ok([ours, moved_up(theirs)])
}

/// Takes the key from the rank's end; `None` if it is not there (any more).
pub(crate) fn take_key(socket: BorrowedFd<'_>) -> Option<Secret> {
    let mut bytes = [0; SECRET_BYTES];
    let (taken, _) = recv(socket, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
    let secret = Secret::from_bytes(bytes);
    crate::secret::wipe(&mut bytes);
    (taken == SECRET_BYTES).then_some(secret)
}

/// Takes the rings that wait at the launcher's end; false if the rank's has been closed.
pub(crate) fn take_rings(socket: impl AsFd) -> bool {
    let mut bytes = [0; 64];
    loop {
        match recv(socket.as_fd(), &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_taken_once_and_rings_arrive() {
        let key = Secret::new().unwrap();
        let [ours, theirs] = make(&key).unwrap();
        let taken = take_key(theirs.as_fd()).unwrap();
        assert_eq!(taken.bytes(), key.bytes());
        assert!(take_key(theirs.as_fd()).is_none());
        let line = Line::new(theirs, true);
        assert!(take_rings(&ours));
        for _ in 0..100_000 {
            line.ring(); // More than fit: none blocks.
        }
        assert!(take_rings(&ours) && take_rings(&ours));
        drop(line);
        assert!(!take_rings(&ours));
    }
}
