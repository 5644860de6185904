//! Jobs over several hosts that go on without ranks that have died.

use rustix::process::{Pid, Signal};

use super::rig::{agent_of, spread_with};
use crate::losses::{lose_all, lose_one_of_two, lost_of, survived};
use crate::support::{Job, Running, Test};

pub(super) const TESTS: &[Test] = &[
    ("hosts_losses_of_killed_ranks", killed),
    ("hosts_losses_of_several_ranks_are_agreed_on", several),
    ("hosts_losses_of_all_ranks_of_a_host", all_of_a_host),
    (
        "hosts_losses_of_all_ranks_have_the_code_of_the_first",
        all_of_the_job,
    ),
    ("hosts_losses_of_a_job_that_has_one_host", one_host),
    (
        "hosts_losses_that_a_rank_does_not_accept_end_the_job",
        no_handler,
    ),
    ("hosts_losses_at_the_start_end_the_job", early),
    ("hosts_losses_of_ranks_out_of_reach", out_of_reach),
    (
        "hosts_losses_of_ranks_that_accuse_each_other",
        accuse_each_other,
    ),
    ("hosts_losses_of_whole_hosts", whole_hosts),
    ("hosts_losses_of_a_host_that_does_not_answer", silent_host),
    (
        "hosts_losses_of_a_host_end_a_job_that_does_not_accept_them",
        host_not_accepted,
    ),
];

/// `program` over hosts, to go on; with a flat tree, and with a chain of agents.
fn both(ranks: u32, hosts: &str, program: &[&str]) -> [Job; 2] {
    ["0", "1"].map(|degree| {
        let job = spread_with(ranks, hosts, &["continue"], program);
        job.env("GASNET_SSH_OUT_DEGREE", degree)
    })
}

fn killed() {
    // The first rank of all, and one of a host in the middle and at the end.
    for victim in [0, 2, 5] {
        for job in both(6, "a:2,b:2,c:2", &["loses", "1", "none"]) {
            let mut job = job.start();
            job.read_until("ready");
            let rank = job.rank_pid(victim);
            job.kill(rank, Signal::KILL);
            let outcome = job.outcome().code(0);
            let line = format!(
                "argonet run: rank {victim} (pid {rank}) was killed by signal 9 (SIGKILL); the job goes on without it\n"
            );
            outcome.says_too(&[&line]);
            let survivors: Vec<u32> = (0..6).filter(|rank| *rank != victim).collect();
            survived(&outcome, &survivors, &format!("[{victim}]"));
            assert_eq!(outcome.err.lines().count(), 1, "{outcome:#?}");
        }
    }
}

fn several() {
    let program = [
        "loses", "4", "none", "1:kill", "2:_exit", "4:segv", "8:abort",
    ];
    for job in both(9, "a:2,b:1,c:3,d:3", &program) {
        let outcome = job.run().code(0);
        let lost = lost_of(&outcome);
        survived(&outcome, &[0, 3, 5, 6, 7], lost);
        let mut ranks: Vec<&str> = lost.trim_matches(['[', ']']).split(", ").collect();
        ranks.sort_unstable();
        assert_eq!(ranks, ["1", "2", "4", "8"]);
    }
}

fn all_of_a_host() {
    for (acts, survivors) in [
        (["0:kill", "1:kill"], [2, 3, 4, 5]),
        (["2:kill", "3:kill"], [0, 1, 4, 5]),
        (["4:kill", "5:kill"], [0, 1, 2, 3]),
    ] {
        let program = [&["loses", "2", "none"], &acts[..]].concat();
        for job in both(6, "a:2,b:2,c:2", &program) {
            let outcome = job.run().code(0);
            survived(&outcome, &survivors, lost_of(&outcome));
        }
    }
}

fn all_of_the_job() {
    let jobs = both(3, "a:1,b:1,c:1", &["loses", "9", "none"]);
    jobs.into_iter().for_each(lose_all);
}

fn one_host() {
    let program = ["loses", "2", "none", "1:kill", "3:unreachable-0"];
    let job = spread_with(4, "a:4", &["continue"], &program);
    let outcome = job.run().code(0);
    survived(&outcome, &[2, 3], lost_of(&outcome));
}

fn no_handler() {
    // A rank of the same host, and one of another.
    for (rank, why) in [
        ("1", "as rank 1 has no handler for lost ranks"),
        ("2", "or has no handler for lost ranks"),
    ] {
        for job in both(4, "a:2,b:2", &["loses", "1", rank, "0:kill"]) {
            let outcome = job.run().code(137);
            outcome.says(&[
                "rank 0 (pid ",
                "was killed by signal 9 (SIGKILL); the other ranks were ended, as ",
                why,
            ]);
        }
    }
}

fn early() {
    for job in both(4, "a:2,b:2", &["loses", "1", "none", "3:early"]) {
        let outcome = job.run().code(137);
        outcome.says(&["rank 3 (pid ", "the other ranks were ended, as "]);
    }
}

fn out_of_reach() {
    // Of another host and of the same one.
    for (act, line) in [
        (
            "3:unreachable-1",
            "ranks 1 and 3 cannot reach each other over any network; rank 1 is killed\n",
        ),
        (
            "0:unreachable-1",
            "ranks 0 and 1 cannot reach each other over any network; rank 1 is killed\n",
        ),
    ] {
        for job in both(4, "a:2,b:2", &["loses", "1", "none", act]) {
            let outcome = job.run().code(0);
            outcome.says_too(&[
                line,
                "was killed by signal 9 (SIGKILL); the job goes on without it\n",
            ]);
            survived(&outcome, &[0, 2, 3], "[1]");
        }
    }
    // The job has to end itself.
    for job in both(4, "a:2,b:2", &["loses", "1", "0", "2:unreachable-1"]) {
        job.run().code(9);
    }
}

fn accuse_each_other() {
    let program = ["loses", "1", "none", "1:unreachable-2", "2:unreachable-1"];
    let jobs = both(4, "a:2,b:2", &program);
    jobs.into_iter().for_each(lose_one_of_two);
}

/// A job over three hosts, to go on, and the agents there; its ranks are ready.
fn ready(degree: &str, program: &[&str]) -> (Running, [Pid; 3]) {
    let job = spread_with(6, "a:2,b:2,c:2", &["continue"], program);
    let job = job.env("GASNET_SPAWN_VERBOSE", "1");
    let job = job.env("GASNET_SSH_OUT_DEGREE", degree);
    let mut job = job.env("ARGONET_AGENT_TIMEOUT", "3").start();
    job.read_until("ready");
    let agents = ["a", "b", "c"].map(|host| agent_of(&job, host)[0]);
    (job, agents)
}

/// Checks that these survivors have lost these ranks, and how that was said.
#[track_caller]
fn lost_hosts(job: Running, survivors: &[u32], lost: &[u32], why: &str) {
    let outcome = job.outcome().code(0);
    let ranks = lost.iter().map(u32::to_string).collect::<Vec<_>>();
    let ranks = ranks.join(", ");
    outcome.says_too(&[why, &format!(" the job goes on without ranks {ranks}\n")]);
    survived(&outcome, survivors, &format!("{lost:?}"));
}

fn whole_hosts() {
    // The agents of all hosts below the launcher.
    let killed = "its agent was killed by signal 9 (SIGKILL) while the job needed it";
    for (at, survivors, lost) in [
        (0, [2, 3, 4, 5], [0, 1]),
        (1, [0, 1, 4, 5], [2, 3]),
        (2, [0, 1, 2, 3], [4, 5]),
    ] {
        let (job, agents) = ready("0", &["loses", "2", "none"]);
        job.kill(agents[at], Signal::KILL);
        lost_hosts(job, &survivors, &lost, killed);
    }
    // An agent that has started the next one.
    let (job, agents) = ready("1", &["loses", "4", "none"]);
    job.kill(agents[1], Signal::KILL);
    lost_hosts(job, &[0, 1], &[2, 3, 4, 5], killed);
    let (job, agents) = ready("1", &["loses", "2", "none"]);
    job.kill(agents[2], Signal::KILL);
    lost_hosts(job, &[0, 1, 2, 3], &[4, 5], killed);
    // All hosts, one after the other.
    let (job, agents) = ready("0", &["loses", "9", "none"]);
    for (at, agent) in agents.into_iter().enumerate() {
        job.kill(agent, Signal::KILL);
        let host = ["a", "b", "c"][at];
        job.wait_for_error(&format!("argonet run: host {host} ("));
    }
    let outcome = job.outcome().code(1);
    outcome.says_too(&["; no rank is left\n"]);
}

fn silent_host() {
    let (job, agents) = ready("0", &["loses", "2", "none"]);
    job.kill(agents[1], Signal::STOP);
    let why = "its agent gave no sign of life for 3 s";
    lost_hosts(job, &[0, 1, 4, 5], &[2, 3], why);
}

fn host_not_accepted() {
    let (job, agents) = ready("0", &["loses", "2", "5"]);
    job.kill(agents[0], Signal::KILL);
    let outcome = job.outcome().code(1);
    outcome.says_too(&[
        "its agent was killed by signal 9 (SIGKILL) while the job needed it; the job ends, as a rank ",
        " has no handler for lost ranks",
    ]);
}
