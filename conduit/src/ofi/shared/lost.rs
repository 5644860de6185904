//! Peers that are lost: those to which nothing can be sent, that say nothing, or that say what they
//! may not.

use super::{Locked, News, Shared, State};
use crate::ofi::header::Kind;
use argonet_base::JobRank;
use argonet_nic::rdm::MessageQueue;
use core::sync::atomic::Ordering;
use core::time::Duration;

/// A silent peer is asked so often before it counts as lost, and warned of after some.
pub(super) const ASKS: u32 = 15;
const WARNED_AFTER: u32 = 4;

impl<Q: MessageQueue> Shared<Q> {
    /// Warns of peers of which nothing has come for long, as long as there are some `left` to warn
    /// of.
    pub(in crate::ofi) fn warn_of_silence(&self, left: &mut u32) {
        let (doubts, silence, over) = {
            let mut locked = self.lock();
            if locked.state.doubts.is_empty() {
                return;
            }
            let mut doubts = core::mem::take(&mut locked.state.doubts);
            // Something may have come since.
            doubts.retain(|peer| {
                locked
                    .used(*peer)
                    .is_some_and(|used| used.asks > WARNED_AFTER)
            });
            (doubts, locked.state.silence, locked.state.queue.in_words())
        };
        let asked_for = silence * WARNED_AFTER / ASKS;
        for peer in doubts.into_iter().take(*left as usize) {
            *left -= 1;
            let rank = self.rank;
            (self.warn)(&format!(
                "rank {rank} has had no answer from rank {peer} for {asked_for:?} ({over}); as it may be stopped, the job ends only when that lasts for {silence:?}"
            ));
        }
    }
}

impl<Q: MessageQueue> Locked<'_, Q> {
    /// Loses the peers to whom messages could not be sent.
    pub(super) fn take_failures(&mut self) {
        if self.state.is_taking {
            // Later: what was taken comes first.
            return;
        }
        let mut failures = self.state.queue.failures();
        if !failures.is_empty() {
            // A peer that has left has said so before.
            self.take_all();
            failures.extend(self.state.queue.failures());
        }
        for (peer, words) in failures {
            self.fail(JobRank(peer), &words);
        }
        if !self.state.is_broken
            && let Some(words) = self.state.queue.broken().map(str::to_owned)
        {
            self.state.is_broken = true;
            self.shared.broken.store(true, Ordering::Relaxed);
            for peer in (0..self.state.peers.len() as u32).map(JobRank) {
                self.fail(peer, &words);
            }
        }
    }

    /// A peer has sent a message that it may not send: it is there to learn that.
    pub(super) fn fail_at(&mut self, peer: JobRank, number: u32) {
        if self.used(peer).is_some_and(|used| !used.has_left) {
            self.give_up(
                peer,
                &format!("its message {number} is none that can come now"),
            );
        }
    }

    /// A peer cannot be reached any more, unless it has left.
    pub(super) fn fail(&mut self, peer: JobRank, words: &str) {
        if self.used(peer).is_some_and(|used| !used.has_left) {
            self.give_up(peer, words);
        }
        if let Some(used) = self.used(peer) {
            used.forget_owed();
        }
    }

    fn give_up(&mut self, peer: JobRank, words: &str) {
        let (rank, over) = (self.shared.rank, self.state.queue.in_words());
        let mut why = format!("rank {rank} cannot reach rank {peer}: {words} ({over})");
        if let Some(trouble) = self.state.queue.trouble()
            && !trouble.contains(words)
        {
            why += &format!("; {trouble}");
        }
        self.shut(peer);
        self.lose(peer, why);
    }

    pub(super) fn lose(&mut self, peer: JobRank, why: String) {
        if let Some(used) = self.used(peer)
            && !core::mem::replace(&mut used.is_given_up, true)
        {
            self.state.news.push_back((peer, News::Lost(why)));
            self.shared.wake_sleepers();
        }
    }

    /// Nothing more is read from a peer, which learns that, or sent to it.
    pub(in crate::ofi) fn shut(&mut self, peer: JobRank) {
        if self.read_no_more(peer) {
            if let Some(used) = self.used(peer) {
                used.owe_end();
            }
            self.send_owed(peer);
        }
    }

    /// The peer's process has ended: it is sent nothing more.
    pub(in crate::ofi) fn forget(&mut self, peer: JobRank) {
        if !self.make(peer) {
            return;
        }
        self.read_no_more(peer);
        if let Some(used) = self.used(peer) {
            used.end();
        }
        self.state.gone.retain(|(_, gone)| *gone != peer);
    }

    /// Gives back what a peer has sent; false if that was done.
    fn read_no_more(&mut self, peer: JobRank) -> bool {
        let State {
            queue,
            peers,
            without_room,
            unread_buffers,
            ..
        } = &mut *self.state;
        let used = peers.get_mut(peer.index()).and_then(Option::as_deref_mut);
        let Some(used) = used.filter(|used| !used.is_shut) else {
            return false;
        };
        used.is_shut = true;
        *unread_buffers -= used.forget(queue);
        without_room.retain(|other| *other != peer);
        // A read finds the end.
        self.list(peer);
        true
    }

    /// Asks silent peers if it is time.
    pub(in crate::ofi) fn ask_in_time(&mut self, now: Duration) {
        let pause = self.state.silence / ASKS;
        let Some(late) = now.checked_sub(self.state.asks_at) else {
            return;
        };
        self.state.asks_at = now + pause;
        if late > pause {
            // This process was stopped, and what its peers have sent meanwhile comes now.
            for used in self.state.peers.iter_mut().flatten() {
                used.asks = 0;
            }
        } else {
            self.ask();
        }
    }

    /// Asks the peers from which nothing has come since the time before; those that have not
    /// answered for long are lost.
    fn ask(&mut self) {
        let silence = self.state.silence;
        for peer in (0..self.state.peers.len() as u32).map(JobRank) {
            let Some(used) = self.used(peer) else {
                continue;
            };
            let has_end = used.is_shut || used.has_left;
            if !used.is_open && !has_end {
                continue;
            }
            used.asks = used.asks.saturating_add(1);
            if has_end {
                if used.asks > ASKS {
                    // It is not there any more to take it.
                    used.forget_owed();
                }
                continue;
            }
            let asks = used.asks;
            if asks > ASKS {
                self.fail(peer, &format!("it has answered nothing for {silence:?}"));
                continue;
            }
            if asks > 1 {
                used.owe(Kind::Ask);
                self.send_owed(peer);
            }
            if asks == WARNED_AFTER + 1 {
                self.state.doubts.push(peer);
            }
        }
    }
}
