//! Whole jobs: how long they take to start, what their ranks keep resident, what one that waits
//! uses of a core, and collective operations of more ranks than cores.

use super::document::Document;
use super::mesh::{self, Mesh};
use super::over::Over;
use super::{messages, stats};
use argonet::{Rank, Reduction, Result, World};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One figure of whole jobs.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Fact {
    /// Short name, unique, by which it is chosen.
    pub(crate) name: String,
    /// The figure in words.
    pub(crate) what: String,
    /// Of the figures.
    pub(crate) unit: String,
    /// Smallest of all jobs.
    pub(crate) best: f64,
    /// Median of all jobs.
    pub(crate) median: f64,
    /// Highest median that meets the goal.
    pub(crate) goal: Option<f64>,
}

impl Fact {
    fn new(kind: &Kind, over: Over, values: &[f64]) -> Self {
        Self {
            name: kind.name.into(),
            what: kind.what.into(),
            unit: kind.unit.into(),
            best: stats::best(values),
            median: stats::median(values),
            goal: kind.goal_over(over),
        }
    }

    /// Whether the goal is reached; nothing where there is none.
    pub(crate) fn holds(&self) -> Option<bool> {
        self.goal.map(|goal| self.median <= goal)
    }
}

/// A fact before it is known.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    unit: &'static str,
    /// Over shared memory, and over a network.
    goals: [Option<f64>; 2],
    source: Source,
}

impl Kind {
    fn goal_over(&self, over: Over) -> Option<f64> {
        self.goals[usize::from(!over.shares_memory())]
    }
}

/// The job that a fact comes from.
///
/// Two facts of one source come from the same jobs.
#[derive(Clone, Copy)]
enum Source {
    /// Ranks that start, meet and leave: the job's time.
    Time(u32),
    /// The largest rank of such a job.
    Resident(u32),
    /// A rank that waits for a message.
    Idle,
    /// A metric of a job of so many ranks.
    Crowd(u32, &'static str),
    /// A figure of such ranks that send to all others.
    Mesh(u32, fn(&Mesh) -> f64),
}

#[rustfmt::skip]
const KINDS: [Kind; 11] = [
    Kind { name: "hello-2", what: "hello, whole job of 2 ranks", unit: "s", goals: [Some(0.03), Some(0.05)], source: Source::Time(2) },
    Kind { name: "hello-16", what: "hello, whole job of 16 ranks", unit: "s", goals: [Some(0.08), Some(0.15)], source: Source::Time(16) },
    Kind { name: "hello-64", what: "hello, whole job of 64 ranks", unit: "s", goals: [Some(0.25), Some(0.5)], source: Source::Time(64) },
    Kind { name: "memory-2", what: "resident memory, largest of 2 ranks", unit: "MiB", goals: [None, None], source: Source::Resident(2) },
    Kind { name: "memory-16", what: "resident memory, largest of 16 ranks", unit: "MiB", goals: [None, None], source: Source::Resident(16) },
    Kind { name: "memory-64", what: "resident memory, largest of 64 ranks", unit: "MiB", goals: [Some(6.0), Some(6.0)], source: Source::Resident(64) },
    Kind { name: "idle", what: "a rank that waits, share of a core", unit: "%", goals: [Some(1.0), Some(1.0)], source: Source::Idle },
    Kind { name: "barrier-4", what: "barrier, 4 ranks", unit: "us", goals: [Some(2.0), None], source: Source::Crowd(4, "barrier") },
    Kind { name: "barrier-8", what: "barrier, 8 ranks", unit: "us", goals: [Some(4.5), Some(60.0)], source: Source::Crowd(8, "barrier") },
    Kind { name: "reduce-all-4", what: "reduce-to-all 8 B, 4 ranks", unit: "us", goals: [Some(2.8), None], source: Source::Crowd(4, "reduce-all-8") },
    Kind { name: "reduce-all-8-ranks", what: "reduce-to-all 8 B, 8 ranks", unit: "us", goals: [Some(8.0), None], source: Source::Crowd(8, "reduce-all-8") },
];

/// Of ranks that have connections to all others.
#[rustfmt::skip]
const MESHES: [Kind; 5] = [
    Kind { name: "all-to-all-64", what: "1,000 AM short from each of 64 ranks to each other", unit: "s", goals: [None, Some(3.0)], source: Source::Mesh(64, |mesh| mesh.seconds) },
    Kind { name: "files-64", what: "open files of one of 64 idle ranks", unit: "", goals: [None, None], source: Source::Mesh(64, |mesh| mesh.idle.files as f64) },
    Kind { name: "connected-memory-64", what: "resident memory, largest of 64 ranks that have connected to all", unit: "MiB", goals: [None, None], source: Source::Mesh(64, |mesh| mesh.connected.mib()) },
    Kind { name: "connected-files-64", what: "open files of one of these ranks", unit: "", goals: [None, None], source: Source::Mesh(64, |mesh| mesh.connected.files as f64) },
    Kind { name: "run-files-64", what: "open files of their `argonet run`", unit: "", goals: [None, None], source: Source::Mesh(64, |mesh| mesh.launcher_files as f64) },
];

/// All of a conduit.
pub(crate) fn kinds(over: Over) -> impl Iterator<Item = &'static Kind> {
    let meshes: &[Kind] = match over.name() {
        mesh::CONDUIT => &MESHES,
        _ => &[],
    };
    KINDS.iter().chain(meshes)
}

/// Effort of measurements of jobs.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Jobs for each start-up time.
    pub(crate) jobs: usize,
    /// Waiting time of a rank.
    pub(crate) idle: Duration,
    /// Chunks of each metric of a crowd.
    pub(crate) chunks: usize,
    /// Messages to each other rank of a mesh.
    pub(crate) messages: u64,
}

/// Measures the wanted figures.
///
/// This process starts jobs for it, and so must not be a rank yet.
pub(crate) fn measure(
    wants: impl Fn(&str) -> bool,
    over: Over,
    effort: Effort,
) -> io::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    let mut hellos: Vec<(u32, Vec<(f64, f64)>)> = Vec::new();
    let mut meshes: Vec<(u32, Vec<Mesh>)> = Vec::new();
    for kind in kinds(over).filter(|kind| wants(kind.name)) {
        let values = match kind.source {
            Source::Time(ranks) | Source::Resident(ranks) => {
                if !hellos.iter().any(|(n, _)| *n == ranks) {
                    let jobs = (0..effort.jobs).map(|_| run_hello(ranks));
                    hellos.push((ranks, jobs.collect::<io::Result<_>>()?));
                }
                let all = hellos.iter().find(|(n, _)| *n == ranks);
                let all = all.map_or(&[][..], |(_, jobs)| jobs);
                let time = matches!(kind.source, Source::Time(_));
                let one = |&(seconds, mib): &(f64, f64)| if time { seconds } else { mib };
                all.iter().map(one).collect()
            }
            Source::Idle => vec![run_idle(effort.idle)?],
            Source::Crowd(ranks, metric) => vec![run_crowd(over, ranks, metric, effort.chunks)?],
            Source::Mesh(ranks, figure) => {
                if !meshes.iter().any(|(n, _)| *n == ranks) {
                    let jobs = (0..effort.jobs).map(|_| mesh::run(ranks, effort.messages));
                    meshes.push((ranks, jobs.collect::<io::Result<_>>()?));
                }
                let all = meshes.iter().find(|(n, _)| *n == ranks);
                all.map_or(&[][..], |(_, all)| all)
                    .iter()
                    .map(figure)
                    .collect()
            }
        };
        facts.push(Fact::new(kind, over, &values));
    }
    Ok(facts)
}

/// Options with which this program becomes such a job.
const HELLO: &str = "--hello";
const IDLE: &str = "--wait-idle";

/// Runs this program with these arguments, on segments of one page; returns its output.
fn run(args: &[OsString]) -> io::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("perf")
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        let what = format!("a job of {args:?} ended with {}", output.status);
        return Err(io::Error::other(what));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

fn number(text: &str) -> io::Result<f64> {
    let value = text.trim().parse();
    value.map_err(|_| io::Error::other(format!("a job printed {text:?}, not a number")))
}

/// Seconds of a whole job, and MiB of its largest rank.
fn run_hello(ranks: u32) -> io::Result<(f64, f64)> {
    let start = Instant::now();
    let kib = run(&[HELLO.into(), ranks.to_string().into()])?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, number(&kib)? / 1024.0))
}

fn run_idle(time: Duration) -> io::Result<f64> {
    let seconds = time.as_secs_f64().to_string();
    number(&run(&[IDLE.into(), seconds.into()])?)
}

fn run_crowd(over: Over, ranks: u32, metric: &str, chunks: usize) -> io::Result<f64> {
    let options = ["--conduit", "--ranks", "--chunks", "--only", "--json"];
    let (ranks, chunks) = (ranks.to_string(), chunks.to_string());
    let values = [over.name(), &ranks, &chunks, metric, "-"];
    let args = options
        .iter()
        .zip(values)
        .flat_map(|(o, v)| [OsString::from(o), v.into()]);
    let text = run(&args.collect::<Vec<_>>())?;
    let document: Document = serde_json::from_str(&text)?;
    let measured = document.metrics.iter().find(|m| m.name == metric);
    measured
        .map(|measured| measured.ours.median)
        .ok_or_else(|| io::Error::other(format!("a job did not measure {metric}")))
}

/// Resident memory of this process in KiB (VmRSS: private and shared).
pub(super) fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The job of a hello: ranks start, meet, report their resident memory and leave.
pub(crate) fn hello(ranks: u32) -> Result<()> {
    let world = World::builder().ranks(ranks).segment_bytes(4096).build()?;
    world.barrier()?;
    let mut kib = [resident_kib().unwrap_or(0)];
    world.reduce_all(Reduction::Max, &mut kib)?;
    if world.rank() == Rank(0) {
        println!("{}", kib[0]);
    }
    world.finalize()
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The job of a rank that waits: rank 1 waits for a message that rank 0 sends after so many
/// seconds, and reports the share of a core that it used, all its threads and the first, busy
/// moments included.
pub(crate) fn wait_idle(seconds: f64) -> Result<()> {
    let world = World::builder().ranks(2).segment_bytes(4096).build()?;
    world.barrier()?;
    let mut percent = [0.0];
    if world.rank() == Rank(0) {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        messages::wake(&world)?;
    } else {
        let (start, before) = (Instant::now(), processor_seconds());
        messages::wait_for_wake(&world)?;
        let used = processor_seconds() - before;
        percent = [100.0 * used / start.elapsed().as_secs_f64()];
    }
    world.reduce_all(Reduction::Max, &mut percent)?;
    if world.rank() == Rank(0) {
        println!("{}", percent[0]);
    }
    world.finalize()
}
