//! The bank: credits, counts and epoch that all streams of a rank share.

use super::plan::Plan;
use super::purse::Credits;
use super::rules::Rules;
use super::scavenge::List;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Credits of a rank that are not lent, its epoch, and the peers that it may ask to give back.
///
/// All counts are atomic, and each stands for itself: no other memory is published by them, so
/// Relaxed is enough. The list has a lock, which a stream takes only when its peer gets more than
/// the least for the first time; its holder takes no stream's lock but by trying.
#[derive(Debug)]
pub struct Bank {
    rules: Rules,
    plan: Plan,
    /// Not lent.
    ///
    /// Taken by compare-and-swap, so it never goes below zero.
    banked: AtomicU32,
    /// Shares of peers that have not been touched, in peers.
    untouched: AtomicU32,
    /// Requests until the epoch ends.
    ///
    /// Below zero for moments, while one stream that has seen it end starts the next.
    left: AtomicI64,
    epoch: AtomicU32,
    /// Credits that were asked for and not there.
    missing: AtomicU32,
    /// The epoch after the one whose last walk found no peer to ask; 0 is none.
    barren: AtomicU32,
    lent: AtomicU64,
    returned: AtomicU64,
    list: Mutex<List>,
}

/// Credits that a rank has moved since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Lent in addition to shares.
    pub lent: u64,
    /// Given back to the bank.
    pub returned: u64,
}

impl Bank {
    /// The bank of rank `me`.
    ///
    /// This is where credits come from: as many as the plan's space holds.
    #[must_use]
    pub fn new(me: u32, plan: Plan, rules: Rules) -> Bank {
        // With shares above the least all peers can be asked from the beginning.
        let fresh = if plan.share() > rules.least {
            plan.nodes()
        } else {
            0
        };
        Bank {
            banked: AtomicU32::new(plan.bank()),
            untouched: AtomicU32::new(plan.peers()),
            left: AtomicI64::new(i64::from(rules.epoch_requests)),
            epoch: AtomicU32::new(0),
            missing: AtomicU32::new(0),
            barren: AtomicU32::new(0),
            lent: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            list: Mutex::new(List::new(me, fresh)),
            plan,
            rules,
        }
    }

    /// Its rules.
    #[inline]
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Its plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Credits in the bank.
    #[must_use]
    pub fn banked(&self) -> u32 {
        self.banked.load(Relaxed)
    }

    /// Credits of peers that have not been touched.
    #[must_use]
    pub fn untouched(&self) -> u64 {
        u64::from(self.untouched.load(Relaxed)) * u64::from(self.plan.share())
    }

    /// Epochs that have ended.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// Credits moved since the start.
    #[must_use]
    pub fn moved(&self) -> Moved {
        Moved {
            lent: self.lent.load(Relaxed),
            returned: self.returned.load(Relaxed),
        }
    }

    /// The share of a peer at its first use; `None` when every peer has had it.
    pub(super) fn share(&self) -> Option<Credits> {
        let take = |left: u32| left.checked_sub(1);
        self.untouched.fetch_update(Relaxed, Relaxed, take).ok()?;
        Some(Credits::minted(self.plan.share()))
    }

    /// Counts a request.
    ///
    /// The epoch ends with the last of it.
    #[inline]
    pub(super) fn count_request(&self) {
        self.count_requests(1);
    }

    /// Counts requests.
    #[inline]
    pub(super) fn count_requests(&self, count: u32) {
        if self.takes_last(count) {
            self.end_epochs();
        }
    }

    /// Counts requests.
    ///
    /// Returns whether the last of the epoch is one of them; the stream must then end the epoch.
    /// Exactly one stream gets `true`, however many requests others count meanwhile.
    #[inline]
    pub(super) fn takes_last(&self, count: u32) -> bool {
        let before = self.left.fetch_sub(count.into(), Relaxed);
        (1..=i64::from(count)).contains(&before)
    }

    /// Ends the epoch whose last request this stream has taken, and those that others have filled
    /// until then.
    ///
    /// No other stream ends any while nothing is left, so something must be: else none would ever
    /// end again.
    #[cold]
    pub(super) fn end_epochs(&self) {
        let length = i64::from(self.rules.epoch_requests);
        let mut ended = 0;
        let go_on = |left: i64| {
            ended = 1 - left / length;
            Some(left + ended * length)
        };
        let _ = self.left.fetch_update(Relaxed, Relaxed, go_on);
        self.epoch.fetch_add(ended as u32, Relaxed);
    }

    /// Up to `wanted` credits to lend; all or none of them unless they may be given in part.
    pub(super) fn lend(&self, wanted: u16) -> Credits {
        let in_part = self.rules.mends.in_part;
        let mut got = 0;
        let take = |banked: u32| {
            got = match u16::try_from(banked) {
                Ok(banked) if banked < wanted => {
                    if in_part {
                        banked
                    } else {
                        0
                    }
                }
                _ => wanted,
            };
            Some(banked - u32::from(got))
        };
        let _ = self.banked.fetch_update(Relaxed, Relaxed, take);
        self.lent.fetch_add(got.into(), Relaxed);
        Credits::minted(got)
    }

    /// Takes back credits that a peer has returned.
    pub(super) fn take_back(&self, credits: Credits) {
        let count = u32::from(credits.count());
        self.returned.fetch_add(count.into(), Relaxed);
        // Together with all loans at most the total, which fits.
        self.banked.fetch_add(count, Relaxed);
    }

    /// Notes credits that were asked for and are not there.
    pub(super) fn miss(&self, count: u16) {
        if count != 0 {
            let add = |missing: u32| Some(missing.saturating_add(count.into()));
            let _ = self.missing.fetch_update(Relaxed, Relaxed, add);
        }
    }

    /// Whether credits were asked for and not there.
    #[inline]
    pub(super) fn is_missing(&self) -> bool {
        self.missing.load(Relaxed) > 0
    }

    /// How many credits a walk should call in now; 0 for none.
    #[inline]
    pub(super) fn wanted_back(&self) -> u32 {
        if !self.rules.dynamic {
            return 0;
        }
        if self.rules.mends.on_demand {
            let missing = self.missing.load(Relaxed);
            // Not again in an epoch in which no peer could be asked.
            if missing == 0 || self.barren.load(Relaxed) == self.epoch().wrapping_add(1).max(1) {
                return 0;
            }
            self.missing.swap(0, Relaxed)
        } else if self.banked() < self.rules.low {
            u32::MAX
        } else {
            0
        }
    }

    /// A walk has asked no peer.
    pub(super) fn found_none(&self) {
        self.barren
            .store(self.epoch().wrapping_add(1).max(1), Relaxed);
    }

    pub(super) fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list, unless another stream walks it.
    pub(super) fn try_list(&self) -> Option<MutexGuard<'_, List>> {
        match self.list.try_lock() {
            Ok(list) => Some(list),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}
