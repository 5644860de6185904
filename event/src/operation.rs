//! The state of one explicit operation, in one word.
//!
//! ```text
//!  63                                27 26          14 13             0
//! +------------------------------------+--------------+----------------+
//! | generation (odd while it lives)    | local pending| remote pending |
//! +------------------------------------+--------------+----------------+
//! ```
//!
//! One word, so that the check of the generation and the count it guards are one atomic step: a
//! stale completion that races with the slot's next life cannot touch it.

use argonet_base::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{Linked, Links};
use crate::event::{GENERATION_SHIFT, next_generation, same_generation};
use crate::{Event, EventError};

const REMOTE_BITS: u32 = 14;
const LOCAL_BITS: u32 = GENERATION_SHIFT - REMOTE_BITS;
const REMOTE_MASK: u64 = (1 << REMOTE_BITS) - 1;
const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;
const PENDING_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

/// Which completion of an operation is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// The source is reusable.
    Local,
    /// The operation has taken effect: the data lies at its destination.
    Remote,
    /// Both at once, for transports where one acknowledgement says both.
    Both,
}

/// How many local and remote completions an operation waits for.
///
/// An operation that does not report local completion on its own has no local completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completions {
    local: u16,
    remote: u16,
}

impl Completions {
    /// The most local completions that can be pending.
    pub const MAX_LOCAL: u32 = LOCAL_MASK as u32;
    /// The most remote completions that can be pending.
    pub const MAX_REMOTE: u32 = REMOTE_MASK as u32;

    /// One remote completion.
    pub const REMOTE: Self = Self {
        local: 0,
        remote: 1,
    };
    /// One local completion, as for an active message, of which the client learns nothing else.
    pub const LOCAL: Self = Self {
        local: 1,
        remote: 0,
    };
    /// One local and one remote completion.
    pub const BOTH: Self = Self {
        local: 1,
        remote: 1,
    };

    /// So many local and remote completions.
    ///
    /// Fails if both are zero, as nothing would ever complete the operation, or if one is more than
    /// a slot can count.
    pub const fn new(local: u32, remote: u32) -> Result<Self, EventError> {
        if local == 0 && remote == 0 {
            return Err(EventError::NoCompletions);
        }
        if local > Self::MAX_LOCAL {
            return Err(part_limit(local as u64, Self::MAX_LOCAL));
        }
        if remote > Self::MAX_REMOTE {
            return Err(part_limit(remote as u64, Self::MAX_REMOTE));
        }
        Ok(Self {
            local: local as u16,
            remote: remote as u16,
        })
    }

    const fn word(self) -> u64 {
        ((self.local as u64) << REMOTE_BITS) | self.remote as u64
    }
}

const fn part_limit(count: u64, limit: u32) -> EventError {
    EventError::CompletionLimit { count, limit }
}

const fn local(state: u64) -> u64 {
    (state >> REMOTE_BITS) & LOCAL_MASK
}

const fn remote(state: u64) -> u64 {
    state & REMOTE_MASK
}

/// A slot for an explicit operation.
#[derive(Default)]
pub(crate) struct Operation {
    /// Written by the allocating thread (a store: the slot is its own until the event is out), by
    /// completing threads (compare-exchange, release) and by the thread that reaps it
    /// (compare-exchange).
    ///
    /// Read by testers with acquire, which pairs with the release of every completer: between them
    /// there are only read-modify-writes, so each continues the release sequence of the one before.
    state: AtomicU64,
    links: Links,
}

impl Linked for Operation {
    fn links(&self) -> &Links {
        &self.links
    }
}

impl Operation {
    /// Begins a life with these completions; the slot is the caller's.
    ///
    /// Returns the state, which holds the generation.
    #[inline]
    pub(crate) fn begin(&self, completions: Completions) -> u64 {
        // Relaxed: the thread that freed the slot handed it over through this thread or the arena's
        // lock, and a thread that completes the event got it from this thread by some means that
        // synchronizes.
        let state = next_generation(self.state.load(Ordering::Relaxed)) | completions.word();
        self.state.store(state, Ordering::Relaxed);
        state
    }

    /// Counts `count` completions.
    ///
    /// Returns whether they were the last.
    #[inline]
    pub(crate) fn complete(
        &self,
        event: Event,
        completion: Completion,
        count: u32,
    ) -> Result<bool, EventError> {
        let count64 = u64::from(count);
        // Acquire on success as well: a caller that learns that it was last may act on all of them.
        let now = self.update(event, Ordering::AcqRel, |state| {
            let (pending, step) = match completion {
                Completion::Local => (local(state), 1 << REMOTE_BITS),
                Completion::Remote => (remote(state), 1),
                Completion::Both => (local(state).min(remote(state)), (1 << REMOTE_BITS) + 1),
            };
            if count64 > pending {
                let pending = pending as u32;
                return Err(EventError::TooManyCompletions {
                    event,
                    count,
                    pending,
                });
            }
            Ok(state - count64 * step)
        })?;
        Ok(now & PENDING_MASK == 0)
    }

    /// Adds completions to an operation that has some pending.
    pub(crate) fn add(&self, event: Event, completions: Completions) -> Result<(), EventError> {
        // Relaxed: nothing is published; a read-modify-write keeps the release sequence whole.
        self.update(event, Ordering::Relaxed, |state| {
            if state & PENDING_MASK == 0 {
                return Err(EventError::AlreadyComplete(event));
            }
            let locals = local(state) + u64::from(completions.local);
            let remotes = remote(state) + u64::from(completions.remote);
            if locals > LOCAL_MASK {
                return Err(part_limit(locals, Completions::MAX_LOCAL));
            }
            if remotes > REMOTE_MASK {
                return Err(part_limit(remotes, Completions::MAX_REMOTE));
            }
            Ok(state + completions.word())
        })?;
        Ok(())
    }

    /// Ends the life if nothing is pending.
    ///
    /// `Ok(true)` makes the slot the caller's.
    #[inline]
    pub(crate) fn reap(&self, event: Event) -> Result<bool, EventError> {
        let state = self.state.load(Ordering::Acquire);
        if !same_generation(state, event.raw()) {
            return Err(EventError::Stale(event));
        }
        if state & PENDING_MASK != 0 {
            return Ok(false);
        }
        // Two threads may test one event by mistake: only one of them gets the slot. Relaxed: the
        // load has acquired the writes that the completers released.
        self.state
            .compare_exchange(
                state,
                next_generation(state),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .map(|_| true)
            .map_err(|_| EventError::Stale(event))
    }

    /// Ends the life even if completions are pending.
    ///
    /// The slot is then the caller's.
    pub(crate) fn cancel(&self, event: Event) -> Result<(), EventError> {
        self.update(event, Ordering::Acquire, |state| Ok(next_generation(state)))?;
        Ok(())
    }

    /// Whether no local completion is pending.
    #[inline]
    pub(crate) fn is_local_done(&self, event: Event) -> Result<bool, EventError> {
        let state = self.state.load(Ordering::Acquire);
        if same_generation(state, event.raw()) {
            Ok(local(state) == 0)
        } else {
            Err(EventError::Stale(event))
        }
    }

    /// Replaces the state by what `step` makes of it, provided the generation is the event's;
    /// returns the new one.
    #[inline]
    fn update(
        &self,
        event: Event,
        success: Ordering,
        step: impl Fn(u64) -> Result<u64, EventError>,
    ) -> Result<u64, EventError> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if !same_generation(state, event.raw()) {
                return Err(EventError::Stale(event));
            }
            let next = step(state)?;
            match self
                .state
                .compare_exchange_weak(state, next, success, Ordering::Relaxed)
            {
                Ok(_) => return Ok(next),
                Err(other) => state = other,
            }
        }
    }
}

#[cfg(not(loom))]
static_assertions::const_assert_eq!(size_of::<Operation>(), 16);
