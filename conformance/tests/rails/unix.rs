//! A rail to read first: Unix sockets between ranks of one process. docs/conduits.md goes through
//! it step by step.

use argonet_base::JobRank;
use argonet_conduit::channel::Pieces;
use argonet_conduit::channel::rail::{Look, Made, NewRail, Rail, RailId, Rails, Ready};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// One rail: a socket that does not block.
///
/// A clone is the same socket.
#[derive(Clone, Debug)]
pub(crate) struct Pipe(Arc<OwnedFd>);

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of a call of the system, or its error.
fn result(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

/// Pieces as the system takes them.
fn message(pieces: &Pieces) -> libc::msghdr {
    // SAFETY: a header of zeros is a valid one: no address, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `Piece` is laid out as `iovec` is.
    message.msg_iov = pieces.as_slice().as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.as_slice().len();
    message
}

// SAFETY: the system reads and writes during the call alone, and says how much.
unsafe impl Rail for Pipe {
    unsafe fn write(&self, pieces: &Pieces) -> io::Result<usize> {
        let message = message(pieces);
        // SAFETY: the caller promises that all pieces can be read.
        result(unsafe { libc::sendmsg(self.0.as_raw_fd(), &message, libc::MSG_NOSIGNAL) })
    }

    unsafe fn read(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut message = message(pieces);
        // SAFETY: the caller promises that all pieces can be written.
        result(unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut message, 0) })
    }

    fn shut(&self) {
        // A socket that has ended already is no error.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }
}

/// Joins the ranks of a process: a wish of one makes a rail for both.
pub(crate) struct Hub {
    state: Mutex<State>,
    /// Of each rank; can be read while it is to wake.
    wakeups: Vec<OwnedFd>,
}

#[derive(Default)]
struct State {
    /// Rails of each rank that it has not taken.
    made: Vec<VecDeque<NewRail<Pipe>>>,
    /// The end that a rank has of each.
    ends: BTreeMap<(JobRank, RailId), Pipe>,
    ended: Vec<JobRank>,
    /// Rails that were made.
    count: u64,
}

impl Hub {
    pub(crate) fn new(ranks: u32) -> Arc<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let state = State {
            made: (0..ranks).map(|_| VecDeque::new()).collect(),
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            wakeups: (0..ranks)
                .map(|_| eventfd(0, flags).expect("a descriptor"))
                .collect(),
        })
    }

    /// The end that a rank has of its first rail to a peer.
    pub(crate) fn socket(&self, rank: JobRank, peer: JobRank) -> OwnedFd {
        let id = RailId { peer, number: 0 };
        let socket = self.state().ends[&(rank, id)].0.try_clone();
        socket.expect("a descriptor")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread of the hub has failed")
    }

    fn wake(&self, rank: JobRank) {
        // Full means that it is signaled.
        let _ = rustix::io::write(&self.wakeups[rank.index()], &1u64.to_ne_bytes());
    }

    /// Makes a rail between two ranks, once.
    pub(crate) fn join(&self, rank: JobRank, RailId { peer, number }: RailId) {
        let mut state = self.state();
        // Both ranks may ask for the same. A socket pair does not break by itself.
        if state.ends.contains_key(&(rank, RailId { peer, number })) || state.ended.contains(&peer)
        {
            return;
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (here, there) = pair.expect("a socket pair");
        state.count += 1;
        let incarnation = state.count;
        for (to, peer, socket) in [(rank, peer, here), (peer, rank, there)] {
            let (id, rail) = (RailId { peer, number }, Pipe(Arc::new(socket)));
            state.ends.insert((to, id), rail.clone());
            state.made[to.index()].push_back(NewRail {
                id,
                rail,
                incarnation,
                received: 0,
            });
            self.wake(to);
        }
    }
}

#[allow(dead_code, reason = "rails break for failover alone")]
impl Hub {
    /// What is readable while a rank is to wake.
    pub(crate) fn wakeup(&self, rank: JobRank) -> &OwnedFd {
        &self.wakeups[rank.index()]
    }

    /// Lets a wish make another rail in the place of one that has ended.
    pub(crate) fn forget_ended(&self, ended: impl Fn(&Pipe) -> bool) {
        self.state().ends.retain(|_, pipe| !ended(pipe));
    }

    /// All ends that ranks have.
    pub(crate) fn ends(&self) -> Vec<Pipe> {
        self.state().ends.values().cloned().collect()
    }
}

/// The rails of one rank.
pub(crate) struct Pipes {
    rank: JobRank,
    hub: Arc<Hub>,
    /// Those that are open, and which of them are waited at for room.
    open: Mutex<BTreeMap<u64, (Pipe, bool)>>,
    polls: AtomicU32,
}

impl Pipes {
    pub(crate) fn new(rank: JobRank, hub: Arc<Hub>) -> Self {
        Self {
            rank,
            hub,
            open: Mutex::default(),
            polls: AtomicU32::new(0),
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, (Pipe, bool)>> {
        self.open.lock().expect("no thread of the rank has failed")
    }

    pub(crate) fn has_made(&self) -> bool {
        !self.hub.state().made[self.rank.index()].is_empty()
    }

    /// Waits until some rail has something, or as long; gives `found` those that do.
    fn wait(&self, timeout: Option<Duration>, mut found: impl FnMut(RailId)) {
        let open = self.open().clone();
        let mut descriptors = vec![PollFd::new(
            &self.hub.wakeups[self.rank.index()],
            PollFlags::IN,
        )];
        for (pipe, for_room) in open.values() {
            let room = if *for_room {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            descriptors.push(PollFd::new(&*pipe.0, PollFlags::IN | room));
        }
        let timeout = timeout.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        // A signal ends the wait, too.
        let _ = poll(&mut descriptors, timeout.as_ref());
        for (word, descriptor) in open.keys().zip(&descriptors[1..]) {
            let unread = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
            if descriptor.revents().intersects(unread) {
                found(RailId::from_word(*word));
            }
        }
    }
}

impl Rails for Pipes {
    type Rail = Pipe;

    fn name(&self) -> &'static str {
        "unix"
    }

    fn want(&self, id: RailId) {
        self.hub.join(self.rank, id);
    }

    fn next(&self, _received: &dyn Fn(RailId) -> u64) -> Option<Made<Pipe>> {
        let made = self.hub.state().made[self.rank.index()].pop_front();
        made.map(Made::Rail)
    }

    fn open(&self, id: RailId, rail: &Pipe) -> io::Result<()> {
        self.open().insert(id.to_word(), (rail.clone(), false));
        // A thread that sleeps already waits at those that were open.
        self.wake();
        Ok(())
    }

    fn close(&self, id: RailId, rail: &Pipe) {
        self.open().remove(&id.to_word());
        rail.shut();
    }

    fn begin_poll(&self, _alone: bool) -> Look {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Look {
            first: None,
            all: true,
        }
    }

    fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    fn ready(&self, found: &mut Ready) {
        let mut all = Vec::new();
        self.wait(Some(Duration::ZERO), |id| all.push(id));
        // Each has its turn where there are more than `found` has room for.
        let turn = self.polls() as usize % all.len().max(1);
        all.rotate_left(turn);
        for id in all {
            found.add(id);
        }
        if self.has_made() {
            found.add_made();
        }
    }

    fn has_ready(&self) -> bool {
        let mut found = Ready::new();
        self.ready(&mut found);
        found.has_made() || !found.rails().is_empty()
    }

    fn wait_for_room(&self, id: RailId, _rail: &Pipe, waits: bool) {
        if let Some((_, for_room)) = self.open().get_mut(&id.to_word()) {
            *for_room = waits;
        }
        self.wake();
    }

    fn sleep(&self, timeout: Option<Duration>) {
        if !self.has_made() {
            self.wait(timeout, |_| {});
        }
    }

    fn wake(&self) {
        self.hub.wake(self.rank);
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.hub.wakeups[self.rank.index()], &mut [0; 8]);
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.ended.push(self.rank);
        state.made[self.rank.index()].clear();
        let own = |(rank, _): &(JobRank, RailId), _: &mut Pipe| *rank == self.rank;
        for (_, pipe) in state.ends.extract_if(.., own) {
            pipe.shut();
        }
    }
}
