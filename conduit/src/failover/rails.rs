//! The rails of a rank over several members.

mod hearing;

use super::link::{Heard, Link, Read};
use super::member::{AnyRail, Member};
use super::stream_rail::{Carrier, Hearing, StreamRail};
use super::succession::{Act, PATIENCE_NS, Succession};
use crate::attendant::{event, ring};
use crate::channel::rail::{Look, MOST_RAILS, Made, NewRail, Rail, RailId, Rails, Ready};
use crate::connections::GateCounts;
use crate::datagrams::Datagrams;
use crate::peers::Peers;
use argonet_am::AmError;
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How often offers that a rail has not taken are written, members looked at that were silent, and
/// the channel is reminded of an end that it has not read.
const LOOK_NS: u64 = 20_000_000;

/// A member that was silent answers if something was heard in so long.
const HEARD_NS: u64 = 100_000_000;

/// Before a further rail is asked for again that could not be made.
const AGAIN_NS: u64 = 2_000_000_000;

/// One of the members.
pub struct MemberConfig {
    /// As the user names it, such as `tcp:eth0`.
    pub name: String,
    /// Its rails.
    pub rails: Box<dyn Member<Rail = AnyRail>>,
    /// Rails of it to each peer, beside the one that can carry the stream, that carry payloads.
    pub further: u16,
}

/// How [`FailoverRails`] are set up.
pub struct FailoverConfig {
    /// This rank.
    pub rank: JobRank,
    /// How many ranks the job has.
    pub ranks: u32,
    /// Name of the conduit.
    pub name: &'static str,
    /// The members, the best one first; the same on all ranks.
    pub members: Vec<MemberConfig>,
    /// Informs the user that the stream to a peer goes over another member.
    pub warn: fn(&str),
}

/// What failover knows of a peer.
struct Peer {
    rank: JobRank,
    state: Mutex<PeerState>,
}

struct PeerState {
    succession: Succession,
    /// By member.
    links: Box<[Option<Arc<Link>>]>,
    carrier: Option<Arc<Carrier>>,
    /// Members that last, were silent, and are asked whether they are there again.
    asked: BTreeSet<usize>,
    /// Members whose rails have not taken all of an offer.
    offering: BTreeSet<usize>,
    /// Why a member has no rail, by member.
    why: Box<[String]>,
}

/// What threads have found, and the next call of [`Rails::next`] sees to.
#[derive(Default)]
struct Events {
    heard: Vec<(JobRank, Arc<Link>, Heard)>,
    ended: Vec<(JobRank, Arc<Link>)>,
    touched: BTreeSet<u32>,
    /// Streams whose carriers have ended without a read of the channel.
    cut: BTreeSet<u32>,
}

/// What the thread that drives has for itself.
#[derive(Default)]
struct Driving {
    made: VecDeque<Made<AnyRail>>,
    /// Peers for which something is due, and when.
    due: BTreeSet<(u64, u32)>,
    /// Further rails that are asked for again.
    again: Vec<(u64, RailId)>,
}

/// A rail of a member, and the number by which the channel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Further {
    member: usize,
    number: u16,
}

struct Shared {
    rank: JobRank,
    name: &'static str,
    names: Box<[String]>,
    members: Box<[Box<dyn Member<Rail = AnyRail>>]>,
    /// That of the channel's number 1 comes first.
    further: Box<[Further]>,
    warn: fn(&str),
    begun: Instant,
    peers: Peers<Peer>,
    events: Mutex<Events>,
    /// Whether there are events, or rails that were made.
    ///
    /// Set after they were added.
    has_events: AtomicBool,
    driving: Mutex<Driving>,
    /// Links that last and have not taken the rest of a run.
    unsent: Mutex<Vec<(JobRank, Arc<Link>)>>,
    /// Whether there are such.
    ///
    /// Written by the holder of `unsent`.
    has_unsent: AtomicBool,
    /// When something is due, ns; the end of time where nothing is.
    due_ns: AtomicU64,
    polls: AtomicU32,
    wakeup: OwnedFd,
}

// spec B1: traffic goes over several rails, and over the rest where one fails.
/// Rails of several members, of which one carries the stream to a peer at a time.
pub struct FailoverRails(Arc<Shared>);

impl FailoverRails {
    /// Those of the members.
    ///
    /// # Errors
    /// No member, or more rails to a peer than there can be, as [`io::ErrorKind::InvalidInput`]; or
    /// the system gives no descriptor.
    pub fn new(config: FailoverConfig) -> io::Result<Self> {
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
        let (names, members): (Vec<_>, Vec<_>) = config
            .members
            .into_iter()
            .map(|member| (member.name, member.rails))
            .unzip();
        Ok(Self(Arc::new(Shared {
            rank: config.rank,
            name: config.name,
            names: names.into(),
            members: members.into(),
            further,
            warn: config.warn,
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
        })))
    }

    /// Rails to a peer: that of the stream, and those of payloads.
    #[must_use]
    pub fn rails(&self) -> u16 {
        // Fewer than `MOST_RAILS`.
        self.0.further.len() as u16 + 1
    }
}

/// The rail of a member that can carry the stream.
fn first(peer: JobRank) -> RailId {
    RailId { peer, number: 0 }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn peer(&self, rank: JobRank) -> &Peer {
        let members = self.members.len();
        let (peer, _) = self.peers.get_or_init(rank, || {
            let seed = u64::from(self.rank.0) << 32 | u64::from(rank.0);
            let lasts = self.members.iter().map(|rails| rails.lasts());
            Box::new(Peer {
                rank,
                state: Mutex::new(PeerState {
                    succession: Succession::new(self.rank < rank, lasts, seed),
                    links: (0..members).map(|_| None).collect(),
                    carrier: None,
                    asked: BTreeSet::new(),
                    offering: BTreeSet::new(),
                    why: vec![String::new(); members].into(),
                }),
            })
        });
        peer
    }

    fn add(&self, add: impl FnOnce(&mut Events)) {
        add(&mut self.events.lock());
        self.has_events.store(true, Ordering::Release);
    }

    /// The same, and a thread that sleeps sees to it.
    fn add_and_wake(&self, add: impl FnOnce(&mut Events)) {
        self.add(add);
        ring(&self.wakeup);
    }

    fn is_due(&self) -> bool {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        due_ns != u64::MAX && due_ns <= self.now_ns()
    }

    /// The carrier behind a rail of the channel's.
    fn carrier(rail: &AnyRail) -> Option<&Arc<Carrier>> {
        rail.as_kind::<StreamRail>().map(|rail| &rail.0)
    }

    /// The rail of a member by the channel's number, above 0.
    fn further(&self, number: u16) -> Option<Further> {
        let at = usize::from(number).checked_sub(1)?;
        self.further.get(at).copied()
    }

    /// The channel's number of a rail.
    fn number(&self, member: usize, number: u16) -> Option<u16> {
        let its = Further { member, number };
        let at = self.further.iter().position(|further| *further == its)?;
        Some(at as u16 + 1)
    }

    /// A member's first rail to a peer has something: whether the channel reads it.
    ///
    /// If not, it is an offer, or the end.
    fn looks_at(&self, member: usize, rank: JobRank) -> bool {
        let Some(peer) = self.peers.used(rank.0) else {
            return false;
        };
        let link = {
            let state = peer.state.lock();
            let Some(link) = &state.links[member] else {
                return false;
            };
            let carries = |carrier: &Arc<Carrier>| Arc::ptr_eq(&carrier.link, link);
            if state.carrier.as_ref().is_some_and(carries) {
                return true;
            }
            Arc::clone(link)
        };
        match link.read_offer() {
            Read::Offer(heard) => self.hear(rank, &link, heard),
            Read::End => self.add(|events| events.ended.push((rank, link))),
            Read::Bytes(_) | Read::Nothing => {}
        }
        false
    }

    /// Takes what members have made.
    fn take_made(&self, driving: &mut Driving) {
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
                            driving.made.push_back(Made::Rail(NewRail { id, ..new }));
                        }
                    },
                    Made::Unreachable(id, _) if id.peer.index() >= self.peers.count() => {}
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
        // The peer has found that the one before has ended.
        self.end_link(peer, &mut state, member);
        if rails.open(new.id, &new.rail).is_err() {
            new.rail.shut();
            state.succession.ended(member, self.now_ns());
        } else {
            let link = Link::new(member, new.rail, rails.lasts(), new.incarnation);
            state.links[member] = Some(Arc::new(link));
            state.succession.made(member, self.now_ns());
        }
        drop(state);
        self.add(|events| _ = events.touched.insert(peer.rank.0));
    }

    /// A member's first rail to a peer is of no use any more.
    fn end_link(&self, peer: &Peer, state: &mut PeerState, member: usize) {
        let Some(link) = state.links[member].take() else {
            return;
        };
        state.offering.remove(&member);
        self.members[member].close(first(peer.rank), &link.rail);
        let carries = |carrier: &Arc<Carrier>| Arc::ptr_eq(&carrier.link, &link);
        if let Some(carrier) = state.carrier.as_ref().filter(|carrier| carries(carrier)) {
            carrier.end();
            self.cut(peer.rank);
        }
        state.succession.ended(member, self.now_ns());
    }

    /// Sees to what threads have found.
    fn see(self: &Arc<Self>, driving: &mut Driving, received: &dyn Fn(RailId) -> u64) {
        self.has_events.store(false, Ordering::Release);
        let mut touched = BTreeSet::new();
        let (heard, ended) = {
            let mut events = self.events.lock();
            touched.append(&mut events.touched);
            (
                core::mem::take(&mut events.heard),
                core::mem::take(&mut events.ended),
            )
        };
        let now_ns = self.now_ns();
        for (rank, link) in ended {
            let peer = self.peer(rank);
            let mut state = peer.state.lock();
            if is_of(&state, &link) {
                self.end_link(peer, &mut state, link.member);
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
            self.want(id);
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
        let due_ns = [again, due].into_iter().flatten().min();
        self.due_ns
            .store(due_ns.unwrap_or(u64::MAX), Ordering::Relaxed);
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
        self.look_at_asked(peer.rank, &mut state, now_ns);
        self.push_offers(peer, &mut state);
        let PeerState {
            succession, links, ..
        } = &mut *state;
        succession.tick(now_ns, |member| {
            let link = links[member].as_deref();
            link.is_some_and(|link| self.answers(peer.rank, link, PATIENCE_NS))
        });
        while let Some(act) = state.succession.poll_act() {
            match act {
                Act::Ask(member) if state.links[member].is_some() => {
                    state.asked.insert(member);
                }
                Act::Ask(member) => self.members[member].want(first(peer.rank)),
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
                    state = peer.state.lock();
                    if link.offer(generation, position).is_ok() {
                        state.offering.insert(member);
                    } else if is_of(&state, &link) {
                        self.end_link(peer, &mut state, member);
                    }
                }
                Act::Carry(member, generation, position) => {
                    match state.links[member].clone() {
                        Some(link) => {
                            self.carry(driving, peer, &mut state, link, (generation, position));
                        }
                        // It has ended meanwhile, and the channel waits for it.
                        None => state.succession.want(now_ns),
                    }
                }
                Act::GiveUp => driving.made.push_back(self.given_up(peer.rank, &state)),
            }
        }
        self.push_offers(peer, &mut state);
        // The channel may not have read the end when it was informed, as another thread read.
        let is_cut = self.events.lock().cut.contains(&peer.rank.0);
        let looks = is_cut || !state.asked.is_empty() || !state.offering.is_empty();
        let look = looks.then_some(now_ns + LOOK_NS);
        let due = [state.succession.poll_timeout(), look]
            .into_iter()
            .flatten();
        driving.due.retain(|(_, rank)| *rank != peer.rank.0);
        driving
            .due
            .extend(due.min().map(|at_ns| (at_ns, peer.rank.0)));
    }

    /// Members that were silent and answer are there again.
    fn look_at_asked(&self, rank: JobRank, state: &mut PeerState, now_ns: u64) {
        let asked = state.asked.iter().copied();
        let there: Vec<usize> = asked
            .filter(|member| {
                let link = state.links[*member].as_deref();
                link.is_some_and(|link| self.answers(rank, link, HEARD_NS))
            })
            .collect();
        for member in there {
            state.asked.remove(&member);
            state.succession.made(member, now_ns);
        }
    }

    /// Writes more of offers.
    fn push_offers(&self, peer: &Peer, state: &mut PeerState) {
        for member in state.offering.clone() {
            let pushed = state.links[member].as_deref().map(Link::push);
            match pushed {
                Some(Ok(false)) => {}
                Some(Err(_)) => self.end_link(peer, state, member),
                None | Some(Ok(true)) => _ = state.offering.remove(&member),
            }
        }
    }

    /// Nothing more is offered over a member's rail, which ends unless it lasts.
    fn drop_link(&self, peer: &Peer, state: &mut PeerState, member: usize) {
        if let Some(link) = state.links[member].take_if(|link| !link.lasts) {
            state.offering.remove(&member);
            self.members[member].close(first(peer.rank), &link.rail);
            state.succession.closed(member);
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
        link.begin_stream();
        let hearing = Arc::downgrade(self);
        let carrier = Arc::new(Carrier::new(peer.rank, link, generation, hearing));
        if let Some(before) = state.carrier.replace(Arc::clone(&carrier)) {
            before.end();
            if before.link.member != member && self.rank < peer.rank {
                let (rank, to) = (self.rank, peer.rank);
                let [from, now] = [before.link.member, member].map(|at| &self.names[at]);
                (self.warn)(&format!(
                    "messages between ranks {rank} and {to} go over {now} now, over {from} until now"
                ));
            }
        }
        driving.made.push_back(Made::Rail(NewRail {
            id: first(peer.rank),
            rail: AnyRail::new(StreamRail(carrier)),
            incarnation: generation,
            received,
        }));
    }

    /// Why no member reaches a peer.
    fn given_up(&self, peer: JobRank, state: &PeerState) -> Made<AnyRail> {
        let each = self.names.iter().zip(&state.why);
        let each: Vec<String> = each.map(|(name, why)| format!("{name}: {why}")).collect();
        let (at, why) = (self.rank, each.join("; "));
        Made::Unreachable(first(peer), AmError::Unreachable { at, peer, why })
    }

    fn want(&self, id: RailId) {
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

    /// The channel does not use the stream's rail any more.
    fn close_stream(&self, carrier: &Arc<Carrier>) {
        carrier.end();
        let peer = self.peer(carrier.peer);
        let mut state = peer.state.lock();
        let is_current = |current: &Arc<Carrier>| Arc::ptr_eq(current, carrier);
        if state.carrier.as_ref().is_some_and(is_current) {
            state.carrier = None;
            if carrier.link.lasts {
                state.succession.lost(carrier.generation, self.now_ns());
            } else if is_of(&state, &carrier.link) {
                self.end_link(peer, &mut state, carrier.link.member);
            }
        } else if is_of(&state, &carrier.link) {
            // The stream has another one.
            self.drop_link(peer, &mut state, carrier.link.member);
        }
        drop(state);
        self.add_and_wake(|events| {
            events.cut.remove(&peer.rank.0);
            events.touched.insert(peer.rank.0);
        });
    }
}

/// Whether a link is the one of its member.
fn is_of(state: &PeerState, link: &Arc<Link>) -> bool {
    let its = state.links[link.member].as_ref();
    its.is_some_and(|its| Arc::ptr_eq(its, link))
}

impl Rails for FailoverRails {
    type Rail = AnyRail;

    fn name(&self) -> &'static str {
        self.0.name
    }

    fn most(&self) -> u16 {
        self.rails()
    }

    fn want(&self, id: RailId) {
        self.0.want(id);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<AnyRail>> {
        let shared = &self.0;
        // Another thread does the same, perhaps in the middle of it.
        let mut driving = shared.driving.try_lock()?;
        if driving.made.is_empty() {
            shared.take_made(&mut driving);
            shared.see(&mut driving, received);
        }
        let made = driving.made.pop_front();
        if !driving.made.is_empty() {
            shared.has_events.store(true, Ordering::Release);
        }
        made
    }

    fn open(&self, id: RailId, rail: &AnyRail) -> io::Result<()> {
        match self.0.further(id.number) {
            // Members' first rails are open while they are there.
            None => Ok(()),
            Some(Further { member, number }) => {
                self.0.members[member].open(RailId { number, ..id }, rail)
            }
        }
    }

    fn close(&self, id: RailId, rail: &AnyRail) {
        match (Shared::carrier(rail), self.0.further(id.number)) {
            (Some(carrier), _) => self.0.close_stream(carrier),
            (None, Some(Further { member, number })) => {
                self.0.members[member].close(RailId { number, ..id }, rail);
            }
            (None, None) => rail.shut(),
        }
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        self.0.polls.fetch_add(1, Ordering::Relaxed);
        let mut look = Look {
            first: None,
            all: false,
        };
        for rails in &self.0.members {
            let its = rails.begin_poll(false);
            look.first = look.first.or(its.first);
            look.all |= its.all;
        }
        look.all |= self.0.has_events.load(Ordering::Acquire);
        look.all |= self.0.has_unsent.load(Ordering::Acquire);
        look
    }

    fn polls(&self) -> u32 {
        self.0.polls.load(Ordering::Relaxed)
    }

    fn heard(&self, peer: JobRank, rail: &AnyRail, asleep: &dyn Fn() -> bool) {
        if let Some(carrier) = Shared::carrier(rail) {
            let Link { member, rail, .. } = &*carrier.link;
            self.0.members[*member].heard(peer, rail, asleep);
        }
    }

    fn cool(&self, peer: JobRank) {
        self.0.members.iter().for_each(|rails| rails.cool(peer));
    }

    fn ready(&self, found: &mut Ready) {
        let shared = &*self.0;
        shared.push_unsent();
        for (member, rails) in shared.members.iter().enumerate() {
            let mut its = Ready::new();
            rails.ready(&mut its);
            for id in its.rails() {
                let number = match id.number {
                    0 => shared.looks_at(member, id.peer).then_some(0),
                    number => shared.number(member, number),
                };
                if let Some(number) = number {
                    // What finds no room is found again.
                    found.add(RailId { number, ..*id });
                }
            }
            if its.has_made() {
                found.add_made();
            }
        }
        if shared.has_events.load(Ordering::Acquire) || shared.is_due() {
            for rank in &shared.events.lock().cut {
                found.add(first(JobRank(*rank)));
            }
            found.add_made();
        }
    }

    fn has_ready(&self) -> bool {
        let shared = &*self.0;
        shared.push_unsent();
        let mut members = shared.members.iter();
        shared.has_events.load(Ordering::Acquire)
            || shared.is_due()
            || members.any(|rails| rails.has_ready())
    }

    fn arm(&self) {
        self.0.members.iter().for_each(|rails| rails.arm());
    }

    fn wait_for_room(&self, id: RailId, rail: &AnyRail, waits: bool) {
        let (member, number, rail) = match (Shared::carrier(rail), self.0.further(id.number)) {
            (Some(carrier), _) => {
                let link = &*carrier.link;
                link.waits_for_room.store(waits, Ordering::Relaxed);
                if link.has_unsent() {
                    return;
                }
                (link.member, 0, &link.rail)
            }
            (None, Some(Further { member, number })) => (member, number, rail),
            (None, None) => return,
        };
        self.0.members[member].wait_for_room(RailId { number, ..id }, rail, waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        let shared = &*self.0;
        let due_ns = shared.due_ns.load(Ordering::Relaxed);
        let due = (due_ns != u64::MAX)
            .then(|| Duration::from_nanos(due_ns.saturating_sub(shared.now_ns())));
        let timeout = [timeout, due].into_iter().flatten().min();
        let mut wakes = vec![shared.wakeup.as_fd()];
        let mut sleeps = !shared.has_events.load(Ordering::Acquire);
        for rails in &shared.members {
            sleeps &= rails.begin_sleep(&mut wakes);
        }
        if sleeps {
            let each = wakes.iter();
            let mut each: Vec<PollFd<'_>> = each
                .map(|wake| PollFd::from_borrowed_fd(*wake, PollFlags::IN))
                .collect();
            let timeout = timeout.map(|time| Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: time.subsec_nanos().into(),
            });
            // Whatever it was, the caller looks again.
            let _ = poll(&mut each, timeout.as_ref());
        }
        for rails in &shared.members {
            rails.end_sleep();
        }
    }

    fn wake(&self) {
        ring(&self.0.wakeup);
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.0.wakeup, &mut [0; 8]);
        self.0
            .members
            .iter()
            .for_each(|rails| rails.forget_wakeups());
    }

    fn came(&self) -> u64 {
        self.0.members.iter().map(|rails| rails.came()).sum()
    }

    fn callers(&self) -> Option<GateCounts> {
        let each = self.0.members.iter().map(|rails| rails.callers());
        each.sum()
    }

    fn datagrams(&self) -> Option<Datagrams> {
        let mut each = self.0.members.iter();
        each.find_map(|rails| rails.datagrams())
    }
}
