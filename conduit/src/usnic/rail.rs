//! One way to a peer, in datagrams.

use super::shared::Shared;
use crate::channel::rail::{Rail, RailId};
use crate::channel::stream::{Piece, Pieces};
use argonet_nic::datagram::DatagramQueue;
use argonet_segment::bulk;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::Arc;

/// A rail to a peer: the one of the stream, or the one beside it.
pub struct DatagramRail<Q: DatagramQueue> {
    shared: Arc<Shared<Q>>,
    id: RailId,
    /// A read finds the end, whether the channel uses the rail or not.
    is_shut: Arc<AtomicBool>,
}

impl<Q: DatagramQueue> DatagramRail<Q> {
    pub(super) fn new(shared: Arc<Shared<Q>>, id: RailId) -> Self {
        Self {
            shared,
            id,
            is_shut: Arc::default(),
        }
    }

    /// Reads what has come before, or the end; `None` if there is nothing.
    fn read_unread(
        &self,
        most: usize,
        fill: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Option<io::Result<usize>> {
        // What a look without the lock misses is found the next time.
        if !self.shared.is_pending() && !self.is_shut.load(Ordering::Acquire) {
            return None;
        }
        let mut locked = self.shared.lock();
        let read = locked.read(self.id, most, fill);
        locked.end();
        read
    }
}

impl<Q: DatagramQueue> Clone for DatagramRail<Q> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            id: self.id,
            is_shut: Arc::clone(&self.is_shut),
        }
    }
}

impl<Q: DatagramQueue> core::fmt::Debug for DatagramRail<Q> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("DatagramRail").field(&self.id).finish()
    }
}

/// Places of a call, from where the last copy ended on.
struct Cursor<'a> {
    pieces: &'a [Piece],
    /// How much of the first was used.
    used: usize,
}

impl Cursor<'_> {
    /// Copies to the next places as many of the bytes as they hold; how many.
    ///
    /// # Safety
    /// The places can be written.
    unsafe fn fill(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty()
            && let Some((to, len)) = self.next(rest.len())
        {
            // SAFETY: the caller promises the places, and `to` is within one.
            unsafe { bulk::copy(to, rest.as_ptr(), len) };
            rest = &rest[len..];
        }
        bytes.len() - rest.len()
    }
}

impl<'a> Cursor<'a> {
    fn new(pieces: &'a Pieces) -> Self {
        Self {
            pieces: pieces.as_slice(),
            used: 0,
        }
    }

    /// The next place, of at most `len` bytes; `None` behind the last.
    fn next(&mut self, len: usize) -> Option<(*mut u8, usize)> {
        let (piece, rest) = self.pieces.split_first()?;
        let part = len.min(piece.len - self.used);
        let at = piece.at.wrapping_add(self.used);
        self.used += part;
        if self.used == piece.len {
            (self.pieces, self.used) = (rest, 0);
        }
        Some((at, part))
    }
}

// SAFETY: bytes are copied during the call alone, never more than the cursor finds in the pieces,
// and what is returned is how many were.
unsafe impl<Q: DatagramQueue + 'static> Rail for DatagramRail<Q> {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut cursor = Cursor::new(pieces);
        let mut locked = self.shared.lock();
        let written = locked.write(self.id, pieces.bytes(), |mut record: &mut [u8]| {
            while !record.is_empty()
                && let Some((from, len)) = cursor.next(record.len())
            {
                let (to, rest) = core::mem::take(&mut record).split_at_mut(len);
                // SAFETY: the caller promises the pieces, and `from` is within one.
                unsafe { bulk::copy(to.as_mut_ptr(), from, len) };
                record = rest;
            }
        });
        locked.end();
        written
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut cursor = Cursor::new(pieces);
        // SAFETY: the caller promises the pieces.
        let mut fill = |bytes: &[u8]| unsafe { cursor.fill(bytes) };
        if let Some(result) = self.read_unread(pieces.bytes(), &mut fill) {
            return result;
        }
        match self.shared.attend_for(self.id, pieces.bytes(), &mut fill) {
            (_, copied @ 1..) => Ok(copied),
            (true, 0) => {
                let read = self.read_unread(pieces.bytes(), &mut fill);
                read.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
            }
            (false, 0) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn shut(&self) {
        self.is_shut.store(true, Ordering::Release);
        let mut locked = self.shared.lock();
        locked.shut(self.id.peer);
        locked.end();
    }
}
