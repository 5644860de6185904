//! The barrier with names: every combination of names, for several sizes.

use super::post::{Rank, job, quiet, until};
use super::*;

const NAMES: [Name; 5] = [
    Name::Anonymous,
    Name::Id(0),
    Name::Id(0xcafe_f00d_u32.cast_signed()),
    Name::Mismatch,
    Name::Unnamed,
];

/// Names that go with each other, for waits.
const WAITS: [Name; 4] = [
    Name::Anonymous,
    Name::Id(0),
    Name::Id(0xcafe_f00d_u32.cast_signed()),
    Name::Mismatch,
];

fn notify(rank: &Rank, name: Name) {
    rank.engine.named_notify(&rank.ctx, name).unwrap();
}

fn leave(ranks: &[Rank], at: usize, name: Name) -> Verdict {
    let mut verdict = None;
    until(ranks, || {
        let rank = &ranks[at];
        verdict = rank.engine.named_try(&rank.ctx, name).unwrap();
        verdict.is_some()
    });
    verdict.unwrap()
}

/// The ids that are given, each once.
fn ids(names: &[Name]) -> Vec<i32> {
    let mut ids: Vec<i32> = names
        .iter()
        .filter_map(|name| match name {
            Name::Id(id) => Some(*id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// One barrier; the verdict that each rank must get, computed in another way than the engine's.
fn one(ranks: &[Rank], names: &[Name], waits: &[Name]) {
    for (rank, name) in ranks.iter().zip(names) {
        notify(rank, *name);
    }
    let ids = ids(names);
    let spoiled = names.contains(&Name::Mismatch) || ids.len() > 1;
    for (at, wait) in waits.iter().enumerate() {
        let fits = match (wait, ids.first()) {
            (Name::Mismatch, _) => false,
            (Name::Id(own), Some(id)) => own == id,
            _ => true,
        };
        let expected = if spoiled || !fits {
            Verdict::Mismatch
        } else {
            Verdict::Match
        };
        let got = leave(ranks, at, *wait);
        assert_eq!(got, expected, "{names:?}, rank {at} waits with {wait:?}");
        let result = ranks[at].engine.named_result();
        let name = ids.first().filter(|_| !spoiled).copied();
        assert_eq!(result, name, "{names:?}, rank {at}");
    }
}

#[test]
fn the_whole_table() {
    for size in [1usize, 2, 3, 5] {
        let ranks = job(size as u32, 1000, ThreadMode::Seq);
        let most = NAMES.len().pow(size as u32);
        for number in 0..most {
            let digit = |at: usize, base: usize| number / base.pow(at as u32) % base;
            let names: Vec<Name> = (0..size).map(|at| NAMES[digit(at, NAMES.len())]).collect();
            // Each waits with the name that it gave at first, then with all others in turn.
            one(&ranks, &names, &names);
            for turn in 0..WAITS.len() {
                let waits: Vec<Name> = (0..size)
                    .map(|at| WAITS[(turn + at) % WAITS.len()])
                    .collect();
                one(&ranks, &names, &waits);
            }
        }
    }
}

#[test]
fn all_32_bits_of_an_id_count() {
    for room in [1, 1000] {
        let ranks = job(3, room, ThreadMode::Seq);
        for bit in 0..32 {
            let [a, b] = [5, 5 ^ (1u32 << bit).cast_signed()].map(Name::Id);
            one(&ranks, &[a, Name::Anonymous, b], &[a, a, b]);
            one(&ranks, &[Name::Anonymous, b, b], &[Name::Anonymous, b, b]);
        }
    }
}

#[test]
fn no_rank_leaves_before_the_last_has_come() {
    let ranks = job(5, 1000, ThreadMode::Seq);
    for last in 0..5 {
        for (at, rank) in ranks.iter().enumerate().filter(|(at, _)| *at != last) {
            notify(rank, Name::Id(at as i32 / 8));
        }
        quiet(&ranks);
        for (at, rank) in ranks.iter().enumerate().filter(|(at, _)| *at != last) {
            let verdict = rank.engine.named_try(&rank.ctx, Name::Anonymous).unwrap();
            assert_eq!(verdict, None, "rank {at} without rank {last}");
        }
        notify(&ranks[last], Name::Id(0));
        for at in 0..5 {
            assert_eq!(leave(&ranks, at, Name::Id(0)), Verdict::Match);
        }
    }
}

#[test]
fn notify_and_wait_alternate() {
    let ranks = job(2, 1000, ThreadMode::Seq);
    let Rank { engine, ctx } = &ranks[0];
    let before = NamedError::NotNotified { rank: JobRank(0) };
    let twice = NamedError::AlreadyNotified { rank: JobRank(0) };
    assert_eq!(engine.named_try(ctx, Name::Anonymous), Err(before.clone()));
    assert_eq!(engine.named_wait(ctx, Name::Anonymous), Err(before.clone()));
    notify(&ranks[0], Name::Id(7));
    assert_eq!(engine.named_notify(ctx, Name::Id(7)), Err(twice.clone()));
    notify(&ranks[1], Name::Id(7));
    quiet(&ranks);
    // Complete, but not left.
    assert_eq!(engine.named_notify(ctx, Name::Id(7)), Err(twice));
    assert_eq!(engine.named_wait(ctx, Name::Id(7)).unwrap(), Verdict::Match);
    assert_eq!(engine.named_wait(ctx, Name::Anonymous), Err(before));
    ctx.enter(Context::Handler);
    assert!(engine.named_notify(ctx, Name::Anonymous).is_err());
}

#[test]
fn threads_run_through_many() {
    let ranks = job(5, 2, ThreadMode::Par);
    std::thread::scope(|scope| {
        let threads = ranks.iter().map(|Rank { engine, .. }| {
            scope.spawn(move || {
                let ctx = ThreadCtx::uncounted();
                let me = engine.rank().0 as i32;
                for number in 0..500 {
                    // Now and then the ranks do not agree.
                    let wrong = number % 7 == 0;
                    let name = Name::Id(if wrong && me == number % 5 {
                        -1
                    } else {
                        number
                    });
                    engine.named_notify(&ctx, name).unwrap();
                    let verdict = engine.named_wait(&ctx, name).unwrap();
                    assert_eq!(verdict == Verdict::Mismatch, wrong, "barrier {number}");
                    let result = engine.named_result();
                    assert_eq!(result, (!wrong).then_some(number));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

proptest! {
    /// Ranks go through barriers as fast as they can, one at most ahead of another.
    #[test]
    fn ranks_run_ahead(
        size in 2u32..9,
        room in prop::sample::select(vec![1usize, 2, 1000]),
        steps in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        let ranks = job(size, room, ThreadMode::Seq);
        let mut left = vec![0i32; size as usize];
        let mut entered = left.clone();
        let mut step = |at: usize, most: i32| {
            let Rank { engine, ctx } = &ranks[at];
            let name = Name::Id(entered[at]);
            if entered[at] == left[at] && left[at] < most {
                entered[at] += 1;
                notify(&ranks[at], Name::Id(entered[at]));
            } else if entered[at] == left[at] {
                ranks[at].poll();
            } else if let Some(verdict) = engine.named_try(ctx, name).unwrap() {
                left[at] += 1;
                assert_eq!((verdict, engine.named_result()), (Verdict::Match, Some(left[at])));
                assert!(entered.iter().all(|entered| *entered >= left[at]));
            }
            (entered[at], left[at])
        };
        for index in &steps {
            step(index.index(size as usize), 1000);
        }
        let most = (0..size as usize).map(|at| step(at, 1000).0).max().unwrap();
        let begun = std::time::Instant::now();
        while (0..size as usize).filter(|at| step(*at, most).1 < most).count() > 0 {
            assert!(begun.elapsed() < super::post::PATIENCE, "it never ends");
        }
    }
}
