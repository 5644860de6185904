//! Implicit operations: GASNet's NBI calls and access regions.

use core::cell::Cell;

use crate::event::Kind;
use crate::scope::{Closing, Scope};
use crate::{
    Category, CategoryMask, Event, EventError, Exhausted, HandleTable, NbiToken, ThreadCache,
};

/// An open scope of a thread.
#[derive(Clone, Copy)]
struct Open {
    index: u32,
    /// The generation, where the words of a slot have it.
    word: u64,
    used: CategoryMask,
}

/// The scopes that a thread starts implicit operations in.
///
/// Both get a slot with the first operation that is started in them, so that a thread without any,
/// and an empty region, cost nothing.
#[derive(Default)]
pub(crate) struct ThreadScopes {
    default: Cell<Option<Open>>,
    region: Cell<Option<Open>>,
    in_region: Cell<bool>,
}

impl ThreadScopes {
    /// The scope that operations count for now.
    #[inline]
    fn current(&self) -> &Cell<Option<Open>> {
        if self.in_region.get() {
            &self.region
        } else {
            &self.default
        }
    }
}

/// The implicit operations of the calling thread.
///
/// An operation counts for the thread's default scope, or for its access region between
/// [`NbiScope::begin_region`] and [`NbiScope::end_region`]. It is completed by any thread through
/// [`HandleTable::complete_nbi`] with the token that [`NbiScope::initiate`] gave. Operations that
/// are complete when they are started need not be counted.
#[derive(Clone, Copy)]
pub struct NbiScope<'a> {
    table: &'a HandleTable,
    cache: &'a ThreadCache,
}

impl HandleTable {
    /// The implicit operations of the thread that `cache` belongs to.
    #[inline]
    #[must_use]
    pub fn nbi<'a>(&'a self, cache: &'a ThreadCache) -> NbiScope<'a> {
        self.check(cache);
        NbiScope { table: self, cache }
    }

    /// Closes the scopes of a thread that ends.
    pub(crate) fn abandon(&self, cache: &ThreadCache) {
        let implicit = &cache.implicit;
        implicit.in_region.set(false);
        let scopes = [implicit.default.take(), implicit.region.take()];
        for open in scopes.into_iter().flatten() {
            self.close(cache, open, Closing::Orphan);
        }
    }

    /// Closes a scope and frees it if all is complete; returns whether it was.
    fn close(&self, cache: &ThreadCache, open: Open, closing: Closing) -> bool {
        let slot = self.scope(open.index);
        let done = slot.close(open.used, closing);
        if done {
            self.scopes.push(&cache.scopes, open.index, slot);
        }
        done
    }

    #[inline]
    fn scope(&self, index: u32) -> &Scope {
        self.scopes.get(index).expect("an open scope has a slot")
    }

    /// Gives an open scope a slot.
    #[cold]
    fn open(&self, cache: &ThreadCache) -> Result<Open, Exhausted> {
        let (index, slot) = self.scopes.pop(&cache.scopes)?;
        Ok(Open {
            index,
            word: slot.begin(),
            used: CategoryMask::NONE,
        })
    }
}

impl NbiScope<'_> {
    /// The most operations of one category that can be outstanding in one scope.
    pub const MAX_OUTSTANDING: u32 = Scope::MAX_OUTSTANDING;

    /// Counts `count` operations, or fragments of one, as started, before they are.
    ///
    /// The token names them when they complete, however many of them at a time.
    ///
    /// A put whose local completion is waited for on its own counts twice, for [`Category::Put`]
    /// and [`Category::Lc`]. Operations that could not be started are completed by the caller.
    ///
    /// Fails if no scope is free, or if [`NbiScope::MAX_OUTSTANDING`] would be exceeded.
    #[inline]
    pub fn initiate(&self, category: Category, count: u32) -> Result<NbiToken, EventError> {
        let cell = self.cache.implicit.current();
        let mut open = match cell.get() {
            Some(open) => open,
            None => self.table.open(self.cache)?,
        };
        open.used = open.used | category.mask();
        cell.set(Some(open));
        self.table.scope(open.index).initiate(category, count)?;
        Ok(NbiToken::new(open.word, category, open.index))
    }

    /// Whether all implicit operations of these categories that this thread started, those in
    /// access regions excepted, are complete.
    ///
    /// Everything done before their completion is then visible.
    ///
    /// Fails inside an access region.
    #[inline]
    pub fn test(&self, mask: CategoryMask) -> Result<bool, EventError> {
        if self.in_region() {
            return Err(EventError::RegionOpen);
        }
        Ok(self.test_outside(mask))
    }

    /// The same inside of an access region, too, whose operations do not count.
    #[must_use]
    pub fn test_outside(&self, mask: CategoryMask) -> bool {
        let open = self.cache.implicit.default.get();
        open.is_none_or(|open| self.table.scope(open.index).is_drained(mask))
    }

    /// Whether all puts are locally complete that count for the access region, or outside of one
    /// for the thread's implicit operations.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let open = self.cache.implicit.current().get();
        open.is_none_or(|open| self.table.scope(open.index).is_drained(Category::Lc.mask()))
    }

    /// Begins an access region: implicit operations count for it until it ends.
    ///
    /// Fails inside an access region, as they do not nest.
    pub fn begin_region(&self) -> Result<(), EventError> {
        if self.cache.implicit.in_region.replace(true) {
            return Err(EventError::RegionOpen);
        }
        Ok(())
    }

    /// Ends the access region.
    ///
    /// The event is complete when all operations started in it are; [`Event::DONE`] if they are so
    /// already. Its leaves are the categories.
    ///
    /// Fails if the thread has begun no region.
    pub fn end_region(&self) -> Result<Event, EventError> {
        let implicit = &self.cache.implicit;
        if !implicit.in_region.replace(false) {
            return Err(EventError::NoRegion);
        }
        match implicit.region.take() {
            Some(open) if !self.table.close(self.cache, open, Closing::Event) => {
                Ok(Event::new(open.word, Kind::Region, open.index))
            }
            _ => Ok(Event::DONE),
        }
    }

    /// Whether the thread is between the begin and the end of an access region.
    #[must_use]
    pub fn in_region(&self) -> bool {
        self.cache.implicit.in_region.get()
    }
}
