//! Shared arrays: made, grown into, given back, and refused.

use argonet::{Error, Rank, SegmentError, SharedArray, World};

use crate::support::{Done, Job, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("heap_grows_beyond_the_start_size", || {
        each(&[1, 2, 3], "grow");
        for ranks in SIZES {
            let job = Job::launched(ranks, "grow-small").env("ARGONET_SEGMENT", "4096");
            job.run().well();
        }
    }),
    ("heap_arrays_are_zeroed_and_apart", || each(&SIZES, "reuse")),
    ("heap_over_the_limit", || {
        for ranks in SIZES {
            let job = Job::launched(ranks, "over-limit").env("GASNET_MAX_SEGSIZE", "1MB/P");
            job.run().well();
        }
    }),
    ("heap_over_the_hosts_memory", || {
        for ranks in SIZES {
            let job = Job::launched(ranks, "over-memory").env("GASNET_MAX_SEGSIZE", "8TB/P");
            job.run().well();
        }
    }),
    ("heap_different_arguments", || each(&[2, 3, 8], "mismatch")),
    (
        "heap_an_allocation_against_another_call_ends_the_job",
        || {
            let outcome = Job::launched(2, "other-call").run();
            assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
            outcome.failed(&[
                "members of a team call different operations",
                // Over networks the team is named, too.
                "about the arguments of a call",
                "at rank 0, and a reduce-to-all of 4 u64 by Sum",
                "at rank 1; all must call the same",
            ]);
        },
    ),
    ("heap_start_size_over_the_hosts_memory", || {
        for ranks in [1, 3] {
            let job = Job::launched(ranks, "start")
                .env("ARGONET_SEGMENT", "4TB")
                .env("GASNET_MAX_SEGSIZE", "8TB/P");
            job.run().failed(&[
                &format!("the {ranks} ranks of this host ask for"),
                &format!("({} bytes) of segment memory", u64::from(ranks) << 42),
                "can be had, limited by",
            ]);
        }
    }),
    ("heap_bad_settings", bad_settings),
    ("heap_different_start_sizes", || {
        let outcome = Job::launched(2, "start-sizes").run();
        outcome.failed(&["rank 1", "segment"]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("grow", || grow(&[1 << 20, 15 << 20, 16 << 20, 40 << 20])),
    ("grow-small", || grow(&[100, 4096, 5000, 100_000, 3 << 20])),
    ("reuse", reuse),
    ("over-limit", over_limit),
    ("over-memory", over_memory),
    ("mismatch", mismatch),
    ("other-call", other_call),
    ("start", start),
    ("start-sizes", start_sizes),
];

/// Each array is used from its first to its last byte by other ranks as soon as it exists.
fn grow(sizes: &[usize]) -> Done {
    let world = World::init()?;
    let next = world.rank_offset(1);
    let me = world.rank().0 as u8 + 1;
    let mut held = Vec::new();
    for (i, &len) in sizes.iter().enumerate() {
        let v = SharedArray::<u8>::alloc(&world, len)?;
        assert!(world.raw().segment_len() >= len as u64);
        // In each round another rank is the first to look at a segment that has grown.
        let to = world.rank_offset(i as i64 + 1);
        let from = world.rank_offset(-(i as i64) - 1).0 as u8 + 1;
        world.put_value(v.ptr(to, len - 1), me)?;
        world.put_value(v.ptr(to, 0), me)?;
        world.barrier()?;
        assert_eq!((v.read(&world, 0), v.read(&world, len - 1)), (from, from));
        assert_eq!(v.read(&world, len / 2), 0);
        let far = world.get(v.on(next))?.wait()?;
        assert_eq!(far.iter().filter(|byte| **byte != 0).count(), 2);
        world.barrier()?;
        held.push(v);
    }
    for v in held {
        v.free(&world)?;
    }
    Ok(world.finalize()?)
}

fn reuse() -> Done {
    let world = World::init()?;
    // The same choices on all ranks.
    let mut random = Random::new(3);
    let mut held: Vec<(SharedArray<u32>, u32)> = Vec::new();
    for step in 1..300 {
        if held.len() > 10 || (!held.is_empty() && random.below(3) == 0) {
            let (v, mark) = held.swap_remove(random.below(held.len()));
            check_marks(&world, &v, mark);
            v.free(&world)?;
            continue;
        }
        let len = random.below(3000);
        let v = SharedArray::<u32>::alloc(&world, len)?;
        assert_eq!((v.len(), v.is_empty()), (len, len == 0));
        check_marks(&world, &v, 0);
        v.write_from(&world, 0, &vec![step; len]);
        held.push((v, step));
    }
    for (v, mark) in held {
        check_marks(&world, &v, mark);
        v.free(&world)?;
    }
    // Everything was given back: the first byte again.
    let first = SharedArray::<u8>::alloc(&world, 1)?;
    assert_eq!(first.ptr(Rank(0), 0).offset().0, 0);
    Ok(world.finalize()?)
}

fn check_marks(world: &World, v: &SharedArray<u32>, mark: u32) {
    let mut here = vec![77; v.len()];
    v.read_into(world, 0, &mut here);
    assert!(here.iter().all(|value| *value == mark));
}

fn over_limit() -> Done {
    let world = World::init()?;
    for len in [(2usize << 20) + 1, 1 << 40, usize::MAX] {
        let Err(error) = SharedArray::<u64>::alloc(&world, len) else {
            panic!("{len} is too long");
        };
        assert!(matches!(error, Error::Heap { rank, .. } if rank == world.rank()));
        let text = error.to_string();
        let wanted = (len as u64).saturating_mul(8);
        assert!(
            text.contains(&format!("{wanted} bytes do not fit")),
            "{text}"
        );
        assert!(text.contains("GASNET_MAX_SEGSIZE"), "{text}");
    }
    grow_on(&world)
}

fn over_memory() -> Done {
    let world = World::init()?;
    let wanted = 1u64 << 42;
    let Err(error) = SharedArray::<u8>::alloc(&world, usize::try_from(wanted)?) else {
        panic!("4 TiB are too much");
    };
    let Error::Segment(SegmentError::NotEnoughMemory {
        needed,
        available,
        ranks,
        ..
    }) = &error
    else {
        panic!("{error}");
    };
    assert!(*available < *needed && *ranks == world.size());
    let text = error.to_string();
    assert!(
        text.contains(&format!("({needed} bytes)"))
            && text.contains(&format!("({available} bytes)"))
    );
    // The same numbers on all ranks.
    let mut low = [*needed, *available];
    world.reduce_all(argonet::Reduction::Min, &mut low)?;
    assert_eq!(low, [*needed, *available]);
    grow_on(&world)
}

/// The job goes on after an error.
fn grow_on(world: &World) -> Done {
    let v = SharedArray::<u64>::alloc(world, 1000)?;
    assert_eq!(v.ptr(Rank(0), 0).offset().0, 0, "nothing was taken");
    world.put_value(v.ptr(world.rank_offset(1), 999), 4)?;
    world.barrier()?;
    assert_eq!(v.read(world, 999), 4);
    Ok(v.free(world)?)
}

/// An allocation on one rank while the other reduces.
fn other_call() -> Done {
    let world = World::init()?;
    if world.rank().0 == 0 {
        SharedArray::<u64>::alloc(&world, 6)?;
    } else {
        world.reduce_all(argonet::Reduction::Sum, &mut [1u64; 4])?;
    }
    world.barrier()?;
    Ok(())
}

fn mismatch() -> Done {
    let world = World::init()?;
    let odd = world.rank().0 + 1 == world.size();
    let differs = |result: argonet::Result<()>| {
        let Err(error) = result else {
            panic!("arguments differ");
        };
        assert!(
            matches!(error, Error::Mismatch { rank, .. } if rank == world.rank()),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("is collective, but the ranks' arguments differ")
        );
    };
    differs(SharedArray::<u64>::alloc(&world, if odd { 9 } else { 10 }).map(drop));
    let too_long = if odd { usize::MAX } else { 10 };
    differs(SharedArray::<u64>::alloc(&world, too_long).map(drop));
    let (a, b) = (
        SharedArray::<u64>::alloc(&world, 5)?,
        SharedArray::<u64>::alloc(&world, 50)?,
    );
    // Different arrays, and an array against a new one.
    differs(if odd { a.free(&world) } else { b.free(&world) });
    let c = SharedArray::<u64>::alloc(&world, 6)?;
    differs(if odd {
        c.free(&world)
    } else {
        SharedArray::<u64>::alloc(&world, 6).map(drop)
    });
    let d = SharedArray::<u64>::alloc(&world, 8)?;
    world.put_value(d.ptr(world.rank_offset(1), 7), 3)?;
    world.barrier()?;
    assert_eq!(d.read(&world, 7), 3);
    Ok(world.finalize()?)
}

fn start() -> Done {
    Ok(World::init()?.finalize()?)
}

fn start_sizes() -> Done {
    let first = std::env::var("ARGONET_BOOT").is_ok_and(|boot| boot.starts_with("2:0:"));
    let builder = World::builder().segment_bytes(if first { 1 << 20 } else { 2 << 20 });
    let world = builder.build()?;
    let _ = SharedArray::<u8>::alloc(&world, 3 << 19)?;
    Ok(world.finalize()?)
}

fn bad_settings() {
    for value in [
        "0",
        "-1",
        "lots",
        "1XB",
        "1.5",
        "16EB",
        "99999999999999999999",
    ] {
        let outcome = Job::launched(2, "start")
            .env("ARGONET_SEGMENT", value)
            .run();
        outcome.failed(&[&format!(
            "ARGONET_SEGMENT is \"{value}\"; allowed: a size from 1 B"
        )]);
    }
    // A size, but none that a segment can have.
    let outcome = Job::launched(2, "start")
        .env("ARGONET_SEGMENT", "18446744073709551615")
        .run();
    outcome.failed(&["ARGONET_SEGMENT is \"18446744073709551615\"; allowed"]);
    for value in ["0", "-1", "1.5", "half", "64MB/X", "/P", "0/H"] {
        let outcome = Job::launched(2, "start")
            .env("GASNET_MAX_SEGSIZE", value)
            .run();
        outcome.failed(&[
            &format!("GASNET_MAX_SEGSIZE is \"{value}\" ("),
            "; allowed: a size (64.5MB",
        ]);
    }
    for value in ["1", "4096", "1 MB", "64.5MB", "1GiB"] {
        let outcome = Job::launched(2, "start")
            .env("ARGONET_SEGMENT", value)
            .run();
        outcome.well();
    }
    for value in ["64MB/P", "1GB/H", "0.5", "0.01/P", "67108864"] {
        let outcome = Job::launched(2, "start")
            .env("GASNET_MAX_SEGSIZE", value)
            .run();
        outcome.well();
    }
    // More than the limit allows.
    let job = Job::launched(2, "start").env("ARGONET_SEGMENT", "64MB");
    let outcome = job.env("GASNET_MAX_SEGSIZE", "1MB/P").run();
    outcome.failed(&["exceeds the limit of", "GASNET_MAX_SEGSIZE"]);
}
