//! Tasks that move between ranks.

mod picky;

use picky::Picky;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use argonet::{
    AmError, AtomicOp, Error, MAX_MEDIUM, Par, Rank, Reduction, Result, RpcError, SharedArray,
    Threading, World,
};
use serde::{Deserialize, Serialize};

static CALLS: AtomicU64 = AtomicU64::new(0);

argonet::rpc! {
    fn count() { CALLS.fetch_add(1, Ordering::Relaxed); }

    /// One that may communicate, but not collectively.
    fn run_in_function(ctx) -> bool {
        let outcome = ctx.run_tasks([1u8], |_, _| {});
        matches!(outcome, Err(Error::Am(AmError::Deferred { .. })))
    }
}

/// The sum of a value over all ranks.
fn sum<M: Threading>(world: &World<M>, value: u64) -> Result<u64> {
    let mut sum = [value];
    world.reduce_all(Reduction::Sum, &mut sum)?;
    Ok(sum[0])
}

/// A task that adds one for each height below its own: 2^height with all that come from it.
fn run_tree<M: Threading>(world: &World<M>, height: u32) -> Result<u64> {
    let mut ran = 0;
    let root = (world.rank() == Rank(0)).then_some(height);
    world.run_tasks(root, |height, tasks| {
        ran += 1;
        (0..height).for_each(|height| tasks.push(height));
    })?;
    sum(world, ran)
}

#[argonet::test(ranks = [1, 2, 5], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn all_tasks_run_once(world: &mut World) -> Result<()> {
    for height in [0, 1, 7, 14] {
        assert_eq!(run_tree(world, height)?, 1 << height);
    }
    // One run after another, and some without tasks.
    for height in 0..10 {
        assert_eq!(run_tree(world, height)?, 1 << height);
        world.run_tasks::<u64, _>([], |_, _| unreachable!("there was no task"))?;
    }
    Ok(())
}

#[argonet::test(ranks = [2, 4], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn each_rank_gets_a_task_while_others_run(world: &mut World) -> Result<()> {
    let running = SharedArray::<u64>::alloc(world, 1)?;
    world.barrier()?;
    let (size, counter) = (world.size(), running.ptr(Rank(0), 0));
    let mut ran = 0;
    let first = if world.rank() == Rank(0) { size } else { 0 };
    world.run_tasks(0..first, |_, tasks| {
        ran += 1;
        world.atomic(counter, AtomicOp::add(1)).unwrap();
        // Each rank runs one of them, and none ends before.
        while world.atomic_load(counter).unwrap() < u64::from(size) {
            tasks.share();
        }
    })?;
    assert_eq!(ran, 1);
    world.barrier()
}

#[derive(Serialize, Deserialize)]
enum Step {
    /// Makes a task for each number below.
    Spread(u32),
    /// Only for that rank.
    At(Rank, u32),
    /// For any rank.
    Anywhere,
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn pinned_tasks_run_where_they_belong(world: &mut World) -> Result<()> {
    // More for each rank than one message has.
    const NUMBERS: u32 = 3000;
    let (me, size) = (world.rank(), world.size());
    let (mut numbers, mut anywhere) = (0, 0);
    world.run_tasks([Step::Spread(NUMBERS)], |step, tasks| match step {
        Step::Spread(end) => (0..end).for_each(|number| {
            let to = Rank(number % size);
            tasks.push_to(to, Step::At(to, number)).unwrap();
        }),
        Step::At(owner, number) => {
            assert_eq!(owner, me);
            numbers += u64::from(number);
            if number % 10 == 0 {
                tasks.push(Step::Anywhere);
            }
        }
        Step::Anywhere => anywhere += 1,
    })?;
    let (each, ranks) = (u64::from(NUMBERS), u64::from(size));
    assert_eq!(sum(world, numbers)?, ranks * (each * (each - 1) / 2));
    assert_eq!(sum(world, anywhere)?, ranks * each / 10);
    Ok(())
}

#[argonet::test(ranks = 3, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn a_task_waits_for_one_that_is_held_for_another_rank(world: &mut World) -> Result<()> {
    // One task is fewer than a message has; it goes while rank 0 is in its own.
    let ran = SharedArray::<u64>::alloc(world, 1)?;
    world.barrier()?;
    let (me, word) = (world.rank(), ran.ptr(Rank(0), 0));
    let first = (me == Rank(0)).then_some(false);
    world.run_tasks(first, |is_pinned, tasks| {
        if is_pinned {
            assert_eq!(me, Rank(1));
            world.atomic(word, AtomicOp::add(1)).unwrap();
            return;
        }
        tasks.push_to(Rank(1), true).unwrap();
        while world.atomic_load(word).unwrap() == 0 {
            tasks.share();
        }
    })
}

/// Tasks of a text of that length: itself, and an empty one and one of half its length.
fn halvings(length: usize) -> u64 {
    match length {
        0 => 1,
        length => 2 + halvings(length / 2),
    }
}

#[argonet::test(ranks = [2, 3], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn long_tasks_and_calls_of_tasks(world: &mut World) -> Result<()> {
    let text = |length: usize| "x".repeat(length);
    let mut length = 0;
    let first = (0..4).map(|i| text(i * MAX_MEDIUM));
    world.run_tasks(first, |task, tasks| {
        length += task.len() as u64;
        // A task may wait, which polls.
        let to = world.rank_offset(length as i64);
        world.rpc_one_way(to, &count, ()).unwrap();
        world.rpc(to, &count, ()).unwrap().wait().unwrap();
        if !task.is_empty() {
            tasks.push_to(to, String::new()).unwrap();
            tasks.push(text(task.len() / 2));
        }
    })?;
    // All one-way calls have run.
    let calls = sum(world, CALLS.load(Ordering::Relaxed))?;
    let (size, tasks) = (
        u64::from(world.size()),
        (0..4).map(|i| halvings(i * MAX_MEDIUM)),
    );
    let tasks: u64 = tasks.sum();
    assert_eq!(calls, 2 * size * tasks);
    Ok(())
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn other_threads_may_poll(world: &mut World<Par>) -> Result<()> {
    let (world, is_over) = (&*world, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let polls = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                world.poll().unwrap();
            }
        });
        let counts: Result<Vec<u64>> = [3, 12].into_iter().map(|h| run_tree(world, h)).collect();
        is_over.store(true, Ordering::Relaxed);
        polls.join().unwrap();
        assert_eq!(counts?, [1 << 3, 1 << 12]);
        Ok(())
    })
}

#[argonet::test(ranks = 3, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn a_failure_of_one_rank_ends_the_run_on_all(world: &mut World) -> Result<()> {
    for (bad, failing) in [(0, Rank(0)), (1, Rank(1))] {
        let first = (world.rank() == Rank(0)).then_some(Picky(u8::MAX));
        let outcome = world.run_tasks(first, |Picky(number), tasks| {
            if number == u8::MAX {
                (2..200).for_each(|number| tasks.push_to(Rank(2), Picky(number)).unwrap());
                tasks.push_to(Rank(1), Picky(bad)).unwrap();
            }
        });
        match outcome {
            Err(Error::Rpc(RpcError::Encode { .. })) => {
                assert_eq!((bad, world.rank()), (0, failing))
            }
            Err(Error::Rpc(RpcError::Tasks { from, .. })) => {
                assert_eq!((bad, world.rank(), from), (1, failing, Rank(0)));
            }
            Err(Error::ElsewhereFailed { rank, .. }) => {
                assert!(rank == world.rank() && rank != failing);
            }
            other => panic!("{other:?}"),
        }
        // The world goes on.
        assert_eq!(run_tree(world, 8)?, 1 << 8);
    }
    Ok(())
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn a_task_makes_no_collective_calls(world: &mut World) -> Result<()> {
    let refused = |outcome: Result<()>| match outcome {
        Err(Error::Am(AmError::InTask { .. })) => {}
        other => panic!("{other:?}"),
    };
    world.run_tasks([0u8], |_, _| {
        refused(world.barrier());
        refused(world.drain());
        refused(world.reduce_all(Reduction::Sum, &mut [0u64; 3]));
        refused(world.collectives().start_barrier().map(drop));
        refused(SharedArray::<u8>::alloc(world, 1).map(drop));
        refused(world.run_tasks([0u8], |_, _| {}));
    })?;
    // A task that panics leaves no mark, as this is the only rank.
    if world.size() == 1 {
        let run = || world.run_tasks([0u8], |_, _| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
    world.barrier()
}

#[argonet::test(ranks = 2)]
fn long_tasks_behind_short_ones_are_shared(world: &mut World) -> Result<()> {
    // Rank 0 has short tasks and then two that wait until the other rank runs one of them.
    let running = SharedArray::<u64>::alloc(world, 1)?;
    world.barrier()?;
    let counter = running.ptr(Rank(0), 0);
    let first = if world.rank() == Rank(0) { 20_000 } else { 0 };
    world.run_tasks(0..first, |number: u32, tasks| {
        if number < 2 {
            world.atomic(counter, AtomicOp::add(1)).unwrap();
            while world.atomic_load(counter).unwrap() < 2 {
                tasks.share();
            }
        }
    })?;
    world.barrier()
}

#[argonet::test(ranks = [1, 2])]
fn calls_that_are_refused(world: &mut World) -> Result<()> {
    assert!(world.rpc(world.rank(), &run_in_function, ())?.wait()?);
    let beyond = Rank(world.size());
    let mut outcome = None;
    world.run_tasks([0u8], |_, tasks| outcome = Some(tasks.push_to(beyond, 1)))?;
    let Some(Err(Error::Am(AmError::NoSuchRank { to, size, from }))) = outcome else {
        panic!("{outcome:?}");
    };
    let named = (Rank(to.0), size, Rank(from.0));
    assert_eq!(named, (beyond, world.size(), world.rank()));
    Ok(())
}

#[argonet::test(ranks = 2)]
fn tasks_of_two_types_are_refused(world: &mut World) -> Result<()> {
    let to = world.rank_offset(1);
    // Any number would decode as one of the other type.
    if world.rank() == Rank(0) {
        let outcome = world.run_tasks([1u8], |_, tasks| tasks.push_to(to, 7).unwrap());
        assert!(
            matches!(outcome, Err(Error::ElsewhereFailed { .. })),
            "{outcome:?}"
        );
        return Ok(());
    }
    let outcome = world.run_tasks::<u64, _>([], |_, _| {});
    let Err(Error::Rpc(RpcError::Tasks { from, cause, .. })) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((from, &*cause), (Rank(0), "they are no u64"));
    Ok(())
}

#[argonet::test(ranks = 2)]
#[should_panic = "this task is bad"]
fn a_panic_of_a_task_ends_the_job(world: &mut World) -> Result<()> {
    let first = (world.rank() == Rank(0)).then_some(());
    world.run_tasks(first, |(), _| panic!("this task is bad"))
}
