//! How the credits of a rank are dealt out at the start.
//!
//! All ranks work out the same, so nothing is exchanged.

use super::cost::Costs;
use super::error::PlanError;
use super::rules::Rules;
use super::space::Space;
use core::fmt;

/// Partners of a rank that the bank should lift to the most credits a peer: the six faces of a box,
/// and a partner for each level of a binary tree over 10,000 ranks.
const PARTNERS: u64 = 6 + 14;

/// Of the credits, the part that is in the bank where a peer's share is not yet all that it may
/// have: a third, as in the text's example of 6 credits a peer of which 2 can be dealt out anew.
const BANKED_PART: u64 = 3;

/// In small jobs, where every peer can have the most, the part that is added for the bank.
const SMALL_JOB_PART: u64 = 10;

/// Numbers that a user gives instead of the derived ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Credits of each peer at the start (`GASNET_PORTAL_CRED_PER_NODE`).
    pub share: Option<u32>,
    /// Credits in the bank at the start (`GASNET_PORTAL_BANKED_CREDITS`).
    pub bank: Option<u32>,
    /// Bytes of the receive space (`GASNET_PORTAL_AMRECV_SPACE`).
    pub space_bytes: Option<u64>,
}

/// Shares, bank and receive space of every rank of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    nodes: u32,
    share: u16,
    bank: u32,
    space: Space,
}

impl Plan {
    /// The plan for a job of that many ranks (those that share memory with each other need no
    /// credits, so in a job over hosts with several ranks each this is the upper limit).
    ///
    /// Derived, where the user wishes nothing else, in credits, with `p` peers, `least` and `most`
    /// a peer:
    ///
    /// 1. Small jobs: every peer has `most`, and a tenth is added for the bank. Nothing needs to
    ///    move.
    /// 2. Where that is more than `3 x most x 20`, the total stays there. A third is banked, which
    ///    lifts 20 partners to `most`: six faces, and 14 in trees. The rest is shared.
    /// 3. Where the share would fall below `least`, every peer has `least`, and half as much more
    ///    is banked: the total grows with the job, by 6 credits a peer if `least` is 4 (the text's
    ///    22 MiB for 10,000 ranks).
    ///
    /// The receive space is made for the total; the rest from rounding goes to the bank.
    ///
    /// # Errors
    /// Rules that cannot be kept; wishes that do not fit the space, with the sums.
    pub fn new(nodes: u32, rules: &Rules, wishes: Wishes) -> Result<Plan, PlanError> {
        rules.check()?;
        let peers = u64::from(nodes.saturating_sub(1)).max(1);
        let (least, most) = (u64::from(rules.least), u64::from(rules.most));
        let (derived_share, derived_bank) = derive(peers, least, most);
        let mut share = wishes.share.map_or(derived_share, u64::from);
        let mut bank = wishes.bank.map_or(derived_bank, u64::from);
        if wishes.share.is_some() && wishes.bank.is_none() {
            bank = (share * peers).div_ceil(SMALL_JOB_PART - 1);
        }
        let space = match wishes.space_bytes {
            None => Space::for_credits(share * peers + bank, rules.costs),
            Some(bytes) => {
                let space = Space::within(bytes, rules.costs);
                let total = space.credits();
                match (wishes.share, wishes.bank) {
                    (None, None) => {
                        let kept = total - total / BANKED_PART;
                        share = (kept / peers).min(most).max(least.min(total / peers));
                        bank = total.saturating_sub(share * peers);
                    }
                    (None, Some(_)) => {
                        share = (total.saturating_sub(bank) / peers).min(most);
                    }
                    (Some(_), None) => bank = total.saturating_sub(share * peers),
                    (Some(_), Some(_)) => {}
                }
                space
            }
        };
        if share < least {
            return Err(PlanError::TooFew {
                share: share as u32,
                needed: least as u32,
            });
        }
        if share > most {
            return Err(PlanError::Range {
                what: "credits a peer at the start (ARGONET_CREDITS_SHARE, GASNET_PORTAL_CRED_PER_NODE)",
                got: share,
                from: least,
                to: most,
            });
        }
        let (sum, holds) = (share * peers + bank, space.credits());
        if sum > holds {
            return Err(PlanError::TooMany {
                share: share as u32,
                peers: peers as u32,
                bank,
                sum,
                bytes: wishes.space_bytes.unwrap_or(space.bytes()),
                holds,
                enough: Space::for_credits(sum, rules.costs).bytes(),
            });
        }
        // The rest from rounding is banked.
        let bank = holds - share * peers;
        Ok(Plan {
            nodes,
            share: share as u16,
            bank: u32::try_from(bank).map_err(|_| PlanError::Range {
                what: "credits in the bank (ARGONET_CREDITS_BANK, GASNET_PORTAL_BANKED_CREDITS)",
                got: bank,
                from: 0,
                to: u32::MAX.into(),
            })?,
            space,
        })
    }

    /// The same space with all of it shared and an empty bank (but for rounding), as if nothing
    /// could move.
    ///
    /// To compare with.
    #[must_use]
    pub fn all_shared(&self, rules: &Rules) -> Plan {
        let peers = u64::from(self.peers());
        let share = (self.total() / peers).min(u64::from(rules.most));
        Plan {
            share: share as u16,
            bank: (self.total() - share * peers) as u32,
            ..*self
        }
    }

    /// Ranks of the job.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Ranks that a rank lends to; 1 in a job of one.
    #[must_use]
    pub fn peers(&self) -> u32 {
        self.nodes.saturating_sub(1).max(1)
    }

    /// Credits that every peer holds at the start.
    #[must_use]
    pub fn share(&self) -> u16 {
        self.share
    }

    /// Credits in the bank at the start.
    #[must_use]
    pub fn bank(&self) -> u32 {
        self.bank
    }

    /// All credits of a rank.
    #[must_use]
    pub fn total(&self) -> u64 {
        u64::from(self.share) * u64::from(self.peers()) + u64::from(self.bank)
    }

    /// The receive space.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The table of derived plans, for sizes of jobs that are of interest, as text with its
    /// derivation.
    #[must_use]
    pub fn table(rules: &Rules) -> String {
        let mut text = format!("{:>9}  {HEADING}\n", "ranks");
        for nodes in [2, 8, 27, 56, 64, 256, 1_000, 2_000, 4_096, 10_000, 100_000] {
            if let Ok(plan) = Plan::new(nodes, rules, Wishes::default()) {
                text += &format!("{nodes:>9}  {}\n", plan.row());
            }
        }
        let most = u64::from(rules.most);
        let ceiling = BANKED_PART * most * PARTNERS;
        text += &format!(
            "Every peer has {most} (most) and a tenth is added for the bank, up to {ceiling} credits in all; from there on a third of those is\n\
             banked ({PARTNERS} partners can be lifted to {most}: 6 faces, 14 levels of a tree) and the rest shared, down to {least} (least) a peer;\n\
             beyond, every peer has {least} and half as much is banked. A credit is {granularity} bytes of receive space and {event} of the event queue.\n",
            least = rules.least,
            granularity = rules.costs.granularity,
            event = rules.costs.event_bytes,
        );
        text
    }

    fn row(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let total = self.total();
        format!(
            "{:>6}  {:>6}  {:>5.1} %  {:>7}  {:>8.2}  {:>8.2}",
            self.share,
            self.bank,
            self.bank as f64 * 100.0 / total as f64,
            total,
            mib(self.space.credited_bytes()),
            mib(self.space.slack_bytes()),
        )
    }
}

const HEADING: &str = " share    bank  banked  credits  MiB with  slack for\n                                              events   recycling, MiB";

fn derive(peers: u64, least: u64, most: u64) -> (u64, u64) {
    let ceiling = BANKED_PART * most * PARTNERS;
    // Rounded up, so that the bank has at least a tenth of all.
    let small_bank = (peers * most).div_ceil(SMALL_JOB_PART - 1);
    if peers * most + small_bank <= ceiling {
        return (most, small_bank);
    }
    let share = (ceiling - ceiling / BANKED_PART) / peers;
    if share >= least {
        return (share.min(most), ceiling - share.min(most) * peers);
    }
    (least, peers * least / 2)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let costs: &Costs = &self.space.costs;
        let (share, peers, bank, total) = (self.share, self.peers(), self.bank, self.total());
        write!(
            f,
            "{} ranks: {share} credits for each of {peers} peers and {bank} in the bank, {total} in all; ",
            self.nodes
        )?;
        let Space {
            buffers, chunks, ..
        } = self.space;
        if costs.recycles {
            let chunk_bytes = costs.chunk_bytes;
            write!(
                f,
                "{buffers} buffers of {chunks} chunks of {chunk_bytes} bytes"
            )
        } else {
            let (bytes, granularity) = (self.space.bytes(), costs.granularity);
            write!(f, "{bytes} bytes of receive space, {granularity} a credit")
        }
    }
}
