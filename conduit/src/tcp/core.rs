//! One rank's part of the conduit: its peers, and what leaves for them.

use super::bits::Bits;
use super::config::TcpSizes;
use super::connector::{Connection, Connector, Made};
use super::helper::Helper;
use super::lane::Pieces;
use super::peer::{Inbound, Outbound, Peer, Report};
use super::wait::Sleepers;
use super::wire::Wire;
use crate::threads::ThreadMode;
use argonet_am::record::RecordError;
use argonet_am::{AmError, Registered};
use argonet_base::cpu::{SHORT_PAUSE_TICKS, ticks};
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::Directory;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::Mutex;
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

/// A message that leaves less than 2 us or so after the one before it joins a burst.
const BURST_TICKS: u64 = 15 * SHORT_PAUSE_TICKS;

/// Polls that find nothing before a peer is told by itself what was taken.
const PATIENCE: u32 = 32;

/// Visits of a peer with something after which its socket is not watched any more.
const HITS: u32 = 64;

/// Marks events of the two descriptors that belong to no peer.
pub(super) const WAKE: u64 = u64::MAX;
pub(super) const CONNECTOR: u64 = u64::MAX - 1;

/// No rank.
pub(super) const NOBODY: u32 = u32::MAX;

pub(super) struct Core {
    pub(super) rank: JobRank,
    pub(super) ranks: u32,
    pub(super) mode: ThreadMode,
    pub(super) sizes: TcpSizes,
    pub(super) directory: Arc<Directory>,
    pub(super) registered: Registered,
    pub(super) connector: Arc<dyn Connector>,
    /// By rank; made at first use.
    peers: Box<[OnceLock<Box<Peer>>]>,
    /// Peers for which a poll has something to do that no descriptor tells.
    pub(super) work: Bits,
    /// Peers for which something was gathered.
    pub(super) dirty: Bits,
    /// Peers that are owed to be told what was taken.
    pub(super) owing: Bits,
    /// The peer from which something came last. A hint.
    pub(super) hot: AtomicU32,
    /// Visits of the hot peer that found something, since it is hot. A hint.
    pub(super) hits: AtomicU32,
    /// The hot peer, while its socket is not watched: each packet costs less then.
    unwatched: Mutex<u32>,
    /// Counts polls.
    pub(super) turn: AtomicU32,
    /// Sockets that are connected.
    pub(super) connected: AtomicU32,
    pub(super) epoll: OwnedFd,
    pub(super) sleepers: Sleepers,
    /// Buffers of payloads that are being prepared, by their address.
    pub(super) prepared: Mutex<BTreeMap<usize, Box<[u8]>>>,
    pub(super) helper: Helper,
}

// What a rank keeps of a peer that it does not use.
static_assertions::const_assert!(size_of::<OnceLock<Box<Peer>>>() <= 16);

impl Core {
    pub(super) fn new(config: super::TcpConfig) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let sleepers = Sleepers::new()?;
        let input = epoll::EventFlags::IN;
        let own = |mark| epoll::EventData::new_u64(mark);
        epoll::add(&epoll, sleepers.descriptor(), own(WAKE), input)?;
        if let Some(descriptor) = config.connector.descriptor() {
            epoll::add(&epoll, descriptor, own(CONNECTOR), input)?;
        }
        Ok(Self {
            rank: config.rank,
            ranks: config.ranks,
            mode: config.mode,
            sizes: config.sizes,
            directory: config.directory,
            registered: config.registered,
            connector: config.connector,
            peers: (0..config.ranks).map(|_| OnceLock::new()).collect(),
            work: Bits::new(config.ranks),
            dirty: Bits::new(config.ranks),
            owing: Bits::new(config.ranks),
            hot: AtomicU32::new(NOBODY),
            hits: AtomicU32::new(0),
            unwatched: Mutex::new(NOBODY),
            turn: AtomicU32::new(0),
            connected: AtomicU32::new(0),
            epoll,
            sleepers,
            prepared: Mutex::default(),
            helper: Helper::default(),
        })
    }

    /// What is kept about a peer. Its first use asks for a connection.
    #[inline]
    pub(super) fn peer(&self, rank: JobRank) -> &Peer {
        match self.peers[rank.index()].get() {
            Some(peer) => peer,
            None => self.first_use(rank),
        }
    }

    #[cold]
    fn first_use(&self, rank: JobRank) -> &Peer {
        let (peer, is_new) = self.meet(rank);
        if is_new && rank == self.rank {
            let wire = Arc::new(Wire::own());
            peer.inbound.lock().wire = Some(Arc::clone(&wire));
            peer.outbound.lock().wire = Some(wire);
        } else if is_new {
            self.connector.want(rank);
        }
        peer
    }

    /// What is kept about a peer, and whether that was not so before.
    fn meet(&self, rank: JobRank) -> (&Peer, bool) {
        let mut is_new = false;
        let peer = self.peers[rank.index()].get_or_init(|| {
            is_new = true;
            Box::new(Peer::new(rank, &self.sizes))
        });
        (peer, is_new)
    }

    /// What is kept about a peer that was used.
    pub(super) fn used(&self, rank: u32) -> Option<&Peer> {
        self.peers.get(rank as usize)?.get().map(|peer| &**peer)
    }

    /// All peers that were used.
    pub(super) fn all_used(&self) -> impl Iterator<Item = &Peer> {
        self.peers
            .iter()
            .filter_map(|peer| peer.get())
            .map(|peer| &**peer)
    }

    /// Where bytes of this rank's own segment lie.
    pub(super) fn own(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let own = self.directory.own_rank();
        let len = usize::try_from(len).ok()?;
        self.directory.resolve(own, SegmentOffset(offset), len)
    }

    /// Attached bytes of this rank's own segment.
    pub(super) fn own_bytes(&self) -> u64 {
        self.directory.attached_bytes(self.directory.own_rank())
    }

    /// Takes connections that were made.
    pub(super) fn connect(&self) -> Vec<Report> {
        let received = |peer: JobRank| {
            let peer = self.used(peer.0);
            peer.map_or(0, |peer| peer.inbound.lock().inbox.taken())
        };
        let mut reports = Vec::new();
        while let Some(made) = self.connector.next(&received) {
            match made {
                Made::Connected(connection) => reports.extend(self.adopt(connection)),
                Made::Unreachable(peer, error) => {
                    let (peer, _) = self.meet(peer);
                    let mut inbound = peer.inbound.lock();
                    self.fail(peer, &mut inbound, error.clone());
                    reports.push(Report::Broken(error));
                }
            }
        }
        reports
    }

    /// Uses a connection, the first or another. Nothing more is read from the one before it.
    pub(super) fn adopt(&self, connection: Connection) -> Option<Report> {
        let (peer, _) = self.meet(connection.peer);
        let mut inbound = peer.inbound.lock();
        let mut outbound = peer.outbound.lock();
        if outbound.failed.is_some() || connection.incarnation <= outbound.incarnation {
            return None;
        }
        self.unwire(peer, &mut inbound, &mut outbound);
        inbound.inbox.reset();
        let resumed = outbound.outbox.resume(connection.received);
        if let Err(cause) = resumed {
            drop(outbound);
            let error = self.broken(peer.rank, cause);
            self.fail(peer, &mut inbound, error.clone());
            return Some(Report::Broken(error));
        }
        outbound.taken();
        outbound.incarnation = connection.incarnation;
        if let Err(error) = self.wire_up(&connection, peer.rank.0) {
            // As if it had been lost at once.
            drop((error, outbound, inbound));
            self.connector.want(peer.rank);
            return None;
        }
        let wire = Arc::new(Wire::Socket(connection.socket));
        inbound.wire = Some(Arc::clone(&wire));
        outbound.wire = Some(wire);
        self.connected.fetch_add(1, Ordering::Relaxed);
        let (taken, granted) = (inbound.inbox.taken(), inbound.parked.granted());
        outbound.outbox.set_tell(taken, granted);
        outbound.go_on(&self.sizes);
        if !outbound.reports.is_empty() {
            self.work.set(peer.rank.0);
        }
        self.flush(peer, &mut outbound);
        None
    }

    fn wire_up(&self, connection: &Connection, rank: u32) -> io::Result<()> {
        let socket = connection.socket.as_fd();
        rustix::io::ioctl_fionbio(socket, true)?;
        // Other kinds of sockets have no delay to turn off.
        let _ = rustix::net::sockopt::set_tcp_nodelay(socket, true);
        let data = epoll::EventData::new_u64(rank.into());
        epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Gives up the connection.
    fn unwire(&self, peer: &Peer, inbound: &mut Inbound, outbound: &mut Outbound) {
        if self.hot.load(Ordering::Relaxed) == peer.rank.0 {
            self.hot.store(NOBODY, Ordering::Relaxed);
        }
        outbound.watched = false;
        let mut unwatched = self.unwatched.lock();
        if *unwatched == peer.rank.0 {
            *unwatched = NOBODY;
        }
        drop(unwatched);
        let wires = [inbound.wire.take(), outbound.wire.take()];
        if let Some(socket) = wires.iter().flatten().find_map(|wire| wire.descriptor()) {
            // Others may hold the same socket open, which then would go on to be watched.
            let _ = epoll::delete(&self.epoll, socket);
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The connection has ended. Whoever holds `inbound` asks for another when it does not hold it any more.
    #[cold]
    pub(super) fn lost(&self, peer: &Peer, inbound: &mut Inbound) {
        let mut outbound = peer.outbound.lock();
        self.unwire(peer, inbound, &mut outbound);
        inbound.lost = outbound.failed.is_none();
    }

    /// Nothing passes between this rank and the peer any more.
    #[cold]
    pub(super) fn fail(&self, peer: &Peer, inbound: &mut Inbound, error: AmError) {
        let mut outbound = peer.outbound.lock();
        self.unwire(peer, inbound, &mut outbound);
        outbound.failed = Some(error);
    }

    /// The error of a peer that sends what cannot be used.
    pub(super) fn broken(&self, from: JobRank, cause: RecordError) -> AmError {
        let at = self.rank;
        AmError::Broken { at, from, cause }
    }

    /// Something was added for a peer: it leaves now, or is gathered with what follows at once.
    #[inline]
    pub(super) fn depart(&self, peer: &Peer, outbound: &mut Outbound, unsent_before: u64) {
        let now = ticks();
        let unsent = outbound.outbox.unsent();
        let at_once = self.sizes.gather_time.is_zero()
            || unsent >= self.sizes.gather_bytes as u64
            || (unsent_before == 0 && now.wrapping_sub(outbound.left_at) > BURST_TICKS);
        if at_once {
            self.flush(peer, outbound);
        } else if unsent_before == 0 && outbound.wire.is_some() {
            outbound.gathered_at = now;
            self.dirty.set(peer.rank.0);
            self.helper.gather();
        }
    }

    /// Writes what the connection takes.
    pub(super) fn flush(&self, peer: &Peer, outbound: &mut Outbound) {
        while let Some(wire) = &outbound.wire {
            let mut pieces = Pieces::new();
            outbound.outbox.to_write(&mut pieces);
            if pieces.bytes() == 0 {
                break;
            }
            // SAFETY: the outbox keeps all pieces where they are until `wrote`, and users keep theirs
            // until they are told of local completion.
            match unsafe { wire.write(&pieces) } {
                Ok(bytes) => {
                    outbound.outbox.wrote(bytes);
                    if wire.holds_own() {
                        self.work.set(peer.rank.0);
                        self.wake();
                    }
                    if bytes < pieces.bytes() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // Whoever reads finds the end of the connection, and asks for another.
                    if let Some(socket) = wire.descriptor() {
                        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
                    }
                    break;
                }
            }
        }
        outbound.left_at = ticks();
        if outbound.outbox.unsent() > 0 {
            if outbound.wire.is_some() {
                self.dirty.set(peer.rank.0);
                self.helper.gather();
            }
        } else if outbound.watched {
            self.watch(peer, outbound, false);
        }
    }

    /// Sends what was gathered for any peer, and tells peers what they are owed to be told for long.
    #[inline]
    pub(super) fn flush_gathered(&self) {
        if self.dirty.any() {
            self.each_of(&self.dirty, |peer, outbound| self.flush(peer, outbound));
        }
        if self.owing.any() {
            self.each_of(&self.owing, |peer, outbound| {
                self.owe(peer, outbound, PATIENCE)
            });
        }
    }

    /// Takes the peers out of a set, and does something for each.
    fn each_of(&self, bits: &Bits, mut f: impl FnMut(&Peer, &mut Outbound)) {
        bits.each(|rank| {
            bits.take(rank);
            if let Some(peer) = self.used(rank) {
                f(peer, &mut peer.outbound.lock());
            }
        });
    }

    /// Tells a peer what was taken after so many looks.
    fn owe(&self, peer: &Peer, outbound: &mut Outbound, patience: u32) {
        if outbound.outbox.untold() == 0 || outbound.wire.is_none() {
            return;
        }
        if outbound.patience < patience {
            outbound.patience += 1;
        } else {
            outbound.patience = 0;
            outbound.outbox.tell_now();
            self.flush(peer, outbound);
        }
        if outbound.outbox.untold() > 0 {
            self.owing.set(peer.rank.0);
        }
    }

    /// Before a sleep everything leaves and is told. What has no room is watched.
    pub(super) fn flush_all(&self) {
        self.each_of(&self.owing, |peer, outbound| self.owe(peer, outbound, 0));
        self.each_of(&self.dirty, |peer, outbound| {
            self.flush(peer, outbound);
            if outbound.outbox.unsent() > 0 {
                self.watch(peer, outbound, true);
            }
        });
    }

    /// The hot peer has had something once more: after some time its socket is not watched, as it is read in every
    /// poll.
    #[inline]
    pub(super) fn hit(&self, peer: &Peer, inbound: &Inbound) {
        let hits = self.hits.load(Ordering::Relaxed);
        if hits <= HITS {
            self.hits.store(hits + 1, Ordering::Relaxed);
            if hits == HITS {
                self.unwatch(peer, inbound);
            }
        }
    }

    #[cold]
    fn unwatch(&self, peer: &Peer, inbound: &Inbound) {
        let mut unwatched = self.unwatched.lock();
        if *unwatched == NOBODY
            && !self.sleepers.any()
            && let Some(socket) = inbound.wire.as_ref().and_then(|wire| wire.descriptor())
            && epoll::delete(&self.epoll, socket).is_ok()
        {
            *unwatched = peer.rank.0;
        }
    }

    /// Watches all sockets again.
    pub(super) fn watch_all(&self) {
        let mut unwatched = self.unwatched.lock();
        if *unwatched == NOBODY {
            return;
        }
        let rank = core::mem::replace(&mut *unwatched, NOBODY);
        self.hits.store(0, Ordering::Relaxed);
        drop(unwatched);
        let Some(peer) = self.used(rank) else { return };
        let outbound = peer.outbound.lock();
        if let Some(socket) = outbound.wire.as_ref().and_then(|wire| wire.descriptor()) {
            let mut events = epoll::EventFlags::IN;
            events.set(epoll::EventFlags::OUT, outbound.watched);
            let data = epoll::EventData::new_u64(rank.into());
            // It can fail only where another thread has done it.
            let _ = epoll::add(&self.epoll, socket, data, events);
        }
    }

    /// Lets sleeps end, or not, when the connection takes more.
    #[cold]
    fn watch(&self, peer: &Peer, outbound: &mut Outbound, output: bool) {
        if let Some(socket) = outbound.wire.as_ref().and_then(|wire| wire.descriptor())
            && outbound.watched != output
        {
            let mut events = epoll::EventFlags::IN;
            events.set(epoll::EventFlags::OUT, output);
            let data = epoll::EventData::new_u64(peer.rank.0.into());
            // The end of a connection, the only reason to fail, is found by whoever reads.
            let _ = epoll::modify(&self.epoll, socket, data, events);
            outbound.watched = output;
        }
    }

    /// What other threads sleep for may have come.
    #[inline]
    pub(super) fn wake(&self) {
        if self.mode == ThreadMode::Par {
            self.sleepers.wake();
        }
    }
}
