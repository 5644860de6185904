//! Attaching entries and taking them away.

use super::list::Place;
use super::memory;
use super::records::{New, entry};
use super::transaction::Transaction;
use crate::portals::{Entry, EntryHandle, Matching, NicError, PortalIndex, Position};

impl Transaction<'_> {
    /// The place in the file of an entry that exists.
    pub(super) fn check_entry(&self, handle: EntryHandle) -> Result<u64, NicError> {
        let layout = &self.shared.region.layout;
        let at = layout.entry(self.place, handle.index);
        if handle.index < layout.config.entries {
            let state = self.get(at + entry::STATE);
            if state & entry::ALLOCATED != 0 && (state >> 32) as u32 == handle.generation {
                return Ok(at);
            }
        }
        Err(NicError::BadHandle {
            rank: self.shared.rank(),
            what: "entry",
            index: handle.index,
            generation: handle.generation,
        })
    }

    /// An entry beside which another is put: in the list of this portal.
    fn check_beside(&self, handle: EntryHandle, portal: PortalIndex) -> Result<u32, NicError> {
        let at = self.check_entry(handle)?;
        let linked = self.get(at + entry::STATE) & entry::LINKED != 0;
        if linked && self.get(at + entry::REPORTS) & 0xffff == u64::from(portal.0) {
            return Ok(handle.index);
        }
        Err(NicError::Invalid {
            rank: self.shared.rank(),
            what: "a position beside an entry that is not in the list of this portal",
        })
    }

    fn free_entry_place(&self) -> Result<(u32, u32), NicError> {
        let layout = &self.shared.region.layout;
        let limit = layout.config.entries;
        let mut places = 0..limit;
        let free = places.find_map(|index| {
            let at = layout.entry(self.place, index);
            let state = self.get(at + entry::STATE);
            (state & entry::ALLOCATED == 0).then_some((index, (state >> 32) as u32))
        });
        free.ok_or(NicError::NoSpace {
            rank: self.shared.rank(),
            what: "entry",
            limit: limit.into(),
        })
    }

    pub(super) fn attach(
        &mut self,
        portal: PortalIndex,
        position: Position,
        matching: &Matching,
        memory: memory::Place,
        len: u64,
        entry: &Entry,
    ) -> Result<EntryHandle, NicError> {
        self.check_portal(portal)?;
        entry
            .queue
            .map_or(Ok(()), |queue| self.check_queue(queue))?;
        if let Some(count) = entry.count {
            self.check_counter(count.counter)?;
        }
        let rank = self.shared.rank();
        let source = match matching.source {
            None => None,
            Some(peer) => Some(self.shared.source_place(peer).ok_or(NicError::BadRank {
                rank,
                peer,
                ranks: self.shared.reach.max(self.shared.ranks()),
            })?),
        };
        let place = match position {
            Position::Head => Place::Head,
            Position::Tail => Place::Tail,
            Position::Before(other) => Place::Before(self.check_beside(other, portal)?),
            Position::After(other) => Place::After(self.check_beside(other, portal)?),
        };
        let (index, generation) = self.free_entry_place()?;
        let new = New {
            index,
            generation,
            portal: portal.0,
            source,
            memory,
            len,
        };
        self.write_entry(&new, matching, entry);
        self.link(portal.0, index, place);
        self.commit();
        Ok(EntryHandle { index, generation })
    }

    pub(super) fn unlink(&mut self, handle: EntryHandle) -> Result<(), NicError> {
        self.check_entry(handle)?;
        self.must_be_idle(handle.index)?;
        // The entry may have gone when the operations of a dead rank were ended.
        let at = self.check_entry(handle)?;
        if self.get(at + entry::STATE) & entry::LINKED != 0 {
            self.cut(handle.index);
        }
        self.free_entry(handle.index);
        self.commit();
        Ok(())
    }
}
