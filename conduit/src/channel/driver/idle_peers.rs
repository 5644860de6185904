//! What a rank gives up of a peer that is idle.

use super::core::Core;
use super::idle::Closing;
use super::peer::{Inbound, Outbound, Peer};
use crate::channel::frame::Kind;
use crate::channel::rail::{RailId, Rails};

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
        // A frame outside of the stream may have brought one back.
        let holds = inbound.receive_stream.buffer_bytes() > 0;
        let look = idle.look(now_ns, &self.vitals.idle, positions, rests, holds);
        if look.free {
            self.free_buffers(peer, inbound, &mut outbound);
        }
        if look.close && inbound.wire.is_some() {
            self.ask_to_close(peer, &mut outbound);
        }
    }

    #[cold]
    fn ask_to_close(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        outbound.send_stream.close(false);
        self.flush(peer, outbound);
        let (sent, heard) = outbound.send_stream.positions();
        outbound.closing = Closing::Asked(sent, heard);
        outbound.watch();
    }

    /// The peer has asked to close the rails, or has agreed and closed them.
    #[cold]
    pub(super) fn hear_close(&self, peer: &Peer<R>, inbound: &mut Inbound<R>) {
        let heard = inbound.heard_close.take();
        let mut outbound = peer.outbound.lock();
        let rests = rests(inbound, &outbound);
        if heard == Some(Kind::Closed) {
            self.close(peer, inbound, &mut outbound);
            // Ends that the same poll has found.
            inbound.lost_rails = 0;
            if !rests && outbound.failed.is_none() {
                // What was sent meanwhile goes over the next rail.
                self.unconnected.set(peer.rank.0);
                self.reopen(peer, &mut outbound);
                self.helper.gather();
            }
        } else if rests && inbound.wire.is_some() {
            outbound.send_stream.close(true);
            self.flush(peer, &mut outbound);
            // A rail that does not take even that is left as it is.
            if outbound.send_stream.rests() {
                self.close(peer, inbound, &mut outbound);
            }
        }
    }

    /// Closes all rails to a peer, and asks for none before the next use.
    fn close(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, outbound: &mut Outbound<R>) {
        self.unwire(peer, inbound, outbound);
        self.unwire_rails(peer, inbound, outbound);
        // Further ones may be on their way.
        let rails = match outbound.striping.asked {
            true => self.sizes.rails,
            false => 1,
        };
        for number in 0..rails {
            let peer = peer.rank;
            self.rails.unwant(RailId { peer, number });
        }
        outbound.striping.asked = false;
        outbound.closing = Closing::Closed;
        inbound.receive_stream.reset();
        self.free_buffers(peer, inbound, outbound);
    }

    /// Asks for a rail to a peer to which they were closed.
    #[cold]
    pub(super) fn reopen(&self, peer: &Peer<R>, outbound: &mut Outbound<R>) {
        if outbound.closing == Closing::Closed {
            outbound.closing = Closing::Reopening;
            self.want(peer.rank, 0);
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
