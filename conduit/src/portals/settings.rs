//! Settings of users (spec P15).

use super::config::PortalsSizes;
use crate::credit_settings::{CreditSettings, number};
use argonet_am::credit::{Mends, Rules};
use argonet_settings as settings;
use argonet_settings::Settings;

/// A setting that this conduit cannot follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "GASNET_PORTAL_ACCEL is 1, and there are no accelerated Portals: they were a part of Sandia's Catamount; unset it"
)]
pub struct Accelerated;

impl PortalsSizes {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`Accelerated`].
    pub fn from_settings(given: &Settings) -> Result<Self, Accelerated> {
        if given.get(&settings::PORTAL_ACCEL) {
            return Err(Accelerated);
        }
        let said = CreditSettings::read(given);
        let preset = Rules::default();
        Ok(Self {
            messages: number(given.get(&settings::PORTAL_MSG_LIMIT)),
            temporaries: number(given.get(&settings::PORTAL_NUM_TMPMD)),
            packed_longs: given.get(&settings::PORTAL_PACKED_LONG),
            flow_control: said.are_on,
            send_chunks: number(given.get(&settings::PORTAL_SB_CHUNKS)),
            reply_chunks: number(given.get(&settings::PORTAL_RPL_CHUNKS)),
            safe_events: number(given.get(&settings::PORTAL_SAFE_LIMIT)),
            am_events: number(given.get(&settings::PORTAL_AM_LIMIT)),
            system_events: number(given.get(&settings::PORTAL_SYS_LIMIT)),
            rules: Rules {
                dynamic: said.dynamic,
                // A number beyond 16 bits is refused with the plan, as one below the least is.
                most: said
                    .most
                    .map_or(preset.most, |most| u16::try_from(most).unwrap_or(0)),
                epoch_requests: said.epoch_requests.unwrap_or(preset.epoch_requests),
                mends: match said.mended {
                    true => Mends::ALL,
                    false => Mends::NONE,
                },
                ..preset
            },
            wishes: said.wishes,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_am::credit::Wishes;

    fn of(pairs: &[(&str, &str)]) -> Result<PortalsSizes, Accelerated> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        PortalsSizes::from_settings(&Settings::from_pairs(pairs).unwrap())
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(of(&[]), Ok(PortalsSizes::default()));
    }

    #[test]
    fn accelerated_portals_are_an_error() {
        assert_eq!(of(&[("GASNET_PORTAL_ACCEL", "1")]), Err(Accelerated));
        assert!(of(&[("GASNET_PORTAL_ACCEL", "0")]).is_ok());
    }

    // spec P15
    #[test]
    fn every_setting_has_its_place() {
        let sizes = of(&[
            ("GASNET_PORTAL_MSG_LIMIT", "4"),
            ("GASNET_PORTAL_NUM_TMPMD", "5"),
            ("GASNET_PORTAL_PACKED_LONG", "0"),
            ("GASNET_PORTAL_FLOW_CONTROL", "0"),
            ("GASNET_PORTAL_DYNAMIC_CREDITS", "0"),
            ("GASNET_PORTAL_SB_CHUNKS", "6"),
            ("GASNET_PORTAL_RPL_CHUNKS", "7"),
            ("GASNET_PORTAL_SAFE_LIMIT", "8"),
            ("GASNET_PORTAL_AM_LIMIT", "9"),
            ("GASNET_PORTAL_SYS_LIMIT", "10"),
            ("GASNET_PORTAL_MAX_CRED_PER_NODE", "300"),
            ("GASNET_PORTAL_EPOCH_DURATION", "11"),
            ("GASNET_PORTAL_CRED_PER_NODE", "12"),
            ("GASNET_PORTAL_BANKED_CREDITS", "13"),
            ("GASNET_PORTAL_AMRECV_SPACE", "1M"),
        ]);
        let preset = PortalsSizes::default();
        let due = PortalsSizes {
            messages: 4,
            temporaries: 5,
            packed_longs: false,
            flow_control: false,
            send_chunks: 6,
            reply_chunks: 7,
            safe_events: 8,
            am_events: 9,
            system_events: 10,
            rules: Rules {
                dynamic: false,
                most: 300,
                epoch_requests: 11,
                ..preset.rules
            },
            wishes: Wishes {
                share: Some(12),
                bank: Some(13),
                space_bytes: Some(1 << 20),
            },
            ..preset
        };
        assert_eq!(sizes, Ok(due));
    }

    #[test]
    fn receive_space_keeps_to_its_setting() {
        for (ranks, space) in [
            (2, 256 << 10),
            (64, 512 << 10),
            (64, 4 << 20),
            (1000, 4 << 20),
        ] {
            let given = of(&[("GASNET_PORTAL_AMRECV_SPACE", &space.to_string())]).unwrap();
            let plan = given.plan(ranks).unwrap();
            let bytes = plan.space().bytes();
            assert!(bytes <= space, "{bytes} of {space} with {ranks} ranks");
            // It is made use of.
            assert!(
                2 * bytes >= space.min(2 << 20),
                "{bytes} of {space} with {ranks} ranks"
            );
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_with_the_sums() {
        let refused = |pairs: &[(&str, &str)]| {
            let plan = of(pairs).unwrap().plan(4);
            plan.unwrap_err().to_string()
        };
        let most = refused(&[("GASNET_PORTAL_MAX_CRED_PER_NODE", "3")]);
        assert!(
            most.contains("GASNET_PORTAL_MAX_CRED_PER_NODE) is 3"),
            "{most}"
        );
        let sums = refused(&[
            ("GASNET_PORTAL_CRED_PER_NODE", "400"),
            ("GASNET_PORTAL_BANKED_CREDITS", "100"),
            ("GASNET_PORTAL_AMRECV_SPACE", "64K"),
        ]);
        assert!(sums.contains("400 credits for each of 4 peers"), "{sums}");
    }
}
