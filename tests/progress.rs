//! A thread that serves other ranks while the program computes.

use argonet::{AtomicOp, MAX_MEDIUM, Par, Rank, Result, SharedArray, World};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

static CALLS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);
static ENDS: AtomicU64 = AtomicU64::new(0);

argonet::rpc! {
    fn add(number: u64) -> u64 { CALLS.fetch_add(number, Ordering::Relaxed) + number }

    fn end() { ENDS.fetch_add(1, Ordering::Relaxed); }

    /// Runs until another thread of its rank says so.
    fn hold(_ctx) {
        HELD.fetch_add(1, Ordering::Relaxed);
        while HELD.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
    }

    fn length(text: String) -> usize { text.len() }

    /// Calls the next rank, up to a depth.
    fn chain(ctx, depth: u32) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            let next = ctx.rank_offset(1);
            ctx.rpc_one_way(next, &chain, (depth - 1,)).unwrap();
        }
    }
}

/// Computes, without a call of the library, until another rank has said so often that it may end.
fn compute(ends: u64) {
    while ENDS.load(Ordering::Relaxed) < ends {
        std::thread::yield_now();
    }
}

#[argonet::test(
    ranks = [2, 3],
    conduit = ["smp", "tcp", "usnic", "portals", "gni", "ofi"],
    neighborhood_size = 1
)]
fn a_rank_that_computes_answers(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    let v = SharedArray::<u64>::alloc(world, 4000)?;
    world.barrier()?;
    for round in 0..5 {
        if world.rank() != Rank(0) {
            compute(round + 1);
            continue;
        }
        for rank in world.ranks().skip(1) {
            // Each of these needs a poll of the target on some conduit.
            let sum = world.rpc(rank, &add, (7,))?.wait()?;
            assert_eq!(sum, 7 * (round + 1));
            let text = "x".repeat(3 * MAX_MEDIUM);
            assert_eq!(world.rpc(rank, &length, (text,))?.wait()?, 3 * MAX_MEDIUM);
            world.put_from(v.on(rank).part(1..), &vec![round; 3999])?;
            let mut values = vec![0; 3999];
            world.get_into(v.on(rank).part(1..), &mut values)?;
            assert!(values.iter().all(|value| *value == round));
            world.atomic(v.ptr(rank, 0), AtomicOp::add(1))?;
            assert_eq!(world.atomic_load(v.ptr(rank, 0))?, round + 1);
            world.rpc_one_way(rank, &end, ())?;
        }
    }
    Ok(())
}

#[argonet::test(ranks = 3, conduit = ["smp", "tcp", "usnic"], neighborhood_size = 2)]
fn threads_of_the_program_communicate_beside_it(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    // A second call does nothing.
    world.start_progress_thread()?;
    let v = SharedArray::<u64>::alloc(world, 3)?;
    world.barrier()?;
    let (shared, counts) = (&*world, &v);
    std::thread::scope(|threads| {
        let all = [(); 3].map(|()| {
            threads.spawn(move || -> Result<()> {
                for number in 0..300 {
                    let rank = shared.rank_offset(number);
                    shared.rpc(rank, &add, (1,))?.wait()?;
                    shared.fetch_add(counts.ptr(rank, 1), 1)?;
                }
                Ok(())
            })
        });
        all.into_iter()
            .try_for_each(|thread| thread.join().unwrap())
    })?;
    world.drain()?;
    // Each of nine threads did as often to each rank.
    assert_eq!(CALLS.swap(0, Ordering::Relaxed), 900);
    assert_eq!(v.read(world, 1), 900);
    Ok(())
}

#[argonet::test(ranks = 3, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn functions_that_communicate_run_on_it(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    world.barrier()?;
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &chain, (1499,))?;
        // No call of any rank polls while the chain goes around.
        while CALLS.load(Ordering::Relaxed) < 500 {
            std::thread::yield_now();
        }
    }
    world.drain()?;
    assert_eq!(CALLS.swap(0, Ordering::Relaxed), 500);
    // A quiet phase has slices, and nothing runs in it.
    let mut v = SharedArray::<u64>::alloc(world, 100)?;
    for round in 0..100 {
        world.rpc_one_way(world.rank_offset(1), &add, (1,))?;
        let before = world.quiet(|q| {
            v.local_mut(q).fill(round);
            CALLS.load(Ordering::Relaxed)
        })?;
        assert_eq!(before, round + 1);
    }
    Ok(())
}

/// Wakes the thread of an executor that knows nothing of the library.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future each time that it is woken; its result, and how often.
fn run_parked<F: Future>(future: F) -> (F::Output, u64) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, polls);
        }
        std::thread::park();
    }
}

#[argonet::test(ranks = 2, conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn tasks_look_by_themselves_while_it_runs_a_function(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    let v = SharedArray::<u64>::alloc(world, 1)?;
    v.write(world, 0, 3);
    world.barrier()?;
    if world.rank() == Rank(0) {
        while world.get(v.on(Rank(1)))?.wait()?[0] == 3 {}
        world.rpc_one_way(Rank(1), &hold, ())?;
    } else {
        // From here on this thread makes no call that polls, so the other one runs the function.
        v.write(world, 0, 4);
        while HELD.load(Ordering::Relaxed) < 1 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let get = world.get(v.on(Rank(0)))?;
            assert_eq!(*run_parked(get).0?, [3]);
            assert_eq!(run_parked(world.rpc(Rank(0), &add, (0,))?).0?, 0);
        }
        HELD.fetch_add(1, Ordering::Relaxed);
    }
    world.drain()
}

#[argonet::test(
    ranks = 2,
    conduit = ["smp", "tcp", "usnic", "portals", "gni", "ofi"],
    neighborhood_size = 1
)]
fn executors_poll_what_it_has_woken(world: &mut World<Par>) -> Result<()> {
    const ROUNDS: u64 = 100;
    world.start_progress_thread()?;
    let v = SharedArray::<u64>::alloc(world, 20_000)?;
    world.barrier()?;
    if world.rank() == Rank(1) {
        compute(1);
        return Ok(());
    }
    let there = v.on(Rank(1));
    let (mut polls, mut operations) = (0, 0);
    for round in 0..ROUNDS {
        let (sum, times) = run_parked(world.rpc(Rank(1), &add, (1,))?);
        assert_eq!(sum?, round + 1);
        polls += times;
        let (values, times) = run_parked(world.get(there)?);
        assert_eq!(values?.len(), 20_000);
        polls += times;
        let (buffer, times) = run_parked(world.put(there, vec![round; 20_000].into())?);
        assert_eq!(buffer?[0], round);
        polls += times;
        operations += 3;
        // Several at once, of which any may be complete first.
        let (all, _) = run_parked(async {
            let calls = [1, 2, 3].map(|_| world.rpc(Rank(1), &add, (0,)));
            for call in calls {
                call?.await?;
            }
            Ok::<_, argonet::Error>(())
        });
        all?;
    }
    assert!(
        polls <= 3 * operations,
        "{polls} polls of {operations} operations"
    );
    world.rpc_one_way(Rank(1), &end, ())
}

#[argonet::test(ranks = 2, conduit = ["smp", "tcp"], neighborhood_size = 1)]
#[should_panic(expected = "it has finalized, but rank 1 waits for a condition of the program")]
fn a_job_that_cannot_end_is_found_beside_it(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    if world.rank() == Rank(0) {
        return Ok(());
    }
    world.wait_until(|| false)
}

/// A function that communicates keeps the thread, whose tasks go on, and may wait for one of them.
#[argonet::test(ranks = 2, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn tasks_go_on_while_a_function_keeps_it(world: &mut World<Par>) -> Result<()> {
    argonet::rpc! {
        fn keep(ctx) -> bool {
            // The program's thread may have taken it in a barrier, and could not go on then.
            let is_kept = std::thread::current().name() == Some("argonet-progress");
            CALLS.store(1, Ordering::Relaxed);
            if is_kept {
                ctx.wait_until(|| ENDS.load(Ordering::Relaxed) == 1).unwrap();
            }
            is_kept
        }
    }
    world.start_progress_thread()?;
    world.barrier()?;
    let mut kept = 0;
    for _ in 0..20 {
        if world.rank() == Rank(0) {
            kept += u32::from(world.rpc(Rank(1), &keep, ())?.wait()?);
        } else {
            while CALLS.swap(0, Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            let (sum, _) = run_parked(world.rpc(Rank(0), &add, (0,))?);
            sum?;
            ENDS.store(1, Ordering::Relaxed);
        }
        world.barrier()?;
        ENDS.store(0, Ordering::Relaxed);
        world.barrier()?;
    }
    assert!(
        kept > 0 || world.rank() != Rank(0),
        "it ran on the program's thread"
    );
    Ok(())
}

/// Wakes nothing.
struct Fails;

impl Wake for Fails {
    fn wake(self: Arc<Self>) {
        panic!("a waker that fails");
    }
}

#[argonet::test(ranks = 2)]
#[should_panic(expected = "a panic on its progress thread")]
fn a_waker_that_panics_ends_the_job(world: &mut World<Par>) -> Result<()> {
    world.start_progress_thread()?;
    world.barrier()?;
    if world.rank() == Rank(0) {
        let waker = Waker::from(Arc::new(Fails));
        // Some may be complete at once.
        loop {
            let call = pin!(world.rpc(Rank(1), &add, (1,))?);
            if call.poll(&mut Context::from_waker(&waker)).is_pending() {
                break;
            }
        }
    }
    compute(1);
    Ok(())
}

#[argonet::test(ranks = 2)]
#[should_panic(expected = "a handler that fails")]
fn a_panic_on_it_ends_the_job(world: &mut World<Par>) -> Result<()> {
    argonet::rpc! { fn fail() { panic!("a handler that fails"); } }
    world.start_progress_thread()?;
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &fail, ())?;
        return world.barrier();
    }
    compute(1);
    Ok(())
}
