//! The interface of a rank.

use super::bound::Table;
use super::config::SoftwareConfig;
use super::faults::{FaultRules, Faults};
use super::memory::Memory;
use super::operate::{ATOMIC_BYTES, Combine, Initiator};
use super::records::entry;
use super::region::Region;
use super::section::Section;
use super::shared::{DROPS, EVENTS_DROPPED, RECOVERIES, Shared};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle, Event,
    Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions, Portals, Position,
    Queue, Register, Target,
};
use argonet_base::JobRank;
use argonet_segment::Resolver;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;

/// The interface of a rank, in a file that the ranks of a host share.
pub struct Software {
    shared: Shared,
    table: Table,
    /// Threads take events of a queue one at a time.
    readers: Box<[Mutex<()>]>,
}

/// What went through an entry's list in the ordinary way. Operations without the lock are counted by those who began them
/// ([`Register::Direct`]), as a count at the target would cost them a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Puts.
    pub puts: u64,
    /// Gets.
    pub gets: u64,
    /// Atomic operations.
    pub atomics: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Software {
    /// The interface of `rank` in the file that all ranks of the host share: a memory file, empty before the first comes. Peers may
    /// reach entries of this rank from then on; that it has made them all, a barrier of the job must tell.
    ///
    /// `segments` makes the attached segments reachable, beside the interface's own [`buffers`](Self::buffers).
    ///
    /// # Errors
    /// [`NicError::BadRank`] if the rank is not among those of `config`; [`NicError::Invalid`] for tables of no or too many places;
    /// [`NicError::WrongFile`] if others use other sizes; [`NicError::Os`] if the file cannot be mapped.
    pub fn new(
        file: BorrowedFd<'_>,
        config: SoftwareConfig,
        rank: JobRank,
        segments: Option<Resolver>,
        faults: FaultRules,
    ) -> Result<Self, NicError> {
        let config = SoftwareConfig {
            queue_events: config.queue_events.checked_next_power_of_two().unwrap_or(0),
            ..config
        };
        // 16 bits of a word name a portal or a queue, 24 a rank.
        let small = |n: u32| (1..=0x8000).contains(&n);
        let sane = small(config.portals)
            && small(config.queues)
            && small(config.entries)
            && config.queue_events != 0
            && (1..=1 << 24).contains(&config.ranks);
        if !sane {
            return Err(NicError::Invalid {
                rank,
                what: "tables have 1 to 32,768 places, queues at least one event, a host 1 to 2^24 ranks",
            });
        }
        let region = Region::map(file, config)?;
        let shared = Shared {
            region,
            memory: Memory { segments },
            place: rank.0.wrapping_sub(config.first.0),
            faults: Faults::new(faults),
            slots: AtomicU64::new(0),
            links: AtomicU64::new(0),
            direct: AtomicU64::new(0),
            matched: AtomicU64::new(0),
        };
        if shared.place_of(rank).is_none() {
            return Err(NicError::BadRank {
                rank,
                peer: rank,
                ranks: config.ranks,
            });
        }
        shared.region.join(shared.place);
        Ok(Self {
            table: Table::new(rank, config.descriptors),
            readers: (0..config.queues).map(|_| Mutex::default()).collect(),
            shared,
        })
    }

    /// Memory of this rank that peers may be given access to; the caller divides it. It is shared: accessed by atomics and
    /// [`argonet_segment::bulk`] while an entry covers it.
    #[must_use]
    pub fn buffers(&self) -> (NonNull<u8>, u64) {
        let len = self.shared.region.layout.config.arena_bytes;
        let base = self.shared.region.arena(self.shared.place, 0, len);
        (base.unwrap_or(NonNull::dangling()), len)
    }

    /// What has gone through an entry of this rank.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    pub fn carried(&self, entry: EntryHandle) -> Result<Carried, NicError> {
        let section = self.own();
        let at = section.check_entry(entry)?;
        Ok(Carried {
            puts: section.get(at + entry::PUTS),
            gets: section.get(at + entry::GETS),
            atomics: section.get(at + entry::ATOMICS),
            bytes: section.get(at + entry::BYTES),
        })
    }

    /// Operations that a descriptor of this rank has begun, and the bytes that those have moved which are complete.
    ///
    /// # Errors
    /// [`NicError::BadHandle`].
    pub fn begun(&self, descriptor: DescriptorHandle) -> Result<(u64, u64), NicError> {
        self.table.counts(descriptor)
    }

    /// A rank has died: ends what it had under way at this interface, with [`Outcome::PeerDied`](crate::portals::Outcome::PeerDied), so that no
    /// entry waits for it.
    ///
    /// # Errors
    /// [`NicError::BadRank`]; [`NicError::Invalid`] if its process lives.
    pub fn peer_died(&self, peer: JobRank) -> Result<(), NicError> {
        let rank = self.shared.rank();
        let place = self.shared.place_of(peer).ok_or(NicError::BadRank {
            rank,
            peer,
            ranks: self.shared.ranks(),
        })?;
        if place == self.shared.place || !self.shared.region.has_ended(place) {
            return Err(NicError::Invalid {
                rank,
                what: "a rank that is said to have died lives",
            });
        }
        self.own().finish_operations_of(place);
        Ok(())
    }

    /// Steps that this rank has taken inside of interfaces, if [`FaultRules::count_steps`] asks for that.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.shared.faults.steps()
    }

    /// Lets operations go on that a fault holds back. Every operation and every look into a queue does that, too.
    pub fn progress(&self) {
        if self.shared.faults.is_active() {
            self.initiator().progress();
        }
    }

    fn own(&self) -> Section<'_> {
        self.shared.section(self.shared.place)
    }

    #[inline(always)]
    fn initiator(&self) -> Initiator<'_> {
        Initiator {
            shared: &self.shared,
            table: &self.table,
        }
    }

    fn invalid(&self, what: &'static str) -> NicError {
        NicError::Invalid {
            rank: self.shared.rank(),
            what,
        }
    }

    fn whole(&self, descriptor: DescriptorHandle) -> Result<Part, NicError> {
        Ok(Part {
            offset_bytes: 0,
            len_bytes: self.table.len(descriptor)?,
        })
    }
}

impl Portals for Software {
    fn rank(&self) -> JobRank {
        self.shared.rank()
    }

    fn limits(&self) -> Limits {
        let config = &self.shared.region.layout.config;
        Limits {
            ranks: config.ranks,
            portals: config.portals,
            entries: config.entries,
            descriptors: config.descriptors,
            queues: config.queues,
            queue_events: config.queue_events,
            counters: config.counters,
            message_bytes: isize::MAX as u64,
            atomic_bytes: ATOMIC_BYTES,
        }
    }

    fn features(&self) -> Features {
        Features {
            insert: true,
            thresholds: true,
            start_events: true,
            ack_disable: true,
        }
    }

    fn status(&self, register: Register) -> u64 {
        let shared = &self.shared;
        let counts = shared.region.layout.counts(shared.place);
        let count = |n: u64| shared.region.load(counts + n * super::layout::WORD);
        match register {
            Register::Drops => count(DROPS),
            Register::EventsDropped => count(EVENTS_DROPPED),
            Register::Recoveries => count(RECOVERIES),
            Register::Direct => shared.direct.load(Ordering::Relaxed),
            Register::Matched => shared.matched.load(Ordering::Relaxed),
        }
    }

    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError> {
        self.own().make_queue(events)
    }

    fn queue_free(&self, queue: Queue) -> Result<(), NicError> {
        let bound = self.table.any(|d| d.queue == Some(queue));
        self.own().drop_queue(queue, bound)
    }

    #[inline]
    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        self.progress();
        let gone = NicError::BadHandle {
            rank: self.shared.rank(),
            what: "queue",
            index: queue.index,
            generation: queue.generation,
        };
        let Some(reader) = self.readers.get(queue.index as usize) else {
            return Err(gone);
        };
        let _alone = reader.lock();
        if !self.shared.is_queue(queue) {
            return Err(gone);
        }
        self.shared.take_event(queue)
    }

    fn counter_alloc(&self) -> Result<Counter, NicError> {
        self.own().make_counter()
    }

    fn counter_free(&self, counter: Counter) -> Result<(), NicError> {
        let bound = self
            .table
            .any(|d| d.count.is_some_and(|c| c.counter == counter));
        self.own().drop_counter(counter, bound)
    }

    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        self.progress();
        self.own().read_counter(counter)
    }

    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError> {
        self.own().write_counter(counter, success, failure)
    }

    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        self.own().make_portal(options, queue, wish)
    }

    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError> {
        self.own().drop_portal(portal)
    }

    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError> {
        self.own().enable_portal(portal, enabled)
    }

    unsafe fn attach(
        &self,
        portal: PortalIndex,
        position: Position,
        matching: Matching,
        memory: NonNull<u8>,
        len_bytes: u64,
        entry: Entry,
    ) -> Result<EntryHandle, NicError> {
        if entry.threshold == Some(0) || !(entry.puts || entry.gets) {
            return Err(self.invalid("an entry that accepts nothing"));
        }
        let shared = &self.shared;
        let address = memory.as_ptr();
        let place = shared.memory.locate(
            &shared.region,
            shared.place,
            shared.rank(),
            address,
            len_bytes,
        );
        let place = place.ok_or(NicError::NotShared {
            rank: shared.rank(),
            address: address.addr(),
            len_bytes,
        })?;
        self.own()
            .attach(portal, position, &matching, place, len_bytes, &entry)
    }

    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError> {
        self.own().unlink(entry)
    }

    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        if descriptor.threshold == Some(0) {
            return Err(self.invalid("a descriptor for no operation"));
        }
        if descriptor.queue.is_some() || descriptor.count.is_some() {
            let section = self.own();
            descriptor
                .queue
                .map_or(Ok(()), |queue| section.check_queue(queue))?;
            descriptor
                .count
                .map_or(Ok(0), |count| section.check_counter(count.counter))?;
        }
        self.table.bind(memory, len_bytes, descriptor)
    }

    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        self.table.release(descriptor)
    }

    fn put(
        &self,
        source: DescriptorHandle,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.put_region(source, self.whole(source)?, ack, target, header)
    }

    #[inline]
    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.initiator().put(source, part, ack, &target, header)
    }

    #[inline]
    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError> {
        self.initiator().get(destination, part, &target)
    }

    fn get(&self, destination: DescriptorHandle, target: Target) -> Result<(), NicError> {
        self.get_region(destination, self.whole(destination)?, target)
    }

    fn atomic(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
    ) -> Result<(), NicError> {
        let how = Combine {
            op,
            kind,
            compare: 0,
        };
        self.initiator()
            .atomic(source, part, ack, &target, header, how)
    }

    fn fetch_atomic(
        &self,
        fetched: DescriptorHandle,
        fetched_offset_bytes: u64,
        source: DescriptorHandle,
        part: Part,
        target: Target,
        header: u64,
        op: AtomicOp,
        kind: AtomicKind,
        compare: u64,
    ) -> Result<(), NicError> {
        let how = Combine { op, kind, compare };
        let from = self.initiator();
        from.fetch_atomic(
            fetched,
            fetched_offset_bytes,
            source,
            part,
            &target,
            header,
            how,
        )
    }
}

#[cfg(test)]
impl Software {
    /// Where everything lies.
    pub(super) fn layout(&self) -> super::layout::Layout {
        self.shared.region.layout
    }

    /// Writes a word as a peer might.
    pub(super) fn poke(&self, at: u64, value: u64) {
        self.shared.region.store(at, value);
    }
}
