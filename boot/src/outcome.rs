//! Outcome of a job: its exit code and the line with the reason, from the ends of its ranks.

use argonet_base::JobRank;

use crate::exit::{ProcessEnd, SmallStack, Verdict, was_ended};
use crate::page::{ExitKind, ExitWord, RankState};

/// End of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) pid: u32,
    pub(crate) end: ProcessEnd,
    pub(crate) state: RankState,
    /// The limit of its stack, where it is small: that of its host.
    pub(crate) small_stack: Option<SmallStack>,
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
/// it is unknown.
pub(crate) fn settle(
    word: Option<ExitWord>,
    late_failure: Option<JobRank>,
    fates: &[Option<Fate>],
) -> (u8, Option<String>) {
    let others_ended = |rank: JobRank| {
        (0..).map(JobRank).zip(fates).any(|(r, fate)| {
            let ended = |fate: &Fate| was_ended(fate.state, fate.end);
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
        (None, None) => return (0, None),
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
        ..Verdict::new(word, fate.pid, fate.end, fate.state, others_ended)
    };
    let line = verdict.is_news().then(|| verdict.to_string());
    (verdict.code(), line)
}

fn failed(rank: JobRank) -> ExitWord {
    ExitWord {
        kind: ExitKind::Failed,
        rank,
        code: 1,
    }
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
