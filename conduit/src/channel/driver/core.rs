//! One rank's part of the channel: its peers, and the rails to them.

use super::bits::Bits;
use super::config::{ChannelConfig, ChannelSizes};
use super::helper::Helper;
use super::idle::{Closing, Idle};
use super::peer::{Inbound, Outbound, Peer, Reserved};
use super::progress::Progress;
use super::silence::Silence;
use super::vitals::Vitals;
use super::wire::Wire;
use crate::SegmentLen;
use crate::channel::rail::{Made, NewRail, Rail, RailId, Rails};
use crate::channel::stream::Speed;
use crate::connections::Doors;
use crate::exit::Exits;
use crate::peers::Peers;
use crate::prepared_buffers::PreparedBuffers;
use crate::shown_bank::ShownBank;
use crate::sleepers::Sleepers;
use crate::threads::ThreadMode;
use argonet_am::credit::Bank;
use argonet_am::record::RecordError;
use argonet_am::{AmError, Registered};
use argonet_base::{JobRank, SegmentOffset};
use argonet_segment::Directory;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::sync::Arc;

pub(crate) struct Core<R: Rails> {
    pub(super) rank: JobRank,
    pub(super) ranks: u32,
    pub(super) mode: ThreadMode,
    pub(super) sizes: ChannelSizes,
    pub(super) directory: Arc<Directory>,
    pub(super) registered: Registered,
    pub(super) segment_len: SegmentLen,
    pub(super) rails: R,
    peers: Peers<Peer<R>>,
    /// Peers for which a poll has something to do although no rail has anything.
    pub(super) work: Bits,
    /// Peers for which something was gathered.
    pub(super) dirty: Bits,
    /// Peers for which something waits for a rail.
    pub(super) unconnected: Bits,
    /// Peers to which an acknowledgement is due.
    pub(super) ack_due: Bits,
    /// Rails that are open.
    pub(super) connected: AtomicU32,
    /// Peers that were used.
    pub(super) used: AtomicU32,
    pub(super) doors: Doors,
    /// Ticks when something last left for any peer.
    ///
    /// A hint.
    pub(super) left_at: AtomicU64,
    pub(super) sleepers: Sleepers,
    pub(super) prepared: PreparedBuffers<Reserved>,
    pub(super) helper: Helper<R>,
    pub(super) progress: Progress,
    pub(super) vitals: Vitals,
    /// Credits that are not lent; `None` without flow control.
    pub(crate) bank: Option<ShownBank>,
    pub(super) exits: Exits,
}

impl<R: Rails> Core<R> {
    /// Of a rank that it does not use.
    pub(super) const UNUSED_BYTES: usize = Peers::<Peer<R>>::UNUSED_BYTES;

    /// Of a peer that it uses, beside that and without its buffers.
    pub(super) const USED_BYTES: usize = size_of::<Peer<R>>();

    pub(super) fn new(config: ChannelConfig, rails: R) -> io::Result<Self> {
        let bank = match &config.sizes.credits {
            Some(credits) => {
                let plan = credits.plan(config.ranks);
                let plan = plan.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
                let bank = Bank::new(config.rank.0, plan, credits.rules());
                Some(ShownBank::new(bank, config.rank, config.ranks)?)
            }
            None => None,
        };
        let bytes = (Self::UNUSED_BYTES as u32, Self::USED_BYTES as u32);
        let doors = Doors::new((config.rank.0, config.ranks), bytes)?;
        Ok(Self {
            rank: config.rank,
            ranks: config.ranks,
            mode: config.mode,
            sizes: config.sizes,
            directory: config.directory,
            registered: config.registered,
            segment_len: config.segment_len,
            rails,
            peers: Peers::new(config.ranks),
            work: Bits::new(config.ranks),
            dirty: Bits::new(config.ranks),
            unconnected: Bits::new(config.ranks),
            ack_due: Bits::new(config.ranks),
            connected: AtomicU32::new(0),
            used: AtomicU32::new(0),
            doors,
            left_at: AtomicU64::new(0),
            sleepers: Sleepers::default(),
            prepared: PreparedBuffers::default(),
            helper: Helper::default(),
            progress: Progress::default(),
            vitals: Vitals::new(&config.sizes),
            bank,
            exits: Exits::new(config.rank, config.ranks),
        })
    }

    /// The state of a peer.
    ///
    /// Its first use asks for a rail.
    #[inline]
    pub(super) fn peer(&self, rank: JobRank) -> &Peer<R> {
        match self.peers.used(rank.0) {
            Some(peer) => peer,
            None => self.first_use(rank),
        }
    }

    #[cold]
    fn first_use(&self, rank: JobRank) -> &Peer<R> {
        let (peer, is_new) = self.peer_or_init(rank);
        if is_new && rank != self.rank {
            self.want(rank, 0);
        }
        peer
    }

    /// Asks for a rail.
    pub(super) fn want(&self, peer: JobRank, number: u16) {
        self.rails.want(RailId { peer, number });
    }

    /// The state of a peer, and whether this call has made it.
    pub(crate) fn peer_or_init(&self, rank: JobRank) -> (&Peer<R>, bool) {
        let (peer, is_new) = self.peers.get_or_init(rank, || {
            // Messages of a rank to itself need no credits.
            let bank = self.bank.as_deref().filter(|_| rank != self.rank);
            let mut peer = Box::new(Peer::new(
                rank,
                &self.sizes,
                bank,
                self.rails.sends_beside(),
            ));
            if rank == self.rank {
                // Before another thread sees the peer: messages gathered for a rank without a wire
                // would wait for a rail.
                let wire = Wire::own();
                peer.inbound.get_mut().wire = Some(wire.clone());
                peer.outbound.get_mut().wire = Some(wire);
            }
            peer
        });
        if is_new {
            self.used.fetch_add(1, Ordering::Relaxed);
            self.gauge_first(peer);
        }
        (peer, is_new)
    }

    /// The state of a peer that was used.
    pub(crate) fn used(&self, rank: u32) -> Option<&Peer<R>> {
        self.peers.used(rank)
    }

    /// All peers that were used.
    pub(crate) fn all_used(&self) -> impl Iterator<Item = &Peer<R>> {
        self.peers.all()
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

    /// Takes rails that were made.
    pub(crate) fn take_made(&self) {
        let received = |id: RailId| {
            let peer = self.used(id.peer.0).filter(|_| id.number == 0);
            peer.map_or(0, |peer| peer.inbound.lock().complete())
        };
        while let Some(made) = self.rails.next(&received) {
            match made {
                Made::Rail(new) if !self.is_of_another(new.id.peer) => new.rail.shut(),
                Made::Unreachable(id, _) if id.peer.0 >= self.ranks => {}
                Made::Rail(rail) if rail.id.number > 0 => self.adopt_further(rail),
                Made::Rail(rail) => self.adopt(rail),
                // spec B1: an error of a rail is no error of its peer. One can do without those.
                Made::Unreachable(RailId { number: 1.., .. }, _) => {}
                Made::Unreachable(id, error) => {
                    let (peer, _) = self.peer_or_init(id.peer);
                    let mut inbound = peer.inbound.lock();
                    self.fail_later(peer, &mut inbound, error);
                }
            }
        }
        self.gauge_doors();
    }

    fn is_of_another(&self, peer: JobRank) -> bool {
        peer.0 < self.ranks && peer != self.rank
    }

    // spec B9: the rail before is fenced before lost bytes are replayed.
    /// Uses a first rail, or another in its place.
    ///
    /// Nothing more is read from the one before it.
    pub(super) fn adopt(&self, new: NewRail<R::Rail>) {
        let (peer, _) = self.peer_or_init(new.id.peer);
        let mut inbound = peer.inbound.lock();
        let mut outbound = peer.outbound.lock();
        if outbound.failed.is_some() {
            return self.rails.refuse(new.id, &new.rail);
        }
        if new.incarnation <= outbound.incarnation {
            new.rail.shut();
            return;
        }
        self.unwire(peer, &mut inbound, &mut outbound);
        inbound.receive_stream.reset();
        let resumed = outbound.send_stream.resume(new.received);
        if let Err(cause) = resumed {
            self.rails.refuse(new.id, &new.rail);
            drop(outbound);
            let error = self.broken(peer.rank, cause);
            self.fail_later(peer, &mut inbound, error);
            return;
        }
        outbound.taken();
        outbound.incarnation = new.incarnation;
        if let Err(error) = self.rails.open(new.id, &new.rail) {
            // As if it had been lost at once.
            new.rail.shut();
            drop((error, outbound, inbound));
            self.want(peer.rank, 0);
            return;
        }
        let wire = Wire::Rail(new.rail);
        outbound.closing = Closing::Not;
        inbound.idle = Idle::default();
        inbound.silence = Silence::default();
        outbound.striping.main = Speed::default();
        inbound.wire = Some(wire.clone());
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

    /// Gives up the first rail.
    pub(super) fn unwire(
        &self,
        peer: &Peer<R>,
        inbound: &mut Inbound<R>,
        outbound: &mut Outbound<R>,
    ) {
        outbound.waits_for_room = false;
        if let Closing::Asked(..) = outbound.closing {
            outbound.closing = Closing::Not;
        }
        outbound.watch();
        let wires = [inbound.wire.take(), outbound.wire.take()];
        if let Some(rail) = wires.iter().flatten().find_map(|wire| wire.rail()) {
            let (peer, number) = (peer.rank, 0);
            self.rails.close(RailId { peer, number }, rail);
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The first rail has ended.
    ///
    /// The holder of `inbound` asks for another when it does not hold it any more.
    #[cold]
    pub(super) fn lost(&self, peer: &Peer<R>, inbound: &mut Inbound<R>) {
        let mut outbound = peer.outbound.lock();
        self.unwire(peer, inbound, &mut outbound);
        inbound.lost_rails |= u32::from(outbound.failed.is_none());
    }

    /// Nothing passes between this rank and the peer any more.
    #[cold]
    pub(super) fn fail(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, error: AmError) {
        let mut outbound = peer.outbound.lock();
        self.unwire(peer, inbound, &mut outbound);
        self.unwire_rails(peer, inbound, &mut outbound);
        // Where a payload was going is not written any more.
        inbound.receive_stream.reset();
        outbound.failed = Some(error);
    }

    /// The same; the next poll reports it.
    #[cold]
    pub(super) fn fail_later(&self, peer: &Peer<R>, inbound: &mut Inbound<R>, error: AmError) {
        let is_lost = matches!(peer.outbound.lock().failed, Some(AmError::PeerLost { .. }));
        if is_lost {
            // Its rails end, which is no news.
            return;
        }
        self.fail(peer, inbound, error.clone());
        peer.outbound.lock().errors.push(error);
        self.work.set(peer.rank.0);
    }

    /// The error of a peer that sends an unusable frame.
    pub(super) fn broken(&self, from: JobRank, cause: RecordError) -> AmError {
        let at = self.rank;
        AmError::Broken { at, from, cause }
    }

    /// Whether threads may sleep while another one polls or sends.
    #[inline]
    fn has_threads(&self) -> bool {
        self.mode == ThreadMode::Par || self.rails.server().is_some()
    }

    /// A poll has moved something: the event that other threads sleep for may have come.
    #[inline]
    pub(super) fn moved(&self) {
        match self.has_threads() {
            true => self.sleepers.moved_and_wake(false, || self.rails.wake()),
            false => self.sleepers.moved(),
        }
    }

    /// Wakes other threads, for which there is something to do.
    #[inline]
    pub(super) fn wake(&self) {
        if self.has_threads() {
            self.sleepers.moved_and_wake(false, || self.rails.wake());
        }
    }
}
