//! Interfaces of a library of Portals 4, whose ranks learn each other's addresses from the key
//! store.

use crate::networks::Cause;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_conduit::portals::{Portals, PortalsConfig, PortalsSizes, portals4_config};
use argonet_conduit::selector;
use argonet_nic::portals::portals4::{Library, Opening, Portals4Config, ProcessId};
use argonet_settings::{PORTALS_MESSAGE, Settings};
use std::sync::Arc;

/// This rank's interface, without a map of ranks.
pub(super) struct Open {
    opening: Opening,
}

/// A rank has left no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "rank {peer} has published no address of Portals 4 but {got} bytes: does it have ARGONET_PORTALS_INTERFACE=portals4 and the same version of argonet?"
)]
struct NoAddress {
    peer: JobRank,
    got: usize,
}

impl Open {
    /// Makes the network interface of this process, and publishes where it is.
    pub(super) fn new(
        boot: &LocalJob,
        settings: &Settings,
        sizes: &PortalsSizes,
    ) -> Result<Self, Cause> {
        let library = Library::of_settings(settings)?;
        let asked = settings.get(&PORTALS_MESSAGE);
        let usual = portals4_config(sizes, boot.size())?;
        let config = Portals4Config {
            message_bytes: asked.map_or(usual.message_bytes, |bytes| bytes.0),
            ..usual
        };
        let opening = Opening::new(&library, boot.rank(), config)?;
        boot.publish(Key::Address, &opening.id().to_bits().to_le_bytes())?;
        Ok(Self { opening })
    }

    pub(super) fn conduit(
        self,
        boot: &LocalJob,
        config: PortalsConfig,
    ) -> Result<selector::Network, Cause> {
        let ranks: Vec<ProcessId> = (0..config.ranks)
            .map(|peer| address(boot, JobRank(peer)))
            .collect::<Result<_, Cause>>()?;
        let nic = self.opening.map(&ranks)?;
        Ok(Arc::new(Portals::over_own_memory(nic, config)?))
    }
}

fn address(boot: &LocalJob, peer: JobRank) -> Result<ProcessId, Cause> {
    let published = boot.lookup(peer, Key::Address)?;
    let bits = published.as_slice().try_into();
    let bits = bits.map_err(|_| NoAddress {
        peer,
        got: published.len(),
    })?;
    Ok(ProcessId::from_bits(u64::from_le_bytes(bits)))
}
