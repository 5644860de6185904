//! A socket as a rail.

use crate::channel::rail::{Rail, Vital};
use crate::channel::stream::Pieces;
use core::mem::MaybeUninit;
use core::net::{IpAddr, SocketAddr};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// Up to so many bytes are copied into one place: the system takes that sooner than several places.
const FEW_BYTES: usize = 512;

/// So many unanswered probes of the system count as something that waits for an acknowledgement:
/// at first, and where they are [far apart](FAR_APART_NS).
///
/// Probes are sent where the peer has no room for more, at longer and longer intervals, and over
/// connections on which nothing passes. One may be lost, and hosts answer no more than two in a
/// second.
const PROBES: [u8; 2] = [3, 2];

/// No probe goes without an answer because the one before has had one so short a time ago.
const FAR_APART_NS: u64 = 1_000_000_000;

/// Whether so many unanswered probes of the system say that the peer owes an acknowledgement.
///
/// `next_ns`: from the last one to the next.
fn probes_say(probes: u8, next_ns: u64) -> bool {
    probes >= PROBES[usize::from(next_ns >= FAR_APART_NS)]
}

/// A connection to another rank, which does not block.
#[derive(Clone, Debug)]
pub struct Socket(Arc<OwnedFd>);

impl Socket {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(Arc::new(socket))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Its own address; `None` if that is none of IP.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let address = rustix::net::getsockname(&*self.0).ok()?;
        let address = SocketAddr::try_from(address).ok()?;
        Some(address.ip().to_canonical())
    }
}

#[inline]
fn result(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

// SAFETY: the system reads and writes during the call alone, and says how much.
unsafe impl Rail for Socket {
    #[inline]
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let (socket, pieces_in) = (self.0.as_raw_fd(), pieces.as_slice());
        if let [one] = pieces_in {
            // SAFETY: the caller promises the piece; no signal is raised.
            return result(unsafe {
                libc::send(socket, one.at.cast(), one.len, libc::MSG_NOSIGNAL)
            });
        }
        let mut few = [const { MaybeUninit::uninit() }; FEW_BYTES];
        // SAFETY: the caller promises all pieces.
        if let Some(len) = unsafe { pieces.gather(&mut few) } {
            // SAFETY: so many bytes were copied there.
            return result(unsafe {
                libc::send(socket, few.as_ptr().cast(), len, libc::MSG_NOSIGNAL)
            });
        }
        // SAFETY: a header of zeros is a valid one: no address, no control data.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = pieces_in.as_ptr().cast_mut().cast();
        message.msg_iovlen = pieces_in.len();
        // SAFETY: the caller promises all pieces, which are laid out as the system wants them.
        result(unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) })
    }

    #[inline]
    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let socket = self.0.as_raw_fd();
        if let [one] = pieces.as_slice() {
            // SAFETY: the caller promises the piece.
            return result(unsafe { libc::recv(socket, one.at.cast(), one.len, 0) });
        }
        let (first, count) = (pieces.as_slice().as_ptr(), pieces.as_slice().len());
        // SAFETY: the caller promises all pieces, which are laid out as the system wants them.
        result(unsafe { libc::readv(socket, first.cast(), count as libc::c_int) })
    }

    fn shut(&self) {
        // A connection that has ended already is no error.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }

    fn queued(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the call writes one number there.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        u64::try_from(bytes).unwrap_or(0)
    }

    fn vital(&self) -> Option<Vital> {
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the system writes at most `len` bytes there.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if result != 0 {
            return None;
        }
        // SAFETY: all of it was zeros, of which the system has overwritten some; all bits are valid
        // numbers.
        let info = unsafe { info.assume_init() };
        let silent_ms = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
        let rto_ns = u64::from(info.tcpi_rto) * 1000;
        let is_unacknowledged = info.tcpi_unacked > 0;
        Some(Vital {
            owed: is_unacknowledged
                || probes_say(info.tcpi_probes, rto_ns << info.tcpi_backoff.min(20)),
            silent_ns: u64::from(silent_ms) * 1_000_000,
            // The system doubles it each time that it sends bytes again, but not with probes.
            rto_ns: match is_unacknowledged {
                true => rto_ns >> info.tcpi_backoff.min(63),
                false => rto_ns,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn probes_far_apart_say_sooner_that_a_peer_is_silent() {
        let said = [0, 1, 2, 3].map(|probes| {
            [FAR_APART_NS - 1, FAR_APART_NS].map(|next_ns| probes_say(probes, next_ns))
        });
        let wanted = [[false, false], [false, false], [false, true], [true, true]];
        assert_eq!(said, wanted);
    }

    /// The system's probes of a full window are answered late, or not at all: no sign of silence.
    #[test]
    fn a_peer_that_takes_nothing_is_not_silent() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _there = listener.accept().unwrap();
        here.set_nonblocking(true).unwrap();
        let socket = Socket::new(here.into());
        let mut bytes = vec![7; 1 << 20];
        let mut pieces = Pieces::new();
        pieces.add(bytes.as_mut_ptr(), bytes.len());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1500) {
            // SAFETY: the bytes outlive the call.
            let _ = unsafe { socket.write(&pieces) };
            let vital = socket.vital().unwrap();
            let limit_ns = 3 * vital.rto_ns;
            assert!(limit_ns >= 200_000_000, "{vital:?}");
            assert!(!vital.owed || vital.silent_ns < limit_ns, "{vital:?}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_connection_has_an_address_of_this_host() {
        let listener = TcpListener::bind(("::", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let _here = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (there, _) = listener.accept().unwrap();
        let address = Socket::new(there.into()).address();
        assert_eq!(address, Some([127, 0, 0, 1].into()));
    }
}
