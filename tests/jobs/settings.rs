//! Settings: misspelt, bad, without effect, different between ranks, printed.

use crate::support::{Done, Job, Outcome, Program, Test};
use argonet::{WaitMode, World};

pub(crate) const PROGRAMS: &[Program] = &[("settings", start), ("sleeps", sleeps)];

pub(crate) const TESTS: &[Test] = &[
    ("settings_misspelt_names_are_warned_of_once", misspelt),
    ("settings_without_effect_are_warned_of_once", idle),
    ("settings_of_others_are_left_alone", others),
    ("settings_bad_values_are_a_line_each", bad),
    ("settings_bad_value_of_one_rank", bad_on_one),
    ("settings_that_differ_are_named", different),
    ("settings_that_may_differ_do", may_differ),
    ("settings_are_printed_once", verbose),
    ("settings_of_waiting_hold", waiting),
];

fn start() -> Done {
    let world = World::init()?;
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Both ways to start a job.
fn both(ranks: u32) -> [Job; 2] {
    [
        Job::launched(ranks, "settings"),
        Job::self_started(ranks, "settings"),
    ]
}

/// A job that ended well and wrote these lines on standard error.
#[track_caller]
fn wrote(mut outcome: Outcome, lines: &[&str]) {
    assert_eq!(
        outcome.err.lines().collect::<Vec<_>>(),
        lines,
        "{outcome:#?}"
    );
    outcome.err.clear();
    outcome.well();
}

fn misspelt() {
    for job in both(3) {
        let job = job.env("GASNET_BACKTRAC", "1").env("ARGONET_SEGMNT", "1");
        wrote(
            job.run(),
            &[
                "argonet: warning: the environment variable ARGONET_SEGMNT is unknown; the nearest name that is known is ARGONET_SEGMENT",
                "argonet: warning: the environment variable GASNET_BACKTRAC is unknown; the nearest name that is known is GASNET_BACKTRACE",
            ],
        );
    }
    let job = Job::launched(3, "settings").env("GASNET_BACKTRAC", "1");
    wrote(job.env("GASNET_QUIET", "y").run(), &[]);
}

fn idle() {
    for job in both(3) {
        let job = job
            .env("GASNET_BARRIER", "x")
            .env("GASNET_UCX_SPAWNER", "pmi");
        wrote(
            job.run(),
            &[
                "argonet: warning: GASNET_BARRIER has no effect in argonet: there is one barrier algorithm in this version",
                "argonet: warning: GASNET_UCX_SPAWNER has no effect in argonet: ranks are started by `argonet run`, by GASNET_PSHM_NODES or by GASNET_SPAWNFN",
            ],
        );
    }
}

fn others() {
    let job = Job::launched(2, "settings").env("GASNET_UCX_TLS", "sm");
    let job = job
        .env("GASNET_TEST_POLITE_SYNC", "1")
        .env("FI_PROVIDER", "tcp");
    // Empty is not given.
    wrote(
        job.env("GASNET_BACKTRAC", "")
            .env("GASNET_CATCH_EXIT", "")
            .run(),
        &[],
    );
}

fn bad() {
    for (job, before, code) in [
        (Job::launched(3, "settings"), "argonet run: ", 2),
        (Job::self_started(3, "settings"), "", 3),
    ] {
        let job = job
            .env("GASNET_CATCH_EXIT", "maybe")
            .env("ARGONET_WAIT", "x");
        let outcome = job.env("GASNET_EXITTIMEOUT_MAX", "9").run();
        assert_eq!(outcome.code(), Some(code), "{outcome:#?}");
        let lines = [
            "the environment variable ARGONET_WAIT is \"x\"; allowed: one of auto, spin, yield, sleep",
            "the environment variable GASNET_CATCH_EXIT is \"maybe\"; allowed: 1, y or yes; 0, n or no",
        ];
        let lines = lines.map(|line| format!("{before}{line}"));
        assert_eq!(
            outcome.err.lines().collect::<Vec<_>>(),
            lines,
            "{outcome:#?}"
        );
    }
}

/// A launched job whose rank 1 of three has `NAME=VALUE`; the others have the launcher's value.
fn odd(assignment: &str) -> Job {
    let script = format!("case $ARGONET_BOOT in 2:1:*) export {assignment};; esac; exec \"$0\"");
    Job::wrapped(3, &script, "settings")
}

fn bad_on_one() {
    let outcome = odd("GASNET_FS_SYNC=2").run();
    let outcome = outcome.failed(&["GASNET_FS_SYNC is \"2\"; allowed: 1, y or yes; 0, n or no"]);
    assert_eq!(
        outcome.err.matches("GASNET_FS_SYNC").count(),
        1,
        "{outcome:#?}"
    );
}

fn different() {
    for (name, first, second) in [
        ("GASNET_MAX_SEGSIZE", "64MB", "128MB"),
        ("ARGONET_SEGMENT", "1MB", "2MB"),
        ("GASNET_EXITTIMEOUT", "3", "4"),
        ("GASNET_CATCH_EXIT", "1", "0"),
    ] {
        let job = odd(&format!("{name}={second}")).env(name, first);
        let why = format!(
            "rank 1: {name} is \"{second}\" here and \"{first}\" on rank 0; it must be the same on all ranks"
        );
        let outcome = job.run().failed(&[&why]);
        assert_eq!(outcome.err.matches(name).count(), 1, "{outcome:#?}");
        // Given on one side only.
        let why = format!("rank 1: {name} is \"{second}\" here and not set on rank 0");
        odd(&format!("{name}={second}")).run().failed(&[&why]);
    }
    let job = odd("GASNET_EXITTIMEOUT_MIN=").env("GASNET_EXITTIMEOUT_MIN", "2");
    job.run()
        .failed(&["rank 1: GASNET_EXITTIMEOUT_MIN is not set here and \"2\" on rank 0"]);
    // Too long to be published; the same length on both.
    let long = format!("0.{:0>300}1", "");
    let job = odd(&format!("GASNET_EXITTIMEOUT_MIN={long}2"))
        .env("GASNET_EXITTIMEOUT_MIN", &format!("{long}3"));
    job.run().failed(&[
        "rank 1: GASNET_EXITTIMEOUT_MIN is \"0.0",
        "here and another text, too long to be shown on rank 0",
    ]);
}

fn may_differ() {
    wrote(odd("GASNET_FREEZE_SIGNAL=USR2").run(), &[]);
    // Blanks around a value do not count.
    wrote(
        odd("GASNET_CATCH_EXIT=' 1 '")
            .env("GASNET_CATCH_EXIT", "1")
            .run(),
        &[],
    );
}

fn verbose() {
    for (job, launched) in both(3).into_iter().zip([true, false]) {
        let job = job
            .env("GASNET_VERBOSEENV", "1")
            .env("ARGONET_SEGMENT", "8MB");
        let outcome = job.run();
        assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
        let lines: Vec<&str> = outcome.err.lines().collect();
        let conduit = lines
            .iter()
            .filter(|line| line.contains("ARGONET_CONDUIT = smp "));
        assert_eq!(conduit.count(), usize::from(launched), "{outcome:#?}");
        let huge = lines
            .iter()
            .filter(|line| line.contains("ARGONET_HUGEPAGES = *not set* "));
        assert_eq!(huge.count(), 1, "{outcome:#?}");
        for line in [
            "ENV parameter: GASNET_VERBOSEENV = YES",
            "ENV parameter: ARGONET_SEGMENT = 8MB (8 MB)",
            "ENV parameter: GASNET_MAX_SEGSIZE = 0.85/H                      (default)",
            "ENV parameter: GASNET_QUIET = NO                                (default)",
            "ENV parameter: ARGONET_START_TIMEOUT = 60                       (default)",
        ] {
            let count = lines.iter().filter(|found| **found == line).count();
            assert_eq!(count, 1, "{line}: {outcome:#?}");
        }
        assert!(
            lines.iter().all(|line| line.starts_with("ENV parameter: ")),
            "{outcome:#?}"
        );
    }
}

fn sleeps() -> Done {
    let world = World::init()?;
    assert_eq!(world.wait_mode(), WaitMode::Sleep);
    world.barrier()?;
    Ok(world.finalize()?)
}

fn waiting() {
    Job::launched(2, "sleeps")
        .env("ARGONET_WAIT", "Sleep")
        .run()
        .well();
    // Ranks 1 and 2 wait for rank 0, which waits for the end of its input.
    let job = Job::launched(3, "stuck").env("ARGONET_STALL_TIMEOUT", "0.01");
    let outcome = job.run_with(|talk| {
        // Earlier reports are of a start that took long.
        let wait = " waits in a barrier for rank 0 since ";
        while !talk.line_with("argonet: rank ").contains(wait) {}
    });
    assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
}
