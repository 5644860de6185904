//! What limits of the system and full devices do to jobs, and that the user is told.

use crate::support::{Job, Test, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("limits_processes_run_out_while_ranks_are_forked", processes),
    ("limits_open_files_of_many_neighbourhoods", open_files),
    ("limits_size_of_files", file_size),
    ("limits_small_stack_is_named_where_a_rank_faults", stack),
    ("limits_full_device_is_told_and_no_success", full_device),
];

/// Users without processes: what has ended, and has not been reaped, counts for its user.
const NOBODIES: std::ops::Range<u32> = 61_843..61_848;

/// `args` below a shell that has run `first`.
fn after(first: &str, args: &[&str]) -> Job {
    let script = format!("{first} && exec \"$@\"");
    Job::program(&[&["bash", "-c", &script, "bash"], args].concat())
}

fn launched(first: &str, args: &[&str]) -> Job {
    let this = this_program();
    after(first, &[&[this.as_str(), "__launch"], args].concat())
}

fn processes() {
    let this = this_program();
    let script = "ulimit -u 6 && exec \"$@\"";
    let shell = ["bash", "-c", script, "bash", &this, "__rank", "hello"];
    // Whether the guardian, or rank 0, runs first must not matter.
    for user in NOBODIES {
        let become_user = ["setpriv", &format!("--reuid={user}"), "--clear-groups"];
        let status = std::process::Command::new(become_user[0])
            .args(&become_user[1..])
            .arg("true")
            .stderr(std::process::Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("left out: this user may not become another");
            return;
        }
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
    let args = ["3", "conduit=none", "--", &this, "__rank", "neighbours"];
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
