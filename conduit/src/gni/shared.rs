//! State of a rank's virtual connections.

use super::greeting::{GREETING_BYTES, Secret};
use super::one_sided::OneSidedPart;
use super::{MailboxRail, MailboxRailsConfig};
use crate::channel::rail::{Look, Made, NewRail, OneSided, RailId, Ready};
use argonet_am::AmError;
use argonet_base::{JobRank, SegmentOffset};
use argonet_nic::gni::{
    Access, EventData, Exchanged, Gni, GniError, Mailbox, MemHandle, NicAddress, Shape,
};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Tags of messages: bytes of the rail, and its end.
pub(super) const DATA: u8 = 1;
pub(super) const END: u8 = 2;

/// Events of arriving messages that a rank's queue keeps; where there are more, all mailboxes are
/// looked at.
pub(super) const ARRIVALS: u32 = 512;

/// Events of endpoints, which short messages do not make.
const OWN_EVENTS: u32 = 16;

/// Queues and registrations of a rank: those above, of one-sided operations, of the segment.
pub(super) const QUEUES: u32 = 3;
pub(super) const REGISTRATIONS: u32 = 2;

/// Place of the table at which a rank registers its mailboxes.
const MAILBOXES_INDEX: u32 = 1;

/// Wildcard datagrams that a rank has posted.
pub(super) const WILDCARDS: u64 = 8;

/// The bit of a datagram's number that makes it one of these.
const WILDCARD: u64 = 1 << 63;

/// A greeting that was not exchanged for so long is posted once more.
const GREET_AGAIN: Duration = Duration::from_millis(50);

/// Events, and datagrams, that one look takes.
const MOST_EVENTS: u32 = 256;
const MOST_DATAGRAMS: u32 = 32;

/// In so many polls datagrams are looked for once though nothing else has come.
const LOOK_EVERY: u32 = 32;

/// No rank.
const NONE: u32 = u32::MAX;

/// A virtual connection.
pub(super) struct Vc<N: Gni> {
    pub(super) peer: JobRank,
    pub(super) endpoint: N::Endpoint,
    /// Bytes of the first message that were read.
    pub(super) begin: Mutex<usize>,
    shut: AtomicBool,
    /// Why it cannot go on, if the peer has not just ended.
    fault: Mutex<Option<String>>,
}

impl<N: Gni> Vc<N> {
    /// Whether nothing more is read or written.
    pub(super) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed)
    }
}

/// How far a peer and this rank are connected.
enum Link<N: Gni> {
    /// Neither has asked.
    Unused,
    /// This rank has greeted the peer, or is about to.
    Asked,
    Open(Arc<Vc<N>>),
    /// There is no connection, nor will there be.
    Lost(String),
}

struct Peer<N: Gni> {
    link: Link<N>,
    /// What says to the peer where its mailbox is, once that was needed.
    greeting: Option<Box<[u8; GREETING_BYTES]>>,
    /// The peer has it, or will have.
    has_greeted: bool,
    /// The channel uses the rail.
    is_open: bool,
    /// It is in `State::listed`.
    is_listed: bool,
}

/// What the channel learns of a peer.
enum News {
    Rail,
    Lost(String),
}

struct State<N: Gni> {
    peers: Box<[Peer<N>]>,
    news: VecDeque<(JobRank, News)>,
    /// Peers whose rails may have something to read, in turn.
    listed: VecDeque<JobRank>,
    /// Peers that are to be greeted as soon as the interface takes that.
    ungreeted: VecDeque<JobRank>,
    /// Peers whose answer to the greeting has not come, and since when.
    greeted: Vec<(JobRank, Duration)>,
    /// Peers that are to learn of the end of the rail.
    owed_ends: Vec<JobRank>,
    /// Peers for whose credits the channel waits.
    without_room: Vec<JobRank>,
    /// Peers that the channel wants and that have left: when it learns that they are lost.
    ///
    /// A job that ends has ended by then.
    gone: VecDeque<(Duration, JobRank)>,
}

pub(super) struct Shared<N: Gni> {
    rank: JobRank,
    first: JobRank,
    pub(super) nic: N,
    shape: Shape,
    pub(super) message_bytes: usize,
    /// This rank's mailboxes.
    mailboxes: MemHandle,
    mailbox_bytes: u64,
    /// Messages that have come.
    arrivals: N::Queue,
    /// Of endpoints.
    own: N::Queue,
    secret: Secret,
    pub(super) one_sided: OneSidedPart<N>,
    silence: Duration,
    begun: Instant,
    /// The peer of which something came last.
    ///
    /// A hint.
    hot: AtomicU32,
    polls: AtomicU32,
    /// `State` has something to be looked at.
    ///
    /// A hint: each look sets it.
    attention: AtomicBool,
    woken: AtomicBool,
    strangers: AtomicU64,
    state: Mutex<State<N>>,
}

impl<N: Gni> Shared<N> {
    pub(super) fn new(config: MailboxRailsConfig<N>) -> Result<Self, GniError> {
        let MailboxRailsConfig {
            rank,
            peers: (first, count),
            nic,
            shape,
            secret,
            directory,
            reached,
            silence,
        } = config;
        if rank.0.wrapping_sub(first.0) >= count {
            let peer = NicAddress { rank, nic: 0 };
            return Err(GniError::BadPeer { rank, peer });
        }
        let secret = Secret::new(secret);
        let arrivals = nic.create_queue(ARRIVALS.min(nic.limits().events))?;
        let own = nic.create_queue(OWN_EVENTS)?;
        let mailbox_bytes = nic.mailbox_bytes(shape)?;
        let (buffers, len_bytes) = nic.buffers();
        let needed = super::mailboxes_bytes(&nic, shape, count)?;
        if needed > len_bytes {
            return Err(GniError::OutOfRange {
                rank,
                offset: 0,
                len_bytes: needed,
                size_bytes: len_bytes,
            });
        }
        let at = (MAILBOXES_INDEX, secret.mailboxes_key(rank));
        let access = Access::ReadWrite;
        // SAFETY: the interface's buffers are mapped as long as it, and nothing else uses them.
        let mailboxes =
            unsafe { nic.register(Some(at), buffers, needed, access, Some(&arrivals)) }?;
        let one_sided = OneSidedPart::new(&nic, (rank, first, count), directory, reached)?;
        for number in 0..WILDCARDS {
            nic.post_datagram(None, WILDCARD | number, &[])?;
        }
        let unused = || Peer {
            link: Link::Unused,
            greeting: None,
            has_greeted: false,
            is_open: false,
            is_listed: false,
        };
        let state = State {
            peers: (0..count).map(|_| unused()).collect(),
            news: VecDeque::new(),
            listed: VecDeque::new(),
            ungreeted: VecDeque::new(),
            greeted: Vec::new(),
            owed_ends: Vec::new(),
            without_room: Vec::new(),
            gone: VecDeque::new(),
        };
        Ok(Self {
            rank,
            first,
            shape,
            message_bytes: shape.message_bytes as usize,
            mailboxes,
            mailbox_bytes,
            arrivals,
            own,
            secret,
            one_sided,
            silence,
            begun: Instant::now(),
            hot: AtomicU32::new(NONE),
            polls: AtomicU32::new(0),
            attention: AtomicBool::new(false),
            woken: AtomicBool::new(false),
            strangers: AtomicU64::new(0),
            state: Mutex::new(state),
            nic,
        })
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn place(&self, peer: JobRank) -> usize {
        peer.0.wrapping_sub(self.first.0) as usize
    }

    /// Does something with the state, and notes whether the next poll has to look at it.
    fn with<T>(&self, act: impl FnOnce(&mut State<N>) -> T) -> T {
        let mut state = self.state.lock();
        let done = act(&mut state);
        let attention = !(state.news.is_empty()
            && state.listed.is_empty()
            && state.ungreeted.is_empty()
            && state.greeted.is_empty()
            && state.owed_ends.is_empty()
            && state.gone.is_empty());
        self.attention.store(attention, Ordering::Relaxed);
        done
    }

    /// The channel wants a rail.
    pub(super) fn want(&self, peer: JobRank) {
        self.with(|state| {
            let place = self.place(peer);
            let Some(known) = state.peers.get(place) else {
                let why = "it is on another host, and gni reaches one host".to_owned();
                state.news.push_back((peer, News::Lost(why)));
                return;
            };
            match &known.link {
                Link::Unused => self.greet(state, peer),
                Link::Asked => {}
                Link::Open(vc) if vc.fault.lock().is_some() => {
                    let why = vc.fault.lock().clone().unwrap_or_default();
                    self.lose(state, peer, why);
                }
                Link::Open(vc) => {
                    let is_known = state.gone.iter().any(|(_, gone)| *gone == peer);
                    if vc.is_shut() && !is_known {
                        state.gone.push_back((self.now() + self.silence, peer));
                    }
                }
                Link::Lost(why) => {
                    let why = why.clone();
                    state.news.push_back((peer, News::Lost(why)));
                }
            }
        });
    }

    // spec G3: a vector of virtual connections, which both ranks may ask for at once.
    /// Says to a peer where its mailbox is, now or as soon as the interface takes that.
    fn greet(&self, state: &mut State<N>, peer: JobRank) {
        let place = self.place(peer);
        let Some(known) = state.peers.get_mut(place) else {
            return;
        };
        if matches!(known.link, Link::Unused) {
            known.link = Link::Asked;
        }
        let greet = || Box::new(self.secret.greet(self.rank, peer, &self.mailbox(peer)));
        let greeting = known.greeting.get_or_insert_with(greet);
        let to = NicAddress { rank: peer, nic: 0 };
        match self
            .nic
            .post_datagram(Some(to), peer.0.into(), &greeting[..])
        {
            Ok(()) => {
                known.has_greeted = true;
                state.greeted.push((peer, self.now()));
            }
            Err(GniError::Busy { .. }) => state.ungreeted.push_back(peer),
            Err(error) => self.lose(state, peer, error.to_string()),
        }
    }

    /// This rank's mailbox for a peer.
    fn mailbox(&self, peer: JobRank) -> Mailbox {
        Mailbox {
            handle: self.mailboxes,
            offset: self.place(peer) as u64 * self.mailbox_bytes,
            shape: self.shape,
        }
    }

    fn lose(&self, state: &mut State<N>, peer: JobRank, why: String) {
        if let Some(known) = state.peers.get_mut(self.place(peer)) {
            if let Link::Open(vc) = &known.link {
                vc.shut.store(true, Ordering::Relaxed);
            }
            known.link = Link::Lost(why.clone());
            state.news.push_back((peer, News::Lost(why)));
            self.wake();
        }
    }

    /// A datagram was exchanged.
    fn exchanged(&self, state: &mut State<N>, exchanged: &Exchanged) {
        let peer = exchanged.peer.rank;
        if exchanged.id & WILDCARD != 0 {
            // It accepts the next one; its place is free again.
            let _ = self.nic.post_datagram(None, exchanged.id, &[]);
        } else {
            state.greeted.retain(|(greeted, _)| *greeted != peer);
            if exchanged.data().is_empty() {
                // A wildcard has accepted the greeting; the peer's own comes in another one.
                return;
            }
        }
        let remote = self.secret.read(peer, self.rank, exchanged.data());
        let known = state.peers.get(self.place(peer));
        let is_wanted = known.is_some_and(|known| matches!(known.link, Link::Unused | Link::Asked));
        match remote {
            Some(remote) if is_wanted => self.connect(state, exchanged.peer, &remote),
            _ => {
                self.strangers.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The peer's mailbox is known: there is a connection.
    fn connect(&self, state: &mut State<N>, to: NicAddress, remote: &Mailbox) {
        let peer = to.rank;
        let data = EventData {
            local: peer.0,
            remote: self.rank.0,
        };
        let made = self.nic.create_endpoint(&self.own, to, data);
        let opened = made.and_then(|endpoint| {
            let local = self.mailbox(peer);
            self.nic.open_mailbox(&endpoint, &local, remote)?;
            Ok(endpoint)
        });
        let endpoint = match opened {
            Ok(endpoint) => endpoint,
            Err(error) => {
                // The peer fails alike, and does not wait.
                self.greet_once(state, peer);
                return self.lose(state, peer, error.to_string());
            }
        };
        let Some(known) = state.peers.get_mut(self.place(peer)) else {
            return;
        };
        known.link = Link::Open(Arc::new(Vc {
            peer,
            endpoint,
            begin: Mutex::new(0),
            shut: AtomicBool::new(false),
            fault: Mutex::new(None),
        }));
        state.news.push_back((peer, News::Rail));
        self.greet_once(state, peer);
    }

    /// Greets a peer unless this rank has, or is about to.
    fn greet_once(&self, state: &mut State<N>, peer: JobRank) {
        let known = state.peers.get(self.place(peer));
        if known.is_some_and(|known| !known.has_greeted) && !state.ungreeted.contains(&peer) {
            self.greet(state, peer);
        }
    }

    pub(super) fn next(self: &Arc<Self>) -> Option<Made<MailboxRail<N>>> {
        let (peer, news) = self.with(|state| {
            // A thread of the channel asks where messages wait for a rail and the rank makes no
            // call.
            self.attend(state);
            let (peer, news) = state.news.pop_front()?;
            let known = state.peers.get(self.place(peer));
            let made = match (news, known.map(|known| &known.link)) {
                (News::Rail, Some(Link::Open(vc))) => Ok(Arc::clone(vc)),
                // It was lost since, which is news, too.
                (News::Rail, _) => Err(String::new()),
                (News::Lost(why), _) => Err(why),
            };
            Some((peer, made))
        })?;
        let id = RailId { peer, number: 0 };
        match news {
            Ok(vc) => Some(Made::Rail(NewRail {
                id,
                rail: MailboxRail::new(Arc::clone(self), vc),
                incarnation: 1,
                received: 0,
            })),
            Err(why) if why.is_empty() => self.next(),
            Err(why) => {
                // A thread that sleeps does not wait for it any more.
                self.wake();
                let at = self.rank;
                Some(Made::Unreachable(
                    id,
                    AmError::Unreachable { at, peer, why },
                ))
            }
        }
    }

    /// The channel uses a rail, or does not any more.
    pub(super) fn set_open(&self, peer: JobRank, is_open: bool) {
        self.with(|state| {
            if let Some(known) = state.peers.get_mut(self.place(peer)) {
                known.is_open = is_open;
            }
            state.without_room.retain(|other| *other != peer);
            self.list(state, peer);
        });
    }

    /// A peer's rail may have something.
    fn list(&self, state: &mut State<N>, peer: JobRank) {
        if let Some(known) = state.peers.get_mut(self.place(peer))
            && known.is_open
            && !core::mem::replace(&mut known.is_listed, true)
        {
            state.listed.push_back(peer);
        }
    }

    /// The rail has ended: what it still finds is its end.
    ///
    /// `fault`: something else than that the peer has.
    pub(super) fn end(&self, vc: &Vc<N>, fault: Option<String>) {
        if fault.is_some() {
            *vc.fault.lock() = fault;
        }
        vc.shut.store(true, Ordering::Relaxed);
        self.with(|state| self.list(state, vc.peer));
        self.wake();
    }

    /// This rank ends the rail, and the peer learns of it.
    pub(super) fn shut(&self, vc: &Vc<N>) {
        if !vc.shut.swap(true, Ordering::Relaxed) {
            self.with(|state| {
                self.list(state, vc.peer);
                state.owed_ends.push(vc.peer);
                self.send_ends(state);
            });
            self.wake();
        }
    }

    fn send_ends(&self, state: &mut State<N>) {
        let peers = &state.peers;
        state.owed_ends.retain(|peer| {
            let known = peers.get(self.place(*peer));
            match known.map(|known| &known.link) {
                Some(Link::Open(vc)) => matches!(self.nic.send(&vc.endpoint, END, &[]), Ok(false)),
                _ => false,
            }
        });
    }

    pub(super) fn forget(&self, peer: JobRank) {
        self.one_sided.forget(peer);
        self.with(|state| {
            if let Some(known) = state.peers.get_mut(self.place(peer)) {
                if let Link::Open(vc) = &known.link {
                    vc.shut.store(true, Ordering::Relaxed);
                }
                known.link = Link::Lost(format!("rank {peer} has ended"));
            }
            let State {
                news,
                ungreeted,
                greeted,
                owed_ends,
                without_room,
                gone,
                ..
            } = state;
            news.retain(|(of, _)| *of != peer);
            ungreeted.retain(|of| *of != peer);
            greeted.retain(|(of, _)| *of != peer);
            owed_ends.retain(|of| *of != peer);
            without_room.retain(|of| *of != peer);
            gone.retain(|(_, of)| *of != peer);
        });
    }

    /// Peers reach this rank's memory no more.
    pub(super) fn leave(&self) {
        // What was registered can be.
        let _ = self.nic.deregister(self.mailboxes);
        self.one_sided.leave(&self.nic, &self.secret);
    }

    /// Takes events and datagrams.
    fn attend(&self, state: &mut State<N>) {
        for _ in 0..MOST_EVENTS {
            match self.nic.next_event(&self.arrivals) {
                Ok(Some(event)) => self.list(state, JobRank(event.data)),
                Ok(None) => break,
                Err(_) => {
                    for place in 0..state.peers.len() as u32 {
                        self.list(state, JobRank(self.first.0 + place));
                    }
                }
            }
        }
        for _ in 0..MOST_DATAGRAMS {
            let Some(exchanged) = self.nic.next_datagram() else {
                break;
            };
            self.exchanged(state, &exchanged);
        }
        for _ in 0..state.ungreeted.len() {
            if let Some(peer) = state.ungreeted.pop_front() {
                self.greet(state, peer);
            }
        }
        if !state.greeted.is_empty() {
            self.greet_again(state);
        }
        if !state.owed_ends.is_empty() {
            self.send_ends(state);
        }
        while let Some((at, peer)) = state.gone.front().copied()
            && at <= self.now()
        {
            state.gone.pop_front();
            let rank = self.rank;
            let why = format!("rank {rank} cannot reach rank {peer}: it has left the job");
            self.lose(state, peer, why);
        }
    }

    /// Posts greetings once more that may be lost.
    fn greet_again(&self, state: &mut State<N>) {
        let now = self.now();
        let is_late = |since: Duration| now >= since + GREET_AGAIN;
        let late: Vec<JobRank> = state
            .greeted
            .iter()
            .filter(|(_, since)| is_late(*since))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in late {
            state.greeted.retain(|(greeted, _)| *greeted != peer);
            match self.nic.cancel_datagram(peer.0.into()) {
                Ok(()) => self.greet(state, peer),
                // It is being exchanged.
                Err(_) => state.greeted.push((peer, now)),
            }
        }
    }

    /// Whether a read of a rail finds something, or its end.
    fn is_readable(&self, known: &Peer<N>) -> bool {
        match &known.link {
            Link::Open(vc) if known.is_open => {
                vc.is_shut() || !matches!(self.nic.receive(&vc.endpoint), Ok(None))
            }
            _ => false,
        }
    }

    /// The next listed peer whose rail has something, which is listed still.
    fn next_readable(&self, state: &mut State<N>) -> Option<JobRank> {
        while let Some(peer) = state.listed.pop_front() {
            let Some(known) = state.peers.get_mut(self.place(peer)) else {
                continue;
            };
            if self.is_readable(known) {
                state.listed.push_back(peer);
                return Some(peer);
            }
            // What comes from now on makes an event.
            known.is_listed = false;
        }
        None
    }

    pub(super) fn begin_poll(&self) -> Look {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        let all = self.attention.load(Ordering::Relaxed)
            || polls.is_multiple_of(LOOK_EVERY)
            || self.nic.has_event(&self.arrivals);
        let hot = self.hot.load(Ordering::Relaxed);
        let first = (hot != NONE).then_some(JobRank(hot));
        Look { first, all }
    }

    pub(super) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    pub(super) fn set_hot(&self, peer: Option<JobRank>) {
        let hot = peer.map_or(NONE, |peer| peer.0);
        if self.hot.load(Ordering::Relaxed) != hot {
            self.hot.store(hot, Ordering::Relaxed);
        }
    }

    pub(super) fn cool(&self, peer: JobRank) {
        if self.hot.load(Ordering::Relaxed) == peer.0 {
            self.set_hot(None);
        }
    }

    pub(super) fn ready(&self, found: &mut Ready) {
        self.with(|state| {
            self.attend(state);
            for _ in 0..state.listed.len() {
                let Some(peer) = self.next_readable(state) else {
                    break;
                };
                if !found.add(RailId { peer, number: 0 }) {
                    break;
                }
            }
            if !state.news.is_empty() {
                found.add_made();
            }
        });
    }

    pub(super) fn has_ready(&self) -> bool {
        self.with(|state| {
            self.attend(state);
            !state.news.is_empty() || self.next_readable(state).is_some()
        })
    }

    /// The channel waits for room on a rail from now on, or does not; whether it did not before.
    pub(super) fn wait_for_room(&self, peer: JobRank, waits: bool) -> bool {
        self.with(|state| {
            let without = &mut state.without_room;
            let is_known = without.contains(&peer);
            match (waits, is_known) {
                (true, false) => without.push(peer),
                (false, true) => without.retain(|other| *other != peer),
                _ => {}
            }
            waits && !is_known
        })
    }

    fn has_room(&self) -> bool {
        self.with(|state| {
            state.without_room.iter().any(|peer| {
                let known = state.peers.get(self.place(*peer));
                match known.map(|known| &known.link) {
                    Some(Link::Open(vc)) => vc.is_shut() || self.nic.credits(&vc.endpoint) > 0,
                    _ => false,
                }
            })
        })
    }

    // spec G6: manual progress; a thread that waits is blocked in the queue.
    pub(super) fn sleep(&self, timeout: Option<Duration>) {
        let (waits, gone) = self.with(|state| {
            let waits = !(state.ungreeted.is_empty()
                && state.greeted.is_empty()
                && state.owed_ends.is_empty());
            (waits, state.gone.front().map(|(at, _)| *at))
        });
        let again = waits.then_some(GREET_AGAIN);
        let gone = gone.map(|at| at.saturating_sub(self.now()));
        let timeout = [timeout, again, gone].into_iter().flatten().min();
        let come = || self.woken.load(Ordering::SeqCst) || self.has_ready() || self.has_room();
        if !come() {
            self.nic.wait(&[&self.arrivals], timeout, &come);
        }
    }

    pub(super) fn wake(&self) {
        self.woken.store(true, Ordering::SeqCst);
        self.nic.wake();
    }

    pub(super) fn forget_wakeups(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }

    pub(super) fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }
}

impl<N: Gni> OneSided for Shared<N> {
    unsafe fn put_now(
        &self,
        to: JobRank,
        offset: SegmentOffset,
        src: *const u8,
        len: usize,
    ) -> bool {
        let place = (to, offset);
        // SAFETY: the caller's promise.
        unsafe { self.one_sided.put(&self.nic, &self.secret, place, src, len) }
    }

    unsafe fn get_now(
        &self,
        from: JobRank,
        offset: SegmentOffset,
        dst: *mut u8,
        len: usize,
    ) -> bool {
        let place = (from, offset);
        // SAFETY: the caller's promise.
        unsafe { self.one_sided.get(&self.nic, &self.secret, place, dst, len) }
    }

    fn segment_grown(&self) -> Result<(), String> {
        self.one_sided.register(&self.nic, &self.secret)
    }
}
