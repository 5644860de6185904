//! The end of a job as ranks report it to each other over a network's system queue, or in memory
//! that they share.
//!
//! The exit time-outs are so long that the guardian comes too late for these tests, except where
//! ranks compute.

use std::time::{Duration, Instant};

use argonet::{Rank, SharedArray, World};
use rustix::process::{Signal, getpid, kill_process};

use crate::network::Network;
use crate::support::{Done, Job, Outcome, Program, Test};

pub(crate) const TESTS: &[Test] = &[
    ("exit_is_reported_to_ranks_in_a_barrier", || {
        reported("reported-barrier", Ways::All)
    }),
    ("exit_is_reported_to_ranks_that_poll", || {
        reported("reported-poll", Ways::All)
    }),
    (
        "exit_by_another_thread_is_reported_by_the_thread_that_calls",
        || {
            reported("reported-thread", Ways::All);
            reported("reported-thread-leaves", Ways::All);
        },
    ),
    ("exit_by_a_signal_is_reported_by_the_next_rest", || {
        reported("reported-signal", Ways::All)
    }),
    ("exit_is_reported_without_flow_control", || {
        reported("reported-barrier", Ways::WithoutCredits)
    }),
    (
        "exit_of_a_rank_ends_ranks_that_compute_by_the_launcher",
        computing,
    ),
    ("exit_together_is_left_to_all_ranks", || together(7)),
    ("exit_with_0_is_passed_on_to_ranks_in_a_barrier", || {
        passed_on("reported-0-barrier")
    }),
    ("exit_with_0_is_passed_on_to_ranks_that_poll", || {
        passed_on("reported-0-poll")
    }),
    (
        "exit_with_0_ends_ranks_that_compute_by_the_launcher",
        computing_and_0,
    ),
    ("exit_together_with_0_costs_few_messages", || together(0)),
    ("exit_is_reported_by_shared_memory", by_memory),
    (
        "exit_waits_for_a_peer_no_longer_than_the_job_lets_it_live",
        stopped,
    ),
];

pub(crate) const OVER_HOSTS: &[Test] = &[
    ("exit_is_reported_to_ranks_of_other_hosts", || {
        over_hosts("reported-barrier", 7);
        over_hosts("reported-poll", 7);
    }),
    ("exit_with_0_is_passed_on_to_ranks_of_other_hosts", || {
        over_hosts("reported-0-barrier", 0);
        over_hosts("reported-0-poll", 0);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("exit-before-a-stopped-rank", exit_before_a_stopped_rank),
    ("reported-barrier", || {
        last(
            |world| world.barrier().expect("a barrier"),
            |_| argonet::exit(7),
        )
    }),
    ("reported-poll", || {
        last(poll_for_ever, |_| argonet::exit(7))
    }),
    ("reported-thread", || by_thread(|| argonet::exit(7))),
    ("reported-thread-leaves", || {
        by_thread(|| std::process::exit(7))
    }),
    ("reported-signal", || {
        last(
            |world| world.barrier().expect("a barrier"),
            |world| {
                let pid = rustix::process::getpid();
                rustix::process::kill_process(pid, rustix::process::Signal::TERM)
                    .expect("a signal");
                world.barrier().expect("a barrier");
            },
        )
    }),
    ("reported-compute", || {
        last(
            |world| match world.rank().0 {
                0 => world.barrier().expect("a barrier"),
                1 => poll_for_ever(world),
                _ => compute_for_ever(),
            },
            |_| argonet::exit(7),
        )
    }),
    ("reported-together", || all_together(7)),
    ("reported-0-together", || all_together(0)),
    ("reported-0-barrier", || {
        last(
            |world| world.barrier().expect("a barrier"),
            |_| argonet::exit(0),
        )
    }),
    ("reported-0-poll", || {
        last(poll_for_ever, |_| argonet::exit(0))
    }),
    ("reported-0-compute", || {
        last(
            |world| match world.rank().0 {
                0 => compute_for_ever(),
                _ => world.barrier().expect("a barrier"),
            },
            |_| argonet::exit(0),
        )
    }),
];

const RANKS: u32 = 4;

/// A line of the statistics that only a rank which comes to its own end writes.
const SUMMARY: &str = "Total application run time";

const LAST_WORDS: &str = "last words";

/// Less than the guardian waits before it signals any rank: a quarter of [`TIMEOUT`].
const LIMIT: Duration = Duration::from_secs(45);

/// Seconds.
const TIMEOUT: &str = "200";

/// Every rank has sent something to each other one.
fn acquainted() -> argonet::Result<World> {
    let mut builder = World::builder();
    let greet = builder.am("greet", |_, _: u32| {});
    let world = builder.build()?;
    for rank in (0..world.size()).map(Rank) {
        world.send(rank, &greet, 0)?;
    }
    world.drain()?;
    Ok(world)
}

/// The last rank does one thing, the others another.
fn last(others: impl FnOnce(&World), last: impl FnOnce(&World)) -> Done {
    let world = acquainted()?;
    match world.rank().0 + 1 == world.size() {
        true => last(&world),
        false => others(&world),
    }
    Err("went on after its end".into())
}

/// A thread of the last rank that may not call ends the job, while all wait.
fn by_thread(exit: fn()) -> Done {
    last(
        |world| world.barrier().expect("a barrier"),
        |world| {
            std::thread::spawn(exit);
            // Not the barrier of the others, which would complete.
            world.wait_until(|| false).expect("a wait");
        },
    )
}

fn all_together(code: i32) -> Done {
    let world = acquainted()?;
    world.barrier()?;
    println!("{LAST_WORDS}");
    argonet::exit(code)
}

fn poll_for_ever(world: &World) {
    loop {
        world.poll().expect("a poll");
    }
}

fn compute_for_ever() {
    while !std::hint::black_box(false) {
        std::hint::spin_loop();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Ways {
    All,
    WithoutCredits,
}

impl Ways {
    /// Runs a program with each rank in a neighborhood of its own, over each network; checks the
    /// outcome, the counts of each rank, and the time.
    fn run(
        self,
        ranks: u32,
        program: &str,
        timeout: &str,
        check: impl Fn(&Outcome, &[String], Duration),
    ) {
        for conduit in ["tcp", "portals"] {
            let mut job = Job::launched(ranks, program)
                .env("ARGONET_CONDUIT", conduit)
                .env("GASNET_SUPERNODE_MAXSIZE", "1");
            if self == Self::WithoutCredits {
                job = job.env("GASNET_PORTAL_FLOW_CONTROL", "0");
            }
            counted(job, ranks, timeout, &check);
        }
    }
}

/// Runs a job; checks the outcome, the counts of each rank, and the time.
fn counted(job: Job, ranks: u32, timeout: &str, check: impl Fn(&Outcome, &[String], Duration)) {
    let place = tempfile::tempdir().expect("a directory");
    let name = |rank: &str| -> String {
        let path = place.path().join(format!("stats-{rank}"));
        path.to_str().expect("a name").to_owned()
    };
    let job = job.env("GASNET_EXITTIMEOUT", timeout);
    let job = job.env("GASNET_STATSFILE", &name("%"));
    let begun = Instant::now();
    let outcome = job.run();
    let took = begun.elapsed();
    // A rank that was killed has written nothing.
    let read = |rank: u32| std::fs::read_to_string(name(&rank.to_string()));
    let stats: Vec<String> = (0..ranks)
        .map(|rank| read(rank).unwrap_or_default())
        .collect();
    check(&outcome, &stats, took);
}

/// Counts of a rank: ranks to which it reported the exit, those that confirmed, those that reported
/// it.
fn counts(stats: &str) -> Option<[u32; 3]> {
    let (_, line) = stats.split_once("exits: ")?;
    let line = line.lines().next()?;
    let numbers: Vec<u32> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers.try_into().ok()
}

/// Others wait or poll: they hear of it and end, long before the guardian comes.
fn reported(program: &str, ways: Ways) {
    ways.run(RANKS, program, TIMEOUT, |outcome, stats, took| {
        let (code, reason) = match program {
            "reported-signal" => (143, "SIGTERM"),
            "reported-thread-leaves" => (7, "exited with code 7"),
            _ => (7, "called exit(7)"),
        };
        assert_eq!(outcome.code(), Some(code), "{outcome:#?}");
        let parts = ["rank 3 (pid ", reason, "; the other ranks were ended"];
        let report = |line: &str| parts.iter().all(|part| line.contains(part));
        assert!(outcome.err.lines().any(report), "{outcome:#?}");
        let found: Vec<_> = stats.iter().map(|stats| counts(stats)).collect();
        let heard = Some([0, 0, 1]);
        // The hook at the end of the process closes the statistics before it reports.
        let last = (program != "reported-thread-leaves").then_some([3, 3, 0]);
        let due = [heard, heard, heard, last];
        assert_eq!(found, due, "{program}: {outcome:#?} {stats:#?}");
        assert!(took < LIMIT, "{program} took {took:?}: {outcome:#?}");
    });
}

/// One computes and hears nothing: the guardian's signal and the timer end it.
fn computing() {
    Ways::All.run(RANKS, "reported-compute", "1", |outcome, stats, _| {
        assert_eq!(outcome.code(), Some(7), "{outcome:#?}");
        let found = stats.iter().map(|stats| counts(stats));
        let found: Vec<_> = found.collect();
        assert_eq!(found[..2], [Some([0, 0, 1]); 2], "{outcome:#?} {stats:#?}");
        // Rank 2 confirms, too, if a thread of it serves.
        assert!(
            matches!(found[3], Some([3, 2..=3, 0])),
            "{found:?} {outcome:#?}"
        );
    });
}

/// A rank that leaves the barrier later still writes its last words and exits.
fn together(code: i32) {
    let (program, ranks) = match code {
        0 => ("reported-0-together", 8),
        _ => ("reported-together", RANKS),
    };
    Ways::All.run(ranks, program, TIMEOUT, |outcome, stats, took| {
        assert_eq!(outcome.code(), Some(code), "{outcome:#?}");
        assert!(!outcome.err.contains("were ended"), "{outcome:#?}");
        let words = outcome.out.matches(LAST_WORDS).count();
        assert_eq!(words, ranks as usize, "{outcome:#?}");
        assert!(took < LIMIT, "{took:?}: {outcome:#?}");
        let found = stats.iter().filter_map(|stats| counts(stats));
        let sent: u32 = found.map(|[sent, ..]| sent).sum();
        // The first rank reports the exit; a rank that has heard of it forwards it.
        if code == 0 {
            assert!(sent <= ranks * ranks.ilog2(), "{sent}: {stats:#?}");
        }
    });
}

/// All ranks that wait or poll end soon, by a report of any rank, and none sends more than a few
/// messages.
fn passed_on(program: &str) {
    for ranks in [3, 5, 7] {
        Ways::All.run(ranks, program, TIMEOUT, |outcome, stats, took| {
            assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
            assert!(took < LIMIT, "{program} took {took:?}: {outcome:#?}");
            let most = ranks.next_power_of_two().ilog2();
            let found: Vec<_> = stats.iter().map(|stats| counts(stats)).collect();
            for (rank, found) in (0..).zip(&found) {
                let is_good = match (rank + 1 == ranks, *found) {
                    (true, Some([sent, _, 0])) => sent == most,
                    (false, Some([sent, _, heard])) => sent <= most && heard > 0,
                    _ => false,
                };
                assert!(
                    is_good,
                    "rank {rank} of {ranks}: {found:?} {outcome:#?} {stats:#?}"
                );
            }
            // Rank 2 of 7 is none of those to which the last one reports.
            if ranks == 7 {
                let sent: u32 = found.iter().flatten().map(|[sent, ..]| sent).sum();
                assert!(sent > most, "{found:?}");
            }
        });
    }
}

/// Waiting ranks hear of it; the guardian's signal and the timer end the one that computes.
fn computing_and_0() {
    Ways::All.run(RANKS, "reported-0-compute", "1", |outcome, stats, _| {
        assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
        for stats in &stats[1..3] {
            let heard = counts(stats).is_some_and(|[.., heard]| heard > 0);
            assert!(heard, "{outcome:#?} {stats}");
        }
    });
}

/// Ranks of a host hear of an exit on another before their launcher does anything about it; of one
/// with 0 those of host c by passing on.
fn over_hosts(program: &str, code: i32) {
    let network = Network::new(&["a", "b", "c", "d"]);
    for hosts in ["a:2,b:2", "a,b,c,d"] {
        for conduit in ["tcp", "portals"] {
            let job = Job::over_conduit(conduit, RANKS, hosts, program);
            let job = job.env("GASNET_CSPAWN_CMD", &network.template());
            counted(job, RANKS, TIMEOUT, |outcome, stats, took| {
                assert_eq!(outcome.code(), Some(code), "{outcome:#?}");
                let found: Vec<_> = stats.iter().map(|stats| counts(stats)).collect();
                let others = match hosts {
                    "a:2,b:2" => 0..2,
                    _ => 0..3,
                };
                let due = match code {
                    0 => 2,
                    _ => others.len() as u32,
                };
                let reported = found[3].is_some_and(|[sent, ..]| sent == due);
                let heard = |[sent, _, heard]: [u32; 3]| heard > 0 && (sent == 0 || code == 0);
                let heard = found[others].iter().all(|found| found.is_some_and(heard));
                assert!(
                    reported && heard,
                    "{conduit} {hosts}: {found:?} {outcome:#?} {stats:#?}"
                );
                assert!(took < LIMIT, "{program} took {took:?}: {outcome:#?}");
            });
        }
    }
}

/// All share memory: ranks that wait or poll see its mark.
fn by_memory() {
    for (program, code) in [
        ("reported-barrier", 7),
        ("reported-poll", 7),
        ("reported-0-barrier", 0),
        ("reported-0-poll", 0),
    ] {
        let begun = Instant::now();
        let job = Job::launched(RANKS, program).env("ARGONET_CONDUIT", "smp");
        let job = job.env("GASNET_SUPERNODE_MAXSIZE", "0");
        let outcome = job.env("GASNET_EXITTIMEOUT", TIMEOUT).run();
        let took = begun.elapsed();
        assert_eq!(outcome.code(), Some(code), "{program}: {outcome:#?}");
        assert!(took < LIMIT, "{program} took {took:?}: {outcome:#?}");
        outcome.says(&["rank 3 (pid ", &format!("called exit({code})")]);
    }
}

/// Rank 2 stops and confirms nothing any more; then rank 0 sends to it and exits with 0, and rank 1
/// does the same when rank 0 has ended.
///
/// So the time-out of rank 1 by itself would be later than the job's.
fn exit_before_a_stopped_rank() -> Done {
    let mut builder = World::builder();
    let greet = builder.am("greet", |_, _: u32| {});
    let world = builder.build()?;
    let processes = SharedArray::<u64>::alloc(&world, 3)?;
    world.barrier()?;
    let (me, last) = (world.rank().index(), Rank(2));
    for rank in (0..3).map(Rank) {
        world.put_value(processes.ptr(rank, me), u64::from(std::process::id()))?;
    }
    world.barrier()?;
    if world.rank() == last {
        kill_process(getpid(), Signal::STOP)?;
        return Err("went on after its end".into());
    }
    let becomes = |rank: usize, state: &str| -> Done {
        let stat = format!("/proc/{}/stat", processes.read(&world, rank));
        while !std::fs::read_to_string(&stat)?.contains(state) {
            std::thread::yield_now();
        }
        Ok(())
    };
    becomes(2, ") T ")?;
    world.send(last, &greet, 0)?;
    if me == 1 {
        becomes(0, ") Z ")?;
    }
    argonet::exit(0)
}

/// A rank that waits for one which confirms nothing is not killed for it: it comes to its own end,
/// as its statistics show, and the job's code is that of the exit.
fn stopped() {
    for (conduit, interface) in [("tcp", "software"), ("portals", "udp")] {
        let job = Job::launched(3, "exit-before-a-stopped-rank")
            .env("ARGONET_CONDUIT", conduit)
            .env("ARGONET_PORTALS_INTERFACE", interface)
            .env("GASNET_SUPERNODE_MAXSIZE", "2");
        counted(job, 3, "2", |outcome, stats, _| {
            assert_eq!(outcome.code(), Some(0), "{conduit}: {outcome:#?}");
            let written = stats.iter().map(|stats| stats.contains(SUMMARY));
            let written: Vec<bool> = written.collect();
            assert_eq!(
                written,
                [true, true, false],
                "{conduit}: {outcome:#?} {stats:#?}"
            );
        });
    }
}
