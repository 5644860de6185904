//! argonet's own commands: `cargo xtask test` is the one to know.
#![forbid(unsafe_code)]

mod budget;
mod command;
mod man;
mod record;
mod stages;
mod suite;
mod tally;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use suite::{Effort, Suite};

/// Builds and tests argonet.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests, stage by stage, each within its time
    Test {
        /// Run only this stage (build, unit, jobs, c, asan); may be given several times
        #[arg(long, value_name = "STAGE")]
        only: Vec<String>,
    },
    /// Run all tests at full counts and record the result in docs/test-results.md
    Full,
    /// Run the loom models
    Loom,
    /// Run unit tests under AddressSanitizer
    Asan,
    /// Write the manual pages that are made from tables
    Man,
    /// Check the rules of the house: lengths, layers, unsafe code, globals
    Tidy,
}

fn main() -> ExitCode {
    let ok = match Xtask::parse().task {
        Task::Test { only } => Suite::new(Effort::Usual).run(&only),
        Task::Full => Suite::new(Effort::Full).run_and_record(),
        Task::Loom => Suite::new(Effort::Usual).run_one(budget::UNIT, stages::loom),
        Task::Asan => Suite::new(Effort::Usual).run_one(budget::ASAN, stages::asan),
        Task::Man => man::write(),
        Task::Tidy => {
            let complaints = tidy::check(&command::root());
            complaints.iter().for_each(|c| println!("{c}"));
            println!("{} complaints", complaints.len());
            complaints.is_empty()
        }
    };
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
