//! The trait, as the software interface has it.

use super::interface::Software;
use super::operate::{ATOMIC_BYTES, Combine};
use super::shared::{DROPS, EVENTS_DROPPED, RECOVERIES};
use super::sleep::Rest;
use crate::portals::{
    Ack, Answer, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle,
    Event, Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions, Portals,
    Position, Queue, Register, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use core::time::Duration;

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
            synchronous: !self.shared.faults.is_active(),
            remote: false,
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
        self.shared.take_event(queue)
    }

    #[inline]
    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        self.progress();
        self.shared.is_empty(queue)
    }

    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        self.wait(queues, Rest::Word(timeout), come)
    }

    fn wake(&self) {
        self.shared.wake_all();
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
            let transaction = self.own();
            descriptor
                .queue
                .map_or(Ok(()), |queue| transaction.check_queue(queue))?;
            descriptor
                .count
                .map_or(Ok(0), |count| transaction.check_counter(count.counter))?;
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

    #[inline]
    fn put_answered(
        &self,
        source: DescriptorHandle,
        part: Part,
        target: Target,
        header: u64,
    ) -> Result<Answer, NicError> {
        self.initiator().put_answered(source, part, &target, header)
    }

    #[inline]
    fn get_answered(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<Answer, NicError> {
        self.initiator().get_answered(destination, part, &target)
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
