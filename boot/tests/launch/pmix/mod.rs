//! Jobs over several hosts by PMIx, with a libpmix that fails: it is compiled here, and variables
//! of a step of Slurm say that there is another host.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Job, Test, this_program};

pub(crate) const TESTS: &[Test] = &[
    ("pmix_library_that_cannot_be_used", unusable),
    ("pmix_library_that_fails", fails),
    ("pmix_library_that_does_not_answer", hangs),
    ("pmix_values_that_are_none", hostile),
    ("pmix_second_thread", second_thread),
];

/// The library, made with this option of the compiler.
fn library(option: &str) -> String {
    let name = format!("libpmix-of-a-test{option}.so");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launch/pmix/fake.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", option, "-o"]);
    let output = compiler.args([&path, &source]).output().expect("cc");
    assert!(output.status.success(), "{output:?}");
    path.to_string_lossy().into_owned()
}

/// The whole library.
fn whole() -> &'static str {
    static WHOLE: OnceLock<String> = OnceLock::new();
    WHOLE.get_or_init(|| library("-O1"))
}

/// Starts the two ranks of the first host of three ranks, and ends with the code of rank 0.
const HOST: &str = "
    SLURM_PROCID=1 SLURM_LOCALID=1 PMIX_RANK=1 \"$@\" &
    SLURM_PROCID=0 SLURM_LOCALID=0 PMIX_RANK=0 \"$@\"
    code=$?
    wait
    exit $code";

/// A rank program in those processes, with `library`, which does `what`.
fn host(library: &str, what: &str, program: &[&str]) -> Job {
    let this = this_program();
    let command = [&["sh", "-c", HOST, "sh", &this, "__rank"], program].concat();
    Job::program(&command)
        .env("SLURM_JOB_ID", &std::process::id().to_string())
        // The name at which the ranks meet is another one for each case.
        .env("SLURM_CLUSTER_NAME", &format!("{what}{}", program.len()))
        .env("SLURM_STEP_ID", "0")
        .env("SLURM_STEP_NUM_TASKS", "3")
        .env("SLURM_STEP_NUM_NODES", "2")
        .env("SLURM_STEP_TASKS_PER_NODE", "2,1")
        .env("SLURM_NODEID", "0")
        .env(
            "PMIX_NAMESPACE",
            &format!("slurm.pmix.{}.0", std::process::id()),
        )
        .env("PMIX_SERVER_URI2", "none")
        .env("ARGONET_CONDUIT", "tcp")
        .env("ARGONET_PMIX_LIBRARY", library)
        .env("FAKE", what)
}

/// Both ranks end, and one says this.
fn says(what: &str, parts: &[&str]) {
    let outcome = host(whole(), what, &["hello"]).run().code(3);
    outcome
        .says(&["attach: rank 0", "attach: rank 1"])
        .says(parts);
}

fn unusable() {
    let lacks = library("-DNO_FENCE");
    for (library, says) in [
        (
            "/nowhere/libpmix.so.2",
            "no libpmix could be loaded: /nowhere",
        ),
        (&lacks, "is no libpmix: it has no function PMIx_Fence"),
        ("libc.so.6", "libc.so.6 is no libpmix: it has no function"),
    ] {
        let outcome = host(library, library, &["hello"]).run().code(3);
        outcome.says(&[
            "attach: rank 0",
            "attach: rank 1",
            "the store of Slurm's srun (PMIx, by libpmix) failed at \"PMIx_Init\": ",
            says,
            "ARGONET_PMIX_LIBRARY",
        ]);
    }
    let outcome = host("/nowhere/libpmix.so.2", "is asked for", &["launcher"]);
    let outcome = outcome.run().code(0);
    let found = "false Slurm's srun: a program becomes rank 0 of 3, of which 2 on this host, from rank 0 on, share memory; the \
                 hosts find each other by PMIx only, and no libpmix could be loaded: /nowhere/libpmix.so.2";
    assert!(outcome.out.contains(found), "{outcome:?}");
    let outcome = host(whole(), "is asked for", &["launcher"]).run().code(0);
    let found = "the hosts find each other by PMIx, through 0 of a test (/";
    assert_eq!(outcome.out.matches(found).count(), 2, "{outcome:?}");
}

fn fails() {
    says(
        "refuses",
        &[
            "the launcher's server, which PMIX_SERVER_URI2 and the like name, cannot be used: BROKEN (-25)",
        ],
    );
    says(
        "crashes",
        &["the process that calls libpmix was killed by signal 6"],
    );
    says(
        "has a stranger",
        &["the launcher's server takes this process for rank 7 of 3, not for rank "],
    );
    says(
        "is full",
        &[
            "failed at \"PMIx_Put\": BROKEN (-1)",
            "ends the job with code 1",
        ],
    );
}

fn hangs() {
    let soon = |what| {
        let job = host(whole(), what, &["hello"]);
        job.env("ARGONET_START_TIMEOUT", "2").run().code(3)
    };
    soon("hangs at start").says(&[
        "attach: rank 0: the store of Slurm's srun (PMIx, by libpmix) failed at \"PMIx_Init\": no answer has come within 2 s",
        "raise ARGONET_START_TIMEOUT (seconds)",
    ]);
    // The library still waits in the fence then.
    soon("hangs at the fence").says(&[
        "attach: rank 0: the store of Slurm's srun (PMIx, by libpmix) failed at \"PMIx_Fence\": not all processes of the job have \
         come within 2 s",
        "libpmix ends the job with code 1: argonet: the job could not start",
    ]);
}

fn hostile() {
    for (what, reason) in [
        ("gives a number", "the value is of type 14, not 27"),
        ("gives no end", "the value has 18446744073709551615 bytes"),
        ("gives nothing", "rank 0 is the first of no host"),
        ("gives no host", "rank 0 is the first of no host"),
    ] {
        says(what, &[reason, "libpmix ends the job with code 1"]);
    }
}

fn second_thread() {
    let program = ["thread-but-in-rank", "0"];
    let outcome = host(whole(), "works", &program).run().code(3);
    outcome.says(&[
        "attach: this process has 2 threads and cannot fork the process that calls libpmix: initialize argonet before",
        "attach: rank 0",
    ]);
}
