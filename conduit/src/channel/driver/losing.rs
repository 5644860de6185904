//! Peers that the job has lost: their processes have ended, and the rank goes on without them.

use super::core::Core;
use crate::channel::rail::Rails;
use crate::channel::stream::{Aside, Bodies, SendStream};
use crate::conduit::Sink;
use argonet_am::AmError;
use argonet_base::JobRank;

impl<R: Rails> Core<R> {
    /// Gives a peer up: closes its rails, forgets what came of it, and reports all that is under
    /// way with it as complete.
    #[cold]
    pub(super) fn lose(&self, rank: JobRank, sink: &mut dyn Sink) {
        let (at, peer) = (self.rank, rank);
        let error = AmError::PeerLost { at, peer };
        let (peer, _) = self.peer_or_init(rank);
        // Waits for a thread that runs a handler of the peer's.
        let mut inbound = peer.inbound.lock();
        self.rails.forget(rank);
        self.fail(peer, &mut inbound, error);
        inbound.parked.forget();
        inbound.replies = Aside::default();
        inbound.bodies = Bodies::default();
        inbound.heard_close = None;
        inbound.lost_rails = 0;
        let mut reports = core::mem::take(&mut inbound.completions);
        let mut outbound = peer.outbound.lock();
        // From here on no rail reads a payload that stays with its user.
        outbound.send_stream = SendStream::new();
        outbound.errors.clear();
        reports.append(&mut outbound.reports);
        outbound.operations.end(|op, completion, count| {
            reports.push_back((op, completion, count));
        });
        drop((outbound, inbound));
        for (op, completion, count) in reports {
            sink.completed_all(op, completion, count);
        }
        self.moved();
    }
}
