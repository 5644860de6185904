//! The sockets of a rank as its rails: which have something, and where they come from.

use super::connector::Connector;
use super::join::dial::MAX_CONNECTIONS;
use super::readiness::{CONNECTOR, Readiness, WAKE};
use super::socket::Socket;
use super::watch::Watch;
use crate::channel::rail::{
    Look, MOST_RAILS, Made, NewRail, Rail, RailId, Rails, Ready, Server, Vital,
};
use crate::connections::GateCounts;
use crate::failover::Member;
use argonet_base::JobRank;
use core::net::IpAddr;
use core::time::Duration;
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

// Connections are numbered as rails.
static_assertions::const_assert!(MAX_CONNECTIONS <= MOST_RAILS);

/// The sockets of a rank.
pub struct Sockets {
    connector: Arc<dyn Connector>,
    readiness: Readiness,
    /// Can be read while a thread that sleeps is to wake.
    wakeup: OwnedFd,
    /// `None` where no thread serves them.
    watch: Option<Watch>,
}

impl Sockets {
    /// Those that `connector` makes.
    ///
    /// `serves`: whether a thread serves them while the rank makes no call.
    ///
    /// # Errors
    /// The system gives no descriptors.
    pub fn new(connector: Arc<dyn Connector>, serves: bool) -> io::Result<Self> {
        let wakeup = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let readiness = Readiness::new(wakeup.as_fd(), connector.descriptor())?;
        let watch = serves.then(|| Watch::new(Arc::clone(&connector)));
        Ok(Self {
            watch: watch.transpose()?,
            connector,
            readiness,
            wakeup,
        })
    }

    /// Adds the sockets that the system has found.
    ///
    /// The peer from which something came last is read first from now on.
    fn add(&self, marks: impl Iterator<Item = u64>, found: &mut Ready) {
        for mark in marks {
            match mark {
                WAKE => {}
                CONNECTOR => found.add_made(),
                mark => {
                    // As many as the system finds at a time have room.
                    found.add(RailId::from_word(mark));
                }
            }
        }
        if let Some(last) = found.rails().last() {
            self.readiness.set_hot(last.peer.0);
        }
        if self.connector.descriptor().is_none() {
            found.add_made();
        }
    }
}

impl Rails for Sockets {
    type Rail = Socket;

    fn reopens(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        super::NAME
    }

    fn most(&self) -> u16 {
        MAX_CONNECTIONS
    }

    fn want(&self, id: RailId) {
        self.connector.want(id.peer, id.number);
    }

    fn next(&self, received: &dyn Fn(RailId) -> u64) -> Option<Made<Socket>> {
        let made = self.connector.next(received)?;
        Some(match made {
            Made::Rail(new) => Made::Rail(NewRail {
                id: new.id,
                rail: Socket::new(new.rail),
                incarnation: new.incarnation,
                received: new.received,
            }),
            Made::Unreachable(id, error) => Made::Unreachable(id, error),
        })
    }

    fn open(&self, id: RailId, rail: &Socket) -> io::Result<()> {
        let socket = rail.descriptor();
        // spec T2: no call waits for a socket.
        rustix::io::ioctl_fionbio(socket, true)?;
        // Other kinds of sockets have no delay to turn off.
        let _ = rustix::net::sockopt::set_tcp_nodelay(socket, true);
        self.readiness.add(socket, id.to_word())?;
        let watch = self.watch.as_ref();
        let added = watch.map_or(Ok(()), |watch| watch.add(socket, id.to_word()));
        if added.is_err() {
            self.readiness.remove(socket);
        }
        added
    }

    fn close(&self, id: RailId, rail: &Socket) {
        if id.number == 0 {
            self.readiness.cool(id.peer.0);
        }
        self.readiness.remove(rail.descriptor());
        if let Some(watch) = &self.watch {
            watch.remove(rail.descriptor());
        }
        Rail::shut(rail);
    }

    fn unwant(&self, id: RailId) {
        self.connector.unwant(id.peer, id.number);
    }

    #[inline]
    fn begin_poll(&self, alone: bool) -> Look {
        let (first, every) = self.readiness.first(alone);
        let all = self.readiness.count_poll().is_multiple_of(every);
        let first = first.map(JobRank);
        Look { first, all }
    }

    #[inline]
    fn polls(&self) -> u32 {
        self.readiness.polls()
    }

    #[inline]
    fn heard(&self, peer: JobRank, rail: &Socket, asleep: &dyn Fn() -> bool) {
        if self.readiness.hit(peer.0) {
            self.readiness.unwatch(rail, peer.0, asleep);
        }
    }

    fn cool(&self, peer: JobRank) {
        self.readiness.clear_hot(peer.0);
    }

    fn ready(&self, found: &mut Ready) {
        let mut events = Readiness::found();
        let marks = self.readiness.wait(&mut events, Some(&Timespec::default()));
        self.add(marks, found);
    }

    fn has_ready(&self) -> bool {
        self.readiness.watch_all();
        let mut events = Readiness::found();
        let mut marks = self.readiness.wait(&mut events, Some(&Timespec::default()));
        let something = marks.any(|mark| mark != WAKE);
        if something {
            self.readiness.look_around();
        }
        something
    }

    fn arm(&self) {
        self.readiness.watch_all();
    }

    fn wait_for_room(&self, id: RailId, rail: &Socket, waits: bool) {
        self.readiness.watch_room(rail.descriptor(), id, waits);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        // After any event the caller looks again.
        let _ = self
            .readiness
            .wait(&mut Readiness::found(), timeout.as_ref());
        self.readiness.look_around();
    }

    #[cold]
    fn wake(&self) {
        // Full means that it is signaled.
        let _ = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    fn forget_wakeups(&self) {
        let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
    }

    fn server(&self) -> Option<&dyn Server<Socket>> {
        self.watch
            .as_ref()
            .map(|watch| watch as &dyn Server<Socket>)
    }

    fn came(&self) -> u64 {
        self.connector.came()
    }

    fn callers(&self) -> Option<GateCounts> {
        self.connector.callers()
    }
}

impl Member for Sockets {
    fn lasts(&self) -> bool {
        false
    }

    fn begin_sleep<'a>(&'a self, wakes: &mut Vec<BorrowedFd<'a>>) -> bool {
        wakes.push(self.readiness.descriptor());
        true
    }

    fn end_sleep(&self) {
        self.readiness.look_around();
    }

    fn address(&self, rail: &Socket) -> Option<IpAddr> {
        rail.address()
    }

    fn readdress(&self) {
        self.connector.readdress();
    }

    fn silence(&self, _peer: JobRank, rail: &Socket) -> Option<Vital> {
        Rail::vital(rail)
    }
}
