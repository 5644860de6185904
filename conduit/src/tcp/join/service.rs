//! A joiner that any thread may use, with the system's clock; a conduit drives it.

use super::dial::Unreachable;
use super::gate::GateCounts;
use super::interfaces::Interface;
use super::joiner::Joiner;
use super::user::{JoinUser, Joined, Whereabouts};
use argonet_base::JobRank;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::collections::VecDeque;
use std::time::Instant;

/// The outcome of a wish, or a connection made by a peer.
#[derive(Debug)]
pub enum Made {
    /// A connection.
    Joined(Joined),
    /// There will be none.
    Unreachable(Unreachable),
}

/// Says where a peer is.
pub type Directory = Box<dyn FnMut(JobRank) -> Whereabouts + Send>;

/// Lists the interfaces at which a rank is reached now; `None` where they cannot be listed.
pub type OwnInterfaces = Box<dyn FnMut() -> Option<Vec<Interface>> + Send>;

/// When interfaces are listed again of which some could not be used, and how often.
const AGAIN_NS: u64 = 1_000_000_000;
const TRIES: u32 = 30;

/// A [`Joiner`] behind a lock, with a clock, and with a descriptor that also becomes readable when
/// a time has come.
pub struct JoinService {
    /// Wishes that were not begun.
    ///
    /// They have a lock of their own: the thread that wishes may hold locks that a fence takes.
    wishes: Mutex<VecDeque<Wish>>,
    /// Readable while there are wishes: written and read under their lock.
    wakeup: OwnedFd,
    state: Mutex<State>,
    /// Has the joiner's descriptor, the wakeup and the timer.
    waiting: OwnedFd,
    timer: OwnedFd,
    begun: Instant,
    /// Sum of the gate's counts.
    ///
    /// A hint.
    came: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Want(JobRank, u16),
    Close(JobRank, u16),
    /// To list this rank's interfaces again.
    Readdress,
}

impl Wish {
    fn id(self) -> Option<(JobRank, u16)> {
        match self {
            Self::Want(peer, connection) | Self::Close(peer, connection) => {
                Some((peer, connection))
            }
            Self::Readdress => None,
        }
    }
}

struct State {
    joiner: Joiner,
    directory: Directory,
    own: Own,
    made: VecDeque<Made>,
    /// When the timer fires; ns since the service began.
    armed_ns: Option<u64>,
}

impl core::fmt::Debug for JoinService {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("JoinService").finish_non_exhaustive()
    }
}

impl JoinService {
    /// A service that asks `directory` where peers are.
    ///
    /// # Errors
    /// The system gives no descriptors.
    pub fn new(joiner: Joiner, directory: Directory) -> rustix::io::Result<Self> {
        let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        for descriptor in [joiner.as_fd(), timer.as_fd(), wakeup.as_fd()] {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&waiting, descriptor, data, epoll::EventFlags::IN)?;
        }
        let state = State {
            joiner,
            directory,
            own: Own {
                list: Box::new(|| Some(Vec::new())),
                again_ns: None,
                tries: 0,
            },
            made: VecDeque::new(),
            armed_ns: None,
        };
        Ok(Self {
            wishes: Mutex::default(),
            wakeup,
            state: Mutex::new(state),
            waiting,
            timer,
            begun: Instant::now(),
            came: AtomicU64::new(0),
        })
    }

    /// Asks `own` for this rank's interfaces when [`readdress`](Self::readdress) was called.
    #[must_use]
    pub fn with_own(self, own: OwnInterfaces) -> Self {
        self.state.lock().own.list = own;
        self
    }

    /// Addresses of this host have changed: the rank listens and connects at those that its
    /// interfaces have now; as [`want`](Self::want).
    pub fn readdress(&self) {
        self.wish(Wish::Readdress);
    }

    /// Asks for a connection: the first of this number, or another after it was lost.
    ///
    /// To ask again before [`next`](Self::next) has given it changes nothing. Only notes the wish,
    /// which the next call of `next` begins, and may be called with any lock held.
    ///
    /// # Panics
    /// `next` does, if the peer is not another rank of the job or the number is too large.
    pub fn want(&self, peer: JobRank, connection: u16) {
        self.wish(Wish::Want(peer, connection));
    }

    /// A connection is not wanted any more, and is closed; as [`want`](Self::want).
    pub fn close(&self, peer: JobRank, connection: u16) {
        self.wish(Wish::Close(peer, connection));
    }

    fn wish(&self, wish: Wish) {
        let mut wishes = self.wishes.lock();
        let last = wishes.iter().rfind(|other| other.id() == wish.id());
        if last != Some(&wish) {
            wishes.push_back(wish);
        }
        // It fails only after 2^64 wakeups.
        let _ = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    /// Takes the wishes made since.
    fn wishes(&self) -> VecDeque<Wish> {
        let mut wishes = self.wishes.lock();
        if wishes.is_empty() {
            return VecDeque::new();
        }
        // Under the lock, as it is written: else one that is written in between stays so with
        // nothing to wish, and the rank neither sleeps nor counts as quiescent until the next wish.
        let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
        core::mem::take(&mut *wishes)
    }

    /// Takes a connection made since; to be called until there is none, with no lock held that
    /// `fence` takes.
    ///
    /// `fence` ends the use of the old connection of this number, as [`JoinUser::fence`] says: no
    /// thread may take anything from it afterwards.
    ///
    /// Yields the last sequence number that was.
    ///
    /// # Errors
    /// The system refuses to list ready sockets, or does not set a timer.
    pub fn next(&self, fence: &dyn Fn(JobRank, u16) -> u64) -> rustix::io::Result<Option<Made>> {
        if let Some(made) = self.state.lock().made.pop_front() {
            return Ok(Some(made));
        }
        let wishes = self.wishes();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let now_ns = self.begun.elapsed().as_nanos() as u64;
        let mut user = Caller {
            directory: &mut state.directory,
            own: &mut state.own,
            made: &mut state.made,
            fence,
        };
        for wish in wishes {
            user.grant(&mut state.joiner, now_ns, wish);
        }
        if user.own.again_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            user.own.readdress(&mut state.joiner, now_ns);
        }
        state.joiner.poll(now_ns, &mut user)?;
        let counts = state.joiner.counts();
        let came = counts.seen + counts.proven + counts.dropped();
        self.came.store(came, Ordering::Relaxed);
        let next_ns = [state.joiner.poll_timeout(), state.own.again_ns];
        let next_ns = next_ns.into_iter().flatten().min();
        state.arm(&self.timer, now_ns, next_ns)?;
        Ok(state.made.pop_front())
    }

    /// Readable while [`next`](Self::next) has something to do.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }

    /// Where this rank listens.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.state.lock().joiner.addresses().to_vec()
    }

    /// Counts of its gate.
    #[must_use]
    pub fn counts(&self) -> GateCounts {
        self.state.lock().joiner.counts()
    }

    /// The same; `None` while another thread is in [`next`](Self::next), which may wait for a lock
    /// that the caller holds.
    #[must_use]
    pub fn try_counts(&self) -> Option<GateCounts> {
        Some(self.state.try_lock()?.joiner.counts())
    }

    /// A number that changes with the counts.
    #[must_use]
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    /// Addresses of the job's hosts, which come first when strangers fill the gate.
    pub fn know(&self, hosts: impl IntoIterator<Item = IpAddr>) {
        self.state.lock().joiner.know(hosts);
    }
}

impl State {
    /// Sets the timer, if it is not set so.
    ///
    /// A time that has come counts as at once.
    fn arm(&mut self, timer: &OwnedFd, now_ns: u64, at_ns: Option<u64>) -> rustix::io::Result<()> {
        let has_fired = self.armed_ns.is_some_and(|armed_ns| armed_ns <= now_ns);
        if at_ns == self.armed_ns && !has_fired {
            return Ok(());
        }
        // Zero would be no timer at all.
        let wait_ns = at_ns.map_or(0, |at_ns| at_ns.saturating_sub(now_ns).max(1));
        let time = |ns: u64| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let value = Itimerspec {
            it_interval: time(0),
            it_value: time(wait_ns),
        };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &value)?;
        self.armed_ns = at_ns;
        Ok(())
    }
}

/// This rank's interfaces.
struct Own {
    list: OwnInterfaces,
    /// They are listed again then.
    again_ns: Option<u64>,
    /// How often that was done in a row.
    tries: u32,
}

impl Own {
    /// The joiner uses those that there are now.
    ///
    /// The system may have no descriptor or memory for that, or an address may be of no use yet:
    /// then it is tried again.
    fn readdress(&mut self, joiner: &mut Joiner, now_ns: u64) {
        let listed = (self.list)();
        let is_done = listed.is_some_and(|listed| joiner.readdress(listed).is_ok());
        self.tries += 1;
        let again = !is_done && self.tries < TRIES;
        self.again_ns = again.then_some(now_ns + AGAIN_NS);
    }
}

/// The joiner's user for one call.
struct Caller<'a> {
    directory: &'a mut Directory,
    own: &'a mut Own,
    made: &'a mut VecDeque<Made>,
    fence: &'a dyn Fn(JobRank, u16) -> u64,
}

impl Caller<'_> {
    fn grant(&mut self, joiner: &mut Joiner, now_ns: u64, wish: Wish) {
        match wish {
            Wish::Readdress => {
                self.own.tries = 0;
                self.own.readdress(joiner, now_ns);
            }
            Wish::Close(peer, connection) => joiner.close(now_ns, peer, connection, self),
            // The connection was made before this wish was read.
            Wish::Want(peer, connection) if self.has(peer, connection) => {}
            Wish::Want(peer, connection) => match joiner.incarnation(peer, connection) {
                Some(incarnation) => joiner.lost(now_ns, peer, connection, incarnation, self),
                None => joiner.ask(now_ns, peer, connection, self),
            },
        }
    }

    fn has(&self, peer: JobRank, connection: u16) -> bool {
        self.made.iter().any(|made| is(made, peer, connection))
    }
}

fn is(made: &Made, peer: JobRank, connection: u16) -> bool {
    matches!(made, Made::Joined(j) if j.peer == peer && j.connection == connection)
}

impl JoinUser for Caller<'_> {
    fn whereabouts(&mut self, peer: JobRank) -> Whereabouts {
        (self.directory)(peer)
    }

    fn fence(&mut self, peer: JobRank, connection: u16) -> u64 {
        // A connection that no caller has taken yet is ended, too.
        self.made.retain(|made| !is(made, peer, connection));
        (self.fence)(peer, connection)
    }

    fn joined(&mut self, joined: Joined) {
        self.made.push_back(Made::Joined(joined));
    }

    fn unreachable(&mut self, error: Unreachable) {
        self.made.push_back(Made::Unreachable(error));
    }
}
