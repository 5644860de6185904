//! What a rank gives up of a peer that is idle.

use super::core::Core;
use super::peer::{Inbound, Outbound, Peer};
use crate::channel::rail::Rails;

/// Whether nothing is under way between a rank and a peer, as far as this rank knows.
pub(super) fn rests<R: Rails>(inbound: &Inbound<R>, outbound: &Outbound<R>) -> bool {
    let is_reserved = outbound.reserved.ring > 0 || outbound.reserved.charge > 0;
    outbound.failed.is_none()
        && outbound.is_quiescent()
        && outbound.send_stream.rests()
        && !is_reserved
        && !inbound.ack_requested
        && !inbound.waits()
}

impl<R: Rails> Core<R> {
    /// One look at a peer.
    pub(super) fn look_at_idle(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, now_ns: u64) {
        let mut outbound = peer.outbound.lock();
        let rests = rests(inbound, &outbound);
        let positions = (outbound.send_stream.head(), inbound.receive_stream.taken());
        let idle = &mut inbound.idle;
        let look = idle.look(now_ns, &self.vitals.idle, positions, rests);
        if look.free {
            self.free_buffers(peer, inbound, &mut outbound);
        }
    }

    /// Frees the buffers of a peer; they come back when they are needed.
    fn free_buffers(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, outbound: &mut Outbound<R>) {
        // Else the next poll would read its rail, into a new buffer.
        self.rails.cool(peer.rank);
        inbound.receive_stream.free_buffer();
        inbound.parked.free_buffer();
        inbound.replies.free();
        for rail in &mut inbound.rails {
            rail.receive_stream.free_buffer();
        }
        if inbound.completions.is_empty() {
            inbound.completions = Default::default();
        }
        outbound.send_stream.free_buffers();
        outbound.operations.free_buffers();
        if outbound.reports.is_empty() {
            outbound.reports = Default::default();
        }
    }
}
