//! The trait: operations for ranks of the host, and all calls that are no operations, go to the
//! software interface.

use super::interface::Networked;
use super::service;
use crate::Dropped;
use crate::portals::software::Rest;
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Counter, Descriptor, DescriptorHandle, Entry, EntryHandle, Event,
    Features, Limits, Matching, NicError, Part, PortalIndex, PortalOptions, Portals, Position,
    Queue, Register, ReportDropped, Target,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use core::time::Duration;
use rustix::fd::AsFd;

impl Networked {
    fn check_atomic(
        &self,
        part: Part,
        target: &Target,
        op: AtomicOp,
        kind: AtomicKind,
        fetches: bool,
    ) -> Result<(), NicError> {
        let (len, offset) = (part.len_bytes, target.offset_bytes);
        match kind.objection(op, len, offset, fetches, self.core.atomic_bytes) {
            Some(what) => Err(NicError::Invalid {
                rank: self.rank(),
                what,
            }),
            None => Ok(()),
        }
    }
}

impl Portals for Networked {
    fn rank(&self) -> JobRank {
        self.core.software.rank()
    }

    fn limits(&self) -> Limits {
        Limits {
            ranks: self.core.ranks,
            atomic_bytes: self.core.atomic_bytes,
            ..self.core.software.limits()
        }
    }

    fn features(&self) -> Features {
        Features {
            synchronous: false,
            remote: true,
            ..self.core.software.features()
        }
    }

    fn status(&self, register: Register) -> u64 {
        self.core.software.status(register)
    }

    fn queue_alloc(&self, events: u64) -> Result<Queue, NicError> {
        self.core.software.queue_alloc(events)
    }

    fn queue_free(&self, queue: Queue) -> Result<(), NicError> {
        self.core.software.queue_free(queue)
    }

    #[inline]
    fn queue_get(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        let software = &self.core.software;
        match software.queue_get(queue)? {
            None if self.core.attend() => software.queue_get(queue),
            event => Ok(event),
        }
    }

    #[inline]
    fn queue_is_empty(&self, queue: Queue) -> Result<bool, NicError> {
        self.core.software.queue_is_empty(queue)
    }

    fn queue_wait(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        let core = &*self.core;
        let asleep = core.software.wakeup().and_then(|wakeup| {
            let sleep = &mut || service::sleep(wakeup, Some(core.wire.as_fd()), timeout);
            core.read_asleep(|| core.software.wait(queues, Rest::Bell(sleep), come))
        });
        asleep.unwrap_or_else(|| core.software.queue_wait(queues, timeout, come))
    }

    #[inline]
    fn attend(&self) -> bool {
        self.core.attend()
    }

    fn attends(&self) -> bool {
        true
    }

    fn lost(&self, peer: JobRank) -> Option<NicError> {
        if self.core.software.shares_memory(peer) {
            return None;
        }
        self.core.lock().lost(peer)
    }

    fn dropped(&self) -> Option<Dropped> {
        Some(self.core.lock().dropped())
    }

    fn on_dropped(&self, report: ReportDropped) {
        // The first stays.
        let _ = self.core.on_dropped.set(report);
        self.core.lock().report_dropped();
    }

    fn wake(&self) {
        self.core.software.wake();
    }

    fn exit_grace(&self, limit: Duration) -> bool {
        self.leave(limit)
    }

    fn counter_alloc(&self) -> Result<Counter, NicError> {
        self.core.software.counter_alloc()
    }

    fn counter_free(&self, counter: Counter) -> Result<(), NicError> {
        self.core.software.counter_free(counter)
    }

    fn counter_get(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        self.core.software.counter_get(counter)
    }

    fn counter_set(&self, counter: Counter, success: u64, failure: u64) -> Result<(), NicError> {
        self.core.software.counter_set(counter, success, failure)
    }

    fn portal_alloc(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        self.core.software.portal_alloc(options, queue, wish)
    }

    fn portal_free(&self, portal: PortalIndex) -> Result<(), NicError> {
        self.core.software.portal_free(portal)
    }

    fn portal_enable(&self, portal: PortalIndex, enabled: bool) -> Result<(), NicError> {
        self.core.software.portal_enable(portal, enabled)
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
        let software = &self.core.software;
        // SAFETY: the caller's promise.
        unsafe { software.attach(portal, position, matching, memory, len_bytes, entry) }
    }

    fn unlink(&self, entry: EntryHandle) -> Result<(), NicError> {
        self.core.software.unlink(entry)
    }

    unsafe fn bind(
        &self,
        memory: NonNull<u8>,
        len_bytes: u64,
        descriptor: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        // SAFETY: the caller's promise.
        unsafe { self.core.software.bind(memory, len_bytes, descriptor) }
    }

    fn release(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        self.core.software.release(descriptor)
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

    fn put_region(
        &self,
        source: DescriptorHandle,
        part: Part,
        ack: Ack,
        target: Target,
        header: u64,
    ) -> Result<(), NicError> {
        let software = &self.core.software;
        if software.shares_memory(target.rank) {
            return software.put_region(source, part, ack, target, header);
        }
        let away = software.put_away(source, part, ack, &target, header)?;
        self.core.begin(target.rank, away)
    }

    fn get_region(
        &self,
        destination: DescriptorHandle,
        part: Part,
        target: Target,
    ) -> Result<(), NicError> {
        let software = &self.core.software;
        if software.shares_memory(target.rank) {
            return software.get_region(destination, part, target);
        }
        let away = software.get_away(destination, part, &target)?;
        self.core.begin(target.rank, away)
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
        let software = &self.core.software;
        self.check_atomic(part, &target, op, kind, false)?;
        if software.shares_memory(target.rank) {
            return software.atomic(source, part, ack, target, header, op, kind);
        }
        let away = software.atomic_away(source, part, ack, &target, header, op, kind)?;
        self.core.begin(target.rank, away)
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
        let software = &self.core.software;
        self.check_atomic(part, &target, op, kind, true)?;
        if software.shares_memory(target.rank) {
            return software.fetch_atomic(
                fetched,
                fetched_offset_bytes,
                source,
                part,
                target,
                header,
                op,
                kind,
                compare,
            );
        }
        let away = software.fetch_away(
            fetched,
            fetched_offset_bytes,
            source,
            part,
            &target,
            header,
            op,
            kind,
            compare,
        )?;
        self.core.begin(target.rank, away)
    }
}
