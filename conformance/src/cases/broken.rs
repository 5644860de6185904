//! Garbage, as a peer with damaged memory, or another version, may send it.

use super::Case;
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::rig::{Job, Rig};
use argonet_am::AmError;
use argonet_base::JobRank;

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![Case {
        name: "garbage_is_reported_and_not_used",
        applies: |promises| promises.garbage > 0,
        run: garbage_is_reported_and_not_used,
    }]
}

/// Each kind is reported with both ranks, no handler runs, and other peers are served as before.
fn garbage_is_reported_and_not_used<R: Rig>(rig: &R) {
    for kind in 0..rig.promises().garbage {
        let mut bench = Bench::new(rig, Want::ranks(3));
        bench.job.corrupt(JobRank(1), JobRank(0), kind);
        bench.until_among(&[1], "garbage is reported", |bench| {
            !bench.logs[1].broken.is_empty()
        });
        let error = &bench.logs[1].broken[0];
        let who = (JobRank(1), JobRank(0));
        assert!(
            matches!(error, AmError::Broken { at, from, .. } if (*at, *from) == who),
            "kind {kind}: {error}"
        );
        for tag in 0..10 {
            bench.send(2, 1, Mail::note(tag).asks_short());
        }
        bench.until("others are served", |bench| bench.all_here());
        assert!(
            bench.logs[1].requests[0].is_empty(),
            "kind {kind} was delivered"
        );
        assert!(
            bench.logs[1].replies[0].is_empty(),
            "kind {kind} was delivered"
        );
    }
}
