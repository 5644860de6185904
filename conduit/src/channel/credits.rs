//! How the receive space of a rank is dealt out to its peers.

use super::driver::ChannelSizes;
use super::frame::{HEADER_BYTES, LARGEST_CHARGE};
use crate::credit_settings::CreditSettings;
use argonet_am::credit::{Costs, Form, Mends, Plan, PlanError, Rules, Wishes};
use argonet_base::size::HumanSize;
use argonet_settings::Settings;

/// Bytes of a credit.
pub(crate) const CREDIT_BYTES: usize = 256;

/// Credits of the largest request.
const LEAST: u16 = LARGEST_CHARGE.div_ceil(CREDIT_BYTES) as u16;

/// Division of the receive space of a rank, or the error, in words.
pub(crate) fn receive_space(settings: &Settings, ranks: u32) -> String {
    match ChannelCredits::from_settings(settings).map(|credits| credits.plan(ranks)) {
        None => {
            let window = HumanSize(ChannelSizes::default().window_bytes as u64);
            format!("at most {window} of each peer: there are no credits (ARGONET_CREDITS)")
        }
        Some(Ok(plan)) => plan.to_string(),
        Some(Err(error)) => format!("no job can start: {error} (ARGONET_CREDITS_*)"),
    }
}

/// Credits: how much of a rank's receive space each peer may use, 256 bytes a credit, the same on
/// all ranks of a job.
///
/// ADR 0025 has the reasons, docs/flow-control.md the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelCredits {
    /// Whether credits move to the peers that want them.
    pub dynamic: bool,
    /// By argonet's rules; if not, by those of the Portals text.
    pub mended: bool,
    /// Most that one peer may have.
    pub most: u32,
    /// Requests received that end an epoch.
    pub epoch_requests: u32,
    /// Credits of each peer at the start; derived from the number of ranks if not given, as the
    /// others.
    pub share: Option<u32>,
    /// Credits in the bank at the start.
    pub bank: Option<u32>,
    /// Bytes of the receive space.
    pub space_bytes: Option<u64>,
}

impl Default for ChannelCredits {
    fn default() -> Self {
        Self {
            dynamic: true,
            mended: true,
            most: 1024,
            epoch_requests: 1024,
            share: None,
            bank: None,
            space_bytes: None,
        }
    }
}

impl ChannelCredits {
    /// Reads the settings; `None` without flow control.
    #[must_use]
    pub fn from_settings(given: &Settings) -> Option<Self> {
        let said = CreditSettings::read(given);
        let preset = Self::default();
        said.are_on.then(|| Self {
            dynamic: said.dynamic,
            mended: said.mended,
            most: said.most.unwrap_or(preset.most),
            epoch_requests: said.epoch_requests.unwrap_or(preset.epoch_requests),
            share: said.wishes.share,
            bank: said.wishes.bank,
            space_bytes: said.wishes.space_bytes,
        })
    }

    /// Rules of the machine.
    #[must_use]
    pub fn rules(&self) -> Rules {
        // The plan refuses a number beyond 16 bits.
        let most = u16::try_from(self.most).unwrap_or(u16::MAX);
        Rules {
            costs: Costs {
                granularity: CREDIT_BYTES as u32,
                event_bytes: 0,
                header_bytes: HEADER_BYTES as u32,
                chunk_bytes: LARGEST_CHARGE as u32,
                recycles: false,
            },
            form: Form::WIDE,
            dynamic: self.dynamic,
            least: LEAST,
            most,
            epoch_requests: self.epoch_requests,
            lend_limit: most,
            revoke_limit: most,
            mends: if self.mended { Mends::ALL } else { Mends::NONE },
            ..Rules::default()
        }
    }

    /// How the receive space of each of so many ranks is dealt out.
    ///
    /// # Errors
    /// Numbers that do not fit each other, with the sums.
    pub fn plan(&self, ranks: u32) -> Result<Plan, PlanError> {
        let Self {
            share,
            bank,
            space_bytes,
            ..
        } = *self;
        let (least, widest) = (LEAST.into(), u16::MAX.into());
        if !(least..=widest).contains(&u64::from(self.most)) {
            return Err(PlanError::Range {
                what: "most credits a peer (ARGONET_CREDITS_MOST, GASNET_PORTAL_MAX_CRED_PER_NODE)",
                got: self.most.into(),
                from: least,
                to: widest,
            });
        }
        let wishes = Wishes {
            share,
            bank,
            space_bytes,
        };
        Plan::new(ranks, &self.rules(), wishes)
    }

    /// Every number at the smallest that still works, with something to lend.
    #[must_use]
    pub fn smallest() -> Self {
        Self {
            most: u32::from(LEAST) + 16,
            epoch_requests: 4,
            share: Some(LEAST.into()),
            bank: Some(8),
            ..Self::default()
        }
    }
}

/// Credits that so many bytes take, rounded up.
pub(crate) fn credits(bytes: u64) -> u16 {
    // Windows are of 16 bits of credits.
    u16::try_from(bytes.div_ceil(CREDIT_BYTES as u64)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_jobs_have_the_windows_that_every_peer_had_and_large_ones_a_bound() {
        let credits = ChannelCredits::default();
        for (ranks, share, mib) in [
            (2, 1024, 1),
            (53, 1024, 15),
            (100, 413, 15),
            (1000, 257, 95),
        ] {
            let plan = credits.plan(ranks).unwrap();
            assert_eq!(u32::from(plan.share()), share, "{plan}");
            assert!(plan.space().bytes() <= mib << 20, "{plan}");
            assert!(plan.space().bytes() > (mib - 1) << 20, "{plan}");
        }
        assert!(ChannelCredits::smallest().plan(3).is_ok());
    }

    #[test]
    fn own_names_come_before_those_of_portals() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            ChannelCredits::from_settings(&Settings::from_pairs(pairs).unwrap())
        };
        assert_eq!(of(&[]), Some(ChannelCredits::default()));
        assert_eq!(of(&[("GASNET_PORTAL_FLOW_CONTROL", "0")]), None);
        let both = [
            ("GASNET_PORTAL_FLOW_CONTROL", "0"),
            ("ARGONET_CREDITS", "1"),
        ];
        assert_eq!(of(&both), Some(ChannelCredits::default()));
        let all = [
            ("GASNET_PORTAL_DYNAMIC_CREDITS", "0"),
            ("GASNET_PORTAL_MAX_CRED_PER_NODE", "400"),
            ("GASNET_PORTAL_CRED_PER_NODE", "300"),
            ("GASNET_PORTAL_BANKED_CREDITS", "7"),
            ("GASNET_PORTAL_AMRECV_SPACE", "1M"),
            ("GASNET_PORTAL_EPOCH_DURATION", "64"),
            ("ARGONET_CREDITS_MENDED", "0"),
            ("ARGONET_CREDITS_BANK", "8"),
        ];
        let due = ChannelCredits {
            dynamic: false,
            mended: false,
            most: 400,
            epoch_requests: 64,
            share: Some(300),
            bank: Some(8),
            space_bytes: Some(1 << 20),
        };
        assert_eq!(of(&all), Some(due));
    }

    #[test]
    fn wishes_that_do_not_fit_are_refused_with_the_sums() {
        let credits = ChannelCredits {
            share: Some(400),
            bank: Some(100),
            space_bytes: Some(1 << 20),
            ..ChannelCredits::default()
        };
        let said = credits.plan(100).unwrap_err().to_string();
        let sums = "400 credits for each of 99 peers and 100 in the bank are 39700 credits, but the receive space of 1048576 bytes holds 4096: \
                    lower ARGONET_CREDITS_SHARE (or GASNET_PORTAL_CRED_PER_NODE) or ARGONET_CREDITS_BANK (or GASNET_PORTAL_BANKED_CREDITS), \
                    or raise ARGONET_CREDITS_SPACE (or GASNET_PORTAL_AMRECV_SPACE) to at least 10163200 bytes";
        assert_eq!(said, sums);
    }
}
