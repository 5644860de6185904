//! Tasks that hide latency, by smol: each follows a chain through the memory of all ranks.
//!
//! Usage: `argonet run -n 4 chase [tasks] [steps]`
//!
//! A step of a task needs the one before, so a task alone waits all the time. With many tasks the
//! gets of some are under way while others go on, without any change to what a task does.

use argonet::{Par, Rank, Result, SharedArray, World};
use smol::Executor;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Elements on all ranks together, a power of two.
const ELEMENTS: u64 = 1 << 16;

/// The element behind another one; one chain goes through all of them.
fn next(element: u64) -> u64 {
    (element * 5 + 3) % ELEMENTS
}

/// Follows the chain for so many steps; the element at its end.
async fn follow(
    world: Arc<World<Par>>,
    chain: Arc<SharedArray<u64>>,
    mut element: u64,
    steps: u64,
) -> Result<u64> {
    let ranks = u64::from(world.size());
    for _ in 0..steps {
        let (rank, index) = (element % ranks, (element / ranks) as usize);
        let there = chain.on(Rank(rank as u32)).part(index..index + 1);
        element = world.get(there)?.await?[0];
    }
    Ok(element)
}

fn main() {
    World::builder().run_shared(program)
}

fn program(world: &mut Arc<World<Par>>) -> std::result::Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let tasks: u64 = args.next().map_or(Ok(64), |n| n.parse())?;
    let steps: u64 = args.next().map_or(Ok(1000), |n| n.parse())?;

    let (me, ranks) = (u64::from(world.rank().0), u64::from(world.size()));
    let chain = SharedArray::<u64>::alloc(world, ELEMENTS.div_ceil(ranks) as usize)?;
    for (index, element) in (me..ELEMENTS).step_by(ranks as usize).enumerate() {
        chain.write(world, index, next(element));
    }
    world.barrier()?;

    // Each rank has tasks of its own, which begin all over the chain.
    let first = |task: u64| (me * tasks + task) * 7919 % ELEMENTS;
    let chain = Arc::new(chain);
    let executor = Executor::new();
    let start = Instant::now();
    let under_way: Vec<_> = (0..tasks)
        .map(|task| {
            let (world, chain) = (Arc::clone(world), Arc::clone(&chain));
            executor.spawn(follow(world, chain, first(task), steps))
        })
        .collect();
    let ends: Result<Vec<u64>> = smol::block_on(executor.run(async {
        let mut ends = Vec::new();
        for task in under_way {
            ends.push(task.await?);
        }
        Ok(ends)
    }));
    let ns = start.elapsed().as_nanos() / u128::from((tasks * steps).max(1));

    for (task, end) in (0..).zip(ends?) {
        let expected = (0..steps).fold(first(task), |element, _| next(element));
        assert_eq!(end, expected, "task {task} of rank {me} has lost its way");
    }
    world.barrier()?;
    if me == 0 {
        println!("{tasks} tasks on each of {ranks} ranks are right: {ns} ns a step");
    }
    Ok(())
}
