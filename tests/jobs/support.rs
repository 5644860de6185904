//! Starting jobs from tests, looking at their processes, and never waiting forever.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::built;

/// A test: its name and its function in the harness.
pub(crate) type Test = (&'static str, fn());

/// A program of a rank, with its name.
///
/// The world is made inside.
pub(crate) type Program = (&'static str, fn() -> Done);

/// Result of a rank's program.
pub(crate) type Done = Result<(), Box<dyn std::error::Error>>;

/// Names the program that a process runs as a rank.
pub(crate) const PROGRAM: &str = "ARGONET_TEST_PROGRAM";

/// The numbers of ranks that most tests run with.
pub(crate) const SIZES: [u32; 4] = [1, 2, 3, 8];

/// Tests of properties that hold in shared memory alone: writes to a rank that computes, how full
/// rings become, which rank finds a mistake first, ranks that leave a barrier at once before they
/// exit, and the settings of such a job.
const OF_MEMORY: [&str; 7] = [
    "exit_cases_of_one_thread",
    "exit_cases_of_many_threads",
    "exit_cases_by_the_state_of_other_ranks",
    "ordering_flood_into_a_rank_that_computes",
    "negotiated_cancels_until_the_ring_is_full",
    "team_collectives_a_long_call_against_a_short_one_names_both",
    "settings_are_printed_once",
];

/// The path between the ranks of all jobs; few tests depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// All share memory.
    Memory,
    /// Through this conduit, but for neighborhoods of so many ranks.
    Network(&'static str, u32),
}

impl Path {
    /// Names the path: "tcp 2" or "portals 1" for instance; "udp 1" is portals with every other
    /// rank over UDP, "portals4 1" portals over a library of Portals 4, "fabric 1" usnic over the
    /// provider `udp` of libfabric, "ofi 1" reliable messages over its provider `tcp;ofi_rxm`, "gni
    /// 1" mailboxes.
    const VARIABLE: &str = "ARGONET_TEST_PATH";

    /// As the environment of the tests says.
    pub(crate) fn of_this_run() -> Self {
        let Ok(text) = std::env::var(Self::VARIABLE) else {
            return Self::Memory;
        };
        let path = [
            "tcp", "portals4", "portals", "udp", "usnic", "fabric", "gni", "ofi",
        ]
        .into_iter()
        .find_map(|conduit| {
            let neighbors = text.strip_prefix(conduit)?.strip_prefix(' ')?;
            Some(Self::Network(conduit, neighbors.parse().ok()?))
        });
        path.unwrap_or_else(|| panic!("{} is {text:?}", Self::VARIABLE))
    }

    /// Whether a test says something of jobs whose ranks reach each other so.
    pub(crate) fn has(self, test: &str) -> bool {
        self == Self::Memory || !OF_MEMORY.contains(&test)
    }

    /// Whether jobs need libfabric.
    pub(crate) fn needs_libfabric(self) -> bool {
        matches!(self, Self::Network("fabric" | "ofi", _))
    }

    /// The ranks of so many that share memory with one.
    pub(crate) fn neighbors(self, rank: usize, ranks: usize) -> core::ops::Range<usize> {
        match self {
            Self::Memory => 0..ranks,
            Self::Network(_, most) => {
                let most = most as usize;
                let first = rank / most * most;
                first..(first + most).min(ranks)
            }
        }
    }

    /// Number of operations that a program waits for, one by one, if it would be `count` in memory:
    /// over a connection each takes both ranks' turns.
    pub(crate) fn many(self, count: u64) -> u64 {
        match self {
            Self::Memory => count,
            Self::Network(..) => count / 100,
        }
    }

    /// Whether a case is one of those of which there are a hundredth over a connection.
    pub(crate) fn has_turn(self, case: usize) -> bool {
        self == Self::Memory || case.is_multiple_of(19)
    }

    /// Between two looks at what other ranks write.
    ///
    /// In memory they need nothing of this rank for that.
    pub(crate) fn look_again<M: argonet::Threading>(self, world: &argonet::World<M>) {
        match self {
            Self::Memory => thread::yield_now(),
            Self::Network(..) => _ = world.poll().expect("polls"),
        }
    }

    fn give(self, command: &mut Command) {
        if let Self::Network(conduit, neighbors) = self {
            if ["udp", "portals4"].contains(&conduit) {
                command.env("ARGONET_PORTALS_INTERFACE", conduit);
                command.env("ARGONET_CONDUIT", "portals");
            } else if conduit == "fabric" {
                command.env("ARGONET_CONDUIT", "usnic");
                command.env("ARGONET_USNIC_NIC", "fabric");
                command.env("ARGONET_USNIC_PROVIDER", "udp");
            } else {
                command.env("ARGONET_OFI_PROVIDER", "tcp;ofi_rxm");
                command.env("ARGONET_CONDUIT", conduit);
            }
            command.env("GASNET_SUPERNODE_MAXSIZE", neighbors.to_string());
        }
    }
}

/// The part of the tests that is run: one in so many, from one on.
pub(crate) struct Part {
    turn: usize,
    of: usize,
}

impl Part {
    /// As the environment of the tests says, "1/4" for instance; else all.
    pub(crate) fn of_this_run() -> Self {
        const VARIABLE: &str = "ARGONET_TEST_PART";
        let text = std::env::var(VARIABLE).unwrap_or_else(|_| "0/1".into());
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(turn, of)| Some((turn.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((turn, of)) if turn < of => Self { turn, of },
            _ => panic!("{VARIABLE} is {text:?}"),
        }
    }

    pub(crate) fn has(&self, place: usize) -> bool {
        place % self.of == self.turn
    }
}

/// Time limit of a test.
///
/// A second is normal; this is for the slowest, busiest machine.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// How often something fails in tests that go on for long: 4 times, or as often as the environment
/// says.
pub(crate) fn faults() -> u32 {
    const VARIABLE: &str = "ARGONET_TEST_FAULTS";
    let text = std::env::var(VARIABLE).ok();
    text.map_or(4, |text| text.parse().expect(VARIABLE))
}

/// Marks all processes of one job.
const MARK: &str = "ARGONET_TEST_MARK";

/// Ends the whole test run, with a picture of the processes, when a test takes too long.
pub(crate) struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(name: &'static str) -> Self {
        let (alive, watch): (_, Receiver<()>) = channel();
        thread::spawn(move || {
            let limit = TEST_LIMIT + Duration::from_secs(4) * faults();
            if watch.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("test {name} took over {limit:?}; processes of this run:");
                for (pid, picture) in processes_with(&format!("{}.", std::process::id())) {
                    eprintln!("  {picture}");
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::process::exit(101);
            }
        });
        Self { _alive: alive }
    }
}

/// The live processes, zombies left out, whose mark begins with `mark`.
fn processes_with(mark: &str) -> Vec<(Pid, String)> {
    let mark = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = entry.file_name().to_string_lossy().parse::<i32>();
        let Some(pid) = pid.ok().and_then(Pid::from_raw) else {
            continue;
        };
        // A zombie has no environment left.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let marked = |entry: &[u8]| entry.starts_with(mark.as_bytes());
        if !environment.split(|&b| b == 0).any(marked) {
            continue;
        }
        let read = |file| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit(") ").next().and_then(|s| s.chars().next());
        if state.is_some_and(|state| !"ZX".contains(state)) {
            let picture = format!("{stat} waits in {}", read("wchan"));
            found.push((pid, picture));
        }
    }
    found
}

/// A job under test.
pub(crate) struct Job {
    ranks: u32,
    command: Command,
    mark: String,
}

/// A job that runs, for tests that talk to it.
pub(crate) struct Talk<'a> {
    /// The process that was started.
    pub(crate) pid: Pid,
    mark: &'a str,
    stderr: &'a mut dyn BufRead,
    /// Standard error so far, for a test that waits for something else.
    errors: String,
}

impl Talk<'_> {
    /// The next line on standard error; the test's watchdog bounds the wait.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stderr.read_line(&mut line).expect("standard error");
        let errors = &self.errors;
        assert!(read > 0, "the job has closed standard error:\n{errors}");
        self.errors += &line;
        line.trim_end().to_owned()
    }

    /// Reads up to a line that begins like this, and returns it.
    pub(crate) fn line_with(&mut self, begin: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(begin) {
                return line;
            }
        }
    }
}

impl Talk<'_> {
    /// The processes of the job that have this name, the oldest first.
    pub(crate) fn processes(&self, name: &str) -> Vec<Pid> {
        let name = format!(" ({name}) ");
        let mut all = processes_with(self.mark);
        all.retain(|(_, picture)| picture.contains(&name));
        all.sort_by_key(|(pid, _)| pid.as_raw_nonzero());
        all.into_iter().map(|(pid, _)| pid).collect()
    }
}

/// Outcome of a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    ranks: u32,
    status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Job {
    /// `program` on `ranks` ranks under `argonet run`.
    pub(crate) fn launched(ranks: u32, program: &str) -> Self {
        let mut command = Command::new(built::command());
        command.args(["run", "-n", &ranks.to_string()]).arg(this());
        Self::new(ranks, command, program)
    }

    /// As [`launched`](Self::launched), for a job that does not end by itself: the launcher ends
    /// it.
    pub(crate) fn launched_for(seconds: u32, ranks: u32, program: &str) -> Self {
        let mut command = Command::new(built::command());
        command.args(["run", "-n", &ranks.to_string()]);
        command
            .args(["--timeout", &seconds.to_string()])
            .arg(this());
        Self::new(ranks, command, program)
    }

    /// `program` on hosts such as `a:2,b:2`, by the conduit tcp.
    pub(crate) fn over(ranks: u32, hosts: &str, program: &str) -> Self {
        Self::over_conduit("tcp", ranks, hosts, program)
    }

    /// As [`over`](Self::over), by this conduit.
    pub(crate) fn over_conduit(conduit: &str, ranks: u32, hosts: &str, program: &str) -> Self {
        let mut command = Command::new(built::command());
        command.args(["run", "-n", &ranks.to_string(), "-H", hosts]);
        command.args(["--conduit", conduit]).arg(this());
        Self::new(ranks, command, program)
    }

    /// As [`launched`](Self::launched), through a shell script; its `$0` is this program.
    pub(crate) fn wrapped(ranks: u32, script: &str, program: &str) -> Self {
        let mut command = Command::new(built::command());
        command.args(["run", "-n", &ranks.to_string(), "sh", "-c", script]);
        command.arg(this());
        Self::new(ranks, command, program)
    }

    /// `program` as a process that makes its other ranks itself.
    pub(crate) fn self_started(ranks: u32, program: &str) -> Self {
        let mut command = Command::new(this());
        command.env("GASNET_PSHM_NODES", ranks.to_string());
        Self::new(ranks, command, program)
    }

    /// `program` as a process whose arguments say how many ranks it is to start, and what these are
    /// given.
    ///
    /// Its environment makes it use them so.
    pub(crate) fn spreading(ranks: u32, arguments: &[&str], program: &str) -> Self {
        let mut command = Command::new(this());
        command.args(arguments);
        Self::new(ranks, command, program)
    }

    /// `program` on `ranks` ranks that another launcher starts; `command` ends where its program
    /// belongs.
    pub(crate) fn under(ranks: u32, mut command: Command, program: &str) -> Self {
        command.arg(this());
        Self::new(ranks, command, program)
    }

    fn new(ranks: u32, mut command: Command, program: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{count}.", std::process::id());
        command
            .env(MARK, &mark)
            .env(PROGRAM, program)
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in [
            "ARGONET_BOOT",
            "ARGONET_CONDUIT",
            "ARGONET_SEGMENT",
            "GASNET_MAX_SEGSIZE",
        ] {
            command.env_remove(name);
        }
        Path::of_this_run().give(&mut command);
        Self {
            ranks,
            command,
            mark,
        }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the job to its end and checks that no process is left of it.
    pub(crate) fn run(self) -> Outcome {
        self.run_with(|_| {})
    }

    /// As [`run`](Self::run); `talk` comes first; the outcome lacks the lines that it reads.
    ///
    /// Rank 0's standard input ends with it.
    pub(crate) fn run_with(mut self, talk: impl FnOnce(&mut Talk<'_>)) -> Outcome {
        let mut child = self.command.stdin(Stdio::piped()).spawn().expect("start");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        talk(&mut Talk {
            pid: Pid::from_child(&child),
            mark: &self.mark,
            stderr: &mut stderr,
            errors: String::new(),
        });
        drop(child.stdin.take());
        let err = thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let mut out = String::new();
        let mut stdout = child.stdout.take().expect("piped");
        stdout.read_to_string(&mut out).expect("output");
        let status = child.wait().expect("wait");
        // A killed process is gone only when the kernel has taken it down; the watchdog bounds the
        // wait.
        while !processes_with(&self.mark).is_empty() {
            thread::yield_now();
        }
        Outcome {
            ranks: self.ranks,
            status,
            out,
            err: err.join().expect("standard error"),
        }
    }
}

/// This program.
fn this() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

/// Runs `program` with each number of ranks, by the launcher and, once, by itself; all must end
/// well and say nothing.
pub(crate) fn each(sizes: &[u32], program: &str) {
    for &ranks in sizes {
        Job::launched(ranks, program).run().well();
    }
    Job::self_started(2, program).run().well();
}

impl Outcome {
    /// The job ended well: exit code 0, each rank at its end, nothing on standard error.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code(), Some(0), "{self:#?}");
        assert_eq!(self.err, "", "{self:#?}");
        let ended = self.out.lines().filter(|line| *line == ENDED).count();
        assert_eq!(ended, self.ranks as usize, "{self:#?}");
        self
    }

    /// The job ended well: exit code 0, each rank at its end, anything on standard error.
    #[track_caller]
    pub(crate) fn ended_well(self) {
        assert_eq!(self.code(), Some(0), "{self:#?}");
        let quiet = Self {
            err: String::new(),
            ..self
        };
        quiet.well();
    }

    /// The job failed, and standard error has each of these.
    #[track_caller]
    pub(crate) fn failed(self, parts: &[&str]) -> Self {
        assert_ne!(self.code(), Some(0), "{self:#?}");
        self.says(parts)
    }

    /// Standard error has each of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "no \"{part}\" in {self:#?}");
        }
        self
    }

    /// Exit code, 128 + signal if killed.
    pub(crate) fn code(&self) -> Option<i32> {
        let killed = || self.status.signal().map(|s| 128 + s);
        self.status.code().or_else(killed)
    }
}

/// Output of each rank when its program has ended well.
pub(crate) const ENDED: &str = "rank ended well";

/// Runs a rank's program; the exit code is 3 where it returns an error.
pub(crate) fn run_rank(program: fn() -> Done) -> i32 {
    match program() {
        Ok(()) => {
            println!("{ENDED}");
            0
        }
        Err(error) => {
            // In one write, so that the lines of several ranks stay whole.
            let line = format!("{error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            3
        }
    }
}

/// A small generator (splitmix64): the same numbers in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Bytes that look random and are the same everywhere; payloads are pieces of them.
pub(crate) struct Pattern(Vec<u8>);

impl Pattern {
    /// Pieces may be as long as this.
    pub(crate) const LONGEST: usize = 1 << 16;

    pub(crate) fn new() -> Self {
        let mut random = Random::new(7);
        let words = (0..2 * Self::LONGEST / 8).flat_map(|_| random.next().to_le_bytes());
        Self(words.collect())
    }

    /// The payload of `len` bytes that is named by `key`.
    pub(crate) fn piece(&self, key: u64, len: usize) -> &[u8] {
        let start = Random::new(key).below(Self::LONGEST);
        &self.0[start..start + len]
    }
}
