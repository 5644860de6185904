//! A table of a limited number of places, named by index and generation.

use crate::portals::NicError;
use argonet_base::JobRank;

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Places for `T`, which are made when they are first used.
pub(super) struct Slots<T> {
    rank: JobRank,
    what: &'static str,
    limit: u32,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) fn new(rank: JobRank, what: &'static str, limit: u32) -> Self {
        Self {
            rank,
            what,
            limit,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether another one fits.
    pub(super) fn room(&self) -> Result<(), NicError> {
        if self.free.is_empty() && self.slots.len() as u64 >= u64::from(self.limit) {
            return Err(NicError::NoSpace {
                rank: self.rank,
                what: self.what,
                limit: self.limit.into(),
            });
        }
        Ok(())
    }

    /// Index and generation of the next one.
    pub(super) fn next(&self) -> (u32, u32) {
        match self.free.last() {
            Some(index) => (*index, self.slots[*index as usize].generation),
            None => (self.slots.len() as u32, 0),
        }
    }

    /// Fills the place that [`next`](Self::next) names.
    ///
    /// There must be [`room`](Self::room).
    pub(super) fn insert(&mut self, value: T) -> (u32, u32) {
        let (index, generation) = self.next();
        let value = Some(value);
        if self.free.pop().is_some() {
            self.slots[index as usize].value = value;
        } else {
            self.slots.push(Slot { generation, value });
        }
        (index, generation)
    }

    pub(super) fn gone(&self, index: u32, generation: u32) -> NicError {
        NicError::BadHandle {
            rank: self.rank,
            what: self.what,
            index,
            generation,
        }
    }

    pub(super) fn get(&self, index: u32, generation: u32) -> Result<&T, NicError> {
        self.slots
            .get(index as usize)
            .filter(|slot| slot.generation == generation)
            .and_then(|slot| slot.value.as_ref())
            .ok_or_else(|| self.gone(index, generation))
    }

    pub(super) fn get_mut(&mut self, index: u32, generation: u32) -> Result<&mut T, NicError> {
        let gone = self.gone(index, generation);
        self.slots
            .get_mut(index as usize)
            .filter(|slot| slot.generation == generation)
            .and_then(|slot| slot.value.as_mut())
            .ok_or(gone)
    }

    /// Empties a place; handles of it are void from now on.
    pub(super) fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    /// All that are filled, with index and generation.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, u32, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((index as u32, slot.generation, value))
        })
    }
}
