//! The trait, over the library.

use super::abi;
use super::open::Portals4;
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle, Event,
    Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions, Portals, Position,
    Queue, Register, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use core::time::Duration;

/// None of the features that only some interfaces have.
pub(super) const FEATURES: Features = Features {
    insert: false,
    thresholds: false,
    start_events: false,
    ack_disable: false,
    synchronous: false,
    remote: true,
};

impl Portals4 {
    fn register(&self, index: u32) -> u64 {
        let mut value = 0;
        // SAFETY: the place is valid.
        let code =
            unsafe { (self.ni.library.call.ni_status)(self.ni.handle, index, &raw mut value) };
        if code == abi::OK {
            u64::from(value as u32)
        } else {
            0
        }
    }
}

impl Portals for Portals4 {
    fn rank(&self) -> JobRank {
        self.ni.rank
    }

    fn limits(&self) -> Limits {
        let (limits, config) = (&self.ni.limits, &self.config);
        let least = |asked: u32, given: i32, own: u32| {
            asked.min(u32::try_from(given).unwrap_or(0).saturating_sub(own))
        };
        Limits {
            ranks: self.ni.ranks,
            portals: self.ni.portals,
            entries: least(config.entries, limits.entries.min(limits.list), 0),
            descriptors: least(config.descriptors, limits.descriptors / 3, 0),
            queues: least(config.queues, limits.queues, 0),
            queue_events: config.queue_events,
            counters: least(config.counters, limits.counters, 0),
            message_bytes: limits.message_bytes,
            atomic_bytes: self.atomic_bytes(),
        }
    }

    fn features(&self) -> Features {
        FEATURES
    }

    fn status(&self, register: Register) -> u64 {
        match register {
            Register::Drops => [
                abi::REGISTER_DROPS,
                abi::REGISTER_PERMISSIONS,
                abi::REGISTER_OPERATIONS,
            ]
            .into_iter()
            .map(|index| self.register(index))
            .sum(),
            Register::EventsDropped => self.dropped.load(Ordering::Relaxed),
            Register::Matched => self.begun.load(Ordering::Relaxed),
            // No operation bypasses the library, and each process ends its own operations in it.
            Register::Direct | Register::Recoveries => 0,
        }
    }

    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError> {
        self.make_queue(events)
    }

    fn queue_free(&self, queue: Queue) -> Result<(), NicError> {
        self.drop_queue(queue)
    }

    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        self.take_event(queue)
    }

    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        self.is_queue_empty(queue)
    }

    fn busy_threads(&self) -> u32 {
        self.busy_threads
    }

    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        self.wait_for_events(queues, timeout, come)
    }

    fn wake(&self) {
        self.wake_all();
    }

    fn counter_alloc(&self) -> Result<Counter, NicError> {
        self.make_counter()
    }

    fn counter_free(&self, counter: Counter) -> Result<(), NicError> {
        self.drop_counter(counter)
    }

    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        self.read_counter(counter)
    }

    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError> {
        self.write_counter(counter, success, failure)
    }

    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        self.make_portal(options, queue, wish)
    }

    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError> {
        self.drop_portal(portal)
    }

    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError> {
        self.enable_portal(portal, enabled)
    }

    /// Nothing: `PtlNIFini` ends it all.
    ///
    /// `PtlPTDisable` waits for operations under way, in the reference implementation forever
    /// where a message comes meanwhile, which it takes off its count without having counted it.
    fn retire(&self) {}

    unsafe fn attach(
        &self,
        portal: PortalIndex,
        position: Position,
        matching: Matching,
        memory: NonNull<u8>,
        len_bytes: u64,
        entry: Entry,
    ) -> Result<EntryHandle, NicError> {
        // SAFETY: the caller keeps the promises that the trait asks for.
        unsafe { self.make_entry(portal, position, matching, memory, len_bytes, entry) }
    }

    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError> {
        self.unlink_entry(entry)
    }

    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        // SAFETY: the caller keeps the promises that the trait asks for.
        unsafe { self.make_descriptor(memory, len_bytes, descriptor) }
    }

    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        self.drop_descriptor(descriptor)
    }

    fn put(
        &self,
        source: DescriptorHandle,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.begin_put(source, None, ack, &target, header)
    }

    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.begin_put(source, Some(part), ack, &target, header)
    }

    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError> {
        self.begin_get(destination, Some(part), &target)
    }

    fn get(&self, destination: DescriptorHandle, target: Target) -> Result<(), NicError> {
        self.begin_get(destination, None, &target)
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
        self.begin_atomic(source, part, ack, &target, header, op, kind)
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
        self.begin_fetch_atomic(
            fetched,
            fetched_offset_bytes,
            source,
            part,
            &target,
            header,
            op,
            kind,
            compare,
        )
    }
}
