//! Counts allocations on the fast paths of a running job: there are none once it is warm.
//!
//! One test in a binary of its own, because the counter is the program's allocator.
#![allow(unsafe_code)]

use argonet::{Reduction, SharedArray, World};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: both functions hand their arguments on to the system's allocator unchanged, so its
// contract is the caller's and its guarantees are ours.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
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

static ANSWERS: AtomicU64 = AtomicU64::new(0);

argonet::am! {
    fn answer(_ctx, _n: u64) { ANSWERS.fetch_add(1, Ordering::Relaxed); }
    fn ask(ctx, n: u64) { ctx.reply(&answer, n).unwrap(); }
    fn ask_echo(ctx, n: [u32; 16]) { ctx.echo(&answer, u64::from(n[0])).unwrap(); }
}

/// Every kind of operation once; all messages go to this rank.
fn traffic(world: &World, array: &SharedArray<u64>, buffer: &mut [u64]) -> argonet::Result<()> {
    let me = world.rank();
    let wanted = ANSWERS.load(Ordering::Relaxed) + 4;
    world.send(me, &ask, 1)?;
    world.send(me, &answer, 2)?;
    world.send_medium(me, &ask_echo, [3; 16], buffer)?;
    world.send_long(array.on(me).part(..buffer.len()), &ask, 4, buffer)?;
    world.wait_until(|| ANSWERS.load(Ordering::Relaxed) == wanted)?;
    world.put_value(array.ptr(me, 1), 5)?;
    world.put_from(array.on(me).part(..buffer.len()), buffer)?;
    world.get_into(array.on(me).part(..buffer.len()), buffer)?;
    world.fetch_add(array.ptr(me, 0), 1)?;
    world.scope(|s| s.put(array.on(me).part(..1), &[7]))?;
    world.barrier()?;
    world.broadcast(me, buffer)?;
    world.reduce_all(Reduction::Sum, buffer)
}

#[test]
fn a_warm_job_allocates_nothing() {
    let world = World::init().unwrap();
    let array = SharedArray::<u64>::alloc(&world, 1024).unwrap();
    let mut buffer = vec![1; 1024];
    traffic(&world, &array, &mut buffer).unwrap();
    let before = CALLS.get();
    for _ in 0..1000 {
        traffic(&world, &array, &mut buffer).unwrap();
    }
    assert_eq!(CALLS.get() - before, 0);
}
