//! The conduits whose speed is measured, and how a process becomes one whose jobs use them.

use argonet_conduit::portals;
use argonet_conduit::smp::Smp;
use argonet_conduit::tcp::Tcp;
use argonet_conduit::usnic;
use clap::ValueEnum;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The conduit of the ranks, and so the kind of the raw limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Over {
    /// Memory that they share.
    Smp,
    /// Connections on the loopback interface, also between ranks of one host.
    Tcp,
    /// Interfaces in software, also between ranks of one host.
    Portals,
    /// Datagrams on the loopback interface, also between ranks of one host.
    Usnic,
}

/// Each rank is a neighborhood of its own.
const ALONE: (&str, &str) = ("GASNET_SUPERNODE_MAXSIZE", "1");

impl Over {
    /// As the library calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Over::Smp => Smp::NAME,
            Over::Tcp => Tcp::NAME,
            Over::Portals => portals::NAME,
            Over::Usnic => usnic::NAME,
        }
    }

    /// Settings of jobs that use nothing else.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let conduit = ("ARGONET_CONDUIT", self.name());
        match self {
            Over::Smp => vec![conduit],
            Over::Tcp | Over::Portals | Over::Usnic => vec![conduit, ALONE],
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
            set.map_or(self == Over::Smp, |set| set == *value)
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
