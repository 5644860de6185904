//! A rank's peers, each made at its first use.

use argonet_base::JobRank;
use std::sync::OnceLock;

/// The state of each rank that was used, by rank.
///
/// A rank that was never used takes [`UNUSED_BYTES`](Self::UNUSED_BYTES).
pub(crate) struct Peers<P>(Box<[OnceLock<Box<P>>]>);

impl<P> Peers<P> {
    /// Bytes of a rank that was not used.
    pub(crate) const UNUSED_BYTES: usize = size_of::<OnceLock<Box<P>>>();

    /// None of them was used.
    pub(crate) fn new(ranks: u32) -> Self {
        const { assert!(Self::UNUSED_BYTES <= 16) };
        Self((0..ranks).map(|_| OnceLock::new()).collect())
    }

    /// How many ranks there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The state of a rank that was used.
    #[inline]
    pub(crate) fn used(&self, rank: u32) -> Option<&P> {
        self.0.get(rank as usize)?.get().map(|peer| &**peer)
    }

    /// The state of a rank, made if there was none, and whether this call has made it.
    ///
    /// # Panics
    /// If there is no such rank.
    pub(crate) fn get_or_init(&self, rank: JobRank, make: impl FnOnce() -> Box<P>) -> (&P, bool) {
        let mut is_new = false;
        let peer = self.0[rank.index()].get_or_init(|| {
            is_new = true;
            make()
        });
        (peer, is_new)
    }

    /// All that were used.
    pub(crate) fn all(&self) -> impl Iterator<Item = &P> {
        self.0
            .iter()
            .filter_map(|peer| peer.get())
            .map(|peer| &**peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_made_at_its_first_use_alone() {
        let peers = Peers::new(3);
        assert_eq!((peers.used(1), peers.used(3)), (None, None));
        for (made, is_new) in [(7, true), (8, false)] {
            assert_eq!(
                peers.get_or_init(JobRank(1), || Box::new(made)),
                (&7, is_new)
            );
        }
        assert_eq!(peers.used(1), Some(&7));
        assert_eq!(peers.all().collect::<Vec<_>>(), [&7]);
    }
}
