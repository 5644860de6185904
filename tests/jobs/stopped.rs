//! A rank that is stopped before another one has heard of it.

use argonet::{Rank, SharedArray, World};
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[(
    "stopped_rank_that_was_never_heard_is_waited_for",
    waited_for,
)];

pub(crate) const PROGRAMS: &[Program] = &[("stopped-stranger", stranger)];

/// Ranks 0 and 3 of 6 do not check each other at the start.
const STOPPED: Rank = Rank(3);
/// One that both know.
const BETWEEN: Rank = Rank(1);

/// Rank 3 stops; then rank 0 sends it the first datagram between the two.
fn stranger() -> Done {
    let world = World::init()?;
    let numbers = SharedArray::<u64>::alloc(&world, 1)?;
    world.barrier()?;
    if world.rank() == STOPPED {
        world.put_value(numbers.ptr(BETWEEN, 0), u64::from(std::process::id()))?;
    }
    world.barrier()?;
    if world.rank() == STOPPED {
        kill_process(getpid(), Signal::STOP)?;
    }
    if world.rank() == Rank(0) {
        let process = world.get_value(numbers.ptr(BETWEEN, 0))?;
        let stat = format!("/proc/{process}/stat");
        while !std::fs::read_to_string(&stat)?.contains(") T ") {
            std::thread::yield_now();
        }
        eprintln!("stopped {process}");
        world.fetch_add(numbers.ptr(STOPPED, 0), 7)?;
    }
    world.barrier()?;
    if world.rank() == STOPPED {
        assert_eq!(numbers.read(&world, 0), 7);
    }
    Ok(world.finalize()?)
}

/// spec U10: silence alone is no evidence that a peer is gone.
fn waited_for() {
    let job = Job::launched(6, "stopped-stranger")
        .env("ARGONET_CONDUIT", "usnic")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        // A rank that was never heard is doubted after 2 s then.
        .env("ARGONET_START_TIMEOUT", "12");
    let outcome = job.run_with(|talk| {
        let process = talk.line_with("stopped ");
        let process = process.rsplit(' ').next().and_then(|pid| pid.parse().ok());
        let process = process.and_then(Pid::from_raw).expect("a process");
        let warning = talk.line_with("argonet: warning: rank 0 on ");
        for wanted in [
            "cannot reach rank 3 on ",
            "no datagram of it has come within ",
            "as it may be stopped, the job ends only when that lasts for 20 s",
        ] {
            assert!(warning.contains(wanted), "{wanted}: {warning}");
        }
        kill_process(process, Signal::CONT).expect("the rank that is stopped");
    });
    outcome.ended_well();
}
