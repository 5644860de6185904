//! One rank's part of the conduit: its peers, and what leaves for them.

use super::bits::Bits;
use super::config::TcpSizes;
use super::connections::{Doors, UNUSED_BYTES};
use super::connector::{Connection, Connector, Made};
use super::helper::Helper;
use super::peer::{Inbound, Outbound, Peer};
use super::progress::Progress;
use super::readiness::{Readiness, mark};
use super::silence::Silence;
use super::vitals::Vitals;
use super::wait::Sleepers;
use super::wire::Wire;
use crate::channel::stream::Speed;
use crate::exit::Exits;
use crate::gauges::Gauges;
use crate::smp::SegmentLen;
use crate::threads::ThreadMode;
use argonet_am::credit::Bank;
use argonet_am::record::RecordError;
use argonet_am::{AmError, Registered};
use argonet_base::kept::Kept;
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::Directory;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use parking_lot::Mutex;
use rustix::fd::AsFd;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

pub(super) struct Core {
    pub(super) rank: JobRank,
    pub(super) ranks: u32,
    pub(super) mode: ThreadMode,
    pub(super) sizes: TcpSizes,
    pub(super) directory: Arc<Directory>,
    pub(super) registered: Registered,
    pub(super) segment_len: SegmentLen,
    pub(super) connector: Arc<dyn Connector>,
    /// By rank; made at first use.
    peers: Box<[OnceLock<Box<Peer>>]>,
    /// Peers for which a poll has something to do without an event of a descriptor.
    pub(super) work: Bits,
    /// Peers for which something was gathered.
    pub(super) dirty: Bits,
    /// Peers for which something waits for a connection.
    pub(super) unconnected: Bits,
    /// Peers to which an acknowledgement is due.
    pub(super) ack_due: Bits,
    /// Sockets that are connected.
    pub(super) connected: AtomicU32,
    /// Peers that were used.
    pub(super) used: AtomicU32,
    pub(super) doors: Doors,
    /// Ticks when something last left for any peer. A hint.
    pub(super) left_at: AtomicU64,
    pub(super) readiness: Readiness,
    pub(super) sleepers: Sleepers,
    /// Buffers of payloads that are being prepared, by their address.
    pub(super) prepared: Mutex<BTreeMap<usize, Kept<u8>>>,
    pub(super) helper: Helper,
    pub(super) progress: Progress,
    pub(super) vitals: Vitals,
    /// Credits that are not lent; `None` without flow control.
    pub(super) bank: Option<Bank>,
    pub(super) gauges: Option<Arc<Gauges>>,
    pub(super) exits: Exits,
}

// What a rank keeps of a peer that it does not use.
static_assertions::const_assert!(UNUSED_BYTES <= 16);

impl Core {
    pub(super) fn new(config: super::TcpConfig) -> io::Result<Self> {
        let sleepers = Sleepers::new()?;
        let readiness = Readiness::new(sleepers.descriptor(), config.connector.descriptor())?;
        let progress = if config.progress {
            Progress::new(config.connector.descriptor())?
        } else {
            Progress::none()
        };
        let bank = match &config.sizes.credits {
            Some(credits) => {
                let plan = credits.plan(config.ranks);
                let plan = plan.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
                Some(Bank::new(config.rank.0, plan, credits.rules()))
            }
            None => None,
        };
        let gauge = |bank| Gauges::new(config.rank.0, config.ranks, bank);
        let gauges = bank.as_ref().map(gauge).transpose()?.map(Arc::new);
        let doors = Doors::new(config.rank.0, config.ranks)?;
        Ok(Self {
            rank: config.rank,
            ranks: config.ranks,
            mode: config.mode,
            sizes: config.sizes,
            directory: config.directory,
            registered: config.registered,
            segment_len: config.segment_len,
            connector: config.connector,
            peers: (0..config.ranks).map(|_| OnceLock::new()).collect(),
            work: Bits::new(config.ranks),
            dirty: Bits::new(config.ranks),
            unconnected: Bits::new(config.ranks),
            ack_due: Bits::new(config.ranks),
            connected: AtomicU32::new(0),
            used: AtomicU32::new(0),
            doors,
            left_at: AtomicU64::new(0),
            readiness,
            sleepers,
            prepared: Mutex::default(),
            helper: Helper::default(),
            progress,
            vitals: Vitals::new(config.sizes.silent_time),
            bank,
            gauges,
            exits: Exits::new(config.rank, config.ranks),
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
            self.connector.want(rank, 0);
        }
        peer
    }

    /// What is kept about a peer, and whether that was not so before.
    pub(super) fn meet(&self, rank: JobRank) -> (&Peer, bool) {
        let mut is_new = false;
        let peer = self.peers[rank.index()].get_or_init(|| {
            is_new = true;
            // What a rank sends to itself needs nobody's leave but its own.
            let bank = self.bank.as_ref().filter(|_| rank != self.rank);
            Box::new(Peer::new(rank, &self.sizes, bank))
        });
        if is_new {
            self.used.fetch_add(1, Ordering::Relaxed);
            self.gauge_first(peer);
        }
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
    pub(super) fn connect(&self) {
        let received = |peer: JobRank, connection: u16| {
            let peer = self.used(peer.0).filter(|_| connection == 0);
            peer.map_or(0, |peer| peer.inbound.lock().complete())
        };
        while let Some(made) = self.connector.next(&received) {
            match made {
                Made::Connected(connection) if connection.connection > 0 => {
                    self.adopt_rail(connection);
                }
                Made::Connected(connection) => self.adopt(connection),
                // spec B1: an error of a rail is no error of its peer.
                // One can do without those.
                Made::Unreachable(_, 1.., _) => {}
                Made::Unreachable(peer, 0, error) => {
                    let (peer, _) = self.meet(peer);
                    let mut inbound = peer.inbound.lock();
                    self.fail_later(peer, &mut inbound, error);
                }
            }
        }
        self.gauge_doors();
    }

    // spec B9: the connection before is fenced before what it lost is replayed.
    /// Uses a connection, the first or another. Nothing more is read from the one before it.
    pub(super) fn adopt(&self, connection: Connection) {
        let (peer, _) = self.meet(connection.peer);
        let mut inbound = peer.inbound.lock();
        let mut outbound = peer.outbound.lock();
        if outbound.failed.is_some() || connection.incarnation <= outbound.incarnation {
            return;
        }
        self.unwire(peer, &mut inbound, &mut outbound);
        inbound.receive_stream.reset();
        let resumed = outbound.send_stream.resume(connection.received);
        if let Err(cause) = resumed {
            drop(outbound);
            let error = self.broken(peer.rank, cause);
            self.fail_later(peer, &mut inbound, error);
            return;
        }
        outbound.taken();
        outbound.incarnation = connection.incarnation;
        if let Err(error) = self.wire_up(&connection, peer.rank.0) {
            // As if it had been lost at once.
            drop((error, outbound, inbound));
            self.connector.want(peer.rank, 0);
            return;
        }
        let wire = Arc::new(Wire::Socket(connection.socket));
        inbound.silence = Silence::default();
        outbound.striping.main = Speed::default();
        inbound.wire = Some(Arc::clone(&wire));
        outbound.wire = Some(wire);
        self.connected.fetch_add(1, Ordering::Relaxed);
        let (taken, handled) = (inbound.complete(), inbound.parked.handled());
        outbound.send_stream.set_ack(taken, handled);
        outbound.go_on(&self.sizes);
        if outbound.has_reports() {
            self.work.set(peer.rank.0);
        }
        self.flush(peer, &mut outbound);
    }

    pub(super) fn wire_up(&self, connection: &Connection, rank: u32) -> io::Result<()> {
        let socket = connection.socket.as_fd();
        // spec T2: no call waits for a socket.
        rustix::io::ioctl_fionbio(socket, true)?;
        // Other kinds of sockets have no delay to turn off.
        let _ = rustix::net::sockopt::set_tcp_nodelay(socket, true);
        let mark = mark(rank, connection.connection);
        self.readiness.add(socket, mark)?;
        self.progress.watch(socket, mark)
    }

    /// Gives up the connection.
    fn unwire(&self, peer: &Peer, inbound: &mut Inbound, outbound: &mut Outbound) {
        self.readiness.cool(peer.rank.0);
        outbound.watched = false;
        let wires = [inbound.wire.take(), outbound.wire.take()];
        if let Some(socket) = wires.iter().flatten().find_map(|wire| wire.descriptor()) {
            self.readiness.remove(socket);
            self.progress.forget(socket);
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The connection has ended. The holder of `inbound` asks for another when it does not hold it
    /// any more.
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
        self.unwire_rails(inbound, &mut outbound);
        // Where a payload was going is not written any more.
        inbound.receive_stream.reset();
        outbound.failed = Some(error);
    }

    /// The same; the next poll reports it.
    #[cold]
    pub(super) fn fail_later(&self, peer: &Peer, inbound: &mut Inbound, error: AmError) {
        self.fail(peer, inbound, error.clone());
        peer.outbound.lock().errors.push(error);
        self.work.set(peer.rank.0);
    }

    /// The error of a peer that sends what cannot be used.
    pub(super) fn broken(&self, from: JobRank, cause: RecordError) -> AmError {
        let at = self.rank;
        AmError::Broken { at, from, cause }
    }

    /// What other threads sleep for may have come.
    #[inline]
    pub(super) fn wake(&self) {
        if self.mode == ThreadMode::Par || self.progress.is_there() {
            self.sleepers.wake();
        }
    }
}
