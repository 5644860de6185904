//! Settings of credits: argonet's own names come before those of GASNet's Portals conduit.

use argonet_am::credit::Wishes;
use argonet_settings as settings;
use argonet_settings::Settings;

/// What the settings say; `None` is for a network's own preset.
pub(crate) struct CreditSettings {
    /// Whether requests are paid with credits.
    pub(crate) are_on: bool,
    /// Whether credits move to the peers that want them.
    pub(crate) dynamic: bool,
    /// By argonet's rules; if not, by those of the Portals text.
    pub(crate) mended: bool,
    /// Most that one peer may have.
    pub(crate) most: Option<u32>,
    /// Requests received that end an epoch.
    pub(crate) epoch_requests: Option<u32>,
    pub(crate) wishes: Wishes,
}

impl CreditSettings {
    pub(crate) fn read(given: &Settings) -> Self {
        let number = |own: Option<u64>, of_portals: Option<u64>| own.or(of_portals).map(number);
        let are_on = given.get(&settings::CREDITS_ON);
        let dynamic = given.get(&settings::CREDITS_MOVE);
        let space = given.get(&settings::CREDITS_SPACE);
        let space = space.or_else(|| given.get(&settings::PORTAL_AMRECV_SPACE));
        Self {
            are_on: are_on
                .or_else(|| given.get(&settings::PORTAL_FLOW_CONTROL))
                .unwrap_or(true),
            dynamic: dynamic
                .or_else(|| given.get(&settings::PORTAL_DYNAMIC_CREDITS))
                .unwrap_or(true),
            mended: given.get(&settings::CREDITS_MENDED),
            most: number(
                given.get(&settings::CREDITS_MOST),
                given.get(&settings::PORTAL_MAX_CRED_PER_NODE),
            ),
            epoch_requests: number(
                given.get(&settings::CREDITS_EPOCH),
                given.get(&settings::PORTAL_EPOCH_DURATION),
            ),
            wishes: Wishes {
                share: number(
                    given.get(&settings::CREDITS_SHARE),
                    given.get(&settings::PORTAL_CRED_PER_NODE),
                ),
                bank: number(
                    given.get(&settings::CREDITS_BANK),
                    given.get(&settings::PORTAL_BANKED_CREDITS),
                ),
                space_bytes: space.map(|bytes| bytes.0),
            },
        }
    }
}

/// A number of a setting; the table of settings allows none beyond 32 bits.
pub(crate) fn number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
