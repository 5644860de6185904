//! Counts the k-mers of a FASTA or FASTQ file, on one rank or on many.
//!
//! A k-mer and its reverse complement are one; windows with a letter other than `ACGT` are left
//! out. Standard output has the histogram of counts and the most frequent k-mers, standard error
//! the progress and the times.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing can reach into a program; `pub` marks what one module offers the others"
)]

mod distributed;
mod generate;
mod input;
mod kmer;
mod parse;
mod partition;
mod ranks;
mod report;
#[cfg(test)]
mod scratch;
mod sequential;
mod table;

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use generate::Size;
use kmer::K;
use partition::Part;
use ranks::{Direct, Failure, Ranks};
use report::{Limits, Report, Tally, throughput, throughput_of_ranks};

/// Counts the k-mers of a FASTA or FASTQ file, plain or gzip.
#[derive(Parser)]
#[command(name = "kmers")]
struct Arguments {
    /// The file to count
    #[arg(required_unless_present = "generate")]
    file: Option<PathBuf>,
    /// Length of a k-mer, 1 to 31
    #[arg(short, default_value_t = K::MAX)]
    k: K,
    /// Number of ranks, where no launcher and no GASNET_PSHM_NODES says it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// How many of the most frequent k-mers to list
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Greatest count with its own line in the histogram
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = histogram_limit)]
    histogram: usize,
    /// Count again with a simple sequential program and compare
    #[arg(long)]
    verify: bool,
    /// Show no progress bar
    #[arg(long)]
    no_progress: bool,
    /// Write a FASTA file of so many bytes (256MB, 1GiB) instead, the same for the same seed
    #[arg(long, num_args = 2, value_names = ["SEED", "SIZE"], conflicts_with_all = ["file", "verify"])]
    generate: Option<Vec<String>>,
    /// Where to write it instead of to standard output
    #[arg(short, long, value_name = "FILE", requires = "generate")]
    output: Option<PathBuf>,
}

fn histogram_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|limit| (1..=65_536).contains(limit))
        .ok_or_else(|| "must be 1 to 65536".to_owned())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match (&arguments.generate, &arguments.file) {
        (Some(what), _) => match generate(what, arguments.output.as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&*error),
        },
        (None, Some(file)) => count_on_ranks(&arguments, file),
        (None, None) => ExitCode::SUCCESS,
    }
}

fn complain(error: &dyn Error) -> ExitCode {
    // A failure here cannot be reported any more.
    let _ = io::stderr().write_all(format!("kmers: {error}\n").as_bytes());
    ExitCode::FAILURE
}

fn generate(what: &[String], output: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let [seed, size] = what else {
        return Err("--generate takes a seed and a size".into());
    };
    let seed = seed.parse().map_err(|_| {
        format!("--generate: '{seed}' is not a seed; use a number from 0 to 2^64 - 1")
    })?;
    let size: Size = size
        .parse()
        .map_err(|error| format!("--generate: {error}"))?;
    match output {
        Some(path) => {
            let failed = |error: io::Error| format!("{}: {error}", path.display());
            let file = File::create(path).map_err(failed)?;
            generate::write(&mut BufWriter::new(file), seed, size).map_err(failed)?;
        }
        None => generate::write(&mut BufWriter::new(io::stdout().lock()), seed, size)?,
    }
    Ok(())
}

fn count_on_ranks(arguments: &Arguments, file: &Path) -> ExitCode {
    // Before there is a second thread: other ranks may be forked here.
    distributed::run(arguments.ranks, |ranks| {
        let counted = if ranks.part() == Part::WHOLE {
            count(arguments, file, &mut Direct)
        } else {
            count(arguments, file, ranks)
        };
        match counted {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Failure::Here(error)) => Err(error),
            // The rank that has the error ends the job.
            Err(Failure::Elsewhere) => Ok(ExitCode::FAILURE),
        }
    })
}

fn count(arguments: &Arguments, file: &Path, ranks: &mut impl Ranks) -> Result<(), Failure> {
    let k = arguments.k;
    let limits = Limits {
        histogram: arguments.histogram,
        top: arguments.top,
    };
    let part = ranks.part();
    let reading = Instant::now();
    let share = input::load(file, k, part);
    let share = ranks.agree(share)?;
    let read_time = reading.elapsed();

    let codes = ranks.sum(share.codes.len() as u64)?;
    let bar = progress_bar(codes, arguments.no_progress || part.rank != 0);
    ranks.barrier()?;
    let counting = Instant::now();
    let table = ranks.count(&share, k, &mut |codes| bar.inc(codes))?;
    ranks.barrier()?;
    let count_time = counting.elapsed();
    bar.finish_and_clear();

    let mut tally = Tally::new(limits);
    table.for_each(|kmer, count| tally.add(kmer, count));
    drop(table);
    let (records, letters) = (ranks.sum(share.records)?, ranks.sum(share.letters)?);
    drop(share);
    let tally = ranks.merge(tally)?;
    let printed = tally.map_or(Ok(()), |tally| {
        let report = Report {
            k,
            records,
            letters,
            tally: &tally,
        };
        let times = [read_time, count_time];
        print(arguments, file, &report, part.ranks, times)
    });
    // The others wait until then: all end as rank 0 does.
    ranks.agree(printed)
}

/// Prints the findings of all ranks, and the times.
fn print(
    arguments: &Arguments,
    file: &Path,
    report: &Report<'_>,
    ranks: u32,
    [read_time, count_time]: [Duration; 2],
) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    write!(out, "{report}")?;
    out.flush()?;
    let Report {
        k, letters, tally, ..
    } = *report;
    if tally.total == 0 {
        eprintln!(
            "kmers: {}: no record has {k} letters of ACGT in a row",
            file.display()
        );
    }
    eprintln!("{}", throughput("reading", letters, "letters", read_time));
    eprintln!(
        "{}",
        throughput_of_ranks(ranks, tally.total, "k-mers", count_time)
    );
    if arguments.verify {
        let limits = Limits {
            histogram: arguments.histogram,
            top: arguments.top,
        };
        verify(file, k, limits, tally)?;
    }
    Ok(())
}

fn verify(file: &Path, k: K, limits: Limits, tally: &Tally) -> Result<(), Box<dyn Error>> {
    let share = input::load(file, k, Part::WHOLE)?;
    let counting = Instant::now();
    let counts = sequential::count(&share.codes, k);
    let time = counting.elapsed();
    let mut reference = Tally::new(limits);
    for (&kmer, &count) in &counts {
        reference.add(kmer, count);
    }
    eprintln!(
        "{}",
        throughput(
            "counting sequentially with a simple program",
            reference.total,
            "k-mers",
            time
        )
    );
    if reference != *tally {
        let wanted = Report {
            k,
            records: share.records,
            letters: share.letters,
            tally: &reference,
        };
        return Err(format!(
            "the counts differ from those of the sequential program, which are\n{wanted}"
        )
        .into());
    }
    eprintln!("verified: equal to the sequential count");
    Ok(())
}

fn progress_bar(codes: u64, hidden: bool) -> ProgressBar {
    if hidden || !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(codes), ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(codes);
    let style =
        ProgressStyle::with_template("counting {wide_bar} {percent}% {per_sec}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
