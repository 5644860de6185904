//! argonet's own commands: `cargo xtask test` is the one to know.
#![forbid(unsafe_code)]

mod asan;
mod book;
mod budget;
mod command;
mod counts;
mod counts_c;
mod features;
mod fuzz;
mod install;
mod items;
mod lines;
mod man;
mod mutants;
mod numbers;
mod oldest;
mod outside;
mod perf;
mod pinned;
mod record;
mod sizes;
mod stages;
mod suite;
mod tally;
mod tidy;
mod tools;
mod tsan;
mod tsan_c;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::time::Duration;
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
    /// Run all tests, stage by stage; those that want what this machine lacks are skipped, and
    /// named
    Test {
        /// Run only this stage (build, unit, seeds, conformance, jobs, networks, c, asan); may be
        /// given several times
        #[arg(long, value_name = "STAGE")]
        only: Vec<String>,
    },
    /// Lint, and run the tests that are quick, before a commit: at most 8 minutes on two processors
    /// once the tree is built
    Check,
    /// Run all tests as .ci/run does: as `test`, but each stage and the whole run have a time
    /// limit, and only so many tests may be skipped
    Ci,
    /// Install the Debian packages of programs that tests want and this machine lacks (as root)
    Setup {
        /// Only say what would be installed
        #[arg(long)]
        dry_run: bool,
    },
    /// Run all tests at full counts, ThreadSanitizer and libFuzzer, and record each stage's result
    /// in docs/test-results.md
    Full {
        /// Run only this stage (those of `test`, tsan, fuzz); may be given several times
        #[arg(long, value_name = "STAGE")]
        only: Vec<String>,
    },
    /// Run the loom models
    Loom,
    /// Run unit tests under AddressSanitizer
    Asan,
    /// Count the instructions of the fast paths and compare them with benches/counts.toml
    Counts {
        /// Record them instead
        #[arg(long)]
        record: bool,
    },
    /// Compare the bytes of an installed release, and of a program for C, with their limits
    Sizes,
    /// Measure with a release build, from Rust and from C, and print the tables of
    /// docs/performance.md
    Perf(perf::Options),
    /// Run tests of threads under ThreadSanitizer
    Tsan,
    /// Let libFuzzer look for inputs that break a promise
    Fuzz {
        /// Only this target, a directory of fuzz/corpus; may be given several times
        #[arg(long, value_parser = fuzz::known)]
        target: Vec<String>,
        /// Seconds for each target
        #[arg(long, default_value_t = budget::FUZZ_SECONDS)]
        seconds: u64,
    },
    /// Print the table of protocol items: where each is in the code and in tests
    Items(items::Options),
    /// Run the executables of a directory and write a table of results: for suites that live
    /// outside of this repository (docs/conformance.md)
    Conformance(outside::Options),
    /// Install headers, libraries, launchers and files for build systems, for C (docs/c-api.md)
    Install(install::Options),
    /// Take an installation away again, and nothing else
    Uninstall(install::UninstallOptions),
    /// Change the code of protocol parts in small ways, by cargo-mutants, and look whether a test
    /// fails
    Mutants {
        /// Only this part: am, event, segment or stream; may be given several times
        #[arg(long, value_parser = mutants::known)]
        part: Vec<String>,
        /// Only one of several shares of the changes, as 0/4
        #[arg(long, value_name = "K/N")]
        shard: Option<String>,
    },
    /// Make the book's pages in target/book, by mdBook, which is built first
    Book,
    /// Write the manual pages that are made from tables
    Man,
    /// Write the constants of the headers from the table of GASNet's numbers, base/gasnet.tsv
    Numbers(numbers::Options),
    /// Count lines of code, without comments and tests, by crate and by part of the conduits
    Lines(lines::Options),
    /// Check the rules of the house: lengths, layers, words, unsafe code, globals, commits
    Tidy,
}

fn main() -> ExitCode {
    let ok = match Xtask::parse().task {
        Task::Test { only } => Suite::new(Effort::Usual).run(&only),
        Task::Check => Suite::new(Effort::Usual).run_one(budget::CHECK, stages::check),
        Task::Ci => Suite::new(Effort::Ci).within(budget::WHOLE).run(&[]),
        Task::Setup { dry_run } => tools::setup(dry_run),
        Task::Full { only } => Suite::new(Effort::Full).run_and_record(&only),
        Task::Loom => Suite::new(Effort::Usual).run_one(budget::UNIT, stages::loom),
        Task::Asan => Suite::new(Effort::Usual).run_one(budget::ASAN, asan::asan),
        Task::Counts { record } => {
            let stage = if record {
                counts::record
            } else {
                counts::check
            };
            Suite::new(Effort::Usual).run_one(budget::C, stage)
        }
        Task::Sizes => Suite::new(Effort::Full).run_one(budget::C, sizes::check),
        Task::Perf(options) => perf::perf(&options),
        Task::Tsan => Suite::new(Effort::Usual).run_one(budget::TSAN, tsan::tsan),
        Task::Fuzz { target, seconds } => {
            let names = if target.is_empty() {
                fuzz::targets()
            } else {
                target
            };
            let time = Duration::from_secs(seconds);
            // As long as the user says.
            Suite::new(Effort::Full).run_one(budget::FUZZ, |run| fuzz::each(run, &names, time))
        }
        Task::Mutants { part, shard } => {
            Suite::new(Effort::Usual).run_one(budget::MUTANTS, |run| {
                mutants::each(run, &part, shard.as_deref());
            })
        }
        Task::Book => Suite::new(Effort::Usual).run_one(budget::BUILD, book::build),
        Task::Items(options) => items::items(options),
        Task::Conformance(options) => outside::conformance(&options),
        Task::Install(options) => install::install(&options),
        Task::Uninstall(options) => install::uninstall(&options),
        Task::Man => man::write(),
        Task::Numbers(options) => numbers::numbers(&options),
        Task::Lines(options) => lines::lines(&options),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_the_table_of_the_page() {
        let page = command::root().join("docs/testing.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for command in Xtask::command().get_subcommands() {
            let cell = format!("| `cargo xtask {}", command.get_name());
            let found = page.lines().any(|line| {
                let rest = line.strip_prefix(&cell);
                rest.is_some_and(|rest| rest.starts_with(['`', ' ']))
            });
            assert!(
                found,
                "docs/testing.md has no line of {}",
                command.get_name()
            );
        }
    }
}
