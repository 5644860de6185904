//! Split barriers, in all orders of entering, delivery and retirement.

use super::post::{Rank, job, quiet, until};
use super::*;
use ::core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn enter(rank: &Rank) -> Event {
    rank.engine.barrier_start(&rank.ctx).unwrap()
}

#[test]
fn one_rank_is_through_at_once() {
    let ranks = job(1, 1, ThreadMode::Seq);
    assert_eq!(enter(&ranks[0]), Event::DONE);
}

#[test]
fn eight_in_flight_are_retired_in_any_order() {
    for size in [2, 3, 5, 8] {
        for room in [1, 1000] {
            let ranks = job(size, room, ThreadMode::Seq);
            let events: Vec<Vec<Event>> = ranks
                .iter()
                .map(|rank| (0..8).map(|_| enter(rank)).collect())
                .collect();
            for i in 0..8 {
                for (shift, rank) in ranks.iter().enumerate() {
                    let event = events[shift][(i + shift) % 8];
                    until(&ranks, || rank.test(event));
                }
            }
            quiet(&ranks);
            let pending = |rank: &Rank| rank.engine.background.pending();
            assert!(ranks.iter().all(|rank| pending(rank) == 0));
        }
    }
}

#[test]
fn a_rank_through_a_barrier_has_sent_everything() {
    // Rank 0 is through before rank 1 has polled, and never polls again.
    let ranks = job(2, 100, ThreadMode::Seq);
    let theirs: Vec<Event> = (0..3).map(|_| enter(&ranks[1])).collect();
    let mine: Vec<Event> = (0..3).map(|_| enter(&ranks[0])).collect();
    until(&ranks[..1], || ranks[0].engine.background.pending() == 0);
    until(&ranks[1..], || ranks[1].engine.background.pending() == 0);
    assert!(mine.into_iter().all(|event| ranks[0].test(event)));
    assert!(theirs.into_iter().all(|event| ranks[1].test(event)));
}

#[test]
fn other_barriers_do_not_count() {
    let ranks = job(2, 100, ThreadMode::Par);
    let split = enter(&ranks[0]);
    std::thread::scope(|scope| {
        let threads = ranks.iter().map(|Rank { engine, .. }| {
            scope.spawn(move || {
                let ctx = ThreadCtx::uncounted();
                engine.barrier(&ctx, BarrierKind::Client).unwrap();
                engine.named_notify(&ctx, Name::Anonymous).unwrap();
                engine.named_wait(&ctx, Name::Anonymous).unwrap();
            })
        });
        let threads: Vec<_> = threads.collect();
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    quiet(&ranks);
    assert!(!ranks[0].test(split));
    let other = enter(&ranks[1]);
    until(&ranks, || ranks[0].test(split));
    until(&ranks, || ranks[1].test(other));
}

#[test]
fn handlers_start_none() {
    let ranks = job(2, 100, ThreadMode::Seq);
    ranks[0].ctx.enter(Context::Handler);
    let refused = ranks[0].engine.barrier_start(&ranks[0].ctx);
    assert!(matches!(
        refused,
        Err(OpError::Am(argonet_am::AmError::Restricted { .. }))
    ));
}

#[test]
fn threads_enter_and_retire_while_others_poll() {
    const ROUNDS: usize = 200;
    const AT_ONCE: usize = 8;
    let ranks = job(3, 4, ThreadMode::Par);
    let entered: Vec<AtomicU32> = (0..ROUNDS).map(|_| AtomicU32::new(0)).collect();
    let over = AtomicBool::new(false);
    let (entered, over) = (&entered, &over);
    std::thread::scope(|scope| {
        let entering: Vec<_> = ranks
            .iter()
            .map(|Rank { engine, .. }| {
                scope.spawn(move || {
                    let ctx = ThreadCtx::uncounted();
                    for count in entered {
                        count.fetch_add(AT_ONCE as u32, Ordering::Relaxed);
                        let start = |_| engine.barrier_start(&ctx).unwrap();
                        let mut events: Vec<Event> = (0..AT_ONCE).map(start).collect();
                        events.rotate_left(engine.rank().0 as usize);
                        // The last of them first, or another.
                        for event in events.into_iter().rev() {
                            engine.wait(&ctx, event).unwrap();
                        }
                        assert_eq!(count.load(Ordering::Relaxed), 3 * AT_ONCE as u32);
                    }
                })
            })
            .collect();
        let polling = ranks.iter().map(|Rank { engine, .. }| {
            scope.spawn(move || {
                let ctx = ThreadCtx::uncounted();
                while !over.load(Ordering::Relaxed) {
                    engine.poll(&ctx).unwrap();
                    std::thread::yield_now();
                }
            })
        });
        let polling: Vec<_> = polling.collect();
        let outcomes: Vec<_> = entering.into_iter().map(|thread| thread.join()).collect();
        over.store(true, Ordering::Relaxed);
        // ThreadSanitizer sees a join, but not the end of a scope.
        polling.into_iter().for_each(|t| t.join().unwrap());
        assert!(outcomes.iter().all(Result::is_ok));
    });
}

proptest! {
    /// A barrier is complete when all have entered it, not before, for any order in which ranks
    /// poll.
    #[test]
    fn complete_when_all_have_entered(
        size in 2u32..9,
        room in prop::sample::select(vec![1usize, 2, 1000]),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3), 0..300),
    ) {
        let ranks = job(size, room, ThreadMode::Seq);
        let mut entered = vec![0usize; size as usize];
        let mut events: Vec<Vec<(usize, Event)>> = vec![Vec::new(); size as usize];
        let total = 20;
        for (index, step) in &steps {
            let at = index.index(size as usize);
            if *step == 0 && entered[at] < total {
                events[at].push((entered[at], enter(&ranks[at])));
                entered[at] += 1;
            } else if !events[at].is_empty() {
                let pick = index.index(events[at].len());
                let (number, event) = events[at][pick];
                if ranks[at].test(event) {
                    events[at].swap_remove(pick);
                    prop_assert!(entered.iter().all(|count| *count > number));
                }
            } else {
                ranks[at].poll();
            }
        }
        // Barriers that all have entered are over when nothing more happens.
        quiet(&ranks);
        let least = *entered.iter().min().unwrap();
        for (at, events) in events.iter().enumerate() {
            for (number, event) in events {
                prop_assert_eq!(ranks[at].test(*event), *number < least);
            }
        }
    }
}
