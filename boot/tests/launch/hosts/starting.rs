//! How jobs over several hosts are started, and the errors if they cannot be.

use super::rig::{TEMPLATE, TestFile, agent_of, clean, spread, waiting};
use crate::support::{Job, Test, check_hello, this_program};
use rustix::process::Signal;
use std::time::{Duration, Instant};

pub(super) const TESTS: &[Test] = &[
    (
        "hosts_hello_of_2_to_9_hosts_in_trees_of_every_degree",
        hello,
    ),
    ("hosts_by_template_shell_and_local_processes", ways),
    ("hosts_programs_that_never_attach_are_fine", not_a_rank),
    ("hosts_neighborhoods_are_limited", neighborhoods),
    (
        "hosts_environment_arguments_and_directory_arrive",
        environment,
    ),
    ("hosts_key_is_the_same_and_nowhere_to_be_seen", key),
    ("hosts_that_share_no_network", no_network),
    ("hosts_start_errors_name_the_host", start_errors),
    ("hosts_bad_lists_and_templates_are_refused", bad_input),
];

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

/// A stand-in for a remote shell: prints its arguments, forgets options and host, and has a shell
/// run the rest.
const SHELL: &str = "#!/bin/sh\nwhile [ \"$1\" != nodeA ] && [ \"$1\" != nodeB ]; do echo \"option $1\" >&2; shift; done\n\
    echo \"host $1\" >&2; echo 'Welcome!'; shift; exec sh -c \"$*\"\n";

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

fn neighborhoods() {
    let outcome = spread(5, "a:3,b:2", &["neighbors"]).run().code(0).silent();
    assert_eq!(
        outcome.lines(),
        [
            "rank 0: host 0..3, neighbors 0..3",
            "rank 1: host 0..3, neighbors 0..3",
            "rank 2: host 0..3, neighbors 0..3",
            "rank 3: host 3..5, neighbors 3..5",
            "rank 4: host 3..5, neighbors 3..5",
        ]
    );
    let job = spread(5, "a:3,b:2", &["neighbors"]).env("GASNET_SUPERNODE_MAXSIZE", "2");
    let lines = job.run().code(0).silent();
    assert_eq!(lines.lines()[2], "rank 2: host 0..3, neighbors 2..3");
    // On one host, without agents.
    let job = Job::launched(4, &["conduit=none"], &["neighbors"]);
    let job = job.env("GASNET_SUPERNODE_MAXSIZE", "3");
    let outcome = job.run().code(0).silent();
    assert_eq!(outcome.lines()[3], "rank 3: host 0..4, neighbors 3..4");
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

fn no_network() {
    let Some(apart) = apart() else {
        eprintln!("left out: this user may make no network namespaces");
        return;
    };
    let template = format!("HOST_OF_TEST=%M exec {apart} %C");
    let job = spread(6, "a:2,b:2,c:2", &["hello"]).env("GASNET_SSH_OUT_DEGREE", "1");
    check_hello(&job.env(TEMPLATE.0, &template).run().code(0).silent(), 6);
    let job = waiting(&["a", "b"], "1", |job| job.env(TEMPLATE.0, &template));
    job.kill(agent_of(&job, "a")[0], Signal::KILL);
    job.outcome()
        .code(1)
        .says(&["host a (ranks 0-1): its agent was killed by signal 9"]);
}

/// A command that runs another one in a network of its own, in which nothing can be reached; it
/// ends with the processes in it.
fn apart() -> Option<&'static str> {
    ["unshare -n", "unshare -Urn"].into_iter().find(|command| {
        let mut words = command.split(' ').chain(["true"]);
        let status = std::process::Command::new(words.next().unwrap_or_default())
            .args(words)
            .stderr(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    })
}

fn start_errors() {
    let this = this_program();
    // One host: of several, the first failure is reported.
    let options = ["conduit=none", "hosts=a:4"];
    let job = || clean(Job::launched(4, &options, &["hello"]));
    // Nothing waits for a host that fails at once. A busy machine may take a while for one job.
    let mut quickest = Duration::MAX;
    let mut timed = |job: Job| {
        let begun = Instant::now();
        let outcome = job.run();
        quickest = quickest.min(begun.elapsed());
        outcome
    };
    let outcome = timed(job().env("GASNET_SSH_CMD", "/nonexistent/ssh")).code(127);
    outcome.says(&[
        "cannot run \"/nonexistent/ssh\" to reach host a",
        "GASNET_SSH_CMD",
    ]);
    let agent = ("ARGONET_AGENT", "/nonexistent/argonet");
    let template = job().env(TEMPLATE.0, TEMPLATE.1);
    let outcome = timed(template.env(agent.0, agent.1)).code(127);
    outcome.says(&[
        "host a (ranks 0-3): \"/nonexistent/argonet\", or a command of GASNET_CSPAWN_CMD that starts it",
        "could not be run (exit code 127)",
        "ARGONET_AGENT",
    ]);
    // The answer of ssh to an unknown name.
    let shell = TestFile::new(
        "no-host",
        "#!/bin/sh\necho 'ssh: Could not resolve hostname' >&2\nexit 255\n",
    );
    let outcome = timed(job().env("GASNET_SSH_CMD", shell.path())).code(1);
    outcome.says(&[
        "host a: ssh: Could not resolve hostname",
        "could not get there (exit code 255",
    ]);
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");
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
    // An agent that never answers, or only repeats the bytes that are sent to it.
    let echo = job()
        .env(TEMPLATE.0, "exec cat; : %M %C")
        .env("ARGONET_AGENT_TIMEOUT", "0.5");
    echo.run().code(1).says(&["gave no sign of life for 0.5 s"]);
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
    let known = ("TEST_OF_NAMES", "1");
    run(
        &["conduit=none", "hosts=a,b", "env=TEST_OF_NAME"],
        &[TEMPLATE, known],
        2,
    )
    .says(&["TEST_OF_NAME (-E) is not set here; is TEST_OF_NAMES meant?"]);
    let list = TestFile::new("two-a-line", "nodeA nodeB\n");
    let file = format!("hostfile={}", list.path());
    run(&["conduit=none", &file], &[TEMPLATE], 2)
        .says(&["\"nodeA nodeB\" is no line of a file of hosts"]);
    // One host by an agent is one host.
    check_hello(&run(&["hosts=a:4"], &[TEMPLATE], 0).silent(), 4);
}
