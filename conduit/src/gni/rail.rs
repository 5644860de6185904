//! One way to a peer, in short messages.

use super::shared::{DATA, END, Shared, Vc};
use crate::channel::rail::Rail;
use crate::channel::stream::{Cursor, Pieces};
use argonet_base::JobRank;
use argonet_nic::gni::{Gni, GniError};
use argonet_segment::{SharedBytes, bulk};
use core::ptr::NonNull;
use std::io;
use std::sync::Arc;

/// Places of which a message is gathered, at most.
const MOST_PARTS: usize = 8;

/// The rail to a peer: its virtual connection.
pub struct MailboxRail<N: Gni> {
    shared: Arc<Shared<N>>,
    vc: Arc<Vc<N>>,
}

impl<N: Gni> Clone for MailboxRail<N> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), Arc::clone(&self.vc))
    }
}

impl<N: Gni> core::fmt::Debug for MailboxRail<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("MailboxRail").field(&self.peer()).finish()
    }
}

impl<N: Gni> MailboxRail<N> {
    pub(super) fn new(shared: Arc<Shared<N>>, vc: Arc<Vc<N>>) -> Self {
        Self { shared, vc }
    }

    fn peer(&self) -> JobRank {
        self.vc.peer
    }

    /// The rail has ended: the next read finds that.
    fn ended<T>(&self, why: &GniError) -> io::Result<T> {
        // A peer that ends takes its memory back.
        let is_fault = !matches!(why, GniError::BadHandle { .. });
        self.shared.end(&self.vc, is_fault.then(|| why.to_string()));
        Err(io::Error::new(io::ErrorKind::BrokenPipe, why.to_string()))
    }
}

// SAFETY: bytes are copied during the call alone, never more than the cursor finds in the pieces,
// and what is returned is how many were.
unsafe impl<N: Gni> Rail for MailboxRail<N> {
    // spec G4: short messages, as many as the mailbox has credits for.
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let (nic, vc) = (&self.shared.nic, &*self.vc);
        if vc.is_shut() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let most = self.shared.message_bytes;
        let mut cursor = Cursor::new(pieces);
        let mut written = 0;
        while written < pieces.bytes() {
            let mut parts = [SharedBytes::from_slice(&[]); MOST_PARTS];
            let (mut count, mut bytes) = (0, 0);
            while count < MOST_PARTS
                && bytes < most
                && let Some((at, len)) = cursor.next(most - bytes)
            {
                let at = NonNull::new(at).unwrap_or(NonNull::dangling());
                // SAFETY: the caller promises the pieces during the call.
                parts[count] = unsafe { SharedBytes::from_raw(at, len) };
                (count, bytes) = (count + 1, bytes + len);
            }
            match nic.send(&vc.endpoint, DATA, &parts[..count]) {
                Ok(true) => written += bytes,
                Ok(false) => break,
                Err(error) => return self.ended(&error),
            }
        }
        match written {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let (nic, vc) = (&self.shared.nic, &*self.vc);
        let mut begin = vc.begin.lock();
        let mut cursor = Cursor::new(pieces);
        let mut read = 0;
        while read < pieces.bytes() {
            let arrived = match nic.receive(&vc.endpoint) {
                Ok(Some(arrived)) if arrived.tag == DATA && !arrived.bytes.is_empty() => arrived,
                Ok(Some(arrived)) => {
                    let what = || "something that no rank sends is in its mailbox".to_owned();
                    self.shared.end(vc, (arrived.tag != END).then(what));
                    break;
                }
                Ok(None) => break,
                Err(error) => {
                    self.shared.end(vc, Some(error.to_string()));
                    break;
                }
            };
            let bytes = arrived.bytes;
            while *begin < bytes.len()
                && let Some((to, len)) = cursor.next(bytes.len() - *begin)
            {
                let from = bytes.as_ptr().wrapping_add(*begin);
                // SAFETY: the caller promises the place, and so many bytes of the message are left.
                unsafe { bulk::copy(to, from, len) };
                (*begin, read) = (*begin + len, read + len);
            }
            if *begin < bytes.len() {
                break;
            }
            *begin = 0;
            if let Err(error) = nic.release(&vc.endpoint) {
                self.ended::<()>(&error)?;
            }
        }
        match read {
            0 if vc.is_shut() => Ok(0),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }

    fn shut(&self) {
        self.shared.shut(&self.vc);
    }
}
