//! All lanes of a process.
//!
//! They stay: a signal handler goes through them at any time.
#![allow(unsafe_code)]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::lane::Lane;

/// A list that only grows.
pub(crate) struct Lanes {
    /// The lane that was made last, which leads to the others.
    ///
    /// Stored with Release when a lane is complete.
    last: AtomicPtr<Lane>,
}

impl Lanes {
    pub(crate) const fn new() -> Self {
        Self {
            last: AtomicPtr::new(null_mut()),
        }
    }

    /// A lane for a thread: one whose thread has ended, or a new one.
    pub(crate) fn take(&self, thread: u32) -> &'static Lane {
        let lane = self.iter().find(|lane| {
            lane.owned
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        let lane = lane.unwrap_or_else(|| self.add());
        lane.thread.store(thread, Ordering::Relaxed);
        lane
    }

    fn add(&self) -> &'static Lane {
        let lane: &'static Lane = Box::leak(Box::new(Lane::new()));
        let mut last = self.last.load(Ordering::Acquire);
        loop {
            lane.next.store(last, Ordering::Relaxed);
            let new = core::ptr::from_ref(lane).cast_mut();
            match self
                .last
                .compare_exchange_weak(last, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return lane,
                Err(found) => last = found,
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Lane> {
        let mut at = self.last.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: null, or a lane that was leaked, complete before it was stored with Release.
            let lane: &'static Lane = unsafe { at.as_ref() }?;
            at = lane.next.load(Ordering::Relaxed);
            Some(lane)
        })
    }
}
