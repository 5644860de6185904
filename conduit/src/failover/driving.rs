//! What the thread that drives does: takes rails that members have made and what other threads have
//! found, and runs the machine of each peer to which something has happened.

use super::gauge::Loss;
use super::link::{Heard, Link};
use super::shared::{Driving, Events, Peer, PeerState, Shared, first, is_of};
use super::stream_rail::{Carrier, Hearing as _, StreamRail};
use super::succession::{Act, PATIENCE_NS};
use crate::attendant::ring;
use crate::channel::AnyRail;
use crate::channel::rail::{Made, NewRail, Rail, RailId};
use argonet_am::AmError;
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often offers that a rail has not taken are written, members looked at that were silent, and
/// the channel is asked to read an end that it has not.
const LOOK_NS: u64 = 20_000_000;

/// What is heard so soon after a member was asked was perhaps heard before.
const HEARD_BEFORE_NS: u64 = 1_000_000;

/// A connection at an address that is not listed is used after so long.
///
/// The list is behind where an interface has just come back.
const STANDS_NS: u64 = 1_000_000_000;

/// Before a further rail is asked for again that could not be made.
const AGAIN_NS: u64 = 2_000_000_000;

impl Shared {
    /// Takes what members have made.
    pub(super) fn take_made(&self, driving: &mut Driving) {
        for (member, rails) in self.members.iter().enumerate() {
            while let Some(made) = rails.next(&|_| 0) {
                match made {
                    Made::Rail(new) if new.id.peer.index() >= self.peers.count() => {
                        new.rail.shut();
                    }
                    Made::Rail(new) if new.id.number == 0 => self.take_first(member, new),
                    Made::Rail(new) => match self.number(member, new.id.number) {
                        None => new.rail.shut(),
                        Some(number) => {
                            let peer = new.id.peer;
                            let id = RailId { peer, number };
                            driving.again.retain(|(_, again)| *again != id);
                            driving.made.push_back(Made::Rail(NewRail { id, ..new }));
                        }
                    },
                    Made::Unreachable(id, _) if id.peer.index() >= self.peers.count() => {}
                    Made::Unreachable(id, error) if id.peer == self.rank => {
                        self.lose_member(member, &error.to_string());
                    }
                    Made::Unreachable(id, error) if id.number == 0 => {
                        let mut state = self.peer(id.peer).state.lock();
                        state.why[member] = error.to_string();
                        rails.unwant(id);
                        state.succession.unreachable(member, self.now_ns());
                        drop(state);
                        self.add(|events| _ = events.touched.insert(id.peer.0));
                    }
                    Made::Unreachable(id, _) => {
                        rails.unwant(id);
                        if let Some(number) = self.number(member, id.number) {
                            let id = RailId { number, ..id };
                            driving.again.push((self.now_ns() + AGAIN_NS, id));
                        }
                    }
                }
            }
        }
    }

    /// A member has made a rail that can carry the stream.
    fn take_first(&self, member: usize, new: NewRail<AnyRail>) {
        let rails = &self.members[member];
        let peer = self.peer(new.id.peer);
        let mut state = peer.state.lock();
        if let Some(link) = &state.links[member]
            && new.incarnation <= link.incarnation
        {
            return new.rail.shut();
        }
        if state.is_refused {
            return new.rail.shut();
        }
        // The peer has found that the one before has ended.
        self.end_link(peer, &mut state, member, Some(Loss::Ended));
        if rails.open(new.id, &new.rail).is_err() {
            new.rail.shut();
            state.succession.ended(member, self.now_ns());
        } else {
            let address = rails.address(&new.rail);
            let link = Link::new(member, new.rail, address, rails.lasts(), new.incarnation);
            let has_address = self.has_address(&link);
            state.links[member] = Some(Arc::new(link));
            if has_address {
                state.forget_loss(member);
                state.succession.made(member, self.now_ns());
            } else {
                // It is asked whether the address works again.
                state.succession.ended(member, self.now_ns());
            }
        }
        drop(state);
        self.add(|events| _ = events.touched.insert(peer.rank.0));
    }

    /// Sees to what threads have found, and to what is due.
    pub(super) fn see(self: &Arc<Self>, driving: &mut Driving, received: &dyn Fn(RailId) -> u64) {
        self.has_events.store(false, Ordering::Release);
        let Events {
            heard,
            ended,
            mut touched,
            has_changed,
            cut: _,
        } = self.events.lock().take();
        driving.has_changed |= has_changed;
        if driving.has_changed && driving.list_ns <= self.now_ns() {
            self.leave_addresses(driving, &mut touched);
        }
        for (rank, link) in ended {
            if self.see_end(rank, &link) {
                touched.insert(rank.0);
            }
        }
        for (rank, link, offer) in &heard {
            if self.see_offer(*rank, link, *offer) {
                touched.insert(rank.0);
            }
        }
        self.take_due(driving, &mut touched);
        for rank in touched {
            self.drive(driving, self.peer(JobRank(rank)), received);
            // Their reader may be slow, which must not hold up threads that read from the peer.
            for warning in driving.warnings.drain(..) {
                (self.warn)(&warning);
            }
        }
        for (_, link, _) in &heard {
            // What follows it is of the generation that was agreed on, or of none: a thread that
            // read it before that would take it for something to be thrown away.
            link.go_on();
        }
        let again = driving.again.iter().map(|(at_ns, _)| *at_ns).min();
        let due = driving.due.first().map(|(at_ns, _)| *at_ns);
        let list = driving.has_changed.then_some(driving.list_ns);
        let due_ns = [again, due, list].into_iter().flatten().min();
        let due_ns = due_ns.unwrap_or(u64::MAX);
        if due_ns < self.due_ns.swap(due_ns, Ordering::Relaxed) {
            // Another thread may sleep for longer.
            ring(&self.wakeup);
        }
    }

    /// A link has ended; whether it was still used.
    fn see_end(&self, rank: JobRank, link: &Arc<Link>) -> bool {
        let peer = self.peer(rank);
        let mut state = peer.state.lock();
        if !is_of(&state, link) {
            return false;
        }
        let carrier = state.carrier.as_ref();
        let carries = carrier.is_some_and(|carrier| Arc::ptr_eq(&carrier.link, link));
        // The peer drops one that has carried the stream when another one does.
        let is_loss = carries || !link.is_raw();
        let loss = is_loss.then_some(Loss::Ended);
        self.end_link(peer, &mut state, link.member, loss);
        true
    }

    /// The peer has offered something over a link; whether that is still used.
    fn see_offer(&self, rank: JobRank, link: &Arc<Link>, offer: Heard) -> bool {
        let mut state = self.peer(rank).state.lock();
        if !is_of(&state, link) {
            return false;
        }
        let Heard {
            generation,
            received,
        } = offer;
        let member = link.member;
        state.asked.remove(&member);
        if !state.succession.is_up(member) {
            state.forget_loss(member);
        }
        let now_ns = self.now_ns();
        state.succession.heard(member, generation, received, now_ns);
        true
    }

    /// Adds peers for which something is due, and asks for further rails that are.
    fn take_due(&self, driving: &mut Driving, touched: &mut BTreeSet<u32>) {
        let now_ns = self.now_ns();
        while let Some((at_ns, rank)) = driving.due.first().copied()
            && at_ns <= now_ns
        {
            driving.due.pop_first();
            touched.insert(rank);
        }
        for (_, id) in driving.again.extract_if(.., |(at_ns, _)| *at_ns <= now_ns) {
            // One can do without, and a peer that has left has none.
            if self.peer(id.peer).state.lock().carrier.is_some() {
                self.want(id);
            }
        }
    }

    /// Whether a peer at the other end of a link answers.
    fn answers(&self, peer: JobRank, link: &Link, limit_ns: u64) -> bool {
        let silence = self.silence(peer, link);
        // An answer takes as long as the path.
        silence.is_none_or(|vital| !vital.owed || vital.silent_ns < limit_ns.max(2 * vital.rto_ns))
    }

    /// Does the next steps of a peer.
    ///
    /// `received` takes locks of the channel, which come before that of the state: it is called
    /// without that, and what other threads change meanwhile (a link that ends, a refusal) the
    /// steps that follow find by themselves.
    fn drive(
        self: &Arc<Self>,
        driving: &mut Driving,
        peer: &Peer,
        received: &dyn Fn(RailId) -> u64,
    ) {
        let now_ns = self.now_ns();
        let mut state = peer.state.lock();
        if state.is_refused {
            return self.end_all(driving, peer, &mut state);
        }
        self.look_at_asked(peer.rank, &mut state, now_ns);
        self.push_offers(peer, &mut state);
        let PeerState {
            succession, links, ..
        } = &mut *state;
        let silent = succession.tick(now_ns, |member| {
            let link = links[member].as_deref();
            link.is_some_and(|link| self.answers(peer.rank, link, PATIENCE_NS))
        });
        if let Some(member) = silent {
            self.count_loss(peer.rank, &mut state, member, Loss::Silent);
        }
        while let Some(act) = state.succession.poll_act() {
            match act {
                Act::Ask(member) => self.ask(peer, &mut state, member),
                Act::Drop(member) => self.close_idle_link(peer, &mut state, member),
                Act::Offer(member, generation) => {
                    let Some(link) = state.links[member].clone() else {
                        state.succession.ended(member, now_ns);
                        continue;
                    };
                    if let Some(carrier) = &state.carrier
                        && Arc::ptr_eq(&carrier.link, &link)
                    {
                        // Before the offer: nothing of it comes behind.
                        carrier.end();
                    }
                    // The channel's locks come before this one.
                    drop(state);
                    let position = received(first(peer.rank));
                    #[cfg(test)]
                    self.say(generation, position);
                    state = peer.state.lock();
                    if link.offer(generation, position).is_ok() {
                        state.offering.insert(member);
                    } else if is_of(&state, &link) {
                        self.end_link(peer, &mut state, member, Some(Loss::Ended));
                    }
                }
                Act::Carry(member, generation, position) => {
                    match state.links[member].clone() {
                        Some(link) => {
                            self.carry(driving, peer, &mut state, link, (generation, position));
                        }
                        // It has ended meanwhile, and the channel waits for it.
                        None => {
                            state.succession.ended(member, now_ns);
                            state.succession.want(now_ns);
                        }
                    }
                }
                Act::GiveUp => {
                    state.asked.clear();
                    driving.made.push_back(self.given_up(peer.rank, &state));
                }
            }
        }
        self.push_offers(peer, &mut state);
        // The channel may not have read the end that it was to read, as another thread read.
        let is_cut = self.events.lock().cut.contains(&peer.rank.0);
        let looks = is_cut || !state.asked.is_empty() || !state.offering.is_empty();
        let look = looks.then_some(now_ns + LOOK_NS);
        let due = [state.succession.poll_timeout(), look]
            .into_iter()
            .flatten();
        if let Some(before) = state.due_ns.take() {
            driving.due.remove(&(before, peer.rank.0));
        }
        state.due_ns = due.clone().min();
        driving
            .due
            .extend(due.min().map(|at_ns| (at_ns, peer.rank.0)));
    }

    /// Asks a member for a rail, or the one that it has whether it is of use again.
    fn ask(&self, peer: &Peer, state: &mut PeerState, member: usize) {
        if let Some(link) = state.links[member].clone() {
            // One that has carried the stream alone carries nothing else any more.
            if link.is_raw() || (link.lasts && link.probe().is_err()) {
                return self.end_link(peer, state, member, Some(Loss::Ended));
            }
            if link.has_unsent() {
                state.offering.insert(member);
            }
            state.asked.insert(member, self.now_ns());
            return;
        }
        match &self.failed.lock()[member] {
            None => self.members[member].want(first(peer.rank)),
            Some(why) => {
                why.clone_into(&mut state.why[member]);
                state.succession.unreachable(member, self.now_ns());
            }
        }
    }

    /// Members that were silent and answer are there again.
    fn look_at_asked(&self, rank: JobRank, state: &mut PeerState, now_ns: u64) {
        let mut there = Vec::new();
        for (member, asked_ns) in &state.asked {
            let Some(link) = state.links[*member].as_deref() else {
                continue;
            };
            let asked_for_ns = now_ns.saturating_sub(*asked_ns);
            let has_answered = self.silence(rank, link).is_none_or(|vital| {
                let was_heard = vital.silent_ns + HEARD_BEFORE_NS < asked_for_ns;
                // A rail that lasts was sent a probe. The time for which this process was stopped
                // is not in that of its silence.
                !vital.owed || (was_heard && !link.lasts)
            });
            // A connection that was made at a lost address, and stands, shows that the list is
            // wrong, or the peer on this host.
            let stands = !link.lasts && asked_for_ns >= STANDS_NS;
            if has_answered && (stands || self.has_address(link)) {
                there.push(*member);
            }
        }
        for member in there {
            state.asked.remove(&member);
            state.forget_loss(member);
            state.succession.made(member, now_ns);
        }
    }

    /// Writes more of offers.
    fn push_offers(&self, peer: &Peer, state: &mut PeerState) {
        for member in state.offering.clone() {
            let pushed = state.links[member].as_deref().map(Link::push);
            match pushed {
                Some(Ok(false)) => {}
                Some(Err(_)) => self.end_link(peer, state, member, Some(Loss::Ended)),
                None | Some(Ok(true)) => _ = state.offering.remove(&member),
            }
        }
    }

    /// A link carries the stream from now on.
    fn carry(
        self: &Arc<Self>,
        driving: &mut Driving,
        peer: &Peer,
        state: &mut PeerState,
        link: Arc<Link>,
        (generation, received): (u64, u64),
    ) {
        let member = link.member;
        link.begin_stream(generation);
        let hearing = Arc::downgrade(self);
        let carrier = Arc::new(Carrier::new(peer.rank, link, generation, hearing));
        if let Some(before) = self.set_carrier(state, Some(Arc::clone(&carrier))) {
            before.end();
        }
        let name = &self.names[member];
        (self.note)(&format!("messages to rank {} go over {name}", peer.rank));
        if let Some(before) = state.last.replace(member) {
            let warning = self.change_in_words(peer.rank, state, [before, member]);
            driving.warnings.extend(warning);
        }
        driving.made.push_back(Made::Rail(NewRail {
            id: first(peer.rank),
            rail: AnyRail::new(StreamRail(carrier)),
            incarnation: generation,
            received,
        }));
    }

    /// Another carrier from now on, or none; the one before.
    pub(super) fn set_carrier(
        &self,
        state: &mut PeerState,
        carrier: Option<Arc<Carrier>>,
    ) -> Option<Arc<Carrier>> {
        if let Some(carrier) = &carrier {
            self.gauge.begins(carrier.link.member);
        }
        let before = core::mem::replace(&mut state.carrier, carrier);
        if let Some(before) = &before {
            self.gauge.stops(before.link.member);
        }
        before
    }

    /// A failure, or that it is over, in words for the user.
    fn change_in_words(
        &self,
        peer: JobRank,
        state: &mut PeerState,
        [from, to]: [usize; 2],
    ) -> Option<String> {
        let has_failed = to > from && state.succession.has_failed(from);
        let is_over = to < from && core::mem::take(&mut state.is_warned);
        state.is_warned |= has_failed;
        // One of both ranks does.
        if self.rank > peer || !(has_failed || is_over) {
            return None;
        }
        let rank = self.rank;
        let why = match state.losses[from] {
            Some(loss) => loss.in_words().to_owned(),
            None => format!("rank {peer} has left it"),
        };
        let [from, to] = [from, to].map(|member| &self.names[member]);
        Some(match has_failed {
            true => format!(
                "messages between rank {rank} and rank {peer} go over {to} now, as {from} has failed: {why}; they return when it works, and argonet info --rails counts losses"
            ),
            false => format!("messages between rank {rank} and rank {peer} go over {to} again"),
        })
    }

    /// Why no member reaches a peer.
    fn given_up(&self, peer: JobRank, state: &PeerState) -> Made<AnyRail> {
        let each = self.names.iter().zip(&state.why);
        let each = each.map(|(name, why)| match why.as_str() {
            "" => format!("{name}: nothing is acknowledged"),
            why => format!("{name}: {why}"),
        });
        let (at, each) = (self.rank, each.collect::<Vec<_>>().join("; "));
        let why = format!(
            "rank {at} cannot reach rank {peer} over any rail of ARGONET_RAILS: {each}; look at the interfaces of both hosts (argonet doctor -H HOST,HOST), or name another rail"
        );
        Made::Unreachable(first(peer), AmError::Unreachable { at, peer, why })
    }
}

#[cfg(test)]
impl Shared {
    /// Keeps the position that is said with an offer.
    fn say(&self, generation: u64, position: u64) {
        let before = self.said.lock().insert(generation, position);
        assert_eq!(before, None, "one position is said with {generation}");
    }
}
