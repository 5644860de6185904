//! Ranks that cannot reach each other, as the root hears of them, without I/O or clock.
//!
//! The root hears accusations for a while. Then it takes the rank that is in the most of them, has
//! it killed, drops its pairs, and so on until no pair is left. So a host whose network is broken
//! loses its ranks, and the others keep theirs, also if they have spoken later. Of equal ranks it
//! takes the accused one of the earliest pair.

use argonet_base::JobRank;

/// Accusations, and the ranks that were killed for them.
#[derive(Debug)]
pub(crate) struct Accusations {
    /// By rank: whether it is lost, or is killed to be, or has ended otherwise.
    ///
    /// What it says, or what is said of it, counts no more.
    doomed: Vec<bool>,
    /// Accuser and accused, of ranks that are not doomed, in the order in which they were heard.
    pairs: Vec<(JobRank, JobRank)>,
    /// Accuser and accused, which was killed and has not ended.
    awaited: Vec<(JobRank, JobRank)>,
}

impl Accusations {
    /// In a job of so many ranks.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            doomed: vec![false; size],
            pairs: Vec::new(),
            awaited: Vec::new(),
        }
    }

    /// `accuser` cannot reach `accused`, which it has not said before; whether that counts.
    pub(crate) fn add(&mut self, accuser: JobRank, accused: JobRank) -> bool {
        let counts = |rank: JobRank| !self.doomed[rank.index()];
        let may = accuser != accused && counts(accuser) && counts(accused);
        if may {
            self.pairs.push((accuser, accused));
        }
        may
    }

    /// Dooms ranks until none is left that cannot reach another; each with one that it cannot
    /// reach, or that cannot reach it.
    pub(crate) fn choose_victims(&mut self) -> Vec<(JobRank, JobRank)> {
        let mut victims = Vec::new();
        while let Some(victim) = self.worst() {
            let others = self
                .pairs
                .iter()
                .filter_map(|&(accuser, accused)| match victim {
                    _ if victim == accused => Some(accuser),
                    _ if victim == accuser => Some(accused),
                    _ => None,
                });
            victims.extend(others.min().map(|other| (victim, other)));
            let waiting = self.pairs.iter().filter(|(_, accused)| *accused == victim);
            self.awaited.extend(waiting);
            self.doom(victim);
        }
        victims
    }

    /// The rank in the most pairs; of equal ones the accused one of the earliest pair.
    fn worst(&self) -> Option<JobRank> {
        let mut counts = vec![0_u32; self.doomed.len()];
        for (accuser, accused) in &self.pairs {
            counts[accuser.index()] += 1;
            counts[accused.index()] += 1;
        }
        let most = counts.iter().copied().max().filter(|&most| most > 0)?;
        let has_most = |rank: &JobRank| counts[rank.index()] == most;
        let mut sides = self
            .pairs
            .iter()
            .flat_map(|&(accuser, accused)| [accused, accuser]);
        sides.find(has_most)
    }

    /// `rank` is lost.
    pub(crate) fn lost(&mut self, rank: JobRank) {
        self.doom(rank);
        self.awaited.retain(|(_, accused)| *accused != rank);
    }

    /// `rank` has ended and is not lost: a rank that waits in vain for its loss.
    pub(crate) fn ended_unlost(&mut self, rank: JobRank) -> Option<JobRank> {
        self.awaited.retain(|(accuser, _)| *accuser != rank);
        let mut waiting = self.awaited.iter().chain(&self.pairs);
        let waiting = waiting.find(|(_, accused)| *accused == rank).copied();
        self.doom(rank);
        waiting.map(|(accuser, _)| accuser)
    }

    fn doom(&mut self, rank: JobRank) {
        self.doomed[rank.index()] = true;
        self.pairs
            .retain(|(accuser, accused)| *accuser != rank && *accused != rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANKS: [JobRank; 3] = [JobRank(1), JobRank(2), JobRank(3)];

    #[test]
    fn one_of_two_ranks_that_accuse_each_other_is_killed() {
        let mut heard = Accusations::new(3000);
        let [a, b, c] = RANKS;
        assert!(!heard.add(a, a) && heard.choose_victims().is_empty());
        assert!(heard.add(a, b) && heard.add(b, a));
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
            let mut heard = Accusations::new(3000);
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
        let mut heard = Accusations::new(3000);
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
            let mut heard = Accusations::new(3000);
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
