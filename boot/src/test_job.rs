//! Tests whose function runs on all ranks of a job, under any test harness.
//!
//! A harness calls a test on a second thread of its process, which can therefore neither fork ranks
//! nor be their launcher. So the process executes its own program anew ([`TestJob::run`]), and that
//! process becomes the launcher before `main` ([`begin_process`]). It starts the ranks, which are
//! the same program again: the harness in each chooses the one test by its name, and the test finds
//! that it is a rank ([`rank_of_test`]).
//!
//! [`VARIABLE`] says which test a process is started for. All of them share a memory file, the
//! *results*. A rank records there that it has joined inside the test, that it has passed, or why
//! it aborts. The test passes only if every rank has passed, so that neither a harness that chose
//! no test nor a rank that has left is taken for one that passed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use argonet_base::JobRank;
use argonet_settings::{CONDUIT, SUPERNODE_MAXSIZE, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, fcntl_setfl, memfd_create, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::stdio::dup2_stdout;

use crate::attach::BOOT_VARIABLE;
use crate::error::Missing;
use crate::exit::signal_name;
use crate::hosts::HostOptions;
use crate::launch::{LaunchOptions, TIMEOUT_CODE, launch_test};
use crate::selflaunch::bear_closed_pipes;
use crate::sys;

/// Says that a process is the launcher or a rank of a test's job: the process of the harness, the
/// descriptor of the results, the number of ranks, the time limit in seconds, and the name of the
/// test.
const VARIABLE: &str = "ARGONET_TEST_JOB";

/// What the harness gives a launcher beyond the time limit, before it kills it.
const GRACE: Duration = Duration::from_secs(6);

/// The name of the file of results, by which a process knows its descriptor.
const RESULTS: &str = "argonet-test";

/// Ends a record.
const END: char = '\0';

/// What every message of the launcher begins with.
const LAUNCHER: &str = "argonet run: ";

/// A test that runs as a job.
#[derive(Debug, Clone, Copy)]
pub struct TestJob<'a> {
    /// Its name, as the harness has it.
    pub name: &'a str,
    /// The number of ranks.
    pub ranks: u32,
    /// The conduit; `None` leaves it to `ARGONET_CONDUIT`, else the default.
    pub conduit: Option<&'a str>,
    /// The most ranks that share memory; `None` leaves it to `GASNET_SUPERNODE_MAXSIZE`.
    pub neighborhood_size: Option<u32>,
    /// Variables of the ranks' environment, with their values.
    pub variables: &'a [(&'a str, &'a str)],
    /// The job is ended after this time.
    pub timeout: Duration,
}

impl TestJob<'_> {
    /// Runs the test as a job and prints its output, which a harness captures.
    ///
    /// Call it on the thread of the test. Blocks until the job has ended, which is at the latest
    /// soon after its time limit.
    ///
    /// # Errors
    /// Why the test has failed: the first rank that aborted and its reason, else the launcher's
    /// reason.
    pub fn run(&self) -> Result<(), String> {
        let failed = |what: &str, error: io::Error| format!("{what} the test: {error}");
        let (mut launcher, output, results) =
            self.start().map_err(|e| failed("starting the job of", e))?;
        let deadline = Instant::now().checked_add(self.timeout.saturating_add(GRACE));
        let (reason, has_ended) = print_lines(output, deadline);
        if !has_ended {
            // It does not answer; its ranks end with it.
            let _ = launcher.kill();
        }
        let status = launcher
            .wait()
            .map_err(|e| failed("waiting for the job of", e))?;
        if !has_ended {
            let (grace, limit) = (GRACE.as_secs(), self.timeout.as_secs());
            return Err(format!(
                "the launcher did not end the job within {grace} s after its `timeout` of {limit} \
                 s, and was killed with its ranks"
            ));
        }
        let records = read(results).map_err(|e| failed("reading the results of", e))?;
        self.judge(status, &reason, &records)
    }

    /// Whether each rank has joined inside the test and come to its end.
    fn all_passed(&self, records: &[Record]) -> Result<(), String> {
        let missing = |record: fn(JobRank) -> Record| {
            let ranks = (0..self.ranks).map(JobRank);
            ranks
                .filter(|&rank| !records.contains(&record(rank)))
                .collect::<Vec<_>>()
        };
        let absent = missing(Record::Joined);
        if !absent.is_empty() {
            let (absent, all, name) = (absent.len(), self.ranks, self.name);
            return Err(format!(
                "{absent} of {all} ranks did not run the test `{name}`: the test harness must \
                 accept `--exact {name} --include-ignored --nocapture --test-threads=1`"
            ));
        }
        let left = missing(Record::Passed);
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{} left the job with code 0 before the end of the test",
                Missing(left)
            )),
        }
    }

    fn start(&self) -> io::Result<(std::process::Child, OwnedFd, OwnedFd)> {
        let results = make_results()?;
        let (output, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", self.name, "--include-ignored"]);
        command.args(["--nocapture", "--test-threads=1"]);
        command.envs(self.variables.iter().copied());
        if let Some(conduit) = self.conduit {
            command.env(CONDUIT.name(), conduit);
        }
        if let Some(most) = self.neighborhood_size {
            command.env(SUPERNODE_MAXSIZE.name(), most.to_string());
        }
        // Where this process is a rank itself.
        command.env_remove(BOOT_VARIABLE);
        let fd = results.as_raw_fd();
        let (ranks, limit, name) = (self.ranks, self.timeout.as_secs(), self.name);
        let harness = std::process::id();
        let value = format!("{harness} {fd} {ranks} {limit} {name}");
        command.env(VARIABLE, value);
        command.stdin(Stdio::null());
        command.stdout(write.try_clone()?).stderr(write);
        let this = rustix::process::getpid();
        sys::before_exec(&mut command, move || {
            // The harness, or the runner of it, may be killed: the ranks end with their launcher.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(this) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            sys::keep_over_exec(fd)
        });
        // The command has the pipe's end for writing, and is dropped with it.
        Ok((command.spawn()?, output, results))
    }

    /// Whether the job was one in which all ranks ran the test, and it passed.
    fn judge(&self, status: ExitStatus, reason: &str, records: &[Record]) -> Result<(), String> {
        let failure = records.iter().find_map(|record| match record {
            Record::Failed(text) => Some(text.as_str()),
            Record::Joined(_) | Record::Passed(_) => None,
        });
        let how = match (status.code(), failure) {
            (Some(0), None) => return self.all_passed(records),
            (Some(code), _) if code == i32::from(TIMEOUT_CODE) => "ended by its time limit".into(),
            (Some(code), _) => format!("ended with code {code}"),
            (None, _) => {
                use std::os::unix::process::ExitStatusExt;
                let signal = status.signal().unwrap_or(0);
                format!("lost its launcher, which {} killed", signal_name(signal))
            }
        };
        let mut text = String::from("the job of ");
        let ranks = self.ranks;
        // Writing to a string cannot fail.
        let _ = match (ranks, self.conduit) {
            (1, None) => write!(text, "1 rank"),
            (_, None) => write!(text, "{ranks} ranks"),
            (1, Some(conduit)) => write!(text, "1 rank over {conduit}"),
            (_, Some(conduit)) => write!(text, "{ranks} ranks over {conduit}"),
        };
        let _ = write!(text, " {how}");
        if let Some(why) = failure.or(Some(reason).filter(|reason| !reason.is_empty())) {
            let _ = write!(text, ": {why}");
        }
        Err(text)
    }
}

/// Prints what the job writes, line by line, to its end or the deadline.
///
/// Gives the launcher's last message, and whether the end has come.
fn print_lines(output: OwnedFd, deadline: Option<Instant>) -> (String, bool) {
    let (mut left, mut reason) = (Vec::new(), String::new());
    let mut bytes = [0; 1 << 12];
    let has_ended = loop {
        let mut fds = [PollFd::new(&output, PollFlags::IN)];
        let time = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let limit = time.and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => break false,
            Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => {}
        }
        let count = match rustix::io::read(&output, &mut bytes[..]) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(_) => 0,
        };
        for piece in bytes[..count].split_inclusive(|byte| *byte == b'\n') {
            left.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                print_line(&left, &mut reason);
                left.clear();
            }
        }
        if count == 0 {
            break true;
        }
    };
    print_line(&left, &mut reason);
    (reason, has_ended)
}

/// Prints a line; remembers it if it is a message of the launcher, but not the heading of a board.
fn print_line(line: &[u8], reason: &mut String) {
    let text = String::from_utf8_lossy(line);
    let said = text.strip_prefix(LAUNCHER).map(str::trim_end);
    if let Some(said) = said.filter(|said| !said.ends_with(':')) {
        said.clone_into(reason);
    }
    print!("{text}");
}

/// What a rank writes to the results.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Record {
    /// It has joined its job, in the test.
    Joined(JobRank),
    /// It has come to the end of the test.
    Passed(JobRank),
    /// It aborts the job, or cannot join it.
    Failed(String),
}

impl Record {
    fn parse(text: &str) -> Option<Self> {
        let rank_of = |text: &str| text.parse().ok().map(JobRank);
        match text.split_once(' ')? {
            ("joined", rank) => rank_of(rank).map(Self::Joined),
            ("passed", rank) => rank_of(rank).map(Self::Passed),
            ("failed", text) => Some(Self::Failed(text.to_owned())),
            _ => None,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Joined(rank) => format!("joined {rank}{END}"),
            Self::Passed(rank) => format!("passed {rank}{END}"),
            Self::Failed(text) => format!("failed {}{END}", text.replace(END, " ")),
        }
    }

    /// Writes it in one piece, behind those of other ranks.
    fn write(&self, results: BorrowedFd<'_>) {
        // There is nowhere left to report that this fails; the job then fails for a missing record.
        let _ = rustix::io::write(results, self.to_text().as_bytes());
    }
}

/// An empty file of results.
fn make_results() -> io::Result<OwnedFd> {
    let results = memfd_create(RESULTS, MemfdFlags::CLOEXEC)?;
    // At the end of a file the kernel finds the place and writes under one lock, so that concurrent
    // records do not overwrite each other.
    fcntl_setfl(&results, OFlags::APPEND)?;
    Ok(results)
}

/// The records, in the order in which they were written.
fn read(results: OwnedFd) -> io::Result<Vec<Record>> {
    let mut results = File::from(results);
    let mut bytes = Vec::new();
    results.rewind()?;
    results.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.split(END).filter_map(Record::parse).collect())
}

/// What [`VARIABLE`] says.
struct Description {
    harness: i32,
    results: RawFd,
    ranks: u32,
    timeout: Duration,
    name: String,
}

impl Description {
    fn parse(text: &str) -> Option<Self> {
        let mut pieces = text.splitn(5, ' ');
        let mut next = || pieces.next();
        Some(Self {
            harness: next()?.parse().ok()?,
            results: next()?.parse().ok()?,
            ranks: next()?.parse().ok()?,
            timeout: Duration::from_secs(next()?.parse().ok()?),
            name: next()?.to_owned(),
        })
    }

    /// The results, if the descriptor is one.
    fn results(&self) -> Option<BorrowedFd<'static>> {
        let fd = sys::examine_fd(self.results)?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.results)).ok()?;
        let are_results = path.to_str()?.starts_with(&format!("/memfd:{RESULTS}"));
        are_results.then_some(fd)
    }
}

/// A process that is a rank of a test's job.
#[derive(Debug)]
pub struct RankOfTest {
    name: String,
    results: OwnedFd,
    /// Standard output, while the harness writes to none.
    output: OwnedFd,
}

/// The rank that this process is.
static THIS: OnceLock<RankOfTest> = OnceLock::new();

/// Becomes the launcher of a test's job or prepares a rank of it, if this process was started for
/// that.
///
/// As a launcher it does not return. For functions that run before `main`, while there is one
/// thread.
pub fn begin_process() {
    let Some(value) = std::env::var_os(VARIABLE).filter(|_| THIS.get().is_none()) else {
        return;
    };
    let is_rank = std::env::var_os(BOOT_VARIABLE).is_some();
    let description = value.to_str().and_then(Description::parse);
    let found = description.and_then(|description| Some((description.results()?, description)));
    let parent = getppid().map_or(0, |pid| pid.as_raw_pid());
    let Some((results, description)) = found.filter(|(_, d)| is_rank || d.harness == parent) else {
        // Such a process would become a harness, and start a job whose ranks do the same.
        let value = value.to_string_lossy();
        if is_rank || value.starts_with(&format!("{parent} ")) {
            refuse(&format!(
                "{VARIABLE} is \"{value}\", which describes no test's job; unset it"
            ));
        }
        // It was inherited from a launcher by a program of another kind, or is anyone's.
        sys::remove_variable(VARIABLE);
        return;
    };
    if !is_rank {
        std::process::exit(launcher(&description).into())
    }
    sys::remove_variable(VARIABLE);
    match hide_output(results, description.name) {
        Ok(rank) => _ = THIS.set(rank),
        Err(error) => {
            let why = format!("preparing a rank of a test: {error}");
            Record::Failed(why.clone()).write(results);
            refuse(&why);
        }
    }
}

/// Ends a process of a test's job that cannot be what it is to be.
fn refuse(why: &str) -> ! {
    sys::say(&format!("argonet: {why}"));
    std::process::exit(1)
}

fn launcher(description: &Description) -> u8 {
    bear_closed_pipes();
    let started = Settings::from_environment().map_err(|error| error.to_string());
    let code = started.and_then(|settings| {
        settings.keep_quiet();
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let options = LaunchOptions {
            ranks: description.ranks.into(),
            program: program.into(),
            args: std::env::args_os().skip(1).collect(),
            conduit: None,
            bind: false,
            tag_output: true,
            timeout: Some(description.timeout),
            on_rank_lost: None,
            hosts: HostOptions::default(),
        };
        let launched = launch_test(&options, &settings);
        launched.map_err(|error| error.to_string())
    });
    code.unwrap_or_else(|error| {
        sys::say(&format!("{LAUNCHER}{error}"));
        1
    })
}

/// Takes standard output from the harness, whose own lines each rank would repeat.
fn hide_output(results: BorrowedFd<'_>, name: String) -> io::Result<RankOfTest> {
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    // Programs that the rank starts have no business with it.
    rustix::io::fcntl_setfd(results, rustix::io::FdFlags::CLOEXEC)?;
    let none = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdout(&none)?;
    Ok(RankOfTest {
        name,
        results: results.try_clone_to_owned()?,
        output,
    })
}

/// The rank that this process is, if it was started for a test's job.
pub fn rank_of_test() -> Option<&'static RankOfTest> {
    THIS.get()
}

impl RankOfTest {
    /// The name of the test.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the test standard output, which the harness had not.
    ///
    /// # Errors
    /// The system's.
    pub fn restore_output(&self) -> io::Result<()> {
        io::stdout().flush()?;
        Ok(dup2_stdout(&self.output)?)
    }

    /// The test has joined its job as `rank`.
    pub fn joined(&self, rank: JobRank) {
        Record::Joined(rank).write(self.results.as_fd());
    }

    /// The test has come to its end as `rank`, which has left its job.
    pub fn passed(&self, rank: JobRank) {
        Record::Passed(rank).write(self.results.as_fd());
    }

    /// The test could not join its job, or its rank aborts it.
    pub fn failed(&self, why: &str) {
        Record::Failed(why.to_owned()).write(self.results.as_fd());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const JOB: TestJob<'_> = TestJob {
        name: "a::test",
        ranks: 2,
        conduit: Some("tcp"),
        neighborhood_size: None,
        variables: &[],
        timeout: Duration::from_secs(1),
    };

    fn judge(code: i32, reason: &str, records: &[Record]) -> Result<(), String> {
        JOB.judge(ExitStatus::from_raw(code << 8), reason, records)
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = [
            Record::Joined(JobRank(7)),
            Record::Failed("rank 7: two\nlines, and \u{fc}".into()),
            Record::Passed(JobRank(0)),
        ];
        let results = make_results().unwrap();
        records
            .iter()
            .for_each(|record| record.write(results.as_fd()));
        assert_eq!(read(results).unwrap(), records);
        // A text cannot forge a record.
        let forged = Record::Failed("x\0joined 3".into()).to_text();
        assert_eq!(forged, "failed x joined 3\0");
    }

    #[test]
    fn a_test_passes_that_all_ranks_have_run() {
        let [zero, one] = [0, 1].map(|rank| Record::Joined(JobRank(rank)));
        let [end, other_end] = [0, 1].map(|rank| Record::Passed(JobRank(rank)));
        let all = [one.clone(), zero.clone(), other_end, end];
        assert_eq!(judge(0, "", &all), Ok(()));
        let text = judge(0, "", &all[..3]).unwrap_err();
        assert!(
            text.starts_with("rank 0 left the job with code 0"),
            "{text}"
        );
        let text = judge(0, "", std::slice::from_ref(&one)).unwrap_err();
        assert!(text.starts_with("1 of 2 ranks did not run"), "{text}");
        assert!(text.contains("--exact a::test"), "{text}");
        // A rank that was counted twice is no other rank.
        assert!(judge(0, "", &[one.clone(), one.clone()]).is_err());
        let failed = |text: &str| Record::Failed(text.into());
        let records = [zero, failed("rank 0: first"), one, failed("rank 1: second")];
        assert_eq!(
            judge(101, "rank 1 was ended", &records),
            Err("the job of 2 ranks over tcp ended with code 101: rank 0: first".into())
        );
        // A program may make the code 0.
        assert!(judge(0, "", &records).is_err());
    }

    #[test]
    fn the_launcher_has_the_reason_where_no_rank_has() {
        let over = "the job of 2 ranks over tcp";
        assert_eq!(
            judge(124, "ranks 0, 1 still ran", &[]),
            Err(format!(
                "{over} ended by its time limit: ranks 0, 1 still ran"
            ))
        );
        assert_eq!(judge(3, "", &[]), Err(format!("{over} ended with code 3")));
        let killed = JOB.judge(ExitStatus::from_raw(9), "", &[]);
        assert_eq!(
            killed,
            Err(format!("{over} lost its launcher, which SIGKILL killed"))
        );
    }

    #[test]
    fn a_description_of_no_report_is_not_believed() {
        for bad in [
            "",
            "x",
            "9",
            "9 3 2",
            "9 3 2 5",
            "9 3 -2 5 t",
            "9 y 2 5 t",
            "9 3 2 5.5 t",
        ] {
            assert!(Description::parse(bad).is_none(), "{bad}");
        }
        let good = Description::parse("9 1 2 5 t with spaces").unwrap();
        assert_eq!((good.harness, good.ranks), (9, 2));
        assert_eq!(good.name, "t with spaces");
        // Standard output is something else.
        assert!(good.results().is_none());
    }
}
