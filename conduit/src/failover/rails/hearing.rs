//! What carriers say to the rails that they are of.

use super::{Shared, first};
use crate::channel::rail::Vital;
use crate::failover::link::{Heard, Link};
use crate::failover::stream_rail::Hearing;
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use std::sync::Arc;

impl Hearing for Shared {
    fn silence(&self, peer: JobRank, link: &Link) -> Option<Vital> {
        self.members[link.member].silence(peer, &link.rail)
    }

    fn hear(&self, peer: JobRank, link: &Arc<Link>, heard: Heard) {
        let link = Arc::clone(link);
        self.add(|events| events.heard.push((peer, link, heard)));
    }

    fn cut(&self, peer: JobRank) {
        self.add_and_wake(|events| {
            events.cut.insert(peer.0);
            events.touched.insert(peer.0);
        });
    }

    fn leave_unsent(&self, peer: JobRank, link: &Arc<Link>) {
        let mut unsent = self.unsent.lock();
        if !unsent.iter().any(|(_, its)| Arc::ptr_eq(its, link)) {
            unsent.push((peer, Arc::clone(link)));
            self.members[link.member].wait_for_room(first(peer), &link.rail, true);
        }
        self.has_unsent.store(true, Ordering::Release);
    }
}

impl Shared {
    /// Writes more of the rests of runs.
    pub(super) fn push_unsent(&self) {
        if !self.has_unsent.load(Ordering::Acquire) {
            return;
        }
        let mut unsent = self.unsent.lock();
        unsent.retain(|(peer, link)| match link.push() {
            Ok(false) => true,
            Ok(true) => {
                let waits = link.waits_for_room.load(Ordering::Relaxed);
                self.members[link.member].wait_for_room(first(*peer), &link.rail, waits);
                false
            }
            Err(_) => {
                self.add(|events| events.ended.push((*peer, Arc::clone(link))));
                false
            }
        });
        self.has_unsent.store(!unsent.is_empty(), Ordering::Release);
    }

    /// Whether a peer at the other end of a link answers.
    pub(super) fn answers(&self, peer: JobRank, link: &Link, limit_ns: u64) -> bool {
        let silence = self.silence(peer, link);
        silence.is_none_or(|vital| !vital.owed || vital.silent_ns < limit_ns)
    }
}
