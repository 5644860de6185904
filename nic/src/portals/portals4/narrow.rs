//! The software interface with no more than a library of Portals 4 can do.

use super::lacks;
use super::nic::FEATURES;
use crate::portals::software::Software;
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle, Event,
    EventKind, Features, Limits, Matching, NicError, Outcome, Part, PortalIndex, PortalOptions,
    Portals, Position, Queue, Register, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::time::Duration;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Refuses the calls that the binding refuses, with the same errors, and promises no more.
///
/// Code that works over this needs no feature that a library of Portals 4 lacks. For tests; no job
/// uses it.
pub struct Narrow {
    inner: Software,
    /// Queues of the portals that are allocated.
    portals: Mutex<HashMap<PortalIndex, Option<Queue>>>,
    /// Bytes of the descriptors that are bound.
    bound: Mutex<HashMap<DescriptorHandle, u64>>,
    /// Longest put or get.
    message_bytes: u64,
    /// How often each entry is found in use before it goes.
    refusals: u32,
    refused: Mutex<HashMap<EntryHandle, u32>>,
}

impl Narrow {
    /// Narrows an interface, which carries no message longer than `message_bytes`.
    #[must_use]
    pub fn new(inner: Software, message_bytes: u64) -> Self {
        Self {
            inner,
            portals: Mutex::default(),
            bound: Mutex::default(),
            message_bytes,
            refusals: 0,
            refused: Mutex::default(),
        }
    }

    /// Has each entry in use for so many calls that want to take it away, as it is with a library
    /// while events of it are written.
    #[must_use]
    pub fn reluctant(self, refusals: u32) -> Self {
        Self { refusals, ..self }
    }

    /// The interface below.
    #[must_use]
    pub fn inner(&self) -> &Software {
        &self.inner
    }

    fn check_len(&self, len_bytes: u64) -> Result<(), NicError> {
        match len_bytes > self.message_bytes {
            true => Err(lacks::too_long(self.inner.rank())),
            false => Ok(()),
        }
    }

    /// Checks the length of all of a descriptor, if there is such a one.
    fn check_whole(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        let len = self.bound.lock().get(&descriptor).copied();
        self.check_len(len.unwrap_or(0))
    }
}

/// An event with the fields that a library knows.
fn cut(event: Event) -> Event {
    let at_target = matches!(
        event.kind,
        EventKind::PutEnd | EventKind::GetEnd | EventKind::AtomicEnd | EventKind::Unlink
    );
    Event {
        link: if at_target { 0 } else { event.link },
        outcome: match event.outcome {
            Outcome::Refused => Outcome::Disabled,
            outcome => outcome,
        },
        ..event
    }
}

impl Portals for Narrow {
    fn rank(&self) -> JobRank {
        self.inner.rank()
    }

    fn limits(&self) -> Limits {
        let limits = self.inner.limits();
        Limits {
            message_bytes: limits.message_bytes.min(self.message_bytes),
            ..limits
        }
    }

    fn features(&self) -> Features {
        Features {
            remote: false,
            ..FEATURES
        }
    }

    fn status(&self, register: Register) -> u64 {
        self.inner.status(register)
    }

    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError> {
        self.inner.queue_alloc(events)
    }

    fn queue_free(&self, queue: Queue) -> Result<(), NicError> {
        self.inner.queue_free(queue)
    }

    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        match self.inner.queue_get(queue) {
            Ok(event) => Ok(event.map(cut)),
            Err(NicError::EventsDropped { rank, queue, .. }) => Err(NicError::EventsDropped {
                rank,
                queue,
                count: 1,
            }),
            Err(error) => Err(error),
        }
    }

    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        self.inner.queue_is_empty(queue)
    }

    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        self.inner.queue_wait(queues, timeout, come)
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn counter_alloc(&self) -> Result<Counter, NicError> {
        self.inner.counter_alloc()
    }

    fn counter_free(&self, counter: Counter) -> Result<(), NicError> {
        self.inner.counter_free(counter)
    }

    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        self.inner.counter_get(counter)
    }

    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError> {
        self.inner.counter_set(counter, success, failure)
    }

    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        let portal = self.inner.portal_alloc(options, queue, wish)?;
        self.portals.lock().insert(portal, queue);
        Ok(portal)
    }

    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError> {
        self.inner.portal_free(portal)?;
        self.portals.lock().remove(&portal);
        Ok(())
    }

    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError> {
        self.inner.portal_enable(portal, enabled)
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
        let rank = self.inner.rank();
        let leaves = lacks::entry(rank, position, &entry)?;
        let of_portal = self.portals.lock().get(&portal).copied();
        if let Some(of_portal) = of_portal {
            lacks::queue(rank, of_portal, entry.queue, leaves)?;
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.inner
                .attach(portal, position, matching, memory, len_bytes, entry)
        }
    }

    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError> {
        let mut refused = self.refused.lock();
        let times = refused.entry(entry).or_default();
        if *times < self.refusals {
            *times += 1;
            return Err(NicError::InUse {
                rank: self.inner.rank(),
                what: "entry",
                index: entry.index,
                by: "by an operation of a peer",
            });
        }
        refused.remove(&entry);
        self.inner.unlink(entry)
    }

    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        lacks::descriptor(self.inner.rank(), &descriptor)?;
        // SAFETY: the caller's promise.
        let handle = unsafe { self.inner.bind(memory, len_bytes, descriptor)? };
        self.bound.lock().insert(handle, len_bytes);
        Ok(handle)
    }

    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        self.inner.release(descriptor)?;
        self.bound.lock().remove(&descriptor);
        Ok(())
    }

    fn put(
        &self,
        source: DescriptorHandle,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.check_whole(source)?;
        self.inner.put(source, ack, target, header)
    }

    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        self.check_len(part.len_bytes)?;
        self.inner.put_region(source, part, ack, target, header)
    }

    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError> {
        self.check_len(part.len_bytes)?;
        self.inner.get_region(destination, part, target)
    }

    fn get(&self, destination: DescriptorHandle, target: Target) -> Result<(), NicError> {
        self.check_whole(destination)?;
        self.inner.get(destination, target)
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
        lacks::atomic(self.inner.rank(), op)?;
        self.inner
            .atomic(source, part, ack, target, header, op, kind)
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
        self.inner.fetch_atomic(
            fetched,
            fetched_offset_bytes,
            source,
            part,
            target,
            header,
            op,
            kind,
            compare,
        )
    }
}
