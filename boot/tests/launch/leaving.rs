//! How programs in C end jobs: by exits that run no exit handlers, by return from main without
//! having finalized, and by fatal errors that the caller has reported.

use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob, abort_reported, exit_without_handlers, print_backtrace};
use rustix::process::Signal;

use crate::endings::{at_exit, both, handle, raise};
use crate::programs::{fence, for_ever, join, say, start};
use crate::support::{Job, Outcome, Test, pid, until};

pub(crate) const TESTS: &[Test] = &[
    ("leaving_explicitly_runs_no_exit_handlers", explicit),
    ("leaving_explicitly_before_the_start", early),
    ("leaving_explicitly_without_a_job", alone),
    ("leaving_by_return_from_all_is_an_exit_of_all", all_return),
    ("leaving_by_return_of_one_ends_the_others", one_returns),
    (
        "leaving_has_its_time_however_late_the_guardian_is",
        late_guardian,
    ),
    ("leaving_is_not_caught_if_not_wanted", not_caught),
    ("leaving_by_a_reported_error_shows_one_backtrace", reported),
];

const RAN: &str = "the exit handler ran";

/// Number of times that `what` stands in the standard output.
fn count(outcome: &Outcome, what: &str) -> usize {
    outcome.out.matches(what).count()
}

fn explicit() {
    for from in ["main", "threads", "handler", "exit-handler"] {
        for ranks in [1, 3] {
            for job in both(ranks, &["c-exit", from, "all", "6"]) {
                let job = job.env("GASNET_EXITTIMEOUT", "60");
                let outcome = job.run().code(6).silent();
                let handlers = if from == "exit-handler" { ranks } else { 0 };
                assert_eq!(count(&outcome, RAN), handlers as usize, "{outcome:#?}");
                assert_eq!(
                    count(&outcome, "held by C"),
                    ranks as usize,
                    "{from} {outcome:#?}"
                );
                if from != "handler" {
                    assert_eq!(
                        count(&outcome, "held by Rust"),
                        ranks as usize,
                        "{outcome:#?}"
                    );
                }
            }
        }
        for job in both(3, &["c-exit", from, "2", "7"]) {
            let outcome = job.env("GASNET_EXITTIMEOUT", "2").run().code(7);
            let outcome =
                outcome.says(&["rank 2 (pid ", "called exit(7); the other ranks were ended"]);
            assert_eq!(count(&outcome, "held by C"), 3, "{from} {outcome:#?}");
        }
    }
}

fn early() {
    for job in both(3, &["c-exit-early", "9"]) {
        let outcome = job.env("GASNET_EXITTIMEOUT", "60").run().code(9).silent();
        assert_eq!((count(&outcome, RAN), count(&outcome, "held by C")), (0, 3));
    }
}

fn alone() {
    let this = crate::support::this_program();
    let outcome = Job::program(&[&this, "__rank", "c-exit-alone", "5"]).run();
    let outcome = outcome.code(5).silent();
    assert_eq!((count(&outcome, RAN), count(&outcome, "held by C")), (0, 1));
}

fn all_return() {
    for ranks in [1, 3] {
        for code in ["0", "5"] {
            for job in both(ranks, &["c-exit", "return", "all", code]) {
                let job = job.env("GASNET_EXITTIMEOUT", "60");
                let outcome = job.run().code(code.parse().expect("a code")).silent();
                assert_eq!(count(&outcome, RAN), ranks as usize, "{outcome:#?}");
            }
        }
    }
}

fn one_returns() {
    for code in ["0", "7"] {
        for job in both(3, &["c-exit", "return", "1", code]) {
            let outcome = job.env("GASNET_EXITTIMEOUT", "2").run();
            let outcome = outcome.code(code.parse().expect("a code"));
            let why = format!("called exit({code}); the other ranks were ended");
            let outcome = outcome.says(&["rank 1 (pid ", &why]);
            // The others write the text that they hold, and no more.
            assert_eq!(count(&outcome, "held by C"), 3, "{outcome:#?}");
            assert_eq!(count(&outcome, RAN), 1, "{outcome:#?}");
        }
    }
}

/// As on a host that stands still for a while.
fn late_guardian() {
    let timeout = Duration::from_secs(2);
    let job = Job::self_started("3", &["c-hold", "1"]);
    let job = job.env("GASNET_EXITTIMEOUT", &timeout.as_secs().to_string());
    let mut job = job.with_input().start();
    let guardian = pid(job.read_until("guardian ").parse().expect("a process id"));
    job.read_until("ready");
    let leaver = job.rank_pid(1);
    let begun = Instant::now();
    job.give_line();
    // The rank has reported to the guardian, which has taken note once it sleeps again.
    until(|| !job.waits(leaver) && job.sleeps(guardian));
    job.kill(guardian, Signal::STOP);
    until(|| begun.elapsed() > timeout);
    job.kill(guardian, Signal::CONT);
    let outcome = job.outcome().code(0);
    let outcome = outcome.says(&["rank 1 (pid ", "called exit(0); the other ranks were ended"]);
    assert_eq!(count(&outcome, "held by C"), 3, "{outcome:#?}");
}

fn not_caught() {
    for job in both(3, &["c-exit", "return", "all", "5"]) {
        let outcome = job.env("GASNET_CATCH_EXIT", "0").run().code(5);
        assert_eq!(count(&outcome, RAN), 3, "{outcome:#?}");
    }
    // The others do not need the one that leaves.
    for job in both(3, &["c-leave-first"]) {
        let job = job.env("GASNET_CATCH_EXIT", "0");
        let job = job.env("GASNET_EXITTIMEOUT", "0.5");
        let outcome = job.run().code(0).silent();
        assert_eq!(count(&outcome, RAN), 3, "{outcome:#?}");
    }
}

fn reported() {
    for job in both(3, &["c-reported"]) {
        let outcome = job.env("GASNET_BACKTRACE", "1").run().code(134);
        let headings = outcome.err.matches("backtrace (").count();
        assert_eq!(headings, 1, "{outcome:#?}");
        outcome.says(&[
            "backtrace (asked for)",
            "rank 2 (pid ",
            "was killed by signal 6 (SIGABRT); the other",
        ]);
    }
}

/// The programs of ranks of the tests above; `None` if it is none of these.
pub(crate) fn rank(args: &[&str]) -> Option<i32> {
    match *args {
        ["c-exit", from, who, code] => {
            let job = start();
            job.leaves_by_exit();
            hold();
            fence(&job);
            let code = code.parse().expect("a code");
            if who == "all" || job.rank() == JobRank(who.parse().expect("a rank")) {
                return Some(leave(from, code));
            }
            fence(&job);
            for_ever()
        }
        // One leaves when rank 0 has read a line; the others never look whether the job is ending.
        ["c-hold", who] => {
            let job = join();
            job.leaves_by_exit();
            say(&format!("pid {} {}", job.rank(), std::process::id()));
            fence(&job);
            job.started();
            if job.rank() == JobRank(0) {
                let guardian = job.job_page().guardian_pid().unwrap_or(0);
                say(&format!("guardian {guardian}"));
                say("ready");
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).expect("a line");
            }
            hold();
            fence(&job);
            if job.rank() == JobRank(who.parse().expect("a rank")) {
                exit_without_handlers(0)
            }
            for_ever()
        }
        ["c-exit-early", code] => {
            let job = join();
            job.leaves_by_exit();
            hold();
            exit_without_handlers(code.parse().expect("a code"))
        }
        ["c-exit-alone", code] => {
            hold();
            exit_without_handlers(code.parse().expect("a code"))
        }
        ["c-leave-first"] => {
            let job = start();
            job.leaves_by_exit();
            hold();
            fence(&job);
            if job.rank() == JobRank(1) {
                return Some(0);
            }
            outlive(&job, JobRank(1));
            // The end of the job, if any, was stored before the process of rank 1 ended.
            Some(if job.attend() { 8 } else { 0 })
        }
        // C's streams hold text that a full device does not take.
        ["c-full", how] => {
            let job = start_quietly();
            #[allow(unsafe_code)]
            // SAFETY: a string that ends with 0.
            unsafe {
                libc::puts(c"held by C".as_ptr())
            };
            fence(&job);
            match how {
                "return" => job.finalized(),
                "return-member" => job.leaves_by_exit(),
                "exit" => argonet_boot::exit(0),
                "c-exit" => exit_without_handlers(0),
                "handler" => {
                    handle(libc::SIGUSR1, exits_well as *const () as usize);
                    raise(libc::SIGUSR1);
                }
                other => panic!("no such way to leave: {other}"),
            }
            Some(0)
        }
        ["c-reported"] => {
            let job = start();
            if job.rank() == JobRank(2) {
                print_backtrace();
                abort_reported();
            }
            fence(&job);
            Some(0)
        }
        _ => None,
    }
}

/// Waits until the process of another rank has gone.
fn outlive(job: &LocalJob, rank: JobRank) {
    let pid = pid(job.rank_page(rank).pid());
    // A child of the launcher or of rank 0 stays until it is reaped; a zombie has gone, too.
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    until(|| std::fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z ")));
}

/// Joins and starts up without a word.
fn start_quietly() -> LocalJob {
    let job = join();
    fence(&job);
    job.started();
    job
}

/// Leaves text in the streams of C and Rust, and an exit handler.
fn hold() {
    at_exit(ran);
    print!("held by Rust ");
    #[allow(unsafe_code)]
    // SAFETY: a string that ends with 0. A stream that is no terminal holds the line back.
    unsafe {
        libc::puts(c"held by C".as_ptr())
    };
}

extern "C" fn ran() {
    let _ = rustix::io::write(rustix::stdio::stdout(), RAN.as_bytes());
}

extern "C" fn exits(_signal: i32) {
    exit_without_handlers(6 + i32::from(std::env::args().any(|arg| arg == "7")))
}

extern "C" fn exits_well(_signal: i32) {
    exit_without_handlers(0)
}

extern "C" fn exits_again() {
    exits(0);
}

fn leave(from: &str, code: i32) -> i32 {
    match from {
        "main" => exit_without_handlers(code),
        "threads" => std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| exit_without_handlers(code));
            }
            for_ever()
        }),
        "handler" => {
            handle(libc::SIGUSR1, exits as *const () as usize);
            raise(libc::SIGUSR1);
            unreachable!("the handler returned")
        }
        // Handlers that were registered later have run; earlier ones do not run.
        "exit-handler" => {
            at_exit(exits_again);
            at_exit(ran);
            std::process::exit(3)
        }
        "return" => code,
        other => panic!("no such way to leave: {other}"),
    }
}
