//! Begin and end of jobs.

use std::collections::BTreeSet;

use argonet::{Error, Rank, Reduction, SharedArray, StartError, World};

use crate::support::{Done, Job, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("lifecycle_finalize_is_not_the_end_of_the_process", || {
        each(&SIZES, "goes-on");
    }),
    ("lifecycle_dropping_the_world_finalizes", || {
        each(&SIZES, "drop");
    }),
    ("lifecycle_exit_code_passes", || {
        let outcome = Job::launched(3, "exit-code").run();
        assert_eq!(outcome.code(), Some(42), "{outcome:#?}");
        let outcome = Job::self_started(3, "exit-code").run();
        assert_eq!(outcome.code(), Some(42), "{outcome:#?}");
    }),
    ("lifecycle_a_panic_ends_the_job", || {
        for outcome in [
            Job::launched(3, "panic").run(),
            Job::self_started(3, "panic").run(),
        ] {
            outcome.failed(&["on purpose", "rank 1"]);
        }
    }),
    ("lifecycle_a_panic_in_a_handler_ends_the_job", || {
        let outcome = Job::launched(3, "handler-panic").run();
        assert_eq!(outcome.code(), Some(101), "{outcome:#?}");
        outcome.failed(&["on purpose", "rank 2", " of a message from rank"]);
    }),
    ("lifecycle_one_world_a_process", || {
        each(&[1, 2, 3], "second-world");
    }),
    ("lifecycle_different_handlers", || {
        for program in ["other-handler", "other-function", "fewer-handlers"] {
            let outcome = Job::launched(3, program).run();
            outcome.failed(&["rank 2 registered other handlers or functions than rank 0"]);
        }
    }),
    ("lifecycle_bad_handlers", || {
        let outcome = Job::launched(2, "same-name").run();
        outcome.failed(&["two handlers or functions are registered under the name `twin`"]);
        let outcome = Job::launched(2, "too-many-handlers").run();
        outcome.failed(&["no handler index is left for `", "all 128"]);
    }),
    ("lifecycle_memory_of_64_ranks", memory),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("goes-on", goes_on),
    ("drop", dropped),
    ("exit-code", exit_code),
    ("panic", panics),
    ("handler-panic", handler_panic),
    ("second-world", second_world),
    ("other-handler", || {
        build(|builder, odd| drop(builder.am(if odd { "x" } else { "y" }, |_, _: u32| {})))
    }),
    ("other-function", || {
        build(|builder, odd| {
            let _ = builder.rpc(if odd { "x" } else { "y" }, |(): ()| ());
        })
    }),
    ("fewer-handlers", || {
        build(|builder, odd| {
            if !odd {
                let _ = builder.am("x", |_, _: u32| {});
            }
        })
    }),
    ("same-name", || {
        build(|builder, _| {
            let _ = builder.am("twin", |_, _: u32| {});
            let _ = builder.am("twin", |_, _: u64| {});
        })
    }),
    ("too-many-handlers", || {
        build(|builder, _| {
            for i in 0..129 {
                let name: &'static str = format!("handler {i}").leak();
                let _ = builder.am(name, |_, _: u32| {});
            }
        })
    }),
    ("memory", resident),
];

fn goes_on() -> Done {
    let world = World::init()?;
    let rank = world.rank();
    let mut sum = [rank.0];
    world.reduce_all(Reduction::Sum, &mut sum)?;
    world.finalize()?;
    // Rank 0 ends last, the others at different times.
    let mut x = u64::from(sum[0]) + 1;
    for i in 0..200_000 * (1 + u64::from(rank.0 == 0)) {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
    }
    assert_ne!(std::hint::black_box(x), 0);
    Ok(())
}

fn dropped() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u32>::alloc(&world, 1)?;
    world.put_value(v.ptr(world.rank_offset(1), 0), 1)?;
    drop(world);
    // An array that outlives its world can be dropped.
    assert_eq!(v.len(), 1);
    Ok(())
}

fn exit_code() -> Done {
    let world = World::init()?;
    let rank = world.rank();
    world.finalize()?;
    std::process::exit(if rank == Rank(1) { 42 } else { 0 });
}

fn panics() -> Done {
    let world = World::init()?;
    assert_ne!(world.rank(), Rank(1), "on purpose");
    world.barrier()?;
    Ok(world.finalize()?)
}

fn handler_panic() -> Done {
    let mut builder = World::builder();
    let fail = builder.am("fail", |_, n: u32| assert_ne!(n, 7, "on purpose"));
    let world = builder.build()?;
    world.send(Rank(2), &fail, 7)?;
    world.barrier()?;
    Ok(world.finalize()?)
}

fn second_world() -> Done {
    let world = World::init()?;
    let refused = |rank: Rank| {
        let Err(error) = World::init() else {
            panic!("a second world");
        };
        assert!(
            matches!(error, Error::Start(StartError::SecondWorld { rank: r }) if r == rank),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(&format!("rank {rank}: this process has a world")),
            "{text}"
        );
    };
    let rank = world.rank();
    refused(rank);
    world.barrier()?;
    world.finalize()?;
    refused(rank);
    Ok(())
}

/// Builds a world with handlers that are others on the last rank of three.
pub(crate) fn build(register: impl FnOnce(&mut argonet::Builder, bool)) -> Done {
    let odd = std::env::var("ARGONET_BOOT").is_ok_and(|boot| boot.starts_with("2:2:"));
    let mut builder = World::builder();
    register(&mut builder, odd);
    Ok(builder.build()?.finalize()?)
}

fn memory() {
    let names = || -> BTreeSet<_> {
        let dir = std::fs::read_dir("/dev/shm");
        let entries = dir.into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().contains("argonet"))
            .collect()
    };
    let before = names();
    let job = Job::launched(64, "memory").env("ARGONET_SEGMENT", "4096");
    let outcome = job.run().well();
    assert!(names().is_subset(&before), "nothing is left in /dev/shm");
    let kib = |line: &str| line.strip_prefix("resident ")?.parse::<u64>().ok();
    let all: Vec<u64> = outcome.out.lines().filter_map(kib).collect();
    assert_eq!(all.len(), 64);
    let most = all.iter().max().expect("64 of them");
    println!("most memory of 64 ranks: {most} KiB, without that of files");
    // The goal is 6 MiB for a program that only uses argonet, with its text, as `argonet perf`
    // measures it (memory-64). The touched part of a program's file depends on the linker's
    // placement, and this one holds all the tests. Ranks take steps of 64 KiB, and 12 for the
    // addresses of each conduit that the loader fills in.
    assert!(*most < 2320, "{most} KiB: {all:?}");
}

/// Resident memory of this process in KiB, private and shared, without that of files: of those the
/// kernel maps what lies around a page too.
fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let own = kib("RssAnon:").zip(kib("RssShmem:"));
    Ok(own
        .map(|(own, shared)| own + shared)
        .ok_or("no RssAnon, RssShmem")?)
}

/// Says hello, and how much memory it then has.
fn resident() -> Done {
    let world = World::init()?;
    world.barrier()?;
    let mut sum = [1u32];
    world.reduce_all(Reduction::Sum, &mut sum)?;
    assert_eq!(sum[0], world.size());
    world.barrier()?;
    println!("resident {}", resident_kib()?);
    Ok(world.finalize()?)
}
