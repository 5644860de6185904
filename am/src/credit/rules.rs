//! Limits of the machine, and which rules of the text are mended.

use super::cost::Costs;
use super::error::PlanError;
use super::form::Form;

/// Where we leave the Portals text, one by one; docs/flow-control.md has curves with and without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mends {
    /// Credits are called back when a peer has asked for some that the bank did not have.
    ///
    /// The text calls them back with every reply while the bank is low, whether any peer wants them
    /// or not.
    pub on_demand: bool,
    /// Peers are asked for all that they can spare, but no more peers than could give what is
    /// missing.
    ///
    /// The text asks as many as a walk may.
    pub as_many_as_needed: bool,
    /// A request for credits is granted in part where a limit has less, and takes no more than a
    /// quarter of the bank; the rest counts as missing.
    ///
    /// The text grants all or nothing.
    pub in_part: bool,
    /// A borrower that has stalled asks for [`Rules::ask_times`] what it holds, with as many
    /// requests as the field needs.
    ///
    /// The text asks for the credits that the one message lacked.
    pub ask_ahead: bool,
    /// The use by a borrower in the last epochs in which it sent anything is kept for
    /// [`Rules::patience`] epochs of silence.
    ///
    /// By the text it decays with every epoch, and epochs are short where another peer is busy.
    pub patience: bool,
    /// A peer that asked for credits, or stalled, gives none in the same epoch.
    ///
    /// By the text each question and each stall counts, and many take several epochs to decay.
    pub one_epoch: bool,
    /// Where the field holds any question: a borrower that has asked for credits asks again when
    /// some were lent, when all that it used has come back, or in the lender's next epoch.
    ///
    /// By the text each request that has stalled asks, and many that stalled for the same credits
    /// are all lent some.
    pub one_question: bool,
    /// With [`ask_ahead`](Self::ask_ahead): credits that a burst still wants are forgotten when the
    /// next burst begins, which is at a request while no other is under way.
    ///
    /// Without it that request asks for the rest, so credits move long after the last stall.
    pub one_burst: bool,
}

impl Mends {
    /// The text as it stands.
    pub const NONE: Mends = Mends {
        on_demand: false,
        as_many_as_needed: false,
        in_part: false,
        ask_ahead: false,
        patience: false,
        one_epoch: false,
        one_question: false,
        one_burst: false,
    };
    /// All of them.
    pub const ALL: Mends = Mends {
        on_demand: true,
        as_many_as_needed: true,
        in_part: true,
        ask_ahead: true,
        patience: true,
        one_epoch: true,
        one_question: true,
        one_burst: true,
    };
}

/// All settings of the machine.
///
/// The same on all ranks, as each works out alone what the others hold at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Costs of requests.
    pub costs: Costs,
    /// Fields of requests and replies.
    pub form: Form,
    /// Whether credits move.
    ///
    /// If not, each peer keeps its share and the bank is idle.
    pub dynamic: bool,
    /// Credits that a peer always keeps.
    ///
    /// At least the cost of the largest request.
    pub least: u16,
    /// Most that is lent to one peer (`GASNET_PORTAL_MAX_CRED_PER_NODE`).
    pub most: u16,
    /// Requests received that end an epoch (`GASNET_PORTAL_EPOCH_DURATION`).
    pub epoch_requests: u32,
    /// Decaying counts are shifted right by this at the end of an epoch.
    pub decay_shift: u32,
    /// Credits that one peer may be lent in addition in an epoch, as they decay.
    pub lend_limit: u16,
    /// Credits that a peer gives back to one lender in an epoch, as they decay.
    pub revoke_limit: u16,
    /// With fewer credits than this in the bank, it is low.
    ///
    /// Only for the rule of the text.
    pub low: u32,
    /// How many times what it holds a borrower asks for after a stall, with [`Mends::ask_ahead`].
    pub ask_times: u16,
    /// Epochs of the lender without a request after which what was used before begins to decay,
    /// with [`Mends::patience`].
    pub patience: u8,
    /// Peers asked to give back in one walk at most.
    pub walk_targets: u32,
    /// Peers looked at in one walk at most; the text walks until the list is around.
    pub walk_looks: u32,
    /// The rules of the text that are mended.
    pub mends: Mends,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            costs: Costs::OF_TEXT,
            form: Form::BYTE,
            dynamic: true,
            least: 4,
            most: 400,
            epoch_requests: 1024,
            decay_shift: 2,
            lend_limit: 640,
            revoke_limit: 256,
            low: 400,
            ask_times: 1,
            patience: 8,
            walk_targets: 8,
            walk_looks: 256,
            mends: Mends::ALL,
        }
    }
}

impl Rules {
    /// The text as it stands, with the same limits.
    #[must_use]
    pub fn of_the_text() -> Self {
        Self {
            mends: Mends::NONE,
            ..Self::default()
        }
    }

    /// Up to how many stalls, or requests for credits, are counted.
    #[must_use]
    pub(super) fn most_counted(&self) -> u16 {
        if self.mends.one_epoch { 1 } else { u16::MAX }
    }

    /// Whether they can be kept.
    ///
    /// # Errors
    /// The first that cannot, with what is allowed.
    pub fn check(&self) -> Result<(), PlanError> {
        let within = |what, got: u32, from: u32, to: u32| {
            let (got, from, to) = (u64::from(got), u64::from(from), u64::from(to));
            if (from..=to).contains(&got) {
                Ok(())
            } else {
                Err(PlanError::Range {
                    what,
                    got,
                    from,
                    to,
                })
            }
        };
        let wide = u32::from(u16::MAX);
        within("bytes of a credit", self.costs.granularity, 16, 1 << 20)?;
        within(
            "bytes of a chunk",
            self.costs.chunk_bytes,
            self.costs.granularity,
            1 << 26,
        )?;
        let largest = self.costs.largest();
        within(
            "credits of the largest request",
            largest,
            1,
            u32::from(self.form.most_count()),
        )?;
        within("least credits a peer", self.least.into(), largest, wide)?;
        within(
            "most credits a peer (ARGONET_CREDITS_MOST, GASNET_PORTAL_MAX_CRED_PER_NODE)",
            self.most.into(),
            self.least.into(),
            wide,
        )?;
        within(
            "requests of an epoch (ARGONET_CREDITS_EPOCH, GASNET_PORTAL_EPOCH_DURATION)",
            self.epoch_requests,
            1,
            u32::MAX,
        )?;
        within("shift of the decay", self.decay_shift, 1, 15)?;
        within(
            "credits lent to a peer in an epoch",
            self.lend_limit.into(),
            1,
            wide,
        )?;
        within(
            "credits given back in an epoch",
            self.revoke_limit.into(),
            1,
            wide,
        )?;
        within("peers asked in a walk", self.walk_targets, 1, u32::MAX)?;
        within(
            "peers looked at in a walk",
            self.walk_looks,
            self.walk_targets,
            u32::MAX,
        )
    }
}
