//! Ranks of the job, and every limit at its edge.

use super::{Case, always, lengths};
use crate::bench::{Bench, SEGMENT, Want};
use crate::log::{NOTE, message};
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_am::{AmError, Category, MAX_CARRIED, MAX_MEDIUM, MessageClass};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Conduit, PrepareRequest, SendError};

/// The least payload that GASNet-EX asks of every conduit, in bytes.
const LEAST_PAYLOAD: usize = 512;

/// Numbers of arguments around each step of a header.
const SOME_ARGS: [usize; 8] = [0, 1, 2, 3, 4, 7, 8, MAX_CARRIED];

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always("identity", identity),
        always("every_number_of_arguments", every_number_of_arguments),
        always("every_length_of_mediums", every_length_of_mediums),
        always("every_length_of_longs", every_length_of_longs),
        always("beyond_a_limit_is_refused", beyond_a_limit_is_refused),
        always("longs_outside_are_refused", longs_outside_are_refused),
    ]
}

/// Ranks are distinguished, and all endpoints say the same of the conduit.
fn identity<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(3));
    let first = bench.at(0);
    let (name, limits) = (first.name(), first.limits());
    assert!(!name.is_empty());
    assert_eq!(limits.args, MAX_CARRIED);
    for medium in [limits.medium_request, limits.medium_reply] {
        assert!((LEAST_PAYLOAD..=MAX_MEDIUM).contains(&medium), "{limits:?}");
    }
    assert!(limits.long >= LEAST_PAYLOAD, "{limits:?}");
    for rank in bench.ranks() {
        let endpoint = bench.at(rank);
        assert_eq!((endpoint.name(), endpoint.limits()), (name, limits));
        assert_eq!(endpoint.capabilities(), bench.promises.capabilities);
    }
    for from in bench.ranks() {
        for to in bench.ranks() {
            bench.send(from, to, Mail::note(10 * from + to).asks_short());
        }
    }
    bench.account();
}

/// As many arguments as can be carried arrive with all their bits, in each category, both ways.
fn every_number_of_arguments<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    for nargs in 0..=MAX_CARRIED {
        let mail = Mail::note(0x9000_0000 + nargs as u32).args(nargs);
        for mail in [mail, mail.medium(20), mail.long(20, 64)] {
            bench.send(0, 1, mail);
            bench.account();
            bench.forget();
        }
        for category in [Category::Short, Category::Medium, Category::Long] {
            let len = if category == Category::Short { 0 } else { 20 };
            bench.send(
                0,
                1,
                Mail::note(nargs as u32).asks(category, nargs, len, 128),
            );
        }
        bench.account();
        bench.forget();
    }
}

// spec P5
fn every_length_of_mediums<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let limits = bench.at(0).limits();
    for (tag, len) in lengths(&bench.promises, limits.medium_request)
        .into_iter()
        .enumerate()
    {
        let mail = Mail::note(tag as u32).medium(len);
        for nargs in SOME_ARGS {
            bench.send(0, 1, mail.args(nargs));
        }
        if len <= limits.medium_reply {
            bench.send(1, 0, mail.echo());
        }
    }
    bench.account();
    bench.forget();
    for (tag, len) in lengths(&bench.promises, limits.medium_reply)
        .into_iter()
        .enumerate()
    {
        for nargs in SOME_ARGS {
            bench.send(
                0,
                1,
                Mail::note(tag as u32).asks(Category::Medium, nargs, len, 0),
            );
        }
    }
    bench.account();
}

/// Longs lie where they should, for every length and place, and nothing beside them changes.
fn every_length_of_longs<R: Rig>(rig: &R) {
    const MARGIN: u64 = 64;
    let mut bench = Bench::new(rig, Want::ranks(2).segments(1 << 18));
    let max = bench
        .at(0)
        .limits()
        .long
        .min((1 << 18) - 2 * MARGIN as usize - 63);
    for (tag, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        for (place, nargs) in [(0, 1), (1, 0), (8, 2), (63, MAX_CARRIED)] {
            let around = vec![0xa5; len + 2 * MARGIN as usize];
            let mail = Mail::note(tag as u32).args(nargs).long(len, MARGIN + place);
            bench.write(1, place, &around);
            bench.send(0, 1, mail);
            let back = Mail::note(tag as u32).asks(Category::Long, nargs, len, MARGIN + place);
            bench.write(0, place, &around);
            bench.send(0, 1, back);
            bench.until("both are here", |bench| bench.all_here());
            bench.compare();
            bench.forget();
            for rank in [0, 1] {
                let now = bench.read(rank, place, around.len());
                let (before, rest) = now.split_at(MARGIN as usize);
                let (between, behind) = rest.split_at(len);
                let clean = before.iter().chain(behind).all(|&byte| byte == 0xa5);
                assert!(
                    clean,
                    "{len} bytes at {place}: a neighbor changed at rank {rank}"
                );
                assert!(
                    between == mail.payload(),
                    "{len} bytes at {place} at rank {rank}"
                );
            }
        }
    }
}

/// A message beyond a limit is an error, leaves nothing behind, and the next one goes out.
fn beyond_a_limit_is_refused<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let limits = bench.at(0).limits();
    let args = vec![1; limits.args + 1];
    let bytes = vec![2; limits.medium_request + 1];
    for (what, message) in [
        (
            "arguments of a short",
            message(NOTE, Category::Short, &args, &[], 0),
        ),
        (
            "arguments of a medium",
            message(NOTE, Category::Medium, &args, &bytes[..9], 0),
        ),
        (
            "arguments of a long",
            message(NOTE, Category::Long, &args, &bytes[..9], 0),
        ),
        (
            "bytes of a medium",
            message(NOTE, Category::Medium, &args[..1], &bytes, 0),
        ),
        (
            "the same with 4 arguments",
            message(NOTE, Category::Medium, &args[..4], &bytes, 0),
        ),
    ] {
        let sent = bench.at(0).request(JobRank(1), &message);
        assert!(
            matches!(sent, Err(SendError::Message(_))),
            "{what}: {sent:?}"
        );
        bench.send(0, 1, Mail::note(1).medium(9).asks_short());
        bench.account();
        bench.forget();
    }
    let fits = PrepareRequest {
        to: JobRank(1),
        class: MessageClass::Request,
        nargs: 1,
        least: 8,
        most: 8,
        offset: None,
    };
    let max = limits.medium_request;
    for (what, want) in [
        (
            "arguments",
            PrepareRequest {
                nargs: limits.args + 1,
                ..fits
            },
        ),
        (
            "bytes",
            PrepareRequest {
                least: max + 1,
                most: max + 1,
                ..fits
            },
        ),
    ] {
        let got = bench.at(0).prepare(&want);
        assert!(
            matches!(got, Err(SendError::Message(_))),
            "prepare with {what}: {got:?}"
        );
        bench.send(0, 1, Mail::note(1).asks_short());
        bench.account();
        bench.forget();
    }
}

/// Longs that do not lie in the target's segment: refused when they are sent, or reported to their
/// sender as soon as the target has looked.
///
/// None is written or handled, and others are served.
fn longs_outside_are_refused<R: Rig>(rig: &R) {
    for (offset, len) in [
        (SEGMENT - 1, 2),
        (SEGMENT, 1),
        (SEGMENT - 400, 500),
        (u64::MAX, 1),
        (u64::MAX - 1, 4),
    ] {
        let mut bench = Bench::new(rig, Want::ranks(2));
        let bytes = vec![0xee; len];
        let long = message(NOTE, Category::Long, &[1], &bytes, offset);
        let sent = bench.at(0).request(JobRank(1), &long);
        let what = format!("{len} bytes at {offset}");
        if bench.promises.knows_segments {
            let refused = Err(SendError::Message(AmError::OutsideSegment {
                offset,
                len,
                segment: SEGMENT,
                from: JobRank(0),
                to: JobRank(1),
            }));
            assert_eq!(sent, refused, "{what}");
            let want = PrepareRequest {
                to: JobRank(1),
                class: MessageClass::Request,
                nargs: 1,
                least: len,
                most: len,
                offset: Some(SegmentOffset(offset)),
            };
            let prepared = bench.at(0).prepare(&want);
            assert!(matches!(prepared, Err(SendError::Message(_))), "{what}");
        } else {
            assert_eq!(sent, Ok(()), "{what}");
            bench.until("the error reaches the sender", |bench| {
                !bench.logs[0].broken.is_empty()
            });
            let error = bench.logs[0].broken.pop();
            let outside = matches!(error, Some(AmError::OutsideSegment { to: JobRank(1), .. }));
            assert!(outside, "{what}: {error:?}");
        }
        bench.send(0, 1, Mail::note(1).asks_short());
        bench.account();
        let end = bench.read(1, SEGMENT - 400, 400);
        assert!(end.iter().all(|&byte| byte == 0), "{what}: written");
    }
}
