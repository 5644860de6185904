//! Matching interfaces.

mod portals4;
mod software;

use super::{Cause, Connected, Connecting, Opened};
use argonet_boot::{Bootstrap, LocalJob};
use argonet_conduit::portals::{PortalsConfig, PortalsSizes};
use argonet_settings::{PORTALS_INTERFACE, Settings};
use std::sync::Arc;

/// An interface that this rank has opened, and that knows no peers yet.
struct Open {
    sizes: PortalsSizes,
    interface: Interface,
}

/// The interface that the settings name.
enum Interface {
    Software(Box<software::Open>),
    Portals4(Box<portals4::Open>),
}

/// Opens the interface that the settings name, and publishes its address for the peers.
pub(super) fn open(boot: &LocalJob, settings: &Settings) -> Result<Box<dyn Opened>, Cause> {
    let sizes = PortalsSizes::from_settings(settings)?;
    let interface = match settings.get(&PORTALS_INTERFACE) {
        "portals4" => {
            let open = portals4::Open::new(boot, settings, &sizes)?;
            Interface::Portals4(Box::new(open))
        }
        name => {
            let open = software::Open::new(boot, settings, &sizes, name == "udp")?;
            Interface::Software(Box::new(open))
        }
    };
    Ok(Box::new(Open { sizes, interface }))
}

impl Opened for Open {
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause> {
        let boot = with.boot;
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
        let network = match self.interface {
            Interface::Software(open) => open.conduit(boot, config),
            Interface::Portals4(open) => open.conduit(boot, config),
        };
        Ok(network?.into())
    }
}
