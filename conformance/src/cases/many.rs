//! Many endpoints, few of them busy or all.

use super::Case;
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_conduit::Conduit;

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        Case {
            name: "sixteen_endpoints",
            applies: |promises| promises.most_ranks >= 16,
            run: |rig| traffic(rig, 16),
        },
        Case {
            name: "sixty_four_endpoints",
            applies: |promises| promises.most_ranks >= 64,
            run: |rig| traffic(rig, 64),
        },
    ]
}

/// Between neighbors and two ranks far apart; then between all.
fn traffic<R: Rig>(rig: &R, ranks: u32) {
    let mut bench = Bench::new(rig, Want::ranks(ranks));
    let limits = bench.at(0).limits();
    let max = limits.medium_request.min(limits.medium_reply);
    for tag in 0..20 {
        for from in bench.ranks() {
            let (next, before) = ((from + 1) % ranks, (from + ranks - 1) % ranks);
            bench.send(from, next, Mail::note(tag).medium(100).asks_short());
            bench.send(from, before, Mail::note(tag).args(5));
        }
        bench.send(0, ranks / 2, Mail::note(tag).medium(max.min(3000)).echo());
    }
    bench.account();
    bench.forget();
    for tag in 0..2 {
        for from in bench.ranks() {
            for to in bench.ranks() {
                bench.send(from, to, Mail::note(tag).medium(20).asks_short());
            }
        }
    }
    bench.account();
}
