//! State that rails and the thread share, and the work under its lock.

mod check;
mod lost;

pub use check::PathCheck;

use super::peer::{Arrivals, BESIDE, Peer, channel_of, rail_of};
use super::taking::{Read, Taking};
use super::together::Together;
use super::{DatagramRail, DatagramRailsConfig};
use crate::attendant::{POLLS_A_TIMER, event, ring};
use crate::channel::rail::{Made, NewRail, RailId};
use crate::datagrams::{DatagramGauge, Datagrams};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::Dropped;
use argonet_nic::datagram::{DatagramQueue, HostNames};
use argonet_nic::reliable::{Channel, Endpoint, PeerUnreachable, Transmit};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::{Mutex, MutexGuard};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How often a rank that ends says so.
const ANNOUNCEMENTS: u32 = 3;

/// What the channel learns of a peer.
enum News {
    /// There is a rail over this channel.
    Rail(Channel),
    /// There is none any more, and why.
    Lost(String),
}

struct State {
    endpoint: Endpoint,
    peers: Box<[Option<Box<Peer>>]>,
    news: VecDeque<(JobRank, News)>,
    /// Rails that may have something to read, in turn.
    ready: VecDeque<RailId>,
    /// Rails in whose windows the channel waits for room.
    without_room: Vec<RailId>,
    /// Peers that have left and to which the channel wants a rail: when it learns that there is
    /// none.
    ///
    /// A job that ends has ended by then.
    gone: VecDeque<(Duration, JobRank)>,
    /// How long that takes.
    give_up_after: Duration,
    /// Peers of which nothing comes; the thread sees to them.
    doubts: Vec<PeerUnreachable>,
    /// When acknowledgements are sent that wait for something to ride on.
    owed_at: Option<Duration>,
    /// How long they wait at most.
    ack_delay: Duration,
    together: Together,
    /// The thread looks at timers no earlier than it has said: polls of the rank do.
    leaves_timers: bool,
}

impl State {
    fn peer(&self, peer: JobRank) -> Option<&Peer> {
        self.peers.get(peer.index())?.as_deref()
    }

    /// When there is something to do.
    fn due(&self) -> Option<Duration> {
        let gone = self.gone.front().map(|(at, _)| *at);
        [self.endpoint.poll_timeout(), gone, self.owed_at]
            .into_iter()
            .flatten()
            .min()
    }
}

pub(super) struct Shared<Q: DatagramQueue> {
    rank: JobRank,
    hosts: HostNames,
    warn: fn(&str),
    /// How long a silent peer is borne that may be stopped.
    stopped_for: Duration,
    pub(super) queue: Q,
    /// Taken before `state`.
    taking: Mutex<Taking<Q>>,
    state: Mutex<State>,
    begun: Instant,
    /// Polls of the rank.
    ///
    /// The thread sees by it whether the rank polls.
    polls: AtomicU32,
    /// `polls` when a poll last looked at the queue.
    looked: AtomicU32,
    /// The peer whose rail had something last, and one more than its number; 0 for none.
    heard: AtomicU32,
    /// The peer from which payloads beside the stream come, and one more than its number; 0 for
    /// none.
    ///
    /// A hint: reads of its first rail leave what arrives to reads of the other one, which have
    /// places for it.
    long_from: AtomicU32,
    /// Threads of the rank that sleep at the queue, or are about to.
    pub(super) sleepers: AtomicU32,
    /// Whether `State::ready` or `State::news` may have something.
    ///
    /// Written under the lock of `state`; a look without it that misses a store finds it the next
    /// time, as the waker rings after it.
    pending: AtomicBool,
    /// Whether `State::doubts` may have something.
    ///
    /// Written under the lock of `state`, read by the thread, which misses nothing for long.
    doubtful: AtomicBool,
    /// Whether a loss has waited for an answer of the network, which it does under the lock of
    /// `state`: the first one ends the job.
    has_asked: AtomicBool,
    /// Bytes that went from datagrams to the places of reads.
    ///
    /// A statistic.
    pub(super) placed: AtomicU64,
    /// Written under the lock of `state`.
    dropped: DatagramGauge,
    /// Wakes the threads that sleep at the queue.
    pub(super) wakeup: OwnedFd,
    /// Wakes the thread.
    pub(super) bell: OwnedFd,
    /// When the thread looks next by itself, ns; 0 while it is awake.
    ///
    /// Written by the thread with the lock of `state` held, read under the same lock by
    /// threads that change timers.
    thread_looks_ns: AtomicU64,
}

/// The state, locked, and the time.
pub(super) struct Locked<'a, Q: DatagramQueue> {
    shared: &'a Shared<Q>,
    state: MutexGuard<'a, State>,
    now: Duration,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl<Q: DatagramQueue> Shared<Q> {
    pub(super) fn new(config: DatagramRailsConfig<Q>) -> io::Result<Self> {
        let DatagramRailsConfig {
            rank,
            queue,
            incarnations,
            link,
            seal,
            hosts,
            warn,
            ..
        } = config;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let ranks = u32::try_from(incarnations.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let own = incarnations.get(rank.index());
        let own = own.ok_or(io::ErrorKind::InvalidInput)?.get();
        let mut endpoint = Endpoint::new(link, rank, own, seal, ranks).map_err(invalid)?;
        for (peer, incarnation) in (0..ranks).zip(&incarnations) {
            let known = endpoint.know(JobRank(peer), incarnation.get());
            known.map_err(invalid)?;
        }
        let state = State {
            endpoint,
            peers: (0..ranks).map(|_| None).collect(),
            news: VecDeque::new(),
            ready: VecDeque::new(),
            without_room: Vec::new(),
            gone: VecDeque::new(),
            give_up_after: link.give_up_after,
            doubts: Vec::new(),
            owed_at: None,
            ack_delay: link.ack_delay,
            together: Together::default(),
            leaves_timers: false,
        };
        Ok(Self {
            rank,
            hosts,
            warn,
            stopped_for: link.stopped_for.max(link.give_up_after),
            taking: Mutex::new(Taking::new(&queue)),
            queue,
            state: Mutex::new(state),
            begun: Instant::now(),
            polls: AtomicU32::new(0),
            // No poll has.
            looked: AtomicU32::new(u32::MAX),
            heard: AtomicU32::new(0),
            long_from: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            pending: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            has_asked: AtomicBool::new(false),
            placed: AtomicU64::new(0),
            dropped: DatagramGauge::new(rank.0, ranks)?,
            wakeup: event()?,
            bell: event()?,
            thread_looks_ns: AtomicU64::new(0),
        })
    }

    /// Whether a rail may have something, or there may be news.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A poll of the rank begins: the thread leaves the queue to it for a while.
    ///
    /// The peer whose rail had something last.
    pub(super) fn begin_poll(&self) -> Option<JobRank> {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        if polls.is_multiple_of(POLLS_A_TIMER) {
            self.lock().end();
            if polls.wrapping_sub(self.looked.load(Ordering::Relaxed)) >= POLLS_A_TIMER {
                // No poll reads that rail: the thread that holds the peer's lock runs a handler.
                self.long_from.store(0, Ordering::Relaxed);
            }
        }
        let heard = self.heard.load(Ordering::Relaxed);
        // `ready` names the rail that has places for what comes.
        let is_long = self.long_from.load(Ordering::Relaxed) != 0;
        heard.checked_sub(1).filter(|_| !is_long).map(JobRank)
    }

    /// The peer from which payloads beside the stream come.
    pub(super) fn long_from(&self) -> Option<JobRank> {
        let from = self.long_from.load(Ordering::Relaxed);
        from.checked_sub(1).map(JobRank)
    }

    pub(super) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    pub(super) fn heard(&self, peer: JobRank) {
        let heard = peer.0.wrapping_add(1);
        if self.heard.load(Ordering::Relaxed) != heard {
            self.heard.store(heard, Ordering::Relaxed);
        }
    }

    /// That peer is not the one any more.
    pub(super) fn cool(&self, peer: JobRank) {
        let heard = peer.0.wrapping_add(1);
        let relaxed = Ordering::Relaxed;
        let _ = self.heard.compare_exchange(heard, 0, relaxed, relaxed);
    }

    pub(super) fn lock(&self) -> Locked<'_, Q> {
        Locked {
            shared: self,
            state: self.state.lock(),
            now: self.now(),
        }
    }

    /// The same, unless a read has done so since this poll began, or just before where several
    /// threads poll.
    pub(super) fn attend_once(&self) {
        if self.looked.load(Ordering::Relaxed) != self.polls() {
            self.look(None);
        }
    }

    /// Takes what has come in a poll of the rank; whether anything had.
    fn look(&self, read: Option<&mut Read<'_>>) -> bool {
        let any = self.attend(read);
        self.looked.store(self.polls(), Ordering::Relaxed);
        any
    }

    /// For a read that finds nothing: what comes over this rail goes to `copy`, which says how many
    /// bytes it takes, as far as nothing is unread before; what has come, and how much was copied.
    pub(super) fn attend_for(
        &self,
        rail: RailId,
        room: usize,
        copy: &mut dyn FnMut(&[u8]) -> usize,
    ) -> (bool, usize) {
        if rail.number == 0 && self.long_from() == Some(rail.peer) {
            return (false, 0);
        }
        let mut read = Read::new(rail, room, copy);
        let any = self.look(Some(&mut read));
        let copied = read.copied();
        if rail.number == BESIDE && copied == 0 {
            // The next look is for all rails.
            self.long_from.store(0, Ordering::Relaxed);
        }
        if copied > 0 {
            self.placed.fetch_add(copied as u64, Ordering::Relaxed);
        }
        (any, copied)
    }

    /// Takes what has come; whether anything had.
    pub(super) fn attend(&self, read: Option<&mut Read<'_>>) -> bool {
        // Another thread that takes does the same.
        let Some(mut taking) = self.taking.try_lock() else {
            return false;
        };
        let any = taking.take(self, read);
        // Another thread sleeps for what this one has taken.
        if any && self.sleepers.load(Ordering::SeqCst) > 0 {
            ring(&self.wakeup);
        }
        any
    }
}

impl<Q: DatagramQueue> Locked<'_, Q> {
    /// A datagram has come.
    pub(super) fn arrive(&mut self, datagram: &mut [u8], mut read: Option<&mut Read<'_>>) {
        let State {
            endpoint, peers, ..
        } = &mut *self.state;
        let takes = |peer: JobRank, channel| {
            let peer = peers.get(peer.index()).and_then(Option::as_deref);
            peer.is_none_or(|peer| peer.takes(channel))
        };
        let Some(arrived) = endpoint.handle_recv(self.now, datagram, takes) else {
            self.shared.dropped.show(self.dropped());
            return;
        };
        let rail = rail_of(arrived.peer, arrived.channel);
        if let Some(bytes) = arrived.record.and_then(|record| datagram.get(record)) {
            self.deliver(rail, bytes, read.as_deref_mut());
        }
        self.take_kept(rail, read);
        self.list(rail);
        if self.state.endpoint.has_left(rail.peer) {
            self.list_both(rail.peer);
        }
    }

    // spec U7: payloads go straight to their target.
    /// The next bytes of a rail: to the read, as far as that takes them, or to the unread ones.
    fn deliver(&mut self, rail: RailId, bytes: &[u8], read: Option<&mut Read<'_>>) {
        let shared = self.shared;
        let used = self.rail(rail);
        let mut rest = bytes;
        match read.filter(|read| read.is_of(rail)) {
            Some(read) if used.unread.is_empty() && used.is_open => rest = read.take(rest),
            None if rail.number == BESIDE && used.is_open => {
                let from = rail.peer.0.wrapping_add(1);
                shared.long_from.store(from, Ordering::Relaxed);
            }
            _ => {}
        }
        used.unread.extend(rest);
    }

    /// The peer, which is made when it is first used, with its first rail.
    fn peer(&mut self, peer: JobRank) -> &mut Peer {
        let State { peers, news, .. } = &mut *self.state;
        let pending = &self.shared.pending;
        peers[peer.index()].get_or_insert_with(|| {
            news.push_back((peer, News::Rail(Channel::Command)));
            pending.store(true, Ordering::Release);
            let mut used = Box::<Peer>::default();
            used.on_mut(Channel::Command).is_made = true;
            used
        })
    }

    /// A rail, which is made when it is first used.
    fn rail(&mut self, rail: RailId) -> &mut Arrivals {
        let channel = channel_of(rail);
        if !self.peer(rail.peer).on(channel).is_made {
            self.peer(rail.peer).on_mut(channel).is_made = true;
            let made = (rail.peer, News::Rail(channel));
            self.state.news.push_back(made);
            self.shared.pending.store(true, Ordering::Release);
        }
        self.peer(rail.peer).on_mut(channel)
    }

    fn used(&mut self, peer: JobRank) -> Option<&mut Peer> {
        self.state.peers.get_mut(peer.index())?.as_deref_mut()
    }

    /// Takes records that came before their turn, as far as there is room.
    fn take_kept(&mut self, rail: RailId, mut read: Option<&mut Read<'_>>) {
        let (now, channel) = (self.now, channel_of(rail));
        let has_room = |used: &mut Peer| used.on(channel).has_room();
        while self.used(rail.peer).is_some_and(has_room) {
            let Some(record) = self.state.endpoint.take(now, rail.peer, channel) else {
                return;
            };
            self.deliver(rail, record.bytes(), read.as_deref_mut());
            self.state.endpoint.recycle(record);
        }
    }

    /// Whether a read of a rail finds something, or its end.
    fn is_readable(&self, rail: RailId) -> bool {
        let Some(used) = self.state.peer(rail.peer) else {
            return false;
        };
        let arrivals = used.on(channel_of(rail));
        arrivals.is_open && (!arrivals.unread.is_empty() || self.is_at_end(rail, used))
    }

    /// Whether nothing comes behind what is unread.
    ///
    /// The first rail ends last: the channel gives up the other one with it. None ends before all
    /// is here that the peer has sent, as the channel shuts a rail that has ended, and so both.
    fn is_at_end(&self, rail: RailId, peer: &Peer) -> bool {
        let is_last = || rail.number == BESIDE || peer.on(Channel::Data).unread.is_empty();
        peer.is_shut || (self.state.endpoint.has_ended(rail.peer) && is_last())
    }

    /// Lists a rail that has something.
    pub(super) fn list(&mut self, rail: RailId) {
        if self.is_readable(rail)
            && let Some(used) = self.used(rail.peer)
            && !core::mem::replace(&mut used.on_mut(channel_of(rail)).is_listed, true)
        {
            self.state.ready.push_back(rail);
            self.shared.pending.store(true, Ordering::Release);
        }
    }

    /// The same of both rails to a peer.
    fn list_both(&mut self, peer: JobRank) {
        for channel in Channel::BOTH {
            self.list(rail_of(peer, channel));
        }
    }

    /// Sends what is due, and has the thread look in time.
    pub(super) fn end(mut self) {
        self.handle_timeout();
        self.transmit_all();
        self.have_the_thread_look();
    }

    /// The same without acknowledgements that ride on nothing; whether there are some.
    pub(super) fn end_promptly(mut self) -> bool {
        self.handle_timeout();
        if self.state.owed_at.is_some_and(|at| at <= self.now) {
            self.transmit_all();
        } else {
            self.transmit(Endpoint::poll_transmit_prompt);
        }
        let owes = self.state.endpoint.owes();
        // The rank may make no further call.
        let at = self.now + self.state.ack_delay;
        self.state.owed_at = owes.then(|| self.state.owed_at.unwrap_or(at));
        self.have_the_thread_look();
        owes
    }

    fn have_the_thread_look(&self) {
        if let Some(due) = self.state.due()
            && !self.state.leaves_timers
        {
            let looks = self.shared.thread_looks_ns.load(Ordering::Relaxed);
            if nanoseconds(due) < looks {
                self.shared.thread_looks_ns.store(0, Ordering::Relaxed);
                ring(&self.shared.bell);
            }
        }
    }

    fn transmit_all(&mut self) {
        self.transmit(Endpoint::poll_transmit);
        self.state.owed_at = None;
    }

    fn transmit(&mut self, next: fn(&mut Endpoint, Duration) -> Option<Transmit<'_>>) {
        let (now, queue) = (self.now, &self.shared.queue);
        let State {
            endpoint, together, ..
        } = &mut *self.state;
        while let Some(transmit) = next(endpoint, now) {
            together.send(queue, transmit);
        }
        together.flush(queue);
    }

    /// Unlocks for the thread: until when it sleeps, and whether the channel has something to
    /// do.
    ///
    /// Where timers are left to polls of the rank it sleeps until the limit.
    pub(super) fn sleep_until(mut self, limit: Duration, leaves_timers: bool) -> (Duration, bool) {
        self.handle_timeout();
        self.transmit_all();
        let has_work = self.has_work();
        self.state.leaves_timers = leaves_timers;
        let due = self.state.due().filter(|_| !leaves_timers);
        let until = due.map_or(limit, |due| due.min(limit));
        let looks = nanoseconds(until);
        self.shared.thread_looks_ns.store(looks, Ordering::Relaxed);
        (until, has_work)
    }

    pub(super) fn has_news(&self) -> bool {
        !self.state.news.is_empty()
    }

    pub(super) fn news(&mut self, shared: &Arc<Shared<Q>>) -> Option<Made<DatagramRail<Q>>> {
        let (peer, news) = self.state.news.pop_front()?;
        Some(match news {
            News::Rail(channel) => {
                let id = rail_of(peer, channel);
                Made::Rail(NewRail {
                    id,
                    rail: DatagramRail::new(Arc::clone(shared), id),
                    incarnation: 1,
                    received: 0,
                })
            }
            News::Lost(why) => {
                let id = rail_of(peer, Channel::Command);
                let at = self.shared.rank;
                Made::Unreachable(id, AmError::Unreachable { at, peer, why })
            }
        })
    }

    pub(super) fn set_open(&mut self, rail: RailId, is_open: bool) {
        let channel = channel_of(rail);
        if let Some(used) = self.used(rail.peer) {
            used.on_mut(channel).is_open = is_open;
        }
        if channel == Channel::Data && !is_open {
            self.forget_long(rail.peer);
        }
        self.wait_for_room(rail, false);
        if channel == Channel::Command {
            // A peer that owes nothing may die, too.
            let now = self.now;
            self.state.endpoint.watch(now, rail.peer, is_open);
        }
        self.list(rail);
    }

    /// The next rail that has something; the caller lists it again if it still has.
    pub(super) fn next_ready(&mut self) -> Option<RailId> {
        loop {
            let Some(rail) = self.state.ready.pop_front() else {
                let has_news = !self.state.news.is_empty();
                self.shared.pending.store(has_news, Ordering::Release);
                return None;
            };
            if let Some(used) = self.used(rail.peer) {
                used.on_mut(channel_of(rail)).is_listed = false;
            }
            if self.is_readable(rail) {
                return Some(rail);
            }
        }
    }

    /// A thread of the rank goes to sleep: timers are the thread's.
    pub(super) fn take_timers_back(&mut self) {
        self.state.leaves_timers = false;
    }

    /// Whether a rail has something, or there are news.
    pub(super) fn has_ready(&mut self) -> bool {
        let next = self.next_ready();
        if let Some(rail) = next {
            self.list(rail);
        }
        next.is_some() || self.has_news()
    }

    /// The same, or whether a rail takes more that the channel waits for.
    pub(super) fn has_work(&mut self) -> bool {
        self.has_ready() || self.has_room()
    }

    /// Notes if there is nothing any more.
    pub(super) fn settle(&mut self) {
        let State { ready, news, .. } = &*self.state;
        let pending = !ready.is_empty() || !news.is_empty();
        self.shared.pending.store(pending, Ordering::Release);
    }

    pub(super) fn ready_count(&self) -> usize {
        self.state.ready.len()
    }

    /// Whether the channel waits for room in the window of a rail from now on, and did not before.
    pub(super) fn wait_for_room(&mut self, rail: RailId, waits: bool) -> bool {
        let without = &mut self.state.without_room;
        let is_known = without.contains(&rail);
        match (waits, is_known) {
            (true, false) => without.push(rail),
            (false, true) => without.retain(|other| *other != rail),
            _ => {}
        }
        waits && !is_known
    }

    /// Whether a rail takes more that the channel waits for.
    fn has_room(&self) -> bool {
        let endpoint = &self.state.endpoint;
        let mut without = self.state.without_room.iter();
        without.any(|rail| {
            endpoint.room(rail.peer, channel_of(*rail)) && !endpoint.has_left(rail.peer)
        })
    }

    // spec U1: a long payload is cut into packets as the window has room for them.
    /// Writes as much as the window takes of `bytes`, which `fill` copies piece by piece; how much.
    pub(super) fn write(
        &mut self,
        rail: RailId,
        bytes: usize,
        mut fill: impl FnMut(&mut [u8]),
    ) -> io::Result<usize> {
        let (peer, channel) = (rail.peer, channel_of(rail));
        let is_shut = self.used(peer).is_none_or(|used| used.is_shut);
        if is_shut || self.state.endpoint.has_ended(peer) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.state.endpoint.has_left(peer) {
            // It takes nothing more, and something of it is still to come.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut written = 0;
        while written < bytes && self.state.endpoint.room(peer, channel) {
            let most = self.state.endpoint.record_bytes_to(peer);
            let len = most.min(bytes - written);
            let endpoint = &mut self.state.endpoint;
            let submitted = endpoint.submit(self.now, peer, channel, len, &mut fill);
            if submitted.is_err() {
                break;
            }
            written += len;
        }
        match written {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }

    /// Copies up to `most` bytes, in at most two pieces, by `fill`, which takes them all; how much.
    ///
    /// `None` if there is nothing now.
    pub(super) fn read(
        &mut self,
        rail: RailId,
        most: usize,
        fill: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Option<io::Result<usize>> {
        let arrivals = self.used(rail.peer)?.on_mut(channel_of(rail));
        let len = arrivals.unread.len().min(most);
        if len > 0 {
            let (first, second) = arrivals.unread.as_slices();
            let in_first = len.min(first.len());
            fill(&first[..in_first]);
            fill(&second[..len - in_first]);
            arrivals.unread.drain(..len);
            self.take_kept(rail, None);
            if rail.number == BESIDE {
                // It may have been the last that the end of the other one waited for.
                self.list(rail_of(rail.peer, Channel::Command));
            }
            return Some(Ok(len));
        }
        let used = self.state.peer(rail.peer)?;
        self.is_at_end(rail, used).then_some(Ok(0))
    }

    /// Nothing more comes beside the stream of a peer for which other reads leave what arrives.
    fn forget_long(&self, peer: JobRank) {
        if self.shared.long_from() == Some(peer) {
            self.shared.long_from.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn shut(&mut self, peer: JobRank) {
        if let Some(used) = self.used(peer)
            && !core::mem::replace(&mut used.is_shut, true)
        {
            for channel in Channel::BOTH {
                self.wait_for_room(rail_of(peer, channel), false);
            }
            self.forget_long(peer);
            self.state.endpoint.leave_peer(peer);
            // A read finds the end.
            self.list_both(peer);
        }
    }

    /// The peer's process has ended.
    pub(super) fn forget(&mut self, peer: JobRank) {
        if self.state.peers.get(peer.index()).is_none() || peer == self.shared.rank {
            return;
        }
        let used = self.peer(peer);
        (used.is_shut, used.is_given_up) = (true, true);
        for channel in Channel::BOTH {
            self.wait_for_room(rail_of(peer, channel), false);
        }
        self.forget_long(peer);
        self.state.endpoint.forget(peer);
        self.list_both(peer);
    }

    /// Before the end: acknowledges what is owed.
    pub(super) fn flush(&mut self) {
        self.state.endpoint.flush();
    }

    /// Says to all peers that this rank ends.
    ///
    /// Each datagram may be lost, so it is said some times.
    pub(super) fn leave(mut self) {
        for _ in 0..ANNOUNCEMENTS {
            self.state.endpoint.leave();
            self.transmit_all();
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.state.endpoint.is_drained()
    }

    fn dropped(&self) -> Dropped {
        self.state.endpoint.counts().dropped(0)
    }

    pub(super) fn datagrams(&self) -> Datagrams {
        Datagrams {
            rank: self.shared.rank.0,
            ranks: self.state.peers.len() as u32,
            dropped: self.dropped(),
        }
    }

    /// Whether a rail takes nothing more.
    #[cfg(test)]
    pub(super) fn waits_for_acknowledgements(&self, rail: RailId) -> bool {
        !self.state.endpoint.room(rail.peer, channel_of(rail))
    }

    /// When there is something to do.
    #[cfg(test)]
    pub(super) fn due(&self) -> Option<Duration> {
        self.state.due()
    }

    /// Datagrams that were sent with nothing but an acknowledgement.
    #[cfg(test)]
    pub(super) fn acknowledgements(&self) -> u64 {
        self.state.endpoint.counts().acknowledgements
    }

    #[cfg(test)]
    pub(super) fn peer_has_ended(&self, peer: JobRank) -> bool {
        self.state.endpoint.has_ended(peer)
    }
}
