//! Neighbors that the job has lost: their processes have ended, so that this one alone writes to
//! the rings that it had with them.

use super::conduit::Smp;
use crate::conduit::SendError;
use argonet_am::{AmError, MessageClass};
use argonet_base::JobRank;
use parking_lot::Mutex;

/// The neighbors that are lost.
///
/// Looked at where a ring has no room.
#[derive(Default)]
pub(super) struct Lost(Mutex<Vec<JobRank>>);

impl Smp {
    /// Why a message for a neighbor finds no room.
    #[cold]
    #[inline(never)]
    pub(super) fn no_room(&self, to: JobRank) -> SendError {
        if self.lost.0.lock().contains(&to) {
            let (at, peer) = (self.rank, to);
            return SendError::Message(AmError::PeerLost { at, peer });
        }
        SendError::Full
    }

    /// Gives a neighbor up: takes nothing of it any more, and has no room for it.
    #[cold]
    pub(super) fn lose_neighbor(&self, rank: JobRank) {
        if !self.neighbors().contains(&rank.0) || rank == self.rank {
            return;
        }
        let peer = self.peer(rank);
        // Each waits for a thread that runs a handler of the neighbor's.
        let requests_in = peer.in_request_lock.lock(self.mode);
        let replies_in = peer.in_reply_lock.lock(self.mode);
        let requests_out = peer.out_request_lock.lock(self.mode);
        for class in [MessageClass::Request, MessageClass::Reply] {
            let reader = peer.reader(class);
            reader.end(&self.region.ring(self.rank, rank, class));
            let writer = self.class_writer(rank, class);
            writer.end(&self.region.ring(rank, self.rank, class));
        }
        // Not before: who learns of it may use memory again that a handler has written.
        self.lost.0.lock().push(rank);
        drop((requests_out, replies_in, requests_in));
    }
}
