//! Outcome of a job: its exit code and the line with the reason, from the ends of its ranks.

use argonet_base::JobRank;

use crate::exit::{ProcessEnd, SmallStack, Verdict, was_ended};
use crate::judgment::Obstacle;
use crate::page::{ExitKind, ExitWord, RankState};

/// End of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) pid: u32,
    pub(crate) end: ProcessEnd,
    pub(crate) state: RankState,
    /// The limit of its stack, where it is small: that of its host.
    pub(crate) small_stack: Option<SmallStack>,
    /// Its place in the order of losses, from 1 on, if the job has gone on without it.
    pub(crate) lost: Option<u32>,
}

impl Fate {
    /// Whether the rank ended badly after it had finalized, or asked for the end: the job's code,
    /// but no reason to end others.
    pub(crate) fn is_late_failure(&self) -> bool {
        matches!(
            self.state,
            RankState::Finalized | RankState::Exiting | RankState::Returned
        ) && self.end.is_failure(self.state)
    }
}

/// The code and reason of a job that ended for `word`, if anything ended it before all ranks came
/// to their end.
///
/// `late_failure` is the first rank that ended badly after it had finalized; a fate is `None` where
/// it is unknown. `obstacle` is what kept the job from going on without the rank, if it was to.
pub(crate) fn settle(
    word: Option<ExitWord>,
    late_failure: Option<JobRank>,
    fates: &[Option<Fate>],
    obstacle: Option<Obstacle>,
) -> (u8, Option<String>) {
    let others_ended = |rank: JobRank| {
        (0..).map(JobRank).zip(fates).any(|(r, fate)| {
            let ended = |fate: &Fate| fate.lost.is_none() && was_ended(fate.state, fate.end);
            r != rank && fate.as_ref().is_none_or(ended)
        })
    };
    let went_well = |word: ExitWord| {
        word.kind.leaves_time() && word.process_code() == 0 && !others_ended(word.rank)
    };
    let word = match (word, late_failure) {
        (Some(word), Some(rank)) if went_well(word) => failed(rank),
        (Some(word), _) => word,
        (None, Some(rank)) => failed(rank),
        (None, None) => return (code_of_losses(fates), None),
    };
    let others_ended = match word.kind {
        ExitKind::Failed if late_failure == Some(word.rank) => false,
        kind if kind.leaves_time() => others_ended(word.rank),
        _ => fates.len() > 1,
    };
    let Some(Some(fate)) = fates.get(word.rank.index()) else {
        return (word.code.max(1), Some(word.to_string()));
    };
    let verdict = Verdict {
        small_stack: fate.small_stack,
        obstacle: obstacle.filter(|_| word.kind.is_death()),
        ..Verdict::new(word, fate.pid, fate.end, fate.state, others_ended)
    };
    let line = verdict.is_news().then(|| verdict.to_string());
    (verdict.code(), line)
}

/// The code of a job that nothing has ended: 0 if a rank is left of it that ended well.
fn code_of_losses(fates: &[Option<Fate>]) -> u8 {
    let orders = || fates.iter().map(|fate| fate.as_ref()?.lost);
    if !orders().all(|order| order.is_some()) {
        return 0;
    }
    let first = fates.iter().flatten().min_by_key(|fate| fate.lost);
    first.map_or(0, |fate| fate.end.shell_code().max(1))
}

fn failed(rank: JobRank) -> ExitWord {
    ExitWord {
        kind: ExitKind::Failed,
        rank,
        code: 1,
    }
}

/// The loss of a rank, in words; whether other ranks are left.
pub(crate) fn loss_in_words(rank: JobRank, fate: &Fate, others_left: bool) -> String {
    let (kind, code) = (ExitKind::Died, 1);
    let word = ExitWord { kind, rank, code };
    let verdict = Verdict {
        small_stack: fate.small_stack,
        ..Verdict::new(word, fate.pid, fate.end, fate.state, false)
    };
    let then = match others_left {
        true => "the job goes on without it",
        false => "no rank is left",
    };
    format!("{verdict}; {then}")
}

/// Whether another rank was there when `rank` was lost, as number `order`.
///
/// That is one of those that were `left` before a look, and not lost earlier; by that look it may
/// have ended well.
pub(crate) fn is_outlived(
    rank: JobRank,
    order: u32,
    left: &[JobRank],
    fates: &[(JobRank, Fate)],
) -> bool {
    let is_earlier = |fate: &Fate| fate.lost.is_some_and(|lost| lost < order);
    let lost_before = |other| {
        fates
            .iter()
            .any(|(r, fate)| *r == other && is_earlier(fate))
    };
    left.iter()
        .any(|&other| other != rank && !lost_before(other))
}

/// End of a rank's process, in words.
pub(crate) fn in_words(rank: JobRank, fate: &Fate) -> String {
    let how = match fate.end {
        ProcessEnd::Code(code) => format!("exited with code {code}"),
        ProcessEnd::Signal(signal) => format!("was ended by signal {signal}"),
        ProcessEnd::Unknown => "has ended".into(),
    };
    format!("rank {rank} {how}, {}", fate.state.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(end: ProcessEnd, state: RankState, lost: Option<u32>) -> Option<Fate> {
        Some(Fate {
            pid: 9,
            end,
            state,
            small_stack: None,
            lost,
        })
    }

    fn lost(signal: u8, order: u32) -> Option<Fate> {
        let end = ProcessEnd::Signal(signal);
        fate(end, RankState::Running, Some(order))
    }

    #[test]
    fn a_job_ends_as_its_survivors_do() {
        let well = fate(ProcessEnd::Code(0), RankState::Finalized, None);
        let (none, fates) = ((0, None), [lost(9, 1), well]);
        assert_eq!(settle(None, None, &fates, None), none);
        // All survivors have asked for an end with 0.
        let exited = fate(ProcessEnd::Code(0), RankState::Exiting, None);
        let (kind, rank, code) = (ExitKind::Exit, JobRank(1), 0);
        let word = Some(ExitWord { kind, rank, code });
        assert_eq!(settle(word, None, &[lost(9, 1), exited], None), none);
        let badly = fate(ProcessEnd::Code(3), RankState::Finalized, None);
        let (code, reason) = settle(None, Some(JobRank(1)), &[lost(9, 1), badly], None);
        assert_eq!(code, 3);
        assert_eq!(reason.as_deref(), Some("rank 1 (pid 9) exited with code 3"));
    }

    #[test]
    fn a_job_that_has_lost_all_ranks_ends_as_the_first() {
        let fates = [lost(9, 3), lost(11, 1), lost(6, 2)];
        assert_eq!(settle(None, None, &fates, None), (139, None));
        let left = fate(ProcessEnd::Code(0), RankState::Running, Some(1));
        assert_eq!(settle(None, None, &[left], None), (1, None));
    }

    #[test]
    fn the_reason_says_what_kept_a_job_from_going_on() {
        let died = fate(ProcessEnd::Signal(9), RankState::Running, None);
        let (kind, rank, code) = (ExitKind::Died, JobRank(0), 1);
        let word = Some(ExitWord { kind, rank, code });
        let obstacle = Obstacle::NoHandler(JobRank(1));
        let (code, reason) = settle(word, None, &[died, died], Some(obstacle));
        assert_eq!(code, 137);
        let begin = "rank 0 (pid 9) was killed by signal 9 (SIGKILL); the other ranks were ended, ";
        let line = format!("{begin}{obstacle}");
        assert!(line.contains("as rank 1 has no handler"), "{line}");
        assert_eq!(reason, Some(line));
    }

    #[test]
    fn ranks_that_end_at_one_look_may_have_outlived_a_lost_one() {
        let ranks = [0, 1, 2].map(JobRank);
        let well = fate(ProcessEnd::Code(0), RankState::Exiting, None);
        let outlives = |order, left: &[JobRank], fates: [Option<Fate>; 3]| {
            let known = ranks.iter().copied().zip(fates);
            let fates: Vec<_> = known.filter_map(|(r, fate)| Some((r, fate?))).collect();
            is_outlived(ranks[2], order, left, &fates)
        };
        // All others have ended well meanwhile; or before, one alone, or none.
        assert!(outlives(1, &ranks, [well, well, lost(9, 1)]));
        assert!(outlives(1, &ranks[1..], [None, well, lost(9, 1)]));
        assert!(!outlives(1, &ranks[2..], [None, None, lost(9, 1)]));
        // Others were lost before or after.
        assert!(!outlives(3, &ranks, [lost(9, 1), lost(9, 2), lost(9, 3)]));
        assert!(outlives(1, &ranks, [lost(9, 2), lost(9, 3), lost(9, 1)]));
        assert!(outlives(2, &ranks, [lost(9, 1), well, lost(9, 2)]));
    }

    #[test]
    fn a_loss_names_rank_process_and_signal() {
        let fate = lost(9, 1).expect("a fate");
        let line = loss_in_words(JobRank(2), &fate, true);
        let begin = "rank 2 (pid 9) was killed by signal 9 (SIGKILL); ";
        assert_eq!(line, format!("{begin}the job goes on without it"));
        let line = loss_in_words(JobRank(2), &fate, false);
        assert_eq!(line, format!("{begin}no rank is left"));
    }
}
