//! The table of operations that are not yet synchronized.

use std::sync::Arc;

use crate::arena::{Arena, MAX_BATCH, Magazine};
use crate::event::{Kind, MAX_SLOTS};
use crate::nbi::ThreadScopes;
use crate::operation::{Completion, Completions, Operation};
use crate::scope::{Counted, Scope};
use crate::{Category, Event, EventError, Exhausted, NbiToken};

/// The limits of a [`HandleTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most explicit operations not yet synchronized; capped at
    /// [`HandleTable::MAX_OPERATIONS`].
    pub operations: u32,
    /// The most scopes: one for each thread that starts implicit operations, and one for each
    /// access region not yet synchronized; capped at the same number.
    pub scopes: u32,
    /// How many free handles a thread takes at once; capped at 64.
    ///
    /// It keeps up to twice as many to itself, which other threads miss when the table is nearly
    /// full. 0 keeps none.
    pub batch: u32,
}

impl Limits {
    /// Limits for so many explicit operations.
    ///
    /// The batch is at most a thousandth of that, so that what threads keep to themselves hardly
    /// counts.
    #[must_use]
    pub fn for_operations(operations: u32) -> Self {
        Self {
            operations,
            scopes: HandleTable::MAX_OPERATIONS,
            batch: (operations / 1000).min(MAX_BATCH),
        }
    }
}

/// State of one thread alone: free handles, and the scopes of its implicit operations.
///
/// It belongs to one thread at a time and to the table that made it; another table panics on it.
/// Give it back with [`HandleTable::retire`] when the thread ends: one that is only dropped takes
/// its free handles with it.
pub struct ThreadCache {
    table: Arc<()>,
    pub(crate) operations: Magazine,
    pub(crate) scopes: Magazine,
    pub(crate) implicit: ThreadScopes,
}

impl ThreadCache {
    /// The number of free operation handles that this thread keeps to itself.
    #[must_use]
    pub fn free_handles(&self) -> u32 {
        self.operations.len()
    }
}

/// All operations of one endpoint's process that are not yet synchronized.
///
/// Every method may be called by any thread at any time; those that take a [`ThreadCache`] need the
/// calling thread's own. Nothing blocks but for a short lock when a thread's cache is refilled or
/// emptied, and memory is allocated only there.
///
/// An event must reach another thread by means that synchronize (a lock, a ring, a message), as all
/// data must; else a completion there may still see the handle's previous life and be refused.
pub struct HandleTable {
    identity: Arc<()>,
    pub(crate) operations: Arena<Operation>,
    pub(crate) scopes: Arena<Scope>,
}

impl HandleTable {
    /// The most explicit operations that a table can hold, 2^24 - 2.
    pub const MAX_OPERATIONS: u32 = MAX_SLOTS;

    /// A table for up to `limit` explicit operations, otherwise as [`Limits::for_operations`] has
    /// it.
    ///
    /// It takes less than 1 KiB until an operation is started.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self::with_limits(Limits::for_operations(limit))
    }

    /// A table with these limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            identity: Arc::new(()),
            operations: Arena::new(limits.operations, limits.batch),
            // Regions are rarer than operations and their slots larger.
            scopes: Arena::new(limits.scopes, limits.batch.min(8)),
        }
    }

    /// An empty cache for a thread that is going to use the table.
    #[must_use]
    pub fn thread_cache(&self) -> ThreadCache {
        ThreadCache {
            table: Arc::clone(&self.identity),
            operations: Magazine::default(),
            scopes: Magazine::default(),
            implicit: ThreadScopes::default(),
        }
    }

    /// Takes back the cache of a thread that ends.
    ///
    /// Implicit operations of the thread that are still outstanding, those of an open access region
    /// too, have no owner from now on; their completions are absorbed.
    pub fn retire(&self, cache: ThreadCache) {
        self.check(&cache);
        self.abandon(&cache);
        self.operations.flush(&cache.operations);
        self.scopes.flush(&cache.scopes);
    }

    /// Gives this thread's free handles to the others if one of them was refused a handle, at the
    /// cost of two loads if not.
    ///
    /// To be called when a thread polls or goes to sleep; a thread that frees a handle does so
    /// anyway.
    #[inline]
    pub fn relieve(&self, cache: &ThreadCache) {
        self.check(cache);
        self.operations.relieve(&cache.operations);
        self.scopes.relieve(&cache.scopes);
    }

    /// The handles of explicit operations that are in use or free in some thread's cache.
    ///
    /// It takes the lock and is for reports.
    #[must_use]
    pub fn handles_given_out(&self) -> u32 {
        self.operations.given_out()
    }

    /// A handle for an operation that waits for these completions; the event that names it.
    ///
    /// Fails if all handles are in use; [`ExhaustionPolicy`](crate::ExhaustionPolicy) says what to
    /// do then.
    #[inline]
    pub fn alloc(&self, cache: &ThreadCache, completions: Completions) -> Result<Event, Exhausted> {
        self.check(cache);
        let (index, slot) = self.operations.pop(&cache.operations)?;
        Ok(Event::new(slot.begin(completions), Kind::Operation, index))
    }

    /// Gives back the handle of an operation that could not be started after all.
    ///
    /// Its pending completions are forgotten; any that come nevertheless are refused as stale.
    pub fn cancel(&self, cache: &ThreadCache, event: Event) -> Result<(), EventError> {
        self.check(cache);
        let (index, slot) = self.operation(event)?;
        slot.cancel(event)?;
        self.operations.push(&cache.operations, index, slot);
        Ok(())
    }

    /// Adds completions to an operation under way, such as a put of which fragments follow.
    ///
    /// The operation must have one pending that the caller knows cannot complete meanwhile; an
    /// operation with nothing pending is refused, because another thread may be reaping it.
    pub fn add_completions(
        &self,
        event: Event,
        completions: Completions,
    ) -> Result<(), EventError> {
        self.operation(event)?.1.add(event, completions)
    }

    /// Counts `count` completions of an operation; returns whether nothing is pending now.
    ///
    /// Any thread may call it. The thread's earlier writes are visible to a thread that sees the
    /// event complete.
    ///
    /// A completion that is stale, repeated or invented is refused as far as generation and count
    /// show it, and changes nothing.
    #[inline]
    pub fn complete(
        &self,
        event: Event,
        completion: Completion,
        count: u32,
    ) -> Result<bool, EventError> {
        self.operation(event)?.1.complete(event, completion, count)
    }

    /// Counts `count` implicit operations as complete; returns whether none is outstanding now in
    /// the token's scope and category.
    ///
    /// As [`HandleTable::complete`] otherwise.
    #[inline]
    pub fn complete_nbi(&self, token: NbiToken, count: u32) -> Result<bool, EventError> {
        let event = Event::from_raw(token.raw());
        let index = token.index().ok_or(EventError::Unknown(event))?;
        let category = token.category().ok_or(EventError::WrongKind(event))?;
        let slot = self.scopes.get(index).ok_or(EventError::Unknown(event))?;
        let counted = slot.complete(token, category, count)?;
        if counted == Counted::Freed {
            self.scopes.push_shared(index, slot);
        }
        Ok(counted != Counted::More)
    }

    /// Whether the event is complete.
    ///
    /// A root that is complete is reaped: its handle is free, and using the event or its leaves
    /// again is an error. A leaf can be tested again until then. [`Event::DONE`] is complete,
    /// [`Event::NO_OP`] is an error. Everything done before the completion is visible after a test
    /// that returns `true`.
    #[inline]
    pub fn test(&self, cache: &ThreadCache, event: Event) -> Result<bool, EventError> {
        self.check(cache);
        if event.is_done() {
            return Ok(true);
        }
        if event.kind() != Kind::Operation {
            return self.test_rare(cache, event);
        }
        let (index, slot) = self.operation(event)?;
        let done = slot.reap(event)?;
        if done {
            self.operations.push(&cache.operations, index, slot);
        }
        Ok(done)
    }

    /// Tests a leaf or a region.
    fn test_rare(&self, cache: &ThreadCache, event: Event) -> Result<bool, EventError> {
        if event.kind() != Kind::Region {
            return self.test_leaf(event);
        }
        let (index, slot) = self.region(event)?;
        let done = slot.reap(event)?;
        if done {
            self.scopes.push(&cache.scopes, index, slot);
        }
        Ok(done)
    }

    /// The leaf of a root for one category: [`Category::Lc`] (or [`Category::Am`] for an active
    /// message) of an operation, any category of an access region.
    ///
    /// The same call gives the same leaf. The leaf of [`Event::DONE`] is [`Event::DONE`].
    pub fn query_leaf(&self, root: Event, category: Category) -> Result<Event, EventError> {
        if root.is_done() {
            return Ok(Event::DONE);
        }
        match (root.kind(), category) {
            (Kind::Operation, Category::Lc | Category::Am) => {
                self.operation(root)?.1.is_local_done(root)?;
                Ok(root.with_kind(Kind::OperationLocal))
            }
            (Kind::Region, _) => {
                self.region(root)?.1.check_region(root)?;
                Ok(root.with_kind(Kind::Scope(category)))
            }
            (Kind::Operation, _) => Err(EventError::NoLeaf {
                event: root,
                category,
            }),
            (Kind::OperationLocal | Kind::Scope(_), _) => Err(EventError::WrongKind(root)),
        }
    }

    /// Whether a leaf is complete.
    #[inline]
    pub(crate) fn test_leaf(&self, leaf: Event) -> Result<bool, EventError> {
        let index = index(leaf)?;
        let unknown = EventError::Unknown(leaf);
        match leaf.kind() {
            Kind::OperationLocal => self
                .operations
                .get(index)
                .ok_or(unknown)?
                .is_local_done(leaf),
            Kind::Scope(category) => {
                let scope = self.scopes.get(index).ok_or(unknown)?;
                scope.is_leaf_done(leaf, category)
            }
            Kind::Operation | Kind::Region => Err(EventError::WrongKind(leaf)),
        }
    }

    /// The slot that the root of an operation names.
    #[inline]
    fn operation(&self, event: Event) -> Result<(u32, &Operation), EventError> {
        let index = index(event)?;
        if event.kind() != Kind::Operation {
            return Err(EventError::WrongKind(event));
        }
        let slot = self
            .operations
            .get(index)
            .ok_or(EventError::Unknown(event))?;
        Ok((index, slot))
    }

    /// The slot that the root of a region names.
    #[inline]
    fn region(&self, event: Event) -> Result<(u32, &Scope), EventError> {
        let index = index(event)?;
        let slot = self.scopes.get(index).ok_or(EventError::Unknown(event))?;
        Ok((index, slot))
    }

    /// Panics on the cache of another table, whose indices would be taken for this one's.
    #[inline]
    pub(crate) fn check(&self, cache: &ThreadCache) {
        assert!(
            Arc::ptr_eq(&self.identity, &cache.table),
            "a thread cache belongs to the table that made it"
        );
    }
}

/// The index that an event names; [`Event::DONE`] and [`Event::NO_OP`] name none.
#[inline]
fn index(event: Event) -> Result<u32, EventError> {
    event.index().ok_or(EventError::WrongKind(event))
}

#[cfg(not(loom))]
static_assertions::const_assert!(size_of::<HandleTable>() <= 768);
