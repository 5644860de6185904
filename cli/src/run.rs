//! `argonet run`: the command line of the launcher.
//!
//! Its work is in [`argonet_boot::launch`].

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use argonet_boot::{HostOptions, LaunchOptions, launch};
use argonet_settings::{OnRankLost, Settings, VERBOSE_ENV};
use clap::Args;

/// Run a program as a job of several ranks, on this host or on several
#[derive(Args)]
pub(crate) struct Run {
    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N")]
    ranks: u64,
    /// Conduit that the ranks communicate through [default: ARGONET_CONDUIT, else smp]
    #[arg(long, value_name = "NAME")]
    conduit: Option<String>,
    /// Pin rank r to the (r modulo n)-th of the n cores that this process may use
    #[arg(long)]
    bind: bool,
    /// Put "[rank] " before each line of the ranks' output
    #[arg(long)]
    tag_output: bool,
    /// After this many seconds print what each rank waits for, kill the job and exit with code 124
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// What becomes of the job when a rank dies; `continue` takes programs with a handler for lost
    /// ranks [default: ARGONET_ON_RANK_LOST, else end]
    #[arg(long, value_name = "end|continue", value_parser = on_rank_lost)]
    on_rank_lost: Option<OnRankLost>,
    /// Hosts with the number of ranks that each takes; ranks are spread evenly if no numbers are
    /// given
    #[arg(
        short = 'H',
        long,
        value_name = "HOST[:N],...",
        conflicts_with = "hostfile"
    )]
    hosts: Option<String>,
    /// File with a host a line
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// Variables that ranks on other hosts get as they are here, even if they are set there
    #[arg(
        short = 'E',
        long = "env",
        value_name = "NAME,...",
        value_delimiter = ','
    )]
    propagate: Vec<String>,
    /// Program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG"
    )]
    command: Vec<OsString>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse::<f64>().ok().filter(|s| *s > 0.0);
    positive
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
        .ok_or_else(|| "a number of seconds above 0 is needed".into())
}

fn on_rank_lost(text: &str) -> Result<OnRankLost, String> {
    let known = OnRankLost::WORDS.join(" or ");
    OnRankLost::from_word(text).ok_or_else(|| format!("{known} is needed"))
}

/// The exit code for settings that cannot be used, as for other arguments that cannot be.
const BAD_SETTINGS: u8 = 2;

/// In one piece, since ranks of the job may write too.
fn say(what: &dyn Display) {
    let line = format!("argonet run: {what}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

impl Run {
    /// Runs the job; the exit code is the job's.
    pub(crate) fn execute(self) -> ExitCode {
        let mut command = self.command.into_iter();
        let options = LaunchOptions {
            ranks: self.ranks,
            program: command.next().unwrap_or_default(),
            args: command.collect(),
            conduit: self.conduit,
            bind: self.bind,
            tag_output: self.tag_output,
            timeout: self.timeout,
            on_rank_lost: self.on_rank_lost,
            hosts: HostOptions {
                hosts: self.hosts,
                file: self.hostfile,
                propagate: self.propagate,
                agent: Vec::new(),
            },
        };
        let settings = match Settings::from_environment() {
            Ok(settings) => settings,
            Err(error) => {
                // Every variable has its line.
                for bad in &error.bad {
                    say(bad);
                }
                return BAD_SETTINGS.into();
            }
        };
        // Rank 0 prints the settings that the ranks read; GASNET_VERBOSEENV itself is one of them.
        if settings.peek(&VERBOSE_ENV) {
            settings.announce(|line| eprintln!("{line}"));
        } else {
            settings.keep_quiet();
        }
        match launch(&options, &settings) {
            Ok(code) => code.into(),
            Err(error) => {
                say(&error);
                error.exit_code().into()
            }
        }
    }
}
