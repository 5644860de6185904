//! Waits of ranks: their cost, the modes, and the reports on ranks that wait long.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use argonet::{Rank, WaitMode, World};
use rustix::process::{Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::support::{Done, Job, Program, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("waiting_idle_ranks_cost_nothing", || {
        each(&[1, 2, 8], "idle");
    }),
    ("waiting_idle_threads_cost_nothing", || {
        for conduit in ["smp", "tcp", "portals", "usnic"] {
            let job = Job::launched(2, "idle-threads").env("ARGONET_CONDUIT", conduit);
            let apart = if conduit == "smp" { "0" } else { "1" };
            job.env("GASNET_SUPERNODE_MAXSIZE", apart).run().well();
        }
    }),
    ("waiting_for_room_costs_next_to_nothing", || {
        Job::launched(2, "no-room").run().well();
    }),
    ("waiting_many_ranks_on_few_processors", || {
        for ranks in [8, 64] {
            let job = Job::launched(ranks, "crowd").env("ARGONET_SEGMENT", "4096");
            job.run().well();
        }
    }),
    ("waiting_in_every_mode", || each(&[1, 2, 3], "modes")),
    ("waiting_threads_in_a_crowd", || {
        each(&[2, 3], "crowd-of-threads")
    }),
    (
        "waiting_a_poll_ends_at_its_time_or_when_something_comes",
        || {
            each(&[1, 2, 3], "deadlines");
        },
    ),
    ("waiting_report_on_a_signal_to_the_launcher", || {
        reported(Job::launched(3, "stuck"));
    }),
    (
        "waiting_report_on_a_signal_to_a_job_that_started_itself",
        || {
            reported(Job::self_started(3, "stuck"));
        },
    ),
    ("waiting_too_long_makes_all_ranks_report", stalled),
    ("waiting_for_ever_is_allowed", || {
        let job = Job::launched(2, "idle").env("ARGONET_STALL_TIMEOUT", "0");
        job.run().well();
    }),
    ("waiting_of_all_ranks_is_reported_at_a_fatal_error", || {
        let outcome = Job::launched(2, "fatal-while-others-wait").run();
        outcome.failed(&[
            "rank 0 (pid ",
            "panicked: ",
            "waits in a barrier for rank 0 since",
            "with rank 1: requests",
        ]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("idle", idle),
    ("idle-threads", idle_threads),
    ("no-room", no_room),
    ("crowd", || {
        let world = World::init()?;
        for _ in 0..50 {
            world.barrier()?;
        }
        Ok(world.finalize()?)
    }),
    ("modes", modes),
    ("crowd-of-threads", crowd_of_threads),
    ("deadlines", deadlines),
    ("stuck", stuck),
    ("fatal-while-others-wait", fatal_while_others_wait),
];

/// Processor time that this process has used.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time of `f`, and the time that it takes.
fn cost(f: impl FnOnce() -> Done) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let (busy_before, begun) = (busy(), Instant::now());
    f()?;
    Ok((busy() - busy_before, begun.elapsed()))
}

/// A rank that waits costs less than 1 % of a processor, after a phase of spinning that a short
/// wait has too.
fn idle() -> Done {
    let world = World::init()?;
    world.barrier()?;
    let wait = |time| {
        let end = Instant::now() + time;
        cost(|| {
            // Ranks that finish a barrier later may still wake this one.
            while let Some(left) = end.checked_duration_since(Instant::now()) {
                world.poll_timeout(left)?;
            }
            Ok(())
        })
    };
    let (short, _) = wait(Duration::from_millis(100))?;
    let (long, taken) = wait(Duration::from_secs(2))?;
    let share = long.saturating_sub(short).as_secs_f64() / taken.as_secs_f64();
    assert!(
        share < 0.01,
        "{long:?} of processor time in {taken:?}, {short:?} in 100 ms"
    );
    Ok(world.finalize()?)
}

/// The same for several threads of a rank, of which each has been woken.
fn idle_threads() -> Done {
    let woken = Arc::new(AtomicU32::new(0));
    let mut builder = World::builder();
    let wake = builder.am("wake", {
        let woken = Arc::clone(&woken);
        move |_, _: u32| _ = woken.fetch_add(1, Ordering::Relaxed)
    });
    let world = builder.build_par()?;
    world.set_wait_mode(WaitMode::Sleep);
    world.barrier()?;
    // The other rank may be ahead, and have sent for the second time.
    let wait = |time, messages| {
        cost(|| {
            std::thread::scope(|scope| {
                let waits = || {
                    let come = || woken.load(Ordering::Relaxed) >= messages;
                    world.wait_until(come).expect("a wait");
                    assert!(!world.wait_timeout(time, || false).expect("a wait"));
                };
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(waits)).collect();
                world.send(world.rank_offset(1), &wake, 0).expect("room");
                // ThreadSanitizer sees a join, but not the end of a scope.
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().expect("a thread"));
            });
            Ok(())
        })
    };
    let (short, _) = wait(Duration::from_millis(50), 1)?;
    let (long, taken) = wait(Duration::from_secs(1), 2)?;
    let share = long.saturating_sub(short).as_secs_f64() / taken.as_secs_f64();
    assert!(
        share < 0.03,
        "{long:?} of processor time in {taken:?}, {short:?} in 50 ms"
    );
    Ok(world.finalize()?)
}

/// The same for a rank that waits for room at a peer that does not poll.
fn no_room() -> Done {
    let mut builder = World::builder();
    let count = builder.am("count", |_, _: u32| {});
    let world = builder.build()?;
    world.barrier()?;
    if world.rank().0 == 0 {
        let bytes = vec![1_u8; argonet::MAX_MEDIUM];
        let (busy, taken) = cost(|| {
            for _ in 0..64 {
                world.send_medium(Rank(1), &count, 0, &bytes)?;
            }
            Ok(())
        })?;
        assert!(
            taken > Duration::from_millis(1900),
            "{taken:?}: there was room"
        );
        let share = busy.as_secs_f64() / taken.as_secs_f64();
        // The spinning before it, and a few hundred looks a second.
        assert!(share < 0.05, "{busy:?} of processor time in {taken:?}");
    } else {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            std::thread::yield_now();
        }
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

fn modes() -> Done {
    let world = World::init()?;
    let modes = [
        WaitMode::Spin,
        WaitMode::Yield,
        WaitMode::Sleep,
        WaitMode::Auto,
    ];
    for mode in modes {
        world.set_wait_mode(mode);
        assert_eq!(world.wait_mode(), mode);
        for _ in 0..3 {
            world.barrier()?;
        }
        world.drain()?;
    }
    Ok(world.finalize()?)
}

/// More threads wait than there are processors; none keeps another from running for long.
fn crowd_of_threads() -> Done {
    let world = World::builder().build_par()?;
    let rounds = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let end = Instant::now() + Duration::from_millis(2);
                    while let Some(left) = end.checked_duration_since(Instant::now()) {
                        world.poll_timeout(left).expect("poll");
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..20 {
            world.barrier().expect("barrier");
        }
    });
    assert_eq!(rounds.into_inner(), 30);
    Ok(world.finalize()?)
}

fn deadlines() -> Done {
    let mut builder = World::builder();
    let arrived = Arc::new(AtomicBool::new(false));
    let arrives = Arc::clone(&arrived);
    let hello = builder.am("hello", move |_, _: u32| {
        arrives.store(true, Ordering::Relaxed);
    });
    let world = builder.build()?;
    let time = Duration::from_millis(20);
    let begun = Instant::now();
    assert!(!world.wait_timeout(time, || false)?);
    assert!(begun.elapsed() >= time);
    assert!(world.wait_timeout(Duration::ZERO, || true)?);
    if world.size() == 1 {
        let begun = Instant::now();
        assert_eq!(world.poll_timeout(time)?, 0);
        assert!(begun.elapsed() >= time);
    }
    let begun = Instant::now();
    world.poll_timeout(Duration::ZERO)?;
    assert!(begun.elapsed() < Duration::from_secs(10));
    world.barrier()?;
    let next = Rank((world.rank().0 + 1) % world.size());
    world.send(next, &hello, 7)?;
    // It comes long before the time is over, and ends the poll; the barrier may have handled it.
    let begun = Instant::now();
    while !arrived.load(Ordering::Relaxed) {
        assert!(world.poll_timeout(Duration::from_secs(100))? > 0);
    }
    assert!(begun.elapsed() < Duration::from_secs(90));
    Ok(world.finalize()?)
}

/// Rank 0 is outside the library until its standard input ends.
fn stuck() -> Done {
    let mut builder = World::builder();
    let hello = builder.am("hello", |_, _: u32| {});
    let world = builder.build()?;
    // The message gives ranks something to report of each other.
    world.send(world.rank_offset(1), &hello, 0)?;
    world.barrier()?;
    if world.rank().0 == 0 {
        eprintln!("ready");
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Reports of a job in which ranks 1 and 2 wait for rank 0.
fn reported(job: Job) {
    let outcome = job.run_with(|talk| {
        talk.line_with("ready");
        // The others may not have begun to wait yet when the first report is made.
        loop {
            kill_process(talk.pid, Signal::USR2).expect("signal");
            let first = talk.line_with("  rank 0 ");
            assert!(first.contains("running, waits for nothing in the library; its process"));
            let mut others = vec![talk.line()];
            if !others[0].starts_with("  ranks 1-2 ") {
                others.push(talk.line());
            }
            let wait = "waits in a barrier for rank 0 since";
            if others.iter().all(|line| line.contains(wait)) {
                break;
            }
        }
        // Waiting ranks add their state of each peer; rank 0 cannot.
        let mut reported = [false; 3];
        while reported != [false, true, true] {
            let line = talk.line_with("argonet: rank ");
            for (rank, reported) in reported.iter_mut().enumerate() {
                if line == format!("argonet: rank {rank} and its peers:") {
                    *reported = true;
                }
            }
        }
        let line = talk.line_with("  with rank ");
        assert!(
            line.contains("requests ") && line.contains(" handled"),
            "{line}"
        );
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
}

fn stalled() {
    let job = Job::launched(3, "stuck").env("ARGONET_STALL_TIMEOUT", "0.2");
    let outcome = job.run_with(|talk| {
        talk.line_with("ready");
        // Rank 1 or 2 notices first, and again after twice the time.
        for _ in 0..2 {
            let line = loop {
                let line = talk.line_with("argonet: rank ");
                if line.ends_with(" s. Ranks of this host:") {
                    break line;
                }
            };
            assert!(
                line.contains(" waits in a barrier for rank 0 since "),
                "{line}"
            );
            let first = talk.line();
            assert!(first.starts_with("  rank 0 "), "{first}");
            let ledger = talk.line_with("  with rank ");
            assert!(ledger.contains("requests "), "{ledger}");
        }
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
}

fn fatal_while_others_wait() -> Done {
    let mut builder = World::builder();
    let fail = builder.am("fail", |_, _: u32| panic!("on purpose"));
    let hello = builder.am("hello", |_, _: u32| {});
    let world = builder.build()?;
    if world.rank().0 == 0 {
        // The message gives this rank something to report of rank 1.
        world.send(Rank(1), &hello, 0)?;
        // Meanwhile rank 1 begins to wait.
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            std::thread::yield_now();
        }
        world.send(Rank(0), &fail, 1)?;
        world.wait_until(|| false)?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}
