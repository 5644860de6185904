//! The conduits that a job can choose: what the lowest crates must know of each, and the settings
//! that are its own.
//!
//! The values of `ARGONET_CONDUIT`, the launcher and the installer need a conduit's name and reach
//! and stand below its code, whose descriptor (`argonet_conduit::Descriptor`) begins with the row
//! from here.

mod gni;
mod ofi;
mod portals;
mod row;
mod smp;
mod tcp;
mod usnic;

pub use gni::*;
pub use ofi::*;
pub use portals::*;
pub use row::{ConduitRow, LinkName};
pub use smp::*;
pub use tcp::*;
pub use usnic::*;

/// The conduits that a job can choose; the first is the default.
pub const CONDUITS: &[&ConduitRow] = &[
    &SMP_ROW,
    &TCP_ROW,
    &PORTALS_ROW,
    &USNIC_ROW,
    &GNI_ROW,
    &OFI_ROW,
];

/// Their names.
pub const CONDUIT_NAMES: [&str; CONDUITS.len()] = {
    let mut names = [""; CONDUITS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = CONDUITS[at].name;
        at += 1;
    }
    names
};
