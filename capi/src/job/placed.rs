//! Teams in memory as the header wants them: with their tables behind.

use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use argonet_engine::{MAPPED_TABLE, mapped_entry};

use crate::job::Team;

/// A cache line: a team begins one, and its table the next.
const LINE: usize = 64;

// The header adds a constant to the handle.
const _: () = assert!(size_of::<Team>() <= MAPPED_TABLE && MAPPED_TABLE.is_multiple_of(LINE));

/// A team, followed by as many entries as it says.
///
/// Invariant: `block` was allocated with `layout`, zeroed; `team` lies in it with `mapped_len`
/// entries from `MAPPED_TABLE` on, which are only accessed as atomics here, and only read by C.
pub(crate) struct Placed {
    team: NonNull<Team>,
    block: *mut u8,
    layout: Layout,
}

// SAFETY: it owns its block, and a team may be used by any thread.
unsafe impl Send for Placed {}
// SAFETY: as for Send; the entries are atomics.
unsafe impl Sync for Placed {}

impl Placed {
    /// All entries say that there is no way yet.
    pub(crate) fn new(team: Team) -> Self {
        let entries = team.mapped_len() as usize * size_of::<AtomicIsize>();
        // A line more, to begin at one: asked for a line's alignment, the allocator would touch all
        // of the table.
        let bytes = LINE + MAPPED_TABLE + entries;
        #[allow(clippy::expect_used, reason = "2^32 entries are far below the limit")]
        let layout =
            Layout::from_size_align(bytes, align_of::<Team>()).expect("a team fits in memory");
        // SAFETY: the layout has bytes.
        let block = unsafe { alloc_zeroed(layout) };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: less than a line is added to a block that has one more than is needed.
        let place = unsafe { NonNull::new_unchecked(block.add(block.align_offset(LINE))) };
        let place = place.cast::<Team>();
        // SAFETY: aligned, and room for it, as asserted above; no other thread knows of it.
        unsafe { place.write(team) };
        Self {
            team: place,
            block,
            layout,
        }
    }

    /// Its handle in C.
    pub(crate) fn handle(&self) -> *const Team {
        self.team.as_ptr()
    }

    /// Sets the distances of the ranks' memory, for good: each is added to an address of the rank,
    /// from 0 on, or is `None` where that cannot be reached.
    ///
    /// A thread that synchronizes with the caller finds them; others find them or make a call.
    pub(crate) fn set_deltas(&self, deltas: &[Option<isize>]) {
        if argonet_trace::is_on() {
            // Every put and get comes to the library, which reports it.
            return;
        }
        for (rank, &delta) in deltas.iter().enumerate().take(self.mapped_len() as usize) {
            // SAFETY: in the block and aligned, by the invariant, and atomics alone write there.
            let entry = unsafe {
                let table = self.team.byte_add(MAPPED_TABLE).cast::<AtomicIsize>();
                table.add(rank).as_ref()
            };
            entry.store(mapped_entry(delta), Ordering::Relaxed);
        }
    }
}

impl Deref for Placed {
    type Target = Team;

    #[inline(always)]
    fn deref(&self) -> &Team {
        // SAFETY: a team lies there as long as this value lives.
        unsafe { self.team.as_ref() }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // SAFETY: written by `new`, and no thread uses it any more; allocated with this layout.
        unsafe {
            self.team.drop_in_place();
            dealloc(self.block, self.layout);
        }
    }
}
