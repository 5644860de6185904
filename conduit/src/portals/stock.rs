//! Receive buffers at the interface, in the chain that says which of them are there.

use super::roles::Role;
use argonet_am::credit::Space;
use argonet_am::recycling::{Chain, Handled, Place};
use argonet_nic::portals::{
    Entry, EntryHandle, Event, Events, Managed, Matching, NicError, PortalIndex,
    Portals as Interface, Position, Queue,
};
use core::ptr::NonNull;

/// Matches whatever is sent to its portal.
pub(super) const ANY: Matching = Matching {
    bits: 0,
    ignore: u64::MAX,
    source: None,
};

/// Tells of operations when they are complete.
pub(super) const AT_END: Events = Events {
    start: false,
    end: true,
};

/// Locally managed buffers of one portal, and the catch-basin behind them if there is one.
///
/// The chain follows what the interface does, event by event, so events are taken under the lock that the stock is behind. A buffer comes back
/// when the chain says that all in it was handled *and* the interface has said that it has left the list.
// seed P8
pub(super) struct Stock {
    role: Role,
    portal: PortalIndex,
    queue: Queue,
    start: NonNull<u8>,
    buffer_bytes: u64,
    chunk_bytes: u64,
    chain: Chain,
    /// By buffer.
    left: Vec<Left>,
    basin: Option<Basin>,
}

/// What is known of a buffer that is filled no more.
#[derive(Clone, Copy, Default)]
struct Left {
    unlinked: bool,
    handled: bool,
}

struct Basin {
    entry: EntryHandle,
    /// Those from before that could not be taken out yet.
    old: Vec<EntryHandle>,
    inserts: bool,
}

// SAFETY: the pointer is to the rank's buffers, which belong to the process and are accessed by atomics and `bulk` only.
unsafe impl Send for Stock {}

impl Stock {
    /// Attaches all buffers of a space, which begin at `start`.
    ///
    /// # Safety
    /// The space's bytes from `start` on are this rank's buffers, used for nothing else as long as the interface lives.
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
            chain: Chain::new(space),
            left: vec![Left::default(); space.buffers as usize],
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
        // SAFETY: the buffers stay as long as the interface (`new`), and are accessed by atomics and `bulk` only.
        let attached =
            unsafe { nic.attach(self.portal, position, ANY, memory, self.buffer_bytes, entry) };
        attached.map(drop)
    }

    fn attach_basin(&self, nic: &impl Interface) -> Result<EntryHandle, NicError> {
        let entry = Entry {
            gets: false,
            // No byte fits, so that what arrives is cut down to nothing.
            truncate: true,
            events: AT_END,
            queue: Some(self.queue),
            user: Role::CatchBasin.word(0),
            ..Entry::OPEN
        };
        // SAFETY: as in `attach`; no byte is accessed.
        unsafe { nic.attach(self.portal, Position::Tail, ANY, self.start, 0, entry) }
    }

    /// A message has arrived in a buffer. `None`: the event is not where the interface must have put it.
    pub(super) fn arrived(&mut self, buffer: u32, event: &Event) -> Option<Place> {
        let len = u32::try_from(event.moved_bytes).ok()?;
        if u64::from(len) > self.chunk_bytes {
            return None;
        }
        let (place, _) = self.chain.place(len).ok()?;
        let same = place.buffer == buffer && u64::from(place.offset) == event.offset_bytes;
        same.then_some(place)
    }

    /// Where a message lies.
    pub(super) fn memory(&self, place: Place) -> NonNull<u8> {
        // SAFETY: the chain gives places inside of its buffers.
        unsafe { self.buffer(place.buffer).add(place.offset as usize) }
    }

    /// A buffer has left the list.
    pub(super) fn unlinked(&mut self, nic: &impl Interface, buffer: u32) -> Result<(), NicError> {
        if let Some(left) = self.left.get_mut(buffer as usize) {
            left.unlinked = true;
        }
        self.relink(nic)
    }

    /// A message was handled.
    pub(super) fn handled(&mut self, nic: &impl Interface, place: Place) -> Result<(), NicError> {
        match self.chain.handled(place) {
            Handled::Kept => Ok(()),
            Handled::Relinked(buffer) => {
                if let Some(left) = self.left.get_mut(buffer as usize) {
                    left.handled = true;
                }
                self.relink(nic)
            }
        }
    }

    /// Gives the interface all buffers that are empty, also one that it refused before.
    fn relink(&mut self, nic: &impl Interface) -> Result<(), NicError> {
        for buffer in 0..self.left.len() {
            if matches!(self.left.get(buffer), Some(left) if left.unlinked && left.handled) {
                self.relink_one(nic, buffer as u32)?;
                self.left[buffer] = Left::default();
            }
        }
        Ok(())
    }

    fn relink_one(&mut self, nic: &impl Interface, buffer: u32) -> Result<(), NicError> {
        let Some(basin) = &self.basin else {
            return self.attach(nic, Position::Tail, buffer);
        };
        if basin.inserts {
            return self.attach(nic, Position::Before(basin.entry), buffer);
        }
        // A new basin behind the buffer; until the old one is gone it catches what the buffer could hold, which is sent again.
        self.attach(nic, Position::Tail, buffer)?;
        let next = self.attach_basin(nic)?;
        if let Some(basin) = &mut self.basin {
            basin.old.push(core::mem::replace(&mut basin.entry, next));
            basin
                .old
                .retain(|old| matches!(nic.unlink(*old), Err(NicError::InUse { .. })));
        }
        Ok(())
    }
}
