//! Event queues: the library's events, as events of the trait.

use super::abi;
use super::answer::{made, unexpected};
use super::open::Portals4;
use crate::portals::{EntryHandle, Event, EventKind, NicError, Outcome, PortalIndex, Queue};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// After so long a thread that sleeps looks at its queues for the first time; each time it finds
/// nothing the next takes twice as long, up to [`MOST_NAPS`] times.
pub(super) const SHORTEST_NAP: Duration = Duration::from_micros(20);
const MOST_NAPS: u32 = 8;

/// The next report of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Report {
    Event(Event),
    /// Events are missing here.
    Dropped,
}

/// An entry that the client has taken away, of which events may be in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retired {
    pub(super) entry: EntryHandle,
    /// How many events had been taken.
    at: u64,
}

/// The binding's record of a queue.
pub(super) struct Record {
    pub(super) raw: abi::Handle,
    /// The most events that are in it.
    depth: u64,
    /// Portals and descriptors that report to it.
    ///
    /// Written with the table of queues locked for reading, read with it locked for writing.
    pub(super) users: AtomicU32,
    /// Whether events were ever dropped, so that operations may wait for events that do not come.
    pub(super) lossy: AtomicBool,
    /// Translated and not taken yet.
    ///
    /// Threads take one at a time.
    ready: Mutex<VecDeque<Report>>,
    /// Events taken from the library.
    ///
    /// Written by the thread that holds `ready`.
    taken: AtomicU64,
    retired: Mutex<VecDeque<Retired>>,
}

impl Record {
    pub(super) fn retire(&self, entry: EntryHandle) {
        let at = self.taken.load(Ordering::Relaxed);
        self.retired.lock().push_back(Retired { entry, at });
    }
}

impl Portals4 {
    pub(super) fn make_queue(&self, events: u64) -> Result<Queue, NicError> {
        let rank = self.ni.rank;
        if events == 0 || events > self.config.queue_events {
            return Err(NicError::Invalid {
                rank,
                what: "a queue of no events, or of more than the interface's limit",
            });
        }
        let mut queues = self.queues.write();
        queues.room()?;
        let mut raw = 0;
        // SAFETY: the place for the handle is valid.
        let code = unsafe { (self.ni.library.call.eq_alloc)(self.ni.handle, events, &raw mut raw) };
        made(rank, "PtlEQAlloc", code, "queue", queues.limit().into())?;
        let (index, generation) = queues.insert(Record {
            raw,
            // Room for portals that are disabled comes on top, one each.
            depth: events + u64::from(self.ni.portals),
            users: AtomicU32::new(0),
            lossy: AtomicBool::new(false),
            ready: Mutex::default(),
            taken: AtomicU64::new(0),
            retired: Mutex::default(),
        });
        Ok(Queue { index, generation })
    }

    pub(super) fn drop_queue(&self, queue: Queue) -> Result<(), NicError> {
        let mut queues = self.queues.write();
        let record = queues.get(queue.index, queue.generation)?;
        if record.users.load(Ordering::Relaxed) != 0 {
            return Err(NicError::InUse {
                rank: self.ni.rank,
                what: "queue",
                index: queue.index,
                by: "by portals, entries or descriptors",
            });
        }
        // SAFETY: a call by values.
        let code = unsafe { (self.ni.library.call.eq_free)(record.raw) };
        super::answer::check(self.ni.rank, "PtlEQFree", code)?;
        if let Some(record) = queues.remove(queue.index, queue.generation) {
            let retired: Vec<_> = record.retired.into_inner().into();
            self.remove_retired(&retired);
        }
        Ok(())
    }

    pub(super) fn take_event(&self, queue: Queue) -> Result<Option<Event>, NicError> {
        let queues = self.queues.read();
        let record = queues.get(queue.index, queue.generation)?;
        let mut ready = record.ready.lock();
        loop {
            match ready.pop_front() {
                Some(Report::Event(event)) => {
                    self.naps.store(0, Ordering::Relaxed);
                    return Ok(Some(event));
                }
                Some(Report::Dropped) => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                    return Err(NicError::EventsDropped {
                        rank: self.ni.rank,
                        queue: queue.index,
                        count: 1,
                    });
                }
                None if self.advance(record, &mut ready)? => {}
                None => return Ok(None),
            }
        }
    }

    /// Whether there is nothing to take.
    ///
    /// An event that is found stays for [`take_event`](Self::take_event).
    pub(super) fn is_queue_empty(&self, queue: Queue) -> Result<bool, NicError> {
        let queues = self.queues.read();
        let record = queues.get(queue.index, queue.generation)?;
        let mut ready = record.ready.lock();
        while ready.is_empty() {
            if !self.advance(record, &mut ready)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until it is woken, or for one nap: no call of the library that waits for events could
    /// be ended by another thread.
    pub(super) fn wait_for_events(
        &self,
        queues: &[Queue],
        timeout: Option<Duration>,
        come: &dyn Fn() -> bool,
    ) -> Result<(), NicError> {
        // A thread that wakes this one from here on takes this lock after the look at `come`.
        let mut asleep = self.asleep.lock();
        for queue in queues {
            if !self.is_queue_empty(*queue)? {
                return Ok(());
            }
        }
        if !come() {
            let naps = self.naps.load(Ordering::Relaxed).min(MOST_NAPS);
            self.naps.store(naps + 1, Ordering::Relaxed);
            let nap = SHORTEST_NAP * (1 << naps);
            self.woken
                .wait_for(&mut asleep, timeout.map_or(nap, |time| time.min(nap)));
        }
        Ok(())
    }

    pub(super) fn wake_all(&self) {
        let _asleep = self.asleep.lock();
        self.woken.notify_all();
    }

    /// Translates all that the library has at this moment, so that operations which have ended are
    /// known to have.
    pub(super) fn translate_all(&self, record: &Record) -> Result<(), NicError> {
        let mut ready = record.ready.lock();
        // A queue that fills as fast as it is read would keep this call forever.
        for _ in 0..record.depth {
            if !self.advance(record, &mut ready)? {
                break;
            }
        }
        Ok(())
    }

    /// Takes an event from the library.
    ///
    /// `false`: it has none.
    fn advance(&self, record: &Record, ready: &mut VecDeque<Report>) -> Result<bool, NicError> {
        let retired = record.retired.lock().len();
        let mut raw = abi::RawEvent::UNSET;
        // SAFETY: an event has the library's size and layout, as `probe.rs` has seen.
        let code = unsafe { (self.ni.library.call.eq_get)(record.raw, (&raw mut raw).cast()) };
        if code == abi::EQ_EMPTY {
            // All that was retired before the look has no event here.
            if retired != 0 {
                let gone: Vec<_> = record.retired.lock().drain(..retired).collect();
                self.remove_retired(&gone);
            }
            return Ok(false);
        }
        if code == abi::EQ_DROPPED {
            record.lossy.store(true, Ordering::Relaxed);
            ready.push_back(Report::Dropped);
        } else if code != abi::OK {
            return Err(unexpected(self.ni.rank, "PtlEQGet", code));
        }
        let taken = record.taken.fetch_add(1, Ordering::Relaxed) + 1;
        self.translate(&raw, ready);
        if retired != 0 {
            let mut list = record.retired.lock();
            let old = list.partition_point(|one| taken - one.at > record.depth);
            let gone: Vec<_> = list.drain(..old).collect();
            drop(list);
            self.remove_retired(&gone);
        }
        Ok(true)
    }

    fn translate(&self, raw: &abi::RawEvent, ready: &mut VecDeque<Report>) {
        match raw.kind {
            abi::EVENT_SEND | abi::EVENT_ACK | abi::EVENT_REPLY => {
                self.outstanding.lock().event(raw, ready);
            }
            abi::EVENT_PUT
            | abi::EVENT_GET
            | abi::EVENT_ATOMIC
            | abi::EVENT_FETCH_ATOMIC
            | abi::EVENT_AUTO_UNLINK => self.target_event(raw, ready),
            abi::EVENT_DISABLED => ready.push_back(Report::Event(Event {
                kind: EventKind::Disabled,
                outcome: Outcome::Done,
                peer: self.ni.rank,
                portal: PortalIndex(raw.portal),
                bits: 0,
                header: 0,
                requested_bytes: 0,
                moved_bytes: 0,
                offset_bytes: 0,
                user: 0,
                object: 0,
                link: 0,
            })),
            // Of lists that are not used, and of linking, which is not asked for.
            _ => {}
        }
    }
}
