//! The conduits whose speed is measured, and how a process becomes one whose jobs use them.

use argonet_settings::{CONDUIT, CONDUITS, ConduitRow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The conduit of the ranks, and so the kind of the raw limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Over(&'static ConduitRow);

/// Each rank is a neighborhood of its own.
const ALONE: (&str, &str) = ("GASNET_SUPERNODE_MAXSIZE", "1");

impl Over {
    /// The conduit that a job has where nothing else is said.
    pub(crate) const DEFAULT: Self = Self(CONDUITS[0]);

    /// All that can be measured.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        CONDUITS.iter().map(|row| Self(row))
    }

    /// Takes the name of one from the command line.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        let value = |over: Self| PossibleValue::new(over.name()).help(over.0.about);
        let names = PossibleValuesParser::new(Self::all().map(value));
        names.map(|name| ConduitRow::named(&name).map_or(Self::DEFAULT, Self))
    }

    /// As the library calls it.
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether its ranks share memory, which the raw limits then use, too.
    pub(crate) fn shares_memory(self) -> bool {
        !self.0.leaves_neighborhoods
    }

    /// Whether its messages go in datagrams, which the raw limits then use, too.
    pub(crate) fn sends_datagrams(self) -> bool {
        self.0.sends_datagrams
    }

    /// Settings of jobs that use nothing else.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let conduit = (CONDUIT.name(), self.name());
        match self.shares_memory() {
            true => vec![conduit],
            false => vec![conduit, ALONE],
        }
    }

    /// Starts this program anew where its environment says otherwise: the jobs that it starts, and
    /// becomes, take their settings from there.
    ///
    /// Returns if there is nothing to change.
    pub(crate) fn enter(self) -> io::Result<()> {
        let is_set = |(name, value): &(&str, &str)| {
            let set = std::env::var_os(name);
            // Without a setting jobs share memory.
            set.map_or(self.shares_memory(), |set| set == *value)
        };
        let settings = self.settings();
        if settings.iter().all(is_set) {
            return Ok(());
        }
        let mut again = Command::new(std::env::current_exe()?);
        again.args(std::env::args_os().skip(1)).envs(settings);
        Err(again.exec())
    }
}
