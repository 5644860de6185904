//! Counts the k-mers of a FASTA or FASTQ file.
//!
//! A k-mer and its reverse complement are one; windows with a letter other than `ACGT` are left out. Standard output has
//! the histogram of counts and the most frequent k-mers, standard error the progress and the times.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing can reach into a program; `pub` marks what one module offers the others"
)]

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
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use generate::Size;
use kmer::K;
use partition::Part;
use ranks::{Direct, Ranks};
use report::{Limits, Report, Tally, throughput};

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
    let done = match (&arguments.generate, &arguments.file) {
        (Some(what), _) => generate(what, arguments.output.as_deref()),
        (None, Some(file)) => count(&arguments, file, &mut Direct),
        (None, None) => Ok(()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kmers: {error}");
            ExitCode::FAILURE
        }
    }
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

fn count(arguments: &Arguments, file: &Path, ranks: &mut impl Ranks) -> Result<(), Box<dyn Error>> {
    let k = arguments.k;
    let limits = Limits {
        histogram: arguments.histogram,
        top: arguments.top,
    };
    let part = ranks.part();
    let reading = Instant::now();
    let share = input::load(file, k, part)?;
    ranks.barrier();
    let read_time = reading.elapsed();

    let bar = progress_bar(
        share.codes.len() as u64,
        arguments.no_progress || part.rank != 0,
    );
    ranks.barrier();
    let counting = Instant::now();
    let table = ranks.count(&share, k, &mut |codes| bar.inc(codes as u64))?;
    ranks.barrier();
    let count_time = counting.elapsed();
    bar.finish_and_clear();

    let mut tally = Tally::new(limits);
    table.for_each(|kmer, count| tally.add(kmer, count));
    drop(table);
    let (records, letters) = (ranks.sum(share.records), ranks.sum(share.letters));
    let Some(tally) = ranks.merge(tally) else {
        return Ok(());
    };

    let report = Report {
        k,
        records,
        letters,
        tally: &tally,
    };
    let mut out = io::stdout().lock();
    write!(out, "{report}")?;
    out.flush()?;
    if tally.total == 0 {
        eprintln!(
            "kmers: {}: no record has {k} letters of ACGT in a row",
            file.display()
        );
    }
    eprintln!("{}", throughput("reading", letters, "letters", read_time));
    eprintln!(
        "{}",
        throughput(
            &format!("counting on {} rank(s)", part.ranks),
            tally.total,
            "k-mers",
            count_time
        )
    );
    if arguments.verify {
        drop(share);
        verify(file, k, limits, &tally)?;
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
    let bar = ProgressBar::new(codes);
    if hidden {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        return bar;
    }
    let style =
        ProgressStyle::with_template("counting {wide_bar} {percent}% {per_sec}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
