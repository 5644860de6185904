//! Starting jobs from tests, looking at their processes, and never waiting forever.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) type Test = (&'static str, fn());

/// Time limit of a test.
///
/// It normally takes a fraction of a second; this is for the slowest machine.
pub(crate) const TEST_LIMIT: Duration = Duration::from_secs(60);
const MARK: &str = "ARGONET_TEST_MARK";

/// Ends the whole test run, with a picture of the processes, when a test takes too long.
pub(crate) struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(name: &'static str, limit: Duration) -> Self {
        let (alive, watch): (_, Receiver<()>) = channel();
        thread::spawn(move || {
            if watch.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("test {name} took over {limit:?}; processes of this run:");
                for process in processes_with(&format!("{MARK}={}.", std::process::id())) {
                    eprintln!("  {process:?}");
                    let _ = kill_process(pid(process.pid), Signal::KILL);
                }
                std::process::exit(101);
            }
        });
        Self { _alive: alive }
    }
}

/// A live process (no zombie) of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    name: String,
    state: String,
    waits_in: String,
}

/// The live processes whose environment has an entry beginning with `mark`.
fn processes_with(mark: &str) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        // A zombie has no environment left.
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        if !environment
            .split(|&b| b == 0)
            .any(|e| e.starts_with(mark.as_bytes()))
        {
            continue;
        }
        let read = |file| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        let state: String = stat
            .rsplit(") ")
            .next()
            .unwrap_or("")
            .chars()
            .take(1)
            .collect();
        if !state.is_empty() && !"ZX".contains(&state) {
            found.push(Process {
                pid,
                name: read("comm"),
                state,
                waits_in: read("wchan"),
            });
        }
    }
    found
}

pub(crate) fn pid(raw: u32) -> Pid {
    Pid::from_raw(raw as i32).expect("a process id")
}

/// Waits for a condition; the watchdog bounds it.
pub(crate) fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(2));
    }
}

/// The path of the test binary.
pub(crate) fn this_program() -> String {
    let path = std::env::current_exe().expect("this program");
    path.to_string_lossy().into_owned()
}

/// A job under test.
pub(crate) struct Job {
    command: Command,
    mark: String,
}

/// Outcome of a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Job {
    /// Any program.
    pub(crate) fn program(args: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!(
            "{}.{}.",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let mut command = Command::new(args[0]);
        command
            .args(&args[1..])
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in [
            "GASNET_PSHM_NODES",
            "ARGONET_BOOT",
            "ARGONET_CONDUIT",
            "ARGONET_START_TIMEOUT",
            "ARGONET_JOINED",
        ] {
            command.env_remove(name);
        }
        Self { command, mark }
    }

    /// A rank program under the launcher; `options` as the launcher of `programs` takes them.
    pub(crate) fn launched(ranks: u32, options: &[&str], program: &[&str]) -> Self {
        let this = this_program();
        let program: Vec<&str> = [&[this.as_str(), "__rank"], program].concat();
        Self::launcher(&ranks.to_string(), options, &program)
    }

    /// Any program under the launcher.
    pub(crate) fn launcher(ranks: &str, options: &[&str], program: &[&str]) -> Self {
        let this = this_program();
        Self::program(
            &[
                &[this.as_str(), "__launch", ranks],
                options,
                &["--"],
                program,
            ]
            .concat(),
        )
    }

    /// A rank program that forks its ranks itself.
    pub(crate) fn self_started(ranks: &str, program: &[&str]) -> Self {
        let this = this_program();
        let job = Self::program(&[&[this.as_str(), "__rank"], program].concat());
        job.env("GASNET_PSHM_NODES", ranks)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Keeps the input open until [`Running::go`].
    pub(crate) fn with_input(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("start");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let errors = Arc::new(Mutex::new(String::new()));
        let so_far = Arc::clone(&errors);
        let err = thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(stderr.read_until(b'\n', &mut line), Ok(n) if n > 0) {
                let text = String::from_utf8_lossy(&line);
                so_far.lock().expect("text").push_str(&text);
                line.clear();
            }
            let all = so_far.lock().expect("text");
            all.clone()
        });
        Running {
            child,
            out,
            err,
            errors,
            seen: String::new(),
            mark: self.mark,
        }
    }

    /// Runs the job with `input` and checks that nothing is left of it.
    pub(crate) fn run_with(self, input: &[u8]) -> Outcome {
        let mut job = self.with_input().start();
        let _ = job.child.stdin.take().expect("piped").write_all(input);
        job.outcome()
    }

    /// Runs the job and checks that nothing is left of it.
    pub(crate) fn run(self) -> Outcome {
        self.start().outcome()
    }
}

/// A job under way.
pub(crate) struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    err: thread::JoinHandle<String>,
    /// Standard error so far.
    errors: Arc<Mutex<String>>,
    seen: String,
    mark: String,
}

impl Running {
    /// Reads the job's output until a line begins with `start`; the rest of that line.
    pub(crate) fn read_until(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.out.read_line(&mut line).expect("output"),
                0,
                "no \"{start}\" in {}",
                self.seen
            );
            self.seen.push_str(&line);
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_string();
            }
        }
    }

    /// Reads the job's output until there is a line with each of these beginnings, in any order.
    ///
    /// Returns the rest of the first one.
    pub(crate) fn read_until_all(&mut self, starts: &[&str]) -> String {
        for start in starts {
            if self.said(start).is_none() {
                self.read_until(start);
            }
        }
        self.said(starts[0]).expect("it was read")
    }

    /// The rest of the line of output so far with this beginning.
    fn said(&self, start: &str) -> Option<String> {
        let rest = self.seen.lines().find_map(|line| line.strip_prefix(start));
        rest.map(|rest| rest.trim().to_owned())
    }

    /// Waits until standard error has this; the rest of the line.
    pub(crate) fn wait_for_error(&self, what: &str) -> String {
        let mut rest = None;
        until(|| {
            let errors = self.errors.lock().expect("text");
            let after = errors
                .split_once(what)
                .and_then(|(_, after)| after.split_once('\n'));
            rest = after.map(|(line, _)| line.to_owned());
            rest.is_some()
        });
        rest.expect("it was found")
    }

    /// Whether this process of the job is stopped.
    pub(crate) fn is_stopped(&self, process: Pid) -> bool {
        let mut all = self.processes().into_iter();
        all.any(|p| pid(p.pid) == process && p.is_in_state("T"))
    }

    /// Of each process but the launcher that sleeps, whether it is a shell: the way to an agent
    /// that is not there yet.
    pub(crate) fn ways(&self) -> Vec<bool> {
        let others = self.processes().into_iter();
        let asleep = others.filter(|p| pid(p.pid) != self.pid() && p.is_in_state("S"));
        asleep.map(|p| p.is_called("sh")).collect()
    }

    /// Processes that have not ended, the launcher included.
    pub(crate) fn living(&self) -> usize {
        let all = self.processes().into_iter();
        all.filter(|p| !p.is_in_state("Z")).count()
    }

    /// The process ids that ranks have said so far (`wait`).
    pub(crate) fn rank_pid(&self, rank: u32) -> Pid {
        let line = self.said(&format!("pid {rank} "));
        let line = line.expect("the rank has said its pid");
        pid(line.parse().expect("a number"))
    }

    /// The process that the test started.
    pub(crate) fn pid(&self) -> Pid {
        pid(self.child.id())
    }

    pub(crate) fn kill(&self, pid: Pid, signal: Signal) {
        kill_process(pid, signal).expect("kill");
    }

    /// Whether this process of the job is alive and waits for a debugger or anything else.
    pub(crate) fn waits(&self, process: Pid) -> bool {
        self.processes().iter().any(|p| pid(p.pid) == process)
    }

    /// Whether this process of the job sleeps.
    pub(crate) fn sleeps(&self, process: Pid) -> bool {
        let mut all = self.processes().into_iter();
        all.any(|p| pid(p.pid) == process && p.is_in_state("S"))
    }

    /// Kills the processes that the job has left on purpose.
    pub(crate) fn end_remaining(&self) {
        for process in self.processes() {
            let _ = kill_process(pid(process.pid), Signal::KILL);
        }
    }

    /// Gives rank 0 a line to read.
    pub(crate) fn give_line(&mut self) {
        let mut input = self.child.stdin.take().expect("piped");
        let _ = input.write_all(b"go\n");
    }

    /// Gives rank 0 a line to read, and waits for the end.
    pub(crate) fn go(mut self) -> Outcome {
        self.give_line();
        self.outcome()
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        processes_with(&format!("{MARK}={}", self.mark))
    }

    /// Stops taking the job's output, and waits for its end.
    pub(crate) fn without_output(self) -> Outcome {
        let Self {
            mut child,
            out,
            err,
            seen,
            mark,
            ..
        } = self;
        drop(out);
        let status = child.wait().expect("wait");
        until(|| processes_with(&format!("{MARK}={mark}")).is_empty());
        Outcome {
            status,
            out: seen,
            err: err.join().expect("standard error"),
        }
    }

    /// Waits for the end and checks that no process is left.
    pub(crate) fn outcome(mut self) -> Outcome {
        let mut out = std::mem::take(&mut self.seen);
        self.out.read_to_string(&mut out).expect("output");
        let status = self.child.wait().expect("wait");
        until(|| self.processes().is_empty());
        Outcome {
            status,
            out,
            err: self.err.join().expect("standard error"),
        }
    }
}

impl Process {
    /// Whether it runs the program of this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.trim_end() == name
    }

    /// Whether its state is one of these letters.
    pub(crate) fn is_in_state(&self, letters: &str) -> bool {
        letters.contains(&self.state)
    }
}

impl Outcome {
    /// As [`says`](Self::says), for one that is looked at again.
    #[track_caller]
    pub(crate) fn says_too(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.err.contains(part), "no \"{part}\" in {self:#?}");
        }
    }

    /// Checks the exit code (128 + signal if killed).
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        let actual = self
            .status
            .code()
            .or_else(|| self.status.signal().map(|s| 128 + s));
        assert_eq!(actual, Some(code), "{self:#?}");
        self
    }

    /// Checks that standard error has each of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        self.says_too(parts);
        self
    }

    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.err, "", "{self:#?}");
        self
    }

    /// The lines of output, sorted.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.out.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// Checks that `lines` are the greetings of all ranks of one job.
#[track_caller]
pub(crate) fn check_hello(outcome: &Outcome, ranks: u32) {
    let lines = outcome.lines();
    assert_eq!(lines.len(), ranks as usize, "{outcome:#?}");
    let id = lines[0].rsplit(' ').next().expect("an identity");
    for rank in 0..ranks {
        let expected = format!("rank {rank} of {ranks} in {id}");
        assert!(
            lines.contains(&expected.as_str()),
            "no \"{expected}\" in {outcome:#?}"
        );
    }
}
