//! The state of one peer, from its first use on.

use super::config::HELD_TICKETS;
use super::core::Portals;
use super::wire::LID_BITS;
use crate::owned::Owned;
use crate::shown_bank::ShownBank;
use crate::threads::ThreadMode;
use argonet_am::credit::{self, Attempt, Bank, Debt, Figures};
use argonet_am::lid_cache::Lids;
use argonet_am::system_queue::Slot;
use argonet_base::JobRank;
use argonet_nic::portals::Portals as Interface;
use core::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Peer {
    pub(super) rank: JobRank,
    pub(super) state: Owned<State>,
    /// It has refused a word of the system queue.
    ///
    /// Set by threads that send words or poll, read by one that reports an exit; Relaxed: a hint.
    pub(super) has_ended: AtomicBool,
}

pub(super) struct State {
    rank: JobRank,
    /// `None` without flow control.
    pub(super) credit: Option<credit::Peer>,
    pub(super) slot: Slot,
    /// The wait of the request that will be sent next.
    pub(super) attempt: Attempt,
    pub(super) lids: Lids,
    /// Chunks that requests to it hold, and the slot of a large medium: one at most, so that none
    /// overtakes another.
    pub(super) chunks: u32,
    pub(super) slots: u32,
    /// Its requests whose handlers run and that have no reply yet.
    ///
    /// A reply is for the last of them: to the requester all are alike, it gets one reply into each
    /// chunk.
    pub(super) open: Vec<Open>,
    /// Its requests whose handlers run.
    pub(super) running: usize,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) handled: u64,
    pub(super) stalls: u64,
    /// The figures that the gauges show: only changes are written.
    shown: Option<Shown>,
}

/// The figures that were shown last, and their epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    figures: Figures,
    stalls: u64,
    epoch: u32,
}

impl State {
    #[inline]
    pub(super) fn show(&mut self, bank: &ShownBank) {
        if let Some(credit) = &self.credit {
            let now = Shown {
                figures: credit.figures(),
                stalls: self.stalls,
                epoch: bank.epoch(),
            };
            // Where each request is answered before the next, nothing ever changes here.
            if self.shown != Some(now) {
                let before = self.shown.replace(now);
                self.publish(before, now, bank);
            }
        }
    }

    #[cold]
    fn publish(&self, before: Option<Shown>, now: Shown, bank: &ShownBank) {
        bank.show_peer(self.rank, now.figures, now.stalls);
        let moved = |shown: Shown| (shown.figures.loan, shown.epoch);
        if before.map(moved) != Some(moved(now)) {
            bank.show();
        }
    }
}

/// A request that is to be replied to.
#[derive(Debug)]
pub(super) struct Open {
    /// The requester's chunk.
    pub(super) chunk: u32,
    pub(super) debt: Option<Debt>,
    pub(super) hold: Hold,
}

/// Resources in hand for a reply before its request is taken: two tickets, one for a temporary
/// descriptor, a chunk of RplSB, and the slot of a large medium.
// spec P2: the rule for polling AM.
#[derive(Debug)]
#[must_use = "resources in hand must be given back"]
pub(super) struct Hold {
    pub(super) chunk: u32,
    pub(super) slot: u32,
}

impl Peer {
    pub(super) fn new(rank: JobRank, mode: ThreadMode, bank: Option<&Bank>) -> Self {
        Self {
            rank,
            state: Owned::new(
                mode,
                State {
                    rank,
                    credit: bank.and_then(credit::Peer::new),
                    slot: Slot::default(),
                    attempt: Attempt::default(),
                    lids: Lids::new(LID_BITS).expect("a width that is allowed"),
                    chunks: 0,
                    slots: 0,
                    open: Vec::new(),
                    running: 0,
                    sent: 0,
                    answered: 0,
                    handled: 0,
                    stalls: 0,
                    shown: None,
                },
            ),
            has_ended: AtomicBool::new(false),
        }
    }
}

impl<N: Interface> Portals<N> {
    /// Shows changes of the credits between this rank and a peer in the gauges.
    #[inline]
    pub(super) fn show(&self, state: &mut State) {
        if let Some(bank) = &self.bank {
            state.show(bank);
        }
    }

    /// Takes the resources that a reply may need.
    pub(super) fn hold(&self) -> Option<Hold> {
        // Data of a reply that may have found no room would be overtaken by the next.
        if self.reply_halves.load(Ordering::Relaxed) > 0 {
            return None;
        }
        if !self.tickets.take(HELD_TICKETS) {
            return None;
        }
        if !self.temporaries.take(1) {
            self.tickets.give(HELD_TICKETS);
            return None;
        }
        let chunk = self.reply_chunks.free.take();
        let slot = self.reply_slots.take();
        if let (Some(chunk), Some(slot)) = (chunk, slot) {
            return Some(Hold { chunk, slot });
        }
        if let Some(chunk) = chunk {
            self.reply_chunks.free.give(chunk);
        }
        if let Some(slot) = slot {
            self.reply_slots.give(slot);
        }
        self.tickets.give(HELD_TICKETS);
        self.temporaries.give(1);
        None
    }

    /// Whether [`hold`](Self::hold) would find all of it now.
    pub(super) fn could_hold(&self) -> bool {
        self.reply_halves.load(Ordering::Relaxed) == 0
            && self.tickets.free() >= HELD_TICKETS
            && self.temporaries.free() > 0
            && self.reply_chunks.free.has_any()
            && self.reply_slots.has_any()
    }

    pub(super) fn let_go(&self, hold: Hold) {
        self.reply_chunks.free.give(hold.chunk);
        self.reply_slots.give(hold.slot);
        self.tickets.give(HELD_TICKETS);
        self.temporaries.give(1);
    }
}
