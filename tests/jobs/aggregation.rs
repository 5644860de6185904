//! Operations that are gathered into messages.

use std::time::Duration;

use argonet::{AtomicOp, GlobalPtr, Rank, Reduction, SegmentOffset, SharedArray, World, raw};

use crate::support::{Done, Path, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("aggregation_agrees_with_a_serial_count", || {
        each(&SIZES, "aggregation-count");
    }),
    ("aggregation_gives_each_ticket_once", || {
        each(&SIZES, "aggregation-tickets");
    }),
    ("aggregation_gives_values_in_their_order", || {
        each(&SIZES, "aggregation-order");
    }),
    ("aggregation_sends_old_operations", || {
        each(&[2], "aggregation-age")
    }),
    ("aggregation_has_many_batches_under_way", || {
        each(&[1, 2], "aggregation-batches");
    }),
    ("aggregation_of_several_threads", || {
        each(&[1, 3], "aggregation-threads");
    }),
    ("aggregation_invalid_operations_are_errors", || {
        each(&[1, 2], "aggregation-mistakes");
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("aggregation-count", count),
    ("aggregation-tickets", tickets),
    ("aggregation-order", order),
    ("aggregation-age", age),
    ("aggregation-batches", batches),
    ("aggregation-threads", threads),
    ("aggregation-mistakes", mistakes),
];

/// Words that each rank has.
const WORDS: usize = 50;

/// Operations of each rank.
fn many() -> u64 {
    Path::of_this_run().many(20_000).max(2_000)
}

/// Sums, exclusive ors and maxima of random numbers, which every rank can compute for all.
fn count() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u64>::alloc(&world, 3 * WORDS)?;
    let operations = |rank: Rank| {
        let mut random = Random::new(u64::from(rank.0) + 1);
        let size = world.size();
        (0..many()).map(move |_| {
            let to = Rank((random.next() % u64::from(size)) as u32);
            let word = (random.next() % (3 * WORDS as u64)) as usize;
            (to, word, random.next() >> 20)
        })
    };
    let mut aggregator = world.aggregator();
    for (to, word, number) in operations(world.rank()) {
        let op = match word / WORDS {
            0 => AtomicOp::add(number),
            1 => AtomicOp::xor(number),
            _ => AtomicOp::max(number),
        };
        aggregator.atomic(words.ptr(to, word), op)?;
    }
    assert!(aggregator.flush()?.is_empty());
    world.barrier()?;
    let mut expected = vec![0u64; 3 * WORDS];
    let all = world.ranks().flat_map(operations);
    for (_, word, number) in all.filter(|(to, ..)| *to == world.rank()) {
        let held = &mut expected[word];
        *held = match word / WORDS {
            0 => held.wrapping_add(number),
            1 => *held ^ number,
            _ => number.max(*held),
        };
    }
    for (word, expected) in expected.into_iter().enumerate() {
        assert_eq!(words.read(&world, word), expected, "word {word}");
    }
    drop(aggregator);
    Ok(world.finalize()?)
}

/// All ranks take numbers from a counter on each, and mark them there; dropping sends too.
fn tickets() -> Done {
    let world = World::init()?;
    let each = many() as usize;
    let all = each * world.size() as usize;
    let counter = SharedArray::<u32>::alloc(&world, 1)?;
    let marks = SharedArray::<u32>::alloc(&world, all)?;
    let mut taker = world.aggregator();
    let mut marker = world.aggregator();
    for to in world.ranks() {
        for _ in 0..each {
            taker.fetch(counter.ptr(to, 0), AtomicOp::inc())?;
        }
        let numbers = taker.flush()?;
        assert_eq!(numbers.len(), each);
        assert!(numbers.is_sorted(), "in the order of the calls");
        for number in numbers {
            marker.store(marks.ptr(to, number as usize), world.rank().0 + 1)?;
        }
    }
    drop((taker, marker));
    world.barrier()?;
    assert_eq!(counter.read(&world, 0) as usize, all);
    let mut of_rank = vec![0; world.size() as usize];
    for at in 0..all {
        let by = marks.read(&world, at).checked_sub(1).expect("a mark");
        of_rank[by as usize] += 1;
    }
    assert!(of_rank.iter().all(|marks| *marks == each), "{of_rank:?}");
    Ok(world.finalize()?)
}

/// Values come in the order of the calls, from whatever rank and batch.
fn order() -> Done {
    let world = World::init()?;
    let words = SharedArray::<f64>::alloc(&world, WORDS)?;
    let value = |rank: Rank, word: usize| f64::from(rank.0) + word as f64 / 64.0;
    for word in 0..WORDS {
        words.write(&world, word, value(world.rank(), word));
    }
    world.barrier()?;
    let mut random = Random::new(u64::from(world.rank().0));
    let mut aggregator = world.aggregator();
    for _ in 0..3 {
        let mut expected = Vec::new();
        for _ in 0..many() {
            let to = Rank((random.next() % u64::from(world.size())) as u32);
            let word = (random.next() % WORDS as u64) as usize;
            aggregator.load(words.ptr(to, word))?;
            expected.push(value(to, word));
            if random.next().is_multiple_of(many() / 4) {
                aggregator.send();
            }
        }
        assert!(aggregator.flush()? == expected);
        assert!(aggregator.flush()?.is_empty());
    }
    drop(aggregator);
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Less than a batch, of which the target sees some before any call that sends by itself.
fn age() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u64>::alloc(&world, 2)?;
    let (me, other) = (world.rank(), world.rank_offset(1));
    let mut aggregator = world.aggregator().max_age(Duration::ZERO);
    for _ in 0..10 {
        aggregator.atomic(words.ptr(other, 0), AtomicOp::add(1))?;
    }
    // Calls on mapped memory look at the clock, too.
    for _ in 0..100 {
        aggregator.atomic(words.ptr(me, 1), AtomicOp::add(1))?;
    }
    world.wait_signal(words.ptr(me, 0), |value| value == 10)?;
    aggregator.flush()?;
    assert_eq!(words.read(&world, 1), 100);
    drop(aggregator);
    world.barrier()?;
    Ok(world.finalize()?)
}

/// More batches than may be under way, each of one operation; then an aggregator that is forgotten.
fn batches() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u32>::alloc(&world, 1)?;
    let next = words.ptr(world.rank_offset(1), 0);
    let mut aggregator = world.aggregator();
    for turn in 0..200 {
        assert_eq!(aggregator.fetch(next, AtomicOp::inc())?, turn);
        aggregator.send();
    }
    assert!(aggregator.flush()?.into_iter().eq(0..200));
    world.barrier()?;
    for _ in 0..5 {
        aggregator.load(next)?;
        aggregator.send();
    }
    std::mem::forget(aggregator);
    world.barrier()?;
    assert_eq!(words.read(&world, 0), 200);
    Ok(world.finalize()?)
}

fn threads() -> Done {
    const THREADS: u64 = 3;
    let world = World::builder().build_par()?;
    let words = SharedArray::<u64>::alloc(&world, WORDS)?;
    let each = many();
    std::thread::scope(|s| {
        let add = || -> argonet::Result<()> {
            let mut aggregator = world.aggregator();
            for turn in 0..each {
                let to = world.rank_offset(turn as i64);
                let at = words.ptr(to, turn as usize % WORDS);
                aggregator.atomic(at, AtomicOp::inc())?;
            }
            aggregator.flush().map(drop)
        };
        let threads: Vec<_> = (0..THREADS).map(|_| s.spawn(add)).collect();
        threads.into_iter().try_for_each(|t| t.join().unwrap())
    })?;
    world.barrier()?;
    let mut sum = 0;
    (0..WORDS).for_each(|word| sum += words.read(&world, word));
    let total = world.collectives().reduce_all_value(Reduction::Sum, sum)?;
    assert_eq!(total, THREADS * each * u64::from(world.size()));
    Ok(world.finalize()?)
}

fn mistakes() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u64>::alloc(&world, 1)?;
    let next = world.rank_offset(1);
    let word = words.ptr(next, 0);
    let nowhere = words.ptr(Rank(world.size()), 0);
    let unaligned = raw::global_ptr::<u64>(next, SegmentOffset(word.offset().0 + 4));
    let outside = raw::global_ptr::<u64>(next, SegmentOffset(1 << 50));
    let mut aggregator = world.aggregator();
    let refused = |result: argonet::Result<()>, piece: &str| {
        let error = result.expect_err(piece).to_string();
        assert!(error.contains(piece), "{error}");
    };
    assert_eq!(aggregator.fetch(word, AtomicOp::add(5))?, 0);
    for (at, piece) in [(nowhere, "rank"), (unaligned, "multiple"), (outside, "")] {
        let at: GlobalPtr<u64> = at;
        refused(aggregator.load(at).map(drop), piece);
        refused(aggregator.store(at, 1), piece);
    }
    // A value that was not asked for has no place.
    aggregator.atomic(word, AtomicOp::get())?;
    assert_eq!(aggregator.load(word)?, 1);
    // Those before and after are done, and have their values.
    assert_eq!(aggregator.flush()?, [0, 5]);
    drop(aggregator);
    world.barrier()?;
    assert_eq!(words.read(&world, 0), 5);
    Ok(world.finalize()?)
}
