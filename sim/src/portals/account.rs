//! Rules for all ranks when a job is over.

use super::conduit::PortalsNode;
use crate::job::Rank;
use argonet_base::JobRank;
use argonet_conduit::{Conduit as _, PeerLedger};
use std::rc::Rc;

/// Violations: something is in use, credits are not where they must be, or ledgers contradict each
/// other.
pub(super) fn violations(ranks: &[Rc<Rank<PortalsNode>>]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, rank) in (0..).zip(ranks) {
        let own = rank.engine.conduit();
        let in_use = own.in_use();
        if !in_use.is_nothing() {
            found.push(format!("rank {number} has in use: {in_use:?}"));
        }
        if let Some(lent) = own.lent()
            && lent.banked + lent.untouched + lent.lent != lent.total
        {
            found.push(format!("credits of rank {number} are missing: {lent:?}"));
        }
        for (peer, other) in (0..).zip(ranks) {
            found.extend(between(number, own, peer, other.engine.conduit()));
        }
    }
    found
}

/// Counts of one rank about another must agree with those that the other keeps.
fn between(rank: u32, own: &PortalsNode, peer: u32, other: &PortalsNode) -> Option<String> {
    let mine = own.credit(JobRank(peer));
    let its = other.credit(JobRank(rank));
    // A rank that has not used the other counts the share, and so does the other if it has used
    // this one.
    if let Some((mine, its)) = mine.zip(its)
        && mine.loan != its.held
    {
        let (loan, held) = (mine.loan, its.held);
        return Some(format!(
            "rank {rank} has lent {loan} credits to rank {peer}, which holds {held}"
        ));
    }
    let sent = own.ledger(JobRank(peer)).map_or(0, sent);
    let handled = other.ledger(JobRank(rank)).map_or(0, handled);
    (sent != handled).then(|| {
        format!("rank {rank} has sent {sent} requests to rank {peer}, which has handled {handled}")
    })
}

fn sent(ledger: PeerLedger) -> u64 {
    ledger.requests.sent
}

fn handled(ledger: PeerLedger) -> u64 {
    ledger.requests.handled
}
