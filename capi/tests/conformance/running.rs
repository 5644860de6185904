//! Programs that check what they call, with each number of ranks.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::chosen::Chosen;
use crate::launcher::launcher;
use crate::network::Network;

const PROGRAMS: &[&str] = &[
    "addresses",
    "client",
    "client_null_argv",
    "constants",
    "formats",
    "debug_malloc",
    "queries",
    "progress_threads",
    "several_units",
    "once",
    "handlers",
    "handlers_late",
    "token",
    "am_short",
    "am_medium",
    "am_long",
    "am_limits",
    "am_pressure",
    "negotiated",
    "ratomic",
    "ratomic_bound",
    "rma",
    "rma_visible",
    "signals",
    "seg_flags",
    "seg_offset",
    "lc_copy",
    "events",
    "nbi",
    "implicit_now",
    "hsl",
    "barrier",
    "barrier_order",
    "broadcast",
    "coll_reduce",
    "coll_legacy",
    "coll_beyond",
    "segment_attach",
    "segment_create",
    "segment_bind",
    "bound_long",
    "bound_many",
    "bound_query",
    "pairs",
    "vis",
    "vis_endpoints",
    "endpoints",
    "endpoint_am",
    "team_split",
    "team_create",
    "team_traffic",
    "team_rounds",
    "wait_memory",
    "waitmode",
    "legacy_start",
    "legacy_handlers",
    "legacy_am",
    "legacy_replies",
    "legacy_rma",
    "legacy_bound",
    "legacy_vis",
    "legacy_sync",
    "legacy_barrier",
    "legacy_mixed",
    "legacy_mixed_ex",
    "traced",
];
const RANKS: [u32; 5] = [1, 2, 3, 4, 8];
const WAYS: [Way; 19] = [
    Way::RELEASE,
    Way::DEBUG,
    Way::CLANG,
    Way::CPP20,
    Way::C23_DEBUG,
    Way::SERIAL,
    Way::LAUNCHED,
    Way::LAUNCHED_DEBUG,
    Way::TCP,
    Way::TCP_PAR_DEBUG,
    Way::TCP_PAIRS,
    Way::TCP_PAIRS_LAUNCHED,
    Way::PORTALS,
    Way::PORTALS_PAR_DEBUG,
    Way::PORTALS_PAIRS_LAUNCHED,
    Way::USNIC,
    Way::USNIC_PAR_DEBUG,
    Way::RAILS,
    Way::RAILS_PAR_DEBUG,
];

/// Programs that are about segment configurations, or mean the same in them, with their arguments.
const EVERYTHING: [(&str, &[&str]); 9] = [
    ("segment_everything", &[]),
    ("segment_everything", &["messages"]),
    ("segment_bind", &[]),
    ("endpoints", &[]),
    ("constants", &[]),
    ("handlers", &[]),
    ("am_short", &[]),
    ("hsl", &[]),
    ("ratomic_bound", &[]),
];
const LARGE: [(&str, &[&str]); 4] = [
    ("segment_large", &[]),
    ("segment_attach", &[]),
    ("rma", &[]),
    ("am_long", &[]),
];
const FEW_RANKS: [u32; 3] = [1, 2, 4];

/// Programs in other segment configurations.
fn segments(chosen: Chosen) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (way, programs) in [
        (Way::EVERYTHING, EVERYTHING.as_slice()),
        (Way::EVERYTHING_DEBUG, &EVERYTHING[..4]),
        (Way::LARGE, &LARGE),
    ] {
        for (at, &(name, arguments)) in programs.iter().enumerate() {
            let program = Program::new(way, name);
            for (network_at, network) in Network::ALL.into_iter().enumerate() {
                let program = program.over(network);
                for (ranks_at, ranks) in FEW_RANKS.into_iter().enumerate() {
                    let network_at = (network_at, Network::ALL.len());
                    if !chosen.has(at, network_at, (ranks_at, FEW_RANKS.len())) {
                        continue;
                    }
                    let program = Arc::clone(&program);
                    let how = format!("{}{}", way.name, network.suffix());
                    let title = format!("{name} {arguments:?}, {ranks} ranks ({how})");
                    let test = move || passes_with(&program, name, ranks, arguments);
                    trials.push(way.trial(title, test));
                }
            }
        }
    }
    trials
}

pub(crate) fn trials(chosen: Chosen) -> Vec<Trial> {
    let mut trials = segments(chosen);
    for (way_at, way) in WAYS.into_iter().enumerate() {
        for (at, &name) in PROGRAMS.iter().enumerate() {
            let program = Arc::new(Program::new(way, name));
            for (ranks_at, ranks) in RANKS.into_iter().enumerate() {
                if !chosen.has(at, (way_at, WAYS.len()), (ranks_at, RANKS.len())) {
                    continue;
                }
                let program = Arc::clone(&program);
                let title = format!("{name}, {ranks} ranks ({})", way.name);
                let test = move || passes(&program, name, ranks);
                trials.push(way.trial(title, test));
            }
        }
    }
    trials
}

fn passes(program: &Program, name: &str, ranks: u32) -> Result<(), Failed> {
    let arguments: &[&str] = match name {
        "client" => &["one", "two words", "--three=\"3\""],
        _ => &[],
    };
    passes_with(program, name, ranks, arguments)
}

fn passes_with(
    program: &Program,
    name: &str,
    ranks: u32,
    arguments: &[&str],
) -> Result<(), Failed> {
    let run = Run::new(program, ranks, arguments, 120)?;
    let last = format!("PASS {name}");
    if run.code() == 0 && run.out().lines().last() == Some(&last) {
        return Ok(());
    }
    Err(run.said().into())
}

/// The outcome of a run.
pub(crate) struct Run {
    output: Output,
    what: String,
}

impl Run {
    /// Runs a program as a job of so many ranks, for at most so many seconds.
    ///
    /// A process of the job that outlives it is an error.
    pub(crate) fn new(
        program: &Program,
        ranks: u32,
        arguments: &[&str],
        seconds: u32,
    ) -> Result<Self, Failed> {
        Self::with(program, ranks, arguments, seconds, &[])
    }

    /// As [`new`](Self::new), with further variables.
    pub(crate) fn with(
        program: &Program,
        ranks: u32,
        arguments: &[&str],
        seconds: u32,
        variables: &[(&str, &str)],
    ) -> Result<Self, Failed> {
        let to = Stdio::piped();
        Self::writing(to, program, ranks, arguments, seconds, variables)
    }

    /// As [`with`](Self::with), with another standard error.
    pub(crate) fn writing(
        to: Stdio,
        program: &Program,
        ranks: u32,
        arguments: &[&str],
        seconds: u32,
        variables: &[(&str, &str)],
    ) -> Result<Self, Failed> {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", &seconds.to_string()]);
        if program.way.launched {
            let ranks = ranks.to_string();
            command.arg(launcher()?).args(["run", "-n", &ranks]);
            command.env_remove(FORKED_RANKS);
        } else {
            command.env(FORKED_RANKS, ranks.to_string());
        }
        command.arg(program.path()?).args(arguments).stderr(to);
        let variables = program.way.network.variables().iter().chain(variables);
        let what = format!("{ranks} ranks, {arguments:?}");
        Self::of(command, variables.copied(), what)
    }

    /// A command that starts a job, with further variables.
    pub(crate) fn of<'a>(
        mut command: Command,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
        what: String,
    ) -> Result<Self, Failed> {
        command
            .env("GASNET_EXITTIMEOUT", EXIT_TIMEOUT_S)
            .stdin(Stdio::null());
        for name in [
            "GASNET_VERBOSEENV",
            "GASNET_BACKTRACE",
            "GASNET_FREEZE",
            "GASNET_FREEZE_ON_ERROR",
            "GASNET_CATCH_EXIT",
            "GASNET_NO_CATCH_SIGNAL",
        ] {
            command.env_remove(name);
        }
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{MARK}={}.{number}", std::process::id());
        command.envs(mark.split_once('='));
        command.envs(variables);
        let output = command.output()?;
        let left = left_over(&mark);
        let run = Self { output, what };
        if left.is_empty() {
            return Ok(run);
        }
        Err(format!("{left:?} is left over after {}", run.said()).into())
    }

    /// The exit code, as a shell has it.
    pub(crate) fn code(&self) -> i32 {
        let status = self.output.status;
        let signal = status.signal().map(|signal| 128 + signal);
        status.code().or(signal).unwrap_or(-1)
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// All of it, for a person.
    pub(crate) fn said(&self) -> String {
        let (code, out, err) = (self.code(), self.out(), self.err());
        format!("{}: status {code}\n{out}\n{err}", self.what)
    }
}

/// How long the ends of jobs may take, in seconds.
///
/// Ranks that are asked to end have a quarter of it to write their output in, also on a machine
/// where processes wait a second for a processor.
const EXIT_TIMEOUT_S: &str = "6";

/// How many ranks a program forks that no launcher starts as ranks.
const FORKED_RANKS: &str = "GASNET_PSHM_NODES";

/// The variable by which all processes of one run are known, the launcher and the guardian among
/// them.
const MARK: &str = "CONFORMANCE_RUN";
static RUNS: AtomicU64 = AtomicU64::new(0);

/// How long processes may take to be gone after the first one.
const LEAVING: Duration = Duration::from_secs(2);

/// Processes of a run that are there still.
///
/// They get a moment to be gone: a job's other ranks and its guardian end when they learn that rank
/// 0 has.
fn left_over(mark: &str) -> Vec<PathBuf> {
    let end = Instant::now() + LEAVING;
    loop {
        let left = running(mark);
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        std::thread::yield_now();
    }
}

fn running(mark: &str) -> Vec<PathBuf> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let all = all.flatten().map(|entry| entry.path());
    all.filter(|path| {
        // One that has ended has no environment.
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|one| one == mark.as_bytes())
    })
    .collect()
}
