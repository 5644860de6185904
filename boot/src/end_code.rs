//! The exit code of a rank that ends because its job does.

use argonet_base::JobRank;

use crate::page::{ExitKind, ExitWord, RankState};

/// The code of `rank`, in `state`, where the job ends because of `word`.
///
/// With `by_launcher` the code of the job is made of the codes of its processes by another
/// launcher. So a rank that was made to end because another left with 0 says itself that the job
/// was cut short. Async-signal-safe.
pub(crate) fn end_code(
    word: Option<ExitWord>,
    rank: JobRank,
    state: RankState,
    by_launcher: bool,
) -> u8 {
    let Some(word) = word else {
        return 1;
    };
    let left = word.kind == ExitKind::Left && word.rank != rank;
    match word.process_code() {
        0 if by_launcher && left && state == RankState::AskedToEnd => 1,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_cut_short_is_no_success_under_another_launcher() {
        let code = |kind, code, state, by_launcher| {
            let rank = JobRank(1);
            let word = Some(ExitWord { kind, rank, code });
            end_code(word, JobRank(0), state, by_launcher)
        };
        let (left, asked) = (ExitKind::Left, RankState::AskedToEnd);
        assert_eq!(code(left, 0, asked, true), 1);
        assert_eq!(code(left, 0, asked, false), 0, "the launcher says so");
        assert_eq!(code(left, 0, RankState::Exiting, true), 0, "all leave");
        assert_eq!(code(left, 7, asked, true), 7);
        assert_eq!(code(ExitKind::Exit, 0, asked, true), 0, "as was asked");
        assert_eq!(end_code(None, JobRank(0), asked, true), 1);
    }
}
