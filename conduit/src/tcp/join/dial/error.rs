//! The errors of dialing, in words.

use super::super::handshake::Refused;
use argonet_base::JobRank;
use core::fmt;
use core::net::SocketAddr;

/// Why an attempt to connect failed, or why a connection was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The system said so; its error number.
    System(i32),
    /// The peer's kernel did not answer in time.
    TimedOut,
    /// The connection was established and the peer did not answer in time.
    Silent,
    /// The other end closed the connection in the middle of the handshake.
    Closed,
    /// The handshake failed.
    Refused(Refused),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(number) => {
                write!(f, "{}", rustix::io::Errno::from_raw_os_error(*number))
            }
            Self::TimedOut => f.write_str("no answer from that host"),
            Self::Silent => {
                f.write_str("connected, but no answer; the program there does not call argonet")
            }
            Self::Closed => f.write_str(
                "closed before the handshake was done; a program of another job or version may have that port now",
            ),
            Self::Refused(why) => fmt::Display::fmt(why, f),
        }
    }
}

/// Attempts at one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tried {
    /// The address; as an index where the machine says it.
    pub address: SocketAddr,
    /// How often it was tried since the peer was last connected.
    pub tries: u32,
    /// How the last of them failed.
    pub last: Option<Failure>,
}

/// A peer was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// The rank that gives up.
    pub me: JobRank,
    /// The peer.
    pub peer: JobRank,
    /// The name of its host.
    pub host: String,
    /// Which of the connections to it.
    pub connection: u16,
    /// For how long it has been unreachable, ns.
    pub for_ns: u64,
    /// Its addresses.
    pub tried: Vec<Tried>,
}

impl core::error::Error for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.for_ns as f64 / 1e9;
        write!(
            f,
            "rank {} cannot reach rank {} on {}, connection {}, for {seconds:.1} s: ",
            self.me, self.peer, self.host, self.connection
        )?;
        if self.tried.is_empty() {
            f.write_str("no address of it is known")?;
        }
        for (i, tried) in self.tried.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            let times = if tried.tries == 1 { "time" } else { "times" };
            write!(
                f,
                "{separator}{} tried {} {times}",
                tried.address, tried.tries
            )?;
            if let Some(last) = tried.last {
                write!(f, ", last: {last}")?;
            }
        }
        f.write_str(
            "; see whether the program there still runs, and whether a firewall or ARGONET_TCP_INTERFACES keeps the hosts apart",
        )
    }
}
