//! Conduits that this program was built without.

use super::addresses::Wish;
use super::{Cause, Opened, OpenedRail};
use argonet_boot::LocalJob;
use argonet_settings::Settings;

// The caller adds the name of the conduit.
const NOT_BUILT: &str = "this program was built without it: add the feature of that name, which is on by default, to \
     the crate argonet in the program's Cargo.toml";

pub(super) fn open(_: &LocalJob, _: &Settings) -> Result<Box<dyn Opened>, Cause> {
    Err(NOT_BUILT.into())
}

pub(super) fn open_rail(
    _: &LocalJob,
    _: &Settings,
    _: Option<&Wish>,
) -> Result<(Box<dyn OpenedRail>, Vec<u8>), Cause> {
    Err(NOT_BUILT.into())
}
