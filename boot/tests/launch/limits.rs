//! Effects of limits of the system and of full devices on jobs, and their reports to the user.

use crate::support::{Job, Test, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("limits_open_files_of_many_neighborhoods", open_files),
    ("limits_size_of_files", file_size),
    ("limits_small_stack_is_named_where_a_rank_faults", stack),
    ("limits_full_device_is_reported_and_no_success", full_device),
    (
        "limits_full_device_is_reported_by_ranks",
        full_device_of_ranks,
    ),
    (
        "limits_small_stack_of_another_host_is_named",
        stack_of_other_host,
    ),
    (
        "limits_a_start_that_fails_leaves_no_signal_blocked",
        failed_start,
    ),
];

/// Tests that become other users, and so do not run everywhere.
pub(crate) const TESTS_OF_USERS: &[Test] =
    &[("limits_processes_run_out_while_ranks_are_forked", processes)];

/// Users without processes: a process that has ended, and has not been reaped, counts for its user.
pub(crate) const IDLE_USERS: std::ops::Range<u32> = 61_843..61_848;

/// `args` below a shell that has run `first`.
fn after(first: &str, args: &[&str]) -> Job {
    let script = format!("{first} && exec \"$@\"");
    Job::program(&[&["bash", "-c", &script, "bash"], args].concat())
}

fn launched(first: &str, args: &[&str]) -> Job {
    let this = this_program();
    after(first, &[&[this.as_str(), "__launch"], args].concat())
}

/// The command by which a test runs as one of [`IDLE_USERS`].
pub(crate) fn become_user(user: u32) -> [String; 3] {
    [
        "setpriv".into(),
        format!("--reuid={user}"),
        "--clear-groups".into(),
    ]
}

/// Whether this user may become another, who may run this program: not where it lies in a directory
/// that is closed to others.
pub(crate) fn may_become_users() -> bool {
    let [command, args @ ..] = become_user(IDLE_USERS.start);
    let status = std::process::Command::new(command)
        .args(args)
        .args(["test", "-x", &this_program()])
        .stderr(std::process::Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn processes() {
    let this = this_program();
    let script = "ulimit -u 6 && exec \"$@\"";
    let shell = ["bash", "-c", script, "bash", &this, "__rank", "hello"];
    // Whether the guardian, or rank 0, runs first must not matter.
    for user in IDLE_USERS {
        let become_user = become_user(user);
        let become_user = become_user.each_ref().map(String::as_str);
        Job::program(&[&become_user[..], &shell].concat())
            .env("GASNET_PSHM_NODES", "16")
            .run()
            .code(3)
            .says(&[
                "the system has no room for another process",
                "`ulimit -u`, now 6",
            ]);
    }
}

fn open_files() {
    let this = this_program();
    let args = ["3", "conduit=none", "--", &this, "__rank", "neighbors"];
    let outcome = launched("ulimit -n 64", &args)
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .run()
        .code(0)
        .silent();
    assert_eq!(outcome.lines().len(), 3);
}

fn file_size() {
    let why = [
        "sizing the control memory of 3 ranks",
        "(RLIMIT_FSIZE, `ulimit -f`)",
    ];
    launched("ulimit -f 1", &["3", "--", "true"])
        .run()
        .code(1)
        .says(&why);
    let this = this_program();
    after("ulimit -f 1", &[&this, "__rank", "hello"])
        .env("GASNET_PSHM_NODES", "3")
        .run()
        .code(3)
        .says(&why);
    let script = "kill -XFSZ $$";
    Job::launcher("1", &[], &["sh", "-c", script]).run().says(&[
        "was killed by signal 25 (SIGXFSZ), as a file",
        "RLIMIT_FSIZE",
    ]);
}

fn stack() {
    let script = "kill -SEGV $$";
    launched("ulimit -s 512", &["1", "--", "sh", "-c", script])
        .run()
        .code(139)
        .says(&["signal 11 (SIGSEGV), perhaps as its stack was full: RLIMIT_STACK (`ulimit -s`) is 512 KiB"]);
    let outcome = Job::launcher("1", &[], &["sh", "-c", script])
        .run()
        .code(139);
    assert!(!outcome.err.contains("RLIMIT_STACK"), "{outcome:?}");
}

fn full_device() {
    let template = "HOST_OF_TEST=%M exec %C";
    for options in [&["tag"] as &[&str], &["conduit=none", "hosts=a,b"]] {
        let args = [&["2"], options, &["--", "echo", "hello"]].concat();
        launched("exec >/dev/full", &args)
            .env("GASNET_CSPAWN_CMD", template)
            .env("GASNET_SPAWNFN", "")
            .run()
            .code(1)
            .says(&["standard output failed: No space left on device"]);
    }
}

/// Loss of the text in C's streams when a rank ends, for each way to end.
fn full_device_of_ranks() {
    let this = this_program();
    for how in ["return", "return-member", "exit", "c-exit", "handler"] {
        let rank = [this.as_str(), "__rank", "c-full", how];
        let launch = [&[this.as_str(), "__launch", "2", "--"], &rank[..]].concat();
        let jobs = [
            after("exec >/dev/full", &launch),
            after("exec >/dev/full", &rank).env("GASNET_PSHM_NODES", "2"),
            after("exec >/dev/full", &rank),
        ];
        for job in jobs {
            let outcome = job.env("GASNET_EXITTIMEOUT", "60").run().code(1);
            outcome.says(&[
                "argonet: rank 0 (pid ",
                "): writing standard output failed: No space left on device",
            ]);
        }
    }
}

fn stack_of_other_host() {
    let script = "kill -SEGV $$";
    let job = |first, template| {
        launched(
            first,
            &["2", "conduit=none", "hosts=a,b", "--", "sh", "-c", script],
        )
        .env("GASNET_CSPAWN_CMD", template)
        .env("GASNET_SPAWNFN", "")
        .run()
        .code(139)
    };
    job("true", "ulimit -S -s 512; HOST_OF_TEST=%M exec %C").says(&[
        "signal 11 (SIGSEGV), perhaps as its stack was full: RLIMIT_STACK (`ulimit -s`) is 512 KiB",
    ]);
    let outcome = job(
        "ulimit -S -s 512",
        "ulimit -S -s 8192; HOST_OF_TEST=%M exec %C",
    );
    assert!(!outcome.err.contains("RLIMIT_STACK"), "{outcome:?}");
}

/// The guardian cannot be made under one of these limits, or the files, or the ranks.
fn failed_start() {
    let this = this_program();
    let mut refused = 0;
    for files in 3..24 {
        let first = format!("ulimit -S -n {files}");
        let outcome = after(&first, &[&this, "__rank", "fails-to-start"])
            .env("GASNET_PSHM_NODES", "2")
            .run();
        assert!(!outcome.out.contains("blocked"), "{files} {outcome:?}");
        refused += usize::from(outcome.out.contains("refused"));
    }
    assert!(refused > 3, "{refused}");
}
