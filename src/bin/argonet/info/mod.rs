//! `argonet info`: what argonet knows. One file for each topic.

use std::process::ExitCode;

use clap::{ArgGroup, Args};

mod settings;

/// Show what argonet knows
#[derive(Args)]
#[command(group = ArgGroup::new("topic").required(true))]
pub(crate) struct Info {
    /// Environment variables, with the values that hold here
    #[arg(long, group = "topic")]
    settings: bool,
    /// In Markdown, without values
    #[arg(long, requires = "settings", conflicts_with = "man")]
    markdown: bool,
    /// As a manual page, without values
    #[arg(long, requires = "settings")]
    man: bool,
}

impl Info {
    /// Prints the topic asked for.
    pub(crate) fn execute(self) -> ExitCode {
        // The one topic, which clap has made sure of.
        debug_assert!(self.settings);
        settings::print(self.markdown, self.man)
    }
}
