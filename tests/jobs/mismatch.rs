//! Ranks whose collective calls differ: over any conduit the job ends with an error that names both
//! calls, and no rank gets data out of them.

use std::any::TypeId;
use std::sync::atomic::AtomicU32;

use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use argonet::{
    Blocks, Builder, Collectives, DistObject, InstanceIn, Par, Rank, Reducible, Reduction, Seq,
    Threading, World,
};

use crate::support::{Done, Job, Path, Program, Test};

/// Paths between ranks: the conduit, the most ranks that share memory, and the number of ranks.
const PATHS: [(&str, &str, u32); 5] = [
    ("smp", "64", 2),
    ("smp", "64", 3),
    ("tcp", "1", 2),
    ("tcp", "2", 3),
    ("portals", "1", 2),
];

/// The same for worlds of many threads.
const PAR_PATHS: [(&str, &str, u32); 2] = [("smp", "64", 2), ("tcp", "1", 2)];

/// Calls of two ranks, and their names in the error.
struct Case<M: Threading> {
    name: &'static str,
    /// Call of all ranks but rank 1.
    one: fn(&World<M>) -> Done,
    /// Call of rank 1.
    other: fn(&World<M>) -> Done,
    names: [&'static str; 2],
}

/// Two words of a program's own, as large as a `u64`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "argonet::zerocopy")]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

impl Reducible for Point {
    fn combine(reduction: Reduction, a: Self, b: Self) -> Self {
        Self {
            x: i32::combine(reduction, a.x, b.x),
            y: i32::combine(reduction, a.y, b.y),
        }
    }
}

/// Output of a rank that gets data which it must not have.
const DATA: &str = "data of a mismatch";
/// Output of a rank that gets through the next barrier.
const PASSED: &str = "passed a barrier";

fn reduce_all<M: Threading, T: Reducible>(
    world: &World<M>,
    reduction: Reduction,
    values: &mut [T],
) -> Done {
    world.reduce_all(reduction, values)?;
    println!("{DATA}");
    Ok(())
}

fn broadcast<M: Threading, T: Reducible>(world: &World<M>, root: u32, values: &mut [T]) -> Done {
    world.broadcast(Rank(root), values)?;
    println!("{DATA}");
    Ok(())
}

fn all<M: Threading>(world: &World<M>) -> Collectives<'_, M> {
    world.collectives()
}

/// A team of all ranks, the first or the second of two.
fn reduce_in_team<M: Threading>(world: &World<M>, which: usize) -> Done {
    let split = || world.team().split(world, Some(0), 0);
    let teams = [split()?.expect("a team"), split()?.expect("a team")];
    teams[which]
        .collectives(world)
        .reduce_all(Reduction::Sum, &mut [1u32])?;
    println!("{DATA}");
    Ok(())
}

/// A broadcast in a team whose ranks call nothing else of it, and which is still there when the
/// world ends.
fn broadcast_in_team<M: Threading>(world: &World<M>, root: u32) -> Done {
    let team = world.team().split(world, Some(0), 0)?.expect("a team");
    team.collectives(world).broadcast(Rank(root), &mut [1u64])?;
    std::mem::forget(team);
    Ok(())
}

fn cases<M: Threading>() -> Vec<Case<M>>
where
    AtomicU32: InstanceIn<M>,
{
    vec![
        Case {
            name: "mismatch-barrier",
            one: |world| Ok(world.barrier()?),
            other: |world| reduce_all(world, Reduction::Sum, &mut [1u64]),
            names: ["a barrier", "a reduce-to-all of 1 u64 by Sum"],
        },
        Case {
            name: "mismatch-object",
            one: |world| Ok(world.barrier()?),
            other: |world| {
                DistObject::new(world, AtomicU32::new(1))?;
                println!("{DATA}");
                Ok(())
            },
            names: ["a barrier", "the making of a distributed object"],
        },
        Case {
            name: "mismatch-reduction",
            one: |world| reduce_all(world, Reduction::Sum, &mut [1u64]),
            other: |world| reduce_all(world, Reduction::Max, &mut [1u64]),
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a reduce-to-all of 1 u64 by Max",
            ],
        },
        Case {
            name: "mismatch-type",
            one: |world| reduce_all(world, Reduction::Sum, &mut [1u64]),
            other: |world| reduce_all(world, Reduction::Sum, &mut [1f64]),
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a reduce-to-all of 1 f64 by Sum",
            ],
        },
        Case {
            name: "mismatch-own-type",
            one: |world| reduce_all(world, Reduction::Sum, &mut [1u64]),
            other: |world| reduce_all(world, Reduction::Sum, &mut [Point { x: 1, y: 2 }]),
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a reduce-to-all of 8 bytes of a type of its own",
            ],
        },
        Case {
            name: "mismatch-closure",
            one: |world| Ok(world.reduce_all_with(&mut [1u64], |a, b| a + b)?),
            other: |world| reduce_all(world, Reduction::Sum, &mut [1u64]),
            names: [
                "a reduce-to-all of 1 u64 by a combination of its own",
                "a reduce-to-all of 1 u64 by Sum",
            ],
        },
        Case {
            name: "mismatch-count",
            one: |world| reduce_all(world, Reduction::Sum, &mut [1u32; 3]),
            other: |world| reduce_all(world, Reduction::Sum, &mut [1u32; 4]),
            names: [
                "a reduce-to-all of 3 u32 by Sum",
                "a reduce-to-all of 4 u32 by Sum",
            ],
        },
        Case {
            name: "mismatch-long",
            one: |world| broadcast(world, 0, &mut [1u64; 20_000]),
            other: |world| broadcast(world, 0, &mut [1u64; 20_001]),
            names: [
                "a broadcast with root 0 and 20000 u64",
                "a broadcast with root 0 and 20001 u64",
            ],
        },
        Case {
            name: "mismatch-root",
            one: |world| broadcast(world, 0, &mut [1u64]),
            other: |world| broadcast(world, 1, &mut [1u64]),
            names: [
                "a broadcast with root 0 and 1 u64",
                "a broadcast with root 1 and 1 u64",
            ],
        },
        Case {
            name: "mismatch-root-of-reduction",
            one: |world| Ok(world.reduce(Rank(0), Reduction::Min, &mut [1i16])?),
            other: |world| Ok(world.reduce(Rank(1), Reduction::Min, &mut [1i16])?),
            names: [
                "a reduce-to-one with root 0 and 1 i16 by Min",
                "a reduce-to-one with root 1 and 1 i16 by Min",
            ],
        },
        Case {
            name: "mismatch-kind",
            one: |world| broadcast(world, 0, &mut [1u8; 5]),
            other: |world| reduce_all(world, Reduction::Product, &mut [1u8; 5]),
            names: [
                "a broadcast with root 0 and 5 u8",
                "a reduce-to-all of 5 u8 by Product",
            ],
        },
        Case {
            name: "mismatch-team-reduction",
            one: |world| Ok(all(world).reduce_all(Reduction::Sum, &mut [1u64])?),
            other: |world| Ok(all(world).reduce_all(Reduction::Max, &mut [1u64])?),
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a reduce-to-all of 1 u64 by Max",
            ],
        },
        Case {
            name: "mismatch-team-long",
            one: |world| Ok(all(world).reduce_all(Reduction::Sum, &mut [1u64; 9000])?),
            other: |world| Ok(all(world).reduce_all(Reduction::Sum, &mut [1f64; 9000])?),
            names: [
                "a reduce-to-all of 9000 u64 by Sum",
                "a reduce-to-all of 9000 f64 by Sum",
            ],
        },
        // The lengths, which ranks exchange first, are not taken for values.
        Case {
            name: "mismatch-team-unequal",
            one: |world| {
                let words = vec![1u64; world.size() as usize];
                println!("{DATA}: {:?}", all(world).exchange(&words)?);
                Ok(())
            },
            other: |world| {
                let blocks: Blocks<u64> = (0..world.size()).map(|_| [1]).collect();
                println!("{DATA}: {:?}", all(world).exchange_v(&blocks)?);
                Ok(())
            },
            names: [
                "an exchange of 1 u64",
                "an exchange of 8 bytes of a type of its own",
            ],
        },
        // Each of the two awaits a block that the other does not send.
        Case {
            name: "mismatch-team-unequal-started",
            one: |world| {
                let lengths = vec![1; world.size() as usize];
                let all = all(world).start_gather_v(Rank(0), vec![1u64].into(), &lengths)?;
                // A rank that is not the root is done when its block is given away.
                if let Some(all) = all.wait()? {
                    println!("{DATA}: {all:?}");
                }
                Ok(())
            },
            other: |world| {
                let own = all(world).start_scatter_v::<u64>(Rank(0), None, 1)?;
                println!("{DATA}: {:?}", own.wait()?);
                Ok(())
            },
            names: [
                "a gather of unequal blocks with root 0, u64",
                "a scatter of unequal blocks with root 0, u64",
            ],
        },
        Case {
            name: "mismatch-team-unequal-all",
            one: |world| {
                let lengths = vec![1; world.size() as usize];
                let all = all(world).start_gather_all_v(vec![1u64].into(), &lengths)?;
                println!("{DATA}: {:?}", all.wait()?);
                Ok(())
            },
            other: |world| {
                let lengths = vec![1; world.size() as usize];
                let blocks: Blocks<u64> = (0..world.size()).map(|_| [1]).collect();
                let come = all(world).start_exchange_v(blocks, &lengths)?;
                println!("{DATA}: {:?}", come.wait()?);
                Ok(())
            },
            names: [
                "a gather-all of unequal blocks, u64",
                "an exchange of unequal blocks, u64",
            ],
        },
        Case {
            name: "mismatch-team-started",
            one: |world| {
                all(world)
                    .start_reduce_all(Reduction::Sum, vec![1u64].into())?
                    .wait()?;
                Ok(())
            },
            other: |world| {
                all(world)
                    .start_reduce_all(Reduction::Sum, vec![1f64].into())?
                    .wait()?;
                Ok(())
            },
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a reduce-to-all of 1 f64 by Sum",
            ],
        },
        Case {
            name: "mismatch-team-bytes",
            one: |world| Ok(all(world).gather_all(&[1u64]).map(drop)?),
            other: |world| Ok(all(world).gather_all(&[1u32; 2]).map(drop)?),
            names: ["a gather-all of 1 u64", "a gather-all of 2 u32"],
        },
        Case {
            name: "mismatch-team-root",
            one: |world| Ok(all(world).broadcast(Rank(0), &mut [1u64])?),
            other: |world| Ok(all(world).broadcast(Rank(1), &mut [1u64])?),
            names: [
                "a broadcast with root 0 and 1 u64",
                "a broadcast with root 1 and 1 u64",
            ],
        },
        Case {
            name: "mismatch-team-world",
            one: |world| Ok(world.barrier()?),
            other: |world| Ok(all(world).reduce_all(Reduction::Sum, &mut [1u64])?),
            names: [
                "a barrier of all ranks",
                "a reduce-to-all of 1 u64 by Sum of all ranks",
            ],
        },
        Case {
            name: "mismatch-team-world-long",
            one: |world| Ok(world.barrier()?),
            other: |world| Ok(all(world).gather_all(&[1u64; 9000]).map(drop)?),
            names: [
                "a barrier of all ranks",
                "a gather-all of 9000 u64 of all ranks",
            ],
        },
        Case {
            name: "mismatch-team",
            one: |world| reduce_in_team(world, 0),
            other: |world| reduce_in_team(world, 1),
            names: [
                "a reduce-to-all of 1 u32 by Sum of team",
                "a reduce-to-all of 1 u32 by Sum of team",
            ],
        },
        Case {
            name: "mismatch-team-world",
            one: |world| reduce_in_team(world, 0),
            other: |world| {
                let split = || world.team().split(world, Some(0), 0);
                let _teams = [split()?, split()?];
                Ok(world.barrier()?)
            },
            names: [
                "a reduce-to-all of 1 u32 by Sum of team",
                "a barrier of all ranks",
            ],
        },
        Case {
            name: "mismatch-short-long",
            one: |world| Ok(all(world).reduce_all(Reduction::Sum, &mut [1u64])?),
            other: |world| Ok(all(world).gather_all(&[1u64; 90_000]).map(drop)?),
            names: [
                "a reduce-to-all of 1 u64 by Sum",
                "a gather-all of 90000 u64",
            ],
        },
        Case {
            name: "mismatch-root-in-team",
            one: |world| broadcast_in_team(world, 0),
            other: |world| broadcast_in_team(world, 1),
            names: [
                "a broadcast with root 0 and 1 u64",
                "a broadcast with root 1 and 1 u64",
            ],
        },
    ]
}

fn find<M: Threading>(name: &str) -> Case<M>
where
    AtomicU32: InstanceIn<M>,
{
    let case = cases().into_iter().find(|case| case.name == name);
    case.expect("a case")
}

fn run<M: Threading>(name: &str, build: fn(Builder) -> argonet::Result<World<M>>) -> Done
where
    AtomicU32: InstanceIn<M>,
{
    let case = find(name);
    let world = build(World::builder())?;
    // All have begun.
    world.barrier()?;
    match world.rank() {
        Rank(1) => (case.other)(&world)?,
        _ => (case.one)(&world)?,
    }
    world.barrier()?;
    // Calls of a team are compared by the next that all its ranks read of all, at the end of the
    // job at the latest; barriers of the world compare those of its own team where one thread
    // calls.
    let is_late = match name {
        "mismatch-root-in-team" => true,
        "mismatch-team-root" => TypeId::of::<M>() == TypeId::of::<Par>(),
        _ => false,
    };
    if !is_late {
        println!("{PASSED}");
    }
    Ok(world.finalize()?)
}

/// Runs a case over these paths, or over that of this run.
fn check(name: &str, suffix: &str, paths: &[(&str, &str, u32)]) {
    let case = find::<Seq>(name);
    let program = format!("{name}{suffix}");
    let own = Path::of_this_run() == Path::Memory;
    for &(path, neighbors, ranks) in paths {
        let mut job = Job::launched(ranks, &program);
        if own {
            job = job.env("ARGONET_CONDUIT", path);
            job = job.env("GASNET_SUPERNODE_MAXSIZE", neighbors);
        } else if path != "smp" {
            continue;
        }
        let outcome = job.run().failed(&case.names);
        assert!(!outcome.out.contains(DATA), "{path}: {outcome:#?}");
        assert!(!outcome.out.contains(PASSED), "{path}: {outcome:#?}");
        let errors = outcome
            .err
            .lines()
            .filter(|line| line.contains("at rank 1"));
        assert_eq!(errors.count(), 1, "{path}: one error {outcome:#?}");
    }
}

macro_rules! tests {
    ($($test:literal $case:literal;)*) => {
        pub(crate) const TESTS: &[Test] = &[$(
            ($test, || check($case, "", &PATHS)),
            (concat!($test, "_in_par"), || check($case, "-par", &PAR_PATHS)),
        )*];

        pub(crate) const PROGRAMS: &[Program] = &[$(
            ($case, || run::<Seq>($case, Builder::build)),
            (concat!($case, "-par"), || run::<Par>($case, Builder::build_par)),
        )*];
    };
}

tests! {
    "mismatch_of_a_barrier_and_a_reduction" "mismatch-barrier";
    "mismatch_of_reductions" "mismatch-reduction";
    "mismatch_of_types" "mismatch-type";
    "mismatch_of_a_type_of_its_own" "mismatch-own-type";
    "mismatch_of_a_closure" "mismatch-closure";
    "mismatch_of_counts" "mismatch-count";
    "mismatch_of_long_counts" "mismatch-long";
    "mismatch_of_roots" "mismatch-root";
    "mismatch_of_roots_of_reductions" "mismatch-root-of-reduction";
    "mismatch_of_kinds" "mismatch-kind";
    "mismatch_team_of_reductions" "mismatch-team-reduction";
    "mismatch_team_of_long_types" "mismatch-team-long";
    "mismatch_team_of_started" "mismatch-team-started";
    "mismatch_team_of_unequal_blocks" "mismatch-team-unequal";
    "mismatch_team_of_started_unequal_blocks" "mismatch-team-unequal-started";
    "mismatch_team_of_unequal_blocks_for_all" "mismatch-team-unequal-all";
    "mismatch_team_of_types_as_long" "mismatch-team-bytes";
    "mismatch_team_of_roots" "mismatch-team-root";
    "mismatch_of_a_barrier_and_of_team" "mismatch-team-world";
    "mismatch_of_a_barrier_and_of_team_long" "mismatch-team-world-long";
    "mismatch_of_teams" "mismatch-team";
    "mismatch_of_a_team_and_the_world" "mismatch-team-world";
    "mismatch_of_a_short_and_a_long_call" "mismatch-short-long";
    "mismatch_of_roots_in_a_team" "mismatch-root-in-team";
}
