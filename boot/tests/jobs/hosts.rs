//! Jobs over several hosts: agents as processes of this host, by a command template, by a stand-in for a remote shell, and in
//! network namespaces.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, exit};
use rustix::process::Signal;

use crate::endings::handle;
use crate::programs::{fence, for_ever, join, say, start};
use crate::support::{Job, Outcome, Running, Test, check_hello, pid, this_program, until};

pub(crate) const TESTS: &[Test] = &[
    (
        "hosts_hello_of_2_to_9_hosts_in_trees_of_every_degree",
        hello,
    ),
    ("hosts_by_template_shell_and_local_processes", ways),
    ("hosts_programs_that_never_attach_are_fine", not_a_rank),
    ("hosts_neighbourhoods_are_limited", neighbourhoods),
    (
        "hosts_environment_arguments_and_directory_arrive",
        environment,
    ),
    ("hosts_key_is_the_same_and_nowhere_to_be_seen", key),
    ("hosts_output_comes_in_whole_lines_and_all_of_it", lines),
    ("hosts_output_that_nobody_takes_ends_the_job", closed_output),
    ("hosts_input_goes_to_rank_0", stdin),
    ("hosts_many_fences_and_values", many_fences),
    (
        "hosts_exit_codes_and_reasons_are_those_of_one_host",
        exit_codes,
    ),
    ("hosts_exit_of_all_is_no_news", exit_of_all),
    ("hosts_killed_rank_ends_all_hosts", killed_rank),
    (
        "hosts_rank_that_deserts_a_fence_is_named_elsewhere",
        deserter,
    ),
    ("hosts_rank_that_is_late_is_named", late),
    ("hosts_time_limit", timeout),
    ("hosts_signals_reach_all_ranks", signals),
    ("hosts_second_interrupt_kills", second_interrupt),
    ("hosts_report_of_all_hosts", report),
    ("hosts_launcher_killed", launcher_killed),
    (
        "hosts_launcher_killed_while_agents_start",
        launcher_killed_early,
    ),
    ("hosts_agent_killed", agent_killed),
    (
        "hosts_agent_in_the_middle_of_the_tree_killed",
        inner_agent_killed,
    ),
    (
        "hosts_agent_and_its_guardian_killed",
        agent_and_guardian_killed,
    ),
    ("hosts_agent_that_hangs_is_given_up", agent_hangs),
    ("hosts_launcher_that_hangs_is_given_up", launcher_hangs),
    ("hosts_terminal_stop_is_no_hang", terminal_stop),
    ("hosts_what_cannot_be_started_is_told", start_errors),
    ("hosts_bad_lists_and_templates_are_told", bad_input),
];

/// The way to hosts that are none: each agent is a process of this host, below a shell.
const TEMPLATE: (&str, &str) = ("GASNET_CSPAWN_CMD", "HOST_OF_TEST=%M exec %C");

fn spread(ranks: u32, hosts: &str, program: &[&str]) -> Job {
    spread_with(ranks, hosts, &[], program)
}

fn spread_with(ranks: u32, hosts: &str, options: &[&str], program: &[&str]) -> Job {
    let hosts = format!("hosts={hosts}");
    let options = [&["conduit=none", &hosts], options].concat();
    clean(Job::launched(ranks, &options, program)).env(TEMPLATE.0, TEMPLATE.1)
}

fn clean(job: Job) -> Job {
    job.env("GASNET_SPAWNFN", "")
}

fn hello() {
    for (ranks, hosts, degree) in [
        (2, "a,b", "32"),
        (4, "a:2,b:2", "1"),
        (5, "a:1,b:3,c:1", "2"),
        (9, "a,b,c,d,e,f,g,h,i", "1"),
        (9, "a,b,c,d,e,f,g,h,i", "2"),
        (18, "a,b,c,d,e,f,g,h,i", "3"),
        (9, "a,b,c,d,e,f,g,h,i", "0"),
    ] {
        let job = spread(ranks, hosts, &["hello"]).env("GASNET_SSH_OUT_DEGREE", degree);
        check_hello(&job.run().code(0).silent(), ranks);
    }
}

/// A stand-in for a remote shell: prints what it was given, forgets options and host, and has a shell run the rest.
const SHELL: &str = "#!/bin/sh\nwhile [ \"$1\" != nodeA ] && [ \"$1\" != nodeB ]; do echo \"option $1\" >&2; shift; done\n\
    echo \"host $1\" >&2; echo 'Welcome!'; shift; exec sh -c \"$*\"\n";

/// A file that this test makes, and that goes with it.
struct TestFile(std::path::PathBuf);

impl TestFile {
    fn new(name: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("argonet-test-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("mode");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn ways() {
    let shell = TestFile::new("shell", SHELL);
    let job = clean(Job::launched(
        4,
        &["conduit=none", "hosts=nodeA:2,nodeB:2"],
        &["hello"],
    ));
    let job = job.env("GASNET_SSH_CMD", shell.path());
    let outcome = job.env("GASNET_SSH_OPTIONS", "-p '2 2'").run().code(0);
    check_hello(&outcome, 4);
    outcome.says(&[
        "argonet run: host nodeA: option -p\n",
        "argonet run: host nodeA: option 2 2\n",
        "argonet run: host nodeA: host nodeA\n",
        "argonet run: host nodeB: host nodeB\n",
    ]);

    let list = TestFile::new("hosts", "# hosts\nnodeA slots=3\nnodeB slots=3\n");
    let file = format!("hostfile={}", list.path());
    for (letter, options) in [
        ("L", &["conduit=none", &file][..]),
        ("C", &["conduit=none"]),
    ] {
        let job = Job::launched(6, options, &["hello"]).env("GASNET_SPAWNFN", letter);
        let job = job
            .env(TEMPLATE.0, TEMPLATE.1)
            .env("GASNET_SSH_NODEFILE", list.path());
        check_hello(&job.run().code(0).silent(), 6);
    }
}

fn not_a_rank() {
    let hosts = ["conduit=none", "hosts=a:2,b:2"];
    let script = "echo $HOST_OF_TEST";
    let job = clean(Job::launcher("4", &hosts, &["sh", "-c", script])).env(TEMPLATE.0, TEMPLATE.1);
    let outcome = job.run().code(0).silent();
    assert_eq!(outcome.lines(), ["a", "a", "b", "b"]);
    let script = "test $HOST_OF_TEST = a && exec sleep 100000; exit 7";
    let job = clean(Job::launcher("4", &hosts, &["sh", "-c", script])).env(TEMPLATE.0, TEMPLATE.1);
    job.run()
        .code(7)
        .says(&["exited with code 7; the other ranks were ended"]);
}

fn neighbourhoods() {
    let outcome = spread(5, "a:3,b:2", &["neighbours"]).run().code(0).silent();
    assert_eq!(
        outcome.lines(),
        [
            "rank 0: host 0..3, neighbours 0..3",
            "rank 1: host 0..3, neighbours 0..3",
            "rank 2: host 0..3, neighbours 0..3",
            "rank 3: host 3..5, neighbours 3..5",
            "rank 4: host 3..5, neighbours 3..5",
        ]
    );
    let job = spread(5, "a:3,b:2", &["neighbours"]).env("GASNET_SUPERNODE_MAXSIZE", "2");
    let lines = job.run().code(0).silent();
    assert_eq!(lines.lines()[2], "rank 2: host 0..3, neighbours 2..3");
    // On one host, without agents.
    let job = Job::launched(4, &["conduit=none"], &["neighbours"]);
    let job = job.env("GASNET_SUPERNODE_MAXSIZE", "3");
    let outcome = job.run().code(0).silent();
    assert_eq!(outcome.lines()[3], "rank 3: host 0..4, neighbours 3..4");
}

fn environment() {
    let script = "echo \"$1|$TEST_A|$TEST_B|$GASNET_TEST_C|$ARGONET_CONDUIT|$(pwd)\"";
    let hosts = ["conduit=none", "hosts=a,b", "env=TEST_B"];
    let program = ["sh", "-c", script, "sh", "it's \"$HOME\" \\ *"];
    let job = clean(Job::launcher("2", &hosts, &program));
    // The hosts have values of their own.
    let template = "TEST_A=host TEST_B=host GASNET_TEST_C=host exec %C";
    let outcome = job
        .env("GASNET_CSPAWN_CMD", template)
        .env("TEST_A", "launcher")
        .env("TEST_B", "launcher")
        .env("GASNET_TEST_C", "launcher")
        .env("GASNET_SSH_REMOTE_PATH", "/proc")
        .run()
        .code(2)
        .says(&["does not name the host"]);
    drop(outcome);
    let job = clean(Job::launcher("2", &hosts, &program));
    let outcome = job
        .env("GASNET_CSPAWN_CMD", &format!(": %M; {template}"))
        .env("TEST_A", "launcher")
        .env("TEST_B", "launcher")
        .env("GASNET_TEST_C", "launcher")
        .env("GASNET_SSH_REMOTE_PATH", "/proc")
        .run()
        .code(0)
        .silent();
    let line = "it's \"$HOME\" \\ *|host|launcher|launcher||/proc";
    assert_eq!(outcome.lines(), [line, line]);
}

fn key() {
    let outcome = spread(4, "a:2,b:2", &["key"]).run().code(0).silent();
    let lines = outcome.lines();
    let (rank, digest) = lines[0].split_once(' ').expect("rank and digest");
    assert_eq!((rank, digest.len()), ("0", 16));
    for (rank, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("{rank} {digest}"));
    }
    let again = spread(4, "a:2,b:2", &["key"]).run().code(0).silent();
    assert!(!again.out.contains(digest), "two jobs have one key");
}

fn check_lines(outcome: &Outcome, ranks: u32) {
    for rank in 0..ranks {
        let tag = format!("[{rank}] ");
        let of_rank: Vec<&str> = outcome
            .out
            .lines()
            .filter_map(|l| l.strip_prefix(&tag))
            .filter(|l| *l != "ready")
            .collect();
        for i in 0..200 {
            assert_eq!(of_rank[i], format!("line {i} of {rank}"));
        }
        let long: usize = outcome
            .out
            .lines()
            .filter_map(|l| {
                l.strip_prefix(&tag)
                    .or_else(|| l.strip_prefix(&format!("[{rank}]+ ")))
            })
            .filter(|l| l.starts_with('x'))
            .map(str::len)
            .sum();
        assert_eq!(long, 150_000 + "tail".len(), "rank {rank}");
        outcome.says_too(&[&format!("[{rank}] to standard error\n")]);
    }
}

fn lines() {
    let job = spread_with(6, "a,b,c", &["tag"], &["lines"]).env("GASNET_SSH_OUT_DEGREE", "1");
    check_lines(&job.run().code(0), 6);
    // More than all windows hold.
    let job = spread(4, "a,b,c,d", &["flood", "3000000"]).env("GASNET_SSH_OUT_DEGREE", "1");
    let outcome = job.run().code(0).silent();
    for rank in 0..4 {
        let start = format!("{rank} is at line ");
        let of_rank = outcome.out.lines().filter(|l| l.starts_with(&start));
        let numbers: Vec<u64> = of_rank
            .map(|l| l.rsplit(' ').next().and_then(|n| n.parse().ok()).expect(l))
            .collect();
        let count = numbers.len() as u64;
        assert!(
            count > 10_000 && numbers == (0..count).collect::<Vec<_>>(),
            "rank {rank}"
        );
    }
    // Untagged, a line that is too long stays one line.
    let outcome = spread(1, "a", &["lines"]).run().code(0);
    assert!(
        outcome
            .out
            .ends_with(&format!("{}tail\n", "x".repeat(150_000)))
    );
}

fn closed_output() {
    let job = spread(4, "a:2,b:2", &["flood", "100000000"]).start();
    let outcome = job.without_output();
    outcome
        .code(141)
        .says(&["was killed by signal 13 (SIGPIPE)"]);
}

fn stdin() {
    for bytes in [0, 5, 3_000_000] {
        let input = vec![b'z'; bytes];
        let outcome = spread(3, "a,b,c", &["stdin"])
            .run_with(&input)
            .code(0)
            .silent();
        assert_eq!(
            outcome.lines(),
            [
                &format!("rank 0 read {bytes}"),
                "rank 1 read 0",
                "rank 2 read 0",
                "ready",
            ]
        );
    }
    // A rank that does not read does not hold up the job.
    let input = vec![b'z'; 3_000_000];
    let outcome = spread(2, "a,b", &["hello"])
        .run_with(&input)
        .code(0)
        .silent();
    check_hello(&outcome, 2);
}

fn many_fences() {
    let job = spread(12, "a:3,b:3,c:3,d:3", &["fences", "300"]).env("GASNET_SSH_OUT_DEGREE", "2");
    let outcome = job.run().code(0).silent();
    assert_eq!(outcome.lines().len(), 12);
}

fn exit_codes() {
    for rank in ["0", "3"] {
        let says = format!("argonet run: rank {rank} (pid ");
        let why = "exited with code 7 without finalising; the other ranks were ended";
        spread(4, "a:2,b:2", &["exit", rank, "7"])
            .run()
            .code(7)
            .says(&[&says, why]);
    }
    spread(4, "a:2,b:2", &["exit-at-fence", "3", "9"])
        .run()
        .code(9);
    spread(4, "a:2,b:2", &["exit", "2", "0"])
        .run()
        .code(1)
        .says(&["rank 2 (pid "]);
    let outcome = spread(4, "a:2,b:2", &["finalise-then-exit", "3", "5"])
        .run()
        .code(5);
    outcome.says(&["rank 3 (pid ", "exited with code 5\n"]);
    let outcome = spread(4, "a:2,b:2", &["abort", "2", "77"]).run().code(77);
    outcome.says(&[
        "the answer is wrong",
        "aborted the job with code 77; the other ranks",
    ]);
}

fn exit_of_all() {
    spread(4, "a:2,b:2", &["exit-of-all", "5"])
        .run()
        .code(5)
        .silent();
}

/// A job of waiting ranks with a child each, two on every host; all processes are there.
fn waiting(hosts: &[&str], degree: &str, change: impl FnOnce(Job) -> Job) -> Running {
    let count = hosts.len();
    let list: Vec<String> = hosts.iter().map(|host| format!("{host}:2")).collect();
    let job = spread(2 * count as u32, &list.join(","), &["wait", "children"]);
    let mut job = change(
        job.env("GASNET_SSH_OUT_DEGREE", degree)
            .env("GASNET_SPAWN_VERBOSE", "1"),
    )
    .start();
    let mut pids = 0;
    while pids < 2 * count {
        job.read_until("pid ");
        pids += 1;
    }
    // The launcher; of each host an agent, a guardian, two ranks and their children.
    until(|| job.processes().len() == 1 + 6 * count);
    job
}

/// The agent of `host` and its guardian.
fn agent_of(job: &Running, host: &str) -> [rustix::process::Pid; 2] {
    let told = job.wait_for_error(&format!("host {host}: the agent is process "));
    let mut numbers = told
        .split(|c: char| !c.is_ascii_digit())
        .filter(|n| !n.is_empty());
    [(); 2].map(|()| {
        pid(numbers
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a process id"))
    })
}

fn killed_rank() {
    let job = waiting(&["a", "b", "c"], "32", |job| job);
    let rank = job.rank_pid(3);
    job.kill(rank, Signal::KILL);
    let why =
        format!("rank 3 (pid {rank}) was killed by signal 9 (SIGKILL); the other ranks were ended");
    job.outcome().code(137).says(&[&why]);
}

fn deserter() {
    let begin = Instant::now();
    let job = spread(4, "a:2,b:2", &["desert", "3"]).env("GASNET_SSH_OUT_DEGREE", "1");
    job.run()
        .code(4)
        .says(&["rank 3 ended or finalised without entering it"]);
    assert!(begin.elapsed() < Duration::from_secs(30));
    // All of a host have gone, and it is below the one that waits.
    let job = spread(3, "a,b,c", &["desert", "2"]).env("GASNET_SSH_OUT_DEGREE", "1");
    job.run()
        .code(4)
        .says(&["rank 2 ended or finalised without entering it"]);
    let job = spread(3, "a,b,c", &["absent", "2"]);
    job.run()
        .code(4)
        .says(&["rank 2 ended or finalised without entering it"]);
}

fn late() {
    let job = spread(4, "a:2,b:2", &["late", "2"]).env("ARGONET_START_TIMEOUT", "1");
    let outcome = job.run().code(4);
    outcome.says(&["in start-up for ra", "ARGONET_START_TIMEOUT"]);
    // Where it is the only rank of its host, nobody else can know which one it is.
    let job = spread(2, "a,b", &["late", "1"]).env("ARGONET_START_TIMEOUT", "1");
    job.run()
        .code(4)
        .says(&["rank 0 waited 1 s in start-up for ranks of other hosts"]);
}

fn timeout() {
    let job = spread_with(4, "a:2,b:2", &["timeout=0.5"], &["wait"]);
    job.run()
        .code(124)
        .says(&["ranks 0, 1, 2, 3 still ran and were ended"]);
}

fn signals() {
    let job = waiting(&["a", "b"], "1", |job| job);
    job.kill(job.pid(), Signal::TERM);
    job.outcome()
        .code(143)
        .says(&["was killed by signal 15 (SIGTERM)"]);
}

fn second_interrupt() {
    let job = spread(4, "a:2,b:2", &["ignore"]).env("GASNET_SPAWN_VERBOSE", "1");
    let mut job = job.start();
    job.read_until("ready");
    job.kill(job.pid(), Signal::INT);
    job.read_until("not yet");
    job.kill(job.pid(), Signal::INT);
    let outcome = job.outcome().code(130);
    outcome.says(&["signal 2 (SIGINT) came a second time; the ranks were killed"]);
}

fn report() {
    let job = waiting(&["a", "b"], "32", |job| job);
    job.kill(job.pid(), Signal::USR2);
    job.wait_for_error("host b: all ranks here:");
    job.wait_for_error("host a: all ranks here:");
    job.kill(job.pid(), Signal::TERM);
    let outcome = job.outcome().code(143);
    outcome.says(&["  rank 0 (pid ", "  rank 3 (pid "]);
}

fn launcher_killed() {
    for degree in ["1", "32"] {
        let job = waiting(&["a", "b", "c"], degree, |job| job);
        job.kill(job.pid(), Signal::KILL);
        job.outcome().code(137);
    }
}

fn launcher_killed_early() {
    for hosts in ["a:2,b:2", "a:9,b:9,c:9"] {
        let ranks = if hosts.len() == 7 { 4 } else { 27 };
        let job = spread(ranks, hosts, &["wait", "children"])
            .env("GASNET_SSH_OUT_DEGREE", "1")
            .start();
        until(|| job.processes().len() > 3);
        job.kill(job.pid(), Signal::KILL);
        job.outcome().code(137);
    }
}

fn agent_killed() {
    let job = waiting(&["a", "b", "c"], "32", |job| job);
    job.kill(agent_of(&job, "b")[0], Signal::KILL);
    job.outcome().code(1).says(&[
        "argonet run: host b (ranks 2-3): its agent was killed by signal 9 (SIGKILL) while the job needed it",
    ]);
}

fn inner_agent_killed() {
    let job = waiting(&["a", "b", "c", "d"], "1", |job| job);
    job.kill(agent_of(&job, "b")[0], Signal::KILL);
    job.outcome()
        .code(1)
        .says(&["host b (ranks 2-3): its agent was killed by signal 9"]);
}

fn agent_and_guardian_killed() {
    let job = waiting(&["a", "b"], "32", |job| job);
    let [agent, guardian] = agent_of(&job, "b");
    job.kill(guardian, Signal::KILL);
    job.kill(agent, Signal::KILL);
    // Children of ranks outlive them where nobody is left who knows of them, as in a job on one host.
    until(|| job.processes().len() <= 2);
    job.end_what_is_left();
    job.outcome().code(1);
}

fn agent_hangs() {
    let job = waiting(&["a", "b"], "32", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "1")
    });
    job.kill(agent_of(&job, "b")[0], Signal::STOP);
    job.outcome().code(1).says(&[
        "host b (ranks 2-3): its agent gave no sign of life for 1 s (ARGONET_AGENT_TIMEOUT)",
    ]);
}

fn launcher_hangs() {
    let job = waiting(&["a", "b", "c"], "1", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "1")
    });
    job.kill(job.pid(), Signal::STOP);
    // All but the launcher end.
    until(|| job.processes().len() == 1);
    job.kill(job.pid(), Signal::CONT);
    job.outcome().code(1);
}

fn terminal_stop() {
    let job = waiting(&["a", "b"], "32", |job| {
        job.env("ARGONET_AGENT_TIMEOUT", "0.3")
    });
    let (launcher, rank) = (job.pid(), job.rank_pid(3));
    job.kill(launcher, Signal::TSTP);
    until(|| job.is_stopped(launcher) && job.is_stopped(rank));
    let agents = ["a", "b"].map(|host| agent_of(&job, host)[0]);
    // Longer than a silence would be borne.
    let begin = Instant::now();
    until(|| begin.elapsed() > Duration::from_secs(1));
    assert!(agents.iter().all(|&agent| job.waits(agent)));
    job.kill(launcher, Signal::CONT);
    until(|| !job.is_stopped(rank));
    job.kill(launcher, Signal::TERM);
    job.outcome().code(143);
}

fn start_errors() {
    let this = this_program();
    let options = ["conduit=none", "hosts=a:2,b:2"];
    let job = || clean(Job::launched(4, &options, &["hello"]));
    let outcome = job()
        .env("GASNET_SSH_CMD", "/nonexistent/ssh")
        .run()
        .code(127);
    outcome.says(&[
        "cannot run \"/nonexistent/ssh\" to reach host a",
        "GASNET_SSH_CMD",
    ]);
    let agent = ("ARGONET_AGENT", "/nonexistent/argonet");
    let outcome = job()
        .env(TEMPLATE.0, TEMPLATE.1)
        .env(agent.0, agent.1)
        .run()
        .code(127);
    outcome.says(&[
        "host a (ranks 0-1): \"/nonexistent/argonet\" could not be run there (exit code 127)",
        "ARGONET_AGENT",
    ]);
    // What ssh does with a name that is none.
    let shell = TestFile::new(
        "no-host",
        "#!/bin/sh\necho 'ssh: Could not resolve hostname' >&2\nexit 255\n",
    );
    let outcome = job().env("GASNET_SSH_CMD", shell.path()).run().code(1);
    outcome.says(&[
        "host a: ssh: Could not resolve hostname",
        "could not get there (exit code 255",
    ]);
    let outcome = job()
        .env(TEMPLATE.0, ": %M %C; echo hi; exit 3")
        .run()
        .code(1);
    outcome.says(&["exited with code 3 before the agent answered (it wrote \"hi\")"]);
    // An agent of another version.
    let greeting = "printf '\\nargonet-agent\\0\\001\\r\\0\\0\\0\\001\\0\\0\\0\\007\\0\\0\\0\\005\\0\\0\\0009.9.9'; cat >/dev/null; : %M %%";
    let greeting = greeting.replace("%%", "%C").replace("\\r", "\\015");
    let outcome = job().env(TEMPLATE.0, &greeting).run().code(1);
    outcome.says(&[
        "argonet there is version 9.9.9 (control protocol 7), and here version",
        "install the same version",
    ]);
    let outcome = job()
        .env(TEMPLATE.0, "head -c 70000 /dev/zero; cat; : %M %C")
        .run()
        .code(1);
    outcome.says(&["no agent's greeting"]);
    // One that never answers.
    let silent = job()
        .env(TEMPLATE.0, "exec sleep 100000; : %M %C")
        .env("ARGONET_AGENT_TIMEOUT", "0.5");
    silent
        .run()
        .code(1)
        .says(&["gave no sign of life for 0.5 s"]);
    // On the hosts themselves.
    let outcome = clean(Job::launcher("4", &options, &["no-such-program-anywhere"]));
    let outcome = outcome.env(TEMPLATE.0, TEMPLATE.1).run().code(127);
    outcome.says(&[
        "argonet run: host ",
        "): cannot run \"no-such-program-anywhere\"",
    ]);
    let outcome = job()
        .env(TEMPLATE.0, TEMPLATE.1)
        .env("GASNET_SSH_REMOTE_PATH", "/nonexistent/dir");
    outcome.run().code(1).says(&[
        "entering the directory /nonexistent/dir",
        "GASNET_SSH_REMOTE_PATH",
    ]);
    // By hand.
    let outcome = Job::program(&[&this, "__agent"]).run().code(2);
    outcome.says(&["is started by `argonet run` on each host of a job, not by hand"]);
}

fn bad_input() {
    let run = |options: &[&str], given: &[(&str, &str)], code| {
        let mut job = clean(Job::launched(4, options, &["hello"]));
        for (name, value) in given {
            job = job.env(name, value);
        }
        job.run().code(code)
    };
    run(&["conduit=none", "hosts=a:1,b:2"], &[TEMPLATE], 2).says(&[
        "the list of hosts (-H) cannot be used",
        "room for 3 ranks on 2 hosts, and 4 were asked for",
    ]);
    run(
        &["conduit=none", "hosts=a,-oProxyCommand=x"],
        &[TEMPLATE],
        2,
    )
    .says(&["is no host"]);
    run(
        &["conduit=none", "hostfile=/nonexistent/hosts"],
        &[TEMPLATE],
        1,
    )
    .says(&["--hostfile /nonexistent/hosts"]);
    run(&["hosts=a,b"], &[TEMPLATE], 2)
        .says(&["the conduit smp joins ranks of one host, and this job would be on 2 hosts"]);
    run(&["conduit=none"], &[("GASNET_SPAWNFN", "C")], 2).says(&["no hosts are named"]);
    run(
        &["conduit=none", "hosts=a,b"],
        &[("GASNET_CSPAWN_CMD", "run %C")],
        2,
    )
    .says(&["does not name the host"]);
    run(
        &["conduit=none", "hosts=a,b"],
        &[("GASNET_CSPAWN_CMD", "run %M %x %C")],
        2,
    )
    .says(&["%x stands for nothing"]);
    // One host by an agent is one host.
    check_hello(&run(&["hosts=a:4"], &[TEMPLATE], 0).silent(), 4);
}

/// What ranks do in these tests.
pub(crate) fn rank(args: &[&str]) -> Option<i32> {
    match args {
        ["neighbours"] => {
            let job = join();
            let (host, near) = (job.host_ranks(), job.neighbourhood());
            say(&format!(
                "rank {}: host {host:?}, neighbours {near:?}",
                job.rank()
            ));
            // Those that share files see what one of them has written there, and others do not.
            let rings = std::fs::File::from(job.files().rings.try_clone().expect("a descriptor"));
            let mut marks = vec![0; job.size() as usize];
            if job.rank().0 == near.start {
                rings.set_len(marks.len() as u64).expect("room");
            }
            fence(&job);
            rings.write_at(&[1], job.rank().0.into()).expect("written");
            fence(&job);
            rings.read_at(&mut marks, 0).expect("read");
            for (rank, mark) in (0..).zip(marks) {
                assert_eq!(mark == 1, near.contains(&rank), "rank {rank} of {near:?}");
            }
            job.finalised();
        }
        ["key"] => {
            let job = join();
            let key = job.job_key().bytes();
            assert!(key.iter().any(|&byte| byte != 0));
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            // Not even what this process was started with.
            for file in ["environ", "cmdline"] {
                let bytes = std::fs::read(format!("/proc/self/{file}")).expect(file);
                assert!(!bytes.windows(key.len()).any(|part| part == key), "{file}");
                assert!(!String::from_utf8_lossy(&bytes).contains(&hex), "{file}");
            }
            let digest = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
            say(&format!("{} {digest:016x}", job.rank()));
            fence(&job);
            job.finalised();
        }
        // Numbered lines, in large writes.
        ["flood", bytes] => {
            handle(libc::SIGPIPE, libc::SIG_DFL);
            let job = start();
            let (bytes, mut written, mut number): (usize, _, _) = (bytes.parse().ok()?, 0, 0);
            let mut out = std::io::stdout().lock();
            while written < bytes {
                let mut lines = String::new();
                while lines.len() < 50_000 {
                    lines.push_str(&format!("{} is at line {number}\n", job.rank()));
                    number += 1;
                }
                written += lines.len();
                out.write_all(lines.as_bytes()).expect("written");
            }
            job.finalised();
        }
        // A value is there after the fence that follows it, on every host.
        ["fences", count] => {
            let job = join();
            let keys = [Key::User, Key::Tool, Key::Host];
            for round in 0..count.parse().ok()? {
                if let Some(&key) = keys.get(round) {
                    let value = format!("{round} of {}", job.rank()).repeat(5);
                    job.publish(key, value.as_bytes()).expect("published");
                }
                fence(&job);
                for (round, key) in keys.into_iter().enumerate().take(round + 1) {
                    for rank in (0..job.size()).map(JobRank) {
                        let value = job.lookup(rank, key).expect("looked up");
                        assert_eq!(value, format!("{round} of {rank}").repeat(5).into_bytes());
                    }
                }
            }
            job.started();
            say(&format!("rank {}", job.rank()));
            fence(&job);
            job.finalised();
        }
        ["exit-of-all", code] => {
            let _job = start();
            exit(code.parse().ok()?);
        }
        // One rank finalises and lives on; the others wait for it.
        ["desert", who] => {
            let job = start();
            if job.rank().0.to_string() == *who {
                job.finalised();
                for_ever()
            }
            fence(&job);
        }
        // Ignores the first signal.
        ["ignore"] => {
            extern "C" fn not_yet(_signal: i32) {
                let _ = rustix::io::write(rustix::stdio::stdout(), b"not yet\n");
            }
            handle(libc::SIGINT, not_yet as *const () as usize);
            let job = start();
            fence(&job);
            for_ever()
        }
        _ => return None,
    }
    Some(0)
}
