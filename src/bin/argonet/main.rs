//! The `argonet` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod run;

/// Starts and examines argonet jobs.
#[derive(Parser)]
#[command(name = "argonet", version)]
struct Argonet {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
}

fn main() -> ExitCode {
    match Argonet::parse().command {
        Command::Run(run) => run.execute(),
    }
}
