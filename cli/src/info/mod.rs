//! `argonet info`: facts about argonet, this host and live jobs.
//!
//! One file for each topic.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use argonet_conduit::failover::{RAILS_FILE_NAME, RailReport};
use argonet_conduit::{CONNECTIONS_FILE_NAME, Connections};
use argonet_conduit::{CREDITS_FILE_NAME, CreditReport, DATAGRAMS_FILE_NAME, Datagrams};
use argonet_settings::{MAX_LOCAL_RANKS, Reach, Settings};
use clap::Args;
use clap::builder::RangedU64ValueParser;

mod conduits;
mod host;
mod live;
mod settings;

const CREDITS: live::Kind = (CREDITS_FILE_NAME, |bytes| {
    Some(CreditReport::read(bytes)?.to_string())
});

const CONNECTIONS: live::Kind = (CONNECTIONS_FILE_NAME, |bytes| {
    Some(Connections::read(bytes)?.to_string())
});

const DATAGRAMS: live::Kind = (DATAGRAMS_FILE_NAME, |bytes| {
    Some(Datagrams::read(bytes)?.to_string())
});

const RAILS: live::Kind = (RAILS_FILE_NAME, |bytes| {
    Some(RailReport::read(bytes)?.to_string())
});

/// Facts of a topic: name and value, in order.
type Facts = Vec<(&'static str, String)>;

/// Show what argonet finds on this host and would do there: conduits, memory, waiting
#[derive(Args)]
pub(crate) struct Info {
    /// Ranks of the job that is spoken of
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value = "2",
        conflicts_with = "settings"
    )]
    #[arg(value_parser = RangedU64ValueParser::<u32>::new().range(1..=u64::from(MAX_LOCAL_RANKS)))]
    ranks: u32,
    /// Environment variables instead, with the values that hold here
    #[arg(long)]
    settings: bool,
    /// Credits of live jobs over a conduit between hosts instead: held, in use, stalled, lent,
    /// banked
    #[arg(long, conflicts_with = "settings", group = "live")]
    credits: bool,
    /// Connections of such jobs instead: peers used, memory kept for them, and accepted
    /// connections, of the job or of strangers; over portals, dropped datagrams by reason
    #[arg(long, conflicts_with = "settings", group = "live")]
    connections: bool,
    /// Rails of live jobs with ARGONET_RAILS instead: peers to which each carries messages, and
    /// losses by reason since the rank has started
    #[arg(long, conflicts_with = "settings", group = "live")]
    rails: bool,
    /// Only of this process and those that it has started
    #[arg(long, value_name = "PID", requires = "live")]
    pid: Option<u32>,
    /// In Markdown, without values
    #[arg(long, requires = "settings", conflicts_with = "man")]
    markdown: bool,
    /// As a manual page, without values
    #[arg(long, requires = "settings")]
    man: bool,
}

impl Info {
    /// Prints the requested facts.
    pub(crate) fn execute(self) -> ExitCode {
        let text = match self {
            Self { markdown: true, .. } => Ok(settings::markdown()),
            Self { man: true, .. } => Ok(settings::manual()),
            Self { settings: true, .. } => settings::text(),
            Self {
                credits: true, pid, ..
            } => Ok(live::text(&[CREDITS], ["uses credits", &over_hosts()], pid)),
            Self {
                connections: true,
                pid,
                ..
            } => Ok(live::text(
                &[CONNECTIONS, DATAGRAMS],
                ["makes connections", &over_hosts()],
                pid,
            )),
            Self {
                rails: true, pid, ..
            } => Ok(live::text(
                &[RAILS],
                ["has several rails", "with ARGONET_RAILS"],
                pid,
            )),
            Self { ranks, .. } => overview(ranks),
        };
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        };
        match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // The reader has read enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("argonet info: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Jobs with networks between their ranks, in words.
fn over_hosts() -> String {
    format!("over {} (--conduit)", Reach::over_hosts())
}

fn overview(ranks: u32) -> argonet_start::Result<String> {
    let settings = Settings::from_environment()?;
    let mut text = format!("argonet {}\n", env!("CARGO_PKG_VERSION"));
    let conduits = conduits::facts(&settings, ranks).into_iter();
    let conduits = conduits.map(|(name, facts)| (format!("conduit {name}"), facts));
    let host = host::facts(ranks)?.map(|(name, facts)| (name.to_owned(), facts));
    let (launcher, _) = argonet_boot::launcher_here(&settings);
    let start = ("start".to_owned(), vec![("other launcher", launcher)]);
    for (name, facts) in conduits.chain(host).chain([start]) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{name}");
        for (what, value) in facts {
            let _ = writeln!(text, "  {what}: {value}");
        }
    }
    Ok(text)
}
