//! The way to ranks that do not share memory with this one through matching interfaces, set up
//! while the job starts.

mod portals4;
mod software;

use crate::error::{Result, StartError};
use crate::network::{Connecting, statistics};
use argonet_base::{JobRank, Rank};
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::portals::{NAME, PortalsConfig, PortalsSizes};
use argonet_conduit::selector;
use argonet_settings::{PORTALS_INTERFACE, Settings};
use std::path::PathBuf;
use std::sync::Arc;

/// Why something cannot be set up; the caller adds the rank and the conduit.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An interface that this rank has opened, and that knows no peers yet.
pub(crate) struct Open {
    sizes: PortalsSizes,
    interface: Interface,
    /// Where statistics of credits go when the rank ends.
    pub(crate) statistics: Option<PathBuf>,
}

/// The interface that the settings name.
enum Interface {
    Software(Box<software::Open>),
    Portals4(Box<portals4::Open>),
}

fn failed(rank: JobRank) -> impl Fn(Cause) -> StartError + Copy + use<> {
    move |cause| StartError::Network {
        rank: Rank(rank.0),
        conduit: NAME,
        cause,
    }
}

impl Open {
    /// Opens the interface that the settings name, and publishes its address for the peers.
    pub(crate) fn new(boot: &LocalJob, settings: &Settings) -> Result<Self> {
        let failed = failed(boot.rank());
        let sizes = PortalsSizes::from_settings(settings).map_err(|error| failed(error.into()))?;
        let interface = match settings.get(&PORTALS_INTERFACE) {
            "portals4" => {
                let open = portals4::Open::new(boot, settings, &sizes);
                Interface::Portals4(Box::new(open.map_err(failed)?))
            }
            name => {
                let open = software::Open::new(boot, settings, &sizes, name == "udp");
                Interface::Software(Box::new(open.map_err(failed)?))
            }
        };
        Ok(Self {
            sizes,
            interface,
            statistics: statistics(settings, boot.rank()),
        })
    }

    /// The conduit over this rank's interface, after a fence.
    ///
    /// Peers may use it after the next.
    pub(crate) fn conduit(self, with: Connecting<'_>) -> Result<selector::Network> {
        let boot = with.boot;
        let failed = failed(boot.rank());
        let reached = with.reached.unwrap_or_else(|| Arc::clone(with.directory));
        let config = PortalsConfig {
            rank: boot.rank(),
            ranks: boot.size(),
            mode: with.mode,
            sizes: self.sizes,
            directory: Arc::clone(with.directory),
            reached,
            registered: with.registered,
            segment_len: Arc::clone(with.segment_len),
        };
        match self.interface {
            Interface::Software(open) => open.conduit(boot, config),
            Interface::Portals4(open) => open.conduit(boot, config),
        }
        .map_err(failed)
    }
}
