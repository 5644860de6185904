//! What a rank's threads share of rails over several members: peers, what was found, and the steps
//! that follow from it.

use super::config::{FailoverConfig, MemberConfig};
use super::gauge::{Loss, RailGauge};
use super::link::{Heard, Link, Read};
use super::member::Member;
use super::own_addresses::OwnAddresses;
use super::stream_rail::{Carrier, Hearing, StreamRail};
use super::succession::Succession;
use crate::attendant::{event, ring};
use crate::channel::AnyRail;
use crate::channel::rail::{Look, MOST_RAILS, Made, RailId, Vital};
use crate::peers::Peers;
use argonet_base::JobRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How often reports of changed addresses are taken by a rank that does not sleep.
const REPORTS_NS: u64 = 10_000_000;

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
    /// Members whose rails have not taken all of an offer.
    pub(super) offering: BTreeSet<usize>,
    /// The member that carried the stream last.
    pub(super) last: Option<usize>,
    /// The channel uses no stream to this peer any more.
    pub(super) is_refused: bool,
    /// The user knows of a failure.
    pub(super) is_warned: bool,
    /// When something is due for it, as `Driving::due` has it.
    pub(super) due_ns: Option<u64>,
    /// Why a member has no rail, by member.
    pub(super) why: Box<[String]>,
    /// How this rank lost each member's rail since it was there last.
    pub(super) losses: Box<[Option<Loss>]>,
}

impl PeerState {
    /// A member is there.
    pub(super) fn forget_loss(&mut self, member: usize) {
        self.why[member].clear();
        self.losses[member] = None;
    }
}

/// What threads have found, and the next call of [`Rails::next`] sees to.
#[derive(Default)]
pub(super) struct Events {
    pub(super) heard: Vec<(JobRank, Arc<Link>, Heard)>,
    pub(super) ended: Vec<(JobRank, Arc<Link>)>,
    pub(super) touched: BTreeSet<u32>,
    /// Addresses of this host have changed.
    pub(super) has_changed: bool,
    /// Streams whose carriers have ended without a read of the channel.
    pub(super) cut: BTreeSet<u32>,
}

impl Events {
    /// A link has ended; it is found again until that was seen to.
    fn end(&mut self, peer: JobRank, link: Arc<Link>) {
        if !self.ended.iter().any(|(_, its)| Arc::ptr_eq(its, &link)) {
            self.ended.push((peer, link));
        }
    }

    /// All of them but for streams whose ends the channel has not read.
    pub(super) fn take(&mut self) -> Self {
        let cut = core::mem::take(&mut self.cut);
        let taken = core::mem::take(self);
        self.cut = cut;
        taken
    }
}

/// What the thread that drives has for itself.
#[derive(Default)]
pub(super) struct Driving {
    pub(super) made: VecDeque<Made<AnyRail>>,
    /// What the user is warned of.
    pub(super) warnings: Vec<String>,
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
    /// The coarse clock at the last poll.
    tick: AtomicU64,
    /// The next poll looks at all members.
    pub(super) looks_around: AtomicBool,
    /// The next look for rails that have something is at all members.
    pub(super) asks_others: AtomicBool,
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
        let own = OwnAddresses::new(config.addresses);
        if let Err(error) = &own {
            (config.warn)(&format!(
                "rank {} hears of no changes of this host's interfaces ({error}): one that goes down is found by silence alone",
                config.rank
            ));
        }
        let own = own.ok();
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
            own,
            reports_ns: AtomicU64::new(0),
            chosen: AtomicUsize::new(0),
            tick: AtomicU64::new(0),
            looks_around: AtomicBool::new(true),
            asks_others: AtomicBool::new(true),
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
                    offering: BTreeSet::new(),
                    last: None,
                    is_refused: false,
                    is_warned: false,
                    due_ns: None,
                    why: vec![String::new(); members].into(),
                    losses: vec![None; members].into(),
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

    /// Whether the system's coarse clock, of some milliseconds, went on since the last call.
    #[inline]
    pub(super) fn has_ticked(&self) -> bool {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        // Some bits of it differ from tick to tick.
        let now = (now.tv_sec as u64) << 30 ^ now.tv_nsec as u64;
        let before = self.tick.load(Ordering::Relaxed);
        if now != before {
            self.tick.store(now, Ordering::Relaxed);
        }
        now != before
    }

    /// Begins a poll of all members but one, whose look is this.
    ///
    /// The first in the list that has a peer to be read first is chosen.
    pub(super) fn look_at_others(&self, chosen: usize, look: &mut Look) {
        let mut first = look.first.map(|peer| (chosen, peer));
        for (member, rails) in self.members.iter().enumerate() {
            if member == chosen {
                continue;
            }
            let its = rails.begin_poll(false);
            look.all |= its.all;
            if let Some(peer) = its.first
                && first.is_none_or(|(best, _)| member < best)
            {
                first = Some((member, peer));
            }
        }
        if let Some((member, peer)) = first {
            look.first = Some(peer);
            let before = self.chosen.swap(member, Ordering::Relaxed);
            if before != member {
                // It relies on reads of its peer no more.
                self.members[before].arm();
            }
        }
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
                self.add(|events| events.end(rank, link));
                return false;
            }
            link
        };
        match link.read_offer() {
            Read::Offer(heard) => self.hear(rank, &link, heard),
            Read::End => self.add(|events| events.end(rank, link)),
            Read::Bytes(_) | Read::Nothing => {}
        }
        false
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
                self.add(|events| events.end(*peer, Arc::clone(link)));
                false
            }
        });
        self.has_unsent.store(!unsent.is_empty(), Ordering::Release);
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
