//! Puts and gets that succeed, and queries.

use super::rig::{ENDPOINT, Rig, bound, bytes, context, get, put};
use crate::{BoundMemory, BoundPlace, Context, Injection, OpError, Side};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_conduit::ThreadMode;
use argonet_event::{Category, CategoryMask, Event};
use std::sync::atomic::{AtomicBool, Ordering};

const KIB64: usize = 64 << 10;
const SIZES: [usize; 9] = [0, 1, 7, 8, 4095, KIB64 - 1, KIB64, KIB64 + 1, (1 << 20) + 3];

#[test]
fn every_size_and_alignment_goes_there_and_back() {
    let rig = Rig::pair((1 << 20) + 100);
    rig.served(|engine, ctx| {
        for (i, len) in SIZES.into_iter().enumerate() {
            for (at, skew) in [(0, 0), (1, 0), (40, 3), (64, 1), (13, 5)] {
                let source = bytes(i + at, len + skew);
                let source = &source[skew..];
                rig.memory[1].write(0, &vec![0xee; rig.memory[1].len()]);
                let event = put(engine, ctx, rig.place(1, at), source);
                let local = engine.leaf(event, Category::Lc).unwrap();
                engine.wait(ctx, local).unwrap();
                engine.wait(ctx, event).unwrap();
                assert_eq!(rig.memory[1].read(at, len), source, "{len} bytes at {at}");
                let rest = rig.memory[1].len() - at - len;
                let around = [
                    rig.memory[1].read(0, at),
                    rig.memory[1].read(at + len, rest),
                ];
                assert!(around.iter().flatten().all(|byte| *byte == 0xee));
                let mut back = vec![0x55; len + skew + 9];
                let event = get(engine, ctx, rig.place(1, at), &mut back[skew..skew + len]);
                engine.wait(ctx, event).unwrap();
                assert_eq!(&back[skew..skew + len], source, "{len} bytes at {at}");
                let around = back[..skew].iter().chain(&back[skew + len..]);
                assert!({ around }.all(|byte| *byte == 0x55));
            }
        }
    });
}

#[test]
fn the_source_may_be_overwritten_at_once() {
    let rig = Rig::pair(4 * KIB64);
    rig.served(|engine, ctx| {
        let mut source = bytes(1, 3 * KIB64);
        let event = put(engine, ctx, rig.place(1, 9), &source);
        let local = engine.leaf(event, Category::Lc).unwrap();
        assert!(
            engine.test(ctx, local).unwrap(),
            "local completion is over at return"
        );
        source.fill(0);
        engine.wait(ctx, event).unwrap();
        assert_eq!(rig.memory[1].read(9, source.len()), bytes(1, 3 * KIB64));
    });
}

#[test]
fn many_are_outstanding() {
    const LEN: usize = 700;
    let rig = Rig::pair(1000 * LEN);
    rig.served(|engine, ctx| {
        let sources: Vec<_> = (0..1000).map(|i| bytes(i, LEN - i % 300)).collect();
        let puts = sources.iter().enumerate();
        let mut events: Vec<Event> = puts
            .map(|(i, source)| put(engine, ctx, rig.place(1, i * LEN), source))
            .collect();
        engine.wait_all(ctx, &mut events).unwrap();
        let mut back: Vec<_> = sources.iter().map(|source| vec![0; source.len()]).collect();
        let gets = back.iter_mut().enumerate();
        let mut events: Vec<Event> = gets
            .map(|(i, target)| get(engine, ctx, rig.place(1, i * LEN), target))
            .collect();
        engine.wait_all(ctx, &mut events).unwrap();
        assert!(events.iter().all(|event| event.is_done()));
        assert!(back == sources);
    });
}

#[test]
fn implicit_ones_count_by_category_and_for_regions() {
    let rig = Rig::pair(4 * KIB64);
    let ctx = context();
    let engine = &rig.ranks[0].engine;
    let source = bytes(3, KIB64 + 5);
    let mut target = vec![0; 100];
    rig.memory[1].write(3 * KIB64, &bytes(4, 100));
    let start = |put: bool, target: &mut [u8]| {
        let (from, into) = (rig.place(1, 3 * KIB64), rig.place(1, 1));
        // SAFETY: the buffers live to the end of the test.
        unsafe {
            if put {
                let put = bound(into, Side::Put(source.as_ptr()), source.len());
                engine.start_implicit(&ctx, put, Injection::Blocking)
            } else {
                let get = bound(from, Side::Get(target.as_mut_ptr()), target.len());
                engine.start_implicit(&ctx, get, Injection::Blocking)
            }
        }
        .unwrap();
    };
    let is_done = |category: Category| engine.test_implicit(&ctx, category.mask()).unwrap();
    start(true, &mut target);
    assert!(!is_done(Category::Put) && is_done(Category::Get) && is_done(Category::Lc));
    assert_eq!(rig.settle(), None);
    assert!(is_done(Category::Put));
    assert_eq!(rig.memory[1].read(1, source.len()), source);
    start(false, &mut target);
    assert!(!is_done(Category::Get) && is_done(Category::Put));
    assert_eq!(rig.settle(), None);
    assert!(engine.test_implicit(&ctx, CategoryMask::ALL).unwrap());
    assert_eq!(target, bytes(4, 100));

    target.fill(0);
    engine.begin_region(&ctx).unwrap();
    start(true, &mut target);
    start(false, &mut target);
    let region = engine.end_region(&ctx).unwrap();
    assert!(is_done(Category::Put), "they count for the region");
    assert!(!engine.test(&ctx, region).unwrap());
    let gets = engine.leaf(region, Category::Get).unwrap();
    assert!(!engine.test(&ctx, gets).unwrap());
    assert_eq!(rig.settle(), None);
    assert!(engine.test(&ctx, region).unwrap());
    assert_eq!(target, bytes(4, 100));
}

#[test]
fn no_bytes_and_own_memory_need_no_message() {
    let rig = Rig::pair(KIB64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let nowhere = BoundPlace {
        rank: JobRank(1),
        endpoint: 99,
        address: u64::MAX,
    };
    let null: *mut u8 = core::ptr::null_mut();
    // SAFETY: there are no bytes.
    let events = unsafe {
        [
            engine.start(
                &ctx,
                bound(nowhere, Side::Put(null), 0),
                Injection::Immediate,
            ),
            engine.start(
                &ctx,
                bound(nowhere, Side::Get(null), 0),
                Injection::Immediate,
            ),
        ]
    };
    assert_eq!(events, [Ok(Event::DONE), Ok(Event::DONE)]);
    let source = bytes(1, 1000);
    assert_eq!(put(engine, &ctx, rig.place(0, 17), &source), Event::DONE);
    assert_eq!(rig.memory[0].read(17, 1000), source);
    let mut target = vec![0; 1000];
    assert_eq!(
        get(engine, &ctx, rig.place(0, 17), &mut target),
        Event::DONE
    );
    assert_eq!(target, source);
    assert_eq!(rig.settle(), None);
}

#[test]
fn missing_ranks_and_calls_inside_handlers_are_refused() {
    let rig = Rig::pair(KIB64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let try_put = |rank: u32| {
        let place = BoundPlace {
            rank: JobRank(rank),
            ..rig.place(1, 0)
        };
        let put = bound(place, Side::Put([7u8].as_ptr()), 1);
        // SAFETY: the byte lives as long as the program.
        unsafe { engine.start(&ctx, put, Injection::Blocking) }
    };
    let missing = try_put(2);
    assert!(
        matches!(
            missing,
            Err(OpError::Am(AmError::NoSuchRank { to: JobRank(2), .. }))
        ),
        "{missing:?}"
    );
    for rank in [0, 1] {
        ctx.enter(Context::Handler);
        let refused = try_put(rank);
        ctx.enter(Context::Free);
        let restricted = matches!(refused, Err(OpError::Am(AmError::Restricted { .. })));
        assert!(restricted, "{refused:?}");
    }
}

#[test]
fn a_query_returns_the_bound_memory() {
    let rig = Rig::pair(12_345);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    for rank in [0, 1] {
        let bound = BoundMemory {
            address: rig.memory[rank].address(),
            len: 12_345,
        };
        for (endpoint, expected) in [
            (ENDPOINT, bound),
            (0, BoundMemory::default()),
            (u32::MAX, BoundMemory::default()),
        ] {
            let mut answer = BoundMemory { address: 1, len: 2 };
            let to = JobRank(rank as u32);
            // SAFETY: the answer lives until the event is complete.
            let asked = unsafe {
                engine.bound_query(&ctx, to, endpoint, &raw mut answer, Injection::Blocking)
            };
            let event = asked.unwrap();
            assert_eq!(event.is_done(), rank == 0);
            assert_eq!(rig.settle(), None);
            engine.wait(&ctx, event).unwrap();
            assert_eq!(answer, expected, "rank {rank}, endpoint {endpoint}");
        }
    }
}

#[test]
fn without_room_immediate_says_so_and_keeps_nothing() {
    let rig = Rig::pair(4 * KIB64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let (source, mut target) = (bytes(1, 3 * KIB64), vec![0; KIB64]);
    let is_full = |result: Result<(), OpError>| match result {
        Ok(()) => false,
        Err(OpError::Am(AmError::Full { .. })) => true,
        Err(error) => panic!("{error}"),
    };
    // Small ones, until nothing of any kind goes any more; not so small that there are too few
    // handles to fill a ring.
    let mut events = Vec::new();
    let small = bound(rig.place(1, 0), Side::Put(source.as_ptr()), 200);
    loop {
        // SAFETY: the buffers live to the end of the test.
        match unsafe { engine.start(&ctx, small, Injection::Immediate) } {
            Ok(event) => events.push(event),
            Err(error) => break assert!(is_full(Err(error))),
        }
    }
    assert!(!events.is_empty());
    let before = engine.events.handles_given_out();
    assert_eq!(engine.bound.flights.under_way(), events.len());
    let place = rig.place(1, 256);
    let put = |len| bound(place, Side::Put(source.as_ptr()), len);
    let dst = target.as_mut_ptr();
    let get = |len| bound(place, Side::Get(dst), len);
    let mut answer = BoundMemory::default();
    for _ in 0..100 {
        // SAFETY: as above.
        let outcomes = unsafe {
            [
                engine
                    .start(&ctx, put(3 * KIB64), Injection::Immediate)
                    .map(|_| ()),
                engine
                    .start_implicit(&ctx, put(3 * KIB64), Injection::Immediate)
                    .map(|_| ()),
            ]
        };
        assert!(outcomes.into_iter().all(is_full));
    }
    assert_eq!(engine.bound.flights.under_way(), events.len());
    // Gets and queries are smaller than puts: they fill the rest. SAFETY: as above.
    unsafe {
        while !is_full(
            engine
                .start_implicit(&ctx, get(1), Injection::Immediate)
                .map(|_| ()),
        ) {}
        while !is_full(
            {
                engine.bound_query(
                    &ctx,
                    JobRank(1),
                    ENDPOINT,
                    &raw mut answer,
                    Injection::Immediate,
                )
            }
            .map(|event| events.push(event)),
        ) {}
        assert!(is_full(
            engine
                .start(&ctx, get(KIB64), Injection::Immediate)
                .map(|_| ())
        ));
    }
    let queries = u32::try_from(events.len()).unwrap();
    assert!(engine.events.handles_given_out() <= before.max(queries) + 64);
    assert_eq!(rig.settle(), None);
    engine.wait_all(&ctx, &mut events).unwrap();
    assert!(engine.test_implicit(&ctx, CategoryMask::ALL).unwrap());
    assert_eq!(
        rig.memory[1].read(256, 8),
        [0xee; 8],
        "a refused transfer is not sent"
    );
    // Idle again: there is room at once.
    // SAFETY: as above.
    let event = unsafe { engine.start(&ctx, put(KIB64), Injection::Immediate) }.unwrap();
    assert_eq!(rig.settle(), None);
    engine.wait(&ctx, event).unwrap();
    assert_eq!(rig.memory[1].read(256, KIB64), source[..KIB64]);
}

#[test]
fn threads_of_both_ranks_share_the_work() {
    const THREADS: usize = 3;
    const EACH: usize = 200 << 10;
    let rig = Rig::new(2, ThreadMode::Par, THREADS * EACH);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serve = |_| {
            scope.spawn(|| {
                let ctx = context();
                while !stop.load(Ordering::Relaxed) {
                    if rig.ranks[1].engine.poll(&ctx).unwrap() == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let servers: Vec<_> = (0..2).map(serve).collect();
        let engine = &rig.ranks[0].engine;
        let places: Vec<_> = (0..THREADS).map(|i| rig.place(1, i * EACH)).collect();
        let threads = places.into_iter().enumerate().map(|(i, place)| {
            scope.spawn(move || {
                let ctx = context();
                for round in 0..10 {
                    let source = bytes(i * 100 + round, EACH - round);
                    let put = put(engine, &ctx, place, &source);
                    engine.wait(&ctx, put).unwrap();
                    let mut back = vec![0; source.len()];
                    let halves = back.split_at_mut(EACH / 2);
                    let later = BoundPlace {
                        address: place.address + EACH as u64 / 2,
                        ..place
                    };
                    let mut gets = [
                        get(engine, &ctx, place, halves.0),
                        get(engine, &ctx, later, halves.1),
                    ];
                    engine.wait_all(&ctx, &mut gets).unwrap();
                    assert!(back == source, "thread {i}, round {round}");
                }
                ctx.retire();
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        stop.store(true, Ordering::Relaxed);
        // ThreadSanitizer sees a join, but not the end of a scope.
        servers.into_iter().for_each(|t| t.join().unwrap());
        assert!(ended.iter().all(Result::is_ok));
    });
}
