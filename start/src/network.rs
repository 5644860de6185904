//! The network that a rank reaches the ranks by that share no memory with it, from the start of a
//! job to its end.

use crate::error::{Result, StartError};
use crate::networks::{Cause, Connected, Connecting, Opened, opener};
use crate::process;
use crate::published::Reaches;
use argonet_base::{JobRank, Rank};
use argonet_boot::{BootError, Bootstrap, LocalJob};
use argonet_conduit::selector;
use argonet_conduit::{ExitCounts, Gauges};
use argonet_settings::{CONDUIT, CREDITS_FILE, Letter, PORTAL_CREDIT_STATS, Settings};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A network that this rank has opened.
///
/// The other ranks know its addresses after the next fence.
pub(crate) struct Network {
    conduit: &'static str,
    opened: Box<dyn Opened>,
    /// Where statistics of credits go when the rank ends.
    statistics: Option<PathBuf>,
}

/// What ranks check together before the job starts.
pub(crate) type StartCheck = Box<dyn FnOnce(&LocalJob) -> Result<()> + Send>;

/// Makes the call that reports to a network that more of this rank's segment may be reached.
pub(crate) fn reaches(network: &selector::Network, rank: Rank) -> Reaches {
    let network = Arc::downgrade(network);
    Box::new(move || {
        let Some(network) = network.upgrade() else {
            return Ok(());
        };
        let (conduit, grown) = (network.name(), network.segment_grown());
        grown.map_err(|cause| StartError::Network {
            rank,
            conduit,
            cause: cause.into(),
        })
    })
}

/// An error of the job's start, such as of its key store, is not the network's.
fn failed(rank: JobRank, conduit: &'static str, cause: Cause) -> StartError {
    match cause.downcast::<BootError>() {
        Ok(error) => StartError::Boot(*error),
        Err(cause) => StartError::Network {
            rank: Rank(rank.0),
            conduit,
            cause,
        },
    }
}

impl Network {
    /// Opens the network that the settings name, where one is needed, and publishes where this rank
    /// can be reached.
    pub(crate) fn open(boot: &LocalJob, settings: &Settings) -> Result<Option<Self>> {
        if boot.neighborhood().len() == boot.size() as usize {
            return Ok(None);
        }
        let conduit = settings.get(&CONDUIT);
        let Some(open) = opener(conduit, settings) else {
            boot.all_share_memory(conduit)?;
            return Ok(None);
        };
        let opened = open(boot, settings).map_err(|cause| failed(boot.rank(), conduit, cause))?;
        Ok(Some(Self {
            conduit,
            opened,
            statistics: statistics(settings, boot.rank()),
        }))
    }

    /// The conduit over it, after a fence, and a check for after the next one.
    pub(crate) fn conduit(
        self,
        with: Connecting<'_>,
    ) -> Result<(selector::Network, Option<StartCheck>)> {
        let Self {
            conduit,
            opened,
            statistics,
        } = self;
        let rank = with.boot.rank();
        let boot = Arc::downgrade(with.boot);
        let connected = opened.conduit(with);
        let Connected { network, check } =
            connected.map_err(|cause| failed(rank, conduit, cause))?;
        publish_summary(&network);
        let (last, gauges) = (Arc::downgrade(&network), network.gauges());
        process::at_end(Box::new(move || {
            // This rank may have left a barrier while messages that others wait for there still
            // wait for their connection.
            if let Some(network) = last.upgrade() {
                let job = boot.upgrade();
                let limit = job.map_or(Duration::MAX, |job| job.exit_grace());
                network.exit_grace(limit);
            }
            if let Some(path) = &statistics {
                write_statistics(gauges.as_deref(), rank, path);
            }
        }));
        let check = check.map(|check| -> StartCheck {
            Box::new(move |boot| check(boot).map_err(|cause| failed(rank, conduit, cause)))
        });
        Ok((network, check))
    }
}

/// Where statistics of credits go, if anywhere.
fn statistics(settings: &Settings, rank: JobRank) -> Option<PathBuf> {
    let of_portals = || {
        let wanted = settings.get(&PORTAL_CREDIT_STATS);
        wanted.then(|| PathBuf::from("gasnet_credits.%"))
    };
    let pattern = settings.get(&CREDITS_FILE).or_else(of_portals)?;
    let text = pattern.to_string_lossy();
    Some(text.replace('%', &rank.to_string()).into())
}

fn write_statistics(gauges: Option<&Gauges>, rank: JobRank, path: &Path) {
    let text = match gauges {
        Some(gauges) => gauges.report().to_string(),
        None => format!("rank {rank}: there is no flow control by credits (ARGONET_CREDITS)\n"),
    };
    if let Err(error) = std::fs::write(path, text) {
        let path = path.display();
        eprintln!(
            "argonet: rank {rank} cannot write statistics of credits to {path} (ARGONET_CREDITS_FILE): {error}"
        );
    }
}

/// Writes the memory kept for connections, the peers that have connected, and the exits sent and
/// received into the rank's statistics.
fn publish_summary(network: &selector::Network) {
    let network = Arc::downgrade(network);
    argonet_trace::on_summary_of_library(Box::new(move || {
        let Some(network) = network.upgrade() else {
            return;
        };
        if let Some(all) = network.connections() {
            argonet_trace::count_text(Letter::Conduit, &format!("connections of {all}"));
        }
        if let Some(all) = network.rail_report() {
            argonet_trace::count_text(Letter::Conduit, &format!("rails of {all}"));
        }
        if let Some(all) = network.datagrams() {
            argonet_trace::count_text(Letter::Conduit, &format!("datagrams of {all}"));
        }
        if let Some(exits) = network.exits().filter(|all| *all != ExitCounts::default()) {
            argonet_trace::count_text(Letter::Conduit, &format!("exits: {exits}"));
        }
    }));
}

/// Reports the end of the job, and follows reports of others, over a network's system queue.
// spec P13: shutdown on the system queue.
pub(crate) fn follow_exits(network: &selector::Network, boot: &Arc<LocalJob>) {
    let job = Arc::clone(boot);
    network.on_exit(Box::new(move |from, code| {
        argonet_trace::note_with(Letter::Conduit, || {
            format!("rank {from} says over the system queue that it exits with code {code}")
        });
        job.heard_exit(from, code);
    }));
    let network = Arc::downgrade(network);
    process::report_exits_by(Box::new(move |exit| {
        let network = network.upgrade();
        network.is_none_or(|network| network.report_exit(exit))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_boot::Key;

    #[test]
    fn errors_of_the_key_store_stay_its_own() {
        let (rank, key, bytes) = (JobRank(3), Key::Address, 1 << 20);
        let error = BootError::ValueTooLong { rank, key, bytes };
        let text = error.to_string();
        let failed_by = |cause| failed(rank, "wire", cause);
        let own = failed_by(error.into());
        assert!(
            matches!(own, StartError::Boot(_)) && own.to_string() == text,
            "{own}"
        );
        let other = failed_by("no address".into());
        let text = "rank 3: the conduit wire cannot be set up: no address";
        assert!(matches!(other, StartError::Network { .. }), "{other}");
        assert_eq!(other.to_string(), text);
    }
}
