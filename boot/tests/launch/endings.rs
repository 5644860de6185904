//! Jobs that are ended from within: exits at the edges, crashes, signals, hanging exit handlers;
//! and which processes learn of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob, exit, print_backtrace};
use rustix::process::Signal;

use crate::programs::{fence, for_ever, join, say, start};
use crate::support::{Job, Running, Test, pid, until};

pub(crate) const TESTS: &[Test] = &[
    ("endings_exit_of_all_during_start_up", start_up_all),
    ("endings_exit_of_one_during_start_up", start_up_one),
    (
        "endings_with_0_of_all_are_silent_however_late",
        ends_when_asked,
    ),
    ("endings_crashes_name_rank_and_signal", crashes),
    ("endings_fatal_errors", fatal),
    ("endings_backtraces_of_crashes", backtraces),
    ("endings_backtraces_on_demand", backtraces_on_demand),
    ("endings_overflow_of_the_stack_is_still_reported", overflow),
    ("endings_freeze_until_continued", freeze),
    ("endings_freeze_on_error", freeze_on_error),
    ("endings_freeze_by_a_signal", freeze_by_signal),
    ("endings_signals_that_are_not_caught", not_caught),
    ("endings_second_signal_ends_at_once", second_signal),
    ("endings_exit_handler_that_hangs", hanging_handler),
    ("endings_crash_in_an_exit_handler_is_a_failure", late_crash),
    (
        "endings_guardian_of_a_self_started_job_killed",
        guardian_killed,
    ),
    ("endings_stopped_rank_is_ended", stopped_rank),
    ("endings_terminal_stop_and_continue", stop_and_continue),
    ("endings_are_reported_when_asked_for", verbose),
    ("endings_bad_settings", bad_settings),
];

/// Whether this process was asked to end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// `program` launched and self-started.
pub(crate) fn both(ranks: u32, program: &[&str]) -> [Job; 2] {
    [
        Job::launched(ranks, &[], program),
        Job::self_started(&ranks.to_string(), program),
    ]
}

fn start_up_all() {
    for ranks in [1, 2, 4] {
        for job in both(ranks, &["exit-early", "all", "6"]) {
            job.env("GASNET_EXITTIMEOUT", "60").run().code(6).silent();
        }
    }
}

/// Ranks that still compute when one has exited with 0 are asked to end.
///
/// Ranks that then come to their end by themselves, with 0, were not ended by another.
fn ends_when_asked() {
    for how in ["exit", "std-exit"] {
        for job in both(3, &["end-when-asked", how]) {
            job.env("GASNET_EXITTIMEOUT", "4").run().code(0).silent();
        }
    }
}

fn start_up_one() {
    for ranks in [1, 2, 4] {
        let last = (ranks - 1).to_string();
        for job in both(ranks, &["exit-early", &last, "7"]) {
            let outcome = job.env("GASNET_EXITTIMEOUT", "1").run().code(7);
            if ranks > 1 {
                let named = format!("rank {last} (pid ");
                outcome.says(&[&named, "called exit(7); the other ranks were ended"]);
            }
        }
    }
}

const CRASHES: [(&str, i32, &str); 4] = [
    ("abort", 134, "SIGABRT"),
    ("segv", 139, "SIGSEGV"),
    ("bus", 135, "SIGBUS"),
    ("fpe", 136, "SIGFPE"),
];

fn crashes() {
    for (crash, code, name) in CRASHES {
        for who in ["last", "all", "thread"] {
            for ranks in [1, 2, 4] {
                for job in both(ranks, &["crash", crash, who]) {
                    let outcome = job.run().code(code);
                    if ranks > 1 && who != "all" {
                        let named = format!("rank {} (pid ", ranks - 1);
                        let why = format!("was killed by signal {} ({name})", code - 128);
                        outcome.says(&[&named, &why, "; the other ranks were ended"]);
                    }
                }
            }
        }
    }
}

fn fatal() {
    for who in ["last", "all"] {
        for job in both(3, &["crash", "fatal", who]) {
            job.run()
                .code(1)
                .says(&["argonet: rank ", "a synthetic fatal error"]);
        }
    }
}

fn backtraces() {
    for (crash, code, name) in CRASHES {
        for who in ["last", "thread"] {
            for job in both(2, &["crash", crash, who]) {
                let outcome = job.env("GASNET_BACKTRACE", "1").run().code(code);
                let heading = format!("backtrace ({name}):");
                outcome.says(&["argonet: rank 1 (pid ", &heading, "crash_here"]);
            }
        }
    }
    let job = Job::launched(2, &[], &["crash", "fatal", "last"]);
    let outcome = job.env("GASNET_BACKTRACE", "1").run().code(1);
    outcome.says(&["backtrace (fatal error):", "crash_here"]);
    let job = Job::launched(2, &[], &["crash", "segv", "last"]);
    let job = job
        .env("GASNET_BACKTRACE", "1")
        .env("GASNET_BACKTRACE_NODES", "0");
    let outcome = job.run().code(139);
    assert!(!outcome.err.contains("backtrace"), "{outcome:#?}");
    let job = Job::launched(2, &[], &["crash", "abort", "last"]);
    let job = job
        .env("GASNET_BACKTRACE", "1")
        .env("GASNET_BACKTRACE_TYPE", "DBX");
    let why = "no mechanism of GASNET_BACKTRACE_TYPE could show a backtrace";
    job.run().code(134).says(&[why]);
}

fn backtraces_on_demand() {
    // From main, and from a signal handler of the program; the job goes on.
    for from in ["main", "handler"] {
        for job in both(2, &["backtrace", from]) {
            let outcome = job.env("GASNET_EXITTIMEOUT", "60").run().code(0);
            outcome.says(&[
                "argonet: rank 1 (pid ",
                "backtrace (asked for):",
                "shows_here",
            ]);
        }
    }
    let job = Job::launched(2, &[], &["backtrace", "signal"]);
    let job = job
        .env("GASNET_BACKTRACE_SIGNAL", "usr2")
        .env("GASNET_EXITTIMEOUT", "60");
    let outcome = job.run().code(0);
    outcome.says(&[
        "argonet: rank 1 (pid ",
        "backtrace (SIGUSR2):",
        "shows_here",
    ]);
}

fn overflow() {
    for backtrace in ["0", "1"] {
        for job in both(2, &["crash", "overflow", "last"]) {
            let outcome = job.env("GASNET_BACKTRACE", backtrace).run().code(134);
            outcome.says(&["has overflowed its stack", "was killed by signal 6"]);
        }
    }
}

/// Lets ranks go on that wait for a debugger, as soon as they do.
fn thaw(mut job: Running, ranks: u32, code: i32) -> crate::support::Outcome {
    (0..ranks).for_each(|_| {
        let line = job.read_until("pid ");
        let rank = line.rsplit(' ').next().and_then(|p| p.parse().ok());
        let rank = pid(rank.expect("a process id"));
        // It says its process id before it waits, and catches the signal only while it does.
        until(|| rustix::process::kill_process(rank, Signal::CONT).is_err() || !job.waits(rank));
    });
    job.outcome().code(code)
}

fn freeze() {
    // The ranks cannot print their process ids before they wait: the test looks for their
    // processes.
    let job = Job::launched(2, &[], &["hello"])
        .env("GASNET_FREEZE", "1")
        .start();
    let launcher = job.pid();
    let ranks = || {
        let all = job.processes().into_iter().map(|p| pid(p.pid));
        all.filter(|&p| p != launcher).collect::<Vec<_>>()
    };
    until(|| ranks().len() == 3);
    until(|| {
        for rank in ranks() {
            let _ = rustix::process::kill_process(rank, Signal::CONT);
        }
        ranks().is_empty()
    });
    let outcome = job.outcome().code(0);
    for rank in ["rank 0 (pid ", "rank 1 (pid "] {
        outcome.says_too(&[rank, "waits for a debugger: GASNET_FREEZE is set", "gdb -p"]);
    }
}

fn freeze_on_error() {
    let job = Job::launched(2, &[], &["crash", "segv", "last", "pid"]);
    let job = job.env("GASNET_FREEZE_ON_ERROR", "1").start();
    let outcome = thaw(job, 1, 139);
    outcome.says(&[
        "rank 1 (pid ",
        "waits for a debugger: SIGSEGV",
        "was killed by signal 11",
    ]);
}

fn freeze_by_signal() {
    let mut job = Job::launched(2, &[], &["wait"])
        .env("GASNET_FREEZE_SIGNAL", "USR1")
        .env("GASNET_EXITTIMEOUT", "2")
        .start();
    job.read_until("ready");
    let rank = job.rank_pid(1);
    job.kill(rank, Signal::USR1);
    // A rank that waits for a debugger can be ended.
    job.kill(rank, Signal::TERM);
    job.outcome()
        .code(143)
        .says(&["rank 1 (pid ", "waits for a debugger: SIGUSR1"]);
}

fn not_caught() {
    for list in ["TERM", "sigterm,int", "*"] {
        let mut job = Job::launched(2, &[], &["wait"])
            .env("GASNET_NO_CATCH_SIGNAL", list)
            .env("GASNET_EXITTIMEOUT", "3600")
            .start();
        job.read_until("ready");
        job.kill(job.rank_pid(1), Signal::TERM);
        job.outcome().code(143).says(&["rank 1 (pid ", "SIGTERM"]);
    }
    // Ignored by the program before it joined.
    let mut job = Job::launched(2, &[], &["ignores"]).start();
    let rank = pid(job.read_until("pid ").parse().expect("a process id"));
    job.read_until("ready");
    job.kill(rank, Signal::HUP);
    job.kill(rank, Signal::TERM);
    job.outcome().code(143).says(&["SIGTERM"]);
}

fn second_signal() {
    for job in both(3, &["wait"]) {
        let mut job = job.env("GASNET_EXITTIMEOUT", "3600").start();
        job.read_until("ready");
        let rank = job.rank_pid(2);
        job.kill(rank, Signal::TERM);
        // The second one ends it; a third would find no process.
        until(|| {
            let _ = rustix::process::kill_process(rank, Signal::TERM);
            !job.processes().iter().any(|p| pid(p.pid) == rank)
        });
        job.outcome()
            .code(143)
            .says(&["rank 2 (pid ", "was killed by signal 15 (SIGTERM)"]);
    }
}

fn hanging_handler() {
    for job in both(2, &["hang", "0", "3"]) {
        job.env("GASNET_EXITTIMEOUT", "0.5").run().code(3);
    }
}

fn late_crash() {
    for job in both(2, &["crash-at-exit"]) {
        let outcome = job.env("GASNET_EXITTIMEOUT", "60").run().code(139);
        outcome.says(&["rank 1 (pid ", "was killed by signal 11 (SIGSEGV)"]);
    }
}

fn guardian_killed() {
    let mut job = Job::self_started("3", &["wait", "children"]).start();
    let guardian: u32 = job.read_until("guardian ").parse().expect("a process id");
    job.read_until("ready");
    until(|| job.processes().len() == 7);
    job.kill(pid(guardian), Signal::KILL);
    // No process watches over what rank 0 itself has started any more.
    let rank_0 = job.pid();
    until(|| !job.processes().iter().any(|p| pid(p.pid) == rank_0));
    job.end_remaining();
    // The harness has it as a child then and lets it be a zombie, whose exit status all processes
    // may read.
    let why = format!(
        "argonet: the job's guardian (process {guardian}) was killed by signal 9 (SIGKILL) from outside; the ranks were ended"
    );
    job.outcome().code(137).says(&[&why]);
}

fn stopped_rank() {
    for job in both(3, &["wait-then-exit", "2", "9"]) {
        let mut job = job.env("GASNET_EXITTIMEOUT", "0.5").with_input().start();
        job.read_until("ready");
        let rank = job.rank_pid(1);
        job.kill(rank, Signal::STOP);
        let outcome = job.go().code(9);
        outcome.says(&["rank 2 (pid ", "called exit(9); the other ranks were ended"]);
    }
}

fn stop_and_continue() {
    let mut job = Job::launched(2, &[], &["wait"]).start();
    job.read_until("ready");
    let states = |job: &Running, state: &str| {
        let all = job.processes();
        let in_state = all.iter().filter(|p| p.is_in_state(state)).count();
        in_state == if state == "T" { 3 } else { all.len() }
    };
    job.kill(job.pid(), Signal::TSTP);
    until(|| states(&job, "T"));
    job.kill(job.pid(), Signal::CONT);
    until(|| states(&job, "SR"));
    job.kill(job.pid(), Signal::TERM);
    job.outcome().code(143);
}

fn verbose() {
    let job = Job::launched(2, &[], &["hello"]).env("GASNET_SPAWN_VERBOSE", "1");
    job.run().code(0).says(&[
        "argonet run: 2 ranks are started; the guardian is process ",
        "rank 1 is process ",
        "rank 1 exited with code 0, finalized",
        "the job has ended with code 0",
    ]);
    let job = Job::self_started("2", &["hello"]).env("GASNET_SPAWN_VERBOSE", "1");
    let outcome = job.run().code(0);
    outcome.says(&["argonet: rank 0 is process ", "the guardian is "]);
}

fn bad_settings() {
    let job = Job::launched(2, &[], &["hello"]).env("GASNET_EXITTIMEOUT", "soon");
    let why = "GASNET_EXITTIMEOUT is \"soon\"; allowed: ";
    job.run().code(2).says(&[why]);
    let job = Job::self_started("2", &["hello"]).env("GASNET_CATCH_EXIT", "perhaps");
    job.run()
        .code(3)
        .says(&["GASNET_CATCH_EXIT is \"perhaps\"; allowed: "]);
}

/// The programs of ranks of the tests above; `None` if it is none of these.
pub(crate) fn rank(args: &[&str]) -> Option<i32> {
    let is_last = |job: &LocalJob| job.rank().0 + 1 == job.size();
    match *args {
        // Before the first fence.
        ["exit-early", who, code] => {
            let job = join();
            if who == "all" || job.rank() == JobRank(who.parse().expect("a rank")) {
                exit(code.parse().expect("a code"));
            }
            fence(&job);
            job.started();
            for_ever()
        }
        ["crash", how, who, ref more @ ..] => {
            let job = start();
            if who == "all" || is_last(&job) {
                if !more.is_empty() {
                    say(&format!("pid {} {}", job.rank(), std::process::id()));
                }
                match who {
                    "thread" => std::thread::scope(|s| drop(s.spawn(|| crash_here(&job, how)))),
                    _ => crash_here(&job, how),
                }
            }
            fence(&job);
            Some(0)
        }
        ["backtrace", from] => {
            let job = start();
            if is_last(&job) {
                shows_here(from);
            }
            fence(&job);
            exit(0)
        }
        // Ignores a signal before it joins.
        ["ignores"] => {
            handle(libc::SIGHUP, libc::SIG_IGN);
            let job = start();
            if is_last(&job) {
                say(&format!("pid {}", std::process::id()));
            }
            fence(&job);
            if job.rank() == JobRank(0) {
                say("ready");
            }
            for_ever()
        }
        // The rank's exit handler never returns.
        ["hang", who, code] => {
            let job = start();
            fence(&job);
            if job.rank() == JobRank(who.parse().expect("a rank")) {
                at_exit(hang);
            }
            exit(code.parse().expect("a code"))
        }
        ["crash-at-exit"] => {
            let job = start();
            if is_last(&job) {
                at_exit(fault);
            }
            fence(&job);
            exit(0)
        }
        // Rank 0 exits with 0. The others compute until they learn of it, and then end by
        // themselves.
        ["end-when-asked", how] => {
            let job = start();
            extern "C" fn asked(_signal: i32) {
                ASKED.store(true, Ordering::Release);
            }
            handle(libc::SIGQUIT, asked as *const () as usize);
            fence(&job);
            while job.rank() != JobRank(0) && !ASKED.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            match how {
                "exit" => exit(0),
                _ => std::process::exit(0),
            }
        }
        // One replaces its program, the others wait forever.
        ["execs", who, ref program @ ..] => {
            let job = start();
            fence(&job);
            if job.rank() == JobRank(who.parse().expect("a rank")) {
                replace(program);
            }
            for_ever()
        }
        ["finalizes-and-execs", ref program @ ..] => {
            let job = start();
            fence(&job);
            job.finalized();
            if job.rank() == JobRank(0) {
                replace(program);
            }
            Some(0)
        }
        // Rank 0 closes the descriptors that it has not opened itself, and goes on once the
        // guardian has seen that.
        ["closes"] => {
            let job = start();
            fence(&job);
            if job.rank() == JobRank(0) {
                let guardian = job.job_page().guardian_pid().expect("a guardian");
                close_other_descriptors();
                until(|| !has_a_pipe(guardian));
                say("goes on");
                fence(&job);
                job.finalized();
                // Nothing is closed a second time.
                std::process::exit(0);
            }
            fence(&job);
            job.finalized();
            Some(0)
        }
        // One rank exits when rank 0 has read a line, which rank 0 publishes.
        ["wait-then-exit", who, code] => {
            let job = join();
            say(&format!("pid {} {}", job.rank(), std::process::id()));
            fence(&job);
            job.started();
            if job.rank() == JobRank(0) {
                say("ready");
                std::io::stdin()
                    .read_line(&mut String::new())
                    .expect("a line");
                job.publish(argonet_boot::Key::Tool, b"go")
                    .expect("published");
            }
            let begun = Instant::now();
            while job.lookup(JobRank(0), argonet_boot::Key::Tool).is_err() {
                assert!(begun.elapsed().as_secs() < 100);
                std::thread::yield_now();
            }
            if job.rank() == JobRank(who.parse().expect("a rank")) {
                exit(code.parse().expect("a code"));
            }
            for_ever()
        }
        _ => None,
    }
}

fn replace(program: &[&str]) -> ! {
    let mut command = std::process::Command::new(program[0]);
    let error = std::os::unix::process::CommandExt::exec(command.args(&program[1..]));
    panic!("exec: {error}");
}

#[allow(unsafe_code)]
fn close_other_descriptors() {
    // SAFETY: later calls of the job with its descriptors fail, and the test opens none that could
    // be taken for them.
    unsafe { libc::close_range(3, u32::MAX, 0) };
}

/// Whether a process has a pipe open.
fn has_a_pipe(process: u32) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    let targets = files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok());
    let mut targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.any(|target| target.starts_with("pipe:"))
}

#[inline(never)]
pub(crate) fn crash_here(job: &LocalJob, how: &str) {
    match how {
        "abort" => std::process::abort(),
        "segv" => fault(),
        "bus" => beyond_the_end(),
        "fpe" => raise(libc::SIGFPE),
        "fatal" => job.abort(1, "a synthetic fatal error"),
        "overflow" => drop(overflow_the_stack(1)),
        other => panic!("no such crash: {other}"),
    }
    unreachable!("the crash was not one");
}

#[inline(never)]
fn shows_here(from: &str) {
    match from {
        "main" => print_backtrace(),
        "handler" => {
            extern "C" fn handler(_signal: i32) {
                print_backtrace();
            }
            handle(libc::SIGQUIT, handler as *const () as usize);
            raise(libc::SIGQUIT);
        }
        _ => raise(libc::SIGUSR2),
    }
    // Not the last call, so that this function is on the stack.
    std::hint::black_box(from);
}

#[allow(unconditional_recursion)]
#[inline(never)]
fn overflow_the_stack(depth: u64) -> u64 {
    let big = std::hint::black_box([depth; 1000]);
    overflow_the_stack(depth + 1) + big[depth as usize % 1000]
}

#[allow(unsafe_code)]
pub(crate) fn handle(signal: i32, action: usize) {
    // SAFETY: the actions of this file are SIG_IGN and functions that may run in a handler.
    unsafe { libc::signal(signal, action) };
}

#[allow(unsafe_code)]
pub(crate) fn raise(signal: i32) {
    // SAFETY: a number, no memory.
    unsafe { libc::raise(signal) };
}

#[allow(unsafe_code)]
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: a function that lives as long as the process.
    unsafe { libc::atexit(handler) };
}

extern "C" fn hang() {
    loop {
        std::thread::park();
    }
}

/// Reads memory that may not be read.
#[allow(unsafe_code)]
extern "C" fn fault() {
    // SAFETY: the kernel refuses the access: the read has no result, the process gets SIGSEGV.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0);
        std::hint::black_box(page.cast::<u8>().read_volatile());
    }
}

/// Reads a mapping beyond the end of its file.
#[allow(unsafe_code)]
fn beyond_the_end() {
    use std::os::fd::AsRawFd;
    let file = rustix::fs::memfd_create("empty", rustix::fs::MemfdFlags::empty()).expect("memfd");
    // SAFETY: as above, SIGBUS.
    unsafe {
        let raw = file.as_raw_fd();
        let flags = libc::MAP_SHARED;
        let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, raw, 0);
        std::hint::black_box(page.cast::<u8>().read_volatile());
    }
}
