//! The peers of a rank: no memory for those that are never used, but for a pointer to a page of 32.

use argonet_am::credit::{Bank, Peer};
use argonet_am::system_queue::Slot;

const PAGE: usize = 32;

/// All that a rank keeps about another.
pub(super) struct Both {
    pub(super) credits: Peer,
    pub(super) system: Slot,
}

pub(super) struct Peers(Vec<Option<Box<[Option<Both>; PAGE]>>>);

impl Peers {
    pub(super) fn new(ranks: u32) -> Self {
        let pages = (ranks as usize).div_ceil(PAGE);
        Self((0..pages).map(|_| None).collect())
    }

    /// The peer, which is made at its first use.
    pub(super) fn of(&mut self, rank: u32, bank: &Bank) -> &mut Both {
        let rank = rank as usize;
        let page = self.0[rank / PAGE].get_or_insert_with(|| Box::new([const { None }; PAGE]));
        page[rank % PAGE].get_or_insert_with(|| Both {
            credits: Peer::new(bank).expect("a share for every other rank"),
            system: Slot::default(),
        })
    }

    pub(super) fn used(&self) -> impl Iterator<Item = &Both> {
        self.0
            .iter()
            .flatten()
            .flat_map(|page| page.iter().flatten())
    }

    /// Bytes that peers take.
    pub(super) fn bytes(&self) -> usize {
        let pages = self.0.iter().flatten().count();
        self.0.len() * 8 + pages * PAGE * size_of::<Option<Both>>()
    }
}
