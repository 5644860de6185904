//! The `argonet` command.
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod doctor;
mod info;
mod perf;
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
    Info(info::Info),
    Perf(perf::Perf),
    Doctor(doctor::Doctor),
    /// The part of a job on one of its hosts; started by `argonet run`
    #[command(hide = true)]
    Agent,
}

fn main() -> ExitCode {
    match Argonet::parse().command {
        Command::Run(run) => run.execute(),
        Command::Info(info) => info.execute(),
        Command::Perf(perf) => perf.execute(),
        Command::Doctor(doctor) => doctor.execute(),
        Command::Agent => agent(),
    }
}

fn agent() -> ExitCode {
    match argonet_boot::agent(doctor::look) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("argonet agent: {error}");
            error.exit_code().into()
        }
    }
}
