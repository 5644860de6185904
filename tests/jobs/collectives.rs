//! Barrier, broadcast and reductions against sequential results.

use argonet::{Error, Rank, Reducible, Reduction, SharedArray, World};

use crate::support::{Done, Job, Pattern, Program, Random, Test, each};

/// Among them the number of ranks that no tree likes.
const SIZES: [u32; 6] = [1, 2, 3, 5, 7, 8];

pub(crate) const TESTS: &[Test] = &[
    ("collectives_barrier_holds_everybody", || {
        each(&SIZES, "barrier");
        let job = Job::launched(64, "barrier").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
    ("collectives_broadcast_from_every_root", || {
        each(&SIZES, "broadcast");
    }),
    ("collectives_reduce_all_types", || each(&SIZES, "reduce")),
    ("collectives_long_reductions", || {
        each(&SIZES, "reduce-long");
    }),
    ("collectives_operands_in_the_order_of_ranks", || {
        each(&SIZES, "order");
        let job = Job::launched(64, "order").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
    (
        "collectives_different_arguments_are_an_error_at_all_ranks_and_the_job_goes_on",
        || each(&[2, 3, 5, 8], "different"),
    ),
    ("collectives_one_after_another", || each(&SIZES, "mixed")),
    ("collectives_in_every_wait_mode", || {
        for (mode, sizes) in [
            ("spin", &[2][..]),
            ("yield", &[2, 5, 8]),
            ("sleep", &[2, 5, 8]),
        ] {
            for &ranks in sizes {
                let job = Job::launched(ranks, "mixed").env("ARGONET_WAIT", mode);
                job.run().well();
            }
        }
    }),
    ("collectives_end_with_a_rank_that_is_killed", || {
        for ranks in [2, 5] {
            for mode in ["auto", "sleep"] {
                let job = Job::launched(ranks, "killed").env("ARGONET_WAIT", mode);
                let outcome = job.run();
                assert_eq!(outcome.code(), Some(137), "{outcome:#?}");
                outcome.says(&[&format!("rank {} (pid ", ranks - 1), "SIGKILL"]);
            }
        }
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("barrier", barrier),
    ("broadcast", broadcast),
    ("reduce", reduce),
    ("reduce-long", reduce_long),
    ("order", order),
    ("different", different),
    ("mixed", mixed),
    ("killed", killed),
];

fn barrier() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 1)?;
    let size = u64::from(world.size());
    let entered = v.ptr(Rank(0), 0);
    let rounds = if size > 8 { 20 } else { 500 };
    for round in 0..rounds {
        world.fetch_add(entered, 1)?;
        world.barrier()?;
        // All have entered this round; none can be further than in the next.
        let count = world.atomic_load(entered)?;
        assert!(
            (round + 1) * size <= count && count < (round + 2) * size,
            "{round}: {count}"
        );
    }
    Ok(world.finalize()?)
}

fn broadcast() -> Done {
    let world = World::init()?;
    let pattern = Pattern::new();
    for root in world.ranks() {
        for len in [
            0, 1, 2, 7, 63, 64, 65, 1001, 32767, 32768, 32769, 65535, 65536,
        ] {
            let key = u64::from(root.0) * 100 + len as u64;
            let mut values = vec![world.rank().0 as u8; len];
            if world.rank() == root {
                values = pattern.piece(key, len).to_vec();
            }
            world.broadcast(root, &mut values)?;
            assert!(values == pattern.piece(key, len), "{len} from {root}");
        }
        let mut long: Vec<[u32; 3]> = vec![[world.rank().0; 3]; 30_000];
        world.broadcast(root, &mut long)?;
        assert!(long.iter().all(|value| *value == [root.0; 3]));
        let mut none: [u64; 0] = [];
        world.broadcast(root, &mut none)?;
    }
    Ok(world.finalize()?)
}

const REDUCTIONS: [Reduction; 4] = [
    Reduction::Sum,
    Reduction::Product,
    Reduction::Min,
    Reduction::Max,
];

/// Contribution of `rank`: small whole numbers, so that floats are exact in any order.
fn contribution<T>(rank: u32, len: usize, make: impl Fn(u64) -> T) -> Vec<T> {
    let mut random = Random::new(u64::from(rank) * 977 + len as u64);
    (0..len).map(|_| make(random.next())).collect()
}

fn check<T: Reducible + PartialEq + core::fmt::Debug>(
    world: &World,
    make: impl Fn(u64) -> T + Copy,
) -> argonet::Result<()> {
    for reduction in REDUCTIONS {
        for len in [0, 1, 3, 100] {
            let mine = contribution(world.rank().0, len, make);
            let mut expected = contribution(0, len, make);
            for rank in 1..world.size() {
                for (a, b) in expected.iter_mut().zip(contribution(rank, len, make)) {
                    *a = T::combine(reduction, *a, b);
                }
            }
            let mut all = mine.clone();
            world.reduce_all(reduction, &mut all)?;
            assert_eq!(all, expected, "{reduction:?}");
            for root in world.ranks() {
                let mut at_root = mine.clone();
                world.reduce(root, reduction, &mut at_root)?;
                if world.rank() == root {
                    assert_eq!(at_root, expected, "{reduction:?} to {root}");
                }
            }
        }
    }
    Ok(())
}

fn reduce() -> Done {
    let world = World::init()?;
    macro_rules! integers {
        ($($int:ident)*) => {$(check::<$int>(&world, |x| x as $int)?;)*};
    }
    integers!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize);
    check::<u128>(&world, |x| u128::from(x) * u128::from(x))?;
    check::<i128>(&world, |x| -i128::from(x) * 3)?;
    check::<f32>(&world, |x| (x % 4) as f32)?;
    check::<f64>(&world, |x| (x % 8) as f64)?;
    // Not-a-number gives way.
    let mut value = [if world.rank().0 == 0 { f64::NAN } else { 2.0 }];
    world.reduce_all(Reduction::Max, &mut value)?;
    assert!(world.size() == 1 || value == [2.0]);
    Ok(world.finalize()?)
}

/// Longer than one pass of the tree, in elements that do not divide a pass.
fn reduce_long() -> Done {
    let world = World::init()?;
    let ranks = u64::from(world.size());
    let mut values: Vec<u64> = (0..40_000).map(|i| i + u64::from(world.rank().0)).collect();
    world.reduce_all(Reduction::Sum, &mut values)?;
    let offset = ranks * (ranks - 1) / 2;
    assert!(
        (0..40_000u64)
            .zip(&values)
            .all(|(i, sum)| *sum == i * ranks + offset)
    );
    let mut odd = vec![[1u8; 7]; 20_000];
    world.reduce_all_with(&mut odd, |a, b| {
        core::array::from_fn(|i| a[i].wrapping_add(b[i]))
    })?;
    assert!(odd.iter().all(|value| *value == [ranks as u8; 7]));
    let mut large = vec![[2u64; 512]; 40];
    world.reduce_all_with(&mut large, |a, b| core::array::from_fn(|i| a[i] + b[i]))?;
    assert!(large.iter().all(|value| *value == [2 * ranks; 512]));
    Ok(world.finalize()?)
}

/// Associative, and every other order gives another result.
fn order() -> Done {
    let world = World::init()?;
    let (me, size) = (world.rank().0, world.size());
    // First and last rank of a run of ranks; the runs must touch.
    let mut run = [[me, me, 0]; 3];
    world.reduce_all_with(&mut run, |a, b| {
        [a[0], b[1], a[2] | b[2] | u32::from(a[1] + 1 != b[0])]
    })?;
    assert_eq!(run, [[0, size - 1, 0]; 3]);
    // Products of matrices modulo 2^64.
    let of = |rank: u32| {
        let x = u64::from(rank);
        [x + 1, 2 * x + 3, 5, x * x + 1]
    };
    let times = |a: [u64; 4], b: [u64; 4]| {
        let cell = |row: usize, column: usize| {
            let left = a[2 * row].wrapping_mul(b[column]);
            left.wrapping_add(a[2 * row + 1].wrapping_mul(b[2 + column]))
        };
        [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
    };
    let expected = (1..size).fold(of(0), |product, rank| times(product, of(rank)));
    let mut product = [of(me)];
    world.reduce_all_with(&mut product, times)?;
    assert_eq!(product, [expected]);
    // Floats: the same result in every run and on every rank.
    let mut sum = [0.1f64 * f64::from(me + 1)];
    world.reduce_all(Reduction::Sum, &mut sum)?;
    let bits = sum[0].to_bits();
    let mut again = [0.1f64 * f64::from(me + 1)];
    world.reduce_all(Reduction::Sum, &mut again)?;
    assert_eq!(again[0].to_bits(), bits);
    let mut same = [bits];
    world.broadcast(Rank(0), &mut same)?;
    assert_eq!(same, [bits]);
    Ok(world.finalize()?)
}

/// Many in a row, of different kinds and roots, with ranks that run ahead.
fn mixed() -> Done {
    let world = World::init()?;
    let size = world.size();
    let mut random = Random::new(11);
    for round in 0..1500u32 {
        let root = Rank(random.below(size as usize) as u32);
        match random.below(5) {
            0 => world.barrier()?,
            1 => {
                let mut value = [if world.rank() == root { round } else { 0 }];
                world.broadcast(root, &mut value)?;
                assert_eq!(value, [round]);
            }
            2 => {
                let mut value = [round];
                world.reduce(root, Reduction::Sum, &mut value)?;
                assert!(world.rank() != root || value == [round * size]);
            }
            3 => {
                let mut value = [round + world.rank().0];
                world.reduce_all(Reduction::Max, &mut value)?;
                assert_eq!(value, [round + size - 1]);
            }
            _ => {
                let v = SharedArray::<u8>::alloc(&world, random.below(100))?;
                v.free(&world)?;
            }
        }
    }
    Ok(world.finalize()?)
}

/// Each rank in turn asks for something else than the others, in calls that ranks agree about
/// before anything is done.
fn different() -> Done {
    let world = World::init()?;
    for odd in world.ranks() {
        let is_odd = world.rank() == odd;
        let freed = SharedArray::<u64>::alloc(&world, 3)?;
        let results = [
            SharedArray::<u64>::alloc(&world, if is_odd { 3 } else { 4 }).map(drop),
            if is_odd {
                SharedArray::<u64>::alloc(&world, 3).map(drop)
            } else {
                freed.free(&world)
            },
        ];
        for (i, result) in results.into_iter().enumerate() {
            let error = result.expect_err("ranks differ");
            let is_mismatch =
                matches!(&error, Error::Mismatch { rank, .. } if *rank == world.rank());
            assert!(is_mismatch, "{i}: {error}");
        }
        // And now all the same again.
        let mut sum = [1u32];
        world.reduce_all(Reduction::Sum, &mut sum)?;
        assert_eq!(sum[0], world.size());
    }
    Ok(world.finalize()?)
}

/// The last rank dies while the others wait for it, all in one kind of operation or another.
fn killed() -> Done {
    let world = World::init()?;
    let is_last = world.rank().0 + 1 == world.size();
    for round in 0u32.. {
        if is_last && round == 300 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL)?;
        }
        if round % 2 == 0 {
            world.barrier()?;
        } else {
            world.reduce_all(Reduction::Sum, &mut [round])?;
        }
    }
    Ok(())
}
