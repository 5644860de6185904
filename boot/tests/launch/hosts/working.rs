//! Traffic between the hosts of a job: fences, values, lines, input, reports.

use super::rig::{TEMPLATE, TestFifo, agent_of, spread, spread_with, waiting};
use crate::support::{Outcome, Test, check_hello, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

pub(super) const TESTS: &[Test] = &[
    ("hosts_output_comes_in_whole_lines_and_all_of_it", lines),
    ("hosts_output_without_a_reader_ends_the_job", closed_output),
    ("hosts_input_goes_to_rank_0", stdin),
    ("hosts_many_fences_and_values", many_fences),
    (
        "hosts_rank_that_deserts_a_fence_is_named_elsewhere",
        deserter,
    ),
    ("hosts_rank_that_is_late_is_named", late),
    ("hosts_report_of_all_hosts", report),
    ("hosts_terminal_stop_is_no_hang", terminal_stop),
    (
        "hosts_terminal_stop_before_agents_have_greeted",
        terminal_stop_before_greetings,
    ),
];

fn check_lines(outcome: &Outcome, ranks: u32) {
    for rank in 0..ranks {
        let tag = format!("[{rank}] ");
        let of_rank: Vec<&str> = outcome
            .out
            .lines()
            .filter_map(|l| l.strip_prefix(&tag))
            .filter(|l| *l != "ready")
            .collect();
        let expected: Vec<String> = (0..200).map(|i| format!("line {i} of {rank}")).collect();
        assert_eq!(of_rank[..200], expected);
        let long: usize = outcome
            .out
            .lines()
            .filter_map(|l| {
                l.strip_prefix(&tag)
                    .or_else(|| l.strip_prefix(&format!("[{rank}]+ ")))
            })
            .filter(|l| l.starts_with('x'))
            .map(str::len)
            .sum();
        assert_eq!(long, 150_000 + "tail".len(), "rank {rank}");
        outcome.says_too(&[&format!("[{rank}] to standard error\n")]);
    }
}

fn lines() {
    let job = spread_with(6, "a,b,c", &["tag"], &["lines"]).env("GASNET_SSH_OUT_DEGREE", "1");
    check_lines(&job.run().code(0), 6);
    // More than all windows hold.
    let job = spread(4, "a,b,c,d", &["flood", "3000000"]).env("GASNET_SSH_OUT_DEGREE", "1");
    let outcome = job.run().code(0).silent();
    for rank in 0..4 {
        let start = format!("{rank} is at line ");
        let of_rank = outcome.out.lines().filter(|l| l.starts_with(&start));
        let numbers: Vec<u64> = of_rank
            .map(|l| l.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(l))
            .collect();
        let count = numbers.len() as u64;
        assert!(
            count > 10_000 && numbers == (0..count).collect::<Vec<_>>(),
            "rank {rank}"
        );
    }
    // Untagged, a line that is too long stays one line.
    let outcome = spread(1, "a", &["lines"]).run().code(0);
    assert!(
        outcome
            .out
            .ends_with(&format!("{}tail\n", "x".repeat(150_000)))
    );
}

fn closed_output() {
    let job = spread(4, "a:2,b:2", &["flood", "100000000"]).start();
    let outcome = job.without_output();
    outcome
        .code(141)
        .says(&["was killed by signal 13 (SIGPIPE)"]);
}

fn stdin() {
    for bytes in [0, 5, 3_000_000] {
        let input = vec![b'z'; bytes];
        let outcome = spread(3, "a,b,c", &["stdin"])
            .run_with(&input)
            .code(0)
            .silent();
        assert_eq!(
            outcome.lines(),
            [
                &format!("rank 0 read {bytes}"),
                "rank 1 read 0",
                "rank 2 read 0",
                "ready",
            ]
        );
    }
    // A rank that does not read does not hold up the job.
    let input = vec![b'z'; 3_000_000];
    let outcome = spread(2, "a,b", &["hello"])
        .run_with(&input)
        .code(0)
        .silent();
    check_hello(&outcome, 2);
}

fn many_fences() {
    let job = spread(12, "a:3,b:3,c:3,d:3", &["fences", "300"]).env("GASNET_SSH_OUT_DEGREE", "2");
    let outcome = job.run().code(0).silent();
    assert_eq!(outcome.lines().len(), 12);
}

fn late() {
    let job = spread(4, "a:2,b:2", &["late", "2"]).env("ARGONET_START_TIMEOUT", "1");
    let outcome = job.run().code(4);
    outcome.says(&["in start-up for ra", "ARGONET_START_TIMEOUT"]);
    // No other rank can know which rank is late if that is the only one of its host.
    let job = spread(2, "a,b", &["late", "1"]).env("ARGONET_START_TIMEOUT", "1");
    job.run()
        .code(4)
        .says(&["rank 0 waited 1 s in start-up for ranks of other hosts"]);
}

fn deserter() {
    let begin = Instant::now();
    let job = spread(4, "a:2,b:2", &["desert", "3"]).env("GASNET_SSH_OUT_DEGREE", "1");
    job.run()
        .code(4)
        .says(&["rank 3 ended or finalized without entering it"]);
    assert!(begin.elapsed() < Duration::from_secs(30));
    // All of a host have gone, and it is below the one that waits.
    let job = spread(3, "a,b,c", &["desert", "2"]).env("GASNET_SSH_OUT_DEGREE", "1");
    job.run()
        .code(4)
        .says(&["rank 2 ended or finalized without entering it"]);
    let job = spread(3, "a,b,c", &["absent", "2"]);
    job.run()
        .code(4)
        .says(&["rank 2 ended or finalized without entering it"]);
}

fn report() {
    let job = waiting(&["a", "b"], "32", |job| job);
    job.kill(job.pid(), Signal::USR2);
    job.wait_for_error("host b: all ranks here:");
    job.wait_for_error("host a: all ranks here:");
    job.kill(job.pid(), Signal::TERM);
    let outcome = job.outcome().code(143);
    outcome.says(&["  rank 0 (pid ", "  rank 3 (pid "]);
}

fn terminal_stop() {
    let job = waiting(&["a", "b"], "32", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "0.3")
    });
    let (launcher, rank) = (job.pid(), job.rank_pid(3));
    job.kill(launcher, Signal::TSTP);
    until(|| job.is_stopped(launcher) && job.is_stopped(rank));
    let agents = ["a", "b"].map(|host| agent_of(&job, host)[0]);
    // Longer than a silence would be borne.
    let begin = Instant::now();
    until(|| begin.elapsed() > Duration::from_secs(1));
    assert!(agents.iter().all(|&agent| job.waits(agent)));
    job.kill(launcher, Signal::CONT);
    until(|| !job.is_stopped(rank));
    job.kill(launcher, Signal::TERM);
    job.outcome().code(143);
}

fn terminal_stop_before_greetings() {
    let mut go = TestFifo::new("stopped");
    let path = go.path();
    let template = format!("read go < {path}; ARGONET_AGENT_TIMEOUT=0.3 HOST_OF_TEST=%M exec %C");
    let job = spread(4, "a:2,b:2", &["hello"]).env(TEMPLATE.0, &template);
    let job = job.start();
    let launcher = job.pid();
    until(|| job.ways() == [true, true]);
    job.kill(launcher, Signal::TSTP);
    until(|| job.is_stopped(launcher));
    go.let_go(2);
    until(|| job.ways() == [false, false]);
    // Longer than the agents bear silence.
    let begin = Instant::now();
    until(|| begin.elapsed() > Duration::from_secs(1));
    assert_eq!(job.living(), 3);
    job.kill(launcher, Signal::CONT);
    check_hello(&job.outcome().code(0), 4);
}
