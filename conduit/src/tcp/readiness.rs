//! Which sockets have something: the descriptor that waits for all of them, and the peer whose
//! socket is looked at first.
//!
//! The peer from which something came last is *hot*: its socket is read in every poll, the others
//! are looked for in some of them only, as that is a system call. A hot socket that goes on to have
//! something is not watched any more, since a packet for a watched socket costs the kernel a
//! wakeup. Everything is watched again before this rank sleeps or another peer becomes hot.

use super::socket::Socket;
use crate::channel::rail::{RailId, Ready};
use argonet_base::JobRank;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::Mutex;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeSet;
use std::io;

/// Marks events of the two descriptors that belong to no peer.
pub(super) const WAKE: u64 = u64::MAX;
pub(super) const CONNECTOR: u64 = u64::MAX - 1;

/// No rank.
const NO_RANK: u32 = u32::MAX;

/// Reads of the hot peer with something after which its socket is not watched any more.
const HITS: u32 = 64;

/// Reads with something after which a peer counts as the one from which the next thing comes.
///
/// Before that it is looked for among all in every poll, and the hot one has no look of its own.
const STEADY: u32 = 4;

/// The other sockets are looked for in one of so many polls, as that is a system call.
const OTHERS_EVERY: u32 = 4;

/// The same where there is one socket, for connections that come.
const CONNECTIONS_EVERY: u32 = 64;

/// The mark of events of the first connection to a peer.
fn mark(rank: u32) -> u64 {
    let peer = JobRank(rank);
    RailId { peer, number: 0 }.to_word()
}

/// Room for the events that [`Readiness::wait`] finds.
pub(super) type Found = [MaybeUninit<epoll::Event>; Ready::ROOM];

/// Exceptions from the rule that all sockets are watched for something to read.
#[derive(Debug, Default)]
struct Exceptions {
    /// The socket of the hot peer, while it is not watched.
    unwatched: Option<(u32, Socket)>,
    /// Peers whose first connections are watched for room to write, too.
    for_room: BTreeSet<u32>,
}

#[derive(Debug)]
pub(super) struct Readiness {
    epoll: OwnedFd,
    /// The hot peer, and reads of it that found something.
    ///
    /// Hints.
    hot: AtomicU32,
    hits: AtomicU32,
    exceptions: Mutex<Exceptions>,
    /// Counts polls.
    polls: AtomicU32,
}

impl Readiness {
    /// `wake` ends sleeps; `connector` has connections to give.
    pub(super) fn new(wake: BorrowedFd<'_>, connector: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let own = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            hot: AtomicU32::new(NO_RANK),
            hits: AtomicU32::new(0),
            exceptions: Mutex::default(),
            polls: AtomicU32::new(0),
        };
        own.add(wake, WAKE)?;
        connector.map_or(Ok(()), |connector| own.add(connector, CONNECTOR))?;
        Ok(own)
    }

    /// Can be read while a watched descriptor has something.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Room for [`wait`](Self::wait).
    pub(super) fn found() -> Found {
        [const { MaybeUninit::uninit() }; Ready::ROOM]
    }

    /// Marks of descriptors with something; waits for the first so long, forever if not given.
    pub(super) fn wait<'a>(
        &self,
        found: &'a mut Found,
        timeout: Option<&Timespec>,
    ) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let events = epoll::wait(&self.epoll, found, timeout);
        let events = events.map_or(&[][..], |(events, _)| &*events);
        events.iter().map(|event| event.data.u64())
    }

    /// A descriptor is watched for something to read.
    pub(super) fn add(&self, descriptor: BorrowedFd<'_>, mark: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(mark);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// It is not watched any more, although others may hold the same socket open.
    pub(super) fn remove(&self, socket: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// A socket is watched for room to write, too, or not.
    pub(super) fn watch_room(&self, socket: BorrowedFd<'_>, id: RailId, is_watched: bool) {
        let mut exceptions = self.exceptions.lock();
        if id.number == 0 {
            match is_watched {
                true => exceptions.for_room.insert(id.peer.0),
                false => exceptions.for_room.remove(&id.peer.0),
            };
        }
        let data = epoll::EventData::new_u64(id.to_word());
        // The end of a connection, the only reason to fail, is found by the thread that reads.
        let _ = epoll::modify(&self.epoll, socket, data, input(is_watched));
    }

    /// The peer of which every poll reads, and in how many polls the others are looked for once.
    ///
    /// `alone`: there is one socket at most.
    #[inline]
    pub(super) fn first(&self, alone: bool) -> (Option<u32>, u32) {
        let hot = self.hot.load(Ordering::Relaxed);
        if hot == NO_RANK {
            (None, 1)
        } else if alone {
            (Some(hot), CONNECTIONS_EVERY)
        } else if self.hits.load(Ordering::Relaxed) >= STEADY {
            (Some(hot), OTHERS_EVERY)
        } else {
            (None, 1)
        }
    }

    /// Counts a poll.
    #[inline]
    pub(super) fn count_poll(&self) -> u32 {
        let polls = self.polls().wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        polls
    }

    /// Polls so far.
    #[inline]
    pub(super) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// The next poll looks for all.
    pub(super) fn look_around(&self) {
        self.polls.store(u32::MAX, Ordering::Relaxed);
    }

    /// A peer has something: it is the hot one from now on.
    ///
    /// If another was, all are watched again.
    pub(super) fn set_hot(&self, rank: u32) {
        let hot = self.hot.load(Ordering::Relaxed);
        if rank == hot {
            return;
        }
        self.hits.store(0, Ordering::Relaxed);
        self.hot.store(rank, Ordering::Relaxed);
        // After that: another thread that has found the last hot one steady leaves it watched now.
        self.watch_all();
    }

    /// Nothing comes from a peer any more: it is not the hot one.
    pub(super) fn clear_hot(&self, rank: u32) {
        if self.hot.load(Ordering::Relaxed) == rank {
            self.hot.store(NO_RANK, Ordering::Relaxed);
            // After that, as in `set_hot`.
            self.watch_all();
        }
    }

    /// A read of a peer has found something; whether its socket needs to be watched no more.
    #[inline]
    pub(super) fn hit(&self, rank: u32) -> bool {
        if self.hot.load(Ordering::Relaxed) != rank {
            return false;
        }
        let hits = self.hits.load(Ordering::Relaxed);
        if hits <= HITS {
            self.hits.store(hits + 1, Ordering::Relaxed);
        }
        hits == HITS
    }

    /// The socket of the hot peer is not watched, unless `asleep` says that it must be.
    #[cold]
    pub(super) fn unwatch(&self, socket: &Socket, rank: u32, asleep: &dyn Fn() -> bool) {
        let mut exceptions = self.exceptions.lock();
        if exceptions.unwatched.is_none()
            && !asleep()
            && self.hot.load(Ordering::Relaxed) == rank
            && epoll::delete(&self.epoll, socket.descriptor()).is_ok()
        {
            exceptions.unwatched = Some((rank, socket.clone()));
        }
    }

    /// All sockets are watched again.
    pub(super) fn watch_all(&self) {
        let mut exceptions = self.exceptions.lock();
        if let Some((rank, socket)) = exceptions.unwatched.take() {
            self.hits.store(0, Ordering::Relaxed);
            let data = epoll::EventData::new_u64(mark(rank));
            let events = input(exceptions.for_room.contains(&rank));
            // Under the lock, so that a connection that is given up meanwhile is not added. Where
            // the system has no memory, the next call tries again.
            if epoll::add(&self.epoll, socket.descriptor(), data, events).is_err() {
                exceptions.unwatched = Some((rank, socket));
            }
        }
    }

    /// A peer's first connection is given up.
    pub(super) fn cool(&self, rank: u32) {
        if self.hot.load(Ordering::Relaxed) == rank {
            self.hot.store(NO_RANK, Ordering::Relaxed);
        }
        let mut exceptions = self.exceptions.lock();
        exceptions.for_room.remove(&rank);
        if exceptions
            .unwatched
            .as_ref()
            .is_some_and(|(its, _)| *its == rank)
        {
            exceptions.unwatched = None;
        }
    }
}

fn input(and_room: bool) -> epoll::EventFlags {
    let mut events = epoll::EventFlags::IN;
    events.set(epoll::EventFlags::OUT, and_room);
    events
}
