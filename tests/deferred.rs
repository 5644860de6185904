//! Remote procedures that get a context: they communicate, and call further ones.
//!
//! Each is a job of its own. As these functions register themselves before `main`, the drains of
//! all jobs here wait for deferred calls; in `tests/jobs` only those of `deferred.rs` do.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use argonet::raw::{Injection, MessageClass, PrepareRequest};
use argonet::{
    AmError, DistObject, Error, GlobalPtr, GlobalSlice, JobRank, Par, Rank, Reduction, Result,
    RpcError, RpcStatus, SharedArray, World,
};

static ENDED: AtomicU64 = AtomicU64::new(0);
static RAN: AtomicU64 = AtomicU64::new(0);
/// Functions that this rank is in.
static DEPTH: AtomicU32 = AtomicU32::new(0);

type List = RefCell<Vec<u64>>;

argonet::rpc! {
    fn add(a: u64, b: u64) -> u64 { a + b }

    /// Reads, writes and adds at other ranks, and calls a function that runs in a handler.
    fn use_all(ctx, word: GlobalPtr<u64>, far: Rank) -> (u64, Rank) {
        let before = ctx.get_value(word).unwrap();
        ctx.put_value(word, before + 10).unwrap();
        ctx.fetch_add(word, 5).unwrap();
        let sum = ctx.rpc(far, &add, (before, 1)).unwrap().wait().unwrap();
        assert_eq!(argonet::caller(), Some(ctx.caller()));
        (sum, ctx.rank())
    }

    /// The sum of what lies in another rank's memory, longer than a message.
    fn sum_of(ctx, values: GlobalSlice<u64>) -> u64 {
        ctx.get(values).unwrap().wait().unwrap().iter().sum()
    }

    /// Calls itself at the next rank.
    fn pass_on(ctx, left: u64) {
        RAN.fetch_add(1, Ordering::Relaxed);
        if left == 0 {
            ENDED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        ctx.rpc_one_way(ctx.rank_offset(1), &pass_on, (left - 1,)).unwrap();
    }

    /// Adds to a word at the end of a chain of calls.
    fn pass_and_add(ctx, left: u64, word: GlobalPtr<u64>) {
        match left {
            0 => _ = ctx.fetch_add(word, 1).unwrap(),
            _ => {
                let next = ctx.rank_offset(1);
                ctx.rpc_one_way(next, &pass_and_add, (left - 1, word)).unwrap();
            }
        }
    }

    /// Panics at the end of a chain of calls.
    fn pass_and_fall(ctx, left: u64) {
        assert!(left > 0, "the chain has ended");
        ctx.rpc_one_way(ctx.rank_offset(1), &pass_and_fall, (left - 1,)).unwrap();
    }

    /// Answers each call with the same text, by another call.
    fn answer(ctx, text: String) {
        ctx.rpc_one_way(ctx.caller(), &arrive, (text,)).unwrap();
    }
    fn arrive(ctx, text: String) {
        assert_eq!(text.len() % 7, ctx.rank().0 as usize % 7);
        RAN.fetch_add(1, Ordering::Relaxed);
    }
    fn echo(_ctx, text: String) -> String { text }

    /// Polls and waits, while others of its kind have come.
    fn wait_inside(ctx) {
        assert_eq!(DEPTH.fetch_add(1, Ordering::Relaxed), 0, "inside of another one");
        for _ in 0..10 {
            ctx.poll().unwrap();
            let sum = ctx.rpc(ctx.rank_offset(1), &add, (2, 3)).unwrap();
            assert_eq!(sum.wait().unwrap(), 5);
        }
        DEPTH.fetch_sub(1, Ordering::Relaxed);
        RAN.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends to the lists of this rank and the next ones.
    fn append(ctx, list: &List, value: u64, left: u32) {
        list.borrow_mut().push(value);
        if left > 0 {
            let next = ctx.rank_offset(1);
            ctx.rpc_on_one_way(next, &append, (value + 1, left - 1)).unwrap();
        }
    }
    /// The last value of the next rank's list.
    fn last_of_next(ctx, _list: &List,) -> Option<u64> {
        ctx.rpc_on(ctx.rank_offset(1), &last, ()).unwrap().wait().unwrap()
    }
    fn last(list: &List) -> Option<u64> { list.borrow().last().copied() }

    fn count_down(ctx, sum: &Mutex<u64>, left: u64) {
        *sum.lock().unwrap() += 1;
        if left > 0 {
            let to = ctx.rank_offset(left as i64);
            ctx.rpc_on_one_way(to, &count_down, (left - 1,)).unwrap();
        }
    }

    fn be_refused(ctx, array: GlobalSlice<u64>) -> u32 {
        let mut refused = 0;
        let mut count = |what, error: Option<Error>| match error {
            Some(Error::Am(AmError::Deferred { .. })) => refused += 1,
            Some(Error::Rpc(RpcError::WouldDeadlock { .. })) => refused += 100,
            other => panic!("{what}: {other:?}"),
        };
        let all = ctx.collectives();
        count("barrier", ctx.barrier().err());
        count("drain", ctx.drain().err());
        count("reduction", ctx.reduce_all(Reduction::Sum, &mut [1u64]).err());
        count("started barrier", all.start_barrier().err());
        count("broadcast", all.broadcast(Rank(0), &mut [1u64]).err());
        count("split", ctx.team().split(ctx, None, 0).err());
        count("survivors", ctx.survivors().err());
        count("allocation", SharedArray::<u64>::alloc(ctx, 10).err());
        count("object", DistObject::new(ctx, Cell::new(1)).err());
        count("call", ctx.rpc(ctx.rank(), &be_refused, (array,)).err());
        refused
    }

    fn leave_prepared(ctx) {
        let want = PrepareRequest {
            to: JobRank(ctx.rank().0),
            class: MessageClass::Request,
            nargs: 0,
            least: 8,
            most: 8,
            offset: None,
        };
        std::mem::forget(ctx.raw().prepare(&want, Injection::Blocking).unwrap());
    }

    fn take_object(_ctx, _object: &Cell<u8>) {}
}

#[argonet::test(ranks = [1, 2, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn results_and_operations(world: &mut World) -> Result<()> {
    let words = SharedArray::<u64>::alloc(world, world.size() as usize)?;
    let long = SharedArray::<u64>::alloc(world, 20_000)?;
    let me = world.rank();
    for to in world.ranks() {
        // A word of a third rank that only this one uses.
        let far = world.rank_offset(i64::from(to.0) + 1);
        let word = words.ptr(far, me.0 as usize);
        let before = world.get_value(word)?;
        let (sum, ran_at) = world.rpc(to, &use_all, (word, far))?.wait()?;
        assert_eq!((sum, ran_at), (before + 1, to));
        assert_eq!(world.get_value(word)?, before + 15);
    }
    world
        .put(long.on(me), vec![u64::from(me.0) + 1; 20_000].into())?
        .wait()?;
    let sum = world
        .rpc(world.rank_offset(1), &sum_of, (long.on(me),))?
        .wait()?;
    assert_eq!(sum, 20_000 * (u64::from(me.0) + 1));
    // Many at once, with results up to what a message carries.
    let ops: Result<Vec<_>> = (0..40)
        .map(|i| world.rpc(world.rank_offset(i as i64), &echo, ("x".repeat(i * 1_600),)))
        .collect();
    for (i, op) in ops?.into_iter().enumerate() {
        assert_eq!(op.wait()?, "x".repeat(i * 1_600));
    }
    // Results that no operation waits for.
    for i in 0..100 {
        drop(world.rpc(world.rank_offset(i), &echo, ("x".into(),))?);
    }
    Ok(())
}

#[argonet::test(ranks = [1, 2, 3, 8], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 2)]
fn chains_end_before_a_drain_does(world: &mut World) -> Result<()> {
    const LENGTH: u64 = 1_000;
    let size = u64::from(world.size());
    for round in 1..=3 {
        for _ in 0..2 {
            world.rpc_one_way(world.rank_offset(1), &pass_on, (LENGTH,))?;
        }
        world.drain()?;
        let mut counts = [&ENDED, &RAN].map(|count| count.load(Ordering::Relaxed));
        world.reduce_all(Reduction::Sum, &mut counts)?;
        assert_eq!(counts, [2 * size * round, 2 * size * round * (LENGTH + 1)]);
    }
    Ok(())
}

/// No function of a chain runs while ranks hold slices.
#[argonet::test(ranks = [1, 2, 3], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn chains_end_before_a_quiet_phase(world: &mut World) -> Result<()> {
    let v = SharedArray::<u64>::alloc(world, 1)?;
    for round in 1..=5 {
        let word = v.ptr(world.rank_offset(1), 0);
        world.rpc_one_way(world.rank(), &pass_and_add, (300, word))?;
        let found = world.quiet(|q| v.local(q)[0])?;
        assert_eq!(found, round);
    }
    Ok(())
}

fn leave_with_a_chain(world: &World) -> Result<()> {
    if world.rank() == Rank(0) {
        world.rpc_one_way(world.rank_offset(1), &pass_and_fall, (1_000,))?;
    }
    Ok(())
}

#[argonet::test(ranks = 3)]
#[should_panic(expected = "panicked: the chain has ended")]
fn chains_end_before_the_world_does(world: &mut World) -> Result<()> {
    leave_with_a_chain(world)
}

#[argonet::test(ranks = 3, conduit = "tcp", neighborhood_size = 1)]
#[should_panic(expected = "panicked: the chain has ended")]
fn chains_end_before_the_world_does_over_tcp(world: &mut World) -> Result<()> {
    leave_with_a_chain(world)
}

#[argonet::test(ranks = [2, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn all_flood_all(world: &mut World) -> Result<()> {
    const COUNT: u64 = 1_000;
    let len = world.rank().0 as usize % 7;
    for i in 0..COUNT as usize {
        for to in world.ranks() {
            world.rpc_one_way(to, &answer, ("x".repeat(len + 7 * (i % 500)),))?;
        }
    }
    world.drain()?;
    assert_eq!(RAN.load(Ordering::Relaxed), COUNT * u64::from(world.size()));
    Ok(())
}

#[argonet::test(ranks = [1, 2, 3])]
fn none_runs_inside_of_another(world: &mut World) -> Result<()> {
    for _ in 0..50 {
        for to in world.ranks() {
            world.rpc_one_way(to, &wait_inside, ())?;
        }
    }
    world.drain()?;
    assert_eq!(RAN.load(Ordering::Relaxed), 50 * u64::from(world.size()));
    Ok(())
}

/// The others always enter first, so rank 1 finds their entries without a wait.
#[argonet::test(ranks = 2)]
fn runs_between_barriers_that_wait_for_nothing(world: &mut World) -> Result<()> {
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &pass_on, (0,))?;
    }
    for _ in 0..400 {
        if world.rank() == Rank(1) {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_micros() < 100 {
                std::hint::spin_loop();
            }
        }
        world.barrier()?;
    }
    assert_eq!(RAN.load(Ordering::Relaxed), u64::from(world.rank().0));
    world.barrier()
}

#[argonet::test(ranks = [1, 2, 4], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn walks_over_an_object(world: &mut World) -> Result<()> {
    let list = DistObject::new(world, List::default())?;
    let other = DistObject::new(world, RefCell::new(vec![7_000]))?;
    if world.rank() == Rank(0) {
        list.rpc_one_way(world, Rank(0), &append, (0, 2 * world.size() - 1))?;
    }
    world.drain()?;
    let (me, size) = (u64::from(world.rank().0), u64::from(world.size()));
    assert_eq!(*list.borrow(), [me, me + size]);
    let found = list
        .rpc(world, world.rank_offset(1), &last_of_next, ())?
        .wait()?;
    assert_eq!(found, Some(u64::from(world.rank_offset(2).0) + size));
    assert_eq!(*other.borrow(), [7_000]);
    // A dropped one is not found.
    let object = DistObject::new(world, Cell::new(1u8))?;
    let object = (world.rank() != Rank(0)).then_some(object);
    world.barrier()?;
    if let Some(object) = &object {
        let outcome = object.rpc(world, Rank(0), &take_object, ())?.wait();
        let Err(Error::Rpc(RpcError::Failed { status, .. })) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(status, RpcStatus::NoInstance);
    }
    world.barrier()
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn calls_of_many_threads(world: &mut World<Par>) -> Result<()> {
    const THREADS: u64 = 3;
    const COUNT: u64 = 200;
    let sum = DistObject::new(world, Mutex::new(0))?;
    std::thread::scope(|scope| {
        let (world, sum) = (&*world, &sum);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || -> Result<()> {
                    for i in 0..COUNT {
                        let to = world.rank_offset((i + thread) as i64);
                        if i % 4 == 0 {
                            sum.rpc(world, to, &count_down, (9,))?.wait()?;
                        } else {
                            sum.rpc_one_way(world, to, &count_down, (9,))?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|t| t.join().unwrap())
    })?;
    world.drain()?;
    let mut sums = [*sum.lock().unwrap()];
    world.reduce_all(Reduction::Sum, &mut sums)?;
    assert_eq!(sums[0], 10 * THREADS * COUNT * u64::from(world.size()));
    world.barrier()
}

/// One thread of each rank drains while others of it poll and run functions.
#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn drains_beside_threads_that_poll(world: &mut World<Par>) -> Result<()> {
    const ROUNDS: u64 = 100;
    const CHAIN: u64 = 5;
    let is_over = AtomicBool::new(false);
    let world = &*world;
    std::thread::scope(|scope| {
        let polls = || -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                world.poll()?;
            }
            Ok(())
        };
        let threads = [scope.spawn(polls), scope.spawn(polls)];
        let drained = (1..=ROUNDS).try_for_each(|round| {
            for to in world.ranks() {
                world.rpc_one_way(to, &pass_on, (CHAIN,))?;
            }
            world.drain()?;
            let mut counts = [&ENDED, &RAN].map(|count| count.load(Ordering::Relaxed));
            // Of all ranks, before any calls again.
            world.reduce_all(Reduction::Sum, &mut counts)?;
            let chains = u64::from(world.size()).pow(2) * round;
            assert_eq!(counts, [chains, chains * (CHAIN + 1)]);
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|t| t.join().unwrap())?;
        drained
    })
}

#[argonet::test(ranks = 2, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn collective_calls_are_refused(world: &mut World) -> Result<()> {
    let array = SharedArray::<u64>::alloc(world, 1)?;
    for to in world.ranks() {
        let op = world.rpc(to, &be_refused, (array.on(to),))?;
        assert_eq!(op.wait()?, 109);
    }
    // Nothing of what was refused has changed what ranks agree on.
    world.barrier()?;
    let v = SharedArray::<u32>::alloc(world, 3)?;
    let object = DistObject::new(world, Cell::new(world.rank().0))?;
    world.put_value(v.ptr(world.rank_offset(1), 2), 5)?;
    world.barrier()?;
    assert_eq!((v.read(world, 2), object.get()), (5, world.rank().0));
    Ok(())
}

#[argonet::test]
#[should_panic(expected = "pass_and_fall`, called by rank 0, panicked: the chain has ended")]
fn a_panic_names_the_function(world: &mut World) -> Result<()> {
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &pass_and_fall, (0,))?;
    }
    world.drain()
}

#[argonet::test]
#[should_panic(expected = "take_object` from rank 0 cannot run: its object has no instance")]
fn a_one_way_call_that_cannot_run_ends_the_job(world: &mut World) -> Result<()> {
    let object = DistObject::new(world, Cell::new(1u8))?;
    let object = (world.rank() == Rank(0)).then_some(object);
    world.barrier()?;
    if let Some(object) = &object {
        object.rpc_one_way(world, Rank(1), &take_object, ())?;
    }
    world.drain()
}

#[argonet::test]
#[should_panic(expected = "left a negotiated payload prepared")]
fn a_prepared_payload_is_not_left(world: &mut World) -> Result<()> {
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &leave_prepared, ())?;
    }
    world.drain()
}

/// Rank 0 leaves while rank 1 waits for what never comes.
#[argonet::test]
#[should_panic(expected = "but rank 1 waits for a condition of the program")]
fn a_job_that_cannot_end_is_found(world: &mut World) -> Result<()> {
    world
        .rpc(world.rank_offset(1), &echo, ("x".into(),))?
        .wait()?;
    world.barrier()?;
    if world.rank() == Rank(1) {
        world.wait_until(|| RAN.load(Ordering::Relaxed) == 1)?;
    }
    Ok(())
}

/// Rank 0 leaves while rank 1 makes a collective call.
#[argonet::test]
#[should_panic(expected = "but rank 1 waits in a")]
fn a_rank_that_leaves_early_is_named(world: &mut World) -> Result<()> {
    if world.rank() == Rank(1) {
        world.reduce_all(Reduction::Sum, &mut [1u64, 2])?;
    }
    Ok(())
}
