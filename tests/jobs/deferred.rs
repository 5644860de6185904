//! Remote procedures that get a context: they communicate, and call further ones.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{
    AmError, DistObject, Error, GlobalPtr, Par, Rank, RpcContext, RpcError, RpcStatus, SharedArray,
    World,
};

use crate::support::{Done, Job, Path, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("deferred_results_and_operations", || {
        each(&SIZES, "deferred-results");
    }),
    ("deferred_chains_end_before_a_drain_does", || {
        each(&[1, 2, 3, 8], "deferred-chains");
    }),
    ("deferred_chains_end_before_a_quiet_phase", || {
        each(&[1, 2, 3], "deferred-quiet");
    }),
    ("deferred_chains_end_before_the_world_does", || {
        each(&[1, 2, 3], "deferred-finalize");
    }),
    ("deferred_floods_of_all_to_all", || {
        each(&[2, 3], "deferred-flood");
    }),
    ("deferred_walks_over_an_object", || {
        each(&[1, 2, 4], "deferred-walk");
    }),
    ("deferred_calls_of_many_threads", || {
        each(&[1, 2], "deferred-par");
    }),
    ("deferred_calls_that_are_refused", || {
        each(&[1, 2], "deferred-refused");
    }),
    ("deferred_panic_ends_the_job", || {
        let outcome = Job::launched(2, "deferred-panic").run();
        outcome.failed(&["rank 1", "fall`, called by rank 0, panicked: out of luck"]);
    }),
    ("deferred_functions_differ_between_ranks", || {
        let place = format!("deferred-differ-{}", std::process::id());
        let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        let job = Job::launched(2, "deferred-differ").env(PLACE, &place.to_string_lossy());
        let outcome = job.run();
        std::fs::remove_dir(place).expect("one rank has made it");
        outcome.failed(&["registered other handlers"]);
    }),
    ("deferred_in_a_job_that_cannot_end", || {
        let outcome = Job::launched(2, "deferred-stuck").run();
        outcome.failed(&["rank 1", "rank 0"]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("deferred-results", results),
    ("deferred-chains", chains),
    ("deferred-quiet", quiet),
    ("deferred-finalize", finalize),
    ("deferred-flood", flood),
    ("deferred-walk", walk),
    ("deferred-par", par),
    ("deferred-refused", refused),
    ("deferred-panic", panics),
    ("deferred-differ", differ),
    ("deferred-stuck", stuck),
];

static ENDED: AtomicU64 = AtomicU64::new(0);
static RAN: AtomicU64 = AtomicU64::new(0);

argonet::rpc! {
    fn add(a: u64, b: u64) -> u64 { a + b }

    /// Reads, writes and adds at other ranks, and calls a function that runs in a handler.
    fn use_all(ctx, word: GlobalPtr<u64>, far: u32) -> (u64, u32) {
        let before = ctx.get_value(word).expect("a get");
        ctx.put_value(word, before + 10).expect("a put");
        ctx.fetch_add(word, 5).expect("an atomic operation");
        let sum = ctx.rpc(Rank(far), &add, (before, 1)).expect("a call").wait();
        assert_eq!(argonet::caller(), Some(ctx.caller()));
        (sum.expect("a sum"), ctx.rank().0)
    }

    /// Calls itself at the next rank.
    fn pass_on(ctx, left: u64) {
        RAN.fetch_add(1, Ordering::Relaxed);
        if left == 0 {
            ENDED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        ctx.rpc_one_way(ctx.rank_offset(1), &pass_on, (left - 1,)).expect("a call");
    }

    /// Puts at the end of a chain of calls.
    fn pass_and_put(ctx, left: u64, word: GlobalPtr<u64>) {
        match left {
            0 => _ = ctx.fetch_add(word, 1).expect("an atomic operation"),
            _ => {
                let next = ctx.rank_offset(1);
                ctx.rpc_one_way(next, &pass_and_put, (left - 1, word)).expect("a call");
            }
        }
    }

    /// Answers each call with the same text, by another call.
    fn answer(ctx, text: String) {
        ctx.rpc_one_way(ctx.caller(), &arrive, (text,)).expect("a call");
    }
    fn arrive(ctx, text: String) {
        assert_eq!(text.len() as u64 % 7, ctx.rank().0 as u64 % 7);
        RAN.fetch_add(1, Ordering::Relaxed);
    }
    fn echo(_ctx, bytes: Vec<u8>) -> Vec<u8> { bytes }

    /// Appends to the lists of this rank and the next ones.
    fn append(ctx, list: &RefCell<Vec<u64>>, value: u64, left: u32) {
        list.borrow_mut().push(value);
        if left > 0 {
            let next = ctx.rank_offset(1);
            ctx.rpc_on_one_way(next, &append, (value + 1, left - 1)).expect("a call");
        }
    }
    /// The last value of the next rank's list.
    fn last_of_next(ctx, _list: &RefCell<Vec<u64>>,) -> Option<u64> {
        let next = ctx.rank_offset(1);
        ctx.rpc_on(next, &last, ()).expect("a call").wait().expect("a value")
    }
    fn last(list: &RefCell<Vec<u64>>) -> Option<u64> { list.borrow().last().copied() }

    fn count_down(ctx, sum: &Mutex<u64>, left: u64) {
        *sum.lock().expect("no thread has panicked") += 1;
        if left > 0 {
            let to = ctx.rank_offset(left as i64);
            ctx.rpc_on_one_way(to, &count_down, (left - 1,)).expect("a call");
        }
    }

    fn be_refused(ctx) -> u32 {
        let mut refused = 0;
        let mut count = |what, error: Option<Error>| match error {
            Some(Error::Am(AmError::Deferred { .. })) => refused += 1,
            Some(Error::Rpc(RpcError::WouldWait { .. })) => refused += 100,
            other => panic!("{what}: {other:?}"),
        };
        let all = ctx.collectives();
        count("barrier", ctx.barrier().err());
        count("drain", ctx.drain().err());
        count("reduction", ctx.reduce_all(argonet::Reduction::Sum, &mut [1u64]).err());
        count("started barrier", all.start_barrier().err());
        count("broadcast", all.broadcast(Rank(0), &mut [1u64]).err());
        count("split", ctx.team().split(ctx, None, 0).err());
        count("allocation", SharedArray::<u64>::alloc(ctx, 10).err());
        count("object", DistObject::new(ctx, Cell::new(1)).err());
        count("call", ctx.rpc(ctx.rank(), &be_refused, ()).err());
        refused
    }

    fn fall(_ctx) { panic!("out of luck") }
    fn take_object(_ctx, _object: &Cell<u8>) {}
}

fn results() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u64>::alloc(&world, world.size() as usize)?;
    let me = world.rank();
    for to in world.ranks() {
        // A word of a third rank that only this one uses.
        let far = world.rank_offset(i64::from(to.0) + 1);
        let word = words.ptr(far, me.0 as usize);
        let before = world.get_value(word)?;
        let (sum, ran_at) = world.rpc(to, &use_all, (word, far.0))?.wait()?;
        assert_eq!((sum, ran_at), (before + 1, to.0));
        assert_eq!(world.get_value(word)?, before + 15);
    }
    // Many at once, with results as long as a message carries.
    let ops: argonet::Result<Vec<_>> = (0..40)
        .map(|i| {
            let bytes = vec![i as u8; i * 1_600];
            world.rpc(world.rank_offset(i as i64), &echo, (bytes,))
        })
        .collect();
    for (i, op) in ops?.into_iter().enumerate() {
        assert_eq!(op.wait()?, vec![i as u8; i * 1_600]);
    }
    // Results that no operation waits for.
    for i in 0..100 {
        drop(world.rpc(world.rank_offset(i), &echo, (vec![1; 100],))?);
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

const LENGTH: u64 = 1_000;

fn chains() -> Done {
    let world = World::init()?;
    let size = u64::from(world.size());
    let length = Path::of_this_run().many(LENGTH);
    for round in 1..=3 {
        for _ in 0..2 {
            world.rpc_one_way(world.rank_offset(1), &pass_on, (length,))?;
        }
        world.drain()?;
        let mut counts = [&ENDED, &RAN].map(|count| count.load(Ordering::Relaxed));
        world.reduce_all(argonet::Reduction::Sum, &mut counts)?;
        assert_eq!(counts, [2 * size * round, 2 * size * round * (length + 1)]);
    }
    Ok(world.finalize()?)
}

/// No function of a chain runs while ranks hold slices.
fn quiet() -> Done {
    let mut world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 1)?;
    let length = Path::of_this_run().many(LENGTH);
    for round in 1..=5 {
        let word = v.ptr(world.rank_offset(1), 0);
        world.rpc_one_way(world.rank(), &pass_and_put, (length, word))?;
        let found = world.quiet(|q| v.local(q)[0])?;
        assert_eq!(found, round);
    }
    Ok(world.finalize()?)
}

/// The end of the world waits for chains; each rank prints when it has run all.
fn finalize() -> Done {
    let world = World::init()?;
    let length = Path::of_this_run().many(LENGTH);
    world.rpc_one_way(world.rank_offset(1), &pass_on, (length,))?;
    world.finalize()?;
    // Of a chain for each rank, each rank runs as many as the others.
    assert_eq!(RAN.load(Ordering::Relaxed), length + 1);
    Ok(())
}

fn flood() -> Done {
    let world = World::init()?;
    let count = Path::of_this_run().many(3_000);
    let len = world.rank().0 as usize % 7;
    for i in 0..count {
        for to in world.ranks() {
            world.rpc_one_way(to, &answer, ("x".repeat(len + 7 * (i as usize % 500)),))?;
        }
    }
    world.drain()?;
    assert_eq!(RAN.load(Ordering::Relaxed), count * u64::from(world.size()));
    Ok(world.finalize()?)
}

fn walk() -> Done {
    let world = World::init()?;
    let list = DistObject::new(&world, RefCell::new(Vec::new()))?;
    let other = DistObject::new(&world, RefCell::new(vec![7_000]))?;
    if world.rank() == Rank(0) {
        list.rpc_one_way(Rank(0), &append, (0, 2 * world.size() - 1))?;
    }
    world.drain()?;
    let (me, size) = (u64::from(world.rank().0), u64::from(world.size()));
    assert_eq!(*list.borrow(), [me, me + size]);
    let found = list.rpc(world.rank_offset(1), &last_of_next, ())?.wait()?;
    let two_on = u64::from(world.rank_offset(2).0);
    assert_eq!(found, Some(two_on + size));
    assert_eq!(*other.borrow(), [7_000]);
    world.barrier()?;
    // Dropped objects are not found.
    drop(other);
    world.barrier()?;
    let gone = DistObject::new(&world, Cell::new(1u8))?;
    let gone = (world.rank() != Rank(0)).then_some(gone);
    world.barrier()?;
    if let Some(gone) = &gone {
        let error = gone
            .rpc(Rank(0), &take_object, ())?
            .wait()
            .expect_err("it is dropped");
        let Error::Rpc(RpcError::Failed { status, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(status, RpcStatus::NoInstance);
    }
    world.barrier()?;
    drop((list, gone));
    Ok(world.finalize()?)
}

fn par() -> Done {
    const THREADS: u64 = 3;
    let world: World<Par> = World::builder().build_par()?;
    let sum = DistObject::new(&world, Mutex::new(0))?;
    let count = Path::of_this_run().many(200);
    std::thread::scope(|scope| {
        let (world, sum) = (&world, &sum);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || -> argonet::Result<()> {
                    for i in 0..count {
                        let to = world.rank_offset((i + thread) as i64);
                        if i % 4 == 0 {
                            sum.rpc(to, &count_down, (9,))?.wait()?;
                        } else {
                            sum.rpc_one_way(to, &count_down, (9,))?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread").expect("calls");
        }
    });
    world.drain()?;
    let mut sums = [*sum.lock().expect("no thread has panicked")];
    world.reduce_all(argonet::Reduction::Sum, &mut sums)?;
    assert_eq!(sums[0], 10 * THREADS * count * u64::from(world.size()));
    world.barrier()?;
    drop(sum);
    Ok(world.finalize()?)
}

fn refused() -> Done {
    let world = World::init()?;
    for to in world.ranks() {
        assert_eq!(world.rpc(to, &be_refused, ())?.wait()?, 108);
    }
    // Nothing of what was refused has changed what ranks agree on.
    world.barrier()?;
    let v = SharedArray::<u32>::alloc(&world, 3)?;
    let object = DistObject::new(&world, Cell::new(0))?;
    world.put_value(v.ptr(world.rank_offset(1), 2), 5)?;
    world.barrier()?;
    assert_eq!(v.read(&world, 2), 5);
    drop(object);
    Ok(world.finalize()?)
}

fn panics() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(0) {
        world.rpc_one_way(Rank(1), &fall, ())?;
    }
    world.drain()?;
    Ok(world.finalize()?)
}

/// A directory that one rank of a job makes.
const PLACE: &str = "ARGONET_TEST_PLACE";

/// One name, with a context at one rank alone.
fn differ() -> Done {
    let mut builder = World::builder();
    if std::fs::create_dir(std::env::var(PLACE)?).is_ok() {
        builder.rpc_deferred("same", |_: &RpcContext<'_>, (): ()| ());
    } else {
        builder.rpc("same", |(): ()| ());
    }
    Ok(builder.build()?.finalize()?)
}

/// Rank 0 leaves while rank 1 waits for what never comes.
fn stuck() -> Done {
    let world = World::init()?;
    world.rpc(world.rank_offset(1), &echo, (vec![1],))?.wait()?;
    world.barrier()?;
    if world.rank() == Rank(1) {
        world.wait_until(|| RAN.load(Ordering::Relaxed) == 1)?;
    }
    Ok(world.finalize()?)
}
