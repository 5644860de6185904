//! Replays seeds: `cargo run -p argonet-sim -- --seed 0x1234 [--trace]`, with `--portals` over the
//! portals conduit, with `--datagrams` of the reliable layer of datagrams alone.
#![forbid(unsafe_code)]

use argonet_sim::Trace;
use argonet_sim::datagrams::run_datagrams_seed;
use argonet_sim::portals::run_portals_seed;
use argonet_sim::workload::run_seed;
use clap::Parser;
use std::error::Error;
use std::process::ExitCode;

/// Runs jobs in a simulated cluster, one a seed
#[derive(Parser)]
struct Arguments {
    /// The seed, decimal or 0x and hexadecimal
    #[arg(long, value_parser = seed)]
    seed: u64,
    /// How many seeds, from that one on
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Over the portals conduit and interfaces in software, in place of the simulated wire
    #[arg(long)]
    portals: bool,
    /// The reliable layer of datagrams alone, without a trace
    #[arg(long, conflicts_with_all = ["portals", "trace"])]
    datagrams: bool,
    /// Print everything that happens, with virtual time in ns
    #[arg(long)]
    trace: bool,
    /// Print only failures
    #[arg(long, short)]
    quiet: bool,
}

fn seed(text: &str) -> Result<u64, std::num::ParseIntError> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
}

/// Whether a seed is well, and its report.
fn run(arguments: &Arguments, seed: u64) -> Result<(bool, String), Box<dyn Error>> {
    if arguments.datagrams {
        let report = run_datagrams_seed(seed)?;
        return Ok((report.ok(), report.to_string()));
    }
    let trace = || -> Option<Trace> {
        match arguments.trace {
            true => Some(Box::new(|line| println!("{line}"))),
            false => None,
        }
    };
    if arguments.portals {
        let report = run_portals_seed(seed, trace())?;
        return Ok((report.ok(), report.to_string()));
    }
    let report = run_seed(seed, trace())?;
    Ok((report.ok(), report.to_string()))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut failed = 0;
    for i in 0..arguments.count {
        let seed = arguments.seed.wrapping_add(i);
        let report = run(&arguments, seed);
        let is_ok = report.as_ref().is_ok_and(|(is_ok, _)| *is_ok);
        failed += u64::from(!is_ok);
        match report {
            Ok((_, report)) if !(is_ok && arguments.quiet) => println!("{report}"),
            Ok(_) => {}
            Err(error) => eprintln!("seed {seed:#x}: {error}"),
        }
    }
    if failed > 0 {
        println!("{failed} of {} seeds failed", arguments.count);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
