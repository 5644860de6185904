//! The first exit that a host hears of.

use super::*;
use crate::attach::make_job;
use argonet_settings::Settings;

// spec P13: a rank ends with the code of the first exit that was reported to its host.
#[test]
fn the_first_exit_heard_is_the_hosts_and_marks_it() {
    let heard = |codes: &[(u32, u8)]| {
        let (_files, control) = make_job(4, &Settings::default()).unwrap();
        for (from, code) in codes {
            heard_exit(&control, JobRank(*from), *code);
        }
        (control.job().exit_word(), control.job().is_exit_reported())
    };
    let word = |rank, code| {
        let (kind, rank) = (ExitKind::Exit, JobRank(rank));
        Some(ExitWord { kind, rank, code })
    };
    assert_eq!(heard(&[]), (None, false));
    assert_eq!(heard(&[(3, 7), (2, 9), (1, 0)]), (word(3, 7), true));
    assert_eq!(heard(&[(1, 0), (3, 7)]), (word(1, 0), true));
}
