//! Put and get: against a model of all segments, byte by byte.

use argonet::raw::{Category, Injection, MessageClass, PrepareRequest, Side, Target, Transfer};
use argonet::{Error, JobRank, Rank, SharedArray, World};
use rustix::process::{Pid, Signal, kill_process};
use std::panic::AssertUnwindSafe;

use crate::support::{Done, Job, Path, Pattern, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("put_get_random_against_a_model", || each(&SIZES, "model")),
    ("put_get_every_short_length_and_alignment", || {
        each(&SIZES, "alignments");
    }),
    ("put_get_values_of_many_types", || each(&[1, 3], "types")),
    ("put_get_scope", || each(&SIZES, "scope")),
    ("put_get_scope_as_the_first_call_of_a_thread", || {
        each(&[1, 2], "scope-of-thread");
    }),
    (
        "put_get_scope_that_cannot_wait_at_its_end_ends_the_job",
        unfinished_scope,
    ),
    ("put_get_started_while_the_target_is_stopped", || {
        each(&[2], "stopped");
    }),
    ("put_get_keeps_to_its_array", || each(&[1, 2, 3], "bounds")),
    ("put_get_over_tcp_with_other_sizes", other_sizes),
    ("put_get_flag_after_data", || each(&[2, 3, 8], "flag")),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("model", model),
    ("alignments", alignments),
    ("types", types),
    ("scope", scope),
    ("scope-of-thread", scope_of_thread),
    ("scope-with-room", || scope_with_room(false)),
    ("scope-with-room-panics", || scope_with_room(true)),
    ("stopped", stopped),
    ("flag", flag),
    ("bounds", bounds),
    ("sizes", sizes),
];

const PART: usize = 100_000;

/// Each rank owns a stripe of every rank's array, writes only there, and reads everything that it
/// wrote.
fn model() -> Done {
    let world = World::init()?;
    let pattern = Pattern::new();
    let size = world.size() as usize;
    let stripe = PART / size;
    let v = SharedArray::<u8>::alloc(&world, PART)?;
    let first = world.rank().index() * stripe;
    let mut models = vec![vec![0u8; stripe]; size];
    let mut random = Random::new(0xabc + u64::from(world.rank().0));
    for step in 0..4000u64 {
        let target = random.below(size);
        let longest = if random.below(20) == 0 { stripe } else { 300 };
        let at = random.below(stripe);
        let len = random
            .below(longest.min(stripe - at) + 1)
            .min(Pattern::LONGEST);
        let stripe_of = v.on(Rank(target as u32)).part(first..first + stripe);
        let p = stripe_of.part(at..at + len);
        let model = &mut models[target];
        match random.below(5) {
            0 => {
                let payload = pattern.piece(step, len);
                world.put_from(p, payload)?;
                model[at..at + len].copy_from_slice(payload);
            }
            1 => {
                let payload: Box<[u8]> = pattern.piece(step, len).into();
                let given_back = world.put(p, payload.clone())?.wait()?;
                assert_eq!(given_back, payload);
                model[at..at + len].copy_from_slice(&payload);
            }
            2 => {
                world.put_value(stripe_of.at(at), step as u8)?;
                model[at] = step as u8;
            }
            3 => {
                // The bytes around the buffer stay as they are.
                let mut buffer = vec![0xee; len + 2];
                world.get_into(p, &mut buffer[1..=len])?;
                assert_eq!((buffer[0], buffer[len + 1]), (0xee, 0xee));
                assert!(buffer[1..=len] == model[at..at + len]);
            }
            _ => {
                let got = world.get(p)?.wait()?;
                assert!(*got == model[at..at + len]);
            }
        }
    }
    for (target, model) in models.iter().enumerate() {
        let got = world
            .get(v.on(Rank(target as u32)).part(first..first + stripe))?
            .wait()?;
        assert!(*got == **model, "stripe on rank {target}");
    }
    world.barrier()?;
    // Elements behind the last stripe belong to no rank.
    for i in size * stripe..PART {
        assert_eq!(v.read(&world, i), 0);
    }
    Ok(world.finalize()?)
}

fn alignments() -> Done {
    let world = World::init()?;
    let next = world.rank_offset(1);
    let v = SharedArray::<u8>::alloc(&world, 512)?;
    let source: Vec<u8> = (0..400).map(|i| (i % 251) as u8 + 1).collect();
    let path = Path::of_this_run();
    for len in (0..=140).chain([255, 256, 257]) {
        for shift in (0..17).filter(|shift| path.has_turn(len + shift)) {
            world.put_from(v.on(next), &[0xcc; 512])?;
            let there = v.on(next).part(64 + shift..64 + shift + len);
            world.put_from(there, &source[shift..shift + len])?;
            let got = world.get(v.on(next))?.wait()?;
            for (i, byte) in got.iter().enumerate() {
                let inside = (64 + shift..64 + shift + len).contains(&i);
                let expected = if inside { source[i - 64] } else { 0xcc };
                assert_eq!(*byte, expected, "byte {i} of {len} at {shift}");
            }
        }
    }
    Ok(world.finalize()?)
}

fn types() -> Done {
    let world = World::init()?;
    let next = world.rank_offset(1);
    fn check<T: argonet::Global + PartialEq + core::fmt::Debug>(
        world: &World,
        next: Rank,
        value: T,
    ) -> argonet::Result<()> {
        let v = SharedArray::<T>::alloc(world, 3)?;
        world.put_value(v.ptr(next, 1), value)?;
        world.barrier()?;
        let zero = T::new_zeroed();
        assert_eq!([0, 1, 2].map(|i| v.read(world, i)), [zero, value, zero]);
        assert_eq!(world.get_value(v.ptr(next, 1))?, value);
        v.write(world, 2, value);
        world.barrier()?;
        assert_eq!(world.get_value(v.ptr(next, 2))?, value);
        world.barrier()?;
        v.free(world)
    }
    check(&world, next, 0x12u8)?;
    check(&world, next, -5i16)?;
    check(&world, next, 0x1234_5678u32)?;
    check(&world, next, u64::MAX)?;
    check(&world, next, i128::MIN + 77)?;
    check(&world, next, 1.5f32)?;
    check(&world, next, f64::MIN_POSITIVE)?;
    check(&world, next, [1u8, 2, 3])?;
    check(&world, next, [[1u16; 5]; 7])?;
    check(&world, next, [7u64; 100])?;
    Ok(world.finalize()?)
}

fn scope() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u32>::alloc(&world, 1000 * world.size() as usize)?;
    let mine = world.rank().index() * 1000;
    let source: Vec<u32> = (0..1000).map(|i| world.rank().0 * 1000 + i).collect();
    let mut halves = vec![0u32; 1000 * world.size() as usize];
    let count = world.scope(|s| -> argonet::Result<usize> {
        for to in world.ranks() {
            let there = v.on(to).part(mine..mine + 1000);
            s.put(there.part(..500), &source[..500])?;
            s.put(there.part(500..), &source[500..])?;
        }
        Ok(source.len())
    })?;
    assert_eq!(count, 1000);
    world.barrier()?;
    world.scope(|s| -> argonet::Result<()> {
        for (from, piece) in world.ranks().zip(halves.chunks_mut(1000)) {
            let theirs = from.index() * 1000;
            let there = v.on(from).part(theirs..theirs + 1000);
            let (low, high) = piece.split_at_mut(300);
            s.get(there.part(300..), high)?;
            s.get(there.part(..300), low)?;
        }
        Ok(())
    })?;
    assert!(
        halves
            .iter()
            .enumerate()
            .all(|(i, value)| i as u32 == *value)
    );
    Ok(world.finalize()?)
}

/// Whether a process runs, as it was asked to.
fn runs(process: Pid, wanted: bool) {
    let signal = if wanted { Signal::CONT } else { Signal::STOP };
    kill_process(process, signal).expect("a rank of this job");
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    loop {
        let stat = std::fs::read_to_string(&stat).expect("a process");
        let state = stat.rsplit(") ").next().unwrap_or_default();
        if state.starts_with('T') != wanted {
            return;
        }
        std::thread::yield_now();
    }
}

/// Starting an operation waits for nothing: its target does not even run.
///
/// A caller that waits, or gives up a buffer, does so until the operation is complete.
fn stopped() -> Done {
    const LONG: usize = 100_000;
    let world = World::init()?;
    let v = SharedArray::<u32>::alloc(&world, 4 * LONG)?;
    if world.rank() == Rank(1) {
        world.put_value(v.ptr(Rank(0), 0), std::process::id())?;
    }
    world.barrier()?;
    if world.rank() == Rank(1) {
        world.barrier()?;
        return Ok(world.finalize()?);
    }
    let other = Pid::from_raw(v.read(&world, 0) as i32).expect("a process");
    let at = |part: usize| v.on(Rank(1)).part(part * LONG..(part + 1) * LONG);
    let ones: Vec<u32> = (1..=LONG as u32).collect();
    let twice: Box<[u32]> = ones.iter().map(|one| 2 * one).collect();

    runs(other, false);
    let short = world.put(at(3).part(..1), vec![7].into())?;
    let long = world.put(at(1), twice.clone())?;
    let back = world.get(at(3).part(..1))?;
    let mut zeros = [9; 8];
    world.scope(|s| -> argonet::Result<()> {
        s.put(at(0), &ones)?;
        s.get(at(2).part(..8), &mut zeros)?;
        runs(other, true);
        Ok(())
    })?;
    assert_eq!(zeros, [0; 8]);
    let mut there = vec![0; LONG];
    world.get_into(at(0), &mut there)?;
    assert!(there == ones);
    assert_eq!(*long.wait()?, *twice);
    assert_eq!((&*short.wait()?, back.wait()?.len()), (&[7][..], 1));
    assert_eq!(*world.get(at(1))?.wait()?, *twice);

    // No caller waits, and a dropped buffer belongs to the operation until its end.
    let puts: Vec<_> = (0..4)
        .map(|_| world.put(at(2), twice.clone()))
        .collect::<Result<_, _>>()?;
    drop((puts, world.get(at(2))?));
    assert_eq!(*world.get(at(2))?.wait()?, *twice);

    // A scope that is left by a panic has ended, too.
    let mut there = vec![0; LONG];
    runs(other, false);
    let left = std::panic::catch_unwind(AssertUnwindSafe(|| -> argonet::Result<()> {
        world.scope(|s| {
            s.get(at(2), &mut there).expect("a get");
            runs(other, true);
            std::panic::resume_unwind(Box::new("left"))
        })
    }));
    assert!(left.is_err() && *there == *twice);

    // In an access region there is nothing to wait for afterwards, and nothing counts for the
    // region.
    let raw = world.raw();
    raw.begin_region()?;
    world.scope(|s| s.put(at(2), &ones))?;
    assert!(raw.end_region()?.is_done());
    // A region that begins in the scope and does not end there.
    world.scope(|s| -> argonet::Result<()> {
        s.put(at(3), &there)?;
        raw.begin_region()
    })?;
    assert!(raw.end_region()?.is_done());
    assert_eq!(*world.get(at(2))?.wait()?, *ones);
    assert_eq!(*world.get(at(3))?.wait()?, *there);
    world.barrier()?;
    Ok(world.finalize()?)
}

fn scope_of_thread() -> Done {
    let world = World::builder().build_par()?;
    let v = SharedArray::<u32>::alloc(&world, 1)?;
    let (source, next) = ([world.rank().0], world.rank_offset(1));
    std::thread::scope(|threads| {
        let put = || world.scope(|s| s.put(v.on(next), &source));
        threads.spawn(put).join().expect("a thread")
    })?;
    world.barrier()?;
    assert_eq!(v.read(&world, 0), world.rank_offset(-1).0);
    Ok(world.finalize()?)
}

/// Sizes of tcp as the settings have them, and in bytes: up to where a put is copied, and the
/// fragments of longer ones.
const OTHER_SIZES: [([&str; 2], [usize; 2]); 3] = [
    (["64", "4 KB"], [64, 4 << 10]),
    (["64 KB", "1 MB"], [64 << 10, 1 << 20]),
    (["1000", "64 KB"], [1000, 64 << 10]),
];

/// The same puts and gets, in other fragments and copied up to other lengths, which are those of
/// the settings.
fn other_sizes() {
    for ([eager, fragment], _) in OTHER_SIZES {
        for program in ["model", "sizes"] {
            let job = Job::launched(2, program).env("ARGONET_CONDUIT", "tcp");
            let job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
            let job = job.env("ARGONET_TCP_EAGER_SIZE", eager);
            job.env("ARGONET_TCP_FRAGMENT_SIZE", fragment).run().well();
        }
    }
}

/// Puts to a rank that is stopped and acknowledges nothing.
///
/// A put that is copied is locally complete all the same. Of one that is not copied, between 20 and
/// 60 fragments may be in flight, and while it has more, another one is refused. Each of these
/// fails with the sizes that tcp has without settings.
#[allow(unsafe_code)]
fn sizes() -> Done {
    let eager = std::env::var("ARGONET_TCP_EAGER_SIZE")?;
    let found = OTHER_SIZES.iter().find(|(names, _)| names[0] == eager);
    let (_, [eager, fragment]) = *found.expect("sizes of this test");
    let few = 20 * fragment;
    // Of the longest fragments, even the few are more than may be in flight of the default's.
    let many = Some(60 * fragment).filter(|len| *len <= 4 << 20);
    let longest = few.max(many.unwrap_or(0));
    let world = World::init()?;
    let v = SharedArray::<u8>::alloc(&world, longest)?;
    let pid = SharedArray::<u32>::alloc(&world, 1)?;
    if world.rank() == Rank(1) {
        world.put_value(pid.ptr(Rank(0), 0), std::process::id())?;
    }
    world.barrier()?;
    if world.rank() == Rank(0) {
        let other = Pid::from_raw(pid.read(&world, 0) as i32).expect("a process");
        let (raw, source) = (world.raw(), vec![7; longest]);
        let start = |len| {
            let offset = v.ptr(Rank(1), 0).offset();
            let (rank, src) = (JobRank(1), source.as_ptr());
            let put = Transfer {
                target: Target::Segment { rank, offset },
                side: Side::Put(src),
                len,
            };
            // SAFETY: each put is waited for below, while the source is there.
            unsafe { raw.start(put, Injection::Immediate) }
        };
        let is_copied = |put| -> argonet::Result<bool> {
            let leaf = raw.leaf(put, Category::Lc)?;
            Ok(leaf.is_done() || raw.test(leaf)?)
        };
        runs(other, false);
        let short = start(eager)?;
        assert!(is_copied(short)?, "{eager} bytes are not copied");
        let mut puts = vec![short];
        let lens = [eager + 1, few].into_iter().chain(many);
        for len in lens {
            let put = start(len)?;
            assert!(!is_copied(put)?, "{len} bytes are copied");
            puts.push(put);
            let next = start(eager + 1);
            let leaves_room = Some(len) != many;
            assert_eq!(next.is_ok(), leaves_room, "behind {len} bytes");
            puts.extend(next.ok());
        }
        runs(other, true);
        raw.wait_all(&mut puts)?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// A thread that holds a room cannot wait, so the buffers of the scope would be free while the gets
/// still write them.
fn unfinished_scope() {
    for conduit in ["tcp", "portals", "usnic"] {
        for program in ["scope-with-room", "scope-with-room-panics"] {
            let job = Job::launched(2, program).env("ARGONET_CONDUIT", conduit);
            let job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
            let outcome = job.run().failed(&[
                "rank 0 (pid ",
                "World::scope ends and cannot wait for the puts and gets that it has started",
                "between prepare and commit of a negotiated payload (rank 0)",
            ]);
            assert_eq!(outcome.out, "", "{conduit}: the buffer came back");
        }
    }
}

fn scope_with_room(panics: bool) -> Done {
    let world = World::init()?;
    let v = SharedArray::<u8>::alloc(&world, PART)?;
    world.barrier()?;
    if world.rank() == Rank(0) {
        let want = PrepareRequest {
            to: JobRank(1),
            class: MessageClass::Request,
            nargs: 0,
            least: 8,
            most: 8,
            offset: None,
        };
        let (mut buffer, mut room) = (vec![0u8; PART], None);
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| {
            world.scope(|s| {
                s.get(v.on(Rank(1)).part(..PART), &mut buffer)
                    .expect("a get");
                room = Some(
                    world
                        .raw()
                        .prepare(&want, Injection::Blocking)
                        .expect("room"),
                );
                if panics {
                    std::panic::resume_unwind(Box::new("left"));
                }
            });
        }));
        println!("the scope has ended");
    }
    world.barrier()?;
    Ok(world.finalize()?)
}

/// Another number of values than the slice has is refused, and nothing is written; so no call of
/// the safe API reaches the array beside it.
fn bounds() -> Done {
    let world = World::init()?;
    let [first, second] = [(), ()].map(|()| SharedArray::<u32>::alloc(&world, 8));
    let (first, second) = (first?, second?);
    let next = world.rank_offset(1);
    second.write_from(&world, 0, &[5; 8]);
    first.write_from(&world, 0, &[6; 8]);
    world.barrier()?;
    let (last, mut buffer) = (first.on(next).part(6..), [7; 3]);
    let refused = [
        world.put_from(last, &[1; 3]),
        world.put_from(last, &[1]),
        world.get_into(last, &mut buffer),
        world.put(last, vec![1; 3].into()).map(drop),
        world.scope(|s| s.put(last, &[1; 3])),
        world.scope(|s| s.get(last, &mut buffer)),
        world.send_long(last, &unheard, 0, &[1; 3]),
    ];
    for refused in refused {
        let error = refused.expect_err("another number of values");
        let (rank, slice) = (next, 2);
        assert!(
            matches!(error, Error::SliceLength { rank: r, slice: s, .. } if (r, s) == (rank, slice)),
            "{error}"
        );
        assert!(error.to_string().contains("of 2 elements"), "{error}");
    }
    assert_eq!(buffer, [7; 3]);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for outside in [8, usize::MAX] {
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| first.ptr(next, outside)));
        assert!(found.is_err());
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| {
            first.element(&world, next, outside).map(drop)
        }));
        assert!(found.is_err());
    }
    std::panic::set_hook(hook);
    world.barrier()?;
    assert_eq!(*world.get(first.on(next))?.wait()?, [6; 8]);
    assert_eq!(*world.get(second.on(next))?.wait()?, [5; 8]);
    world.barrier()?;
    // A pointer that was checked once, over memory that is mapped here and over a network.
    let element = first.element(&world, next, 7)?;
    world.put_at(&element, 9)?;
    assert_eq!(
        (world.get_at(&element)?, element.ptr()),
        (9, first.ptr(next, 7))
    );
    assert!(first.element(&world, Rank(world.size()), 0).is_err());
    world.barrier()?;
    assert_eq!((first.read(&world, 6), first.read(&world, 7)), (6, 9));
    assert_eq!(second.read(&world, 0), 5);
    Ok(world.finalize()?)
}

argonet::am! {
    fn unheard(_ctx, _nothing: u32) {}
}

/// A rank that sees an atomic store also sees a put that was complete before it.
fn flag() -> Done {
    let world = World::init()?;
    let (next, before) = (world.rank_offset(1), world.rank());
    let data = SharedArray::<u64>::alloc(&world, 64)?;
    let flags = SharedArray::<u64>::alloc(&world, 2)?;
    let path = Path::of_this_run();
    for round in 1..=path.many(3000) {
        world.put_from(data.on(next), &[round; 64])?;
        world.atomic_store(flags.ptr(next, 0), round)?;
        while world.atomic_load(flags.ptr(before, 0))? < round {
            path.look_again(&world);
        }
        let mut here = [0; 64];
        data.read_into(&world, 0, &mut here);
        assert_eq!(here, [round; 64]);
        // Acknowledge to the writer that its data were read.
        world.atomic_store(flags.ptr(world.rank_offset(-1), 1), round)?;
        while world.atomic_load(flags.ptr(before, 1))? < round {
            path.look_again(&world);
        }
    }
    Ok(world.finalize()?)
}
