//! Combinations of reductions: by cells, through pools, by messages, through the tree; blocking or
//! started.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use argonet::{Rank, Reducible, Reduction, Threading, World};

use super::{REFUSED, ends_by_panic, ends_well, goes_on_after, lend, refused, take_back};
use crate::support::{Done, Program, Test};

pub(super) const TESTS: &[Test] = &[
    ("client_a_combination_that_panics_ends_the_job", || {
        for (way, rank) in PANICS {
            ends_by_panic(2, way, &[rank, "the combination of a reduction", FALLS]);
        }
    }),
    ("client_a_combination_may_not_call_into_the_library", || {
        for way in REENTERS {
            for ranks in [2, 3] {
                ends_well(ranks, way);
            }
        }
    }),
    ("client_a_combination_may_wait_for_another_thread", || {
        for way in WAITS {
            ends_well(2, way);
        }
    }),
];

/// Programs, and the rank that panics in each.
const PANICS: [(&str, &str); 11] = [
    ("combine-panic-unrelated", "rank 0"),
    ("combine-panic-lines", "rank 0"),
    ("combine-panic-lines-started", "rank 0"),
    ("combine-panic-pool", "rank 0"),
    ("combine-panic-pool-started", "rank 0"),
    ("combine-panic-pool-long", "rank 0"),
    // Only the last rank of a scan is sure to combine.
    ("combine-panic-messages", "rank 1"),
    ("combine-panic-tree", "rank 0"),
    ("combine-panic-closure", "rank 0"),
    ("combine-panic-team-closure", "rank 0"),
    ("combine-panic-closure-started", "rank 0"),
];

const REENTERS: [&str; 2] = ["combine-calls", "combine-calls-par"];

const WAITS: [&str; 2] = ["combine-waits-lines", "combine-waits-pool"];

const FALLS: &str = "the client's combine panics";

pub(super) const PROGRAMS: &[Program] = &[
    ("combine-panic-unrelated", panic_in_an_unrelated_call),
    ("combine-panic-lines", || panics(Way::Lines)),
    ("combine-panic-lines-started", || panics(Way::LinesStarted)),
    ("combine-panic-pool", || panics(Way::Pool)),
    ("combine-panic-pool-started", || panics(Way::PoolStarted)),
    ("combine-panic-pool-long", || panics(Way::PoolLong)),
    ("combine-panic-messages", || panics(Way::Messages)),
    ("combine-panic-tree", || panics(Way::Tree)),
    ("combine-panic-closure", || panics(Way::Closure)),
    ("combine-panic-team-closure", || panics(Way::TeamClosure)),
    ("combine-panic-closure-started", || {
        panics(Way::ClosureStarted)
    }),
    ("combine-calls", || calls(World::init()?)),
    ("combine-calls-par", || calls(World::builder().build_par()?)),
    ("combine-waits-lines", || waits(1)),
    ("combine-waits-pool", || waits(500)),
];

/// Action of the next combinations besides adding.
static MODE: AtomicU8 = AtomicU8::new(ADDS);

const ADDS: u8 = 0;
const PANICS_NOW: u8 = 1;
const CALLS: u8 = 2;
const WAITS_NOW: u8 = 3;

/// In a combination that waits for another thread; that thread is done.
static WITHIN: AtomicBool = AtomicBool::new(false);
static HELPED: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "argonet::zerocopy")]
#[repr(transparent)]
struct Touchy(u32);

impl Reducible for Touchy {
    fn combine(_: Reduction, a: Self, b: Self) -> Self {
        match MODE.load(Ordering::Relaxed) {
            PANICS_NOW => panic!("{FALLS}"),
            CALLS => refused(),
            WAITS_NOW => {
                WITHIN.store(true, Ordering::Release);
                let end = Instant::now() + Duration::from_secs(30);
                while !HELPED.load(Ordering::Acquire) {
                    assert!(Instant::now() < end, "the other thread is kept out");
                    std::thread::yield_now();
                }
            }
            _ => {}
        }
        Touchy(a.0 + b.0)
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Lines,
    LinesStarted,
    Pool,
    PoolStarted,
    PoolLong,
    Messages,
    Tree,
    Closure,
    TeamClosure,
    ClosureStarted,
}

const WAYS: [Way; 10] = [
    Way::Lines,
    Way::LinesStarted,
    Way::Pool,
    Way::PoolStarted,
    Way::PoolLong,
    Way::Messages,
    Way::Tree,
    Way::Closure,
    Way::TeamClosure,
    Way::ClosureStarted,
];

/// A reduction of ones that goes a way.
fn reduce<M: Threading>(world: &World<M>, way: Way) -> Done {
    let all = world.collectives();
    let size = world.size();
    let ones = |count| vec![Touchy(1); count];
    let sum = Reduction::Sum;
    let mut values = ones(match way {
        Way::Lines
        | Way::LinesStarted
        | Way::Tree
        | Way::Closure
        | Way::TeamClosure
        | Way::ClosureStarted => 1,
        Way::Pool | Way::PoolStarted => 500,
        Way::PoolLong | Way::Messages => 50_000,
    });
    let count = values.len();
    match way {
        Way::Lines | Way::Pool | Way::PoolLong => all.reduce_all(sum, &mut values)?,
        Way::LinesStarted | Way::PoolStarted => {
            let op = all.start_reduce_all(sum, values.into())?;
            values = op.wait()?.into_vec();
        }
        Way::Messages => {
            let op = all.start_scan(sum, values.into())?;
            values = op.wait()?.into_vec();
            let own = world.rank().0 + 1;
            assert_eq!(values, vec![Touchy(own); count], "{way:?}");
            values = vec![Touchy(size); count];
        }
        Way::TeamClosure => {
            all.reduce_all_with(&mut values, |a, b| Touchy::combine(sum, a, b))?;
        }
        Way::ClosureStarted => {
            let combine = move |a, b| Touchy::combine(sum, a, b);
            let op = all.start_reduce_all_with(values.into(), combine)?;
            values = op.wait()?.into_vec();
        }
        Way::Tree => world.reduce_all(sum, &mut values)?,
        Way::Closure => world.reduce_all_with(&mut values, |a, b| Touchy::combine(sum, a, b))?,
    }
    assert_eq!(values, vec![Touchy(size); count], "{way:?}");
    Ok(())
}

fn panics(way: Way) -> Done {
    let world = World::init()?;
    world.barrier()?;
    let falls = match way {
        Way::Messages => world.size() - 1,
        _ => 0,
    };
    if world.rank().0 == falls {
        MODE.store(PANICS_NOW, Ordering::Relaxed);
    }
    goes_on_after(|| drop(reduce(&world, way)));
    world.barrier()?;
    Ok(world.finalize()?)
}

/// The other rank comes to the reduction while this one waits in a broadcast into a buffer that it
/// has borrowed.
fn panic_in_an_unrelated_call() -> Done {
    let world = World::init()?;
    let all = world.collectives();
    world.barrier()?;
    let ones = || vec![Touchy(1)].into();
    let mut values = vec![0u8; 4096];
    if world.rank() == Rank(0) {
        MODE.store(PANICS_NOW, Ordering::Relaxed);
        let op = all.start_reduce_all(Reduction::Sum, ones())?;
        // The other rank may combine now, and this one is about to wait.
        world.rpc(Rank(1), &go, ())?.wait()?;
        goes_on_after(|| drop(all.broadcast(Rank(1), &mut values)));
        drop(op);
    } else {
        world.wait_until(|| GO.load(Ordering::Relaxed))?;
        // Rank 0 is in its broadcast, or about to be.
        world.wait_timeout(Duration::from_millis(100), || false)?;
        let op = all.start_reduce_all(Reduction::Sum, ones())?;
        world.wait_timeout(Duration::from_millis(300), || false)?;
        all.broadcast(Rank(1), &mut values)?;
        op.wait()?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

static GO: AtomicBool = AtomicBool::new(false);

argonet::rpc! {
    fn go() -> () { GO.store(true, Ordering::Relaxed) }
}

/// All ways, with combinations that call into the library.
fn calls<M: Threading>(world: World<M>) -> Done {
    let world = lend(world);
    for way in WAYS {
        world.barrier()?;
        REFUSED.set(0);
        MODE.store(CALLS, Ordering::Relaxed);
        reduce(&world, way)?;
        MODE.store(ADDS, Ordering::Relaxed);
        let mut tried = [REFUSED.get()];
        world.reduce_all(Reduction::Sum, &mut tried)?;
        assert!(tried[0] > 0, "{way:?}");
        // The refused calls have left nothing behind.
        reduce(&world, way)?;
    }
    Ok(take_back(world).finalize()?)
}

/// A combination of a started reduction waits for another thread, which starts something of the
/// same team meanwhile.
fn waits(count: usize) -> Done {
    let world = World::builder().build_par()?;
    let all = world.collectives();
    world.barrier()?;
    if world.rank() == Rank(0) {
        MODE.store(WAITS_NOW, Ordering::Relaxed);
    }
    std::thread::scope(|scope| -> Done {
        let helper = scope.spawn(|| -> Result<(), argonet::Error> {
            if world.rank() == Rank(0) {
                while !WITHIN.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            } else {
                // The numbers of calls are the same on all ranks.
                while !STARTED.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            let second = world.collectives();
            let short = second.start_reduce_all(Reduction::Sum, vec![1u32].into())?;
            let barrier = second.start_barrier()?;
            world.poll()?;
            HELPED.store(true, Ordering::Release);
            assert_eq!(*short.wait()?, [2]);
            barrier.wait()
        });
        let ones = vec![Touchy(1); count];
        let op = all.start_reduce_all(Reduction::Sum, ones.into())?;
        STARTED.store(true, Ordering::Release);
        assert_eq!(*op.wait()?, *vec![Touchy(2); count]);
        helper.join().expect("the other thread ends")?;
        Ok(())
    })?;
    Ok(world.finalize()?)
}

static STARTED: AtomicBool = AtomicBool::new(false);
