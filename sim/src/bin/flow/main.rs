//! Flow control at scale: runs the cases of docs/flow-control.md, prints its table and draws its
//! plots.
//!
//! `cargo run --release -p argonet-sim --bin flow -- --out docs/flow-control.svg`
#![forbid(unsafe_code)]

mod cases;
mod cost;
mod kept;
mod plot;

use argonet_am::credit::{Plan, Rules};
use cases::{Case, HEADING};
use clap::Parser;
use cost::Cost;
use kept::Outcome;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs credit flow control among thousands of simulated ranks
#[derive(Parser)]
struct Arguments {
    /// Where the plots go (SVG)
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only cases whose name, rule and most credits have this in it, such as "ghost zones, mended,
    /// 400"
    #[arg(long, default_value = "")]
    only: String,
    /// Ranks of the cases with epochs of 64 requests
    #[arg(long, default_value_t = 10_000)]
    ranks: u32,
    /// Ranks of the cases with epochs of 1,024 requests
    #[arg(long, default_value_t = 1_000)]
    long_ranks: u32,
    /// Threads that run cases
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where outcomes are kept; cases that have one there are not run again.
    ///
    /// Empty it when the machine has changed
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Print the table of shares and banks and end
    #[arg(long)]
    table: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.table {
        print!("{}", Plan::table(&Rules::default()));
        return ExitCode::SUCCESS;
    }
    let cases: Vec<Case> = cases::all(arguments.ranks, arguments.long_ranks)
        .into_iter()
        .filter(|case| case.label().contains(&arguments.only))
        .collect();
    println!("{HEADING}");
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = outcome(case, arguments.keep.as_deref());
            println!("{}", outcome.row);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((case.clone(), outcome));
            if let Some(out) = &arguments.out
                && let Err(error) = plot::write(out, &done)
            {
                eprintln!("{}: {error}", out.display());
            }
        }
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..arguments.threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().for_each(|handle| {
            if handle.join().is_err() {
                eprintln!("a thread that ran cases has ended early");
            }
        });
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let bad = done.iter().any(|(_, outcome)| !outcome.is_well);
    if bad || done.len() < cases.len() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs a case, unless it has been run before.
fn outcome(case: &Case, keep: Option<&Path>) -> Outcome {
    if let Some(kept) = keep.and_then(|keep| kept::load(keep, case)) {
        return kept;
    }
    let (figures, cost) = Cost::of(|| case.run());
    let outcome = Outcome {
        row: case.row(&figures, &cost),
        is_well: figures.violations.is_empty(),
        epochs: figures.epochs,
    };
    if let Some(Err(error)) = keep.map(|keep| kept::save(keep, case, &outcome)) {
        eprintln!("{}: {error}", case.label());
    }
    outcome
}
