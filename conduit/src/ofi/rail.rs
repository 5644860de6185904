//! One way to a peer, in messages.

use super::shared::Shared;
use crate::channel::rail::Rail;
use crate::channel::stream::{Cursor, Pieces};
use argonet_base::JobRank;
use argonet_nic::rdm::MessageQueue;
use std::io;
use std::sync::Arc;

/// The rail to a peer.
pub struct MessageRail<Q: MessageQueue> {
    shared: Arc<Shared<Q>>,
    peer: JobRank,
}

impl<Q: MessageQueue> Clone for MessageRail<Q> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.peer)
    }
}

impl<Q: MessageQueue> MessageRail<Q> {
    pub(super) fn new(shared: Arc<Shared<Q>>, peer: JobRank) -> Self {
        Self { shared, peer }
    }
}

impl<Q: MessageQueue> core::fmt::Debug for MessageRail<Q> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("MessageRail").field(&self.peer).finish()
    }
}

// SAFETY: bytes are copied during the call alone, never more than the cursor finds in the pieces,
// and what is returned is how many were.
unsafe impl<Q: MessageQueue> Rail for MessageRail<Q> {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut cursor = Cursor::new(pieces);
        // SAFETY: the caller promises the pieces.
        let fill = |room: &mut [u8]| unsafe { cursor.take(room) };
        self.shared.lock().write(self.peer, pieces.bytes(), fill)
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut cursor = Cursor::new(pieces);
        // SAFETY: the caller promises the pieces.
        let mut fill = |bytes: &[u8]| unsafe { cursor.fill(bytes) };
        let most = pieces.bytes();
        self.shared.lock().read(self.peer, most, &mut fill)
    }

    fn shut(&self) {
        self.shared.lock().shut(self.peer);
    }
}
