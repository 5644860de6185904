//! What bytes are written to and read from: a socket, or memory for what a rank sends to itself.

use super::silence::Vital;
use crate::channel::stream::Pieces;
use core::mem::MaybeUninit;
use parking_lot::Mutex;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::io;

/// Bytes that a rank has sent to itself and not read, at most.
const OWN_BYTES: usize = 64 << 10;

/// Up to so many bytes are copied into one place: the system takes that sooner than several places.
const FEW_BYTES: usize = 512;

/// One connection. Both directions may be used at once, each by one thread at a time.
#[derive(Debug)]
pub(super) enum Wire {
    /// To another rank; does not block.
    Socket(OwnedFd),
    /// To this rank.
    Own(Mutex<VecDeque<u8>>),
}

fn result(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

impl Wire {
    pub(super) fn own() -> Self {
        Wire::Own(Mutex::default())
    }

    /// The socket, if it is one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Wire::Socket(socket) => Some(rustix::fd::AsFd::as_fd(socket)),
            Wire::Own(_) => None,
        }
    }

    /// Bytes that were written and that the peer's host has not acknowledged.
    pub(super) fn queued(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        if let Some(socket) = self.descriptor() {
            // SAFETY: the call writes one number there.
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        }
        u64::try_from(bytes).unwrap_or(0)
    }

    /// What the system knows of the peer's host; `None` where that is no matter of hosts.
    pub(super) fn vital(&self) -> Option<Vital> {
        let socket = self.descriptor()?;
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the system writes at most `len` bytes there.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
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
        Some(Vital {
            // Probes are sent where the peer has no room for more.
            owed: info.tcpi_unacked > 0 || info.tcpi_probes > 0,
            silent_ns: u64::from(silent_ms) * 1_000_000,
        })
    }

    /// Whether it is memory that holds something.
    pub(super) fn holds_own(&self) -> bool {
        match self {
            Wire::Socket(_) => false,
            Wire::Own(bytes) => !bytes.lock().is_empty(),
        }
    }

    /// Writes what it takes at once; how much.
    ///
    /// # Safety
    /// All pieces can be read.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`], or what has become of the connection.
    pub(super) unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        match self {
            Wire::Socket(socket) => {
                let (socket, pieces_in) = (socket.as_raw_fd(), pieces.as_slice());
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
                // SAFETY: the caller promises all pieces, which are laid out as the system wants
                // them.
                result(unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) })
            }
            Wire::Own(bytes) => {
                let mut bytes = bytes.lock();
                let mut room = OWN_BYTES - bytes.len();
                if room == 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let mut written = 0;
                for piece in pieces.as_slice() {
                    let len = piece.len.min(room);
                    let mut copy = vec![0; len];
                    // SAFETY: the caller promises the piece.
                    unsafe { argonet_segment::bulk::copy(copy.as_mut_ptr(), piece.at, len) };
                    bytes.extend(copy);
                    written += len;
                    room -= len;
                }
                Ok(written)
            }
        }
    }

    /// Reads what is there; how much. 0 is the end of the connection.
    ///
    /// # Safety
    /// All pieces can be written.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`], or what has become of the connection.
    pub(super) unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        match self {
            Wire::Socket(socket) => {
                let socket = socket.as_raw_fd();
                if let [one] = pieces.as_slice() {
                    // SAFETY: the caller promises the piece.
                    return result(unsafe { libc::recv(socket, one.at.cast(), one.len, 0) });
                }
                let (first, count) = (pieces.as_slice().as_ptr(), pieces.as_slice().len());
                // SAFETY: the caller promises all pieces, which are laid out as the system wants
                // them.
                result(unsafe { libc::readv(socket, first.cast(), count as libc::c_int) })
            }
            Wire::Own(bytes) => {
                let mut bytes = bytes.lock();
                if bytes.is_empty() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let mut read = 0;
                for piece in pieces.as_slice() {
                    let len = piece.len.min(bytes.len());
                    let copy: Vec<u8> = bytes.drain(..len).collect();
                    // SAFETY: the caller promises the piece.
                    unsafe { argonet_segment::bulk::copy(piece.at, copy.as_ptr(), len) };
                    read += len;
                }
                Ok(read)
            }
        }
    }
}
