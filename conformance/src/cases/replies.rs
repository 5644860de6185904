//! Replies: at most one, only to requests, of every kind.

use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::log::PICKY;
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_am::Category;

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always(
            "replies_of_every_kind_to_every_kind",
            replies_of_every_kind_to_every_kind,
        ),
        always(
            "a_refused_reply_may_be_tried_again",
            a_refused_reply_may_be_tried_again,
        ),
    ]
}

const KINDS: [Category; 3] = [Category::Short, Category::Medium, Category::Long];

fn request(kind: Category, tag: u32) -> Mail {
    match kind {
        Category::Short => Mail::note(tag),
        Category::Medium => Mail::note(tag).medium(100),
        Category::Long => Mail::note(tag).long(100, 64 * u64::from(tag)),
    }
}

/// None and one of each kind, to each kind of request, to another rank and to the sender.
///
/// The handlers also try a second reply and a reply to the reply, which are refused.
fn replies_of_every_kind_to_every_kind<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let mut tag = 0;
    for to in [1, 0] {
        for kind in KINDS {
            let plain = request(kind, tag);
            bench.send(0, to, plain);
            for answer in KINDS {
                for nargs in [0, 1, 3, 16] {
                    tag += 2;
                    let len = if answer == Category::Short { 0 } else { 120 };
                    let place = (1 << 17) + 128 * u64::from(tag);
                    bench.send(0, to, request(kind, tag).asks(answer, nargs, len, place));
                }
            }
        }
    }
    bench.account();
}

/// A reply without handler, with too many arguments, too long or outside is refused, and the right
/// to reply is kept.
fn a_refused_reply_may_be_tried_again<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    for (n, kind) in KINDS.into_iter().enumerate() {
        for to in [1, 0] {
            let mail = request(kind, n as u32).asks(Category::Medium, 2, 50, 0);
            bench.send(0, to, mail.to_handler(PICKY));
        }
    }
    bench.account();
}
