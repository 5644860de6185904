//! The command line of `argonet perf` and the order of things.

use super::document::Document;
use super::error::PerfError;
use super::jobs::{self, Effort};
use super::machine::{Machine, load_average};
use super::metric::{Metric, Subject};
use super::over::Over;
use super::pair::Pair;
use super::report::{Measured, Report};
use super::threads::{self, pin};
use super::{mesh, plot, sizes, table, tune};
use argonet::{Rank, World};
use argonet_boot::binding::allowed_cores;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Measure the library on this machine, each figure beside its raw limit
#[derive(Args)]
pub(crate) struct Perf {
    /// Ranks of the job; ranks 0 and 1 measure, the others take part in collective operations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    ranks: u32,
    /// Threads of the metric that compares several with one
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Conduit that the ranks communicate through; a job that `argonet run` starts for --tune has
    /// its own
    #[arg(long, value_name = "NAME", value_parser = Over::parser(), default_value = Over::DEFAULT.name())]
    conduit: Over,
    /// Metrics to measure, by name; "am-*" stands for all that begin with "am-"
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure mediums, longs, put and get of these sizes too (8,4KiB,1MiB); "put@*" stands for all
    /// puts of them
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = sizes::parse)]
    sizes: Vec<usize>,
    /// Chunks of each metric and of its limit, in turn
    #[arg(long, visible_alias = "repeat", value_name = "N", default_value_t = 40, value_parser = parse_chunks)]
    chunks: usize,
    /// Jobs started for each start-up time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_chunks)]
    jobs: usize,
    /// Waiting time of the rank whose use of a core is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = parse_seconds)]
    idle: f64,
    /// Messages that ranks over tcp send to each other one, whose time and open files are measured
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    messages: u64,
    /// Write JSON to a file; to standard output, instead of the table, if none is named or it is
    /// "-"
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Print the tables in Markdown
    #[arg(long)]
    markdown: bool,
    /// Draw latency and bandwidth by size, ours and the limit's, into an SVG file; of powers of
    /// four unless --sizes says other
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Commit that the library was built from, for the report
    #[arg(long, value_name = "NAME")]
    commit: Option<String>,
    /// Print the names of all metrics
    #[arg(long)]
    list: bool,
    /// Find the settings of collective operations with which a job of so many ranks is fastest, and
    /// write them as a tuning file
    #[arg(long, conflicts_with_all = NOT_TUNED)]
    tune: bool,
    /// File that --tune writes; standard output if it is not given
    #[arg(long, value_name = "FILE", requires = "tune")]
    out: Option<PathBuf>,
    /// Be a job of so many ranks that says hello
    #[arg(long, value_name = "N", hide = true)]
    hello: Option<u32>,
    /// Be a job with a rank that waits so many seconds
    #[arg(long, value_name = "SECONDS", hide = true)]
    wait_idle: Option<f64>,
    /// Be a rank that sends so many messages to each other one
    #[arg(long, value_name = "N", hide = true)]
    mesh: Option<u64>,
}

/// Options that exclude --tune.
const NOT_TUNED: [&str; 10] = [
    "threads", "only", "sizes", "jobs", "idle", "messages", "json", "markdown", "svg", "commit",
];

fn parse_chunks(text: &str) -> Result<usize, String> {
    let positive = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    positive.ok_or_else(|| "a number from 1 to 1,000,000 is needed".into())
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let sensible = text.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
    sensible.ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

impl Perf {
    /// Measures and prints.
    pub(crate) fn execute(self) -> ExitCode {
        let result = match (self.hello, self.wait_idle, self.mesh) {
            (Some(ranks), ..) => jobs::hello(ranks).map_err(PerfError::from),
            (_, Some(seconds), _) => jobs::wait_idle(seconds).map_err(PerfError::from),
            (.., Some(messages)) => mesh::rank(messages).map_err(PerfError::from),
            _ if self.list => {
                self.list();
                Ok(())
            }
            _ => self.measure(),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("argonet perf: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// In a process with the settings that are asked for.
    fn measure(self) -> Result<(), PerfError> {
        self.check()?;
        // A job that was launched has its own.
        if !is_launched() {
            self.conduit.enter()?;
        }
        match self.tune {
            true => self.tune(),
            false => self.run(),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| matches(pattern, name))
    }

    /// All metrics of the job of ranks.
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = table::metrics(self.conduit);
        metrics.extend(match (self.sizes.as_slice(), &self.svg) {
            ([], Some(_)) => sizes::metrics(self.conduit, &sizes::usual()),
            (sizes, _) => sizes::metrics(self.conduit, sizes),
        });
        metrics
    }

    /// Threads share memory alone.
    fn threads(&self) -> Option<Subject> {
        self.conduit
            .shares_memory()
            .then(|| threads::subject(self.threads))
    }

    /// Name and meaning of all that can be measured.
    fn names(&self) -> Vec<(String, String)> {
        let metrics = self.metrics().into_iter();
        let metrics = metrics.map(|metric| (metric.subject.name, metric.subject.what));
        let threads = self.threads().into_iter();
        let jobs = jobs::kinds(self.conduit).map(|kind| (kind.name.into(), kind.what.into()));
        metrics
            .chain(threads.map(|threads| (threads.name, threads.what)))
            .chain(jobs)
            .collect()
    }

    fn list(&self) {
        for (name, what) in self.names() {
            println!("{name:22} {what}");
        }
    }

    /// Checks the options against each other.
    fn check(&self) -> Result<(), PerfError> {
        if is_launched() && !self.tune {
            return Err(PerfError::Launched);
        }
        let names = self.names();
        let exists = |pattern: &String| names.iter().any(|(name, _)| matches(pattern, name));
        match self.only.iter().find(|pattern| !exists(pattern)) {
            Some(name) => Err(PerfError::NoSuchMetric { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// Measures settings in a job of its own, or in the one that `argonet run` has started.
    fn tune(self) -> Result<(), PerfError> {
        let here = (Machine::here(), load_average());
        let world = World::builder().ranks(self.ranks).build()?;
        let pinned = match is_launched() {
            true => Ok(()),
            false => pin_in_turn(world.rank()),
        };
        let found = pinned.and_then(|()| tune::run(&world, self.chunks, here));
        let text = found.unwrap_or_else(|error| give_up(&error));
        world.finalize()?;
        match (text, &self.out) {
            (Some(text), Some(path)) => write(path, &text),
            (Some(text), None) => {
                print!("{text}");
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn run(self) -> Result<(), PerfError> {
        let mut metrics = self.metrics();
        metrics.retain(|metric| self.wants(&metric.subject.name));
        if self.svg.is_some() && !plot::drawable(&metrics) {
            return Err(PerfError::NothingToPlot);
        }
        // Before this process is pinned.
        let (machine, before) = (Machine::here(), load_average());
        // Jobs are started, and threads are, before this process is a rank itself.
        let effort = Effort {
            jobs: self.jobs,
            idle: Duration::from_secs_f64(self.idle),
            chunks: self.chunks,
            messages: self.messages,
        };
        let facts = jobs::measure(|name| self.wants(name), self.conduit, effort)?;
        let mut measured = Vec::new();
        let of_threads = match self.threads().filter(|subject| self.wants(&subject.name)) {
            Some(subject) => Some((subject, threads::measure(self.threads, self.chunks)?)),
            None => None,
        };
        if !metrics.is_empty() {
            let world = World::builder().ranks(self.ranks).build()?;
            match measure_ranks(&world, self.conduit, metrics, self.chunks) {
                Ok(of_ranks) => measured = of_ranks,
                Err(error) => give_up(&error),
            }
            let speaks = world.rank().0 == 0;
            world.finalize()?;
            if !speaks {
                return Ok(());
            }
        }
        measured.extend(of_threads.map(|(subject, chunks)| Measured::new(subject, chunks)));
        self.write_report(&Report {
            machine,
            commit: self.commit.clone(),
            load_average: [before, load_average()],
            conduit: self.conduit.name().into(),
            ranks: self.ranks,
            threads: self.threads,
            chunks: self.chunks,
            measured,
            facts,
        })
    }

    fn write_report(&self, report: &Report) -> Result<(), PerfError> {
        let mut table = true;
        if let Some(path) = &self.json {
            let document = serde_json::to_string_pretty(&Document::of(report));
            let text = document.map_err(std::io::Error::from)? + "\n";
            if path == Path::new("-") {
                print!("{text}");
                table = false;
            } else {
                write(path, &text)?;
            }
        }
        if let Some(path) = &self.svg {
            write(path, &plot::svg(&report.measured, &report.heading())?)?;
        }
        match (table, self.markdown) {
            (true, true) => print!("{}", report.markdown()),
            (true, false) => print!("{}", report.text()),
            (false, _) => {}
        }
        Ok(())
    }
}

/// Measures the operations between the ranks of a job, each on a core, in turn.
///
/// Collective.
fn measure_ranks(
    world: &World,
    over: Over,
    metrics: Vec<Metric>,
    chunks: usize,
) -> Result<Vec<Measured>, PerfError> {
    pin_in_turn(world.rank())?;
    let pair = Pair::new(world, over)?;
    metrics
        .into_iter()
        .map(|metric| {
            let chunks = pair.measure(&metric, chunks)?;
            Ok(Measured::new(metric.subject, chunks))
        })
        .collect()
}

/// Ends a rank of a job that cannot go on.
///
/// The others are still measuring: they are not to be waited for, but ended.
fn give_up(error: &PerfError) -> ! {
    eprintln!("argonet perf: {error}");
    std::process::exit(1)
}

/// Pins a rank to the core whose turn it is.
fn pin_in_turn(rank: Rank) -> Result<(), PerfError> {
    let cores = allowed_cores().map_err(argonet::Error::from)?;
    pin(rank, cores[rank.0 as usize % cores.len()])
}

/// Whether `argonet run` has started this process.
fn is_launched() -> bool {
    std::env::var_os("ARGONET_BOOT").is_some()
}

fn write(path: &Path, text: &str) -> Result<(), PerfError> {
    std::fs::write(path, text).map_err(|cause| PerfError::Write {
        path: path.to_owned(),
        cause,
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
