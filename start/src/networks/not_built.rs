//! Conduits that this program was built without.

use super::addresses::Wish;
use super::{Cause, Opened, OpenedRail};
use argonet_boot::LocalJob;
use argonet_settings::Settings;

// The caller adds the name of the conduit.
const NOT_BUILT: &str = "this program was built without it; enable the feature of that name of the \
     crate argonet in its Cargo.toml, which is on by default";

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
