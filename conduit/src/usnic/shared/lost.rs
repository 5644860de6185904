//! Peers that are not there any more, or never were.

use super::{BESIDE, Locked, News, RailId, Shared};
use crate::channel::rail::Vital;
use argonet_base::JobRank;
use argonet_nic::datagram::{DatagramQueue, answer_to};
use argonet_nic::reliable::{BadPath, PathEnd, PathFault, PeerUnreachable};
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::Ordering;
use core::time::Duration;

/// How long an answer of the network to a datagram for a lost peer is waited for.
const ANSWER: Duration = Duration::from_millis(100);

/// How late a rank may answer that computes on a loaded host: its thread has to run.
const HELD_UP: Duration = Duration::from_millis(200);

/// Why a peer was lost, with what its interface has reported of operations that failed.
fn reason(path: &BadPath, trouble: Option<String>) -> String {
    match trouble {
        None => path.to_string(),
        Some(trouble) => format!("{path}; the interface has reported that {trouble}"),
    }
}

impl<Q: DatagramQueue> Shared<Q> {
    /// A rank with its host and address.
    pub(super) fn path_end(&self, rank: JobRank) -> PathEnd {
        PathEnd {
            rank: Some(rank),
            host: self.hosts.of(rank),
            place: self.queue.place(rank.0),
        }
    }

    /// This rank's, if datagrams go over sockets.
    pub(in crate::usnic) fn own_address(&self) -> Option<IpAddr> {
        Some(self.queue.address(self.rank.0)?.ip())
    }

    /// Where an inquiry for a peer begins and where it goes, if datagrams go over sockets.
    pub(in crate::usnic) fn ends(&self, peer: JobRank) -> Option<(IpAddr, SocketAddr)> {
        if self.queue.provider().is_some() {
            return None;
        }
        Some((self.own_address()?, self.queue.address(peer.0)?))
    }

    /// What the network says to a datagram for a peer, where that may explain a fault.
    pub(super) fn answer(&self, peer: JobRank, fault: PathFault) -> Option<String> {
        let explains = !matches!(fault, PathFault::TooLong { .. });
        let (from, to) = self.ends(peer).filter(|_| explains)?;
        answer_to(from, to, ANSWER).map(|error| error.to_string())
    }

    /// A loss with both ends.
    fn lost_path(&self, lost: &PeerUnreachable, answer: Option<String>) -> BadPath {
        BadPath {
            from: self.path_end(lost.rank),
            to: self.path_end(lost.peer),
            fault: lost.fault,
            silent: lost.silent,
            sends: lost.sends,
            answer,
            over_fabric: self.queue.provider().is_some(),
        }
    }

    /// A loss in words.
    fn why(&self, lost: &PeerUnreachable) -> String {
        let is_first = !self.has_asked.swap(true, Ordering::Relaxed);
        let answer = is_first.then(|| self.answer(lost.peer, lost.fault));
        let answer = answer.flatten();
        reason(&self.lost_path(lost, answer), self.queue.trouble())
    }

    /// Warns of a peer of which nothing comes.
    pub(in crate::usnic) fn warn(&self, doubt: &PeerUnreachable) {
        let path = self.lost_path(doubt, None);
        let (found, advice) = (path.found(), path.advice());
        let limit = self.stopped_for.as_secs_f64();
        (self.warn)(&format!(
            "{found}; as it may be stopped, the job ends only when that lasts for {limit:.0} s; {advice}"
        ));
    }

    /// Whether there are peers of which nothing comes, that were not taken.
    pub(in crate::usnic) fn has_doubts(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// These.
    pub(in crate::usnic) fn take_doubts(&self) -> Vec<PeerUnreachable> {
        let mut locked = self.lock();
        self.doubtful.store(false, Ordering::Release);
        core::mem::take(&mut locked.state.doubts)
    }

    /// Whether still nothing comes of such a peer.
    pub(in crate::usnic) fn is_doubted(&self, peer: JobRank) -> bool {
        self.lock().state.endpoint.is_doubted(peer)
    }

    /// Such a peer is not there.
    pub(in crate::usnic) fn refuse(&self, peer: JobRank) {
        let mut locked = self.lock();
        let now = locked.now;
        locked.state.endpoint.refuse(now, peer);
        locked.end();
    }
}

impl<Q: DatagramQueue> Locked<'_, Q> {
    /// Since when nothing has come of a peer, and whether it should have answered.
    pub(in crate::usnic) fn silence(&mut self, peer: JobRank) -> Option<Vital> {
        let (owed, since) = self.state.endpoint.silence(self.now, peer)?;
        let again = self.state.endpoint.rto(peer)?.max(HELD_UP);
        Some(Vital {
            owed,
            silent_ns: self.now.saturating_sub(since).as_nanos() as u64,
            rto_ns: again.as_nanos() as u64,
        })
    }

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
        while let Some(doubt) = self.state.endpoint.poll_doubt() {
            self.state.doubts.push(doubt);
            self.shared.doubtful.store(true, Ordering::Release);
        }
        while let Some(lost) = self.state.endpoint.poll_event() {
            let peer = lost.peer;
            let used = self.peer(peer);
            used.is_shut = true;
            self.lose(peer, |shared| shared.why(&lost));
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
            self.lose(peer, |shared| shared.why(&lost));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_loss_has_what_the_interface_reported() {
        let end = |rank| PathEnd {
            rank: Some(JobRank(rank)),
            host: String::new(),
            place: None,
        };
        let path = BadPath {
            from: end(1),
            to: end(4),
            fault: PathFault::Silent,
            silent: Duration::from_secs(20),
            sends: 3,
            answer: None,
            over_fabric: false,
        };
        assert_eq!(reason(&path, None), path.to_string());
        let trouble = "of net, 2 operations failed, the first with a send failed: out of paper";
        let why = reason(&path, Some(trouble.to_owned()));
        assert!(why.starts_with("rank 1 cannot reach rank 4: "), "{why}");
        assert!(why.ends_with(trouble), "{why}");
    }
}
