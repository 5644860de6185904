//! Which slot of cells a team gets: the lowest that all its members have free; they exchange their
//! free slots when the team is made.
//!
//! A slot is a rank's own: teams without a common rank can have the same. A rank that has left a
//! team gives its slot to another when all members have finished their calls there, since one that
//! has not may still read this rank's cells. Old entries in the cells of earlier teams do no harm:
//! the numbers of the next team's calls begin above any number that a member has reached.

use super::shared_team::SharedTeam;
use crate::Members;
use crate::shared_memory::{KEPT_SLOTS, MOST_MEMBERS};
use argonet_conduit::SharedCells;
use parking_lot::Mutex;
use std::sync::Arc;

/// The slots that a rank can give a team that is being made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Offer {
    /// Slots, as bits.
    pub(crate) slots: u64,
    /// A number that none of its calls in any of them has.
    pub(crate) first: u64,
}

impl Offer {
    /// The slots that all offers have.
    pub(crate) fn agree(offers: impl Iterator<Item = Self>) -> Self {
        let all = Self {
            slots: u64::MAX,
            first: 0,
        };
        offers.fold(all, |agreed, offer| Self {
            slots: agreed.slots & offer.slots,
            first: agreed.first.max(offer.first),
        })
    }
}

struct State {
    /// Slots that no team of this rank has or may still read, as bits.
    free: u64,
    /// Whether a team is being made that may get any of them.
    offered: bool,
    /// More than any number of a call in a slot that was given back.
    highest: u64,
    /// Slots of teams that this rank has left.
    left: Vec<Arc<SharedTeam>>,
}

/// The slots of this rank.
pub(crate) struct Slots(Mutex<State>);

impl Default for Slots {
    fn default() -> Self {
        Self(Mutex::new(State {
            free: !0 << KEPT_SLOTS,
            offered: false,
            highest: 0,
            left: Vec::new(),
        }))
    }
}

/// An offer that stands; taken back when this is dropped.
pub(crate) struct Offered<'s> {
    slots: &'s Slots,
    pub(crate) offer: Offer,
}

impl Slots {
    /// The slots that this rank can give the next team.
    ///
    /// While another offer stands, as several threads make teams, none.
    pub(crate) fn offer(&self, cells: Option<SharedCells<'_>>) -> Offered<'_> {
        let mut state = self.0.lock();
        let state = &mut *state;
        let mut offer = Offer::default();
        if let Some(cells) = cells.filter(|_| !state.offered) {
            state.left.retain(|shared| {
                let is_free = shared.is_left_by_all(cells);
                if is_free {
                    state.free |= 1 << shared.group.slot;
                    state.highest = state.highest.max(shared.end_of_numbers());
                }
                !is_free
            });
            offer = Offer {
                slots: state.free,
                first: state.highest,
            };
            state.offered = offer.slots != 0;
        }
        Offered { slots: self, offer }
    }

    /// This rank has left a team.
    pub(crate) fn leave(&self, shared: Arc<SharedTeam>) {
        self.0.lock().left.push(shared);
    }
}

impl Offered<'_> {
    /// Takes the slot that all members agree on, if there is one.
    pub(crate) fn take(&self, agreed: Offer) -> Option<u32> {
        let slots = agreed.slots & self.offer.slots;
        let slot = (slots != 0).then(|| slots.trailing_zeros())?;
        self.slots.0.lock().free &= !(1 << slot);
        Some(slot)
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        if self.offer.slots != 0 {
            self.slots.0.lock().offered = false;
        }
    }
}

/// Whether the members of a team can have a slot: few enough, each in a process of its own.
pub(crate) fn can_have_slot(members: &Members) -> bool {
    let size = members.size();
    let alone = |rank| members.rank_of(members.job_rank(rank)) == Some(rank);
    (2..=MOST_MEMBERS).contains(&size) && (0..size).all(alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_base::JobRank;

    #[test]
    fn members_agree_on_the_slots_of_all() {
        let offer = |slots, first| Offer { slots, first };
        let agreed = Offer::agree([offer(0b1100, 7), offer(0b0110, 3)].into_iter());
        assert_eq!(agreed, offer(0b0100, 7));
        assert_eq!(
            Offer::agree([offer(4, 1), Offer::default()].into_iter()).slots,
            0
        );
    }

    #[test]
    fn one_offer_at_a_time_and_taken_slots_are_not_offered_again() {
        let slots = Slots::default();
        // An engine without cells offers nothing, and keeps no other team from offering.
        assert_eq!(slots.offer(None).offer, Offer::default());
        let offered = Offered {
            slots: &slots,
            offer: Offer {
                slots: slots.0.lock().free,
                first: 0,
            },
        };
        assert_eq!(
            offered.take(Offer {
                slots: 0b111,
                first: 0
            }),
            None
        );
        assert_eq!(
            offered.take(Offer {
                slots: !0,
                first: 0
            }),
            Some(KEPT_SLOTS)
        );
        assert_eq!(
            offered.take(Offer {
                slots: 1 << 63,
                first: 0
            }),
            Some(63)
        );
        drop(offered);
        let free = slots.0.lock().free;
        assert_eq!(free, !0 << (KEPT_SLOTS + 1) & !(1 << 63));
    }

    #[test]
    fn a_team_with_a_process_twice_has_no_slot() {
        let members = |list: &[(u32, u32)]| {
            let list: Vec<_> = list.iter().map(|&(rank, at)| (JobRank(rank), at)).collect();
            Members::new(&list).unwrap()
        };
        assert!(can_have_slot(&members(&[(3, 0), (1, 0)])));
        assert!(can_have_slot(&members(&[(3, 1), (1, 0)])));
        assert!(!can_have_slot(&members(&[(3, 0), (1, 0), (3, 1)])));
        assert!(!can_have_slot(&members(&[(3, 0)])));
        assert!(!can_have_slot(&Members::world(MOST_MEMBERS + 1)));
    }
}
