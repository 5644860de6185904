//! Completion, room, and many threads.

use super::*;
use crate::bound::tests::rig::context;
use crate::{BoundPlace, Context, Engine, Injection, OpError, ThreadCtx};
use argonet_am::AmError;
use argonet_conduit::ThreadMode;
use argonet_conduit::smp::Smp;
use argonet_event::{Category, Event};
use std::sync::atomic::{AtomicBool, Ordering};

const ADD: Operation = Operation::Add;

fn start<T: AtomicWord>(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    target: Target,
    asked: Atomic<T>,
    result: &mut T,
) -> Event {
    // SAFETY: all tests keep the result until the event is complete or the rig is gone.
    unsafe { engine.atomic_start(ctx, target, asked, result, Injection::Blocking) }.unwrap()
}

#[test]
fn the_result_is_there_when_the_event_is_complete_and_not_before() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let mut results = [7u32; 3];
    let set = what(Operation::Set, 5u32, 0);
    let event = start(engine, &ctx, bound_word(&rig, 1, 0), set, &mut results[1]);
    assert!(!event.is_done() && !engine.test(&ctx, event).unwrap());
    assert_eq!(rig.settle(), None);
    assert!(engine.test(&ctx, event).unwrap());
    let fetch = what(Operation::FetchMult, 3u32, 0);
    let event = start(engine, &ctx, bound_word(&rig, 1, 0), fetch, &mut results[1]);
    assert_eq!(results, [7; 3]);
    assert_eq!(rig.settle(), None);
    engine.wait(&ctx, event).unwrap();
    assert_eq!(results, [7, 5, 7]);
    // Mapped and own memory need no event.
    for (i, target) in [segment_word(0), bound_word(&rig, 0, 0)]
        .into_iter()
        .enumerate()
    {
        for value in [1u32, 2] {
            let swap = what(Operation::Swap, value, 0);
            assert!(start(engine, &ctx, target, swap, &mut results[i]).is_done());
        }
    }
    assert_eq!(results, [1, 1, 7]);
    assert_eq!(rig.settle(), None);
    assert_eq!(engine.bound.flights.under_way(), 0);
}

#[test]
fn implicit_operations_count_by_category() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let mut result = 0i64;
    let mut begin = |operation| {
        let asked = what(operation, 3i64, 0);
        // SAFETY: the result lives to the end of the test.
        let begun = unsafe {
            engine.atomic_start_implicit(
                &ctx,
                bound_word(&rig, 1, 1),
                asked,
                &raw mut result,
                Injection::Blocking,
            )
        };
        begun.unwrap();
    };
    let open = || -> Vec<Category> {
        let is_open = |category: &Category| !engine.test_implicit(&ctx, category.mask()).unwrap();
        Category::ALL.into_iter().filter(is_open).collect()
    };
    for (operation, category) in [
        (Operation::Set, Category::Put),
        (Operation::Get, Category::Get),
        (Operation::FetchAdd, Category::Rmw),
        (Operation::Cas, Category::Rmw),
        (Operation::Swap, Category::Rmw),
    ] {
        begin(operation);
        assert_eq!(open(), [category], "{operation:?}");
        assert_eq!(rig.settle(), None);
        assert_eq!(open(), []);
    }
    engine.begin_region(&ctx).unwrap();
    begin(Operation::FetchAdd);
    begin(Operation::Set);
    let region = engine.end_region(&ctx).unwrap();
    assert_eq!(open(), []);
    let updates = engine.leaf(region, Category::Rmw).unwrap();
    assert!(!engine.test(&ctx, updates).unwrap() && !engine.test(&ctx, region).unwrap());
    assert_eq!(rig.settle(), None);
    assert!(engine.test(&ctx, region).unwrap());
}

#[test]
fn without_room_immediate_says_so_and_nothing_is_done() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let (target, add) = (bound_word(&rig, 1, 0), what(ADD, 1u64, 0));
    engine.begin_region(&ctx).unwrap();
    // As many as a ring holds; the value there is bounded by the operations that have been sent.
    let mut sent = 0u64;
    loop {
        // SAFETY: nothing is fetched.
        let begun = unsafe {
            engine.atomic_start_implicit(
                &ctx,
                target,
                add,
                core::ptr::null_mut(),
                Injection::Immediate,
            )
        };
        match begun {
            Ok(()) => sent += 1,
            Err(OpError::Am(AmError::Full { .. })) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent > 10);
    let flights = engine.bound.flights.under_way();
    for _ in 0..100 {
        // SAFETY: as above.
        let begun = unsafe {
            engine.atomic_start(
                &ctx,
                target,
                add,
                core::ptr::null_mut(),
                Injection::Immediate,
            )
        };
        assert!(matches!(begun, Err(OpError::Am(AmError::Full { .. }))));
    }
    assert_eq!(engine.bound.flights.under_way(), flights);
    let region = engine.end_region(&ctx).unwrap();
    assert_eq!(rig.settle(), None);
    engine.wait(&ctx, region).unwrap();
    let now = rig.served(|engine, ctx| {
        let get = what(Operation::Get, 0u64, 0);
        engine.atomic(ctx, target, get).unwrap()
    });
    // The memory was full of this byte.
    assert_eq!(now.wrapping_sub(u64::from_ne_bytes([0xee; 8])), sent);
}

#[test]
fn ways_and_threads_are_atomic_for_each_other() {
    const EACH: u64 = 3000;
    const THREADS: u64 = 3;
    let rig = Rig::new(2, ThreadMode::Par, 64);
    let done = AtomicBool::new(false);
    let words = [1, 2, 3].map(|word| bound_word(&rig, 1, word));
    // Rank 0 comes by messages, rank 1 at its own memory.
    let sums: u64 = std::thread::scope(|scope| {
        let poller = scope.spawn(|| {
            let ctx = context();
            while !done.load(Ordering::Relaxed) {
                if rig.ranks[1].engine.poll(&ctx).unwrap() == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let work = |rank: usize| {
            let engine = &rig.ranks[rank].engine;
            move || {
                let ctx = context();
                let mut sum = 0u64;
                for i in 0..EACH {
                    let inc = what(Operation::FetchInc, 0u64, 0);
                    sum += engine.atomic(&ctx, words[0], inc).unwrap();
                    let add = what(ADD, 0.5f64, 0.0);
                    engine.atomic(&ctx, words[1], add).unwrap();
                    let xor = what(Operation::Xor, 1u32 << (i % 32), 0);
                    engine.atomic(&ctx, words[2], xor).unwrap();
                }
                ctx.retire();
                sum
            }
        };
        let ctx = context();
        for word in words {
            let zero = what(Operation::Set, 0u64, 0);
            rig.ranks[1].engine.atomic(&ctx, word, zero).unwrap();
        }
        let threads: Vec<_> = (0..2 * THREADS)
            .map(|i| scope.spawn(work((i % 2) as usize)))
            .collect();
        let sums: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        poller.join().unwrap();
        sums.into_iter().map(Result::unwrap).sum()
    });
    let (ctx, all) = (context(), EACH * 2 * THREADS);
    let engine = &rig.ranks[1].engine;
    let get = |word| {
        engine
            .atomic(
                &ctx,
                bound_word(&rig, 1, word),
                what(Operation::Get, 0u64, 0),
            )
            .unwrap()
    };
    assert_eq!(get(1), all);
    // Each value before was fetched once.
    assert_eq!(sums, all * (all - 1) / 2);
    assert_eq!(f64::from_bits(get(2)), all as f64 / 2.0);
    assert_eq!(get(3), 0, "every bit an even number of times");
}

#[test]
fn errors_known_to_the_initiator_are_returned_at_once() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let get = what(Operation::Get, 0u64, 0);
    let Target::Bound(place) = bound_word(&rig, 1, 0) else {
        unreachable!()
    };
    for target in [
        segment_word(4),
        segment_word(u64::MAX),
        Target::Bound(BoundPlace {
            address: place.address + 4,
            ..place
        }),
    ] {
        let error = engine.atomic(&ctx, target, get).unwrap_err().to_string();
        for part in ["rank 0: ", "of rank 1 is not aligned", "multiple of 8"] {
            assert!(error.contains(part), "{error}");
        }
    }
    let beyond = engine.atomic(&ctx, segment_word(1 << 40), get);
    assert!(matches!(
        beyond,
        Err(OpError::Am(AmError::OutsideSegment { .. }))
    ));
    for target in [
        Target::Segment {
            rank: JobRank(2),
            offset: SegmentOffset(0),
        },
        Target::Bound(BoundPlace {
            rank: JobRank(2),
            ..place
        }),
    ] {
        let missing = engine.atomic(&ctx, target, get);
        assert!(matches!(
            missing,
            Err(OpError::Am(AmError::NoSuchRank { .. }))
        ));
        ctx.enter(Context::Handler);
        let restricted = engine.atomic(&ctx, target, get);
        ctx.enter(Context::Free);
        assert!(matches!(
            restricted,
            Err(OpError::Am(AmError::Restricted { .. }))
        ));
    }
    assert_eq!(rig.settle(), None);
}
