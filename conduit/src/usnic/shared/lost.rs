//! Peers that are not there any more, or never were.

use super::{BESIDE, Locked, News, RailId, Shared};
use argonet_base::JobRank;
use argonet_nic::datagram::{DatagramQueue, answer_to};
use argonet_nic::reliable::{BadPath, PathEnd, PathFault, PeerLost};
use core::sync::atomic::Ordering;
use core::time::Duration;

/// How long an answer of the network to a datagram for a lost peer is waited for.
const ANSWER: Duration = Duration::from_millis(100);

impl<Q: DatagramQueue> Shared<Q> {
    /// A rank with its host and address.
    pub(super) fn path_end(&self, rank: JobRank) -> PathEnd {
        PathEnd {
            rank: Some(rank),
            host: self.hosts.of(rank),
            address: self.queue.address(rank.0),
        }
    }

    /// What the network says to a datagram for a peer, where that may explain a fault.
    pub(super) fn answer(&self, peer: JobRank, fault: PathFault) -> Option<String> {
        let explains = !matches!(fault, PathFault::TooLong { .. });
        let (from, to) = (
            self.queue.address(self.rank.0)?,
            self.queue.address(peer.0)?,
        );
        let answer = explains.then(|| answer_to(from.ip(), to, ANSWER))?;
        answer.map(|error| error.to_string())
    }

    /// A loss with both ends.
    fn lost_path(&self, lost: &PeerLost) -> BadPath {
        BadPath {
            from: self.path_end(lost.rank),
            to: self.path_end(lost.peer),
            fault: lost.fault,
            silent: lost.silent,
            sends: lost.sends,
            answer: self.answer(lost.peer, lost.fault),
        }
    }
}

impl<Q: DatagramQueue> Locked<'_, Q> {
    /// Does what time demands.
    pub(super) fn handle_timeout(&mut self) {
        if self.state.due().is_none_or(|due| due > self.now) {
            return;
        }
        while let Some((at, peer)) = self.state.gone.pop_front() {
            if at > self.now {
                self.state.gone.push_front((at, peer));
                break;
            }
            let rank = self.shared.rank;
            self.lose(peer, |_| {
                format!("rank {rank} cannot reach rank {peer}: it has left the job")
            });
        }
        self.state.endpoint.handle_timeout(self.now);
        while let Some(lost) = self.state.endpoint.poll_event() {
            let peer = lost.peer;
            let used = self.peer(peer);
            used.is_shut = true;
            self.lose(peer, |shared| shared.lost_path(&lost).to_string());
            self.list_both(peer);
        }
    }

    /// The channel wants a rail.
    ///
    /// It does without one beside the stream where the peer is not there any more.
    pub(in crate::usnic) fn want(&mut self, rail: RailId) {
        let peer = rail.peer;
        if self.state.peers.get(peer.index()).is_none() || peer == self.shared.rank {
            return;
        }
        let is_shut = self.peer(peer).is_shut;
        if rail.number == BESIDE {
            if !is_shut && !self.state.endpoint.has_left(peer) {
                self.rail(rail);
            }
            return;
        }
        if let Some(lost) = self.state.endpoint.lost(peer) {
            self.lose(peer, |shared| shared.lost_path(&lost).to_string());
        } else if is_shut || self.state.endpoint.has_left(peer) {
            // The channel asks whether it needs one or not.
            let at = self.now + self.state.give_up_after;
            let is_known = self.used(peer).is_none_or(|used| used.is_given_up);
            if !is_known && !self.state.gone.iter().any(|(_, gone)| *gone == peer) {
                self.state.gone.push_back((at, peer));
            }
        }
    }

    fn lose(&mut self, peer: JobRank, why: impl FnOnce(&Shared<Q>) -> String) {
        if core::mem::replace(&mut self.peer(peer).is_given_up, true) {
            return;
        }
        let why = why(self.shared);
        self.state.news.push_back((peer, News::Lost(why)));
        self.shared.pending.store(true, Ordering::Release);
    }
}
