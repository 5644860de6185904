//! The part of a job that is on one host.

use core::ops::Range;

use argonet_base::JobRank;

/// The ranks of a job on a host, and the number of them that share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostPart {
    pub(crate) first: u32,
    pub(crate) ranks: u32,
    /// The most ranks of a neighborhood; at least 1.
    pub(crate) neighborhood: u32,
}

impl HostPart {
    /// All ranks are on this host and share memory.
    pub(crate) const fn whole(size: u32) -> Self {
        Self {
            first: 0,
            ranks: size,
            neighborhood: size,
        }
    }

    /// The ranks of the host.
    pub(crate) const fn all(self) -> Range<u32> {
        self.first..self.first + self.ranks
    }

    /// The ranks that share memory with `rank`, itself among them; neighbors have consecutive
    /// numbers.
    pub(crate) const fn around(self, rank: JobRank) -> Range<u32> {
        let begin = rank.0 - (rank.0 - self.first) % self.neighborhood;
        let left = self.all().end - begin;
        let len = if left < self.neighborhood {
            left
        } else {
            self.neighborhood
        };
        begin..begin + len
    }

    /// The part itself, if a job of `size` ranks can have it.
    pub(crate) fn check(self, size: u32) -> Option<Self> {
        let end = self.first.checked_add(self.ranks)?;
        let valid = self.ranks > 0 && self.neighborhood > 0 && end <= size;
        valid.then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_are_consecutive_ranks_of_one_host() {
        let part = |first, ranks, neighborhood| HostPart {
            first,
            ranks,
            neighborhood,
        };
        let around = |part: HostPart, rank| part.around(JobRank(rank));
        assert_eq!(around(HostPart::whole(4), 3), 0..4);
        let five = part(10, 5, 2);
        for (rank, neighbors) in [(10, 10..12), (11, 10..12), (13, 12..14), (14, 14..15)] {
            assert_eq!(around(five, rank), neighbors);
        }
        assert_eq!(around(part(3, 2, 1), 4), 4..5);
        assert_eq!(around(part(3, 2, u32::MAX), 4), 3..5);
        assert!(five.check(15).is_some() && five.check(14).is_none());
        assert!(part(u32::MAX, 2, 1).check(u32::MAX).is_none());
        assert!(part(0, 0, 1).check(4).is_none() && part(0, 1, 0).check(4).is_none());
    }
}
