//! What programs can ask of each conduit before a job runs.

use crate::conduit::{Capabilities, Limits};
use crate::{ofi, portals, smp, tcp, usnic};
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

/// The descriptors of all conduits, in the order of [`argonet_settings::CONDUITS`].
pub const DESCRIPTORS: &[&Descriptor] = &[
    &smp::DESCRIPTOR,
    &tcp::DESCRIPTOR,
    &portals::DESCRIPTOR,
    &usnic::DESCRIPTOR,
    &ofi::DESCRIPTOR,
];

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_settings::CONDUITS;

    #[test]
    fn every_conduit_has_a_descriptor() {
        let rows: Vec<&ConduitRow> = DESCRIPTORS.iter().map(|one| one.row).collect();
        assert_eq!(rows, CONDUITS);
    }
}
