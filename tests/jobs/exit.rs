//! End of a job by a rank that asks for it: the cases that GASNet's own exit test lists, and more
//! of them.
//!
//! Every case runs launched and self-started, with 1, 2 and 4 ranks, and with the ranks' parts
//! reversed. The time-outs are short where they have to pass, and long where the ranks end
//! together, so that a slow machine changes nothing.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use argonet::engine::Injection;
use argonet::raw::PrepareRequest;
use argonet::{JobRank, Par, Rank, SharedArray, Threading, World};

use crate::support::{Done, Job, Outcome, Program, Test};

/// The rank that asks for the end of the job.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    /// All ranks: nothing is printed.
    All,
    /// The last rank.
    Last,
    /// Rank 0.
    First,
}

/// A program, the exit code of its job, the rank that ends it, and the reason in the message.
type Case = (&'static str, i32, Who, &'static str);

const CASES: &[Case] = &[
    ("exit-all", 1, Who::All, ""),
    ("leave-all", 2, Who::All, ""),
    ("exit-barrier", 3, Who::Last, "called exit(3)"),
    ("interrupt-barrier", 4, Who::Last, "called exit(4)"),
    ("exit-spin", 5, Who::Last, "called exit(5)"),
    ("leave-barrier", 8, Who::Last, "exited with code 8"),
    ("leave-spin", 9, Who::Last, "exited with code 9"),
    ("exit-handlers", 10, Who::All, ""),
    ("exit-handler", 11, Who::Last, "called exit(11)"),
    ("exit-own-handler", 12, Who::Last, "called exit(12)"),
    ("exit-handler-often", 13, Who::Last, "called exit(13)"),
    ("exit-prepared", 14, Who::Last, "called exit(14)"),
    ("exit-before-reply", 15, Who::Last, "called exit(15)"),
];

const THREAD_CASES: &[Case] = &[
    ("exit-threads", 51, Who::All, ""),
    ("exit-thread-barrier", 52, Who::First, "called exit(52)"),
    ("exit-thread-spin", 53, Who::First, "called exit(53)"),
    ("exit-thread-poll", 54, Who::First, "called exit(54)"),
    ("exit-thread-send", 55, Who::First, "called exit(55)"),
    ("exit-second-thread", 56, Who::Last, "called exit(56)"),
];

const STATE_CASES: &[Case] = &[
    ("exit-wait", 31, Who::Last, "called exit(31)"),
    ("exit-blocked", 32, Who::Last, "called exit(32)"),
    ("exit-reduction", 33, Who::Last, "called exit(33)"),
    ("exit-finalize", 34, Who::Last, "called exit(34)"),
    ("exit-finalized", 35, Who::Last, "called exit(35)"),
    ("exit-signal-handler", 36, Who::Last, "called exit(36)"),
    ("exit-others-stopped", 37, Who::Last, "called exit(37)"),
    ("exit-0-spin", 0, Who::Last, "called exit(0)"),
    ("exit-255", 255, Who::All, ""),
    ("exit-256", 0, Who::All, ""),
];

pub(crate) const TESTS: &[Test] = &[
    ("exit_cases_of_one_thread", || run(CASES)),
    ("exit_cases_of_many_threads", || run(THREAD_CASES)),
    ("exit_cases_by_the_state_of_other_ranks", || {
        run(STATE_CASES)
    }),
    ("exit_of_two_ranks_at_once_has_one_code", two_at_once),
    ("exit_flushes_streams_and_runs_exit_handlers", streams),
    (
        "exit_in_a_signal_handler_runs_no_exit_handler",
        streams_in_a_signal_handler,
    ),
    ("exit_calls_the_quit_handlers_of_programs", quit_handler),
    ("exit_not_caught_is_a_rank_s_own_affair", not_caught),
    ("exit_terminate_signal_ends_a_rank_that_loops", terminated),
    ("exit_by_a_crash_in_a_handler", crash_in_handler),
    ("exit_of_a_panic_that_is_caught", caught_panics),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("exit-all", || together(1)),
    ("leave-all", || {
        let world = joined(World::init()?)?;
        last_words();
        leave(world, 2)
    }),
    ("exit-barrier", || last(barrier, |_| argonet::exit(3))),
    ("interrupt-barrier", interrupted),
    ("exit-spin", || last(spin, |_| argonet::exit(5))),
    ("leave-barrier", || last(barrier, |world| leave(world, 8))),
    ("leave-spin", || last(spin, |world| leave(world, 9))),
    ("exit-handlers", || {
        by_handlers(10, |world| Some(world.rank()))
    }),
    ("exit-handler", || {
        by_handlers(11, |world| (world.rank().0 == 0).then(|| last_rank(world)))
    }),
    ("exit-own-handler", || {
        by_handlers(12, |world| is_last(world).then(|| world.rank()))
    }),
    ("exit-handler-often", || {
        by_handlers(13, |world| Some(last_rank(world)))
    }),
    ("exit-prepared", prepared),
    ("exit-before-reply", before_reply),
    ("exit-threads", || {
        threads(|_, _| {
            last_words();
            argonet::exit(51)
        })
    }),
    ("exit-thread-barrier", || {
        threads(|world, thread| match (world.rank().0, thread) {
            (0, 0) => argonet::exit(52),
            (0, 1) => barrier(world),
            (_, 0) => poll_for_ever(world),
            _ => spin(world),
        })
    }),
    ("exit-thread-spin", || {
        threads(|world, thread| match (world.rank().0, thread) {
            (0, 0) => argonet::exit(53),
            _ => spin(world),
        })
    }),
    ("exit-thread-poll", || {
        threads(|world, thread| match (world.rank().0, thread) {
            (0, 0) => argonet::exit(54),
            _ => poll_for_ever(world),
        })
    }),
    ("exit-thread-send", sending),
    ("exit-second-thread", || {
        last(barrier, |world| {
            thread::spawn(|| argonet::exit(56));
            spin(&world);
        })
    }),
    ("exit-wait", || {
        last(
            |world| world.wait_until(|| black_box(false)).expect("a wait"),
            |_| argonet::exit(31),
        )
    }),
    ("exit-blocked", || {
        last(|_| blocked(), |_| argonet::exit(32))
    }),
    ("exit-reduction", || {
        last(
            |world| drop(world.reduce_all(argonet::Reduction::Sum, &mut [1u32])),
            |_| argonet::exit(33),
        )
    }),
    ("exit-finalize", || {
        let world = joined(World::init()?)?;
        if is_last(&world) {
            argonet::exit(34);
        }
        Ok(world.finalize()?)
    }),
    ("exit-finalized", || {
        let world = joined(World::init()?)?;
        let last = is_last(&world);
        world.finalize()?;
        if last {
            argonet::exit(35);
        }
        blocked();
        Ok(())
    }),
    ("exit-signal-handler", || {
        last(spin, |world| {
            catch(libc::SIGUSR1, exit_36);
            raise(libc::SIGUSR1);
            spin(&world);
        })
    }),
    ("exit-others-stopped", || {
        last(
            |world| {
                raise(libc::SIGSTOP);
                spin(world);
            },
            |_| argonet::exit(37),
        )
    }),
    ("exit-0-spin", || last(spin, |_| argonet::exit(0))),
    ("exit-255", || together(255)),
    ("exit-256", || together(256)),
    ("exit-two", || {
        let world = joined(World::init()?)?;
        argonet::exit(21 + (world.rank().0 % 2) as i32)
    }),
    ("exit-streams-all", || {
        let world = joined(World::init()?)?;
        with_c_line();
        world.barrier()?;
        argonet::exit(0)
    }),
    ("exit-streams-one", || {
        let world = joined(World::init()?)?;
        with_c_line();
        world.barrier()?;
        if is_last(&world) {
            argonet::exit(0);
        }
        barrier(&world);
        Ok(())
    }),
    ("exit-streams-signal", || {
        let _world = World::init()?;
        with_c_line();
        catch(libc::SIGUSR1, exit_36);
        raise(libc::SIGUSR1);
        Err("went on after its end".into())
    }),
    ("exit-quit-handler", || {
        let world = joined(World::init()?)?;
        catch(libc::SIGQUIT, say_quit);
        world.barrier()?;
        if is_last(&world) {
            argonet::exit(17);
        }
        spin(&world);
        Ok(())
    }),
    ("leave-uncaught", || {
        let world = joined(World::init()?)?;
        // The last rank goes on for some exit time-outs.
        let begun = Instant::now();
        while is_last(&world) && begun.elapsed() < Duration::from_millis(500) {
            std::hint::spin_loop();
        }
        last_words();
        leave(world, 0)
    }),
    ("terminated", || {
        last(spin, |world| {
            thread::spawn(|| {
                let pid = rustix::process::getpid();
                rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            });
            spin(&world);
        })
    }),
    ("crash-handler", || {
        let mut builder = World::builder();
        let crash = builder.am("crash", |_, _: u32| std::process::abort());
        let world = joined(builder.build()?)?;
        if world.rank().0 == 0 {
            world.send(last_rank(&world), &crash, 0)?;
        }
        barrier(&world);
        barrier(&world);
        Ok(world.finalize()?)
    }),
    ("panic-caught", || {
        last(barrier, |world| {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _world = world;
                panic!("on purpose");
            }));
            assert!(caught.is_err());
            blocked();
        })
    }),
    ("panic-in-thread", || {
        let world = World::builder().build_par()?;
        world.barrier()?;
        if is_last(&world) {
            thread::scope(|scope| drop(scope.spawn(|| panic!("on purpose"))));
        }
        barrier(&world);
        Ok(())
    }),
];

/// Makes rank 0 do what else the last rank does: in a job that started itself it is the one with a
/// special part.
const REVERSED: &str = "ARGONET_TEST_REVERSED";

const LAST_WORDS: &str = "last words";

fn run(cases: &[Case]) {
    for &(program, code, who, reason) in cases {
        // Ranks that end together never wait for it.
        let timeout = if who == Who::All { "60" } else { "1" };
        for (ranks, reversed) in [(1, false), (2, false), (4, false), (3, true)] {
            if reversed && who != Who::Last {
                continue;
            }
            let who = if reversed { Who::First } else { who };
            for mut job in [
                Job::launched(ranks, program),
                Job::self_started(ranks, program),
            ] {
                if reversed {
                    job = job.env(REVERSED, "1");
                }
                let outcome = job.env("GASNET_EXITTIMEOUT", timeout).run();
                check(&outcome, (program, code, who, reason), ranks);
            }
        }
    }
}

fn check(outcome: &Outcome, (program, code, who, reason): Case, ranks: u32) {
    assert_eq!(outcome.code(), Some(code), "{program}: {outcome:#?}");
    let rank = match who {
        Who::All => {
            assert!(
                !outcome.err.contains("were ended"),
                "{program}: {outcome:#?}"
            );
            let words = outcome.out.matches(LAST_WORDS).count();
            assert!(words >= ranks as usize, "{program}: {outcome:#?}");
            return;
        }
        Who::First => 0,
        Who::Last => ranks - 1,
    };
    if ranks > 1 {
        let named = format!("rank {rank} (pid ");
        let report = |line: &str| {
            line.contains(&named)
                && line.contains(reason)
                && line.ends_with("; the other ranks were ended")
        };
        assert!(outcome.err.lines().any(report), "{program}: {outcome:#?}");
    }
}

fn joined<M: Threading>(world: World<M>) -> argonet::Result<World<M>> {
    world.barrier()?;
    Ok(world)
}

fn last_rank<M: Threading>(world: &World<M>) -> Rank {
    match std::env::var_os(REVERSED) {
        Some(_) => Rank(0),
        None => Rank(world.size() - 1),
    }
}

fn is_last<M: Threading>(world: &World<M>) -> bool {
    world.rank() == last_rank(world)
}

fn last_words() {
    println!("{LAST_WORDS}");
}

/// All ranks exit.
fn together(code: i32) -> Done {
    let _world = joined(World::init()?)?;
    last_words();
    argonet::exit(code)
}

/// The last rank does one thing, the others do another.
fn last(others: impl FnOnce(&World), last: impl FnOnce(World)) -> Done {
    let world = joined(World::init()?)?;
    if is_last(&world) {
        last(world);
    } else {
        others(&world);
    }
    Err("went on after its end".into())
}

/// Ends as a program in C that returns from main.
fn leave(world: World, code: i32) -> ! {
    std::mem::forget(world);
    std::process::exit(code)
}

fn barrier<M: Threading>(world: &World<M>) {
    world.barrier().expect("a barrier");
}

/// Computes forever without a call of the library.
fn spin<M: Threading>(_world: &World<M>) {
    while !black_box(false) {
        std::hint::spin_loop();
    }
}

fn poll_for_ever<M: Threading>(world: &World<M>) {
    loop {
        world.poll().expect("a poll");
    }
}

/// Waits forever without a call of the library.
fn blocked() {
    loop {
        thread::park();
    }
}

fn catch(signal: i32, handler: extern "C" fn(i32)) {
    // SAFETY: the handlers below are async-signal-safe.
    unsafe { libc::signal(signal, handler as *const () as usize) };
}

fn raise(signal: i32) {
    // SAFETY: a number, no memory.
    unsafe { libc::raise(signal) };
}

extern "C" fn exit_4(_signal: i32) {
    argonet::exit(4)
}

extern "C" fn exit_36(_signal: i32) {
    argonet::exit(36)
}

extern "C" fn say_quit(_signal: i32) {
    let line = b"the quit handler ran\n";
    let _ = rustix::io::write(rustix::stdio::stdout(), line);
}

/// An interrupt runs the program's handler of SIGQUIT, which may choose the code.
fn interrupted() -> Done {
    catch(libc::SIGQUIT, exit_4);
    // A shell's background job inherits that it is ignored, and then the library leaves it alone.
    // SAFETY: no handler.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    last(barrier, |world| {
        raise(libc::SIGINT);
        spin(&world);
    })
}

fn by_handlers(code: i32, target: impl Fn(&World) -> Option<Rank>) -> Done {
    let mut builder = World::builder();
    let exit = builder.am("exit", |_, code: i32| {
        last_words();
        argonet::exit(code)
    });
    let world = joined(builder.build()?)?;
    if let Some(to) = target(&world) {
        world.send(to, &exit, code)?;
    }
    poll_for_ever(&world);
    Ok(())
}

fn prepared() -> Done {
    let mut builder = World::builder();
    let noop = builder.am("noop", |_, _: u32| {});
    let world = joined(builder.build()?)?;
    let want = PrepareRequest {
        to: JobRank(world.rank_offset(1).0),
        class: argonet::raw::MessageClass::Request,
        nargs: 1,
        least: 0,
        most: 64,
        offset: None,
    };
    let room = world.raw().prepare(&want, Injection::Blocking)?;
    if is_last(&world) {
        argonet::exit(14);
    }
    world.raw().cancel(room);
    world.send(world.rank_offset(1), &noop, 0)?;
    poll_for_ever(&world);
    Ok(())
}

fn before_reply() -> Done {
    let mut builder = World::builder();
    let answer = builder.am("answer", |_, _: u32| {});
    let ask = builder.am("ask", move |ctx, exit: u32| {
        if exit == 1 {
            argonet::exit(15);
        }
        ctx.reply(&answer, 0).expect("a reply");
    });
    let world = joined(builder.build()?)?;
    let to = world.rank_offset(1);
    world.send(to, &ask, u32::from(to == last_rank(&world)))?;
    poll_for_ever(&world);
    Ok(())
}

/// Four threads of each rank do something, at once.
fn threads(f: impl Fn(&World<Par>, u32) + Sync) -> Done {
    let world = joined(World::builder().build_par()?)?;
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let (world, start, f) = (&world, &start, &f);
            scope.spawn(move || {
                start.wait();
                f(world, number);
            });
        }
    });
    Err("went on after its end".into())
}

fn sending() -> Done {
    let mut builder = World::builder();
    let answer = builder.am("answer", |_, _: u32| {});
    let ask = builder.am("ask", move |ctx, _: u32| {
        let payload = vec![1; ctx.payload().len()];
        ctx.reply_medium(&answer, 0, &payload).expect("a reply");
    });
    let world = joined(builder.build_par()?)?;
    let room = SharedArray::<u64>::alloc(&world, 4096)?;
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let (world, start, ask, room) = (&world, &start, &ask, &room);
            scope.spawn(move || {
                start.wait();
                if world.rank().0 == 0 && number == 0 {
                    argonet::exit(55);
                }
                let to = world.rank_offset(1);
                for round in 0.. {
                    let sent = match round % 4 {
                        0 => world.send(to, ask, 1),
                        1 => world.send_medium(to, ask, 1, &[0u32; 10_000]),
                        2 => (world.put(room.on(to).part(..4096), vec![7; 4096].into()))
                            .and_then(|op| op.wait().map(drop)),
                        _ => world.put_value(room.ptr(to, 3), 4),
                    };
                    sent.expect("sent");
                }
            });
        }
    });
    Err("went on after its end".into())
}

/// Leaves a line in C's buffer, and one to an exit handler.
fn with_c_line() {
    extern "C" fn at_exit() {
        let _ = rustix::io::write(rustix::stdio::stdout(), b"exit handler\n");
    }
    // SAFETY: a string that ends with 0; a function that lives as long as the process.
    unsafe {
        libc::puts(c"line of C".as_ptr());
        libc::atexit(at_exit);
    }
}

fn two_at_once() {
    for ranks in [2, 4] {
        for job in [
            Job::launched(ranks, "exit-two"),
            Job::self_started(ranks, "exit-two"),
        ] {
            let outcome = job.env("GASNET_EXITTIMEOUT", "60").run();
            assert!(matches!(outcome.code(), Some(21 | 22)), "{outcome:#?}");
            assert_eq!(outcome.err, "", "{outcome:#?}");
        }
    }
}

fn streams() {
    let check = |job: Job, ranks: usize, timeout| {
        let outcome = job.env("GASNET_EXITTIMEOUT", timeout).run();
        assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
        for line in ["line of C", "exit handler"] {
            assert_eq!(outcome.out.matches(line).count(), ranks, "{outcome:#?}");
        }
    };
    check(Job::launched(4, "exit-streams-all"), 4, "60");
    check(Job::self_started(4, "exit-streams-all"), 4, "60");
    // The others get the signal after a second, and have three more.
    check(Job::launched(3, "exit-streams-one"), 3, "4");
    check(Job::self_started(3, "exit-streams-one"), 3, "4");
}

/// In a signal handler no exit handler can run.
fn streams_in_a_signal_handler() {
    for job in [
        Job::launched(1, "exit-streams-signal"),
        Job::self_started(1, "exit-streams-signal"),
    ] {
        let outcome = job.run();
        assert_eq!(outcome.code(), Some(36), "{outcome:#?}");
        assert_eq!(outcome.out, "line of C\n", "{outcome:#?}");
    }
}

fn quit_handler() {
    for job in [
        Job::launched(3, "exit-quit-handler"),
        Job::self_started(3, "exit-quit-handler"),
    ] {
        let outcome = job.env("GASNET_EXITTIMEOUT", "4").run();
        assert_eq!(outcome.code(), Some(17), "{outcome:#?}");
        assert_eq!(
            outcome.out.matches("the quit handler ran").count(),
            2,
            "{outcome:#?}"
        );
    }
}

fn not_caught() {
    for job in [
        Job::launched(4, "leave-uncaught"),
        Job::self_started(4, "leave-uncaught"),
    ] {
        let job = job
            .env("GASNET_CATCH_EXIT", "0")
            .env("GASNET_EXITTIMEOUT", "0.1");
        let outcome = job.run();
        assert_eq!(
            (outcome.code(), outcome.err.as_str()),
            (Some(0), ""),
            "{outcome:#?}"
        );
        assert_eq!(outcome.out.matches(LAST_WORDS).count(), 4, "{outcome:#?}");
    }
}

fn terminated() {
    for ranks in [1, 2, 4] {
        for job in [
            Job::launched(ranks, "terminated"),
            Job::self_started(ranks, "terminated"),
        ] {
            let outcome = job.env("GASNET_EXITTIMEOUT", "1").run();
            assert_eq!(outcome.code(), Some(143), "{outcome:#?}");
            if ranks > 1 {
                outcome.says(&[&format!("rank {} (pid ", ranks - 1), "SIGTERM"]);
            }
        }
    }
}

fn crash_in_handler() {
    for job in [
        Job::launched(3, "crash-handler"),
        Job::self_started(3, "crash-handler"),
    ] {
        let outcome = job.run();
        assert_eq!(outcome.code(), Some(134), "{outcome:#?}");
        let why = "was killed by signal 6 (SIGABRT); the other ranks were ended";
        outcome.says(&["rank 2 (pid ", why]);
    }
}

fn caught_panics() {
    for program in ["panic-caught", "panic-in-thread"] {
        for job in [Job::launched(3, program), Job::self_started(3, program)] {
            let outcome = job.run();
            assert_eq!(outcome.code(), Some(101), "{outcome:#?}");
            outcome.says(&["on purpose", "rank 2 (pid ", "a panic left its world"]);
        }
    }
}
