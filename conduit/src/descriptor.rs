//! What programs can ask of each conduit before a job runs.

use crate::conduit::{Capabilities, Limits};
#[cfg(feature = "gni")]
use crate::gni;
#[cfg(feature = "ofi")]
use crate::ofi;
#[cfg(feature = "portals")]
use crate::portals;
#[cfg(feature = "usnic")]
use crate::usnic;
use crate::{smp, tcp};
use argonet_settings::{ConduitRow, Settings};

/// Facts in words: name and value of each.
pub type Facts = Vec<(&'static str, String)>;

/// A conduit as programs see it before a job runs; its folder has one.
///
/// A rank of a job opens the conduit by what `argonet-start` has for its name: that takes the key
/// store of the job, which stands above this crate.
#[derive(Debug)]
pub struct Descriptor {
    /// Name, reach, names for C programs and settings.
    pub row: &'static ConduitRow,
    /// Limits of messages where no setting changes its sizes.
    pub limits: fn() -> Limits,
    /// Operations that it does itself.
    pub capabilities: Capabilities,
    /// What it would do on this host with these settings, in a job of so many ranks.
    pub facts: fn(&Settings, u32) -> Facts,
}

/// The descriptors of the conduits that this crate was built with, in the order of
/// [`argonet_settings::CONDUITS`].
pub const DESCRIPTORS: &[&Descriptor] = &[
    &smp::DESCRIPTOR,
    &tcp::DESCRIPTOR,
    #[cfg(feature = "portals")]
    &portals::DESCRIPTOR,
    #[cfg(feature = "usnic")]
    &usnic::DESCRIPTOR,
    #[cfg(feature = "gni")]
    &gni::DESCRIPTOR,
    #[cfg(feature = "ofi")]
    &ofi::DESCRIPTOR,
];

#[cfg(all(
    test,
    feature = "portals",
    feature = "usnic",
    feature = "gni",
    feature = "ofi"
))]
mod tests {
    use super::*;
    use argonet_settings::CONDUITS;

    #[test]
    fn every_conduit_has_a_descriptor() {
        let rows: Vec<&ConduitRow> = DESCRIPTORS.iter().map(|one| one.row).collect();
        assert_eq!(rows, CONDUITS);
    }
}
