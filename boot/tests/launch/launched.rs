//! Jobs started by the launcher: sizes, exit codes, output, input, signals, time limit, pinning.

use rustix::process::Signal;

use crate::support::{Job, Test, check_hello, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("launched_hello_of_1_2_3_8_64_ranks", hello),
    ("launched_programs_that_never_attach_are_fine", not_a_rank),
    ("launched_exit_code_of_the_first_failure", exit_codes),
    // spec P13
    ("launched_exit_while_others_wait_at_a_fence", exit_at_fence),
    (
        "launched_exit_0_without_finalizing_is_a_failure",
        exit_without_finalizing,
    ),
    (
        "launched_exit_code_after_finalizing_counts_but_ends_no_other_rank",
        exit_after_finalizing,
    ),
    ("launched_abort_gives_code_and_message", abort),
    (
        "launched_abort_below_a_shell_script_ends_the_script",
        abort_below_shell,
    ),
    ("launched_killed_rank_is_named", killed_rank),
    (
        "launched_rank_that_never_joins_is_named_at_the_fence",
        absent,
    ),
    // spec P14
    ("launched_rank_that_is_late_is_named_at_the_fence", late),
    ("launched_stdin_goes_to_rank_0_only", stdin),
    ("launched_tagged_lines_are_whole_and_none_is_lost", tagged),
    (
        "launched_output_without_a_reader_ends_the_job",
        closed_output,
    ),
    ("launched_time_limit", timeout),
    ("launched_signals_reach_all_ranks", signals),
    ("launched_second_interrupt_kills", second_interrupt),
    ("launched_ranks_are_pinned_round_the_allowed_cores", bind),
    ("launched_segments_on_huge_pages", huge_pages),
    (
        "launched_children_of_ranks_inherit_nothing_of_the_job",
        inherit,
    ),
];

fn hello() {
    for ranks in [1, 2, 3, 8, 64] {
        check_hello(
            &Job::launched(ranks, &[], &["hello"]).run().code(0).silent(),
            ranks,
        );
    }
}

fn not_a_rank() {
    Job::launcher("3", &[], &["true"]).run().code(0).silent();
    Job::launcher("3", &[], &["false"])
        .run()
        .code(1)
        .says(&["exited with code 1; the other ranks were ended"]);
    Job::launcher("1", &[], &["false"])
        .run()
        .code(1)
        .says(&["rank 0 (pid ", "exited with code 1\n"]);
}

fn exit_codes() {
    for (rank, code) in [("0", 7), ("2", 255)] {
        let says = format!("argonet run: rank {rank} (pid ");
        let why = format!("exited with code {code} without finalizing; the other ranks were ended");
        Job::launched(3, &[], &["exit", rank, &code.to_string()])
            .run()
            .code(code)
            .says(&[&says, &why]);
    }
}

fn exit_at_fence() {
    Job::launched(4, &[], &["exit-at-fence", "1", "9"])
        .run()
        .code(9)
        .says(&["rank 1 (pid "]);
}

fn exit_without_finalizing() {
    let why = "exited with code 0 without finalizing; the other ranks were ended";
    Job::launched(3, &[], &["exit", "1", "0"])
        .run()
        .code(1)
        .says(&["rank 1 (pid ", why]);
}

fn exit_after_finalizing() {
    let outcome = Job::launched(3, &[], &["finalize-then-exit", "1", "5"])
        .run()
        .code(5);
    outcome.says(&["rank 1 (pid ", "exited with code 5\n"]);
    Job::launched(3, &[], &["finalize-then-exit", "9", "5"])
        .run()
        .code(0)
        .silent();
}

fn abort() {
    let outcome = Job::launched(3, &[], &["abort", "2", "77"]).run().code(77);
    outcome.says(&[
        "argonet: rank 2 (pid ",
        "the answer is wrong",
        "aborted the job with code 77; the other ranks",
    ]);
}

fn abort_below_shell() {
    let this = this_program();
    let script = format!("{} __rank abort 1 76; sleep 100000", this);
    Job::launcher("2", &[], &["sh", "-c", &script])
        .run()
        .code(76)
        .says(&["rank 1 (pid ", "aborted the job"]);
}

fn killed_rank() {
    let mut job = Job::launched(3, &[], &["wait", "children"]).start();
    job.read_until("ready");
    let rank = job.rank_pid(1);
    job.kill(rank, Signal::KILL);
    let why =
        format!("rank 1 (pid {rank}) was killed by signal 9 (SIGKILL); the other ranks were ended");
    job.outcome().code(137).says(&[&why]);
}

fn absent() {
    let outcome = Job::launched(3, &[], &["absent", "1"]).run().code(4);
    outcome.says(&["cannot complete: rank 1 ended or finalized without entering it"]);
}

fn late() {
    let outcome = Job::launched(3, &[], &["late", "2"])
        .env("ARGONET_START_TIMEOUT", "1")
        .run()
        .code(4);
    outcome.says(&[
        "waited 1 s in start-up for rank 2; ",
        "ARGONET_START_TIMEOUT",
    ]);
}

fn stdin() {
    let outcome = Job::launched(3, &[], &["stdin"])
        .run_with(&[b'x'; 100_000])
        .code(0);
    assert_eq!(
        outcome.lines(),
        [
            "rank 0 read 100000",
            "rank 1 read 0",
            "rank 2 read 0",
            "ready"
        ]
    );
}

fn tagged() {
    let outcome = Job::launched(4, &["tag"], &["lines"]).run().code(0);
    for rank in 0..4 {
        let tag = format!("[{rank}] ");
        let lines: Vec<&str> = outcome
            .out
            .lines()
            .filter_map(|l| l.strip_prefix(&tag))
            .collect();
        let numbered: Vec<String> = (0..200).map(|i| format!("line {i} of {rank}")).collect();
        let whole: Vec<&str> = lines
            .iter()
            .copied()
            .filter(|l| l.starts_with("line "))
            .collect();
        assert_eq!(whole, numbered, "{outcome:#?}");
        let long = lines.iter().filter(|l| l.starts_with('x')).count();
        let pieces: Vec<&str> = outcome
            .out
            .lines()
            .filter_map(|l| l.strip_prefix(&format!("[{rank}]+ ")))
            .collect();
        assert_eq!((long, pieces.len()), (1, 2));
        let length: usize = lines
            .iter()
            .chain(&pieces)
            .filter(|l| l.starts_with('x'))
            .map(|l| l.len())
            .sum();
        assert!(
            pieces[1].ends_with("xtail") && length == 150_004,
            "{length}"
        );
        assert!(
            outcome
                .err
                .lines()
                .any(|l| l == format!("[{rank}] to standard error")),
            "{}",
            outcome.err
        );
    }
}

fn closed_output() {
    let outcome = Job::launcher("2", &["tag"], &["sh", "-c", "while echo y; do :; done"]).start();
    outcome.without_output().says(&["argonet run: rank "]);
}

fn timeout() {
    let outcome = Job::launched(3, &["timeout=0.5"], &["wait", "children"])
        .run()
        .code(124);
    outcome.says_too(&["argonet run: all ranks:\n  rank 0 (pid "]);
    outcome.says(&["argonet run: the job did not end within 0.5 s (--timeout); ranks 0, 1, 2 still ran and were ended"]);
    // One that ends by itself, though too late.
    let late = Job::launcher("1", &["timeout=0.3"], &["sleep", "0.5"]);
    late.run().code(124).says(&["0.3 s (--timeout)"]);
    Job::launched(2, &["timeout=50"], &["hello"])
        .run()
        .code(0)
        .silent();
}

fn signals() {
    // Every rank of the script says that it was reached, and goes on.
    let script = "trap 'echo usr' USR1; trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.01; done";
    let mut job = Job::launcher("3", &[], &["sh", "-c", script]).start();
    (0..3).for_each(|_| drop(job.read_until("up")));
    job.kill(job.pid(), Signal::USR1);
    (0..3).for_each(|_| drop(job.read_until("usr")));
    job.kill(job.pid(), Signal::TERM);
    let outcome = job.outcome().code(0);
    assert_eq!(outcome.out.matches("term").count(), 3);
    for (signal, code, name) in [
        (Signal::INT, 130, "SIGINT"),
        (Signal::HUP, 129, "SIGHUP"),
        (Signal::QUIT, 131, "SIGQUIT"),
    ] {
        let mut job = Job::launched(2, &[], &["wait"]).start();
        job.read_until("ready");
        job.kill(job.pid(), signal);
        job.outcome()
            .code(code)
            .says(&["was killed by signal ", name]);
    }
}

fn second_interrupt() {
    let script = "trap 'echo int' INT; echo up; while :; do sleep 0.01; done";
    let mut job = Job::launcher("2", &[], &["sh", "-c", script]).start();
    (0..2).for_each(|_| drop(job.read_until("up")));
    job.kill(job.pid(), Signal::INT);
    (0..2).for_each(|_| drop(job.read_until("int")));
    job.kill(job.pid(), Signal::INT);
    job.outcome()
        .code(130)
        .says(&["signal 2 (SIGINT) came a second time; the ranks were killed"]);
}

fn bind() {
    let cores = argonet_boot::binding::allowed_cores().expect("cores");
    let outcome = Job::launched(5, &["bind"], &["cores"]).run().code(0);
    let expected: Vec<String> = (0..5)
        .map(|r| format!("rank {r} on [{}]", cores[r % cores.len()]))
        .collect();
    assert_eq!(outcome.lines(), expected);
}

fn inherit() {
    let outcome = Job::launched(2, &["conduit=smp"], &["inherit"])
        .run()
        .code(0);
    assert_eq!(outcome.lines(), ["boot= 0 conduit=smp"; 2]);
}

/// Works, or names the missing feature of the system.
fn huge_pages() {
    for size in ["2MB", "1GB"] {
        let outcome = Job::launched(2, &[], &["hello"])
            .env("ARGONET_HUGEPAGES", size)
            .run();
        if outcome.status.success() {
            check_hello(&outcome, 2);
        } else {
            outcome
                .code(1)
                .says(&["argonet-segments", "/sys/kernel/mm/hugepages"]);
        }
    }
}
