//! State that rails and the thread share, and the work under its lock.

mod lost;

use super::header::{HEADER_BYTES, Header, Kind, Tokens};
use super::peer::{Peer, Turn};
use super::{MessageRail, MessageRailsConfig};
use crate::attendant::{POLLS_A_TIMER, event, ring};
use crate::channel::rail::{Made, NewRail, RailId, Ready};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_nic::fabric::Sleep;
use argonet_nic::rdm::{MessageQueue, Taken};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use lost::ASKS;
use parking_lot::{Mutex, MutexGuard};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use zeroize::Zeroizing;

/// Batches that one look takes at most.
const MOST_BATCHES: u32 = 16;

/// How long the thread sleeps while something waits for the provider: at first, and twice as long
/// each time nothing has changed, so often.
const NAP: Duration = Duration::from_micros(20);
const DOUBLINGS: u32 = 8;

/// What the channel learns of a peer.
enum News {
    /// There is a rail.
    Rail,
    /// There is none any more, and why.
    Lost(String),
}

struct State<Q: MessageQueue> {
    queue: Q,
    tokens: Tokens,
    peers: Box<[Option<Box<Peer<Q>>>]>,
    /// How many there are.
    used_peers: usize,
    news: VecDeque<(JobRank, News)>,
    /// Peers whose rails may have something to read, in turn.
    ready: VecDeque<JobRank>,
    /// Peers that are to be sent what the provider had no room for.
    held_up: VecDeque<JobRank>,
    /// Peers in whose windows the channel waits for room.
    without_room: Vec<JobRank>,
    /// Peers of which nothing has come for long, of which the rank has not warned.
    doubts: Vec<JobRank>,
    /// Peers that have left and to which the channel wants a rail: when it learns that there is
    /// none.
    ///
    /// A job that ends has ended by then.
    gone: VecDeque<(Duration, JobRank)>,
    /// Buffers that have what was not read.
    unread_buffers: usize,
    /// What a look takes.
    came: Vec<Q::Received>,
    silence: Duration,
    /// When silent peers are asked.
    asks_at: Duration,
    /// Looks, by which ends of sends are looked for now and then.
    looks: u32,
    /// The queue carries nothing any more.
    is_broken: bool,
    /// What has come is being taken.
    is_taking: bool,
    /// Looks of the thread in turn that found the same things waiting.
    naps: u32,
    /// Until when the thread sleeps; zero while it is awake.
    sleeps_until: Duration,
}

pub(super) struct Shared<Q: MessageQueue> {
    rank: JobRank,
    state: Mutex<State<Q>>,
    sleep: Sleep,
    begun: Instant,
    /// Polls of the rank.
    ///
    /// The thread sees by it whether the rank polls.
    polls: AtomicU32,
    /// Messages that were of no rank.
    ///
    /// A statistic.
    strangers: AtomicU64,
    /// Threads of the rank that sleep at the queue, or are about to.
    pub(super) sleepers: AtomicU32,
    /// Wakes the threads that sleep at the queue.
    pub(super) wakeup: OwnedFd,
    /// Wakes the thread.
    pub(super) bell: OwnedFd,
    /// Whether `State::is_broken`.
    ///
    /// Nothing depends on when a thread sees it.
    broken: AtomicBool,
    warn: fn(&str),
}

/// The state, locked.
pub(super) struct Locked<'a, Q: MessageQueue> {
    shared: &'a Shared<Q>,
    state: MutexGuard<'a, State<Q>>,
}

impl<Q: MessageQueue> Shared<Q> {
    pub(super) fn new(config: MessageRailsConfig<Q>) -> io::Result<Self> {
        let MessageRailsConfig {
            rank,
            queue,
            sleep,
            incarnations,
            secret,
            silence,
            warn,
            exit_grace: _,
        } = config;
        let ranks = incarnations.len();
        if rank.index() >= ranks || u32::try_from(ranks).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let state = State {
            queue,
            tokens: Tokens {
                secret: Zeroizing::new(secret),
                incarnations,
            },
            peers: (0..ranks).map(|_| None).collect(),
            used_peers: 0,
            news: VecDeque::new(),
            ready: VecDeque::new(),
            held_up: VecDeque::new(),
            without_room: Vec::new(),
            doubts: Vec::new(),
            gone: VecDeque::new(),
            unread_buffers: 0,
            came: Vec::new(),
            silence,
            asks_at: silence / ASKS,
            looks: 0,
            is_broken: false,
            is_taking: false,
            naps: 0,
            sleeps_until: Duration::ZERO,
        };
        Ok(Self {
            rank,
            state: Mutex::new(state),
            sleep,
            begun: Instant::now(),
            polls: AtomicU32::new(0),
            strangers: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            wakeup: event()?,
            bell: event()?,
            broken: AtomicBool::new(false),
            warn,
        })
    }

    /// Whether the queue carries nothing any more: what it says is not waited for.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    pub(super) fn count_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    pub(super) fn waits_at(&self) -> &Sleep {
        &self.sleep
    }

    pub(super) fn lock(&self) -> Locked<'_, Q> {
        Locked {
            shared: self,
            state: self.state.lock(),
        }
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            ring(&self.wakeup);
        }
    }
}

impl<Q: MessageQueue> Locked<'_, Q> {
    /// Takes what has come, and sends what waits; whether anything had come.
    pub(super) fn attend(&mut self) -> bool {
        let any = self.take_all();
        self.send_held_up();
        self.state.looks = self.state.looks.wrapping_add(1);
        if self.state.looks.is_multiple_of(POLLS_A_TIMER) {
            // Sends may have failed.
            self.state.queue.is_sending();
        }
        self.take_failures();
        any
    }

    /// Takes what has come; whether anything had.
    fn take_all(&mut self) -> bool {
        let mut any = false;
        self.state.is_taking = true;
        for _ in 0..MOST_BATCHES {
            let mut came = core::mem::take(&mut self.state.came);
            let more = self
                .state
                .queue
                .receive(&mut |received| came.push(received));
            any |= !came.is_empty();
            for received in came.drain(..) {
                self.arrive(received);
            }
            self.state.came = came;
            if !more {
                break;
            }
        }
        self.state.is_taking = false;
        if any {
            self.shared.sleep.note();
            // Another thread sleeps for what this one has taken.
            self.shared.wake_sleepers();
        }
        any
    }

    /// A message has come.
    fn arrive(&mut self, received: Q::Received) {
        let Some(header) = self.of_rank(&received) else {
            self.shared.strangers.fetch_add(1, Ordering::Relaxed);
            return self.state.queue.give_back(received);
        };
        let peer = header.from;
        match self.take(&header, &received) {
            Some(true) => {
                self.state.unread_buffers += 1;
                if let Some(used) = self.used(peer) {
                    used.keep(received, HEADER_BYTES);
                }
            }
            _ => self.state.queue.give_back(received),
        }
        self.take_early(peer);
        self.send_owed(peer);
        self.list(peer);
    }

    /// The header of a message, if it is of another rank of the job.
    fn of_rank(&self, received: &Q::Received) -> Option<Header> {
        let (header, _) = Header::read(self.state.queue.bytes(received))?;
        let (peer, own) = (header.from, self.shared.rank);
        let token = match self.state.peers.get(peer.index())? {
            Some(used) => used.tokens[0],
            None => self.state.tokens.token(peer, own)?,
        };
        (token == header.token && peer != own).then_some(header)
    }

    /// Takes a message of a peer, which is kept if it is early; whether its buffer is kept.
    fn take(&mut self, header: &Header, received: &Q::Received) -> Option<bool> {
        let peer = header.from;
        if !self.make(peer) {
            return None;
        }
        let copies = self.state.unread_buffers >= self.state.queue.receives() / 2;
        let State { queue, peers, .. } = &mut *self.state;
        let used = peers.get_mut(peer.index())?.as_deref_mut()?;
        if used.is_shut {
            return None;
        }
        used.asks = 0;
        let message = queue.bytes(received);
        let taken = match used.turn(header.number) {
            Turn::Now => {
                let bytes = message.get(HEADER_BYTES..).unwrap_or_default();
                used.take(header, bytes, copies)
            }
            Turn::Later => used.keep_early(header.number, message).then_some(false),
            Turn::Never => None,
        };
        if taken.is_none() {
            self.fail_at(peer, header.number);
        }
        taken
    }

    /// Takes messages that came early and whose turn it is.
    fn take_early(&mut self, peer: JobRank) {
        while let Some(used) = self.used(peer)
            && let Some(message) = used.next_early()
            && let Some((header, bytes)) = Header::read(&message)
        {
            if used.take(&header, bytes, true).is_none() {
                return self.fail_at(peer, header.number);
            }
        }
    }

    /// The peer, which is made when it is first used, with its rail; false if there is no such one.
    fn make(&mut self, peer: JobRank) -> bool {
        let own = self.shared.rank;
        let State {
            peers,
            used_peers,
            news,
            tokens,
            ..
        } = &mut *self.state;
        let Some(place) = peers.get_mut(peer.index()) else {
            return false;
        };
        if peer == own {
            return false;
        }
        if place.is_none()
            && let (Some(comes), Some(goes)) = (tokens.token(peer, own), tokens.token(own, peer))
        {
            *place = Some(Box::new(Peer::new([comes, goes])));
            *used_peers += 1;
            news.push_back((peer, News::Rail));
            if *used_peers == 1 {
                // The thread has nothing to ask so far.
                self.have_the_thread_look();
            }
        }
        peer != own
    }

    fn used(&mut self, peer: JobRank) -> Option<&mut Peer<Q>> {
        self.state.peers.get_mut(peer.index())?.as_deref_mut()
    }

    /// Sends a message to a peer, behind all others; where there is no room it waits.
    fn send(
        &mut self,
        peer: JobRank,
        kind: Kind,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<()> {
        let from = self.shared.rank;
        let State { queue, peers, .. } = &mut *self.state;
        let used = peers.get_mut(peer.index())?.as_deref_mut()?;
        let number = used.numbers[0];
        used.numbers[0] = number.wrapping_add(1);
        let header = Header {
            token: used.tokens[1],
            from,
            number,
            taken: used.announce(),
            kind,
        };
        let write = |place: &mut [u8]| {
            if let Some((first, behind)) = place.split_first_chunk_mut() {
                header.write(first);
                fill(behind);
            }
        };
        // A rank ends when the last messages have left.
        let awaited = matches!(kind, Kind::Leave | Kind::Seen);
        let bytes = HEADER_BYTES + bytes;
        let taken = queue.send_filled(peer.0, bytes, awaited, &mut used.waiting, write);
        match taken {
            // Whether it arrives may depend on looks, and is seen by looks.
            Taken::Sent if queue.has_sent() => self.have_the_thread_look(),
            Taken::Sent => {}
            Taken::NoRoom => self.hold_up(peer),
            Taken::Refused => self.take_failures(),
        }
        Some(())
    }

    /// A peer is sent what waits as soon as there is room.
    fn hold_up(&mut self, peer: JobRank) {
        if let Some(used) = self.used(peer)
            && !core::mem::replace(&mut used.is_held_up, true)
        {
            self.state.held_up.push_back(peer);
        }
        // The rank may make no further call.
        self.have_the_thread_look();
    }

    fn have_the_thread_look(&mut self) {
        let soon = self.shared.now() + NAP * (1 << DOUBLINGS);
        if self.state.sleeps_until > soon {
            self.state.sleeps_until = Duration::ZERO;
            ring(&self.shared.bell);
        }
    }

    /// Sends the messages without bytes that a peer is owed, as long as none waits.
    fn send_owed(&mut self, peer: JobRank) {
        while let Some(used) = self.used(peer)
            && used.waiting.is_empty()
            && let Some(kind) = used.take_owed()
        {
            self.send(peer, kind, 0, |_| ());
        }
    }

    /// Sends what waits for room.
    fn send_held_up(&mut self) {
        for _ in 0..self.state.held_up.len() {
            let Some(peer) = self.state.held_up.pop_front() else {
                return;
            };
            let State { queue, peers, .. } = &mut *self.state;
            let Some(used) = peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else {
                continue;
            };
            used.is_held_up = false;
            if !used.waiting.is_empty() {
                if queue.send(peer.0, &used.waiting, true) == Taken::NoRoom {
                    used.is_held_up = true;
                    self.state.held_up.push_back(peer);
                    continue;
                }
                used.waiting = Vec::new();
            }
            self.state.naps = 0;
            self.send_owed(peer);
        }
    }

    /// Whether a read of a rail finds something, or its end.
    fn is_readable(used: &Peer<Q>) -> bool {
        used.is_open && (used.has_unread() || used.is_shut || used.has_left)
    }

    /// Lists a peer whose rail has something.
    fn list(&mut self, peer: JobRank) {
        if let Some(used) = self.used(peer)
            && Self::is_readable(used)
            && !core::mem::replace(&mut used.is_listed, true)
        {
            self.state.ready.push_back(peer);
        }
    }

    /// The next peer whose rail has something; the caller lists it again if it still has.
    fn next_ready(&mut self) -> Option<JobRank> {
        while let Some(peer) = self.state.ready.pop_front() {
            if let Some(used) = self.used(peer) {
                used.is_listed = false;
                if Self::is_readable(used) {
                    return Some(peer);
                }
            }
        }
        None
    }

    /// Which rails have something.
    pub(super) fn ready(&mut self, found: &mut Ready) {
        for _ in 0..self.state.ready.len() {
            let Some(peer) = self.next_ready() else {
                break;
            };
            // The next look finds it again, until all was read.
            self.list(peer);
            if !found.add(RailId { peer, number: 0 }) {
                break;
            }
        }
        if !self.state.news.is_empty() {
            found.add_made();
        }
    }

    /// Whether a rail has something, or there are news.
    pub(super) fn has_ready(&mut self) -> bool {
        let next = self.next_ready();
        if let Some(peer) = next {
            self.list(peer);
        }
        next.is_some() || !self.state.news.is_empty()
    }

    /// The same, or whether a rail takes more that the channel waits for.
    pub(super) fn has_work(&mut self) -> bool {
        let State {
            without_room,
            peers,
            ..
        } = &*self.state;
        let has_room = |peer: &JobRank| {
            let used = peers.get(peer.index()).and_then(Option::as_deref);
            used.is_some_and(|used| used.room(usize::MAX, usize::MAX) > 0 && !used.has_left)
        };
        without_room.iter().any(has_room) || self.has_ready()
    }

    /// Whether the channel waits for room on a rail from now on, and did not before.
    pub(super) fn wait_for_room(&mut self, peer: JobRank, waits: bool) -> bool {
        let without = &mut self.state.without_room;
        let is_known = without.contains(&peer);
        match (waits, is_known) {
            (true, false) => without.push(peer),
            (false, true) => without.retain(|other| *other != peer),
            _ => {}
        }
        waits && !is_known
    }

    /// The channel wants a rail.
    pub(super) fn want(&mut self, peer: JobRank) {
        let at = self.shared.now() + self.state.silence;
        if !self.make(peer) {
            return;
        }
        let ends = |used: &mut Peer<Q>| (used.is_shut || used.has_left) && !used.is_given_up;
        let is_known = |gone: &VecDeque<(_, JobRank)>| gone.iter().any(|(_, gone)| *gone == peer);
        if self.used(peer).is_some_and(ends) && !is_known(&self.state.gone) {
            self.state.gone.push_back((at, peer));
            self.have_the_thread_look();
        }
        if self.state.is_broken {
            let words = self.state.queue.broken().unwrap_or_default().to_owned();
            self.fail(peer, &words);
        }
    }

    pub(super) fn set_open(&mut self, peer: JobRank, is_open: bool) {
        if let Some(used) = self.used(peer) {
            used.is_open = is_open;
        }
        self.wait_for_room(peer, false);
        self.list(peer);
    }

    pub(super) fn news(&mut self, shared: &Arc<Shared<Q>>) -> Option<Made<MessageRail<Q>>> {
        let (peer, news) = self.state.news.pop_front()?;
        let id = RailId { peer, number: 0 };
        Some(match news {
            News::Rail => Made::Rail(NewRail {
                id,
                rail: MessageRail::new(Arc::clone(shared), peer),
                incarnation: 1,
                received: 0,
            }),
            News::Lost(why) => {
                let at = self.shared.rank;
                Made::Unreachable(id, AmError::Unreachable { at, peer, why })
            }
        })
    }

    /// Writes as much as there is room for of `bytes`, which `fill` copies piece by piece; how
    /// much.
    pub(super) fn write(
        &mut self,
        peer: JobRank,
        bytes: usize,
        mut fill: impl FnMut(&mut [u8]),
    ) -> io::Result<usize> {
        let most = self.state.queue.message_bytes() - HEADER_BYTES;
        let mut written = 0;
        while written < bytes {
            let Some(used) = self.used(peer).filter(|used| !used.is_shut) else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            if used.has_left {
                // It takes nothing more; the channel reads first what it has sent.
                return Err(match used.has_unread() {
                    true => io::ErrorKind::WouldBlock.into(),
                    false => io::ErrorKind::BrokenPipe.into(),
                });
            }
            let part = used.room(bytes - written, most);
            if part == 0 {
                break;
            }
            used.count_sent(part);
            self.send(peer, Kind::Data, part, &mut fill);
            written += part;
        }
        match written {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }

    /// Copies up to `most` bytes by `fill`, which takes them all; how much, 0 at the end.
    pub(super) fn read(
        &mut self,
        peer: JobRank,
        most: usize,
        fill: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<usize> {
        let State {
            queue,
            peers,
            unread_buffers,
            ..
        } = &mut *self.state;
        let used = peers.get_mut(peer.index()).and_then(Option::as_deref_mut);
        let used = used.ok_or(io::ErrorKind::WouldBlock)?;
        let (read, freed) = used.read(queue, most, fill);
        *unread_buffers -= freed;
        let is_at_end = used.is_shut || used.has_left;
        match read {
            0 if is_at_end => Ok(0),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            read => {
                self.send_owed(peer);
                Ok(read)
            }
        }
    }

    /// Does what time demands, and sends what waits: until when the thread sleeps.
    pub(super) fn plan(&mut self, limit: Duration, leaves_timers: bool) -> Duration {
        let now = self.shared.now();
        let mut until = limit;
        if !leaves_timers {
            self.send_held_up();
            if !self.state.held_up.is_empty() || self.state.queue.is_sending() {
                let nap = NAP * (1 << self.state.naps.min(DOUBLINGS));
                self.state.naps = self.state.naps.saturating_add(1);
                until = until.min(now + nap);
            } else {
                self.state.naps = 0;
            }
            self.take_failures();
        }
        self.ask_in_time(now);
        while let Some((at, peer)) = self.state.gone.front().copied()
            && at <= now
        {
            self.state.gone.pop_front();
            let rank = self.shared.rank;
            let why = format!("rank {rank} cannot reach rank {peer}: it has left the job");
            self.lose(peer, why);
        }
        let gone = self.state.gone.front().map(|(at, _)| *at);
        // A rank that no other uses is not woken.
        let asks = self.state.used_peers > 0;
        let due = [gone, asks.then_some(self.state.asks_at)];
        let mut until = due.into_iter().flatten().fold(until, Duration::min);
        if !self.state.doubts.is_empty() {
            until = now;
        }
        self.state.sleeps_until = until;
        until
    }

    /// Says to all peers that this rank ends.
    pub(super) fn leave(&mut self) {
        for peer in (0..self.state.peers.len() as u32).map(JobRank) {
            if let Some(used) = self.used(peer)
                && !(used.has_left || used.is_shut)
            {
                used.owe(Kind::Leave);
                self.send_owed(peer);
            }
        }
    }

    /// Whether all peers have seen that this rank ends, or are not there any more.
    pub(super) fn has_left(&self) -> bool {
        let used = self.state.peers.iter().flatten();
        let mut others = used.filter(|used| !used.is_shut);
        others.all(|used| (used.has_seen || used.has_left) && !used.is_owed())
    }

    /// Whether messages are under way, as far as the provider says.
    pub(super) fn is_sending(&mut self) -> bool {
        self.state.queue.is_sending()
    }

    /// Whether the thread sleeps until something comes, or a peer is to be asked.
    #[cfg(test)]
    pub(super) fn thread_sleeps(&self) -> bool {
        self.state.sleeps_until > self.shared.now() + Duration::from_secs(1)
    }

    /// The token of what comes from a peer.
    #[cfg(test)]
    pub(super) fn token_of(&self, peer: JobRank) -> u64 {
        let token = self.state.tokens.token(peer, self.shared.rank);
        token.expect("a rank of the job")
    }

    /// Whether a thread may sleep until something comes.
    pub(super) fn may_sleep(&self) -> bool {
        self.state.queue.may_sleep()
    }
}
