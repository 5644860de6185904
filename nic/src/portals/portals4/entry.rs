//! Entries: made, reported by events, taken away.

use super::abi::{self, Me, Process};
use super::answer::{made, unexpected};
use super::lacks::{self, Leaves};
use super::open::Portals4;
use super::outcome;
use super::queue::{Report, Retired};
use crate::portals::{
    Counter, Entry, EntryHandle, Event, EventKind, Managed, Matching, NicError, Outcome,
    PortalIndex, Position, Queue,
};
use argonet_base::JobRank;
use core::ptr::NonNull;
use std::collections::VecDeque;

/// The binding's record of an entry.
#[derive(Debug)]
pub(super) struct Record {
    raw: abi::Handle,
    portal: PortalIndex,
    start: u64,
    len: u64,
    user: u64,
    leaves: Leaves,
    /// Whether its operations make events.
    reports_end: bool,
    /// Whether its leaving is for the client.
    reports_leaving: bool,
    /// Operations and bytes that events have reported.
    operations: u64,
    bytes: u64,
    /// Whether the library has said that it has left.
    left: bool,
    /// Whether the client has taken it away: events that still come are of earlier operations.
    retired: bool,
    counter: Option<Counter>,
}

impl Record {
    /// Whether no event of an operation can follow, as far as events show.
    fn is_over(&self) -> bool {
        self.left
            && (!self.reports_end
                || match self.leaves {
                    Leaves::Never => true,
                    Leaves::Once => self.operations >= 1,
                    Leaves::Below(min_free) => self.len.saturating_sub(self.bytes) < min_free,
                })
    }
}

impl Portals4 {
    /// # Safety
    /// As [`Portals::attach`](crate::portals::Portals::attach).
    pub(super) unsafe fn make_entry(
        &self,
        portal: PortalIndex,
        position: Position,
        matching: Matching,
        memory: NonNull<u8>,
        len_bytes: u64,
        entry: Entry,
    ) -> Result<EntryHandle, NicError> {
        let leaves = lacks::entry(self.ni.rank, position, &entry)?;
        let source = match matching.source {
            None => abi::RANK_ANY,
            Some(source) => self.ni.reach(source)?.nid_or_rank,
        };
        let queues = self.queues.read();
        let mut tables = self.tables.lock();
        let portal_queue = tables.portal(&self.ni, portal)?.queue;
        if let Some(queue) = entry.queue {
            queues.get(queue.index, queue.generation)?;
        }
        lacks::queue(self.ni.rank, portal_queue, entry.queue, leaves)?;
        tables.entries.room()?;
        let reports_end = entry.queue.is_some() && entry.events.end;
        let mut me = Me {
            start: memory.as_ptr().cast(),
            length: len_bytes,
            counter: abi::NO_COUNTER,
            uid: self.ni.uid,
            options: options(&entry, leaves, reports_end),
            source: Process {
                nid_or_rank: source,
                pid: 0,
            },
            match_bits: matching.bits,
            ignore_bits: matching.ignore,
            min_free: match leaves {
                Leaves::Below(bytes) => bytes,
                _ => 0,
            },
        };
        if let Some(count) = entry.count {
            me.counter = tables.use_counter(count.counter)?;
        }
        let (index, generation) = tables.entries.next();
        let handle = EntryHandle { index, generation };
        let (call, mut raw) = (&self.ni.library.call, 0);
        // SAFETY: the caller keeps the memory for as long as the entry is listed; the structure has
        // the library's layout, as `probe.rs` has seen.
        let code = unsafe {
            (call.me_append)(
                self.ni.handle,
                portal.0,
                &raw const me,
                abi::PRIORITY_LIST,
                handle.to_bits() as *mut _,
                &raw mut raw,
            )
        };
        let limit = self.ni.entries.into();
        if let Err(error) = made(self.ni.rank, "PtlMEAppend", code, "entry", limit) {
            tables.unuse_counter(entry.count.map(|count| count.counter));
            return Err(error);
        }
        // The library gives numbers of entries again that have left by themselves, perhaps before
        // that was read.
        tables.void_raw(raw);
        tables.raw_entries.insert(raw, handle);
        tables.portal_entries(portal, 1);
        tables.entries.insert(Record {
            raw,
            portal,
            start: memory.as_ptr() as u64,
            len: len_bytes,
            user: entry.user,
            leaves,
            reports_end,
            reports_leaving: entry.auto_unlink && entry.queue.is_some(),
            operations: 0,
            bytes: 0,
            left: false,
            retired: false,
            counter: entry.count.map(|count| count.counter),
        });
        Ok(handle)
    }

    pub(super) fn unlink_entry(&self, entry: EntryHandle) -> Result<(), NicError> {
        let (index, generation) = (entry.index, entry.generation);
        let queues = self.queues.read();
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        let gone = tables.entries.gone(index, generation);
        let record = tables.entries.get_mut(index, generation)?;
        if record.retired {
            return Err(gone);
        }
        let listed = !record.left && tables.raw_entries.get(&record.raw) == Some(&entry);
        if listed {
            // SAFETY: a call by values.
            let code = unsafe { (self.ni.library.call.me_unlink)(record.raw) };
            match code {
                abi::OK => {}
                abi::IN_USE => {
                    return Err(NicError::InUse {
                        rank: self.ni.rank,
                        what: "entry",
                        index,
                        by: "by an operation of a peer",
                    });
                }
                // The entry has left, and no thread has read the event of that yet.
                abi::ARG_INVALID if record.leaves != Leaves::Never => {
                    if record.reports_leaving {
                        return Err(gone);
                    }
                }
                code => return Err(unexpected(self.ni.rank, "PtlMEUnlink", code)),
            }
        } else if record.reports_leaving {
            return Err(gone);
        }
        record.retired = true;
        let (portal, raw, counter) = (record.portal, record.raw, record.counter.take());
        if tables.raw_entries.get(&raw) == Some(&entry) {
            tables.raw_entries.remove(&raw);
        }
        tables.portal_entries(portal, -1);
        tables.unuse_counter(counter);
        let queue = tables.portal(&self.ni, portal)?.queue;
        let queue = queue.and_then(|queue: Queue| queues.get(queue.index, queue.generation).ok());
        match queue {
            // Its events may lie in the queue.
            Some(queue) => queue.retire(entry),
            None => drop(tables.entries.remove(index, generation)),
        }
        Ok(())
    }

    /// Removes entries of which no events are in their queue any more.
    pub(super) fn remove_retired(&self, retired: &[Retired]) {
        let mut tables = self.tables.lock();
        for Retired { entry, .. } in retired {
            tables.entries.remove(entry.index, entry.generation);
        }
    }

    /// Translates an event at the target.
    pub(super) fn target_event(&self, raw: &abi::RawEvent, ready: &mut VecDeque<Report>) {
        let handle = EntryHandle::from_bits(raw.user);
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        let Ok(record) = tables.entries.get_mut(handle.index, handle.generation) else {
            return;
        };
        if raw.kind == abi::EVENT_AUTO_UNLINK {
            record.left = true;
        } else {
            record.operations += 1;
            record.bytes += raw.moved;
            ready.push_back(Report::Event(record.operation(handle, raw)));
        }
        let (over, shown) = (record.is_over(), record.reports_leaving && !record.retired);
        if !over || !shown {
            return;
        }
        ready.push_back(Report::Event(Event {
            kind: EventKind::Unlink,
            outcome: Outcome::Done,
            ..record.operation(handle, raw)
        }));
        let (portal, raw, counter) = (record.portal, record.raw, record.counter.take());
        if tables.raw_entries.get(&raw) == Some(&handle) {
            tables.raw_entries.remove(&raw);
        }
        tables.portal_entries(portal, -1);
        tables.unuse_counter(counter);
        tables.entries.remove(handle.index, handle.generation);
    }
}

impl Record {
    fn operation(&self, handle: EntryHandle, raw: &abi::RawEvent) -> Event {
        let leaving = raw.kind == abi::EVENT_AUTO_UNLINK;
        let only = |value: u64| if leaving { 0 } else { value };
        Event {
            kind: match raw.kind {
                abi::EVENT_PUT => EventKind::PutEnd,
                abi::EVENT_GET => EventKind::GetEnd,
                _ => EventKind::AtomicEnd,
            },
            outcome: outcome::of(raw.fail),
            peer: JobRank(only(raw.initiator.nid_or_rank.into()) as u32),
            portal: self.portal,
            bits: only(raw.match_bits),
            header: if raw.kind == abi::EVENT_GET {
                0
            } else {
                only(raw.header)
            },
            requested_bytes: only(raw.requested),
            moved_bytes: only(raw.moved),
            // An operation that is cut to nothing has no place.
            offset_bytes: Some(only(raw.start).wrapping_sub(self.start))
                .filter(|offset| *offset <= self.len)
                .unwrap_or(0),
            user: self.user,
            object: handle.to_bits(),
            link: 0,
        }
    }
}

fn options(entry: &Entry, leaves: Leaves, reports_end: bool) -> u32 {
    let option = |wanted: bool, bit: u32| if wanted { bit } else { 0 };
    option(entry.puts, abi::ME_PUT)
        | option(entry.gets, abi::ME_GET)
        | option(leaves == Leaves::Once, abi::ME_USE_ONCE)
        | option(entry.managed != Managed::Remote, abi::ME_MANAGE_LOCAL)
        | option(!entry.truncate, abi::ME_NO_TRUNCATE)
        | abi::ME_LINK_DISABLE
        | option(!reports_end, abi::ME_COMM_DISABLE)
        | option(leaves == Leaves::Never, abi::ME_UNLINK_DISABLE)
        | option(entry.count.is_some(), abi::ME_COUNT_COMM)
        | option(
            entry.count.is_some_and(|count| count.bytes),
            abi::ME_COUNT_BYTES,
        )
}
