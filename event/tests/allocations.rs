//! Counts the thread's allocations: none in steady state, little before first use.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use argonet_event::{
    Category, CategoryMask, Completion, Completions, Event, HandleTable, ThreadCache,
};

struct Counting;

thread_local! {
    /// Calls and bytes of this thread: the test harness allocates on its own.
    static COUNTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: both functions hand their arguments on to the system's allocator unchanged, so its
// contract is the caller's and its guarantees are ours.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (calls, bytes) = COUNTED.get();
        COUNTED.set((calls + 1, bytes + layout.size()));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted(run: impl FnOnce()) -> (usize, usize) {
    let before = COUNTED.get();
    run();
    let after = COUNTED.get();
    (after.0 - before.0, after.1 - before.1)
}

/// Explicit operations in a window, then a region and implicit operations.
fn traffic(table: &HandleTable, cache: &ThreadCache, events: &mut [Event]) {
    for event in events.iter_mut() {
        *event = table.alloc(cache, Completions::BOTH).unwrap();
    }
    for event in events.iter() {
        table.complete(*event, Completion::Both, 1).unwrap();
    }
    assert!(table.test_all(cache, events).unwrap());
    let nbi = table.nbi(cache);
    nbi.begin_region().unwrap();
    let token = nbi.initiate(Category::Put, 1).unwrap();
    let region = nbi.end_region().unwrap();
    table.complete_nbi(token, 1).unwrap();
    assert!(table.test(cache, region).unwrap());
    let token = nbi.initiate(Category::Get, 1).unwrap();
    table.complete_nbi(token, 1).unwrap();
    assert!(nbi.test(CategoryMask::ALL).unwrap());
}

#[test]
fn steady_state_allocates_nothing() {
    let mut idle = None;
    let (_, bytes) = counted(|| {
        let table = HandleTable::new(HandleTable::MAX_OPERATIONS);
        idle = Some((table.thread_cache(), table));
    });
    let (cache, table) = idle.unwrap();
    let size = bytes + size_of::<HandleTable>() + size_of::<ThreadCache>();
    assert!(size < 1024, "an idle table takes {size} bytes");

    let mut events = vec![Event::DONE; 1000];
    let (_, first) = counted(|| traffic(&table, &cache, &mut events[..1]));
    assert!(first < 8192, "the first operations take {first} bytes");
    traffic(&table, &cache, &mut events);
    let (calls, _) = counted(|| {
        for _ in 0..100 {
            traffic(&table, &cache, &mut events);
        }
    });
    assert_eq!(calls, 0);
}
