//! The command line of `argonet perf` and the order of things.

use super::error::PerfError;
use super::metric::Metric;
use super::pair::Pair;
use super::report::{Conditions, Measured, Report};
use super::startup::{self, HELLOS, Started};
use super::table::METRICS;
use argonet::World;
use argonet_boot::binding::allowed_cores;
use clap::Args;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::process::ExitCode;

/// Measure the library on this machine, each figure beside its raw limit
#[derive(Args)]
pub(crate) struct Perf {
    /// Ranks of the job; ranks 0 and 1 measure, the others take part in collective operations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    ranks: u32,
    /// Metrics to measure, by name; "am-*" stands for all that begin with "am-"
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Chunks of each metric and of its limit, in turn
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = parse_chunks)]
    chunks: usize,
    /// Jobs started for each start-up time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_chunks)]
    jobs: usize,
    /// Print the names of all metrics
    #[arg(long)]
    list: bool,
    /// Be a job of so many ranks that says hello
    #[arg(long, value_name = "N", hide = true)]
    hello: Option<u32>,
}

fn parse_chunks(text: &str) -> Result<usize, String> {
    let positive = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    positive.ok_or_else(|| "a number from 1 to 1,000,000 is needed".into())
}

impl Perf {
    /// Measures and prints.
    pub(crate) fn execute(self) -> ExitCode {
        let result = match self.hello {
            Some(ranks) => startup::hello(ranks).map_err(PerfError::from),
            None if self.list => {
                list();
                Ok(())
            }
            None => self.run(),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("argonet perf: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| matches(pattern, name))
    }

    fn run(self) -> Result<(), PerfError> {
        if std::env::var_os("ARGONET_BOOT").is_some() {
            return Err(PerfError::Launched);
        }
        let unknown = self
            .only
            .iter()
            .find(|pattern| !all_names().any(|name| matches(pattern, name)));
        if let Some(name) = unknown {
            return Err(PerfError::NoSuchMetric { name: name.clone() });
        }
        let mut conditions = Conditions::before();
        // Jobs are started before this process is one itself.
        let started: Vec<Started> = HELLOS
            .iter()
            .filter(|hello| self.wants(hello.name))
            .map(|hello| startup::measure(hello, self.jobs))
            .collect::<Result<_, _>>()?;
        let metrics: Vec<&'static Metric> = METRICS
            .iter()
            .filter(|metric| self.wants(metric.name))
            .collect();
        let mut measured = Vec::new();
        let mut speaks = true;
        if !metrics.is_empty() {
            let world = World::builder().ranks(self.ranks).build()?;
            speaks = world.rank().0 == 0;
            pin(&world)?;
            let pair = Pair::new(&world)?;
            for metric in metrics {
                let (ours, limit) = pair.measure(metric, self.chunks)?;
                measured.push(Measured::new(metric, ours, limit));
            }
            world.finalise()?;
        }
        if speaks {
            conditions.after();
            let report = Report {
                conditions,
                ranks: self.ranks,
                chunks: self.chunks,
                measured,
                started,
            };
            print!(
                "{}",
                if self.json {
                    report.json()
                } else {
                    report.text()
                }
            );
        }
        Ok(())
    }
}

fn all_names() -> impl Iterator<Item = &'static str> {
    let startups = HELLOS.iter().map(|hello| hello.name);
    METRICS.iter().map(|metric| metric.name).chain(startups)
}

fn list() {
    for metric in METRICS {
        println!("{:22} {}", metric.name, metric.what);
    }
    for hello in &HELLOS {
        println!(
            "{:22} hello, whole job of {} ranks",
            hello.name, hello.ranks
        );
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// Pins this rank to one core, in turn.
fn pin(world: &World) -> Result<(), PerfError> {
    let cores = allowed_cores().map_err(argonet::Error::from)?;
    let rank = world.rank();
    let core = cores[rank.0 as usize % cores.len()];
    let mut mask = CpuSet::new();
    mask.set(core);
    sched_setaffinity(None, &mask).map_err(|cause| PerfError::Pin { rank, core, cause })
}
