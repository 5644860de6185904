//! Quiet phases: everything is handled before, nothing runs during, slices see it all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use argonet::{Rank, SharedArray, World};

use crate::support::{Done, Job, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("quiet_after_one_way_messages", || {
        each(&SIZES, "quiet-drains");
    }),
    ("quiet_slices_see_all_puts", || each(&SIZES, "quiet-slices")),
    ("quiet_is_not_left_by_barriers_of_others", || {
        let names = ["a quiet phase", "a barrier of all ranks"];
        let outcome = Job::launched(2, "quiet-against-barriers")
            .run()
            .failed(&names);
        assert_eq!(outcome.out, "", "{outcome:#?}");
    }),
    ("quiet_panic_ends_the_job", || {
        let outcome = Job::launched(3, "quiet-panic").run();
        outcome.failed(&["on purpose", "rank 1", "panicked inside a quiet phase"]);
    }),
    ("quiet_with_64_ranks", || {
        let job = Job::launched(64, "quiet-slices").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("quiet-drains", drains),
    ("quiet-slices", slices),
    ("quiet-against-barriers", against_barriers),
    ("quiet-panic", panics),
];

fn drains() -> Done {
    let handled = Arc::new(AtomicU64::new(0));
    let replied = Arc::new(AtomicU64::new(0));
    let is_quiet = Arc::new(AtomicBool::new(false));
    let mut builder = World::builder();
    let back = builder.am("back", {
        let (replied, is_quiet) = (Arc::clone(&replied), Arc::clone(&is_quiet));
        move |_, _: u32| {
            assert!(
                !is_quiet.load(Ordering::Relaxed),
                "a handler in a quiet phase"
            );
            replied.fetch_add(1, Ordering::Relaxed);
        }
    });
    let request = builder.am("request", {
        let (handled, is_quiet) = (Arc::clone(&handled), Arc::clone(&is_quiet));
        move |ctx, answer: u32| {
            assert!(
                !is_quiet.load(Ordering::Relaxed),
                "a handler in a quiet phase"
            );
            handled.fetch_add(1, Ordering::Relaxed);
            if answer != 0 {
                ctx.reply_medium(&back, 1, &[7; 3000]).expect("a reply");
            }
        }
    });
    let mut world = builder.build()?;
    let size = u64::from(world.size());
    let (mut sent, mut wanted) = (0, 0);
    for round in 0..40u64 {
        // The first messages of a round are sent while others are still in the last phase.
        for to in world.ranks() {
            for i in 0..50 {
                let answer = u32::from(i % 3 == 0);
                world.send_medium(to, &request, answer, &vec![1u8; (round * 31 + i) as usize])?;
                sent += 1;
                wanted += u64::from(answer);
            }
        }
        is_quiet_phase(&mut world, &is_quiet, |world_size| {
            assert_eq!(world_size, size);
            // All ranks send as many, so these are the numbers for each.
            assert_eq!(handled.load(Ordering::Relaxed), sent);
            assert_eq!(replied.load(Ordering::Relaxed), wanted);
        })?;
    }
    Ok(world.finalize()?)
}

fn is_quiet_phase(
    world: &mut World,
    is_quiet: &AtomicBool,
    check: impl FnOnce(u64),
) -> argonet::Result<()> {
    let size = u64::from(world.size());
    world.quiet(|_| {
        is_quiet.store(true, Ordering::Relaxed);
        check(size);
        is_quiet.store(false, Ordering::Relaxed);
    })
}

fn slices() -> Done {
    let mut world = World::init()?;
    let size = world.size() as usize;
    let mut v = SharedArray::<u32>::alloc(&world, size)?;
    let mut w = SharedArray::<u32>::alloc(&world, size)?;
    let me = world.rank().0;
    for round in 0..if size > 8 { 3 } else { 200 } {
        for to in world.ranks() {
            world.put_value(v.ptr(to, me as usize), round * 1000 + me)?;
        }
        let sum = world.quiet(|q| {
            let (v, w) = (v.local_mut(q), w.local_mut(q));
            for (from, value) in v.iter_mut().enumerate() {
                assert_eq!(*value, round * 1000 + from as u32);
                *value = 0;
            }
            w.fill(round + me);
            w.iter().sum::<u32>()
        })?;
        assert_eq!(sum, (round + me) * size as u32);
        for to in world.ranks() {
            let got = world.get_value(w.ptr(to, size - 1))?;
            assert_eq!(got, round + to.0);
        }
        let local = world.quiet(|q| v.local(q).iter().all(|value| *value == 0))?;
        assert!(local, "no rank writes between the phases");
    }
    Ok(world.finalize()?)
}

/// Rank 1 calls as many barriers as a quiet phase of the others begins with.
///
/// This is wrong, and must not let it write memory that rank 0 holds as a slice: the job ends, and
/// names both calls.
fn against_barriers() -> Done {
    let mut world = World::init()?;
    let mut v = SharedArray::<u64>::alloc(&world, 1)?;
    if world.rank() == Rank(0) {
        world.quiet(|q| {
            println!("in a phase");
            v.local_mut(q).fill(1);
        })?;
    } else {
        for _ in 0..3 {
            world.barrier()?;
        }
        world.drain()?;
        println!("past the barriers");
    }
    Ok(())
}

fn panics() -> Done {
    let mut world = World::init()?;
    let mut v = SharedArray::<u64>::alloc(&world, 1)?;
    let odd = world.rank() == Rank(1);
    let phase = std::panic::AssertUnwindSafe(|| {
        world.quiet(|q| {
            assert!(!odd, "on purpose");
            v.local_mut(q).fill(5);
        })
    });
    // A program that catches the panic must not go on: others may still hold slices.
    let _ = std::panic::catch_unwind(phase);
    for to in world.ranks() {
        world.put_value(v.ptr(to, 0), 1)?;
    }
    Ok(world.finalize()?)
}
