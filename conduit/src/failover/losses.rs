//! How rails to peers are lost: they end, their peers are silent, an address of this host stops
//! working, or the channel wants no more of them.

use super::gauge::Loss;
use super::link::Link;
use super::own_addresses::Changes;
use super::shared::{Driving, Peer, PeerState, Shared, first, is_of};
use super::stream_rail::{Carrier, Hearing as _};
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Between two lists of this host's addresses: at least, and at most where they fail.
const LIST_PAUSE_NS: [u64; 2] = [50_000_000, 2_000_000_000];

impl Shared {
    /// A member makes no rails any more, to no peer.
    pub(super) fn lose_member(&self, member: usize, why: &str) {
        self.failed.lock()[member] = Some(why.to_owned());
        let (rank, name) = (self.rank, &self.names[member]);
        (self.warn)(&format!(
            "rank {rank} does not use the rail {name} any more in this job: {why}"
        ));
        for peer in self.peers.all() {
            let mut state = peer.state.lock();
            if state.links[member].is_none() {
                why.clone_into(&mut state.why[member]);
                state.succession.unreachable(member, self.now_ns());
                self.add(|events| _ = events.touched.insert(peer.rank.0));
            }
        }
    }

    /// A member's first rail to a peer is of no use any more.
    pub(super) fn end_link(
        &self,
        peer: &Peer,
        state: &mut PeerState,
        member: usize,
        loss: Option<Loss>,
    ) {
        let Some(link) = state.links[member].take() else {
            return;
        };
        state.offering.remove(&member);
        self.members[member].close(first(peer.rank), &link.rail);
        self.suspend_link(peer, state, &link, loss);
    }

    /// Nothing passes over a member's first rail to a peer any more, at least for now.
    fn suspend_link(
        &self,
        peer: &Peer,
        state: &mut PeerState,
        link: &Arc<Link>,
        loss: Option<Loss>,
    ) {
        state.asked.remove(&link.member);
        let carries = |carrier: &Arc<Carrier>| Arc::ptr_eq(&carrier.link, link);
        if let Some(carrier) = state.carrier.as_ref().filter(|carrier| carries(carrier)) {
            carrier.end();
            if !state.is_refused {
                // Also if the channel does not read the end: it takes another one in its place.
                state.succession.want(self.now_ns());
                self.cut(peer.rank);
            }
        }
        let is_loss =
            state.succession.is_up(link.member) && !state.succession.is_planned_end(link.member);
        if let Some(loss) = loss.filter(|_| is_loss) {
            self.count_loss(peer.rank, state, link.member, loss);
        }
        state.succession.ended(link.member, self.now_ns());
    }

    /// Counts a loss, and notes it.
    pub(super) fn count_loss(
        &self,
        peer: JobRank,
        state: &mut PeerState,
        member: usize,
        loss: Loss,
    ) {
        self.gauge.lost(member, loss);
        state.losses[member] = Some(loss);
        let (name, why) = (&self.names[member], loss.in_words());
        (self.note)(&format!("the rail {name} to rank {peer} is lost: {why}"));
    }

    /// Leaves rails at addresses of this host that have stopped working, to all peers, and has
    /// members use new ones.
    pub(super) fn leave_addresses(&self, driving: &mut Driving, touched: &mut BTreeSet<u32>) {
        driving.has_changed = false;
        let Some(own) = &self.own else {
            return;
        };
        let changes = own.look();
        // The system has no memory or descriptor for it: it is asked later.
        driving.has_changed = changes.is_err();
        driving.list_failures = match changes {
            Ok(_) => 0,
            Err(_) => driving.list_failures.saturating_add(1),
        };
        let pause_ns = LIST_PAUSE_NS[0] << driving.list_failures.min(20);
        driving.list_ns = self.now_ns() + pause_ns.min(LIST_PAUSE_NS[1]);
        let Ok(Changes { lost, has_new }) = changes else {
            return;
        };
        if has_new {
            self.members.iter().for_each(|rails| rails.readdress());
        }
        // Without another member, one that may come back is left to silence.
        let is_single = self.members.len() < 2;
        if (is_single && !has_new) || (!is_single && lost.is_empty()) {
            return;
        }
        let has_gone = |link: &Link| match link.address {
            Some(address) if is_single => !link.lasts && own.is_lost(address),
            Some(address) => lost.contains(&address),
            None => false,
        };
        for peer in self.peers.all() {
            let mut state = peer.state.lock();
            for member in 0..self.members.len() {
                let Some(link) = state.links[member].clone() else {
                    continue;
                };
                if !has_gone(&link) {
                    continue;
                }
                touched.insert(peer.rank.0);
                let loss = Some(Loss::Address);
                match link.lasts {
                    // What was written to it is kept for the time at which it works again.
                    true => self.suspend_link(peer, &mut state, &link, loss),
                    false => self.end_link(peer, &mut state, member, loss),
                }
            }
        }
    }

    /// Whether the address of this host at which a rail ends has not stopped working.
    pub(super) fn has_address(&self, link: &Link) -> bool {
        match (link.address, &self.own) {
            (Some(address), Some(own)) if self.members.len() > 1 => !own.is_lost(address),
            _ => true,
        }
    }

    /// Nothing more is offered over a member's rail, which ends unless it lasts.
    pub(super) fn close_idle_link(&self, peer: &Peer, state: &mut PeerState, member: usize) {
        if let Some(link) = state.links[member].take_if(|link| !link.lasts) {
            state.offering.remove(&member);
            self.members[member].close(first(peer.rank), &link.rail);
            match state.asked.remove(&member) {
                // It was asked as it was, and is made anew.
                Some(_) => state.succession.ended(member, self.now_ns()),
                None => state.succession.closed(member),
            }
        }
    }

    /// Ends what there is between this rank and a peer, which learns that.
    pub(super) fn end_all(&self, driving: &mut Driving, peer: &Peer, state: &mut PeerState) {
        for member in 0..self.members.len() {
            self.end_link(peer, state, member, None);
        }
        while state.succession.poll_act().is_some() {}
        if let Some(before) = state.due_ns.take() {
            driving.due.remove(&(before, peer.rank.0));
        }
        driving.again.retain(|(_, id)| id.peer != peer.rank);
    }

    /// The channel uses no stream to this peer any more.
    pub(super) fn refuse_stream(&self, carrier: &Arc<Carrier>) {
        carrier.end();
        let mut state = self.peer(carrier.peer).state.lock();
        state.is_refused = true;
        self.set_carrier(&mut state, None);
        drop(state);
        self.add_and_wake(|events| {
            events.cut.remove(&carrier.peer.0);
            events.touched.insert(carrier.peer.0);
        });
    }

    /// The peer's process has ended, and no rail to it is looked for any more.
    pub(super) fn forget(&self, rank: JobRank) {
        let mut state = self.peer(rank).state.lock();
        state.is_refused = true;
        if let Some(carrier) = self.set_carrier(&mut state, None) {
            carrier.end();
        }
        drop(state);
        self.members.iter().for_each(|member| member.forget(rank));
        self.add_and_wake(|events| {
            events.cut.remove(&rank.0);
            events.touched.insert(rank.0);
        });
    }

    /// The channel waits for no room of a carrier any more, also where its rail lasts.
    fn forget_room(&self, carrier: &Carrier) {
        let link = &*carrier.link;
        link.waits_for_room.store(false, Ordering::SeqCst);
        if link.lasts && !link.has_unsent() {
            let rails = &self.members[link.member];
            rails.wait_for_room(first(carrier.peer), &link.rail, false);
        }
    }

    /// The channel does not use the stream's rail any more.
    pub(super) fn close_stream(&self, carrier: &Arc<Carrier>) {
        carrier.end();
        let peer = self.peer(carrier.peer);
        let mut state = peer.state.lock();
        let is_current = |current: &Arc<Carrier>| Arc::ptr_eq(current, carrier);
        if state.carrier.as_ref().is_some_and(is_current) {
            self.set_carrier(&mut state, None);
            self.forget_room(carrier);
            let loss = match carrier.link.has_ended() {
                true => Loss::Ended,
                false => Loss::Silent,
            };
            if carrier.link.lasts {
                // It was left already where its address does not work.
                let member = carrier.link.member;
                let is_planned = state.succession.is_planned_end(member);
                if state.succession.carries(carrier.generation) && !is_planned {
                    self.count_loss(peer.rank, &mut state, member, loss);
                }
                state.succession.lost(carrier.generation, self.now_ns());
            } else if is_of(&state, &carrier.link) {
                let member = carrier.link.member;
                self.end_link(peer, &mut state, member, Some(loss));
            }
        } else if is_of(&state, &carrier.link) {
            self.forget_room(carrier);
            // The stream has another one.
            self.close_idle_link(peer, &mut state, carrier.link.member);
        }
        drop(state);
        self.add_and_wake(|events| {
            events.cut.remove(&peer.rank.0);
            events.touched.insert(peer.rank.0);
        });
    }
}
