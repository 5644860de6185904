//! Time, and what it says of peers.

use super::{Endpoint, Link};
use crate::reliable::{PathFault, PeerUnreachable};
use argonet_base::JobRank;
use core::time::Duration;

/// A driver that calls so much later than it should did not run meanwhile: its process was stopped,
/// or had no processor.
const PAUSE: Duration = Duration::from_millis(500);

impl Endpoint {
    /// When [`handle_timeout`](Self::handle_timeout) is to be called; `None`: only after something
    /// else.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timers.first()
    }

    /// The driver says what time it is.
    #[inline]
    pub(super) fn it_is(&mut self, now: Duration) {
        if now > self.seen + PAUSE {
            self.see_pause(now);
        }
        self.seen = self.seen.max(now);
    }

    /// Peers were not silent while this rank did not listen.
    #[cold]
    fn see_pause(&mut self, now: Duration) {
        let Some(due) = self.timers.first() else {
            return;
        };
        let pause = now.saturating_sub(due.max(self.seen));
        if pause <= PAUSE {
            return;
        }
        for peer in 0..self.peers.len() {
            if let Some(link) = self.peers[peer].link.as_deref_mut() {
                link.paused(pause);
                self.settle(JobRank(peer as u32));
            }
        }
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.it_is(now);
        while let Some(peer) = self.timers.due(now) {
            let Some(place) = self.peers.get_mut(peer as usize) else {
                continue;
            };
            let Some(link) = place.link.as_deref_mut() else {
                continue;
            };
            link.armed = None;
            let trouble = link.handle_timeout(now, &self.config);
            let lost = trouble.map(|trouble| PeerUnreachable {
                rank: self.rank,
                peer: JobRank(peer),
                fault: trouble.fault,
                silent: trouble.silent,
                sends: link.sends_of_oldest(),
            });
            match lost.zip(trouble) {
                Some((lost, trouble)) if trouble.is_lost => {
                    for sequence in &mut link.sequences {
                        sequence.sender.dissolve(&mut self.pool);
                        sequence.receiver.dissolve(&mut self.pool);
                    }
                    place.link = None;
                    place.lost = Some(Box::new(lost));
                    self.lost.push_back(lost);
                    continue;
                }
                Some((doubt, _)) => self.doubts.push_back(doubt),
                None => {}
            }
            self.settle(JobRank(peer));
        }
    }

    /// The next peer that was lost.
    ///
    /// Nothing goes to it or comes from it any more.
    pub fn poll_event(&mut self) -> Option<PeerUnreachable> {
        self.lost.pop_front()
    }

    /// Why nothing goes to a peer any more, if it was lost.
    #[must_use]
    pub fn lost(&self, peer: JobRank) -> Option<PeerUnreachable> {
        self.peers.get(peer.0 as usize)?.lost.as_deref().copied()
    }

    /// The next peer that is doubted: nothing comes of it, and it is lost when
    /// [`stopped_for`](crate::reliable::ReliableConfig::stopped_for) is over, unless something
    /// comes.
    ///
    /// The driver may find out before that nothing will ([`refuse`](Self::refuse)).
    pub fn poll_doubt(&mut self) -> Option<PeerUnreachable> {
        self.doubts.pop_front()
    }

    /// Whether nothing has come of a peer since it was doubted, and it is not lost.
    #[must_use]
    pub fn is_doubted(&self, peer: JobRank) -> bool {
        let place = self.peers.get(peer.0 as usize);
        let link = place.and_then(|place| place.link.as_deref());
        link.is_some_and(Link::is_doubted)
    }

    /// A peer has ended, as the driver knows: nothing goes to it any more, nothing is owed to it,
    /// and that is not reported.
    ///
    /// It is not sent to again.
    pub fn forget(&mut self, peer: JobRank) {
        let Some(place) = self.peers.get_mut(peer.0 as usize) else {
            return;
        };
        // What still comes of it makes no link again.
        place.lost = Some(Box::new(PeerUnreachable {
            rank: self.rank,
            peer,
            fault: PathFault::Silent,
            silent: Duration::ZERO,
            sends: 0,
        }));
        let Some(mut link) = place.link.take() else {
            return;
        };
        for sequence in &mut link.sequences {
            sequence.sender.dissolve(&mut self.pool);
            sequence.receiver.dissolve(&mut self.pool);
        }
    }

    /// A peer that is doubted is not there, as the driver knows: it is lost with the next
    /// [`handle_timeout`](Self::handle_timeout).
    pub fn refuse(&mut self, now: Duration, peer: JobRank) {
        let place = self.peers.get_mut(peer.0 as usize);
        let link = place.and_then(|place| place.link.as_deref_mut());
        if link.is_some_and(|link| link.refuse(now)) {
            self.settle(peer);
        }
    }
}
