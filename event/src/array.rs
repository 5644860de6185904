//! Tests of several events at once.
//!
//! Roots and leaves may stand in one array in any order, and reaping a root ends its leaves. The
//! leaves are therefore tested first, and those that were not complete a second time if a root was
//! reaped: one whose operation has ended meanwhile is complete.

use crate::{Event, EventError, HandleTable, ThreadCache};

/// Findings of one pass over an array.
struct Found {
    /// Whether an event was complete and was replaced by [`Event::DONE`].
    reaped: bool,
    /// Whether an event is left that is not complete.
    pending: bool,
}

impl HandleTable {
    /// Tests every event; those that are complete are reaped and replaced by [`Event::DONE`].
    ///
    /// Returns whether at least one was complete, or all were [`Event::DONE`] already (an empty
    /// array included).
    ///
    /// On an error, events that were reaped before it have been replaced, and the rest is as it
    /// was.
    pub fn test_some(&self, cache: &ThreadCache, events: &mut [Event]) -> Result<bool, EventError> {
        let found = self.test_each(cache, events)?;
        Ok(found.reaped || !found.pending)
    }

    /// As [`HandleTable::test_some`], but returns whether all events are complete.
    pub fn test_all(&self, cache: &ThreadCache, events: &mut [Event]) -> Result<bool, EventError> {
        let found = self.test_each(cache, events)?;
        Ok(!found.pending)
    }

    fn test_each(&self, cache: &ThreadCache, events: &mut [Event]) -> Result<Found, EventError> {
        self.check(cache);
        let leaves = sweep(events, Event::is_leaf, |leaf| self.test_leaf(leaf))?;
        let roots = sweep(
            events,
            |event| !event.is_leaf(),
            |root| self.test(cache, root),
        )?;
        let mut pending = leaves.pending || roots.pending;
        if leaves.pending && roots.reaped {
            // The leaves were alive in the first sweep: one that is stale now has ended with its
            // root in the second.
            let again = sweep(events, Event::is_leaf, |leaf| match self.test_leaf(leaf) {
                Err(EventError::Stale(_)) => Ok(true),
                other => other,
            })?;
            pending = again.pending || roots.pending;
        }
        Ok(Found {
            reaped: leaves.reaped || roots.reaped,
            pending,
        })
    }
}

/// Tests the events that `is_meant` picks and replaces the complete ones.
fn sweep(
    events: &mut [Event],
    is_meant: impl Fn(Event) -> bool,
    test: impl Fn(Event) -> Result<bool, EventError>,
) -> Result<Found, EventError> {
    let mut found = Found {
        reaped: false,
        pending: false,
    };
    for event in events {
        if event.is_done() || !is_meant(*event) {
            continue;
        }
        if test(*event)? {
            *event = Event::DONE;
            found.reaped = true;
        } else {
            found.pending = true;
        }
    }
    Ok(found)
}
