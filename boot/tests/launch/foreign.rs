//! Jobs that another launcher started, which a shell plays here: it sets the variables of a step of
//! Slurm.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal};

use crate::limits::{IDLE_USERS, become_user};
use crate::support::{Job, Running, Test, check_hello, pid, this_program, until};

pub(crate) const TESTS: &[Test] = &[
    ("foreign_hello_of_2_3_16_64_ranks", hello),
    ("foreign_two_steps_at_once_are_two_jobs", two_jobs),
    ("foreign_100_programs_in_a_row_in_one_step", in_a_row),
    ("foreign_rank_that_does_not_come_is_named", missing),
    ("foreign_rank_that_comes_twice_is_refused", twice),
    ("foreign_name_of_a_process_of_this_user", name_is_taken),
    ("foreign_strangers_do_no_harm", intruders),
    ("foreign_exit_codes_and_their_reasons", exit_codes),
    ("foreign_nothing_is_left_when_one_is_killed", killed),
    ("foreign_nothing_is_left_when_all_are_killed", all_killed),
    ("foreign_report_of_all_ranks", report),
    ("foreign_program_that_a_rank_starts_is_alone", another),
    (
        "foreign_launcher_is_hidden_from_ranks_of_argonet_run",
        hidden,
    ),
    ("foreign_second_thread_of_rank_0", second_thread),
    ("foreign_second_thread_of_another_rank", thread_of_another),
    ("foreign_ranks_of_a_job_that_a_rank_starts", inner_job),
    ("foreign_96_ranks_where_few_files_are_allowed", few_files),
    (
        "foreign_another_program_of_the_step_does_not_join",
        another_program,
    ),
    ("foreign_neighborhoods", neighborhoods),
];

/// Tests that become other users.
pub(crate) const TESTS_OF_USERS: &[Test] = &[
    (
        "foreign_name_of_another_user_is_refused",
        other_user_listens,
    ),
    ("foreign_other_users_do_not_join", other_user_connects),
    ("foreign_user_whose_descriptors_are_on_their_way", crowded),
    (
        "foreign_failure_after_the_first_welcome",
        welcomed_and_failed,
    ),
];

/// Starts the ranks in `$RANKS`, waits for all, and ends with the largest code.
const LAUNCHER: &str = "
    for SLURM_PROCID in $RANKS; do
        export SLURM_PROCID
        \"$@\" &
        all=\"$all $!\"
    done
    most=0
    for one in $all; do
        wait $one
        code=$?
        [ $code -le $most ] || most=$code
    done
    exit $most";

/// A step of its own: its job and number.
pub(crate) fn new_step() -> (String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let step = COUNT.fetch_add(1, Ordering::Relaxed);
    (std::process::id().to_string(), step.to_string())
}

/// `program` as each of `ranks` of `size` in `step`.
pub(crate) fn step_of(step: &(String, String), ranks: &[u32], size: u32, program: &[&str]) -> Job {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    let size = size.to_string();
    Job::program(&[&["sh", "-c", LAUNCHER, "sh"], program].concat())
        .env("RANKS", &ranks.join(" "))
        .env("SLURM_JOB_ID", &step.0)
        .env("SLURM_STEP_ID", &step.1)
        .env("SLURM_STEP_NUM_TASKS", &size)
        .env("SLURM_STEP_NUM_NODES", "1")
        .env("SLURM_STEP_TASKS_PER_NODE", &size)
}

/// A rank program in some of the processes of a new step.
fn some(ranks: &[u32], size: u32, program: &[&str]) -> Job {
    let this = this_program();
    step_of(
        &new_step(),
        ranks,
        size,
        &[&[this.as_str(), "__rank"], program].concat(),
    )
}

/// A rank program in all processes of a new step.
fn all(size: u32, program: &[&str]) -> Job {
    some(&(0..size).collect::<Vec<_>>(), size, program)
}

fn hello() {
    for ranks in [2, 3, 16, 64] {
        check_hello(&all(ranks, &["hello"]).run().code(0).silent(), ranks);
    }
}

fn two_jobs() {
    for _ in 0..5 {
        let jobs = [all(3, &["hello"]).start(), all(3, &["hello"]).start()];
        let outcomes = jobs.map(|job| job.outcome().code(0).silent());
        outcomes.iter().for_each(|outcome| check_hello(outcome, 3));
        let ids = outcomes
            .each_ref()
            .map(|outcome| outcome.lines()[0].to_owned());
        assert_ne!(ids[0], ids[1]);
    }
}

fn in_a_row() {
    let this = this_program();
    let script = "for i in $(seq 100); do \"$0\" __rank quick || exit 1; done; echo done";
    let program = ["sh", "-c", script, &this];
    let outcome = step_of(&new_step(), &[0, 1, 2], 3, &program).run();
    assert_eq!(outcome.code(0).silent().lines(), ["done"; 3]);
}

fn missing() {
    let soon = |job: Job| job.env("ARGONET_START_TIMEOUT", "4").run().code(3);
    soon(some(&[0, 1, 3], 5, &["hello"])).says(&[
        "attach: rank 0 of 5, started by Slurm's srun, waited 4 s at the socket @argonet.",
        "for ranks 2, 4; do all processes run the same program",
        "raise ARGONET_START_TIMEOUT (seconds); set GASNET_PSHM_NODES=1 if",
        "attach: rank 3, started by Slurm's srun, could not join its job: rank 0 gave up: rank 0 of 5",
    ]);
    soon(some(&[1], 2, &["hello"])).says(&["attach: rank 1 of 2", "for rank 0; do all"]);
}

fn twice() {
    let job = some(&[0, 1, 1], 3, &["hello"]).env("ARGONET_START_TIMEOUT", "4");
    job.run().code(3).says(&[
        "attach: rank 1, started by Slurm's srun, could not join its job: job rank 1 has been taken by process ",
        "for rank 2; process ",
    ]);
}

/// The name at which the ranks of a step find each other.
fn place_of(step: &(String, String), size: u32) -> String {
    let this = this_program();
    let program = [this.as_str(), "__rank", "launcher"];
    let outcome = step_of(step, &[0], size, &program).run().code(0).silent();
    let found =
        format!("true Slurm's srun: a program becomes rank 0 of {size}, which share memory;");
    assert!(outcome.out.starts_with(&found), "{outcome:?}");
    let (_, rest) = outcome.out.split_once(" at the socket @").expect("a name");
    rest.split(',').next().expect("a name").to_owned()
}

/// Starts all ranks of a step while `occupant` has the name.
fn occupied(occupant: &[&str], says: &[&str]) {
    let (step, this) = (new_step(), this_program());
    let place = place_of(&step, 2);
    let program = [occupant, &[this.as_str(), "__rank", "squats", &place]].concat();
    let mut squatter = Job::program(&program).start();
    squatter.read_until("ready");
    let program = [this.as_str(), "__rank", "hello"];
    let job = |ranks: &[u32]| {
        let job = step_of(&step, ranks, 2, &program);
        job.env("ARGONET_START_TIMEOUT", "1").run()
    };
    job(&[0])
        .code(3)
        .says(says)
        .says(&["attach: rank 0: the socket @argonet."]);
    let others = job(&[1]).code(3);
    squatter.kill(squatter.pid(), Signal::KILL);
    squatter.outcome().code(137);
    match occupant.is_empty() {
        // It is taken for rank 0, which has all time to answer.
        true => others.says(&["for rank 0, which listens and does not answer"]),
        false => others
            .says(says)
            .says(&["attach: rank 1: the socket @argonet."]),
    };
    check_hello(&step_of(&step, &[0, 1], 2, &program).run().code(0), 2);
}

fn name_is_taken() {
    let user = rustix::process::geteuid().as_raw();
    let of = format!(" of the user {user}, not to rank 0 of this job");
    occupied(&[], &["belongs to process ", &of]);
}

fn other_user_listens() {
    let user = IDLE_USERS.end;
    let become_user = become_user(user);
    let of = format!(" of the user {user}, not to rank 0 of this job");
    let occupant = become_user.each_ref().map(String::as_str);
    occupied(&occupant, &["belongs to process ", &of]);
}

/// Has `intruder` connect while rank 0 waits for rank 1.
fn intruded(intruder: &[&str]) -> (String, crate::support::Outcome) {
    let (step, this) = (new_step(), this_program());
    let place = place_of(&step, 2);
    let program = [this.as_str(), "__rank", "hello"];
    let job = step_of(&step, &[0], 2, &program)
        .env("ARGONET_START_TIMEOUT", "5")
        .start();
    let program = [intruder, &[this.as_str(), "__rank", "intrudes", &place]].concat();
    let mut intruder = Job::program(&program).start();
    let answer = intruder.read_until("intruder: ");
    intruder.outcome().code(0);
    (answer, job.outcome().code(3))
}

fn intruders() {
    let (answer, outcome) = intruded(&[]);
    assert!(
        answer.contains("its message has 9 bytes, not 32"),
        "{answer}"
    );
    outcome.says(&[
        "for rank 1; process ",
        " was refused: its message has 9 bytes, not 32; do all processes",
    ]);
}

fn other_user_connects() {
    let become_user = become_user(IDLE_USERS.end);
    let (_, outcome) = intruded(&become_user.each_ref().map(String::as_str));
    outcome.says(&["for rank 1; 1 connections of other users were dropped; do all"]);
}

fn exit_codes() {
    let cut_short = "without finalizing; the other ranks were ended";
    for (program, code, says) in [
        (["exit", "1", "7"], 7, "argonet: rank 1 (pid "),
        (["exit", "0", "7"], 7, cut_short),
        (["exit-at-fence", "1", "9"], 9, cut_short),
        (["exit-at-fence", "1", "0"], 1, cut_short),
        (
            ["abort", "2", "77"],
            137,
            "aborted the job with code 77; the other ranks were ended",
        ),
        (["finalize-then-exit", "1", "5"], 5, "exited with code 5\n"),
    ] {
        let job = all(3, &program).env("GASNET_EXITTIMEOUT", "6");
        let outcome = job.run().says(&[says]);
        outcome.code(code);
    }
    // Ranks that compute are made to end, or killed.
    let job = all(3, &["exit", "1", "0"]).env("GASNET_EXITTIMEOUT", "2");
    let outcome = job.run().says(&[cut_short]);
    assert!(!outcome.status.success(), "{outcome:?}");
    all(3, &["finalize-then-exit", "9", "5"])
        .run()
        .code(0)
        .silent();
}

/// A job of waiting ranks; also the guardian's id.
fn waiting(job: Job, ranks: usize) -> (Running, u32) {
    let mut job = job.start();
    let guardian = job.read_until("guardian ").parse().expect("a process id");
    job.read_until("ready");
    // The shell, and a guardian's environment is that of rank 0.
    until(|| job.processes().len() == ranks + 2);
    (job, guardian)
}

fn killed() {
    for rank in [0, 2] {
        let (job, _) = waiting(all(3, &["wait"]), 3);
        let victim = job.rank_pid(rank);
        job.kill(victim, Signal::KILL);
        let why = format!(
            "argonet: rank {rank} (pid {victim}) was killed by signal 9 (SIGKILL); the other ranks were ended"
        );
        job.outcome().code(137).says(&[&why]);
    }
    let (job, guardian) = waiting(all(3, &["wait"]), 3);
    job.kill(pid(guardian), Signal::KILL);
    let why = format!("argonet: the job's guardian (process {guardian}) was killed by signal 9");
    job.outcome()
        .code(137)
        .says(&[&why, "from outside; the ranks were ended"]);
    // No rank needs another to see that.
    let (job, guardian) = waiting(all(3, &["wait"]), 3);
    let rank_0 = job.rank_pid(0);
    job.kill(rank_0, Signal::STOP);
    until(|| job.is_stopped(rank_0));
    job.kill(pid(guardian), Signal::KILL);
    until(|| job.processes().len() == 2);
    job.kill(rank_0, Signal::KILL);
    job.outcome()
        .code(137)
        .says(&["argonet: the job's guardian"]);
    let (job, _) = waiting(all(3, &["wait"]), 3);
    job.kill(job.pid(), Signal::KILL);
    job.outcome().code(137);
}

/// Kills processes of a job; the guardian's id is given.
type Kill = dyn Fn(&Running, u32);

fn all_killed() {
    let orders: [&Kill; 3] = [
        &|job, guardian| {
            job.kill(pid(guardian), Signal::KILL);
            job.kill(job.pid(), Signal::KILL);
        },
        &|job, guardian| {
            job.kill(pid(guardian), Signal::STOP);
            job.kill(job.rank_pid(1), Signal::KILL);
            job.kill(job.pid(), Signal::KILL);
            job.kill(pid(guardian), Signal::KILL);
        },
        &|job, guardian| {
            job.kill(job.rank_pid(0), Signal::KILL);
            job.kill(pid(guardian), Signal::KILL);
            job.kill(job.pid(), Signal::KILL);
        },
    ];
    for kill in orders {
        let (job, guardian) = waiting(all(3, &["wait"]), 3);
        kill(&job, guardian);
        job.outcome().code(137);
    }
    // Before all have come.
    let job = some(&[0, 1], 3, &["wait"]).start();
    until(|| job.processes().len() == 3);
    // That of rank 1 comes to rank 0 with its message.
    let meet = || {
        job.processes()
            .iter()
            .any(|process| has_pidfd(pid(process.pid)))
    };
    until(meet);
    job.kill(job.pid(), Signal::KILL);
    job.outcome().code(137);
}

fn report() {
    let (job, _) = waiting(all(3, &["wait"]), 3);
    // A launcher forwards it to all of them.
    for rank in [2, 1, 0] {
        job.kill(job.rank_pid(rank), Signal::USR2);
    }
    job.wait_for_error("argonet: all ranks:");
    job.kill(job.rank_pid(1), Signal::KILL);
    job.outcome().code(137).says(&["rank 1 (pid "]);
}

fn another() {
    let outcome = all(2, &["starts-another"]).run().code(0).silent();
    let mut lines = outcome.lines();
    lines.retain(|line| *line != "ready");
    assert_eq!(lines.len(), 2, "{outcome:?}");
    assert!(
        lines.iter().all(|line| line.starts_with("rank 0 of 1 in ")),
        "{outcome:?}"
    );
}

fn hidden() {
    let script = "
        env | grep -c '^PMI\\|^SLURM_STEP\\|^SLURM_PROCID\\|^OMPI_COMM\\|^ARGONET_JOINED'
        test -e /proc/self/fd/9; echo $?";
    let program = ["sh", "-c", script];
    let this = this_program();
    let launch = [&[this.as_str(), "__launch", "2", "--"], &program[..]].concat();
    // The socket to the launcher, as far as this launcher knows.
    let shell = ["bash", "-c", "exec 9<>/dev/udp/127.0.0.1/9 \"$@\"", "bash"];
    let outcome = step_of(&new_step(), &[0], 3, &[&shell[..], &launch].concat())
        .env("PMI_FD", "9")
        .env("PMI_RANK", "0")
        .env("PMI_SIZE", "3")
        // Of a rank of another job, which has started this launcher.
        .env("ARGONET_JOINED", "1:2")
        .run()
        .code(0);
    // Neither variables nor the descriptor.
    assert_eq!(outcome.lines(), ["0", "0", "1", "1"]);
}

fn second_thread() {
    let job = all(2, &["second-thread"]).env("ARGONET_START_TIMEOUT", "20");
    job.run().code(3).says(&[
        "attach: this process has 2 threads and cannot fork the job's guardian",
        "attach: rank 1, started by Slurm's srun, could not join its job: rank 0 gave up: this process has 2 threads",
    ]);
}

fn thread_of_another() {
    let outcome = all(2, &["thread-but-in-rank", "0"]).run().code(0);
    outcome.says(&[
        "argonet: warning: rank 1 had more than one thread when it joined its job, so programs that it starts",
    ]);
}

/// Rank 1 starts a job of a step of its own, as by srun: what it passes on says that the ranks are
/// its programs, and their variables say that they are not.
fn inner_job() {
    let this = this_program();
    let script = "
        export SLURM_STEP_ID=$1
        shift";
    let script = format!("{script} {LAUNCHER}");
    let inner = new_step().1;
    let shell = ["sh", "-c", &script, "sh", &inner, &this, "__rank", "hello"];
    let starts = [&[this.as_str(), "__rank", "starts"], &shell[..]].concat();
    let outcome = step_of(&new_step(), &[0, 1, 2], 3, &starts).run().code(0);
    let mut lines = outcome.silent().lines().join("\n");
    lines.push('\n');
    assert_eq!(lines.matches(" of 3 in ").count(), 3, "{lines}");
}

/// Less than rank 0 needs while it starts the job; it must not keep what it needed.
fn few_files() {
    let this = this_program();
    let script = "ulimit -S -n 64 && exec \"$@\"";
    let shell = ["bash", "-c", script, "bash", &this, "__rank", "opens", "30"];
    let ranks: Vec<u32> = (0..96).collect();
    step_of(&new_step(), &ranks, 96, &shell)
        .env("ARGONET_START_TIMEOUT", "50")
        .run()
        .code(0)
        .silent();
}

fn another_program() {
    let this = this_program();
    let script = "
        [ $SLURM_PROCID = 0 ] && exec \"$0\" __rank hello
        directory=$(mktemp -d -p \"${0%/*}\")
        ln \"$0\" \"$directory/another\"
        \"$directory/another\" __rank hello
        code=$?
        rm -r \"$directory\"
        exit $code";
    let shell = ["sh", "-c", script, &this];
    let name = std::path::Path::new(&this).file_name().expect("a name");
    let why = format!(
        "attach: rank 1, started by Slurm's srun, could not join its job: it executes another file than rank 0, which is {name:?}:"
    );
    step_of(&new_step(), &[0, 1], 2, &shell)
        .env("ARGONET_START_TIMEOUT", "4")
        .run()
        .code(3)
        .says(&[&why, "for rank 1; process "]);
}

/// Puts so many descriptors of a user on their way, until it is given a line.
fn crowd(become_user: &[&str], number: &str) -> Running {
    let this = this_program();
    let program = [this.as_str(), "__rank", "crowds", number];
    let mut crowd = Job::program(&[become_user, &program].concat())
        .with_input()
        .start();
    crowd.read_until("ready");
    crowd
}

/// Descriptors on their way between processes count for the user, against the limit of each.
fn crowded() {
    let this = this_program();
    let user = become_user(IDLE_USERS.end + 1);
    let user = user.each_ref().map(String::as_str);
    let crowd = crowd(&user, "40");
    let script = "ulimit -S -n 38 && exec \"$@\"";
    let shell = ["bash", "-c", script, "bash", &this, "__rank", "hello"];
    let program = [&user[..], &shell].concat();
    let job = |limit| {
        let job = step_of(&new_step(), &[0, 1], 2, &program);
        job.env("ARGONET_START_TIMEOUT", limit).start()
    };
    job("5").outcome().code(3).says(&[
        "attach: rank 1, started by Slurm's srun, could not join its job: more descriptors of this user are on their way",
        "raise that (RLIMIT_NOFILE, `ulimit -n`)",
    ]);
    let waits = job("60");
    until(|| waits.processes().len() == 3);
    crowd.go().code(0);
    check_hello(&waits.outcome().code(0).silent(), 2);
}

fn has_pidfd(process: Pid) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    let mut files = files.expect("it lives").flatten();
    files.any(|file| {
        let file = std::fs::read_link(file.path()).unwrap_or_default();
        file.to_string_lossy().contains("pidfd")
    })
}

/// Rank 1 has its welcome, and does not take it, so that rank 2 cannot get one: rank 1 must not
/// stay.
fn welcomed_and_failed() {
    let (step, this) = (new_step(), this_program());
    let user = become_user(IDLE_USERS.end + 2);
    let user = user.each_ref().map(String::as_str);
    let crowd = crowd(&user, "100");
    let script = "ulimit -n 102 && echo $SLURM_PROCID $$ && exec \"$@\"";
    let shell = ["bash", "-c", script, "bash", &this, "__rank", "hello"];
    let job = |ranks: &[u32]| {
        let job = step_of(&step, ranks, 3, &[&user[..], &shell].concat());
        job.env("ARGONET_START_TIMEOUT", "10").start()
    };
    let mut first = job(&[0, 1]);
    let [rank_0, rank_1] = [["0 ", "1 "], ["1 ", "0 "]].map(|starts| {
        let id = first.read_until_all(&starts);
        pid(id.parse().expect("a process id"))
    });
    // That of rank 1 came with its message.
    until(|| has_pidfd(rank_0));
    first.kill(rank_1, Signal::STOP);
    until(|| first.is_stopped(rank_1));
    // It is refused, or ended like rank 1.
    let second = job(&[2]).outcome();
    assert!(!second.status.success(), "{second:?}");
    first.outcome().code(137).says(&[
        "attach: rank 0, started by Slurm's srun, could not join its job: more descriptors of this user are on their way",
        "(RLIMIT_NOFILE, `ulimit -n`)",
    ]);
    crowd.go().code(0);
}

fn neighborhoods() {
    let job = all(4, &["neighbors"]).env("ARGONET_CONDUIT", "tcp");
    let outcome = job
        .env("GASNET_SUPERNODE_MAXSIZE", "2")
        .run()
        .code(0)
        .silent();
    assert_eq!(outcome.lines().len(), 4);
}
