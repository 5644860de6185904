//! Programs of the test binary when it is started as a launcher or as a rank.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use argonet_base::JobRank;
use argonet_boot::{
    Answers, AttachOptions, Bootstrap, HostOptions, Key, LaunchOptions, LocalJob, Post,
    VisitOptions, Visits, attach, launch, launch_self, visit,
};
use argonet_settings::{OnRankLost, Settings};

/// `__launch N [bind] [tag] [continue] [end] [timeout=S] [conduit=C] [hosts=H] [hostfile=F]
/// [env=NAMES] -- program args...`
pub(crate) fn launcher(args: Vec<String>) -> i32 {
    let mut args = args.into_iter();
    let mut options = LaunchOptions {
        ranks: args.next().expect("N").parse().expect("N is a number"),
        program: Default::default(),
        args: Vec::new(),
        conduit: None,
        bind: false,
        tag_output: false,
        timeout: None,
        on_rank_lost: None,
        hosts: HostOptions {
            agent: vec![crate::support::this_program().into(), "__agent".into()],
            ..HostOptions::default()
        },
    };
    for arg in args.by_ref() {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("bind", _) => options.bind = true,
            ("tag", _) => options.tag_output = true,
            ("timeout", s) => {
                options.timeout = Some(Duration::from_secs_f64(s.parse().expect("seconds")))
            }
            ("continue", _) => options.on_rank_lost = Some(OnRankLost::Continue),
            ("end", _) => options.on_rank_lost = Some(OnRankLost::End),
            ("conduit", c) => options.conduit = Some(c.into()),
            ("hosts", h) => options.hosts.hosts = Some(h.into()),
            ("hostfile", f) => options.hosts.file = Some(f.into()),
            ("env", names) => options.hosts.propagate = names.split(',').map(Into::into).collect(),
            _ => break,
        }
    }
    options.program = args.next().expect("program").into();
    options.args = args.map(Into::into).collect();
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(e) => {
            eprintln!("argonet run: {e}");
            return 2;
        }
    };
    match launch(&options, &settings) {
        Ok(code) => code.into(),
        Err(e) => {
            eprintln!("argonet run: {e}");
            e.exit_code().into()
        }
    }
}

/// `__agent`: as `argonet agent`.
pub(crate) fn agent() -> i32 {
    match argonet_boot::agent(echo) {
        Ok(code) => code.into(),
        Err(e) => {
            eprintln!("argonet agent: {e}");
            e.exit_code().into()
        }
    }
}

/// `__visit H question...`: asks all hosts each question, and prints answers.
///
/// Newly lost hosts are reported.
pub(crate) fn visitor(args: Vec<String>) -> i32 {
    let options = VisitOptions {
        hosts: HostOptions {
            hosts: args.first().cloned(),
            agent: vec![crate::support::this_program().into(), "__agent".into()],
            ..HostOptions::default()
        },
        ranks: None,
    };
    let settings = settings().expect("settings");
    let visited = visit(&options, "tcp", &settings, |visits| {
        let mut reported = 0;
        for question in &args[1..] {
            reported = report_lost(visits, reported);
            let question = Some(question.clone().into_bytes());
            let answers = visits.ask(|_| question.clone(), Duration::from_secs(20));
            for answer in answers.into_iter().flatten() {
                say(&String::from_utf8_lossy(&answer));
            }
        }
    });
    visited.map_or(1, |visited| i32::from(visited.is_none()))
}

/// Reports the lost hosts if there are more than `reported`; how many there are.
fn report_lost(visits: &Visits<'_>, reported: usize) -> usize {
    let lost: Vec<_> = visits.hosts().iter().filter(|h| h.lost.is_some()).collect();
    if lost.len() > reported {
        for host in &lost {
            let why = host.lost.as_deref().unwrap_or_default();
            say(&format!("lost: {why}, {:?}", host.stderr));
        }
    }
    lost.len()
}

/// Answers a question with itself and where it was asked.
fn echo(post: Post) -> Answers {
    Box::new(move |question| {
        let question = String::from_utf8_lossy(question);
        if question == "panic" {
            // Without a word on standard error.
            std::panic::resume_unwind(Box::new(()));
        }
        let Post {
            host, ranks, size, ..
        } = &post;
        format!("{host} {ranks:?} of {size}: {question}").into_bytes()
    })
}

pub(crate) fn join() -> LocalJob {
    let job = settings().and_then(|s| attach(AttachOptions::new(), &s).map_err(|e| e.to_string()));
    job.unwrap_or_else(|e| {
        complain(&format!("attach: {e}"));
        std::process::exit(3)
    })
}

fn settings() -> Result<Settings, String> {
    Settings::from_environment().map_err(|e| e.to_string())
}

pub(crate) fn fence(job: &LocalJob) {
    job.fence().unwrap_or_else(|e| {
        complain(&format!("fence: {e}"));
        std::process::exit(4)
    });
}

/// Joins and starts up.
fn start_silently() -> LocalJob {
    let job = join();
    fence(&job);
    job.started();
    job
}

/// Sends a descriptor over a socket.
fn pass_on(socket: &std::os::unix::net::UnixStream) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let file = [socket.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&file)));
    let bytes = [std::io::IoSlice::new(b"x")];
    sendmsg(socket, &bytes, &mut control, SendFlags::empty()).expect("it passes descriptors on");
}

/// Joins and starts up; rank 0 says so when all have.
pub(crate) fn start() -> LocalJob {
    let job = start_silently();
    if job.rank() == JobRank(0) {
        say("ready");
    }
    job
}

pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("standard output");
}

/// In one piece, so that lines of several ranks do not run into each other.
fn complain(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

pub(crate) fn for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

/// `__rank program args...`; the exit code.
pub(crate) fn rank(args: Vec<String>) -> i32 {
    let arg = |i: usize| args.get(i).map_or("", String::as_str);
    let number = |i: usize| {
        arg(i)
            .parse::<i32>()
            .unwrap_or_else(|_| panic!("argument {i} of {args:?}"))
    };
    let chosen = |job: &LocalJob, i: usize| job.rank().0 as i32 == number(i);
    match arg(0) {
        // Every rank reads the values of all ranks.
        "hello" => {
            let job = join();
            let value = format!("value of {}", job.rank()).into_bytes();
            job.publish(Key::User, &value).expect("publish");
            fence(&job);
            for rank in (0..job.size()).map(JobRank) {
                assert_eq!(
                    job.lookup(rank, Key::User).expect("lookup"),
                    format!("value of {rank}").into_bytes()
                );
            }
            fence(&job);
            job.started();
            say(&format!(
                "rank {} of {} in {:016x}",
                job.rank(),
                job.size(),
                job.job_id()
            ));
            job.finalized();
            0
        }
        // The least: for measuring.
        "quick" => {
            let job = join();
            fence(&job);
            fence(&job);
            job.finalized();
            0
        }
        // Rank 1 exits with the code given, the others compute forever.
        "exit" => {
            let job = start();
            if chosen(&job, 1) {
                return number(2);
            }
            for_ever()
        }
        // As above, but the others wait at a fence.
        "exit-at-fence" => {
            let job = start();
            if chosen(&job, 1) {
                return number(2);
            }
            fence(&job);
            0
        }
        "finalize-then-exit" => {
            let job = start();
            fence(&job);
            job.finalized();
            if chosen(&job, 1) { number(2) } else { 0 }
        }
        "abort" => {
            let job = start();
            if chosen(&job, 1) {
                job.abort(number(2) as u8, "the answer is wrong");
            }
            for_ever()
        }
        // Says its process id, then waits forever; with `children`, each rank has a child in its
        // group.
        "wait" => {
            let job = join();
            if arg(1) == "children" {
                #[expect(
                    clippy::zombie_processes,
                    reason = "it is to outlive this process if it can"
                )]
                let _child = Command::new("sleep")
                    .arg("100000")
                    .stdin(Stdio::null())
                    .spawn()
                    .expect("sleep");
            }
            say(&format!("pid {} {}", job.rank(), std::process::id()));
            fence(&job);
            job.started();
            if job.rank() == JobRank(0) {
                say(&format!(
                    "guardian {}",
                    job.job_page().guardian_pid().unwrap_or(0)
                ));
                say("ready");
            }
            for_ever()
        }
        // One rank never joins; the others learn it.
        "absent" => {
            if std::env::var("ARGONET_BOOT")
                .expect("launched")
                .starts_with(&format!("2:{}:", arg(1)))
            {
                return 0;
            }
            fence(&join());
            0
        }
        // One rank joins and never comes to the fence.
        "late" => {
            let job = join();
            if chosen(&job, 1) {
                for_ever()
            }
            fence(&job);
            0
        }
        "stdin" => {
            let job = start();
            let mut input = String::new();
            std::io::stdin()
                .read_to_string(&mut input)
                .expect("standard input");
            say(&format!("rank {} read {:?}", job.rank(), input.len()));
            fence(&job);
            job.finalized();
            0
        }
        // Lines in pieces, a long line, and a tail without a newline.
        "lines" => {
            let job = start();
            let mut out = std::io::stdout().lock();
            for i in 0..200 {
                for piece in [
                    format!("line {i} "),
                    format!("of {}", job.rank()),
                    "\n".into(),
                ] {
                    out.write_all(piece.as_bytes())
                        .and_then(|()| out.flush())
                        .expect("standard output");
                }
            }
            eprint!("to standard error");
            out.write_all(&[b'x'; 150_000])
                .and_then(|()| out.write_all(b"tail"))
                .expect("standard output");
            out.flush().expect("standard output");
            job.finalized();
            0
        }
        // State that programs inherit from the rank that starts them.
        "inherit" => {
            let job = join();
            let script = "echo \"boot=$ARGONET_BOOT\"; ls -l /proc/self/fd | grep -c argonet-";
            let out = Command::new("sh")
                .args(["-c", script])
                .output()
                .expect("sh")
                .stdout;
            let text = String::from_utf8(out).expect("text").replace('\n', " ");
            say(&format!("{text}conduit={}", conduit()));
            fence(&job);
            job.finalized();
            0
        }
        "cores" => {
            let job = join();
            let mask = rustix::thread::sched_getaffinity(None).expect("affinity");
            let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|&c| mask.is_set(c))
                .collect();
            say(&format!("rank {} on {cores:?}", job.rank()));
            job.finalized();
            0
        }
        "second-thread" => {
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || stopped.recv());
            let error = attach(AttachOptions::new(), &settings().expect("settings"))
                .expect_err("a second thread")
                .to_string();
            drop(stop);
            let _ = thread.join();
            complain(&format!("attach: {error}"));
            3
        }
        // Says whether joining was refused, and whether a signal has been left blocked then.
        "fails-to-start" => {
            let result = attach(AttachOptions::new(), &settings().expect("settings"));
            let file_limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let more = rustix::process::Rlimit {
                current: file_limit.maximum,
                ..file_limit
            };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, more).expect("limit");
            match result {
                Ok(job) => job.finalized(),
                Err(_) => say("refused"),
            }
            let status = std::fs::read_to_string("/proc/self/status").expect("status");
            let blocked = status.lines().find_map(|l| l.strip_prefix("SigBlk:"));
            if blocked.map(str::trim) != Some("0000000000000000") {
                say("blocked");
            }
            0
        }
        "twice" => {
            let _job = join();
            let error = attach(AttachOptions::new(), &settings().expect("settings"))
                .expect_err("attached already");
            complain(&format!("attach: {error}"));
            3
        }
        // Says what its launcher makes of it.
        "launcher" => {
            let (found, starts) = argonet_boot::launcher_here(&settings().expect("settings"));
            say(&format!("{starts} {found}"));
            0
        }
        // Starts a program that sees the variables of this rank's launcher.
        "starts-another" => {
            let job = start();
            let mut another = Command::new(crate::support::this_program());
            let status = another.args(["__rank", "hello"]).status();
            fence(&job);
            job.finalized();
            status.expect("a program").code().expect("a code")
        }
        // Each rank but the one named has a second thread when it joins.
        "thread-but-in-rank" => {
            let own = std::env::var("SLURM_PROCID").expect("a rank");
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let thread = (own != arg(1)).then(|| std::thread::spawn(move || stopped.recv()));
            let job = start();
            fence(&job);
            job.finalized();
            drop(stop);
            thread.map(std::thread::JoinHandle::join);
            0
        }
        // Rank 1 starts another program.
        "starts" => {
            let job = start_silently();
            let program = &args[1..];
            let another = (job.rank() == JobRank(1)).then(|| {
                let status = Command::new(&program[0]).args(&program[1..]).status();
                status.expect("a program").code().expect("a code")
            });
            fence(&job);
            job.finalized();
            another.unwrap_or(0)
        }
        // Opens so many files.
        "opens" => {
            let job = start_silently();
            let open = |_| std::fs::File::open("/dev/null");
            let files: Result<Vec<_>, _> = (0..number(1)).map(open).collect();
            fence(&job);
            job.finalized();
            drop(files.expect("files"));
            0
        }
        // Has so many descriptors on their way until there is a line to read.
        "crowds" => {
            let (one, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
            for _ in 0..number(1) {
                pass_on(&one);
            }
            say("ready");
            let _ = std::io::stdin().read_line(&mut String::new());
            0
        }
        // Has the abstract name until it is killed.
        "squats" => {
            let _listener = abstract_socket(arg(1), true);
            say("ready");
            for_ever()
        }
        // Connects to the abstract name, says what no rank says, and waits for the answer.
        "intrudes" => {
            let socket = abstract_socket(arg(1), false);
            let said = rustix::net::send(&socket, b"let me in", rustix::net::SendFlags::NOSIGNAL);
            let mut bytes = [0; 2048];
            let flags = rustix::net::RecvFlags::empty();
            let taken = rustix::net::recv(&socket, &mut bytes[..], flags);
            let len = taken.map_or(0, |(len, _)| len);
            let answer =
                String::from_utf8_lossy(bytes.get(8..len).unwrap_or_default()).into_owned();
            say(&format!("intruder: {:?} {answer}", said.is_ok()));
            0
        }
        // Starts ranks of itself if it is to, or says which number of ranks its children see.
        "launches-itself" => {
            let settings = settings().expect("settings");
            match launch_self("smp", std::env::args_os(), &settings) {
                Ok(Some(code)) => return code.into(),
                Ok(None) => {}
                Err(e) => {
                    complain(&format!("launch: {e}"));
                    return e.exit_code().into();
                }
            }
            let script = "echo children see ${ARGONET_LAUNCH_RANKS-none}";
            let status = Command::new("sh").args(["-c", script]).status();
            status.expect("sh").code().expect("a code")
        }
        other => {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            crate::endings::rank(&args)
                .or_else(|| crate::leaving::rank(&args))
                .or_else(|| crate::hosts::rank(&args))
                .or_else(|| crate::losses::rank(&args))
                .unwrap_or_else(|| panic!("no such rank program: {other}"))
        }
    }
}

/// A socket that listens at an abstract name, or one that is connected to it.
fn abstract_socket(name: &str, listens: bool) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    let socket = socket(family, kind, None).expect("a socket");
    match listens {
        true => {
            bind(&socket, &address).expect("the name is free");
            listen(&socket, 8).expect("a listener");
        }
        false => crate::support::until(|| connect(&socket, &address).is_ok()),
    }
    socket
}

fn conduit() -> String {
    std::env::var("ARGONET_CONDUIT").unwrap_or_default()
}
