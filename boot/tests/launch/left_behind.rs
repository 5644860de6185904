//! No process outlives a job if any of its processes are killed, in any order.

use rustix::process::Signal;

use crate::support::{Job, Running, Test, pid, until};

pub(crate) const TESTS: &[Test] = &[
    ("left_behind_launcher_killed", launcher_killed),
    (
        "left_behind_launcher_killed_while_ranks_start",
        launcher_killed_early,
    ),
    (
        "left_behind_guardian_then_launcher_killed",
        guardian_then_launcher,
    ),
    ("left_behind_guardian_then_rank_killed", guardian_then_rank),
    (
        "left_behind_rank_0_of_a_self_started_job_killed",
        rank_0_killed,
    ),
    (
        "left_behind_guardian_then_rank_0_of_a_self_started_job_killed",
        guardian_then_rank_0,
    ),
    (
        "left_behind_children_of_ranks_that_ended_well",
        background_children,
    ),
];

/// Starts a job of waiting ranks, of `processes` processes in all; also the guardian's id.
fn waiting(job: Job, processes: usize) -> (Running, u32) {
    let mut job = job.start();
    let guardian = job.read_until("guardian ").parse().expect("a process id");
    job.read_until("ready");
    // A process in the middle of exec shows no environment for a moment.
    until(|| job.processes().len() == processes);
    (job, guardian)
}

fn launcher_killed() {
    // The launcher, the guardian, and eight ranks with a child each.
    let (job, _) = waiting(Job::launched(8, &[], &["wait", "children"]), 2 + 16);
    job.kill(job.pid(), Signal::KILL);
    job.outcome().code(137);
}

fn launcher_killed_early() {
    for ranks in [2, 16, 64] {
        let job = Job::launched(ranks, &[], &["wait", "children"]).start();
        // Some have started, most have not.
        until(|| job.processes().len() > 2);
        job.kill(job.pid(), Signal::KILL);
        job.outcome().code(137);
    }
}

fn guardian_then_launcher() {
    let (job, guardian) = waiting(Job::launched(4, &[], &["wait"]), 2 + 4);
    job.kill(pid(guardian), Signal::KILL);
    job.kill(job.pid(), Signal::KILL);
    job.outcome().code(137);
}

fn guardian_then_rank() {
    let (job, guardian) = waiting(Job::launched(4, &[], &["wait", "children"]), 2 + 8);
    job.kill(pid(guardian), Signal::KILL);
    job.kill(job.rank_pid(3), Signal::KILL);
    job.outcome()
        .code(137)
        .says(&["rank 3 (pid ", "was killed by signal 9"]);
}

fn rank_0_killed() {
    let (job, _) = waiting(Job::self_started("4", &["wait", "children"]), 1 + 8);
    job.kill(job.pid(), Signal::KILL);
    if controlling_terminal() {
        // The child of rank 0 is in the terminal's group and is not ours to kill.
        for child in job.processes() {
            let _ = rustix::process::kill_process(pid(child.pid), Signal::KILL);
        }
    }
    job.outcome().code(137);
}

fn guardian_then_rank_0() {
    let (job, guardian) = waiting(Job::self_started("4", &["wait"]), 1 + 4);
    job.kill(pid(guardian), Signal::KILL);
    job.kill(job.pid(), Signal::KILL);
    job.outcome().code(137);
}

fn background_children() {
    Job::launcher(
        "3",
        &[],
        &["sh", "-c", "sleep 100000 >/dev/null 2>&1 & exit 0"],
    )
    .run()
    .code(0)
    .silent();
}

fn controlling_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}
