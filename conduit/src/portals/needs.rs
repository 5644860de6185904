//! How much of everything a rank's interface must have.

use super::config::PortalsSizes;
use super::roles;
use super::setup::{Depths, buffer_bytes};
use argonet_am::credit::PlanError;

/// Entries, descriptors and operations besides those that sizes say: of segments that have grown
/// several times while operations were under way.
const SPARE: u32 = 64;

pub(super) struct Needs {
    pub(super) portals: u32,
    pub(super) entries: u32,
    pub(super) descriptors: u32,
    pub(super) queues: u32,
    pub(super) queue_events: u64,
    pub(super) counters: u32,
    /// Operations that events will report.
    pub(super) operations: u32,
    /// Of buffers that peers reach.
    pub(super) buffer_bytes: u64,
}

impl Needs {
    /// Of each of so many ranks, over interfaces whose messages are that long.
    pub(super) fn of(
        sizes: &PortalsSizes,
        ranks: u32,
        message_bytes: u64,
    ) -> Result<Self, PlanError> {
        let plan = sizes.plan(ranks)?;
        let Depths {
            system,
            safe,
            requests,
        } = Depths::of(sizes, ranks, &plan, message_bytes);
        Ok(Self {
            portals: roles::PORTALS,
            entries: plan.space().buffers + 2 * sizes.large_buffers + SPARE,
            descriptors: sizes.temporaries + SPARE,
            queues: 3,
            queue_events: system.max(safe).max(requests),
            counters: 1,
            // One for each ticket, and a question and an answer of the system queue for each peer.
            operations: sizes
                .messages
                .saturating_add(ranks.saturating_mul(2))
                .saturating_add(SPARE),
            buffer_bytes: buffer_bytes(sizes, &plan),
        })
    }
}
