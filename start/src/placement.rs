//! Where the ranks of a job are: which share memory, and which share a host; and how much memory
//! there is for their segments.

use crate::error::Result;
use crate::plan::segment_limit;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob};
use argonet_segment::{HostMemory, PageKind};
use argonet_settings::{SegmentLimit, Settings};
use core::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The card that the first rank of a neighborhood publishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Card {
    /// Length that a segment may grow to, in bytes.
    pub(crate) limit: u64,
    /// Memory that was available on the host, bytes.
    pub(crate) available: u64,
    /// The neighborhood's ranks.
    first: u32,
    end: u32,
    /// The host's ranks.
    host_first: u32,
    host_end: u32,
}

impl Card {
    /// Makes the card of this rank's neighborhood; its first rank looks at the host for all.
    pub(crate) fn make(
        boot: &LocalJob,
        preset: Option<SegmentLimit>,
        settings: &Settings,
    ) -> Result<Self> {
        let (near, host) = (boot.neighborhood(), boot.host_ranks());
        let memory = HostMemory::probe()?;
        Ok(Self {
            limit: segment_limit(&memory, host.len() as u32, preset, settings),
            available: memory.available_bytes(),
            first: near.start,
            end: near.end,
            host_first: host.start,
            host_end: host.end,
        })
    }

    pub(crate) fn publish(&self, boot: &dyn Bootstrap) -> Result<()> {
        Ok(boot.publish(Key::Segment, self.as_bytes())?)
    }

    fn ranks(&self) -> Range<u32> {
        self.first..self.end
    }

    /// The most that each segment of the host can be, if all are as long.
    fn share(&self) -> u64 {
        let page = PageKind::Normal.page_bytes();
        let ranks = (self.host_end - self.host_first).max(1);
        self.limit
            .min(self.available / u64::from(ranks) / page * page)
    }
}

/// A neighborhood.
#[derive(Clone, Debug)]
struct Hood {
    card: Card,
    /// Which host it is on, from 0 on.
    host: u32,
}

/// The neighborhoods of a job, in the order of their ranks.
#[derive(Clone, Debug)]
pub struct Placement(Vec<Hood>);

impl Placement {
    /// Reads the cards that the neighborhoods have published, after a fence.
    pub(crate) fn read(boot: &LocalJob) -> Result<Self> {
        let mut cards = Vec::new();
        let mut rank = 0;
        while rank < boot.size() {
            let bytes = boot.lookup(JobRank(rank), Key::Segment)?;
            // Ranks of one job run the same version; the start has checked that.
            let card = Card::read_from_bytes(&bytes).ok();
            let card = card.filter(|card| card.first == rank && card.end > rank);
            let Some(card) = card else {
                return Err(crate::StartError::ElsewhereFailed {
                    rank: argonet_base::Rank(boot.rank().0),
                    what: "reading where the ranks are",
                });
            };
            rank = card.end;
            cards.push(card);
        }
        Ok(Self::new(cards))
    }

    fn new(cards: Vec<Card>) -> Self {
        let mut hoods: Vec<Hood> = Vec::with_capacity(cards.len());
        for card in cards {
            let host = hoods.last().map_or(0, |last| {
                last.host + u32::from(last.card.host_first != card.host_first)
            });
            hoods.push(Hood { card, host });
        }
        Self(hoods)
    }

    fn of(&self, rank: u32) -> usize {
        let after = self.0.partition_point(|hood| hood.card.first <= rank);
        after.saturating_sub(1)
    }

    /// The card of a rank's neighborhood.
    pub(crate) fn card(&self, rank: JobRank) -> &Card {
        &self.0[self.of(rank.0)].card
    }

    /// How many neighborhoods there are.
    #[must_use]
    pub fn neighborhoods(&self) -> u32 {
        self.0.len() as u32
    }

    /// Which neighborhood a rank is of, from 0 on.
    #[must_use]
    pub fn neighborhood(&self, rank: JobRank) -> u32 {
        self.of(rank.0) as u32
    }

    /// The ranks that share memory with a rank, itself among them.
    #[must_use]
    pub fn neighbors(&self, rank: JobRank) -> Range<u32> {
        self.card(rank).ranks()
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.0.last().map_or(0, |hood| hood.host + 1)
    }

    /// Which host a rank is on, from 0 on.
    #[must_use]
    pub fn host(&self, rank: JobRank) -> u32 {
        self.0[self.of(rank.0)].host
    }

    /// The ranks on the host of a rank, itself among them.
    #[must_use]
    pub fn on_host(&self, rank: JobRank) -> Range<u32> {
        let card = self.card(rank);
        card.host_first..card.host_end
    }

    /// Length that every segment of the job may grow to, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        let limits = self.0.iter().map(|hood| hood.card.limit);
        limits.min().unwrap_or(0)
    }

    /// The most that each segment of the job can be, if all are as long, bytes.
    pub(crate) fn share(&self) -> u64 {
        self.0
            .iter()
            .map(|hood| hood.card.share())
            .min()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(near: Range<u32>, host: Range<u32>, limit: u64, available: u64) -> Card {
        Card {
            limit,
            available,
            first: near.start,
            end: near.end,
            host_first: host.start,
            host_end: host.end,
        }
    }

    #[test]
    fn ranks_are_found_by_neighborhood_and_host() {
        let (mib, page) = (1 << 20, PageKind::Normal.page_bytes());
        let placement = Placement::new(vec![
            card(0..2, 0..3, 8 * mib, 64 * mib),
            card(2..3, 0..3, 8 * mib, 64 * mib),
            card(3..7, 3..7, 4 * mib, 9 * mib),
            card(7..8, 7..8, 16 * mib, mib),
        ]);
        let hoods: Vec<u32> = (0..8).map(|r| placement.neighborhood(JobRank(r))).collect();
        assert_eq!(hoods, [0, 0, 1, 2, 2, 2, 2, 3]);
        let hosts: Vec<u32> = (0..8).map(|r| placement.host(JobRank(r))).collect();
        assert_eq!(hosts, [0, 0, 0, 1, 1, 1, 1, 2]);
        assert_eq!((placement.neighborhoods(), placement.hosts()), (4, 3));
        assert_eq!(placement.neighbors(JobRank(1)), 0..2);
        assert_eq!(placement.on_host(JobRank(2)), 0..3);
        assert_eq!(placement.limit(), 4 * mib);
        assert_eq!(placement.share(), mib / page * page);
    }
}
