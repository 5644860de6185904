//! Jobs that start themselves because of `GASNET_PSHM_NODES`.

use rustix::process::Signal;

use crate::support::{Job, Test, check_hello, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("self_started_hello_of_1_2_8_64_ranks", hello),
    ("self_started_with_0_or_nothing_is_one_rank", one_rank),
    ("self_started_exit_status_is_the_failing_ranks", exit_codes),
    (
        "self_started_exit_0_without_finalizing_is_a_failure",
        exit_without_finalizing,
    ),
    (
        "self_started_exit_code_after_finalizing",
        exit_after_finalizing,
    ),
    ("self_started_abort", abort),
    ("self_started_killed_rank_is_named", killed_rank),
    ("self_started_stdin_goes_to_rank_0_only", stdin),
    ("self_started_late_rank_is_named", late),
    (
        "self_started_by_a_process_that_ignores_the_end_of_children",
        ignores_children,
    ),
    ("self_started_exec_in_a_rank", execs),
    ("self_started_exec_after_finalizing", execs_after_finalizing),
    ("self_started_rank_0_closes_descriptors", closes),
    (
        "self_started_number_of_a_script_goes_no_further",
        number_of_a_script,
    ),
];

fn hello() {
    for ranks in [1, 2, 8, 64] {
        check_hello(
            &Job::self_started(&ranks.to_string(), &["hello"])
                .run()
                .code(0)
                .silent(),
            ranks,
        );
    }
}

fn one_rank() {
    for ranks in ["0", "", " 1 "] {
        check_hello(
            &Job::self_started(ranks, &["hello"]).run().code(0).silent(),
            1,
        );
    }
}

fn exit_codes() {
    for (rank, code) in [("0", 7), ("1", 8), ("3", 255)] {
        let why = format!("exited with code {code} without finalizing; the other ranks were ended");
        let says = format!("argonet: rank {rank} (pid ");
        Job::self_started("4", &["exit", rank, &code.to_string()])
            .run()
            .code(code)
            .says(&[&says, &why]);
        Job::self_started("4", &["exit-at-fence", rank, &code.to_string()])
            .run()
            .code(code)
            .says(&[&says, &why]);
    }
}

fn exit_without_finalizing() {
    for rank in ["0", "2"] {
        let says = format!("argonet: rank {rank} (pid ");
        let why = "exited with code 0 without finalizing; the other ranks were ended";
        Job::self_started("3", &["exit", rank, "0"])
            .run()
            .code(1)
            .says(&[&says, why]);
    }
}

fn exit_after_finalizing() {
    let outcome = Job::self_started("3", &["finalize-then-exit", "2", "5"])
        .run()
        .code(5);
    outcome.says(&["argonet: rank 2 (pid ", "exited with code 5\n"]);
    Job::self_started("3", &["finalize-then-exit", "0", "6"])
        .run()
        .code(6)
        .silent();
    Job::self_started("3", &["finalize-then-exit", "9", "5"])
        .run()
        .code(0)
        .silent();
}

fn abort() {
    for rank in ["0", "1"] {
        let outcome = Job::self_started("3", &["abort", rank, "77"])
            .run()
            .code(77);
        outcome.says(&[
            &format!("argonet: rank {rank} (pid "),
            "the answer is wrong",
        ]);
    }
}

fn killed_rank() {
    let mut job = Job::self_started("3", &["wait", "children"]).start();
    job.read_until("ready");
    let rank = job.rank_pid(2);
    job.kill(rank, Signal::KILL);
    let why = format!(
        "argonet: rank 2 (pid {rank}) was killed by signal 9 (SIGKILL); the other ranks were ended"
    );
    job.outcome().code(137).says(&[&why]);
}

fn stdin() {
    let outcome = Job::self_started("3", &["stdin"])
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

fn late() {
    let job = Job::self_started("3", &["late", "0"]).env("ARGONET_START_TIMEOUT", "1");
    job.run().code(4).says(&["in start-up for rank 0; "]);
}

/// The system then reaps ranks by itself; the codes are in the exit word.
fn ignores_children() {
    let job = |program: &[&str]| {
        let this = this_program();
        let command = [
            &[
                "env",
                "--ignore-signal=CHLD",
                "GASNET_PSHM_NODES=3",
                &this,
                "__rank",
            ],
            program,
        ];
        Job::program(&command.concat()).run()
    };
    check_hello(&job(&["hello"]).code(0).silent(), 3);
    job(&["exit", "1", "8"])
        .code(8)
        .says(&["argonet: rank 1 (pid ", "exited with code 8 without"]);
}

fn execs() {
    let outcome = Job::self_started("3", &["execs", "0", "sleep", "100000"])
        .run()
        .code(137);
    outcome.says(&[
        "argonet: rank 0 (pid ",
        "replaced its program by exec without finalizing; the ranks were ended",
    ]);
    // A rank that is not the process that the user started may run any program, and its end is that
    // of the rank.
    for job in [
        Job::self_started("3", &["execs", "1", "true"]),
        Job::launched(3, &[], &["execs", "0", "true"]),
    ] {
        job.run()
            .code(1)
            .says(&["exited with code 0 without finalizing; the other ranks were ended"]);
    }
}

fn execs_after_finalizing() {
    let program = ["finalizes-and-execs", "sh", "-c", "echo done; exit 5"];
    let outcome = Job::self_started("3", &program).run().code(5).silent();
    assert!(outcome.out.contains("done"), "{outcome:?}");
}

fn closes() {
    let outcome = Job::self_started("3", &["closes"]).run().code(0).silent();
    assert!(outcome.out.contains("goes on"), "{outcome:?}");
}

/// Neither from a program that starts no ranks, nor from one that does, nor from a rank.
fn number_of_a_script() {
    let this = this_program();
    let program = || Job::program(&[&this, "__rank", "launches-itself"]);
    let sees_none = |job: Job, ranks: usize| {
        let outcome = job.env("ARGONET_LAUNCH_RANKS", "2").run().code(0).silent();
        assert_eq!(outcome.lines(), vec!["children see none"; ranks]);
    };
    sees_none(program(), 1);
    sees_none(program().env("ARGONET_CONDUIT", "tcp"), 2);
    sees_none(program().env("GASNET_PSHM_NODES", "3"), 1);
    sees_none(Job::launched(3, &[], &["launches-itself"]), 3);
    let bad = program().env("ARGONET_CONDUIT", "tcp");
    let outcome = bad.env("ARGONET_LAUNCH_RANKS", "2x").run().code(2);
    outcome.says(&["launch: ARGONET_LAUNCH_RANKS is \"2x\", which is no number of ranks: "]);
}
