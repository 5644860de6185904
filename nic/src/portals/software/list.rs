//! Match lists: doubly linked, by indices, in a rank's table of entries.

use super::records::{entry, index, one_based, portal};
use super::transaction::Transaction;
use crate::portals::NicError;

/// Where an entry goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Head,
    Tail,
    Before(u32),
    After(u32),
}

/// Neighbors of an entry in its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Links {
    next: Option<u32>,
    before: Option<u32>,
}

impl Transaction<'_> {
    fn entries(&self) -> u32 {
        self.shared.region.layout.config.entries
    }

    fn entry_at(&self, entry: u32) -> u64 {
        self.shared.region.layout.entry(self.place, entry)
    }

    fn links(&self, entry: u32) -> Links {
        let links = self.get(self.entry_at(entry) + entry::LINKS);
        Links {
            next: index(links & u64::from(u32::MAX), self.entries()),
            before: index(links >> 32, self.entries()),
        }
    }

    fn set_links(&mut self, entry: u32, links: Links) {
        let bits = one_based(links.next) | one_based(links.before) << 32;
        self.set(self.entry_at(entry) + entry::LINKS, bits);
    }

    fn end(&self, portal: u64, which: u64) -> Option<u32> {
        index(self.get(portal + which), self.entries())
    }

    /// Joins two neighbors, or one and the end of the list.
    fn join(&mut self, portal: u64, before: Option<u32>, next: Option<u32>) {
        match before {
            Some(entry) => {
                let links = self.links(entry);
                self.set_links(entry, Links { next, ..links });
            }
            None => self.set(portal + portal::HEAD, one_based(next)),
        }
        match next {
            Some(entry) => {
                let links = self.links(entry);
                self.set_links(entry, Links { before, ..links });
            }
            None => self.set(portal + portal::TAIL, one_based(before)),
        }
    }

    /// Puts an entry, which is in no list, into that of a portal.
    pub(super) fn link(&mut self, portal: u32, entry: u32, place: Place) {
        self.close_lists();
        let at = self.shared.region.layout.portal(self.place, portal);
        let (before, next) = match place {
            Place::Head => (None, self.end(at, portal::HEAD)),
            Place::Tail => (self.end(at, portal::TAIL), None),
            Place::Before(other) => (self.links(other).before, Some(other)),
            Place::After(other) => (Some(other), self.links(other).next),
        };
        self.set_links(entry, Links { next, before });
        self.join(at, before, Some(entry));
        self.join(at, Some(entry), next);
        let state = self.entry_at(entry) + entry::STATE;
        self.set(state, self.get(state) | entry::LINKED);
    }

    /// Takes an entry out of its list.
    pub(super) fn cut(&mut self, entry: u32) {
        self.close_lists();
        let at = self.entry_at(entry);
        let portal = (self.get(at + entry::REPORTS) & 0xffff) as u32;
        let portals = self.shared.region.layout.config.portals;
        if portal < portals {
            let links = self.links(entry);
            let list = self.shared.region.layout.portal(self.place, portal);
            self.join(list, links.before, links.next);
        }
        self.set_links(
            entry,
            Links {
                next: None,
                before: None,
            },
        );
        let state = self.get(at + entry::STATE);
        self.set(at + entry::STATE, state & !entry::LINKED);
    }

    /// Frees an entry that is in no list; its handle is void.
    pub(super) fn free_entry(&mut self, entry: u32) {
        let state = self.entry_at(entry) + entry::STATE;
        let generation = (self.get(state) >> 32).wrapping_add(1) & u64::from(u32::MAX);
        self.set(state, generation << 32);
    }

    /// The entries of a portal in their order.
    pub(super) fn list(&self, portal: u32) -> List<'_> {
        let at = self.shared.region.layout.portal(self.place, portal);
        List {
            transaction: self,
            next: self.end(at, portal::HEAD),
            left: self.entries(),
        }
    }
}

/// Goes through a list; a list with a loop ends in an error.
pub(super) struct List<'a> {
    transaction: &'a Transaction<'a>,
    next: Option<u32>,
    left: u32,
}

impl Iterator for List<'_> {
    type Item = Result<u32, NicError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next?;
        if self.left == 0 {
            self.next = None;
            return Some(Err(NicError::Corrupt {
                rank: self.transaction.shared.rank_at(self.transaction.place),
                what: "a match list without an end",
            }));
        }
        self.left -= 1;
        self.next = self.transaction.links(entry).next;
        Some(Ok(entry))
    }
}
