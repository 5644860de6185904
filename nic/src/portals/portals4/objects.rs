//! Counters and portals.

use super::abi::{self, CtEvent};
use super::answer::{check, made, unexpected};
use super::config::Portals4Config;
use super::entry;
use super::open::{Ni, Portals4};
use crate::portals::slots::Slots;
use crate::portals::{Counter, EntryHandle, NicError, PortalIndex, PortalOptions, Queue};
use argonet_base::JobRank;
use core::sync::atomic::Ordering;
use std::collections::HashMap;

struct CounterRecord {
    raw: abi::Handle,
    /// Entries and descriptors that count with it.
    users: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Portal {
    pub(super) queue: Option<Queue>,
    entries: u32,
}

/// Objects of this rank from which no operation begins: counters, portals and entries.
pub(super) struct Tables {
    rank: JobRank,
    counters: Slots<CounterRecord>,
    portals: Vec<Option<Portal>>,
    pub(super) entries: Slots<entry::Record>,
    /// Entries by the library's handle.
    pub(super) raw_entries: HashMap<abi::Handle, EntryHandle>,
}

impl Tables {
    pub(super) fn new(ni: &Ni, config: &Portals4Config) -> Self {
        Self {
            rank: ni.rank,
            counters: Slots::new(ni.rank, "counter", config.counters),
            portals: vec![None; ni.portals as usize],
            // Records stay until the events of their entries are taken; entries themselves the
            // library limits.
            entries: Slots::new(ni.rank, "entry", config.entries.saturating_mul(2)),
            raw_entries: HashMap::new(),
        }
    }

    pub(super) fn portal(&self, ni: &Ni, portal: PortalIndex) -> Result<Portal, NicError> {
        let held = self.portals.get(portal.0 as usize).copied().flatten();
        held.ok_or(NicError::BadPortal {
            rank: ni.rank,
            portal: portal.0,
            portals: ni.portals,
        })
    }

    pub(super) fn portal_entries(&mut self, portal: PortalIndex, more: i32) {
        if let Some(Some(portal)) = self.portals.get_mut(portal.0 as usize) {
            portal.entries = portal.entries.saturating_add_signed(more);
        }
    }

    /// Forgets which entry had a handle of the library.
    pub(super) fn void_raw(&mut self, raw: abi::Handle) {
        self.raw_entries.remove(&raw);
    }

    pub(super) fn use_counter(&mut self, counter: Counter) -> Result<abi::Handle, NicError> {
        let record = self.counters.get_mut(counter.index, counter.generation)?;
        record.users += 1;
        Ok(record.raw)
    }

    pub(super) fn unuse_counter(&mut self, counter: Option<Counter>) {
        let record =
            counter.map(|counter| self.counters.get_mut(counter.index, counter.generation));
        if let Some(Ok(record)) = record {
            record.users -= 1;
        }
    }

    fn counter(&self, counter: Counter) -> Result<&CounterRecord, NicError> {
        self.counters.get(counter.index, counter.generation)
    }

    fn in_use(&self, what: &'static str, index: u32, by: &'static str) -> NicError {
        NicError::InUse {
            rank: self.rank,
            what,
            index,
            by,
        }
    }
}

impl Portals4 {
    pub(super) fn make_counter(&self) -> Result<Counter, NicError> {
        let mut tables = self.tables.lock();
        tables.counters.room()?;
        let mut raw = 0;
        // SAFETY: the place is valid.
        let code = unsafe { (self.ni.library.call.ct_alloc)(self.ni.handle, &raw mut raw) };
        let limit = tables.counters.limit().into();
        made(self.ni.rank, "PtlCTAlloc", code, "counter", limit)?;
        let (index, generation) = tables.counters.insert(CounterRecord { raw, users: 0 });
        Ok(Counter { index, generation })
    }

    pub(super) fn drop_counter(&self, counter: Counter) -> Result<(), NicError> {
        let mut tables = self.tables.lock();
        let record = tables.counter(counter)?;
        if record.users != 0 {
            return Err(tables.in_use("counter", counter.index, "by entries or descriptors"));
        }
        // SAFETY: a call by values.
        let code = unsafe { (self.ni.library.call.ct_free)(record.raw) };
        check(self.ni.rank, "PtlCTFree", code)?;
        tables.counters.remove(counter.index, counter.generation);
        Ok(())
    }

    pub(super) fn read_counter(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        let tables = self.tables.lock();
        let raw = tables.counter(counter)?.raw;
        let mut count = CtEvent::default();
        // SAFETY: the place is valid.
        let code = unsafe { (self.ni.library.call.ct_get)(raw, &raw mut count) };
        check(self.ni.rank, "PtlCTGet", code)?;
        Ok((count.success, count.failure))
    }

    pub(super) fn write_counter(
        &self,
        counter: Counter,
        success: u64,
        failure: u64,
    ) -> Result<(), NicError> {
        let tables = self.tables.lock();
        let raw = tables.counter(counter)?.raw;
        // SAFETY: a call by values.
        let code = unsafe { (self.ni.library.call.ct_set)(raw, CtEvent { success, failure }) };
        check(self.ni.rank, "PtlCTSet", code)
    }

    pub(super) fn make_portal(
        &self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        let rank = self.ni.rank;
        if options.flow_control && queue.is_none() {
            return Err(NicError::Invalid {
                rank,
                what: "flow control of a portal without a queue for its events",
            });
        }
        let wished = match wish {
            Some(portal) if portal.0 >= self.ni.portals => {
                return Err(NicError::BadPortal {
                    rank,
                    portal: portal.0,
                    portals: self.ni.portals,
                });
            }
            Some(portal) => portal.0,
            None => abi::PORTAL_ANY,
        };
        let queues = self.queues.read();
        let mut tables = self.tables.lock();
        let record = queue
            .map(|queue| queues.get(queue.index, queue.generation))
            .transpose()?;
        let flow = if options.flow_control {
            abi::PT_FLOW_CONTROL
        } else {
            0
        };
        let raw_queue = record.map_or(abi::NO_QUEUE, |record| record.raw);
        let (call, mut index) = (&self.ni.library.call, 0);
        // SAFETY: the place is valid.
        let code =
            unsafe { (call.pt_alloc)(self.ni.handle, flow, raw_queue, wished, &raw mut index) };
        if code == abi::PT_IN_USE {
            return Err(tables.in_use("portal", wished, "already"));
        }
        made(rank, "PtlPTAlloc", code, "portal", self.ni.portals.into())?;
        let place = tables.portals.get_mut(index as usize);
        let place = place.ok_or_else(|| self.ni.wrong(format!("it gives portal {index}")))?;
        *place = Some(Portal { queue, entries: 0 });
        if let Some(record) = record {
            record.users.fetch_add(1, Ordering::Relaxed);
        }
        Ok(PortalIndex(index))
    }

    pub(super) fn drop_portal(&self, portal: PortalIndex) -> Result<(), NicError> {
        let queues = self.queues.read();
        let mut tables = self.tables.lock();
        let held = tables.portal(&self.ni, portal)?;
        let busy = tables.in_use("portal", portal.0, "by the entries of its list");
        if held.entries != 0 {
            return Err(busy);
        }
        // SAFETY: a call by values.
        let code = unsafe { (self.ni.library.call.pt_free)(self.ni.handle, portal.0) };
        match code {
            abi::OK => {}
            abi::PT_IN_USE => return Err(busy),
            code => return Err(unexpected(self.ni.rank, "PtlPTFree", code)),
        }
        tables.portals[portal.0 as usize] = None;
        let queue = held
            .queue
            .and_then(|queue| queues.get(queue.index, queue.generation).ok());
        if let Some(record) = queue {
            record.users.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn enable_portal(&self, portal: PortalIndex, on: bool) -> Result<(), NicError> {
        // Not under the lock: disabling waits for operations under way.
        self.tables.lock().portal(&self.ni, portal)?;
        let call = &self.ni.library.call;
        let (name, function) = if on {
            ("PtlPTEnable", call.pt_enable)
        } else {
            ("PtlPTDisable", call.pt_disable)
        };
        // SAFETY: a call by values.
        check(self.ni.rank, name, unsafe {
            function(self.ni.handle, portal.0)
        })
    }
}
