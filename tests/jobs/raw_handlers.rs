//! Handlers at indices of their own choice, and what their tokens can do.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::engine::{Injection, internal};
use argonet::raw::Token;
use argonet::{AmError, CLIENT_BASE, Error, HandlerIndex, Rank, SharedArray, World};

use crate::lifecycle::build;
use crate::support::{Done, Job, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    (
        "raw_handlers_reply_in_all_categories_also_into_grown_segments",
        || each(&SIZES, "raw-replies"),
    ),
    ("raw_handlers_refuse_bad_replies", || {
        each(&[1, 2], "raw-bad-replies");
    }),
    ("raw_handlers_bad_indices", || {
        let outcome = Job::launched(2, "raw-taken").run();
        outcome.failed(&["handler index 130 is taken by `first` and cannot be given to `second`"]);
        let outcome = Job::launched(2, "raw-below").run();
        outcome.failed(&["handler index 127 of `low` is not a client's", "128 to 255"]);
    }),
    ("raw_handlers_at_different_indices", || {
        let outcome = Job::launched(3, "raw-different").run();
        outcome.failed(&["rank 2 registered other handlers or functions than rank 0"]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("raw-replies", replies),
    ("raw-bad-replies", bad_replies),
    ("raw-taken", || {
        build(|builder, _| {
            builder.handler_at(HandlerIndex(130), "first", |_| {});
            builder.handler_at(HandlerIndex(130), "second", |_| {});
        })
    }),
    ("raw-below", || {
        build(|builder, _| builder.handler_at(HandlerIndex(127), "low", |_| {}))
    }),
    ("raw-different", || {
        build(|builder, odd| {
            let index = if odd {
                HandlerIndex(141)
            } else {
                HandlerIndex(140)
            };
            builder.handler_at(index, "moved", |_| {});
        })
    }),
];

const ASK: HandlerIndex = CLIENT_BASE;
const ANSWER: HandlerIndex = HandlerIndex(255);

/// The words of payload that an answer has brought, summed.
fn sum(token: &Token<'_, '_>) -> u64 {
    let words: Vec<u64> = token.payload().to_vec();
    words.iter().sum::<u64>() + u64::from(token.args()[0])
}

fn replies() -> Done {
    let total = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder().segment_bytes(4096);
    // Arguments: category of the answer, offset for a long.
    builder.handler_at(ASK, "ask", |token| {
        let bytes = token.payload().to_vec::<u8>();
        let [category, offset] = *token.args() else {
            panic!("two arguments");
        };
        let to = argonet::SegmentOffset(offset.into());
        let payload = match category {
            0 => None,
            1 => Some((&bytes[..], None)),
            _ => Some((&bytes[..], Some(to))),
        };
        // SAFETY: no rank is in a quiet phase.
        unsafe { token.reply(ANSWER, &[category], payload) }.expect("a good reply");
    });
    builder.handler_at(ANSWER, "answer", {
        let total = Arc::clone(&total);
        move |token| {
            total.fetch_add(sum(token), Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    // The answers land behind the part of the segment that the others mapped first.
    let before = SharedArray::<u64>::alloc(&world, 16)?;
    for rank in world.ranks() {
        world.put_value(before.ptr(rank, 0), 1)?;
    }
    let landing = SharedArray::<u64>::alloc(&world, 100_000)?;
    let words: Vec<u64> = (1..=100).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut wanted = 0;
    for rank in world.ranks() {
        for category in 0..3u32 {
            let at = landing.ptr(world.rank(), 90_000 + rank.index() * 100);
            let offset = u32::try_from(at.offset().0)?;
            // SAFETY: no rank is in a quiet phase.
            unsafe {
                let payload = Some((&bytes[..], None));
                world.raw().request(
                    rank,
                    ASK,
                    &[category, offset],
                    payload,
                    Injection::Blocking,
                )?;
            }
            wanted += u64::from(category) + if category == 0 { 0 } else { 5050 };
        }
    }
    world.wait_until(|| total.load(Ordering::Relaxed) == wanted)?;
    for rank in world.ranks() {
        let mut got = vec![0; 100];
        landing.read_into(&world, 90_000 + rank.index() * 100, &mut got);
        assert_eq!(got, words);
    }
    world.finalize()?;
    Ok(())
}

fn bad_replies() -> Done {
    let checked = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    builder.handler_at(ASK, "ask", |token| {
        let far = Some(argonet::SegmentOffset(u64::MAX - 3));
        // SAFETY: all but the last are refused, and that is short.
        unsafe {
            let refused = token.reply(internal::TREE_UP, &[], None);
            assert!(
                matches!(refused, Err(AmError::NotForClients { .. })),
                "{refused:?}"
            );
            let refused = token.reply(HandlerIndex(200), &[], None);
            assert!(
                matches!(refused, Err(AmError::Unregistered { .. })),
                "{refused:?}"
            );
            let refused = token.reply(ANSWER, &[0; 17], None);
            assert!(
                matches!(refused, Err(AmError::TooManyArgs { .. })),
                "{refused:?}"
            );
            let refused = token.reply(ANSWER, &[], Some((&[0; 70_000], None)));
            assert!(
                matches!(refused, Err(AmError::TooLong { .. })),
                "{refused:?}"
            );
            let refused = token.reply(ANSWER, &[], Some((&[0; 8], far)));
            assert!(
                matches!(refused, Err(AmError::OutsideSegment { .. })),
                "{refused:?}"
            );
            token
                .reply(ANSWER, &[7], None)
                .expect("refused replies do not count");
            let refused = token.reply(ANSWER, &[7], None);
            assert!(
                matches!(refused, Err(AmError::RepliedTwice { .. })),
                "{refused:?}"
            );
        }
    });
    builder.handler_at(ANSWER, "answer", {
        let checked = Arc::clone(&checked);
        move |token| {
            // SAFETY: it is refused.
            let refused = unsafe { token.reply(ANSWER, &[], None) };
            assert!(
                matches!(refused, Err(AmError::ReplyToReply { .. })),
                "{refused:?}"
            );
            checked.fetch_add(token.args()[0].into(), Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    // SAFETY: a short request writes to no segment.
    unsafe {
        world
            .raw()
            .request(world.rank_offset(1), ASK, &[], None, Injection::Blocking)?
    };
    world.wait_until(|| checked.load(Ordering::Relaxed) == 7)?;
    // SAFETY: it is refused.
    let refused = unsafe {
        world
            .raw()
            .request(Rank(0), internal::BARRIER, &[], None, Injection::Blocking)
    };
    assert!(
        matches!(refused, Err(Error::Am(AmError::NotForClients { .. }))),
        "{refused:?}"
    );
    world.finalize()?;
    Ok(())
}
