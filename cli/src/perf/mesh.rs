//! Jobs of many ranks of this host that reach each other over tcp alone: their open files, their
//! resident memory, and the time until every rank has heard from every other.

use super::jobs::resident_kib;
use argonet::{Rank, Reduction, Result, World};
use argonet_settings::TCP_ROW;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Figures of a rank, the largest of all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// Resident memory, private and shared.
    kib: u64,
    /// Open files.
    pub(crate) files: u64,
}

impl Held {
    fn here() -> Self {
        Self {
            kib: resident_kib().unwrap_or(0),
            files: files("self").unwrap_or(0),
        }
    }

    pub(crate) fn mib(self) -> f64 {
        self.kib as f64 / 1024.0
    }
}

/// Figures of a job.
#[derive(Clone, Copy)]
pub(crate) struct Mesh {
    /// When it has started and no rank has sent anything.
    pub(crate) idle: Held,
    /// When every rank has heard from every other.
    pub(crate) connected: Held,
    /// Time that it took.
    pub(crate) seconds: f64,
    /// Open files of the launcher meanwhile.
    pub(crate) launcher_files: u64,
}

/// The conduit of such jobs, whose connections are files.
pub(super) const CONDUIT: &str = TCP_ROW.name;

/// The option with which this program becomes a rank of such a job.
const MESH: &str = "--mesh";

/// Runs a job whose ranks send so many messages to each other one.
pub(super) fn run(ranks: u32, messages: u64) -> io::Result<Mesh> {
    let this = std::env::current_exe()?;
    let mut command = Command::new(&this);
    command
        .args(["run", "-n", &ranks.to_string(), "--conduit", CONDUIT])
        .arg(this)
        .args(["perf", MESH, &messages.to_string()])
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut launcher = command.spawn()?;
    let mut line = String::new();
    if let Some(stdout) = launcher.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let launcher_files = files(&launcher.id().to_string());
    // They leave when their input ends.
    drop(launcher.stdin.take());
    let status = launcher.wait()?;
    let numbers: Vec<u64> = (line.split_whitespace())
        .filter_map(|n| n.parse().ok())
        .collect();
    let &[kib, files, met_kib, met_files, us] = numbers.as_slice() else {
        let what = format!(
            "a job of {ranks} ranks over {CONDUIT} printed {line:?} and ended with {status}"
        );
        return Err(io::Error::other(what));
    };
    if !status.success() {
        let what = format!("a job of {ranks} ranks over {CONDUIT} ended with {status}");
        return Err(io::Error::other(what));
    }
    Ok(Mesh {
        idle: Held { kib, files },
        connected: Held {
            kib: met_kib,
            files: met_files,
        },
        seconds: us as f64 / 1e6,
        launcher_files: launcher_files?,
    })
}

/// A rank of such a job.
///
/// Rank 0 prints the largest figures of all, and all leave when its standard input ends.
pub(crate) fn rank(messages: u64) -> Result<()> {
    let taken = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder().segment_bytes(4096);
    let take = builder.am("take", {
        let taken = Arc::clone(&taken);
        move |_, n: u64| {
            taken.fetch_add(n, Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    let idle = Held::here();
    world.barrier()?;
    let start = Instant::now();
    let others = world.size() - 1;
    for n in 1..=messages {
        for distance in 1..=others {
            world.send(world.rank_offset(i64::from(distance)), &take, n)?;
        }
    }
    let all = u64::from(others) * messages * (messages + 1) / 2;
    world.wait_until(|| taken.load(Ordering::Relaxed) >= all)?;
    world.barrier()?;
    let us = start.elapsed().as_micros() as u64;
    let connected = Held::here();
    let mut figures = [idle.kib, idle.files, connected.kib, connected.files, us];
    world.reduce_all(Reduction::Max, &mut figures)?;
    if world.rank() == Rank(0) {
        let words = figures.map(|figure| figure.to_string());
        println!("{}", words.join(" "));
        // A failed read ends it, too.
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }
    world.barrier()?;
    world.finalize()
}

/// Number of open files of a process.
fn files(process: &str) -> io::Result<u64> {
    let open = std::fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64;
    // One of them is the directory that is being read.
    Ok(if process == "self" { open - 1 } else { open })
}
