//! Ranks that cannot reach each other, as the root hears of them, without I/O or clock.
//!
//! The root hears accusations for a while. Then it takes the rank that cannot reach the most
//! others, has it killed, drops its pairs, and so on until no pair is left. So a host whose network
//! is broken loses its ranks, and the others keep theirs, also if they have spoken later. Of equal
//! ranks it takes the accused one of the earliest pair.

use std::collections::{BTreeMap, BTreeSet};

use argonet_base::JobRank;

/// Accusations, and the ranks that were killed for them.
#[derive(Debug, Default)]
pub(crate) struct Accusations {
    /// Ranks that are lost, or are killed to be: what they say, or what is said of them, counts no
    /// more.
    doomed: BTreeSet<u32>,
    /// Accuser and accused, of ranks that are not doomed; each pair once, with its place.
    pairs: BTreeMap<(u32, u32), usize>,
    /// Number of pairs so far.
    heard: usize,
    /// Accuser and accused, which was killed and has not ended.
    awaited: Vec<(JobRank, JobRank)>,
}

/// A rank of some pairs.
#[derive(Debug)]
struct Side {
    others: BTreeSet<u32>,
    /// Place of the earliest pair; those in which the rank is accused come first.
    place: usize,
}

impl Accusations {
    /// `accuser` cannot reach `accused`; whether that counts.
    pub(crate) fn add(&mut self, accuser: JobRank, accused: JobRank) -> bool {
        let counts = |rank: JobRank| !self.doomed.contains(&rank.0);
        if accuser == accused || !counts(accuser) || !counts(accused) {
            return false;
        }
        self.pairs
            .entry((accuser.0, accused.0))
            .or_insert(self.heard);
        self.heard += 1;
        true
    }

    /// Dooms ranks until none is left that cannot reach another; each with one that it cannot
    /// reach, or that cannot reach it.
    pub(crate) fn choose_victims(&mut self) -> Vec<(JobRank, JobRank)> {
        let mut sides = self.sides();
        let mut victims = Vec::new();
        while let Some(victim) = worst(&sides) {
            let Some(side) = sides.remove(&victim) else {
                break;
            };
            for other in &side.others {
                if let Some(other) = sides.get_mut(other) {
                    other.others.remove(&victim);
                }
            }
            sides.retain(|_, side| !side.others.is_empty());
            let of_victim = self.pairs.keys().filter(|(_, accused)| *accused == victim);
            let of_victim = of_victim.map(|&(accuser, _)| (JobRank(accuser), JobRank(victim)));
            self.awaited.extend(of_victim);
            self.doom(JobRank(victim));
            let other = side.others.first();
            victims.extend(other.map(|other| (JobRank(victim), JobRank(*other))));
        }
        victims
    }

    fn sides(&self) -> BTreeMap<u32, Side> {
        let mut sides: BTreeMap<u32, Side> = BTreeMap::new();
        for (&(accuser, accused), &place) in &self.pairs {
            let both = [
                (accused, accuser, 2 * place),
                (accuser, accused, 2 * place + 1),
            ];
            for (rank, other, place) in both {
                let side = sides.entry(rank).or_insert_with(|| Side {
                    others: BTreeSet::new(),
                    place,
                });
                side.others.insert(other);
                side.place = side.place.min(place);
            }
        }
        sides
    }

    /// `rank` is lost.
    pub(crate) fn lost(&mut self, rank: JobRank) {
        self.doom(rank);
        self.awaited.retain(|(_, accused)| *accused != rank);
    }

    /// `rank` has ended and is not lost: a rank that waits in vain for its loss.
    pub(crate) fn ended_unlost(&mut self, rank: JobRank) -> Option<JobRank> {
        self.awaited.retain(|(accuser, _)| *accuser != rank);
        let pairs = self.pairs.keys();
        let pairs = pairs.map(|&(accuser, accused)| (JobRank(accuser), JobRank(accused)));
        let mut waiting = self.awaited.iter().copied().chain(pairs);
        let waiting = waiting.find(|(_, accused)| *accused == rank);
        self.doom(rank);
        waiting.map(|(accuser, _)| accuser)
    }

    fn doom(&mut self, rank: JobRank) {
        self.doomed.insert(rank.0);
        self.pairs
            .retain(|&(accuser, accused), _| accuser != rank.0 && accused != rank.0);
    }
}

/// The rank with the most others.
fn worst(sides: &BTreeMap<u32, Side>) -> Option<u32> {
    let key = |side: &Side| (side.others.len(), usize::MAX - side.place);
    let worst = sides.iter().max_by_key(|(_, side)| key(side));
    worst.map(|(rank, _)| *rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANKS: [JobRank; 3] = [JobRank(1), JobRank(2), JobRank(3)];

    #[test]
    fn one_of_two_ranks_that_accuse_each_other_is_killed() {
        let mut heard = Accusations::default();
        let [a, b, c] = RANKS;
        assert!(!heard.add(a, a) && heard.choose_victims().is_empty());
        assert!(heard.add(a, b) && heard.add(b, a) && heard.add(a, b));
        assert_eq!(heard.choose_victims(), [(b, a)]);
        assert!(heard.choose_victims().is_empty());
        // What the one says that is being killed, and what is said of it.
        assert!(!heard.add(b, a) && !heard.add(c, b));
        heard.lost(b);
        heard.lost(c);
        assert!(!heard.add(a, c) && !heard.add(c, a));
    }

    #[test]
    fn the_ranks_of_the_host_whose_network_is_broken_are_killed() {
        // The first to speak makes no difference.
        for broken in 0..3 {
            let mut heard = Accusations::default();
            let host_of = |rank: u32| rank / 2;
            let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to)));
            let is_cut = |&(from, to): &(u32, u32)| {
                let hosts = [host_of(from), host_of(to)];
                hosts[0] != hosts[1] && hosts.contains(&broken)
            };
            for (from, to) in pairs.filter(is_cut) {
                assert!(heard.add(JobRank(from), JobRank(to)));
            }
            let victims = heard.choose_victims();
            let mut killed: Vec<u32> = victims.iter().map(|(rank, _)| rank.0).collect();
            killed.sort_unstable();
            assert_eq!(killed, [2 * broken, 2 * broken + 1]);
        }
    }

    #[test]
    fn many_pairs_take_no_long_time() {
        let mut heard = Accusations::default();
        for from in 0..50 {
            for to in 50..2050 {
                assert!(heard.add(JobRank(from), JobRank(to)));
            }
        }
        let begun = std::time::Instant::now();
        assert_eq!(heard.choose_victims().len(), 50);
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn a_rank_does_not_wait_for_the_loss_of_one_that_comes_to_its_end() {
        let [a, b, c] = RANKS;
        let accused = || {
            let mut heard = Accusations::default();
            assert!(heard.add(a, b));
            heard
        };
        let mut heard = accused();
        assert_eq!(
            (heard.ended_unlost(c), heard.ended_unlost(b)),
            (None, Some(a))
        );
        let mut heard = accused();
        assert_eq!(heard.choose_victims(), [(b, a)]);
        assert_eq!(heard.ended_unlost(b), Some(a));
        // One that is lost is not waited for any more, nor does one wait that has ended.
        let mut heard = accused();
        assert_eq!(heard.choose_victims(), [(b, a)]);
        heard.lost(b);
        assert_eq!(heard.ended_unlost(b), None);
        let mut heard = accused();
        assert_eq!((heard.ended_unlost(a), heard.ended_unlost(b)), (None, None));
        // An accuser that is killed for what others say of it waits for no loss.
        let mut heard = accused();
        assert!(heard.add(c, a));
        assert_eq!(heard.choose_victims(), [(a, b)]);
        assert_eq!(
            (heard.ended_unlost(b), heard.ended_unlost(a)),
            (None, Some(c))
        );
    }
}
