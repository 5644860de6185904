//! Jobs that go on without ranks that have died.

use argonet_base::JobRank;
use argonet_boot::{Bootstrap, LocalJob, abort_reported, exit};
use rustix::process::Signal;

use crate::endings::{crash_here, raise};
use crate::foreign::{new_step, step_of};
use crate::programs::{fence, join, say};
use crate::support::{Job, Outcome, Running, Test, pid, this_program, until};

pub(crate) const TESTS: &[Test] = &[
    ("losses_of_a_killed_rank", killed),
    ("losses_by_crashes_and_ends_without_a_word", crashes),
    ("losses_of_several_ranks_are_agreed_on", several),
    ("losses_of_all_ranks_have_the_code_of_the_first", all),
    ("losses_end_what_the_rank_has_started", children),
    ("losses_below_a_shell_script", below_shell),
    ("losses_that_a_rank_does_not_accept_end_the_job", no_handler),
    ("losses_at_the_start_end_the_job", early),
    (
        "losses_are_failures_where_the_user_has_not_asked",
        not_asked,
    ),
    ("losses_are_no_ends_that_a_rank_asks_for", asked),
    ("losses_of_ranks_out_of_reach", out_of_reach),
    ("losses_of_ranks_that_accuse_each_other", accuse_each_other),
    ("losses_in_a_self_started_job", self_started),
    (
        "losses_after_the_guardian_was_killed_end_the_job",
        unguarded,
    ),
    ("losses_of_jobs_that_cannot_go_on_are_refused", refused),
];

/// `program` launched and self-started, to go on.
fn both(ranks: u32, program: &[&str]) -> [Job; 2] {
    let started = Job::self_started(&ranks.to_string(), program);
    [
        Job::launched(ranks, &["continue"], program),
        started.env("ARGONET_ON_RANK_LOST", "continue"),
    ]
}

/// Checks that these ranks, and no others, say what they have lost.
#[track_caller]
pub(crate) fn survived(outcome: &Outcome, survivors: &[u32], lost: &str) {
    let lines = outcome.lines().into_iter();
    let lines: Vec<&str> = lines.filter(|line| line.contains("has lost")).collect();
    let expected = survivors.iter();
    let expected: Vec<_> = expected
        .map(|rank| format!("rank {rank} has lost {lost}"))
        .collect();
    assert_eq!(lines, expected, "{outcome:#?}");
}

/// The losses that a survivor says.
#[track_caller]
pub(crate) fn lost_of(outcome: &Outcome) -> &str {
    let mut lines = outcome.lines().into_iter();
    let lost = lines.find_map(|line| line.split_once(" has lost "));
    lost.expect("a survivor's line").1
}

fn killed() {
    for job in both(4, &["loses", "1", "none"]) {
        let mut job = job.start();
        job.read_until("ready");
        let rank = job.rank_pid(2);
        job.kill(rank, Signal::KILL);
        let outcome = job.outcome().code(0);
        let line = format!(
            ": rank 2 (pid {rank}) was killed by signal 9 (SIGKILL); the job goes on without it\n"
        );
        outcome.says_too(&[&line]);
        survived(&outcome, &[0, 1, 3], "[2]");
        assert_eq!(outcome.err.lines().count(), 1, "{outcome:#?}");
    }
}

fn crashes() {
    for (act, how) in [
        ("1:_exit", "exited with code 3 without finalizing"),
        ("1:segv", "was killed by signal 11 (SIGSEGV)"),
        ("1:abort", "was killed by signal 6 (SIGABRT)"),
        ("1:kill", "was killed by signal 9 (SIGKILL)"),
    ] {
        for job in both(3, &["loses", "1", "none", act]) {
            let outcome = job.run().code(0);
            let line = format!("{how}; the job goes on without it\n");
            outcome.says_too(&["rank 1 (pid ", &line]);
            survived(&outcome, &[0, 2], "[1]");
        }
    }
}

fn several() {
    for job in both(8, &["loses", "3", "none", "1:kill", "4:_exit", "7:segv"]) {
        let outcome = job.run().code(0);
        let lost = lost_of(&outcome);
        survived(&outcome, &[0, 2, 3, 5, 6], lost);
        let mut ranks: Vec<&str> = lost.trim_matches(['[', ']']).split(", ").collect();
        ranks.sort_unstable();
        assert_eq!(ranks, ["1", "4", "7"]);
    }
}

fn all() {
    lose_all(Job::launched(3, &["continue"], &["loses", "9", "none"]));
}

/// Kills all ranks of a job of three, and checks its end.
pub(crate) fn lose_all(job: Job) {
    let mut job = job.start();
    job.read_until("ready");
    for (rank, signal) in [(1, Signal::ABORT), (0, Signal::KILL), (2, Signal::KILL)] {
        job.kill(job.rank_pid(rank), signal);
        job.wait_for_error(&format!("rank {rank} (pid "));
    }
    let outcome = job.outcome().code(134);
    outcome.says_too(&["(SIGKILL); no rank is left\n"]);
    assert_eq!(
        outcome.err.matches("; the job goes on without it").count(),
        2
    );
}

/// Processes of a job beside those of which it consists.
fn others(job: &Running, ranks: usize) -> usize {
    job.living().saturating_sub(ranks + 2)
}

fn children() {
    let mut job = Job::launched(3, &["continue"], &["loses", "9", "none", "children"]).start();
    job.read_until("ready");
    until(|| others(&job, 3) == 3);
    job.kill(job.rank_pid(1), Signal::KILL);
    until(|| job.living() == 2 + 2 + 2);
    // The others are asked to end, and do.
    job.kill(job.pid(), Signal::TERM);
    job.outcome().code(143);
}

fn below_shell() {
    let this = this_program();
    let script = format!("{this} __rank loses 1 none; exit $?");
    let mut job = Job::launcher("3", &["continue"], &["sh", "-c", &script]).start();
    job.read_until("ready");
    let rank = job.rank_pid(1);
    let parent = std::fs::read_to_string(format!("/proc/{rank}/stat")).expect("stat");
    let parent = parent
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.split(' ').nth(1));
    let shell = pid(parent.expect("a field").parse().expect("a process id"));
    job.kill(shell, Signal::KILL);
    let outcome = job.outcome().code(0);
    let line = format!("rank 1 (pid {shell}) was killed by signal 9 (SIGKILL); the job goes on");
    outcome.says_too(&[&line]);
    survived(&outcome, &[0, 2], "[1]");
}

fn no_handler() {
    for job in both(3, &["loses", "1", "2", "1:kill"]) {
        job.run().code(137).says(&[
            "rank 1 (pid ",
            "was killed by signal 9 (SIGKILL); the other ranks were ended, as rank 2 has no handler for lost ranks (Builder::on_peer_lost or argonet_SetPeerLostHandler, on all ranks)\n",
        ]);
    }
    // A crash that is caught is stored by the rank.
    for (act, code) in [("1:segv", 139), ("1:abort", 134)] {
        for job in both(3, &["loses", "1", "2", act]) {
            let outcome = job.run().code(code);
            outcome.says(&["; the other ranks were ended, as rank 2 has no handler"]);
        }
    }
}

fn early() {
    for job in both(3, &["loses", "1", "none", "1:early"]) {
        let outcome = job.run().code(137);
        outcome.says(&["the other ranks were ended, as the job was still starting\n"]);
    }
}

fn not_asked() {
    let program = ["loses", "1", "none", "1:kill"];
    let ends = |job: Job| {
        let outcome = job.run().code(137);
        outcome.says(&["was killed by signal 9 (SIGKILL); the other ranks were ended\n"]);
    };
    ends(Job::launched(3, &[], &program));
    // The option wins.
    let job = Job::launched(3, &["end"], &program);
    ends(job.env("ARGONET_ON_RANK_LOST", "continue"));
    let job = Job::launched(3, &[], &program);
    let outcome = job.env("ARGONET_ON_RANK_LOST", "continue").run().code(0);
    survived(&outcome, &[0, 2], "[1]");
}

fn asked() {
    for (act, code, why) in [
        ("1:exit", 7, "called exit(7); the other ranks were ended\n"),
        ("1:fatal", 1, "a synthetic fatal error\n"),
        ("1:reported", 134, "(SIGABRT); the other ranks were ended\n"),
        ("1:term", 143, "was killed by signal 15 (SIGTERM)"),
        (
            "1:return",
            5,
            "exited with code 5 without finalizing; the other",
        ),
    ] {
        for job in both(3, &["loses", "1", "none", act]) {
            let outcome = job.env("GASNET_EXITTIMEOUT", "2").run().code(code);
            outcome.says(&["rank 1 (pid ", why]);
        }
    }
}

fn out_of_reach() {
    for job in both(4, &["loses", "1", "none", "3:unreachable-1"]) {
        let outcome = job.run().code(0);
        outcome.says_too(&[
            "argonet: rank 3 cannot reach rank 1 over any network; rank 1 (pid ",
            "was killed by signal 9 (SIGKILL); the job goes on without it\n",
        ]);
        survived(&outcome, &[0, 2, 3], "[1]");
    }
    // The user waits for the process of rank 0, which stays.
    let job = Job::self_started("3", &["loses", "1", "none", "2:unreachable-0"]);
    let outcome = job.env("ARGONET_ON_RANK_LOST", "continue").run().code(0);
    outcome.says_too(&["rank 2 cannot reach rank 0 over any network; rank 2 (pid "]);
    survived(&outcome, &[0, 1], "[2]");
    // The job has to end itself.
    for job in both(3, &["loses", "1", "0", "2:unreachable-1"]) {
        job.run().code(9);
    }
    let job = Job::launched(3, &[], &["loses", "1", "none", "2:unreachable-1"]);
    job.run().code(9);
}

fn accuse_each_other() {
    let program = ["loses", "1", "none", "1:unreachable-2", "2:unreachable-1"];
    both(4, &program).into_iter().for_each(lose_one_of_two);
}

/// Runs a job of four whose ranks 1 and 2 accuse each other: one of them is killed.
pub(crate) fn lose_one_of_two(job: Job) {
    let outcome = job.run().code(0);
    let err = &outcome.err;
    assert_eq!(err.matches("cannot reach").count(), 1, "{outcome:#?}");
    assert_eq!(err.matches("goes on without it").count(), 1, "{outcome:#?}");
    let victim = if err.contains("; rank 2 ") { 2 } else { 1 };
    survived(&outcome, &[0, 3 - victim, 3], &format!("[{victim}]"));
}

fn self_started() {
    let job = Job::self_started("3", &["loses", "1", "none"]);
    let mut job = job.env("ARGONET_ON_RANK_LOST", "continue").start();
    job.read_until("ready");
    job.kill(job.rank_pid(0), Signal::KILL);
    let outcome = job.outcome().code(137);
    survived(&outcome, &[], "");
    // A rank that fails on its way out fails the job, also where another was lost.
    let program = ["loses", "1", "none", "1:kill", "2:fails"];
    for job in both(3, &program) {
        let outcome = job.run().code(6);
        outcome.says(&["rank 2 (pid ", "exited with code 6\n"]);
    }
}

fn unguarded() {
    let mut job = Job::launched(3, &["continue"], &["loses", "1", "none"]).start();
    job.read_until("ready");
    let guardian = job.read_until("guardian ").parse().expect("a process id");
    job.kill(pid(guardian), Signal::KILL);
    job.wait_for_error("warning: the job's guardian");
    job.kill(job.rank_pid(1), Signal::KILL);
    let outcome = job.outcome().code(137);
    outcome.says(&["rank 1 (pid ", "(SIGKILL); the other ranks were ended"]);
}

fn refused() {
    let program = [&*this_program(), "__rank", "hello"];
    let job = step_of(&new_step(), &[0, 1], 2, &program);
    let outcome = job.env("ARGONET_ON_RANK_LOST", "continue").run().code(3);
    outcome.says(&[
        "this job cannot go on",
        "srun started it",
        "Use `end` instead",
    ]);
    // A user can find that out before.
    let program = [&*this_program(), "__rank", "launcher"];
    let asked = |setting| {
        let job = step_of(&new_step(), &[0], 2, &program);
        job.env("ARGONET_ON_RANK_LOST", setting).run().code(0).out
    };
    let out = asked("continue");
    assert!(out.starts_with("false Slurm's srun: a program"), "{out}");
    assert!(out.contains("; this job cannot go on"), "{out}");
    let out = asked("end");
    assert!(out.starts_with("true Slurm's srun: a program"), "{out}");
    let says = "; it ends all ranks when one has died";
    assert!(out.trim_end().ends_with(says), "{out}");
}

/// The programs of ranks of the tests above; `None` if it is none of these.
pub(crate) fn rank(args: &[&str]) -> Option<i32> {
    match *args {
        // Ranks go on when so many are lost, all but one accepting that; some act, as in
        // `rank:what`.
        ["loses", count, without, ref acts @ ..] => {
            let job = join();
            let rank = job.rank();
            if without != rank.to_string() {
                job.accept_losses();
            }
            let own = acts.iter().filter_map(|act| act.split_once(':'));
            let own: Vec<&str> = own
                .filter_map(|(r, act)| (r == rank.to_string()).then_some(act))
                .collect();
            if own.contains(&"early") {
                raise(libc::SIGKILL);
            }
            if acts.contains(&"children") {
                let mut sleep = std::process::Command::new("sleep");
                let sleep = sleep.arg("100000").stdin(std::process::Stdio::null());
                std::mem::forget(sleep.spawn().expect("sleep"));
            }
            say(&format!("pid {rank} {}", std::process::id()));
            fence(&job);
            job.started();
            fence(&job);
            if rank == JobRank(0) {
                say("ready");
                let guardian = job.job_page().guardian_pid().unwrap_or(0);
                say(&format!("guardian {guardian}"));
            }
            for act in &own {
                match *act {
                    "fails" => {}
                    "return" => return Some(5),
                    act => do_so(&job, act),
                }
            }
            go_on(&job, count.parse().expect("a number"));
            Some(if own.contains(&"fails") { 6 } else { 0 })
        }
        _ => None,
    }
}

fn do_so(job: &LocalJob, act: &str) {
    match act {
        "_exit" => exit_at_once(3),
        "kill" => raise(libc::SIGKILL),
        "term" => raise(libc::SIGTERM),
        "exit" => exit(7),
        "reported" => abort_reported(),
        "segv" | "abort" | "fatal" => crash_here(job, act),
        _ => {
            let (_, peer) = act.split_once("unreachable-").expect("an act");
            if !job.unreachable(JobRank(peer.parse().expect("a rank"))) {
                job.abort(9, "the peer is out of reach");
            }
        }
    }
}

/// Waits until so many ranks are lost, and all that are left agree on which.
fn go_on(job: &LocalJob, count: u32) {
    let losses = job.losses();
    let mut agreed = None;
    while losses.count() < count || agreed.is_none() {
        job.attend();
        std::thread::yield_now();
        if job.goes_on() && losses.count() >= count {
            agreed = job.agree(1);
        }
    }
    let lost = (0..agreed.unwrap_or(0)).map(|n| losses.get(n).expect("a rank").0);
    say(&format!(
        "rank {} has lost {:?}",
        job.rank(),
        lost.collect::<Vec<_>>()
    ));
    job.finalized();
}

#[allow(unsafe_code)]
fn exit_at_once(code: i32) -> ! {
    // SAFETY: ends the process, without anything else.
    unsafe { libc::_exit(code) }
}
