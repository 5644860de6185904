//! How jobs over several hosts end, and that nothing is left of them.

use std::time::{Duration, Instant};

use super::rig::{TEMPLATE, TestFifo, agent_of, clean, spread, spread_with, waiting, waiting_for};
use crate::support::{Job, Test, pid, this_program, until};
use rustix::process::Signal;

pub(super) const TESTS: &[Test] = &[
    (
        "hosts_exit_codes_and_reasons_are_those_of_one_host",
        exit_codes,
    ),
    ("hosts_exit_of_all_is_no_news", exit_of_all),
    ("hosts_killed_rank_ends_all_hosts", killed_rank),
    ("hosts_time_limit", timeout),
    ("hosts_signals_reach_all_ranks", signals),
    ("hosts_second_interrupt_kills", second_interrupt),
    ("hosts_launcher_killed", launcher_killed),
    (
        "hosts_launcher_killed_while_agents_start",
        launcher_killed_early,
    ),
    ("hosts_agent_killed", agent_killed),
    (
        "hosts_agent_in_the_middle_of_the_tree_killed",
        inner_agent_killed,
    ),
    (
        "hosts_agent_and_its_guardian_killed",
        agent_and_guardian_killed,
    ),
    ("hosts_agent_that_hangs_is_given_up", agent_hangs),
    ("hosts_launcher_that_hangs_is_given_up", launcher_hangs),
    (
        "hosts_launcher_that_hangs_before_agents_have_greeted",
        launcher_hangs_before_greetings,
    ),
    ("hosts_connection_cut", connection_cut),
    (
        "hosts_way_that_fails_ends_a_job_whose_other_hosts_are_slow",
        way_fails,
    ),
    ("hosts_time_limit_reaches_a_slow_host", timeout_slow_host),
    ("hosts_interrupt_reaches_a_slow_host", interrupt_slow_host),
    ("hosts_early_failure_reaches_a_slow_host", failure_slow_host),
    (
        "hosts_interrupt_that_comes_with_the_greeting",
        interrupt_with_greeting,
    ),
    (
        "hosts_lost_output_reaches_a_slow_host",
        lost_output_slow_host,
    ),
    (
        "hosts_time_limit_does_not_fire_for_ways_that_are_left",
        way_is_left,
    ),
    (
        "hosts_agent_that_fails_is_not_taken_for_one_that_gave_up",
        agent_fails_unseen,
    ),
];

/// A way to host b that never leads there.
///
/// An agent's time-out is no help: it is far away.
const SLOW_B: &str = "test %M = b && exec sleep 100000; HOST_OF_TEST=%M exec %C";

fn with_slow_b(degree: &str, options: &[&str], program: &[&str]) -> Job {
    let options = [&["conduit=none", "hosts=a:2,b:2"], options].concat();
    clean(Job::launcher("4", &options, program))
        .env(TEMPLATE.0, SLOW_B)
        .env("ARGONET_AGENT_TIMEOUT", "80000")
        .env("GASNET_SSH_OUT_DEGREE", degree)
}

fn way_fails() {
    let slow_a = "test %M = a && exec sleep 100000; echo no route >&2";
    // A child of the agent command may live on, and hold its output open.
    let mut quickest = Duration::MAX;
    for end in ["exit 255; : %C", "sleep 100000 & exit 255; : %C"] {
        let job = with_slow_b("0", &[], &["true"]).env(TEMPLATE.0, &format!("{slow_a}; {end}"));
        let begun = Instant::now();
        let outcome = job.run().code(1);
        quickest = quickest.min(begun.elapsed());
        outcome.says(&["host b (ranks 2-3): the command to start its agent exited with code 255"]);
    }
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");
}

fn timeout_slow_host() {
    for degree in ["1", "0"] {
        let job = with_slow_b(degree, &["timeout=0.5"], &["sleep", "100000"]);
        let outcome = job.run().code(124);
        let outcome = outcome.says(&[
            "all ranks here:",
            "the job did not end within 0.5 s (--timeout)",
        ]);
        if degree == "0" {
            outcome.says(&["the agent of host b (ranks 2-3) had not answered"]);
        }
    }
}

fn interrupt_slow_host() {
    for degree in ["1", "0"] {
        let mut job = with_slow_b(degree, &[], &["sh", "-c", "echo here; exec sleep 100000"]);
        job = job.env("GASNET_SPAWN_VERBOSE", "1");
        let mut job = job.start();
        job.read_until("here");
        job.kill(job.pid(), Signal::INT);
        job.outcome().code(130);
    }
    // All hosts are slow.
    let job = with_slow_b("0", &[], &["true"]).env(TEMPLATE.0, "exec sleep 100000; : %M %C");
    let job = job.start();
    until(|| {
        job.processes()
            .iter()
            .filter(|p| p.is_called("sleep"))
            .count()
            == 2
    });
    job.kill(job.pid(), Signal::INT);
    job.outcome()
        .code(130)
        .says(&["host a (ranks 0-1): signal 2 (SIGINT) came before its agent answered"]);
}

fn failure_slow_host() {
    for degree in ["1", "0"] {
        with_slow_b(degree, &[], &["sh", "-c", "exit 7"])
            .run()
            .code(7)
            .says(&["exited with code 7; the other ranks were ended"]);
    }
}

/// The launcher finds both when it runs again.
fn interrupt_with_greeting() {
    let mut go = TestFifo::new("greeting");
    let template = format!("read go < {}; HOST_OF_TEST=%M exec %C", go.path());
    let job = with_slow_b("0", &[], &["sleep", "100000"]);
    let job = job.env(TEMPLATE.0, &template).start();
    let launcher = job.pid();
    until(|| job.ways() == [true, true]);
    job.kill(launcher, Signal::STOP);
    until(|| job.is_stopped(launcher));
    job.kill(launcher, Signal::INT);
    go.let_go(2);
    // The agents have greeted, and wait for their job.
    until(|| job.ways() == [false, false]);
    job.kill(launcher, Signal::CONT);
    job.outcome().code(130).says(&["(SIGINT)"]);
}

/// Rank 0 ends when its output is not taken any more, and only then lets host b greet, whose rank
/// waits for the same.
fn lost_output_slow_host() {
    let go = TestFifo::new("output");
    let this = this_program();
    let path = go.path();
    let template = format!("test %M = b && read go < {path}; HOST_OF_TEST=%M exec %C");
    let script = format!(
        "trap '' PIPE; while echo y 2>/dev/null; do :; done; test $HOST_OF_TEST = b || echo go > {path}"
    );
    let shell = ["sh", "-c", "exec \"$0\" \"$@\" >/dev/full", &this];
    let launch = ["__launch", "2", "conduit=none", "hosts=a,b", "--"];
    let job = Job::program(&[&shell[..], &launch, &["sh", "-c", &script]].concat());
    clean(job)
        .env(TEMPLATE.0, &template)
        .env("GASNET_SSH_OUT_DEGREE", "0")
        .run()
        .code(1)
        .says(&["standard output failed: No space left on device"]);
}

/// The ways outlive their agents until they are killed.
///
/// On a slow host the job itself may take longer than it may.
fn way_is_left() {
    let template = "HOST_OF_TEST=%M; trap '' TERM; %C; sleep 100000";
    let job = spread_with(2, "a,b", &["timeout=1"], &["quick"]).env(TEMPLATE.0, template);
    let outcome = job.run();
    if outcome.err.contains("did not end within 1 s") {
        return;
    }
    outcome.code(0).silent();
}

/// The launcher does not run for a while, in which an agent fails.
fn agent_fails_unseen() {
    let template = "HOST_OF_TEST=%M; %C; exit 1";
    let job = waiting_for(&["a"], 1, |job| {
        job.env(TEMPLATE.0, template)
            .env("ARGONET_AGENT_TIMEOUT", "1")
    });
    let [agent, _] = agent_of(&job, "a");
    job.kill(job.pid(), Signal::STOP);
    let begun = Instant::now();
    job.kill(agent, Signal::KILL);
    until(|| job.processes().len() == 1 && begun.elapsed() > Duration::from_millis(600));
    job.kill(job.pid(), Signal::CONT);
    job.outcome()
        .code(1)
        .says(&["its agent exited with code 1 while the job needed it"]);
}

fn exit_codes() {
    for rank in ["0", "3"] {
        let says = format!("argonet run: rank {rank} (pid ");
        let why = "exited with code 7 without finalizing; the other ranks were ended";
        spread(4, "a:2,b:2", &["exit", rank, "7"])
            .run()
            .code(7)
            .says(&[&says, why]);
    }
    spread(4, "a:2,b:2", &["exit-at-fence", "3", "9"])
        .run()
        .code(9);
    spread(4, "a:2,b:2", &["exit", "2", "0"])
        .run()
        .code(1)
        .says(&["rank 2 (pid "]);
    let outcome = spread(4, "a:2,b:2", &["finalize-then-exit", "3", "5"])
        .run()
        .code(5);
    outcome.says(&["rank 3 (pid ", "exited with code 5\n"]);
    let outcome = spread(4, "a:2,b:2", &["abort", "2", "77"]).run().code(77);
    outcome.says(&[
        "the answer is wrong",
        "aborted the job with code 77; the other ranks",
    ]);
}

fn exit_of_all() {
    spread(4, "a:2,b:2", &["exit-of-all", "5"])
        .run()
        .code(5)
        .silent();
}

fn killed_rank() {
    let job = waiting(&["a", "b", "c"], "32", |job| job);
    let rank = job.rank_pid(3);
    job.kill(rank, Signal::KILL);
    let why =
        format!("rank 3 (pid {rank}) was killed by signal 9 (SIGKILL); the other ranks were ended");
    job.outcome().code(137).says(&[&why]);
}

fn timeout() {
    let job = spread_with(4, "a:2,b:2", &["timeout=0.5"], &["wait"]);
    job.run()
        .code(124)
        .says(&["ranks 0, 1, 2, 3 still ran and were ended"]);
    // One that ends by itself, though too late.
    let options = ["conduit=none", "hosts=a:2,b:2", "timeout=0.8"];
    let late = clean(Job::launcher("4", &options, &["sleep", "0.9"]));
    let late = late.env(TEMPLATE.0, TEMPLATE.1);
    late.run().code(124).says(&["0.8 s (--timeout)"]);
}

fn signals() {
    let job = waiting(&["a", "b"], "1", |job| job);
    job.kill(job.pid(), Signal::TERM);
    job.outcome()
        .code(143)
        .says(&["was killed by signal 15 (SIGTERM)"]);
}

fn second_interrupt() {
    let job = spread(4, "a:2,b:2", &["ignore"]).env("GASNET_SPAWN_VERBOSE", "1");
    let mut job = job.start();
    job.read_until("ready");
    job.kill(job.pid(), Signal::INT);
    job.read_until("not yet");
    job.kill(job.pid(), Signal::INT);
    let outcome = job.outcome().code(130);
    outcome.says(&["signal 2 (SIGINT) came a second time; the ranks were killed"]);
}

fn launcher_killed() {
    for degree in ["1", "32"] {
        let job = waiting(&["a", "b", "c"], degree, |job| job);
        job.kill(job.pid(), Signal::KILL);
        job.outcome().code(137);
    }
}

fn launcher_killed_early() {
    for hosts in ["a:2,b:2", "a:9,b:9,c:9"] {
        let ranks = if hosts.len() == 7 { 4 } else { 27 };
        let job = spread(ranks, hosts, &["wait", "children"])
            .env("GASNET_SSH_OUT_DEGREE", "1")
            .start();
        until(|| job.processes().len() > 3);
        job.kill(job.pid(), Signal::KILL);
        job.outcome().code(137);
    }
}

fn agent_killed() {
    let job = waiting(&["a", "b", "c"], "32", |job| job);
    job.kill(agent_of(&job, "b")[0], Signal::KILL);
    job.outcome().code(1).says(&[
        "argonet run: host b (ranks 2-3): its agent was killed by signal 9 (SIGKILL) while the job needed it",
    ]);
}

fn inner_agent_killed() {
    let job = waiting(&["a", "b", "c", "d"], "1", |job| job);
    job.kill(agent_of(&job, "b")[0], Signal::KILL);
    job.outcome()
        .code(1)
        .says(&["host b (ranks 2-3): its agent was killed by signal 9"]);
}

fn agent_and_guardian_killed() {
    let job = waiting(&["a", "b"], "32", |job| job);
    let [agent, guardian] = agent_of(&job, "b");
    job.kill(guardian, Signal::KILL);
    job.kill(agent, Signal::KILL);
    // Children of ranks outlive them where no process is left that knows of them, as in a job on
    // one host.
    until(|| job.processes().len() <= 2);
    job.end_remaining();
    job.outcome().code(1);
}

fn agent_hangs() {
    let job = waiting(&["a", "b"], "32", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "1")
    });
    job.kill(agent_of(&job, "b")[0], Signal::STOP);
    job.outcome().code(1).says(&[
        "host b (ranks 2-3): its agent gave no sign of life for 1 s (ARGONET_AGENT_TIMEOUT)",
    ]);
}

fn launcher_hangs() {
    let job = waiting(&["a", "b", "c"], "1", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "1")
    });
    job.kill(job.pid(), Signal::STOP);
    // All but the launcher end.
    until(|| job.processes().len() == 1);
    job.kill(job.pid(), Signal::CONT);
    job.outcome().code(1).says(&[
        "its agent gave up this process (pid ",
        "was it stopped? Agents wait for 1 s (ARGONET_AGENT_TIMEOUT)",
    ]);
}

fn launcher_hangs_before_greetings() {
    let mut go = TestFifo::new("hangs");
    let path = go.path();
    let template = format!("read go < {path}; ARGONET_AGENT_TIMEOUT=4.2 HOST_OF_TEST=%M exec %C");
    let job = with_slow_b("0", &[], &["true"]).env(TEMPLATE.0, &template);
    let job = job.env("ARGONET_AGENT_TIMEOUT", "8").start();
    let launcher = job.pid();
    until(|| job.ways() == [true, true]);
    job.kill(launcher, Signal::STOP);
    until(|| job.is_stopped(launcher));
    go.let_go(2);
    // Both agents greet, and give up.
    until(|| job.ways() == [false, false]);
    until(|| job.living() == 1);
    job.kill(launcher, Signal::CONT);
    job.outcome().code(1).says(&[
        "its agent gave up this process (pid ",
        "was it stopped? Agents wait for 8 s (ARGONET_AGENT_TIMEOUT)",
    ]);
}

fn connection_cut() {
    // One of the two `cat`s that carry the connection is killed, as a remote shell may be: toward
    // the agent, or from it.
    for (which, launcher_sees) in [(0, "its agent exited with code "), (1, "its agent ")] {
        let relay = "export HOST_OF_TEST=%M; cat | %C | cat";
        let job = waiting_for(&["a", "b"], 3, |job| job.env(TEMPLATE.0, relay));
        let mark = "HOST_OF_TEST=b";
        let mut relays: Vec<u32> = job
            .processes()
            .into_iter()
            .filter(|process| process.is_called("cat"))
            .map(|process| process.pid)
            .filter(|process| {
                let environment = std::fs::read(format!("/proc/{process}/environ"));
                environment.is_ok_and(|e| e.split(|&b| b == 0).any(|e| e == mark.as_bytes()))
            })
            .collect();
        relays.sort_unstable();
        assert_eq!(relays.len(), 2);
        job.kill(pid(relays[which]), Signal::KILL);
        job.outcome()
            .code(1)
            .says(&["host b (ranks 2-3): ", launcher_sees]);
    }
}
