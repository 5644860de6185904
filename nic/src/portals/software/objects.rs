//! Making and freeing queues, counters and portals.

use super::layout::WORD;
use super::queue;
use super::records::{counter, entry, index, one_based, portal};
use super::transaction::Transaction;
use crate::portals::{Counter, NicError, PortalIndex, PortalOptions, Queue};

impl Transaction<'_> {
    fn no_space(&self, what: &'static str, limit: u64) -> NicError {
        NicError::NoSpace {
            rank: self.shared.rank(),
            what,
            limit,
        }
    }

    fn in_use(&self, what: &'static str, index: u32, by: &'static str) -> NicError {
        NicError::InUse {
            rank: self.shared.rank(),
            what,
            index,
            by,
        }
    }

    /// The state of a table's place, if the handle is of the object that is there now.
    fn check(
        &self,
        state: u64,
        what: &'static str,
        index: u32,
        generation: u32,
    ) -> Result<(), NicError> {
        let held = self.get(state);
        if held & 1 == 1 && (held >> 32) as u32 == generation {
            return Ok(());
        }
        Err(NicError::BadHandle {
            rank: self.shared.rank(),
            what,
            index,
            generation,
        })
    }

    pub(super) fn check_queue(&self, queue: Queue) -> Result<(), NicError> {
        let layout = &self.shared.region.layout;
        let gone = NicError::BadHandle {
            rank: self.shared.rank(),
            what: "queue",
            index: queue.index,
            generation: queue.generation,
        };
        if queue.index >= layout.config.queues {
            return Err(gone);
        }
        let at = layout.queue(self.place, queue.index) + queue::STATE;
        self.check(at, "queue", queue.index, queue.generation)
    }

    pub(super) fn check_counter(&self, counter: Counter) -> Result<u64, NicError> {
        let layout = &self.shared.region.layout;
        if counter.index >= layout.config.counters {
            return Err(NicError::BadHandle {
                rank: self.shared.rank(),
                what: "counter",
                index: counter.index,
                generation: counter.generation,
            });
        }
        let at = layout.counter(self.place, counter.index);
        self.check(
            at + counter::STATE,
            "counter",
            counter.index,
            counter.generation,
        )?;
        Ok(at)
    }

    /// The first free place of a table whose states are at `at`, and its generation.
    fn free_place(&self, limit: u32, at: impl Fn(u32) -> u64) -> Option<(u32, u32)> {
        (0..limit).find_map(|index| {
            let state = self.get(at(index));
            (state & 1 == 0).then_some((index, (state >> 32) as u32))
        })
    }

    pub(super) fn make_queue(&mut self, events: u64) -> Result<Queue, NicError> {
        let layout = self.shared.region.layout;
        let limit = layout.config.queue_events;
        let depth = events
            .checked_next_power_of_two()
            .filter(|d| events != 0 && *d <= limit);
        let depth = depth.ok_or(NicError::Invalid {
            rank: self.shared.rank(),
            what: "a queue of no events, or of more than the interface's limit",
        })?;
        let place = self.place;
        let free = self.free_place(layout.config.queues, |n| {
            layout.queue(place, n) + queue::STATE
        });
        let (index, generation) =
            free.ok_or_else(|| self.no_space("queue", layout.config.queues.into()))?;
        self.open_queue(index, generation, depth);
        self.commit();
        Ok(Queue { index, generation })
    }

    /// Whether an entry of this interface has `what` at `shift` of its reports.
    fn entry_reports_to(&self, index: u32, shift: u32, mask: u64) -> bool {
        let layout = &self.shared.region.layout;
        (0..layout.config.entries).any(|n| {
            let at = layout.entry(self.place, n);
            let wanted = one_based(Some(index));
            self.get(at + entry::STATE) & entry::ALLOCATED != 0
                && self.get(at + entry::REPORTS) >> shift & mask == wanted
        })
    }

    pub(super) fn drop_queue(&mut self, queue: Queue, bound: bool) -> Result<(), NicError> {
        self.check_queue(queue)?;
        let layout = self.shared.region.layout;
        let by_portal = (0..layout.config.portals).any(|n| {
            let state = self.get(layout.portal(self.place, n) + portal::STATE);
            state & portal::ALLOCATED != 0 && state >> 32 == one_based(Some(queue.index))
        });
        if bound || by_portal || self.entry_reports_to(queue.index, 16, 0xffff) {
            return Err(self.in_use("queue", queue.index, "by portals, entries or descriptors"));
        }
        let at = layout.queue(self.place, queue.index) + queue::STATE;
        self.set(at, u64::from(queue.generation.wrapping_add(1)) << 32);
        self.commit();
        Ok(())
    }

    pub(super) fn make_counter(&mut self) -> Result<Counter, NicError> {
        let layout = self.shared.region.layout;
        let (place, limit) = (self.place, layout.config.counters);
        let free = self.free_place(limit, |n| layout.counter(place, n) + counter::STATE);
        let (index, generation) = free.ok_or_else(|| self.no_space("counter", limit.into()))?;
        let at = layout.counter(place, index);
        self.set(at + counter::SUCCESS, 0);
        self.set(at + counter::FAILURE, 0);
        self.set(at + counter::STATE, u64::from(generation) << 32 | 1);
        self.commit();
        Ok(Counter { index, generation })
    }

    pub(super) fn drop_counter(&mut self, counter: Counter, bound: bool) -> Result<(), NicError> {
        let at = self.check_counter(counter)?;
        if bound || self.entry_reports_to(counter.index, 32, u64::MAX) {
            return Err(self.in_use("counter", counter.index, "by entries or descriptors"));
        }
        let next = u64::from(counter.generation.wrapping_add(1)) << 32;
        self.set(at + counter::STATE, next);
        self.commit();
        Ok(())
    }

    pub(super) fn read_counter(&self, counter: Counter) -> Result<(u64, u64), NicError> {
        let at = self.check_counter(counter)?;
        Ok((
            self.get(at + counter::SUCCESS),
            self.get(at + counter::FAILURE),
        ))
    }

    pub(super) fn write_counter(
        &mut self,
        counter: Counter,
        success: u64,
        failure: u64,
    ) -> Result<(), NicError> {
        let at = self.check_counter(counter)?;
        self.set(at + counter::SUCCESS, success);
        self.set(at + counter::FAILURE, failure);
        self.commit();
        Ok(())
    }

    /// The state of a portal that is allocated.
    pub(super) fn check_portal(&self, portal: PortalIndex) -> Result<u64, NicError> {
        let layout = &self.shared.region.layout;
        let at = layout.portal(self.place, portal.0);
        let portals = layout.config.portals;
        if portal.0 < portals && self.get(at + portal::STATE) & portal::ALLOCATED != 0 {
            return Ok(at);
        }
        Err(NicError::BadPortal {
            rank: self.shared.rank(),
            portal: portal.0,
            portals,
        })
    }

    pub(super) fn make_portal(
        &mut self,
        options: PortalOptions,
        queue: Option<Queue>,
        wish: Option<PortalIndex>,
    ) -> Result<PortalIndex, NicError> {
        queue.map_or(Ok(()), |queue| self.check_queue(queue))?;
        let rank = self.shared.rank();
        if options.flow_control && queue.is_none() {
            return Err(NicError::Invalid {
                rank,
                what: "flow control of a portal without a queue for its events",
            });
        }
        let layout = self.shared.region.layout;
        let (place, portals) = (self.place, layout.config.portals);
        let index = match wish {
            Some(PortalIndex(portal)) if portal >= portals => {
                return Err(NicError::BadPortal {
                    rank,
                    portal,
                    portals,
                });
            }
            Some(wish) if self.check_portal(wish).is_ok() => {
                return Err(self.in_use("portal", wish.0, "already"));
            }
            Some(wish) => wish.0,
            None => {
                let free = self.free_place(portals, |n| layout.portal(place, n) + portal::STATE);
                free.ok_or_else(|| self.no_space("portal", portals.into()))?
                    .0
            }
        };
        let flow = if options.flow_control {
            portal::FLOW_CONTROL
        } else {
            0
        };
        let at = layout.portal(place, index);
        let queue = one_based(queue.map(|q| q.index)) << 32;
        self.set(at + portal::HEAD, 0);
        self.set(at + portal::TAIL, 0);
        self.set(
            at + portal::STATE,
            portal::ALLOCATED | portal::ENABLED | flow | queue,
        );
        self.close_lists();
        self.commit();
        Ok(PortalIndex(index))
    }

    pub(super) fn drop_portal(&mut self, portal: PortalIndex) -> Result<(), NicError> {
        let at = self.check_portal(portal)?;
        let entries = self.shared.region.layout.config.entries;
        if index(self.get(at + portal::HEAD), entries).is_some() {
            return Err(self.in_use("portal", portal.0, "by the entries of its list"));
        }
        for word in [portal::STATE, portal::HEAD, portal::TAIL] {
            self.set(at + word, 0);
        }
        self.close_lists();
        self.commit();
        Ok(())
    }

    pub(super) fn enable_portal(
        &mut self,
        portal: PortalIndex,
        enabled: bool,
    ) -> Result<(), NicError> {
        let at = self.check_portal(portal)?;
        let state = self.get(at + portal::STATE) & !portal::ENABLED;
        let flag = if enabled { portal::ENABLED } else { 0 };
        self.set(at + portal::STATE, state | flag);
        self.close_lists();
        self.commit();
        Ok(())
    }
}

static_assertions::const_assert!(queue::ALLOCATED == 1 && portal::ALLOCATED == 1);
static_assertions::const_assert!(entry::ALLOCATED == 1 && WORD == 8);
