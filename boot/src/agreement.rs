//! Agreement of the surviving ranks on the number of ranks that are lost.
//!
//! A rank enters round n on its page, and asks until the round is decided:
//!
//! ```text
//!  c = losses declared
//!  every rank that is not among the first c lost, and may still enter, has entered round n or later
//!  losses declared is still c              else from the beginning
//!  agreement: (n - 1 or earlier, ..) -> (n, c)       compare and exchange
//! ```
//!
//! Any rank that sees this decides. In a job over several hosts no rank sees those of other hosts,
//! and the root of the tree of agents decides (`hosts/survival.rs`). From this follows, for jobs on
//! one host:
//!
//! * *One result.* The word moves to round n once, as it only moves to later rounds. So all that
//!   read a result of round n read the same, also where the one that decided has died since, or
//!   where two found different counts at the same time. If ranks die while they look, others do.
//! * *Only the last round is asked for.* The word holds one round, so a rank in round n must not
//!   find n + 1 there. To decide n + 1 takes a c of which every rank that is not among the first c
//!   lost, and has not finalized, has entered n + 1. A rank that asks for n has not entered n + 1,
//!   as it enters that with the result of n. So it is among the first c lost, and its process had
//!   ended before that was declared, or it has finalized; neither asks.
//! * *A rank that is lost between* had entered round n or not. If it had, n may be decided with or
//!   without it, by one exchange. If it had not, n waits until it is declared. Then it is among the
//!   first c that are read after: it stands for nothing in any later round, and a decision that it
//!   has prepared cannot come any more, since its process has ended.
//! * *A result covers every loss that was declared before the last survivor entered.* The count is
//!   read again after all have been seen to have entered: their Release stores pair with the
//!   Acquire loads that see them. A count that is read before may miss a rank that entered, died
//!   and was declared meanwhile.
//! * *It ends.* A rank that never enters any more finalizes, or dies and is declared, or ends the
//!   job, for which ranks look elsewhere.

use argonet_base::JobRank;

use crate::losses::is_among;
use crate::page::{Control, RankState};

/// Enters `round` as `rank`; the number of losses agreed on, once it is decided.
///
/// `entered` is called if the rank had not entered it before.
pub(crate) fn agree(
    control: &Control,
    rank: JobRank,
    round: u32,
    entered: impl FnOnce(),
) -> Option<u32> {
    if control.rank_page(rank).enter_agreement(round) {
        entered();
    }
    let decided = || {
        let (last, losses) = control.job().agreement();
        (last >= round).then_some(losses)
    };
    if let Some(losses) = decided() {
        return Some(losses);
    }
    let losses = complete(control, round)?;
    control.job().decide(round, losses);
    decided()
}

/// The number of losses if all others have entered `round`.
///
/// In a job over several hosts the root finds that.
fn complete(control: &Control, round: u32) -> Option<u32> {
    if !control.is_whole_job() {
        return None;
    }
    let has_all = |losses| {
        let mut ranks = control.host_ranks();
        !ranks.any(|rank| is_missing(control, rank, round, losses))
    };
    steady(|| control.job().losses(), has_all)
}

/// A number of losses with which a round has all ranks, and that is still the number then; `None`
/// if some are missing.
fn steady(losses: impl Fn() -> u32, has_all: impl Fn(u32) -> bool) -> Option<u32> {
    loop {
        let count = losses();
        if !has_all(count) {
            return None;
        }
        if losses() == count {
            return Some(count);
        }
    }
}

/// The ranks that are left, and how many losses each has acknowledged.
fn acknowledged(control: &Control) -> impl Iterator<Item = (JobRank, u32)> {
    let lost = control.job().losses();
    control.host_ranks().filter_map(move |rank| {
        let page = control.rank_page(rank);
        let is_left = page.state() <= RankState::Running && !is_among(control, rank, lost);
        is_left.then(|| (rank, page.acknowledged()))
    })
}

/// Whether all ranks that are left have acknowledged so many losses.
pub(crate) fn have_acknowledged(control: &Control, losses: u32) -> bool {
    if !control.is_whole_job() {
        return control.job().all_acknowledged() >= losses;
    }
    acknowledged(control).all(|(_, its)| its >= losses)
}

/// A rank that is left and has acknowledged so many losses.
pub(crate) fn acknowledged_by(control: &Control, losses: u32) -> Option<JobRank> {
    if !control.is_whole_job() {
        let (most, rank) = control.job().furthest();
        return (most >= losses).then_some(rank);
    }
    acknowledged(control).find_map(|(rank, its)| (its >= losses).then_some(rank))
}

/// Whether a rank that is not among the first `losses` lost has yet to enter `round`.
fn is_missing(control: &Control, rank: JobRank, round: u32, losses: u32) -> bool {
    let page = control.rank_page(rank);
    // A rank that has finalized doesn't enter any more, and those beyond end.
    page.agreed() < round && page.state() <= RankState::Running && !is_among(control, rank, losses)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use argonet_settings::Settings;

    use super::*;
    use crate::attach::make_job;
    use crate::losses::declare;
    use crate::numbers::Numbers;

    fn running(size: u32) -> Control {
        let (_files, control) = make_job(size, &Settings::default()).unwrap();
        for rank in control.host_ranks() {
            assert!(control.rank_page(rank).join(rank.0 + 1));
            control.rank_page(rank).advance(RankState::Running);
        }
        control
    }

    #[test]
    fn a_round_is_decided_once_all_that_are_left_have_entered() {
        let control = running(4);
        let ask = |rank, round| agree(&control, JobRank(rank), round, || ());
        assert_eq!((ask(0, 1), ask(0, 1), ask(1, 1)), (None, None, None));
        control.rank_page(JobRank(2)).advance(RankState::Finalized);
        assert_eq!(ask(0, 1), None);
        declare(&control, JobRank(3));
        assert_eq!((ask(0, 1), ask(1, 1)), (Some(1), Some(1)));
        declare(&control, JobRank(1));
        assert_eq!(ask(0, 1), Some(1), "decided rounds stay as they are");
        assert_eq!(ask(0, 2), Some(2));
    }

    #[test]
    fn a_round_waits_for_a_rank_that_is_lost_until_that_is_declared() {
        let control = running(2);
        control.rank_page(JobRank(1)).set_lost(1);
        assert_eq!(agree(&control, JobRank(0), 1, || ()), None);
        control.job().set_losses(1);
        assert_eq!(agree(&control, JobRank(0), 1, || ()), Some(1));
    }

    #[test]
    fn losses_are_acknowledged_by_all_that_are_left() {
        let control = running(3);
        declare(&control, JobRank(2));
        let acknowledge = |rank, losses| control.rank_page(JobRank(rank)).acknowledge(losses);
        assert!(have_acknowledged(&control, 0) && !have_acknowledged(&control, 1));
        acknowledge(0, 1);
        assert!(!have_acknowledged(&control, 1), "rank 1 has not");
        assert_eq!(acknowledged_by(&control, 1), Some(JobRank(0)));
        assert_eq!(acknowledged_by(&control, 2), None);
        acknowledge(1, 1);
        // An older number changes nothing.
        acknowledge(1, 0);
        assert!(have_acknowledged(&control, 1) && !have_acknowledged(&control, 2));
        control.rank_page(JobRank(1)).advance(RankState::Finalized);
        acknowledge(0, 2);
        assert!(have_acknowledged(&control, 2));
    }

    #[test]
    fn a_loss_that_is_declared_while_ranks_are_looked_at_is_covered() {
        let control = running(3);
        let losses = || control.job().losses();
        let has_all = |_| {
            declare(&control, JobRank(1));
            true
        };
        assert_eq!(steady(losses, has_all), Some(1));
    }

    #[test]
    fn a_later_decision_stays() {
        let control = running(1);
        control.job().decide(3, 2);
        for (round, losses) in [(3, 1), (2, 0), (1, 4)] {
            control.job().decide(round, losses);
            assert_eq!(control.job().agreement(), (3, 2));
        }
        control.job().decide(4, 2);
        assert_eq!(control.job().agreement(), (4, 2));
    }

    /// What all ranks of a run share.
    struct Run<'a> {
        control: &'a Control,
        rounds: u32,
        /// The result of each round, plus 1, as the first rank that got it wrote it down.
        results: Vec<AtomicU32>,
        /// Losses that had been declared when the last rank entered a round, at least.
        declared: Vec<AtomicU32>,
        seed: u64,
    }

    impl Run<'_> {
        /// Lives as `rank`; true if it dies.
        fn live(&self, rank: JobRank, may_die: bool) -> bool {
            let mut numbers = Numbers::new(self.seed * 1000 + u64::from(rank.0));
            let mut dies = || may_die && numbers.below(3 * self.rounds as usize) == 0;
            for round in 1..=self.rounds {
                let at = round as usize;
                if dies() {
                    return true;
                }
                let declared = self.control.job().losses();
                self.declared[at].fetch_max(declared, Ordering::AcqRel);
                let mut result = agree(self.control, rank, round, || ());
                if dies() {
                    return true;
                }
                while result.is_none() {
                    thread::yield_now();
                    result = agree(self.control, rank, round, || ());
                }
                let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
                let result = result.unwrap_or_default() + 1;
                let first = self.results[at].compare_exchange(0, result, set, fetch);
                let first = first.map_or_else(|first| first, |_| result);
                assert_eq!(first, result, "seed {}, {rank:?}, round {round}", self.seed);
                let declared = self.declared[at].load(Ordering::Acquire);
                assert!(
                    result > declared,
                    "seed {}, round {round}: {declared} losses were declared, {} agreed on",
                    self.seed,
                    result - 1
                );
            }
            self.control.rank_page(rank).advance(RankState::Finalized);
            false
        }
    }

    /// Ranks that die at random steps, and a thread that declares them.
    fn run(seed: u64) {
        const RANKS: u32 = 6;
        const ROUNDS: u32 = 40;
        let control = running(RANKS);
        let words = || (0..=ROUNDS).map(|_| AtomicU32::new(0)).collect();
        let run = Run {
            control: &control,
            rounds: ROUNDS,
            results: words(),
            declared: words(),
            seed,
        };
        let (dead, ended) = channel();
        let survivors = Mutex::new(0);
        thread::scope(|scope| {
            for rank in control.host_ranks() {
                let (run, survivors): (_, &Mutex<u32>) = (&run, &survivors);
                let dead: Sender<JobRank> = dead.clone();
                scope.spawn(move || match run.live(rank, rank.0 > 0) {
                    true => dead.send(rank).unwrap(),
                    false => *survivors.lock().unwrap() += 1,
                });
            }
            drop(dead);
            for rank in ended {
                declare(&control, rank);
            }
        });
        let survivors = survivors.into_inner().unwrap();
        assert_eq!(control.job().losses(), RANKS - survivors);
        assert_eq!(control.job().agreement().0, ROUNDS);
    }

    #[test]
    fn all_survivors_get_the_same_results_wherever_others_die() {
        for seed in 1..=150 {
            run(seed);
        }
    }
}
