//! Receive buffers at the interface, filled one after the other and given back as wholes.

use super::roles::Role;
use argonet_am::credit::Space;
use argonet_am::recycling::Place;
use argonet_nic::portals::{
    Entry, EntryHandle, Event, Events, Managed, Matching, NicError, PortalIndex,
    Portals as Interface, Position, Queue,
};
use core::ptr::NonNull;

/// Matches every message to its portal.
pub(super) const ANY: Matching = Matching {
    bits: 0,
    ignore: u64::MAX,
    source: None,
};

/// An event at the end of an operation, none at its start.
pub(super) const AT_END: Events = Events {
    start: false,
    end: true,
};

/// Locally managed buffers of one portal, and the catch-basin behind them if there is one.
///
/// The interface says where each message lies and when a buffer has left the list, which it does
/// behind the last message in it. The events of messages of several ranks may come in another order
/// than the messages lie in, so each buffer is counted for itself: it comes back when it has left
/// and all in it was handled. Events are taken under the lock that the stock is behind, so a
/// message is counted before its buffer's end is.
// spec P8
pub(super) struct Stock {
    role: Role,
    portal: PortalIndex,
    queue: Queue,
    start: NonNull<u8>,
    buffer_bytes: u64,
    chunk_bytes: u64,
    /// By buffer.
    fills: Vec<Fill>,
    basin: Option<Basin>,
}

/// The state of a buffer.
#[derive(Clone, Copy, Default)]
struct Fill {
    /// Messages in it that were not handled.
    waiting: u32,
    /// Whether it is filled no more.
    unlinked: bool,
}

struct Basin {
    entry: EntryHandle,
    /// Those from before that could not be taken out yet.
    old: Vec<EntryHandle>,
    /// Whether the interface has places before others.
    inserts: bool,
    /// Whether all buffers stand before it.
    is_last: bool,
}

// SAFETY: the pointer is to the rank's buffers, which belong to the process and are accessed by
// atomics and `bulk` only.
unsafe impl Send for Stock {}

impl Stock {
    /// Attaches all buffers of a space, which begin at `start`.
    ///
    /// # Safety
    /// The space's bytes from `start` on are this rank's buffers, used for nothing else as long as
    /// the interface lives.
    pub(super) unsafe fn new(
        nic: &impl Interface,
        (role, portal, queue): (Role, PortalIndex, Queue),
        start: NonNull<u8>,
        space: &Space,
        has_basin: bool,
    ) -> Result<Self, NicError> {
        let chunk_bytes = u64::from(space.costs.chunk_bytes);
        let mut stock = Self {
            role,
            portal,
            queue,
            start,
            buffer_bytes: u64::from(space.chunks) * chunk_bytes,
            chunk_bytes,
            fills: vec![Fill::default(); space.buffers as usize],
            basin: None,
        };
        for buffer in 0..space.buffers {
            stock.attach(nic, Position::Tail, buffer)?;
        }
        if has_basin {
            stock.basin = Some(Basin {
                entry: stock.attach_basin(nic)?,
                old: Vec::new(),
                inserts: nic.features().insert,
                is_last: true,
            });
        }
        Ok(stock)
    }

    fn buffer(&self, number: u32) -> NonNull<u8> {
        let at = u64::from(number) * self.buffer_bytes;
        // SAFETY: the number is of a buffer of the space, whose memory `new` was promised.
        unsafe { self.start.add(at as usize) }
    }

    fn attach(
        &self,
        nic: &impl Interface,
        position: Position,
        buffer: u32,
    ) -> Result<(), NicError> {
        let entry = Entry {
            gets: false,
            managed: Managed::Local {
                min_free_bytes: self.chunk_bytes,
            },
            auto_unlink: true,
            events: AT_END,
            queue: Some(self.queue),
            user: self.role.word(buffer),
            ..Entry::OPEN
        };
        let memory = self.buffer(buffer);
        // SAFETY: the buffers stay as long as the interface (`new`), and are accessed by atomics
        // and `bulk` only.
        let attached =
            unsafe { nic.attach(self.portal, position, ANY, memory, self.buffer_bytes, entry) };
        attached.map(drop)
    }

    fn attach_basin(&self, nic: &impl Interface) -> Result<EntryHandle, NicError> {
        let entry = Entry {
            gets: false,
            // No byte fits, so that a message is cut down to nothing.
            truncate: true,
            events: AT_END,
            queue: Some(self.queue),
            user: Role::CatchBasin.word(0),
            ..Entry::OPEN
        };
        // SAFETY: as in `attach`; no byte is accessed.
        unsafe { nic.attach(self.portal, Position::Tail, ANY, self.start, 0, entry) }
    }

    /// A message has arrived in a buffer.
    ///
    /// `None`: it is not where the interface may have put it.
    pub(super) fn arrived(&mut self, buffer: u32, event: &Event) -> Option<Place> {
        let end = event.offset_bytes.checked_add(event.moved_bytes)?;
        let fill = self.fills.get_mut(buffer as usize)?;
        if fill.unlinked || event.moved_bytes > self.chunk_bytes || end > self.buffer_bytes {
            return None;
        }
        fill.waiting += 1;
        Some(Place {
            buffer,
            offset: u32::try_from(event.offset_bytes).ok()?,
        })
    }

    /// Messages that were not handled, and buffers that the interface has not got.
    pub(super) fn in_use(&self) -> u32 {
        let fills = self.fills.iter();
        fills
            .map(|fill| fill.waiting + u32::from(fill.unlinked))
            .sum()
    }

    /// Where a message lies.
    pub(super) fn memory(&self, place: Place) -> NonNull<u8> {
        // SAFETY: `arrived` gives places inside of buffers.
        unsafe { self.buffer(place.buffer).add(place.offset as usize) }
    }

    /// A buffer has left the list.
    pub(super) fn unlinked(&mut self, nic: &impl Interface, buffer: u32) -> Result<(), NicError> {
        if let Some(fill) = self.fills.get_mut(buffer as usize) {
            fill.unlinked = true;
        }
        self.relink(nic)
    }

    /// A message was handled.
    pub(super) fn handled(&mut self, nic: &impl Interface, place: Place) -> Result<(), NicError> {
        match self.fills.get_mut(place.buffer as usize) {
            Some(fill) if fill.waiting > 0 => {
                fill.waiting -= 1;
                match fill.waiting == 0 && fill.unlinked {
                    true => self.relink(nic),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Gives the interface all buffers that are empty, also one that it refused before.
    pub(super) fn relink(&mut self, nic: &impl Interface) -> Result<(), NicError> {
        for buffer in 0..self.fills.len() {
            if matches!(self.fills.get(buffer), Some(fill) if fill.unlinked && fill.waiting == 0) {
                let place = match &mut self.basin {
                    Some(basin) if basin.inserts => Position::Before(basin.entry),
                    Some(basin) => {
                        basin.is_last = false;
                        Position::Tail
                    }
                    None => Position::Tail,
                };
                self.attach(nic, place, buffer as u32)?;
                self.fills[buffer] = Fill::default();
            }
        }
        self.follow_basin(nic)
    }

    /// A new basin behind buffers that were put behind it; until the old ones are gone they catch
    /// messages that those could hold, which are sent again.
    pub(super) fn follow_basin(&mut self, nic: &impl Interface) -> Result<(), NicError> {
        let next = match &self.basin {
            Some(basin) if !basin.is_last => self.attach_basin(nic).map(Some),
            Some(_) => Ok(None),
            None => return Ok(()),
        };
        if let Some(basin) = &mut self.basin {
            if let Ok(Some(next)) = next {
                basin.is_last = true;
                basin.old.push(core::mem::replace(&mut basin.entry, next));
            }
            basin
                .old
                .retain(|old| matches!(nic.unlink(*old), Err(NicError::InUse { .. })));
        }
        next.map(drop)
    }
}
