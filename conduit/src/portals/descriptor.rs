//! The descriptor of matching interfaces.

use super::{CAPABILITIES, LIMITS, PortalsSizes, software_config};
use crate::descriptor::{Descriptor, Facts};
use argonet_base::JobRank;
use argonet_base::size::HumanSize;
use argonet_settings::{PORTALS_ROW, Settings};

/// The conduit portals.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &PORTALS_ROW,
    limits: || LIMITS,
    capabilities: CAPABILITIES,
    facts,
};

fn facts(settings: &Settings, ranks: u32) -> Facts {
    let refused = |why: String| format!("no job can start: {why}");
    let sizes = PortalsSizes::from_settings(settings).map_err(|error| error.to_string());
    let plan = sizes.clone().and_then(|sizes| {
        let plan = sizes.plan(ranks).map_err(|error| error.to_string())?;
        Ok(match sizes.flow_control {
            true => plan.to_string(),
            false => format!(
                "{} bytes of a rank; a request without room is sent again: there are no credits (ARGONET_CREDITS)",
                plan.space().bytes()
            ),
        })
    });
    let memory = sizes.and_then(|sizes| {
        let config = software_config(&sizes, JobRank(0), ranks);
        let own = config.map_err(|error| error.to_string())?.arena_bytes;
        Ok(format!(
            "{} of a rank, {} of {ranks} ranks of one host; untouched pages take no memory",
            HumanSize(own),
            HumanSize(own * u64::from(ranks))
        ))
    });
    vec![
        ("requests that wait", plan.unwrap_or_else(refused)),
        ("buffers", memory.unwrap_or_else(refused)),
    ]
}
