//! Puts that signal their target.

use std::time::{Duration, Instant};

use argonet::{Error, Par, Rank, SegmentOffset, SharedArray, Signal, World, raw};

use crate::support::{Done, Job, Path, Pattern, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("signals_show_values_of_every_length", || {
        for ranks in SIZES {
            let job = Job::launched(ranks, "signal-lengths").env("ARGONET_SEGMENT", "1280KB");
            job.run().well();
        }
    }),
    ("signals_count_over_all_ranks", || {
        each(&SIZES, "signal-counts");
    }),
    ("signals_fill_two_buffers_in_turn", || {
        each(&[2, 3], "signal-buffers");
    }),
    ("signals_wake_ranks_that_sleep", || {
        for ranks in [1, 2] {
            let job = Job::launched(ranks, "signal-sleepers").env("ARGONET_WAIT", "sleep");
            job.run().well();
        }
    }),
    ("signals_of_several_threads", || {
        each(&[1, 2], "signal-threads")
    }),
    ("signals_invalid_ones_are_errors", || {
        each(&[1, 2], "signal-mistakes");
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("signal-lengths", lengths),
    ("signal-counts", counts),
    ("signal-buffers", buffers),
    ("signal-sleepers", sleepers),
    ("signal-threads", threads),
    ("signal-mistakes", mistakes),
];

/// Each rank puts to the next one; also more bytes than a long message has over connections.
fn lengths() -> Done {
    let world = World::init()?;
    let pattern = Pattern::new();
    let most = (1 << 20) + 100;
    let values = SharedArray::<u8>::alloc(&world, most)?;
    let words = SharedArray::<u64>::alloc(&world, 2)?;
    let (me, next, from) = (world.rank(), world.rank_offset(1), world.rank_offset(-1));
    let around = [4096, 65_536].map(|at| [at - 1, at, at + 1]);
    let short = (0..70).chain(around.into_iter().flatten());
    for (turn, len) in (1u64..).zip(short.chain([1 << 20, most])) {
        let of = |rank: Rank| {
            let piece = pattern.piece(u64::from(rank.0) * 1000 + turn, len.min(Pattern::LONGEST));
            let mut bytes = piece.to_vec();
            bytes.resize(len, turn as u8);
            bytes
        };
        let signal = Signal::set(words.ptr(next, 0), turn);
        world.put_signal(values.on(next).part(0..len), &of(me), signal)?;
        let seen = world.wait_signal(words.ptr(me, 0), |value| value >= turn)?;
        assert_eq!(seen, turn);
        let mut bytes = vec![0; len];
        world.get_into(values.on(me).part(0..len), &mut bytes)?;
        assert!(bytes == of(from), "{len} bytes from rank {from}");
        // The next values may come.
        world.signal(Signal::add(words.ptr(from, 1), 1))?;
        world.wait_signal(words.ptr(me, 1), |value| value == turn)?;
    }
    Ok(world.finalize()?)
}

/// All ranks put to all, and wait for as many signals.
fn counts() -> Done {
    let world = World::init()?;
    let ranks = world.size() as usize;
    let values = SharedArray::<[u64; 2]>::alloc(&world, ranks)?;
    let count = SharedArray::<u64>::alloc(&world, 1)?;
    let me = world.rank();
    for round in 1..=Path::of_this_run().many(200) {
        for to in world.ranks() {
            let place = values.on(to).part(me.0 as usize..me.0 as usize + 1);
            let value = [round, u64::from(me.0)];
            world.put_signal(place, &[value], Signal::add(count.ptr(to, 0), 1))?;
        }
        let all = round * ranks as u64;
        assert_eq!(
            world.wait_signal(count.ptr(me, 0), |seen| seen >= all)?,
            all
        );
        for rank in 0..ranks {
            assert_eq!(values.read(&world, rank), [round, rank as u64]);
        }
        world.barrier()?;
    }
    Ok(world.finalize()?)
}

/// No barrier: a signal says that a buffer is full, another one that it is free.
fn buffers() -> Done {
    const LEN: usize = 100;
    let world = World::init()?;
    let buffers = SharedArray::<u64>::alloc(&world, 2 * LEN)?;
    let words = SharedArray::<u64>::alloc(&world, 2)?;
    let (me, next, from) = (world.rank(), world.rank_offset(1), world.rank_offset(-1));
    let (full, free) = (words.ptr(me, 0), words.ptr(me, 1));
    for turn in 0..Path::of_this_run().many(2000) {
        world.wait_signal(free, |count| count + 2 > turn)?;
        let place = (turn % 2) as usize * LEN;
        let values = [turn * 1000 + u64::from(me.0); LEN];
        let to = buffers.on(next).part(place..place + LEN);
        world.put_signal(to, &values, Signal::add(words.ptr(next, 0), 1))?;
        world.wait_signal(full, |count| count > turn)?;
        let expected = turn * 1000 + u64::from(from.0);
        for at in place..place + LEN {
            assert_eq!(buffers.read(&world, at), expected);
        }
        world.signal(Signal::add(words.ptr(from, 1), 1))?;
    }
    Ok(world.finalize()?)
}

/// Each signal comes when the rank that waits for it has slept for some time.
///
/// One that woke no thread would be noticed a fifth of a second after the sleep has begun.
fn sleepers() -> Done {
    const TURNS: u64 = 20;
    const PAUSE: Duration = Duration::from_millis(10);
    let limit = |begun: Instant| {
        let took = begun.elapsed();
        assert!(took < 7 * PAUSE * TURNS as u32, "{took:?}");
    };
    let world = World::builder().build_par()?;
    let words = SharedArray::<u64>::alloc(&world, 2)?;
    let me = world.rank();
    // From another thread of the rank.
    let (there, back) = (words.ptr(me, 0), words.ptr(me, 1));
    let begun = Instant::now();
    std::thread::scope(|scope| -> Done {
        let answers = scope.spawn(|| -> argonet::Result<()> {
            for turn in 1..=TURNS {
                world.wait_signal(there, |value| value == turn)?;
                world.signal(Signal::set(back, turn))?;
            }
            Ok(())
        });
        for turn in 1..=TURNS {
            world.wait_timeout(PAUSE, || false)?;
            world.signal(Signal::set(there, turn))?;
            world.wait_signal(back, |value| value == turn)?;
        }
        Ok(answers.join().expect("it answers")?)
    })?;
    limit(begun);
    world.barrier()?;
    // From another rank.
    let (own, other) = (words.ptr(me, 1), words.ptr(world.rank_offset(1), 1));
    let begun = Instant::now();
    for turn in 0..TURNS {
        if u64::from(me.0) == turn % u64::from(world.size()) {
            world.wait_timeout(PAUSE, || false)?;
            world.signal(Signal::add(other, 1))?;
        }
        if (me.0 + world.size() - 1) % world.size() == turn as u32 % world.size() {
            let rounds = TURNS + turn / u64::from(world.size()) + 1;
            world.wait_signal(own, |value| value >= rounds)?;
        }
    }
    limit(begun);
    Ok(world.finalize()?)
}

/// Threads of each rank signal, one thread waits for all.
fn threads() -> Done {
    const THREADS: u64 = 3;
    let world: World<Par> = World::builder().build_par()?;
    let count = SharedArray::<u64>::alloc(&world, 1)?;
    let turns = Path::of_this_run().many(1000);
    let values = SharedArray::<u64>::alloc(&world, (THREADS * turns) as usize)?;
    let next = world.rank_offset(1);
    std::thread::scope(|scope| -> Done {
        let (world, count, values) = (&world, &count, &values);
        let senders: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || -> argonet::Result<()> {
                    for place in thread * turns..(thread + 1) * turns {
                        let at = place as usize;
                        let to = values.on(next).part(at..at + 1);
                        world.put_signal(to, &[!place], Signal::add(count.ptr(next, 0), 1))?;
                    }
                    Ok(())
                })
            })
            .collect();
        let all = turns * THREADS;
        let own = count.ptr(world.rank(), 0);
        assert_eq!(world.wait_signal(own, |seen| seen >= all)?, all);
        for sender in senders {
            sender.join().expect("it sends")?;
        }
        for place in 0..all {
            assert_eq!(values.read(world, place as usize), !place);
        }
        Ok(())
    })?;
    Ok(world.finalize()?)
}

fn mistakes() -> Done {
    let world = World::init()?;
    let words = SharedArray::<u64>::alloc(&world, 2)?;
    let (me, next) = (world.rank(), world.rank_offset(1));
    let word = words.ptr(next, 0);
    let nowhere = words.ptr(Rank(world.size()), 0);
    let unaligned = raw::global_ptr::<u64>(next, SegmentOffset(word.offset().0 + 4));
    let outside = raw::global_ptr::<u64>(next, SegmentOffset(1 << 50));
    let slice = words.on(next);
    let refused = |result: argonet::Result<()>, part: &str| {
        let error = result.expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    };
    let values = [1, 2];
    refused(
        world.put_signal(slice, &values[..1], Signal::add(word, 1)),
        "1 values",
    );
    refused(world.signal(Signal::add(nowhere, 1)), "rank");
    refused(world.signal(Signal::set(unaligned, 1)), "multiple");
    refused(
        world.put_signal(slice, &values, Signal::set(outside, 1)),
        "",
    );
    refused(world.wait_signal(unaligned, |_| true).map(drop), "");
    if next != me {
        let error = world.put_signal(words.on(me), &values, Signal::add(word, 1));
        assert!(matches!(error, Err(Error::SignalElsewhere { .. })));
        let error = world.wait_signal(word, |_| true);
        assert!(matches!(error, Err(Error::SignalElsewhere { .. })));
    }
    world.drain()?;
    assert_eq!([words.read(&world, 0), words.read(&world, 1)], [0, 0]);
    Ok(world.finalize()?)
}
