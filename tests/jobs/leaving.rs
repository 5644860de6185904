//! Ranks that leave while others wait: by an error, by dropping their world, and rightly.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use argonet::{Par, Rank, Reduction, Result, SegmentOffset, SharedArray, World, raw};

use crate::support::{Done, Job, Outcome, Program, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("leaving_by_an_error_prints_it_and_ends_the_job", errors),
    ("leaving_over_hosts", over_hosts),
    ("leaving_with_an_error_of_any_type", types_of_errors),
    ("leaving_while_tasks_have_the_world_is_an_error", kept),
    ("leaving_well_returns_the_value_of_the_program", values),
    ("leaving_when_joining_fails_says_why", || {
        let job = Job::launched(2, "run-twin").run();
        only(
            &job,
            &["argonet: two handlers or functions are registered under the name `twin`"],
        );
        assert_eq!(job.code(), Some(1), "{job:#?}");
    }),
    ("leaving_by_a_panic_ends_the_job", || {
        let outcome = Job::launched(3, "run-panic").run();
        assert_eq!(outcome.code(), Some(101), "{outcome:#?}");
        outcome.failed(&["on purpose", "argonet: rank 1 (pid "]);
    }),
    ("leaving_while_others_wait_names_both", dropped),
    ("leaving_by_finalize_while_others_wait_names_both", || {
        let outcome = Job::launched(3, "finalize-barrier").run();
        blamed(&outcome, 2, "it has finalized", "in a barrier");
    }),
    ("leaving_while_a_thread_of_many_waits_names_both", || {
        let outcome = Job::launched(3, "drop-par").run();
        blamed(&outcome, 2, "its world was dropped", "in a barrier");
    }),
    ("leaving_with_a_thread_that_computes_names_both", || {
        let outcome = Job::launched(3, "drop-par-thread").run();
        blamed(&outcome, 2, "its world was dropped", "in a barrier");
    }),
    ("leaving_early_is_allowed_while_others_can_go_on", || {
        for program in [
            "leave-computes",
            "leave-third",
            "leave-thread",
            "leave-timeout",
            "leave-woken",
            "leave-ring",
            "leave-condition-puts",
            "leave-future-puts",
        ] {
            each(&[3], program);
        }
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("run-barrier", || failing(|world| world.barrier())),
    ("run-reduction", || failing(reduction)),
    ("run-condition", || {
        failing(|world| world.wait_until(|| false))
    }),
    ("run-computes", || failing(|_| spin())),
    ("run-finalize", || failing(|_| Ok(()))),
    ("run-par", failing_par),
    ("run-shared", failing_shared),
    ("run-kept", keeping),
    ("run-boxed", || {
        run_with(Box::<dyn std::error::Error>::from("a box on purpose"))
    }),
    ("run-string", || {
        run_with(String::from("a string on purpose"))
    }),
    ("run-text", || run_with("a text on purpose")),
    ("run-io", || {
        run_with(std::io::Error::other("an i/o error on purpose"))
    }),
    ("run-values", run_values),
    ("run-twin", || {
        let mut builder = World::builder();
        let _ = builder.am("twin", |_, _: u32| {});
        let _ = builder.am("twin", |_, _: u64| {});
        builder.run(|world| world.barrier());
        Ok(())
    }),
    ("run-panic", || {
        argonet::run(|world| {
            assert_ne!(world.rank(), Rank(1), "on purpose");
            world.barrier()
        });
        Ok(())
    }),
    ("drop-barrier", || leaving(|world| world.barrier())),
    ("drop-reduction", || leaving(reduction)),
    ("drop-long-reduction", || {
        leaving(|world| world.reduce_all(Reduction::Sum, &mut vec![1u64; 100_000]))
    }),
    ("drop-condition", || {
        leaving(|world| world.wait_until(|| false))
    }),
    ("drop-signal", || {
        leaving(|world| {
            // A word that no rank changes.
            let word = raw::global_ptr(world.rank(), SegmentOffset(0));
            world.wait_signal(word, |value| value == u64::MAX).map(drop)
        })
    }),
    ("drop-load", || {
        leaving(|world| {
            // A word that no rank writes.
            let word = raw::global_ptr::<u64>(world.rank(), SegmentOffset(0));
            let get = || world.get_value(word).expect("a get");
            let load = || world.atomic_load(word).expect("a load");
            world.wait_until(|| get() + load() == u64::MAX)
        })
    }),
    ("drop-future", || {
        leaving(|world| world.block_on(core::future::pending()))
    }),
    ("drop-started", || {
        leaving(|world| {
            let all = world.collectives();
            all.start_barrier()?.wait()
        })
    }),
    ("drop-drain", || leaving(|world| world.drain())),
    ("drop-quiet", || leaving(|world| world.quiet(|_| ()))),
    ("drop-allocation", || {
        leaving(|world| SharedArray::<u64>::alloc(world, 9).map(drop))
    }),
    ("drop-chain", chain),
    ("drop-spin", || {
        leaving(|world| {
            world.set_wait_mode(argonet::WaitMode::Spin);
            world.barrier()
        })
    }),
    ("finalize-barrier", || {
        let world = World::init()?;
        if is_last(&world) {
            return Ok(world.finalize()?);
        }
        Ok(world.barrier()?)
    }),
    ("drop-par", leaving_par),
    ("drop-par-thread", leaving_par_with_a_thread),
    ("leave-computes", leave_computes),
    ("leave-third", leave_third),
    ("leave-thread", leave_thread),
    ("leave-timeout", leave_timeout),
    ("leave-woken", leave_woken),
    ("leave-ring", leave_ring),
    ("leave-condition-puts", || {
        leave_puts(|world, mut step| world.wait_until(&mut step))
    }),
    ("leave-future-puts", || {
        leave_puts(|world, mut step| {
            world.block_on(core::future::poll_fn(|_| match step() {
                true => core::task::Poll::Ready(Ok(())),
                false => core::task::Poll::Pending,
            }))
        })
    }),
];

fn is_last<M: argonet::Threading>(world: &World<M>) -> bool {
    world.rank().0 + 1 == world.size()
}

fn reduction(world: &mut World) -> Result<()> {
    world.reduce_all(Reduction::Sum, &mut [1u64])
}

fn spin() -> ! {
    loop {
        spin_loop();
    }
}

/// Long enough that ranks which leave have asked several times whether any rank can go on.
fn compute() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        black_box(());
    }
}

/// The last rank returns an error.
fn failing(others: impl FnOnce(&mut World) -> Result<()>) -> Done {
    argonet::run(|world| -> Result<()> {
        // All ranks have started.
        world.barrier()?;
        if is_last(world) {
            let nowhere = argonet::raw::global_ptr::<u64>(Rank(99), argonet::SegmentOffset(0));
            world.put_value(nowhere, 1)?;
        }
        others(world)
    });
    Ok(())
}

fn failing_par() -> Done {
    World::builder().run_par(|world| -> std::result::Result<(), String> {
        world.barrier().map_err(|e| e.to_string())?;
        thread::scope(|s| {
            s.spawn(|| match is_last(world) {
                true => Err("no rank 99 on purpose".into()),
                false => world.wait_until(|| false).map_err(|e| e.to_string()),
            })
            .join()
            .expect("no panic")
        })
    });
    Ok(())
}

/// The last rank fails while a task of it has the world, and those of others wait.
fn failing_shared() -> Done {
    World::builder().run_shared(|world| -> std::result::Result<(), String> {
        world.barrier().map_err(|e| e.to_string())?;
        let of_task = Arc::clone(world);
        let task = thread::spawn(move || of_task.wait_until(|| false));
        match is_last(world) {
            true => Err("no rank 99 on purpose".into()),
            false => task.join().expect("no panic").map_err(|e| e.to_string()),
        }
    });
    Ok(())
}

/// The program of the last rank returns while something of it has the world.
fn keeping() -> Done {
    World::builder().run_shared(|world| -> Result<()> {
        // A task that ends a bit later does not count.
        let late = Arc::clone(world);
        thread::spawn(move || late.wait_timeout(Duration::from_millis(50), || false));
        if is_last(world) {
            std::mem::forget(Arc::clone(world));
            let get = world.collectives().start_barrier()?;
            std::mem::forget(get.into_owned(world));
        }
        Ok(())
    });
    Ok(())
}

fn run_with<E: Into<Box<dyn std::error::Error>>>(error: E) -> Done {
    argonet::run(|world| match is_last(world) {
        true => Err(error),
        false => {
            world.barrier().expect("a barrier");
            Ok(())
        }
    });
    Ok(())
}

fn run_values() -> Done {
    let sum = argonet::run(|world| -> Result<u32> {
        let mut sum = [1];
        world.reduce_all(Reduction::Sum, &mut sum)?;
        let mut numbers = SharedArray::<u32>::alloc(world, 1)?;
        world.quiet(|q| numbers.local_mut(q).fill(sum[0]))?;
        Ok(numbers.read(world, 0))
    });
    let refused = World::init().err().map(|error| format!("{error:?}"));
    let refused = refused.expect("a second world");
    assert!(
        refused.contains("has a world already, or had one"),
        "{refused}"
    );
    println!("{sum} ranks");
    Ok(())
}

/// The last rank drops its world, and the others wait.
fn leaving(others: impl FnOnce(&mut World) -> Result<()>) -> Done {
    let mut world = World::init()?;
    world.barrier()?;
    if is_last(&world) {
        return Err("an error of a program whose job ends first".into());
    }
    Ok(others(&mut world)?)
}

static TOKENS: AtomicU32 = AtomicU32::new(0);

argonet::rpc! {
    fn take_token() -> () { TOKENS.fetch_add(1, Ordering::Relaxed); }
}

/// Waits for its turn, then gives it to the next rank.
fn pass_on(world: &World, turns: u32) -> Result<()> {
    for turn in 0..turns {
        if world.rank().0 > 0 || turn > 0 {
            world.wait_until(|| {
                TOKENS.load(Ordering::Relaxed) > turn - u32::from(world.rank().0 == 0)
            })?;
        }
        world.rpc(world.rank_offset(1), &take_token, ())?.wait()?;
    }
    Ok(())
}

/// A chain of calls around all ranks, which the last one leaves.
fn chain() -> Done {
    leaving(|world| pass_on(world, 3))
}

/// The same, whole: a rank leaves as soon as it has passed on its last turn.
fn leave_ring() -> Done {
    let world = World::init()?;
    Ok(pass_on(&world, 200)?)
}

fn leaving_par() -> Done {
    let world: World<Par> = World::builder().build_par()?;
    world.barrier()?;
    if is_last(&world) {
        return Ok(());
    }
    thread::scope(|s| s.spawn(|| world.barrier()).join().expect("no panic"))?;
    Ok(())
}

/// A thread of the rank that leaves goes on, and has no world.
fn leaving_par_with_a_thread() -> Done {
    let world: World<Par> = World::builder().build_par()?;
    world.barrier()?;
    if is_last(&world) {
        thread::spawn(|| spin());
        return Ok(());
    }
    Ok(world.barrier()?)
}

/// Answers the other rank once; whether the game is over.
type Play<'a> = Box<dyn FnMut() -> bool + 'a>;

/// Two ranks play with puts alone, each in one wait: they handle no message and end no wait, and go
/// on all the same.
fn leave_puts(wait: fn(&World, Play<'_>) -> Result<()>) -> Done {
    const LAST: u64 = u64::MAX;
    let world = World::init()?;
    let numbers = SharedArray::<u64>::alloc(&world, 1)?;
    world.barrier()?;
    let other = match world.rank() {
        Rank(rank @ 0..2) => Rank(1 - rank),
        _ => return Ok(()),
    };
    if world.rank() == Rank(0) {
        world.put_value(numbers.ptr(other, 0), 1)?;
    }
    let (begun, mut seen) = (Instant::now(), 0);
    let step = || {
        let number = numbers.read(&world, 0);
        if number == LAST || number == seen {
            return number == LAST;
        }
        seen = number;
        let is_last = begun.elapsed() > Duration::from_millis(1500);
        let next = if is_last { LAST } else { number + 1 };
        let put = world.put_value(numbers.ptr(other, 0), next);
        put.expect("a put");
        is_last
    };
    wait(&world, Box::new(step))?;
    Ok(())
}

/// A rank computes while the others leave, and leaves, too.
fn leave_computes() -> Done {
    let world = World::init()?;
    if is_last(&world) {
        compute();
        world.poll()?;
        compute();
    }
    Ok(())
}

/// Rank 0 leaves, rank 1 waits for a message of the last rank, which computes.
fn leave_third() -> Done {
    let world = World::init()?;
    if is_last(&world) {
        compute();
        world.rpc(Rank(1), &take_token, ())?.wait()?;
    } else if world.rank() == Rank(1) {
        world.wait_until(|| TOKENS.load(Ordering::Relaxed) == 1)?;
    }
    Ok(())
}

/// Rank 1 waits for a thread of its own, whose name does not matter.
fn leave_thread() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(1) {
        let builder = thread::Builder::new().name("argonet-heat".into());
        let thread = builder.spawn(compute)?;
        world.wait_until(|| thread.is_finished())?;
    }
    Ok(())
}

/// Rank 1 waits for some time.
fn leave_timeout() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(1) {
        assert!(!world.wait_timeout(Duration::from_millis(900), || false)?);
        while world.poll_timeout(Duration::from_millis(100))? > 0 {}
    }
    Ok(())
}

/// A future that computes in steps, and asks for the next one by waking itself.
fn leave_woken() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(1) {
        let begun = Instant::now();
        world.block_on(core::future::poll_fn(|cx| {
            let step = Instant::now();
            while step.elapsed() < Duration::from_millis(1) {
                spin_loop();
            }
            if begun.elapsed() > Duration::from_millis(1500) {
                return core::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            core::task::Poll::Pending
        }));
    }
    Ok(())
}

/// Standard error has lines of a rank that begin so, and the launcher's one.
#[track_caller]
fn only(outcome: &Outcome, begins: &[&str]) {
    let others = outcome.err.lines().filter(|line| {
        !line.starts_with("argonet run: ") && !begins.iter().any(|begin| line.starts_with(begin))
    });
    assert_eq!(others.count(), 0, "{outcome:#?}");
    let launcher = outcome
        .err
        .lines()
        .filter(|line| line.starts_with("argonet run: "));
    assert!(launcher.count() <= 1, "{outcome:#?}");
    for begin in begins {
        let lines = outcome.err.lines().filter(|line| line.starts_with(begin));
        assert!(lines.count() > 0, "{begin} in {outcome:#?}");
    }
}

fn errors() {
    let mut quickest = Duration::MAX;
    for program in [
        "run-barrier",
        "run-reduction",
        "run-condition",
        "run-computes",
        "run-finalize",
        "run-par",
        "run-shared",
    ] {
        for job in [Job::launched(3, program), Job::self_started(3, program)] {
            let begun = Instant::now();
            let outcome = job.run();
            quickest = quickest.min(begun.elapsed());
            let line = outcome.err.lines().next().unwrap_or_default();
            let is_error = line.starts_with("argonet: rank 2 (pid ") && line.contains("rank 99");
            assert!(is_error, "{outcome:#?}");
            let aborted = "rank 2 (pid ";
            let last = outcome.err.lines().nth(1).unwrap_or_default();
            assert!(
                last.contains(aborted) && last.contains("with code 1"),
                "{outcome:#?}"
            );
            assert_eq!(outcome.err.lines().count(), 2, "{outcome:#?}");
            assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
        }
    }
    // With the start of the job. A busy machine may take a while for one of them.
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");
}

/// Two agents are two hosts, by each conduit.
fn over_hosts() {
    for conduit in ["tcp", "portals", "usnic"] {
        let mut quickest = Duration::MAX;
        let mut job = |program| {
            let begun = Instant::now();
            let job = Job::over_conduit(conduit, 3, "a:2,b", program);
            let outcome = job.env("GASNET_SPAWNFN", "L").run();
            quickest = quickest.min(begun.elapsed());
            outcome
        };
        let outcome = job("run-condition");
        assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
        only(&outcome, &["argonet: rank 2 (pid "]);
        let outcome = outcome.failed(&["rank 99", "rank 2 (pid "]);
        assert_eq!(outcome.err.lines().count(), 2, "{outcome:#?}");
        let outcome = job("drop-condition");
        let what = "for a condition of the program";
        blamed(&outcome, 2, "its world was dropped", what);
        // With the start of both agents.
        assert!(quickest < Duration::from_secs(2), "{conduit}: {quickest:?}");
    }
}

fn types_of_errors() {
    for (program, message) in [
        ("run-boxed", "a box on purpose"),
        ("run-string", "a string on purpose"),
        ("run-text", "a text on purpose"),
        ("run-io", "an i/o error on purpose"),
    ] {
        let outcome = Job::launched(2, program).run();
        assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
        outcome.failed(&[message, "argonet: rank 1 (pid "]);
    }
    let alone = Job::self_started(1, "run-text").run();
    assert_eq!(alone.code(), Some(1), "{alone:#?}");
    only(&alone, &["argonet: rank 0 (pid "]);
}

fn kept() {
    let outcome = Job::launched(3, "run-kept").run();
    assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
    let why = "still have 2 clones of its `Arc<World>`";
    outcome.failed(&["argonet: rank 2 (pid ", why]);
}

fn values() {
    let outcome = Job::launched(3, "run-values").run().well();
    let says = outcome.out.lines().filter(|line| *line == "3 ranks");
    assert_eq!(says.count(), 3, "{outcome:#?}");
}

/// One line says that the rank has left and that rank 0 waits.
#[track_caller]
fn blamed(outcome: &Outcome, rank: u32, how: &str, waits: &str) {
    let begin = format!("argonet: rank {rank} (pid ");
    only(outcome, &[&begin]);
    let lines: Vec<_> = outcome
        .err
        .lines()
        .filter(|line| line.starts_with(&begin))
        .collect();
    assert_eq!(lines.len(), 1, "{outcome:#?}");
    let both = format!("{how}, but rank 0 waits {waits}");
    assert!(lines[0].contains(&both), "no \"{both}\" in {outcome:#?}");
    assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
}

fn dropped() {
    for (program, waits) in [
        ("drop-barrier", "in a barrier"),
        ("drop-reduction", "in a collective operation"),
        ("drop-long-reduction", "in a collective operation"),
        ("drop-condition", "for a condition of the program"),
        ("drop-load", "for a condition of the program"),
        ("drop-signal", "for a signal"),
        ("drop-future", "for a future"),
        ("drop-started", "for operations to complete"),
        ("drop-drain", "for everything under way to end"),
        ("drop-quiet", "at the begin or end of a quiet phase"),
        ("drop-allocation", ""),
        ("drop-chain", "for a condition of the program"),
        ("drop-spin", "in a barrier"),
    ] {
        let begun = Instant::now();
        let outcome = Job::launched(3, program).run();
        println!("{program} ends after {:?}", begun.elapsed());
        blamed(&outcome, 2, "its world was dropped", waits);
    }
    let outcome = Job::self_started(3, "drop-barrier").run();
    assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
    outcome.failed(&["its world was dropped, but rank 0 waits in a barrier"]);
}
