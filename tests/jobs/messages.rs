//! Active messages of every kind and size arrive as they were sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::engine::Injection;
use argonet::{MAX_MEDIUM, Rank, Reduction, SegmentOffset, SharedArray, World, raw};

use crate::support::{Done, Job, Path, Pattern, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("messages_medium_of_every_length", || {
        each(&SIZES, "medium-lengths");
    }),
    ("messages_arguments_of_every_size", || {
        each(&SIZES, "argument-sizes");
    }),
    ("messages_raw_with_0_to_16_words", || {
        each(&SIZES, "raw-words");
    }),
    ("messages_replies_of_every_kind", || each(&SIZES, "replies")),
    ("messages_long_up_to_the_whole_segment", || {
        for ranks in SIZES {
            let job = Job::launched(ranks, "long-lengths").env("ARGONET_SEGMENT", "1152KB");
            job.run().well();
        }
    }),
    ("messages_long_above_the_limit_over_connections", || {
        if Path::of_this_run() == Path::Memory {
            let job = Job::launched(2, "long-in-parts").env("ARGONET_SEGMENT", "1152KB");
            let job = job.env("ARGONET_CONDUIT", "tcp");
            job.env("GASNET_SUPERNODE_MAXSIZE", "1").run().well();
        }
    }),
    ("messages_64_ranks_reach_each_other", || {
        let job = Job::launched(64, "all-to-all").env("ARGONET_SEGMENT", "4096");
        job.run().well();
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("medium-lengths", medium_lengths),
    ("argument-sizes", argument_sizes),
    ("raw-words", raw_words),
    ("replies", replies),
    ("long-lengths", || long_lengths(false)),
    ("long-in-parts", || long_lengths(true)),
    ("all-to-all", all_to_all),
];

/// Payload lengths around everything that could be a threshold.
pub(crate) fn lengths() -> Vec<usize> {
    let mut all: Vec<usize> = (0..=130).collect();
    for power in 8..=16 {
        let power = 1usize << power;
        all.extend([power - 17, power - 16, power - 15, power - 1, power]);
        all.extend([1, 15, 16, 17].map(|more| power + more));
    }
    all.retain(|len| *len <= MAX_MEDIUM);
    all
}

fn medium_lengths() -> Done {
    let pattern = Arc::new(Pattern::new());
    let seen = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let take = builder.am("take", {
        let (pattern, seen) = (Arc::clone(&pattern), Arc::clone(&seen));
        move |ctx, [key, len]: [u64; 2]| {
            assert_eq!(ctx.payload().len() as u64, len);
            assert_eq!(ctx.payload().is_empty(), len == 0);
            assert_eq!(key >> 32, u64::from(ctx.source().0));
            let got = ctx.payload().to_vec::<u8>();
            assert_eq!(got, pattern.piece(key, len as usize));
            // Piecewise, at odd offsets, and not past the end.
            if len >= 9 {
                let word: u64 = ctx.payload().read(1).expect("within");
                assert_eq!(word.to_le_bytes(), got[1..9]);
            }
            assert!(ctx.payload().read::<u8>(len as usize).is_err());
            assert!(ctx.payload().read::<u8>(usize::MAX).is_err());
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    for (i, len) in lengths().into_iter().enumerate() {
        for to in world.ranks() {
            let key = u64::from(world.rank().0) << 32 | i as u64;
            world.send_medium(to, &take, [key, len as u64], pattern.piece(key, len))?;
        }
    }
    world.drain()?;
    let expected = lengths().len() as u64 * u64::from(world.size());
    assert_eq!(seen.load(Ordering::Relaxed), expected);
    Ok(world.finalize()?)
}

/// Sends one message of some type to a rank.
type Send = Box<dyn Fn(&World, Rank) -> argonet::Result<()>>;

/// Arguments of `size` bytes that `source` sends.
fn argument_bytes<const N: usize>(source: Rank) -> [u8; N] {
    core::array::from_fn(|i| (source.index() * 31 + N * 7 + i + 1) as u8)
}

fn argument_size<const N: usize>(
    builder: &mut argonet::Builder,
    name: &'static str,
    seen: &Arc<AtomicU64>,
) -> Send {
    let seen = Arc::clone(seen);
    let am = builder.am(name, move |ctx, args: [u8; N]| {
        assert_eq!(args, argument_bytes::<N>(ctx.source()));
        assert_eq!(ctx.payload().len(), ctx.payload().to_vec::<u8>().len());
        assert!(ctx.payload().is_empty() || ctx.payload().to_vec::<u8>() == [9; N]);
        seen.fetch_add(1, Ordering::Relaxed);
    });
    Box::new(move |world, to| {
        let args = argument_bytes::<N>(world.rank());
        world.send(to, &am, args)?;
        world.send_medium(to, &am, args, &[9u8; N])
    })
}

fn argument_sizes() -> Done {
    let seen = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    macro_rules! sizes {
        ($($size:literal)*) => {
            vec![$(argument_size::<$size>(&mut builder, concat!("size", $size), &seen)),*]
        };
    }
    let sends = sizes!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
        63 64
    );
    let world = builder.build()?;
    for to in world.ranks() {
        for send in &sends {
            send(&world, to)?;
        }
    }
    world.drain()?;
    let expected = 2 * sends.len() as u64 * u64::from(world.size());
    assert_eq!(seen.load(Ordering::Relaxed), expected);
    Ok(world.finalize()?)
}

/// Argument words that `source` sends.
fn words<const N: usize>(source: Rank) -> [u32; N] {
    core::array::from_fn(|i| (source.0 << 16) + (N << 8) as u32 + i as u32 + 1)
}

fn raw_words() -> Done {
    let seen = Arc::new(AtomicU64::new(0));
    let pattern = Arc::new(Pattern::new());
    let mut builder = World::builder();
    macro_rules! counts {
        ($($count:literal)*) => {$({
            let (seen, pattern) = (Arc::clone(&seen), Arc::clone(&pattern));
            let name = concat!("words", $count);
            let _ = builder.am(name, move |ctx, args: [u32; $count]| {
                assert_eq!(args, words::<$count>(ctx.source()));
                let payload = ctx.payload().to_vec::<u8>();
                assert_eq!(payload, pattern.piece($count, payload.len()));
                seen.fetch_add(1 + payload.len() as u64, Ordering::Relaxed);
            });
        })*};
    }
    counts!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    let world = builder.build()?;
    // A piece for each sender; longs of one sender are handled in order, so one does.
    let room = SharedArray::<u8>::alloc(&world, 100 * world.size() as usize)?;
    let all: [(&str, Vec<u32>); 17] = {
        macro_rules! all {
            ($($count:literal)*) => {
                [$((concat!("words", $count), words::<$count>(world.rank()).to_vec())),*]
            };
        }
        all!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
    };
    let mut expected = 0;
    for to in world.ranks() {
        for (count, (name, args)) in all.iter().enumerate() {
            let handler = world.raw().handler(name).expect("registered");
            for len in [0, 1, 15, 16, 17, 100] {
                let payload = pattern.piece(count as u64, len);
                let place = room.ptr(to, 100 * world.rank().index()).offset();
                let forms = [None, Some((payload, None)), Some((payload, Some(place)))];
                for form in forms {
                    if form.is_some_and(|(_, offset)| offset.is_some()) {
                        // The piece of a long must not change before its handler has run.
                        world.drain()?;
                    }
                    send_raw(&world, to, handler, args, form)?;
                    expected += 1 + form.map_or(0, |(payload, _)| payload.len() as u64);
                }
            }
        }
    }
    world.drain()?;
    assert_eq!(seen.load(Ordering::Relaxed), expected);
    Ok(world.finalize()?)
}

#[allow(unsafe_code)]
fn send_raw(
    world: &World,
    to: Rank,
    handler: argonet::HandlerIndex,
    args: &[u32],
    payload: Option<(&[u8], Option<SegmentOffset>)>,
) -> argonet::Result<()> {
    // SAFETY: no thread holds a slice of shared memory in these programs while messages are sent.
    unsafe {
        world
            .raw()
            .request(to, handler, args, payload, Injection::Blocking)
    }
}

argonet::am! {
    fn answer(ctx, args: [u64; 2]) {
        let [key, len] = args;
        assert_eq!(ctx.payload().len() as u64, len);
        ANSWERS.fetch_add(key ^ u64::from(ctx.source().0), Ordering::Relaxed);
    }
}

static ANSWERS: AtomicU64 = AtomicU64::new(0);

fn replies() -> Done {
    let pattern = Arc::new(Pattern::new());
    let mut builder = World::builder();
    let echoed = Arc::new(AtomicU64::new(0));
    // A reply that captures, registered by the builder as well.
    let back = Arc::new(builder.am("back", {
        let (pattern, echoed) = (Arc::clone(&pattern), Arc::clone(&echoed));
        move |ctx, [key, len]: [u64; 2]| {
            assert_eq!(
                ctx.payload().to_vec::<u8>(),
                pattern.piece(key, len as usize)
            );
            echoed.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let echo = builder.am("echo", {
        let back = Arc::clone(&back);
        move |ctx, args: [u64; 2]| ctx.echo(&back, args).expect("echo")
    });
    let other = builder.am("other", {
        let (back, pattern) = (Arc::clone(&back), Arc::clone(&pattern));
        move |ctx, [key, len]: [u64; 2]| {
            let payload = pattern.piece(key + 1, len as usize);
            ctx.reply_medium(&back, [key + 1, len], payload)
                .expect("a medium");
        }
    });
    let short = builder.am("short", |ctx, [key, _]: [u64; 2]| {
        let args = [key ^ u64::from(ctx.rank().0), 0];
        ctx.reply(&answer, args).expect("a short");
    });
    let silent = builder.am("silent", |_, _: [u64; 2]| {});
    let world = builder.build()?;
    let mut sum = 0;
    let mut count = 0;
    for (i, len) in lengths().into_iter().enumerate() {
        let (key, args) = (i as u64, [i as u64, len as u64]);
        for to in world.ranks() {
            world.send_medium(to, &echo, args, pattern.piece(key, len))?;
            world.send(to, &other, args)?;
            world.send(to, &short, args)?;
            world.send(to, &silent, args)?;
            count += 2;
            sum += key;
        }
    }
    world.drain()?;
    assert_eq!(echoed.load(Ordering::Relaxed), count);
    assert_eq!(ANSWERS.load(Ordering::Relaxed), sum);
    Ok(world.finalize()?)
}

fn long_lengths(in_parts: bool) -> Done {
    let pattern = Arc::new(Pattern::new());
    let whole = 1152 << 10;
    let seen = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let long = builder.am("long", {
        let (pattern, seen) = (Arc::clone(&pattern), Arc::clone(&seen));
        move |ctx, [key, len]: [u64; 2]| {
            let got = ctx.payload().to_vec::<u8>();
            assert_eq!(got.len() as u64, len);
            for (i, chunk) in got.chunks(Pattern::LONGEST).enumerate() {
                assert_eq!(chunk, pattern.piece(key + i as u64, chunk.len()));
            }
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    let world = builder.build()?;
    assert_eq!(world.raw().segment_len(), whole as u64);
    assert!(!in_parts || world.limits().long < whole);
    let all = SharedArray::<u8>::alloc(&world, whole)?;
    let make = |key: u64, len: usize| -> Vec<u8> {
        let starts = (0..len).step_by(Pattern::LONGEST).enumerate();
        starts
            .flat_map(|(i, at)| {
                let len = (len - at).min(Pattern::LONGEST);
                pattern.piece(key + i as u64, len).to_vec()
            })
            .collect()
    };
    let next = world.rank_offset(1);
    for (step, len) in [0, 1, 7, 64, 65, 4096, 65537, whole - 1, whole]
        .into_iter()
        .enumerate()
    {
        let first = if len == whole {
            0
        } else {
            (whole - len).min(step)
        };
        let key = u64::from(world.rank().0) * 1000 + step as u64;
        let payload = make(key, len);
        let there = all.on(next).part(first..first + len);
        world.send_long(there, &long, [key, len as u64], &payload)?;
        let done = step as u64 + 1;
        world.wait_until(|| seen.load(Ordering::Relaxed) == done)?;
        // The bytes stay where they were put.
        let before = u64::from(world.rank_offset(-1).0) * 1000 + step as u64;
        let mut here = vec![0; len];
        all.read_into(&world, first, &mut here);
        assert_eq!(here, make(before, len));
        world.barrier()?;
    }
    // One byte more than there is, and the end with no byte at all.
    let end = all.on(next).part(whole..);
    let beyond = raw::global_slice(raw::global_ptr::<u8>(next, end.offset()), 1);
    let error = world.send_long(beyond, &long, [0, 1], &[1u8]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("1 bytes at offset {whole}"))
    );
    world.send_long(end, &long, [0, 0], &[0u8; 0])?;
    world.drain()?;
    assert_eq!(seen.load(Ordering::Relaxed), 10);
    Ok(world.finalize()?)
}

fn all_to_all() -> Done {
    static SUM: AtomicU64 = AtomicU64::new(0);
    static BACK: AtomicU64 = AtomicU64::new(0);
    let mut builder = World::builder();
    let back = builder.am("back", |_, n: u64| {
        BACK.fetch_add(n, Ordering::Relaxed);
    });
    let there = builder.am("there", move |ctx, n: u64| {
        SUM.fetch_add(n, Ordering::Relaxed);
        ctx.reply(&back, n).expect("a reply");
    });
    let world = builder.build()?;
    let me = u64::from(world.rank().0);
    for to in world.ranks() {
        world.send(to, &there, me + 1)?;
    }
    world.drain()?;
    let size = u64::from(world.size());
    assert_eq!(SUM.load(Ordering::Relaxed), size * (size + 1) / 2);
    assert_eq!(BACK.load(Ordering::Relaxed), size * (me + 1));
    let mut count = [1u32];
    world.reduce_all(Reduction::Sum, &mut count)?;
    assert_eq!(count[0], world.size());
    Ok(world.finalize()?)
}
