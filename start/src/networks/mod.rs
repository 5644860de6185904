//! How a rank opens each conduit for ranks that share no memory with it.
//!
//! That is the one part of a conduit that is not in its folder: it takes the key store of a job,
//! by which the ranks learn each other's addresses.

mod addresses;
mod channel;
#[cfg(any(feature = "portals", feature = "usnic"))]
mod datagrams;
mod failover;
#[cfg(feature = "gni")]
mod gni;
#[cfg(not(all(
    feature = "portals",
    feature = "usnic",
    feature = "gni",
    feature = "ofi"
)))]
mod not_built;
#[cfg(feature = "ofi")]
mod ofi;
#[cfg(feature = "usnic")]
mod paths;
#[cfg(feature = "portals")]
mod portals;
mod silence;
mod tcp;
#[cfg(feature = "usnic")]
mod usnic;

use addresses::Wish;
use argonet_am::Registered;
use argonet_base::JobRank;
use argonet_boot::LocalJob;
use argonet_conduit::channel::AnyRail;
use argonet_conduit::failover::Member;
use argonet_conduit::selector;
use argonet_conduit::{SegmentLen, ThreadMode};
use argonet_segment::Directory;
use argonet_settings::{
    ConduitRow, GNI_ROW, OFI_ROW, PORTALS_ROW, RAILS, Settings, TCP_ROW, USNIC_ROW,
};
#[cfg(not(feature = "gni"))]
use not_built as gni;
#[cfg(not(feature = "ofi"))]
use not_built as ofi;
#[cfg(not(feature = "portals"))]
use not_built as portals;
#[cfg(not(feature = "usnic"))]
use not_built as usnic;
use std::sync::Arc;

/// Why something cannot be set up; the caller adds the rank and the conduit.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A conduit whose addresses this rank has published.
pub(crate) trait Opened {
    /// The conduit, after a fence; peers may use it after the next.
    fn conduit(self: Box<Self>, with: Connecting<'_>) -> Result<Connected, Cause>;
}

/// A check that ranks make together before the job starts: publishes and fences.
///
/// It blocks until another rank that it has failed for ends the job.
pub(crate) type StartCheck = Box<dyn FnOnce(&LocalJob) -> Result<(), Cause> + Send>;

/// A conduit.
pub(crate) struct Connected {
    pub(crate) network: selector::Network,
    /// After the next fence, if there is one.
    pub(crate) check: Option<StartCheck>,
}

impl From<selector::Network> for Connected {
    fn from(network: selector::Network) -> Self {
        Self {
            network,
            check: None,
        }
    }
}

/// What a rank has published of one of several rails; empty if it has not.
pub(crate) type PublishedOf = Arc<dyn Fn(JobRank) -> Vec<u8> + Send + Sync>;

/// One of several rails, of which this rank has published where it can be reached.
pub(crate) trait OpenedRail {
    /// Its rails to each peer, after a fence, and how many of them beside the first carry payloads.
    fn rails(
        self: Box<Self>,
        boot: &Arc<LocalJob>,
        published: PublishedOf,
    ) -> Result<(Box<dyn Member<Rail = AnyRail>>, u16), Cause>;
}

/// Opens one of several rails, at the interface that is wished, and gives what is to be published.
type RailOpener =
    fn(&LocalJob, &Settings, Option<&Wish>) -> Result<(Box<dyn OpenedRail>, Vec<u8>), Cause>;

const RAIL_OPENERS: [(&ConduitRow, RailOpener); 2] =
    [(&TCP_ROW, tcp::open_rail), (&USNIC_ROW, usnic::open_rail)];

/// Opens a conduit and publishes where this rank can be reached.
type Opener = fn(&LocalJob, &Settings) -> Result<Box<dyn Opened>, Cause>;

const OPENERS: [(&ConduitRow, Opener); 5] = [
    (&TCP_ROW, tcp::open),
    (&PORTALS_ROW, portals::open),
    (&USNIC_ROW, usnic::open),
    (&GNI_ROW, gni::open),
    (&OFI_ROW, ofi::open),
];

/// Opens the conduit of that name, if it is one for ranks that share no memory, or the rails that
/// the settings name in its place.
pub(crate) fn opener(conduit: &str, settings: &Settings) -> Option<Opener> {
    let of_name = OPENERS.iter().find(|(row, _)| row.name == conduit);
    let open = of_name.map(|(_, open)| *open)?;
    Some(match settings.get(&RAILS) {
        Some(_) => failover::open,
        None => open,
    })
}

/// Arguments for making a network's conduit.
pub(crate) struct Connecting<'a> {
    pub(crate) boot: &'a Arc<LocalJob>,
    pub(crate) mode: ThreadMode,
    pub(crate) directory: &'a Arc<Directory>,
    /// Segments of all ranks of the host, where the network moves data between them.
    pub(crate) reached: Option<Arc<Directory>>,
    pub(crate) registered: Registered,
    pub(crate) segment_len: &'a SegmentLen,
    pub(crate) processor_to_spare: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_settings::CONDUITS;

    #[test]
    fn every_conduit_beside_shared_memory_can_be_opened() {
        for row in CONDUITS {
            let settings = Settings::from_pairs([]).unwrap();
            assert_eq!(
                opener(row.name, &settings).is_some(),
                row.leaves_neighborhoods,
                "{}",
                row.name
            );
        }
    }
}
