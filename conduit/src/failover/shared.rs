//! What a rank's threads share of rails over several members: peers, what was found, and the steps
//! that follow from it.

use super::config::{FailoverConfig, MemberConfig};
use super::gauge::{Loss, RailGauge};
use super::link::{Heard, Link, Read};
use super::member::Member;
use super::own_addresses::OwnAddresses;
use super::stream_rail::{Carrier, Hearing, StreamRail};
use super::succession::{Act, PATIENCE_NS, Succession};
use crate::attendant::{event, ring};
use crate::channel::AnyRail;
use crate::channel::rail::{MOST_RAILS, Made, NewRail, Rail, RailId, Vital};
use crate::peers::Peers;
use argonet_am::AmError;
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How often offers that a rail has not taken are written, members looked at that were silent, and
/// the channel is asked to read an end that it has not.
const LOOK_NS: u64 = 20_000_000;

/// What is heard so soon after a member was asked was perhaps heard before.
const HEARD_BEFORE_NS: u64 = 1_000_000;

/// How often reports of changed addresses are taken by a rank that does not sleep.
const REPORTS_NS: u64 = 10_000_000;

/// Before a further rail is asked for again that could not be made.
const AGAIN_NS: u64 = 2_000_000_000;

/// What failover knows of a peer.
pub(super) struct Peer {
    pub(super) rank: JobRank,
    pub(super) state: Mutex<PeerState>,
}

pub(super) struct PeerState {
    pub(super) succession: Succession,
    /// By member.
    pub(super) links: Box<[Option<Arc<Link>>]>,
    pub(super) carrier: Option<Arc<Carrier>>,
    /// Members whose rails were of no use and are asked whether they are again: since when, ns.
    pub(super) asked: BTreeMap<usize, u64>,
    /// Members that do not last and whose rail ended at an address that does not work.
    doubted: BTreeSet<usize>,
    /// Members whose rails have not taken all of an offer.
    pub(super) offering: BTreeSet<usize>,
    /// The member that carried the stream last.
    last: Option<usize>,
    /// The channel uses no stream to this peer any more.
    pub(super) is_refused: bool,
    /// The user knows of a failure.
    is_warned: bool,
    /// When something is due for it, as `Driving::due` has it.
    pub(super) due_ns: Option<u64>,
    /// Why a member has no rail, by member.
    pub(super) why: Box<[String]>,
}

/// What threads have found, and the next call of [`Rails::next`] sees to.
#[derive(Default)]
pub(super) struct Events {
    heard: Vec<(JobRank, Arc<Link>, Heard)>,
    ended: Vec<(JobRank, Arc<Link>)>,
    pub(super) touched: BTreeSet<u32>,
    /// Addresses of this host have changed.
    has_changed: bool,
    /// Streams whose carriers have ended without a read of the channel.
    pub(super) cut: BTreeSet<u32>,
}

/// What the thread that drives has for itself.
#[derive(Default)]
pub(super) struct Driving {
    pub(super) made: VecDeque<Made<AnyRail>>,
    /// Peers for which something is due, and when.
    pub(super) due: BTreeSet<(u64, u32)>,
    /// Further rails that are asked for again.
    pub(super) again: Vec<(u64, RailId)>,
    /// Addresses of this host have changed since they were listed.
    pub(super) has_changed: bool,
    /// They are listed again then at the soonest, ns.
    pub(super) list_ns: u64,
    /// How often in a row they could not be listed.
    pub(super) list_failures: u32,
}

/// A rail of a member, and the number by which the channel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Further {
    pub(super) member: usize,
    pub(super) number: u16,
}

pub(super) struct Shared {
    pub(super) rank: JobRank,
    pub(super) name: &'static str,
    pub(super) names: Box<[String]>,
    pub(super) members: Box<[Box<dyn Member<Rail = AnyRail>>]>,
    /// That of the channel's number 1 comes first.
    further: Box<[Further]>,
    limit_ns: u64,
    pub(super) warn: fn(&str),
    pub(super) note: fn(&str),
    pub(super) gauge: RailGauge,
    /// `None` where the system does not report changes.
    pub(super) own: Option<OwnAddresses>,
    /// When reports of changes are taken next, ns.
    reports_ns: AtomicU64,
    begun: Instant,
    pub(super) peers: Peers<Peer>,
    pub(super) events: Mutex<Events>,
    /// Whether there are events, or rails that were made.
    ///
    /// Set after they were added.
    pub(super) has_events: AtomicBool,
    pub(super) driving: Mutex<Driving>,
    /// Links that last and have not taken the rest of a run.
    unsent: Mutex<Vec<(JobRank, Arc<Link>)>>,
    /// Whether there are such.
    ///
    /// Written by the holder of `unsent`.
    pub(super) has_unsent: AtomicBool,
    /// When something is due, ns; the end of time where nothing is.
    pub(super) due_ns: AtomicU64,
    pub(super) polls: AtomicU32,
    /// The member whose peer is read first in each poll.
    pub(super) chosen: AtomicUsize,
    /// Why a member makes no rails any more, by member.
    pub(super) failed: Mutex<Vec<Option<String>>>,
    pub(super) wakeup: OwnedFd,
    /// The position that was said with each offer, by its generation.
    #[cfg(test)]
    pub(super) said: Mutex<std::collections::BTreeMap<u64, u64>>,
}

/// The rail of a member that can carry the stream.
pub(super) fn first(peer: JobRank) -> RailId {
    RailId { peer, number: 0 }
}

impl Shared {
    /// What [`FailoverRails::new`](super::FailoverRails::new) says.
    pub(super) fn new(config: FailoverConfig) -> io::Result<Self> {
        let each = config.members.iter().enumerate();
        let further: Box<[Further]> = each
            .flat_map(|(member, config)| {
                (1..=config.further).map(move |number| Further { member, number })
            })
            .collect();
        let fits = further.len() < usize::from(MOST_RAILS);
        let has = |config: &MemberConfig| config.further < config.rails.most();
        if config.members.is_empty() || !fits || !config.members.iter().all(has) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let count = config.members.len();
        let (names, members): (Vec<_>, Vec<_>) = config
            .members
            .into_iter()
            .map(|member| (member.name, member.rails))
            .unzip();
        let gauge = RailGauge::new(config.rank, config.ranks, &names)?;
        Ok(Self {
            rank: config.rank,
            name: config.name,
            names: names.into(),
            members: members.into(),
            further,
            limit_ns: u64::try_from(config.limit.as_nanos()).unwrap_or(u64::MAX),
            warn: config.warn,
            note: config.note,
            gauge,
            own: OwnAddresses::new(config.addresses).ok(),
            reports_ns: AtomicU64::new(0),
            chosen: AtomicUsize::new(0),
            failed: Mutex::new(vec![None; count]),
            begun: Instant::now(),
            peers: Peers::new(config.ranks),
            events: Mutex::default(),
            has_events: AtomicBool::new(false),
            driving: Mutex::default(),
            unsent: Mutex::default(),
            has_unsent: AtomicBool::new(false),
            due_ns: AtomicU64::new(u64::MAX),
            polls: AtomicU32::new(0),
            wakeup: event()?,
            #[cfg(test)]
            said: Mutex::default(),
        })
    }

    /// Rails to a peer: that of the stream, and those of payloads.
    pub(super) fn rails(&self) -> u16 {
        // Fewer than `MOST_RAILS`.
        self.further.len() as u16 + 1
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Whether a peer at the other end of a link answers.
    fn answers(&self, peer: JobRank, link: &Link, limit_ns: u64) -> bool {
        let silence = self.silence(peer, link);
        // An answer takes as long as the path.
        silence
            .is_none_or(|vital| !vital.owed || vital.silent_ns < limit_ns.max(2 * vital.again_ns))
    }

    pub(super) fn peer(&self, rank: JobRank) -> &Peer {
        let members = self.members.len();
        let (peer, _) = self.peers.get_or_init(rank, || {
            let seed = u64::from(self.rank.0) << 32 | u64::from(rank.0);
            let lasts = self.members.iter().map(|rails| rails.lasts());
            Box::new(Peer {
                rank,
                state: Mutex::new(PeerState {
                    succession: Succession::new(self.rank < rank, lasts, self.limit_ns, seed),
                    links: (0..members).map(|_| None).collect(),
                    carrier: None,
                    asked: BTreeMap::new(),
                    doubted: BTreeSet::new(),
                    offering: BTreeSet::new(),
                    last: None,
                    is_refused: false,
                    is_warned: false,
                    due_ns: None,
                    why: vec![String::new(); members].into(),
                }),
            })
        });
        peer
    }

    pub(super) fn add(&self, add: impl FnOnce(&mut Events)) {
        add(&mut self.events.lock());
        self.has_events.store(true, Ordering::Release);
    }

    /// The same, and a thread that sleeps sees to it.
    pub(super) fn add_and_wake(&self, add: impl FnOnce(&mut Events)) {
        self.add(add);
        ring(&self.wakeup);
    }

    /// Looks for reports of changed addresses, if `now` or after some time.
    pub(super) fn take_reports(&self, now: bool) {
        let Some(own) = &self.own else {
            return;
        };
        if !now {
            let now_ns = self.now_ns();
            if now_ns < self.reports_ns.load(Ordering::Relaxed) {
                return;
            }
            self.reports_ns
                .store(now_ns + REPORTS_NS, Ordering::Relaxed);
        }
        if own.take_reports() {
            self.note_change();
        }
    }

    /// Addresses of this host have changed.
    pub(super) fn note_change(&self) {
        self.add(|events| events.has_changed = true);
    }

    pub(super) fn is_due(&self) -> bool {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        due_ns != u64::MAX && due_ns <= self.now_ns()
    }

    /// The carrier behind a rail of the channel's.
    pub(super) fn carrier(rail: &AnyRail) -> Option<&Arc<Carrier>> {
        rail.as_kind::<StreamRail>().map(|rail| &rail.0)
    }

    /// The rail of a member by the channel's number, above 0.
    pub(super) fn further(&self, number: u16) -> Option<Further> {
        let at = usize::from(number).checked_sub(1)?;
        self.further.get(at).copied()
    }

    /// The channel's number of a rail.
    pub(super) fn number(&self, member: usize, number: u16) -> Option<u16> {
        let its = Further { member, number };
        let at = self.further.iter().position(|further| *further == its)?;
        Some(at as u16 + 1)
    }

    /// A member's first rail to a peer has something: whether the channel reads it.
    ///
    /// If not, it is an offer, or the end.
    pub(super) fn looks_at(&self, member: usize, rank: JobRank) -> bool {
        let Some(peer) = self.peers.used(rank.0) else {
            return false;
        };
        let link = {
            let state = peer.state.lock();
            let Some(link) = &state.links[member] else {
                return false;
            };
            let carries = |carrier: &Arc<Carrier>| Arc::ptr_eq(&carrier.link, link);
            let carrier = state.carrier.as_ref().filter(|carrier| carries(carrier));
            if carrier.is_some_and(|carrier| !carrier.is_ended()) {
                return true;
            }
            let link = Arc::clone(link);
            if link.is_raw() {
                // The channel has not used it, or uses it no more, and nothing else comes.
                drop(state);
                self.add(|events| events.ended.push((rank, link)));
                return false;
            }
            link
        };
        match link.read_offer() {
            Read::Offer(heard) => self.hear(rank, &link, heard),
            Read::End => self.add(|events| events.ended.push((rank, link))),
            Read::Bytes(_) | Read::Nothing => {}
        }
        false
    }

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
            let mut link = Link::new(member, new.rail, address, rails.lasts(), new.incarnation);
            let has_address = self.has_address(&link);
            let is_doubted = state.doubted.remove(&member);
            if !has_address && is_doubted {
                // It was connected once more: the address works.
                link.address = None;
            }
            let is_there = has_address || is_doubted;
            let lasts = link.lasts;
            state.links[member] = Some(Arc::new(link));
            if is_there {
                state.why[member].clear();
                state.succession.made(member, self.now_ns());
            } else if lasts {
                // It is asked whether the address works again.
                state.succession.ended(member, self.now_ns());
            } else {
                // The address was lost since the peer answered, as far as is known.
                state.doubted.insert(member);
                self.end_link(peer, &mut state, member, None);
            }
        }
        drop(state);
        self.add(|events| _ = events.touched.insert(peer.rank.0));
    }

    /// Sees to what threads have found.
    pub(super) fn see(self: &Arc<Self>, driving: &mut Driving, received: &dyn Fn(RailId) -> u64) {
        self.has_events.store(false, Ordering::Release);
        let mut touched = BTreeSet::new();
        let (heard, ended) = {
            let mut events = self.events.lock();
            touched.append(&mut events.touched);
            driving.has_changed |= core::mem::take(&mut events.has_changed);
            (
                core::mem::take(&mut events.heard),
                core::mem::take(&mut events.ended),
            )
        };
        if driving.has_changed && driving.list_ns <= self.now_ns() {
            self.leave_addresses(driving, &mut touched);
        }
        let now_ns = self.now_ns();
        for (rank, link) in ended {
            let peer = self.peer(rank);
            let mut state = peer.state.lock();
            if is_of(&state, &link) {
                let carrier = state.carrier.as_ref();
                let carries = carrier.is_some_and(|carrier| Arc::ptr_eq(&carrier.link, &link));
                // The peer drops one that has carried the stream when another one does.
                let is_loss = carries || !link.is_raw();
                self.end_link(
                    peer,
                    &mut state,
                    link.member,
                    is_loss.then_some(Loss::Ended),
                );
                touched.insert(rank.0);
            }
        }
        for (rank, link, heard) in &heard {
            let (rank, heard) = (*rank, *heard);
            let mut state = self.peer(rank).state.lock();
            if is_of(&state, link) {
                let Heard {
                    generation,
                    received,
                } = heard;
                let member = link.member;
                state.asked.remove(&member);
                state.succession.heard(member, generation, received, now_ns);
                touched.insert(rank.0);
            }
        }
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
        for rank in touched {
            self.drive(driving, self.peer(JobRank(rank)), received);
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

    /// Does the next steps of a peer.
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
            self.count_loss(peer.rank, member, Loss::Silent);
        }
        while let Some(act) = state.succession.poll_act() {
            match act {
                Act::Ask(member) => self.ask(peer, &mut state, member),
                Act::Drop(member) => self.drop_link(peer, &mut state, member),
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
            if link.lasts && link.probe().is_err() {
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
                !vital.owed || vital.silent_ns + HEARD_BEFORE_NS < asked_for_ns
            });
            if has_answered && self.has_address(link) {
                there.push(*member);
            }
        }
        for member in there {
            state.asked.remove(&member);
            state.why[member].clear();
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
            self.report_change(peer.rank, state, [before, member]);
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

    /// Reports a failure to the user, and when it is over.
    fn report_change(&self, peer: JobRank, state: &mut PeerState, [from, to]: [usize; 2]) {
        let has_failed = to > from;
        let is_over = to < from && core::mem::take(&mut state.is_warned);
        state.is_warned |= has_failed;
        // One of both ranks does.
        if self.rank > peer || !(has_failed || is_over) {
            return;
        }
        let rank = self.rank;
        let [from, to] = [from, to].map(|member| &self.names[member]);
        (self.warn)(&match has_failed {
            true => format!(
                "messages between rank {rank} and rank {peer} go over {to} now, as {from} has failed"
            ),
            false => format!("messages between rank {rank} and rank {peer} go over {to} again"),
        });
    }

    /// Writes more of the rests of runs.
    pub(super) fn push_unsent(&self) {
        if !self.has_unsent.load(Ordering::Acquire) {
            return;
        }
        let mut unsent = self.unsent.lock();
        unsent.retain(|(peer, link)| match link.push() {
            Ok(false) => true,
            Ok(true) => {
                let waits = link.waits_for_room.load(Ordering::SeqCst);
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

    /// Why no member reaches a peer.
    fn given_up(&self, peer: JobRank, state: &PeerState) -> Made<AnyRail> {
        let each = self.names.iter().zip(&state.why);
        let each = each.map(|(name, why)| match why.as_str() {
            "" => format!("{name}: nothing is acknowledged"),
            why => format!("{name}: {why}"),
        });
        let (at, why) = (self.rank, each.collect::<Vec<_>>().join("; "));
        Made::Unreachable(first(peer), AmError::Unreachable { at, peer, why })
    }

    pub(super) fn want(&self, id: RailId) {
        if id.peer.index() >= self.peers.count() || id.peer == self.rank {
            return;
        }
        if id.number == 0 {
            self.peer(id.peer)
                .state
                .lock()
                .succession
                .want(self.now_ns());
            self.add_and_wake(|events| _ = events.touched.insert(id.peer.0));
        } else if let Some(Further { member, number }) = self.further(id.number) {
            self.members[member].want(RailId { number, ..id });
        }
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

/// Whether a link is the one of its member.
pub(super) fn is_of(state: &PeerState, link: &Arc<Link>) -> bool {
    let its = state.links[link.member].as_ref();
    its.is_some_and(|its| Arc::ptr_eq(its, link))
}

impl Hearing for Shared {
    fn silence(&self, peer: JobRank, link: &Link) -> Option<Vital> {
        self.members[link.member].silence(peer, &link.rail)
    }

    fn hear(&self, peer: JobRank, link: &Arc<Link>, heard: Heard) {
        let link = Arc::clone(link);
        // Another thread may sleep, and this one may go on to compute.
        self.add_and_wake(|events| events.heard.push((peer, link, heard)));
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
