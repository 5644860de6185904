//! Descriptors.
//!
//! The library says of a memory descriptor, not of an operation, which events and counts operations
//! make. So a descriptor is up to three of the library's over the same memory, and each operation
//! takes the one that makes its events and counts.

use super::abi::{self, Handle, Md};
use super::answer::{made, unexpected};
use super::lacks;
use super::open::Portals4;
use super::outstanding::{ACK, REPLY, SEND};
use crate::portals::{Ack, Descriptor, DescriptorHandle, NicError};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

pub(super) struct Bound {
    pub(super) len: u64,
    pub(super) options: Descriptor,
    /// With the queue and without the counter, if there is a queue.
    event: Option<Handle>,
    /// With the counter, if there is one, and with the queue if ends are reported.
    count: Option<Handle>,
    /// With neither, if ends are not reported.
    silent: Option<Handle>,
    /// Whether its release has begun.
    releasing: bool,
}

/// How one operation uses a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) md: Handle,
    pub(super) ack: u8,
    /// Which events will come.
    pub(super) awaits: u8,
}

impl Bound {
    fn reports_end(&self) -> bool {
        self.options.queue.is_some() && self.options.events.end
    }

    /// As a source; `None` if it has no queue or counter that could report that acknowledgement.
    pub(super) fn source(&self, ack: Ack) -> Option<Use> {
        let end = if self.reports_end() { SEND } else { 0 };
        let (md, ack, awaits) = match ack {
            Ack::Event => (self.event, abi::ACK_EVENT, ACK | end),
            Ack::Count => (self.count, abi::ACK_COUNT, end),
            Ack::None if end != 0 => (self.event, abi::ACK_NONE, end),
            Ack::None => (self.silent, abi::ACK_NONE, 0),
        };
        md.map(|md| Use { md, ack, awaits })
    }

    /// As a destination.
    pub(super) fn destination(&self) -> Option<Use> {
        let awaits = if self.reports_end() { REPLY } else { 0 };
        let other = if awaits == 0 { self.silent } else { self.event };
        self.count.or(other).map(|md| Use {
            md,
            ack: abi::ACK_NONE,
            awaits,
        })
    }

    pub(super) fn is_releasing(&self) -> bool {
        self.releasing
    }
}

impl Portals4 {
    /// # Safety
    /// As [`Portals::bind`](crate::portals::Portals::bind).
    pub(super) unsafe fn make_descriptor(
        &self,
        memory: NonNull<u8>,
        len: u64,
        options: Descriptor,
    ) -> Result<DescriptorHandle, NicError> {
        let rank = self.ni.rank;
        lacks::descriptor(rank, &options)?;
        let mut table = self.bound.write();
        table.room()?;
        let queues = self.queues.read();
        let record = options
            .queue
            .map(|queue| queues.get(queue.index, queue.generation))
            .transpose()?;
        let queue = record.map_or(abi::NO_QUEUE, |record| record.raw);
        let counter = options
            .count
            .map(|count| self.tables.lock().use_counter(count.counter))
            .transpose()?;
        let mut bound = Bound {
            len,
            options,
            event: None,
            count: None,
            silent: None,
            releasing: false,
        };
        let end = bound.reports_end();
        let send = if end { 0 } else { abi::MD_SEND_DISABLE };
        let md = |options, queue, counter| Md {
            start: memory.as_ptr().cast(),
            length: len,
            options,
            queue,
            counter,
        };
        let bind = |md: Md| {
            let mut handle = 0;
            // SAFETY: the caller keeps the memory until the release.
            let code = unsafe {
                (self.ni.library.call.md_bind)(self.ni.handle, &raw const md, &raw mut handle)
            };
            made(rank, "PtlMDBind", code, "descriptor", table.limit().into())?;
            Ok(handle)
        };
        let attempt = || -> Result<(), NicError> {
            if record.is_some() {
                bound.event = Some(bind(md(send, queue, abi::NO_COUNTER))?);
            }
            if let (Some(counter), Some(count)) = (counter, options.count) {
                let bytes = if count.bytes { abi::MD_COUNT_BYTES } else { 0 };
                let counts = abi::MD_COUNT_ACK | abi::MD_COUNT_REPLY | bytes;
                let queue = if end { queue } else { abi::NO_QUEUE };
                bound.count = Some(bind(md(counts, queue, counter))?);
            }
            if !end {
                bound.silent = Some(bind(md(0, abi::NO_QUEUE, abi::NO_COUNTER))?);
            }
            Ok(())
        };
        let result = { attempt }();
        if let Err(error) = result {
            for handle in [bound.event, bound.count, bound.silent]
                .into_iter()
                .flatten()
            {
                // SAFETY: bound just now, and no operation has begun.
                unsafe { (self.ni.library.call.md_release)(handle) };
            }
            let counter = options.count.map(|count| count.counter);
            self.tables.lock().unuse_counter(counter);
            return Err(error);
        }
        if let Some(record) = record {
            record.users.fetch_add(1, Ordering::Relaxed);
        }
        let (index, generation) = table.insert(bound);
        Ok(DescriptorHandle { index, generation })
    }

    pub(super) fn drop_descriptor(&self, descriptor: DescriptorHandle) -> Result<(), NicError> {
        let (index, generation) = (descriptor.index, descriptor.generation);
        let in_use = || NicError::InUse {
            rank: self.ni.rank,
            what: "descriptor",
            index,
            by: "by an operation under way",
        };
        let mut table = self.bound.write();
        let bound = table.get_mut(index, generation)?;
        let queues = self.queues.read();
        let record = bound
            .options
            .queue
            .and_then(|queue| queues.get(queue.index, queue.generation).ok());
        if let Some(record) = record
            && self.outstanding.lock().has(descriptor)
        {
            self.translate_all(record)?;
            let mut outstanding = self.outstanding.lock();
            if outstanding.has(descriptor) {
                if !record.lossy.load(Ordering::Relaxed) {
                    return Err(in_use());
                }
                // Their events were dropped; whether they are over the library knows.
                outstanding.forget(descriptor);
            }
        }
        bound.releasing = true;
        for place in [&mut bound.event, &mut bound.count, &mut bound.silent] {
            let Some(handle) = *place else { continue };
            // SAFETY: a call by values.
            match unsafe { (self.ni.library.call.md_release)(handle) } {
                abi::OK => *place = None,
                abi::IN_USE => return Err(in_use()),
                code => return Err(unexpected(self.ni.rank, "PtlMDRelease", code)),
            }
        }
        if let Some(record) = record {
            record.users.fetch_sub(1, Ordering::Relaxed);
        }
        let counter = bound.options.count.map(|count| count.counter);
        self.tables.lock().unuse_counter(counter);
        table.remove(index, generation);
        Ok(())
    }
}
