//! Questions of an endpoint to its peers.

use super::Endpoint;
use crate::reliable::PathState;
use argonet_base::JobRank;
use core::time::Duration;

impl Endpoint {
    /// Whether the driver waits for something from this peer that is not an acknowledgement: then a
    /// silent peer is asked whether it lives.
    pub fn watch(&mut self, now: Duration, peer: JobRank, on: bool) {
        // A peer that is unknown or lost is not watched.
        if let Ok(link) = self.link(peer, now) {
            link.watch(on, now);
            self.settle(peer);
        }
    }

    /// Begins to ask a peer whether datagrams pass between it and this rank, also such of the first
    /// length if `full`, until [`end_asking`](Self::end_asking).
    ///
    /// A peer that does not answer is not lost by that.
    pub fn ask(&mut self, now: Duration, peer: JobRank, full: bool) {
        // Of a peer that is unknown or lost that is known.
        if let Ok(link) = self.link(peer, now) {
            link.path.ask(now, full);
            self.settle(peer);
        }
    }

    /// Ends that.
    pub fn end_asking(&mut self, peer: JobRank) {
        let place = self.peers.get_mut(peer.0 as usize);
        if let Some(link) = place.and_then(|place| place.link.as_deref_mut()) {
            link.path.end_asking();
        }
    }

    /// What is known of the path to a peer.
    #[must_use]
    pub fn path(&self, peer: JobRank) -> PathState {
        let place = self.peers.get(peer.0 as usize);
        let link = place.and_then(|place| place.link.as_deref());
        link.map_or_else(PathState::default, |link| link.path.state(&self.config))
    }

    /// Longest datagram to a peer before longer ones are known to reach it.
    #[must_use]
    pub fn datagram_bytes(&self) -> usize {
        self.config.datagram_bytes
    }
}
