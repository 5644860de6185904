//! Whole jobs that say hello, and what their ranks keep resident.

use super::stats;
use argonet::{Rank, Reduction, Result, World};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Option with which this program becomes such a job.
pub(crate) const HELLO: &str = "--hello";

/// A number of ranks and what its job may take.
pub(crate) struct Hello {
    pub(crate) name: &'static str,
    pub(crate) ranks: u32,
    /// Seconds for the whole job.
    pub(crate) goal_s: f64,
    /// MiB that a rank may keep resident, where there is a goal.
    pub(crate) goal_mib: Option<f64>,
}

/// Jobs that are measured.
pub(crate) const HELLOS: [Hello; 3] = [
    Hello {
        name: "hello-2",
        ranks: 2,
        goal_s: 0.03,
        goal_mib: None,
    },
    Hello {
        name: "hello-16",
        ranks: 16,
        goal_s: 0.08,
        goal_mib: None,
    },
    Hello {
        name: "hello-64",
        ranks: 64,
        goal_s: 0.25,
        goal_mib: Some(6.0),
    },
];

/// What came of a hello.
pub(crate) struct Started {
    pub(crate) hello: &'static Hello,
    /// Seconds from before the start to after the end of the job, each time.
    pub(crate) seconds: Vec<f64>,
    /// Largest resident memory of a rank in MiB, over all ranks and times.
    pub(crate) resident_mib: f64,
}

impl Started {
    pub(crate) fn median_s(&self) -> f64 {
        stats::median(&self.seconds)
    }

    pub(crate) fn best_s(&self) -> f64 {
        stats::best(&self.seconds)
    }
}

/// Resident memory of this process in KiB (VmRSS: private and shared).
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The job: ranks start, meet, report their resident memory and leave.
pub(crate) fn hello(ranks: u32) -> Result<()> {
    let world = World::builder().ranks(ranks).build()?;
    world.barrier()?;
    let mut kib = [resident_kib().unwrap_or(0)];
    world.reduce_all(Reduction::Max, &mut kib)?;
    if world.rank() == Rank(0) {
        println!("{}", kib[0]);
    }
    world.finalise()
}

/// Starts the job `times` times, with segments of one page.
pub(crate) fn measure(hello: &'static Hello, times: usize) -> std::io::Result<Started> {
    let mut started = Started {
        hello,
        seconds: Vec::new(),
        resident_mib: 0.0,
    };
    for _ in 0..times {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["perf", HELLO, &hello.ranks.to_string()])
            .env("ARGONET_SEGMENT", "4096")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let start = Instant::now();
        let output = command.output()?;
        started.seconds.push(start.elapsed().as_secs_f64());
        let kib = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse::<u64>();
        let (true, Ok(kib)) = (output.status.success(), kib) else {
            let what = format!(
                "a job of {} ranks ended with {}",
                hello.ranks, output.status
            );
            return Err(std::io::Error::other(what));
        };
        started.resident_mib = started.resident_mib.max(kib as f64 / 1024.0);
    }
    Ok(started)
}
