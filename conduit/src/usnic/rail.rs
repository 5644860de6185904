//! One way to a peer, in datagrams.

use super::shared::Shared;
use crate::channel::rail::{Rail, RailId};
use crate::channel::stream::{Cursor, Pieces};
use argonet_nic::datagram::DatagramQueue;
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

// SAFETY: bytes are copied during the call alone, never more than the cursor finds in the pieces,
// and what is returned is how many were.
unsafe impl<Q: DatagramQueue + 'static> Rail for DatagramRail<Q> {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut cursor = Cursor::new(pieces);
        let mut locked = self.shared.lock();
        let written = locked.write(self.id, pieces.bytes(), |record: &mut [u8]| {
            // SAFETY: the caller promises the pieces.
            unsafe { cursor.take(record) };
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
