//! One run of one program.

use super::{DEFAULT_VARIABLE, Options};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The exit code by which test programs say that they cannot run here (automake's convention).
const SKIP_CODE: i32 = 77;
/// So does a line of output that begins with this word, from a program that ends well.
const SKIP_WORD: &str = "SKIP";
/// Signals of a crash: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS.
///
/// A launcher reports them of a rank as a code of 128 more.
const CRASHES: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
/// A program that writes more is ended: its output fills the disk.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;
/// Output that is looked at, from its end.
const TAIL_BYTES: u64 = 64 << 10;
/// How long processes that outlive the program may take to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// The variable that marks the processes of a run, in any group or session that they move to.
const MARK: &str = "ARGONET_CONFORMANCE_RUN";

/// The outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It ended with code 0.
    Passed,
    /// With another code, or it broke a rule of ours.
    Failed,
    /// It said that it cannot run here.
    Skipped,
    /// It was killed when its time was over.
    TimedOut,
    /// A signal ended it, or one of its ranks.
    Crashed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Skipped => "skipped",
            Verdict::TimedOut => "timed out",
            Verdict::Crashed => "crashed",
        })
    }
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// How it ended, in a few words; empty if it passed.
    pub(crate) how: String,
    pub(crate) took: Duration,
    /// The last lines of its output.
    pub(crate) tail: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if !self.how.is_empty() {
            write!(f, " ({})", self.how)?;
        }
        write!(f, ", {:.1} s", self.took.as_secs_f64())
    }
}

/// The command that runs a program on so many ranks.
pub(crate) fn command(program: &Path, ranks: u32, options: &Options) -> Command {
    let filled = |text: &str| text.replace("{n}", &ranks.to_string());
    let launcher = options.launcher.as_deref().map(filled).unwrap_or_default();
    let mut words = launcher.split_whitespace();
    let mut command = match words.next() {
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    };
    let default = [DEFAULT_VARIABLE.to_owned()];
    let variables: &[String] = if options.launcher.is_none() && options.variables.is_empty() {
        &default
    } else {
        &options.variables
    };
    for variable in variables {
        if let Some((name, value)) = variable.split_once('=') {
            command.env(name, filled(value));
        }
    }
    command
}

/// Runs a command in a process group of its own, its output going to `log`.
///
/// Ends it after `limit`, and all that it started with it.
pub(crate) fn run(command: &mut Command, limit: Duration, log: &Path) -> io::Result<Outcome> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}-{number}", std::process::id());
    let marked_by = format!("{MARK}={mark}");
    let output = File::create(log)?;
    let begun = Instant::now();
    let child = command
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            return Ok(Outcome {
                verdict: Verdict::Failed,
                how: format!("cannot be started: {error}"),
                took: Duration::ZERO,
                tail: String::new(),
            });
        }
    };
    let end = wait(&mut child, begun + limit, log)?;
    let took = begun.elapsed();
    let left = match &end {
        End::Itself(_) => await_end(&marked_by, Instant::now() + GRACE),
        End::TooLate | End::TooMuch => Vec::new(),
    };
    // Also after an orderly end: any process that is left is ended before the next run.
    end_group(&mut child, &marked_by)?;
    let tail = tail(log)?;
    let (mut verdict, mut how) = classify(&end, &tail);
    if !left.is_empty() && matches!(verdict, Verdict::Passed | Verdict::Skipped) {
        verdict = Verdict::Failed;
        how = format!("left {} processes behind", left.len());
    }
    Ok(Outcome {
        verdict,
        how,
        took,
        tail,
    })
}

#[derive(Debug)]
enum End {
    Itself(ExitStatus),
    TooLate,
    TooMuch,
}

fn wait(child: &mut Child, until: Instant, log: &Path) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Itself(status));
        }
        if Instant::now() >= until {
            return Ok(End::TooLate);
        }
        if log.metadata()?.len() > MOST_OUTPUT_BYTES {
            return Ok(End::TooMuch);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn classify(end: &End, output: &str) -> (Verdict, String) {
    let status = match end {
        End::TooLate => return (Verdict::TimedOut, String::new()),
        End::TooMuch => return (Verdict::Failed, "too much output".to_owned()),
        End::Itself(status) => status,
    };
    if let Some(signal) = status.signal() {
        return (Verdict::Crashed, format!("signal {signal}"));
    }
    match status.code().unwrap_or(-1) {
        0 => match output.lines().find(|line| line.starts_with(SKIP_WORD)) {
            Some(line) => (Verdict::Skipped, line.trim().to_owned()),
            None => (Verdict::Passed, String::new()),
        },
        SKIP_CODE => (Verdict::Skipped, format!("code {SKIP_CODE}")),
        code if CRASHES.contains(&(code - 128)) => {
            (Verdict::Crashed, format!("signal {} of a rank", code - 128))
        }
        code => (Verdict::Failed, format!("code {code}")),
    }
}

/// The end of a program's output.
fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The processes that have not ended and have this variable, `NAME=VALUE`.
///
/// A process that is about to become another program has none for a moment: no process is left if
/// none is found twice.
pub(crate) fn marked(by: &str) -> Vec<u32> {
    let found = seen_marked(by);
    if !found.is_empty() {
        return found;
    }
    std::thread::sleep(Duration::from_millis(5));
    seen_marked(by)
}

fn seen_marked(by: &str) -> Vec<u32> {
    let of = |pid: u32| {
        // Empty for those that have ended; unreadable for other users' processes.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == by.as_bytes())
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Ok(pid) = entry.file_name().to_string_lossy().parse()
            && of(pid)
        {
            found.push(pid);
        }
    }
    found
}

/// Waits until no process of the run is left, or the time is over; returns those that are.
fn await_end(mark: &str, until: Instant) -> Vec<u32> {
    loop {
        let left = marked(mark);
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the program's process group, and the processes of the run that have left it.
fn end_group(child: &mut Child, mark: &str) -> io::Result<()> {
    let kill = |target: String| {
        Command::new("kill")
            .args(["-KILL", "--", &target])
            .stderr(Stdio::null())
            .status()
    };
    if child.try_wait()?.is_none() {
        kill(format!("-{}", child.id()))?;
        child.wait()?;
    }
    // A killed process cannot start another, but may have done so just before.
    let until = Instant::now() + GRACE;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(io::Error::other(format!(
                "processes {left:?} cannot be ended"
            )));
        }
        for pid in left {
            kill(pid.to_string())?;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
