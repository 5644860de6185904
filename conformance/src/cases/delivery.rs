//! Everything arrives, once, as it was sent, in the order that is promised.

use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::pattern::Dice;
use crate::rig::Rig;
use argonet_am::{Category, MAX_CARRIED};
use argonet_conduit::Conduit;

/// Of a segment, the part of each source; of that, a place for each message under way.
const PLACE: u64 = 128;

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always("all_to_all_once_and_in_order", all_to_all_once_and_in_order),
        always(
            "all_to_all_with_the_smallest_buffers",
            all_to_all_with_the_smallest_buffers,
        ),
        always("a_long_run", a_long_run),
        always("sends_to_itself", sends_to_itself),
    ]
}

/// A message of any kind; no two of one source share a place in the target's segment.
fn any(dice: &mut Dice, tag: u32, from: u32, to: u32, max: usize) -> Mail {
    let place = |source: u32| (u64::from(source) * 256 + u64::from(tag) % 256) * PLACE;
    let len = match dice.below(8) {
        0 => dice.below(max + 1),
        1..4 => dice.below(PLACE as usize),
        _ => dice.below(24),
    };
    let short = dice.below(PLACE as usize);
    let nargs = dice.below(MAX_CARRIED) + 1;
    let mail = match dice.below(3) {
        0 => Mail::note(tag),
        1 => Mail::note(tag).medium(len),
        _ => Mail::note(tag).long(short, place(from)),
    };
    match dice.below(6) {
        0 => mail.asks(Category::Short, nargs, 0, 0),
        1 => mail.asks(Category::Medium, nargs, len, 0),
        // Replies have the other half of the segment.
        2 => mail.asks(Category::Long, nargs, short, place(to + 8)),
        3 => mail.args(nargs).medium(short).echo(),
        _ => mail.args(nargs),
    }
}

fn all_to_all<R: Rig>(rig: &R, cramped: bool) {
    // Fewer than a segment has places for one source.
    const EACH: u32 = 200;
    for ranks in 2..=5 {
        let want = Want::ranks(ranks).segments(16 * 256 * PLACE);
        let mut bench = Bench::new(rig, if cramped { want.cramped() } else { want });
        let limits = bench.at(0).limits();
        let max = limits.medium_request.min(limits.medium_reply);
        let mut dice = Dice(ranks.into());
        for tag in 0..EACH {
            for from in bench.ranks() {
                for to in bench.ranks() {
                    let mail = any(&mut dice, tag, from, to, max);
                    bench.send(from, to, mail);
                }
            }
            // Sometimes some have a look, so that messages meet at all stages.
            for _ in 0..dice.below(3) {
                let rank = dice.below(ranks as usize) as u32;
                bench.poll(rank);
            }
        }
        bench.account();
    }
}

fn all_to_all_once_and_in_order<R: Rig>(rig: &R) {
    all_to_all(rig, false);
}

fn all_to_all_with_the_smallest_buffers<R: Rig>(rig: &R) {
    all_to_all(rig, true);
}

/// Far more than any buffer holds, in a stream with sizes that never line up with its end.
fn a_long_run<R: Rig>(rig: &R) {
    const COUNT: u32 = 40_000;
    let mut bench = Bench::new(rig, Want::ranks(2));
    let mut dice = Dice(1);
    for tag in 0..COUNT {
        let mail = match dice.below(4) {
            0 => Mail::note(tag).medium(dice.below(100)),
            1 => Mail::note(tag).args(dice.below(MAX_CARRIED) + 1),
            2 => Mail::note(tag).medium(dice.below(16)).echo(),
            _ => Mail::note(tag),
        };
        bench.send(0, 1, mail);
    }
    bench.account();
}

/// All kinds of messages to the sender itself, while it sends to another.
fn sends_to_itself<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).segments(16 * 256 * PLACE));
    let limits = bench.at(0).limits();
    let mut dice = Dice(3);
    for tag in 0..200 {
        let mail = any(
            &mut dice,
            tag,
            0,
            0,
            limits.medium_request.min(limits.medium_reply),
        );
        bench.send(0, 0, mail);
        bench.send(0, 1, Mail::note(tag).asks_short());
    }
    bench.account();
    let mut alone = Bench::new(rig, Want::ranks(1));
    for tag in 0..200 {
        alone.send(0, 0, Mail::note(tag).medium(tag as usize).echo());
    }
    alone.account();
}
