//! Negotiated payloads: prepare, then commit or cancel.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use argonet::engine::Injection;
use argonet::raw::{PrepareRequest, PreparedPayload};
use argonet::{AmError, Error, JobRank, MAX_MEDIUM, Rank, SharedArray, Threading, World};

use crate::ordering::Logs;
use crate::support::{Done, Job, Pattern, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("negotiated_commit_shrink_and_cancel", || {
        each(&SIZES, "negotiate");
    }),
    ("negotiated_cancels_until_the_ring_is_full", || {
        each(&[1, 2, 3], "cancels");
    }),
    ("negotiated_refusals", || each(&[1, 3], "negotiate-refused")),
    ("negotiated_left_open_is_an_error_at_the_end", || {
        let outcome = Job::launched(2, "negotiate-left-open").run();
        outcome.failed(&["is not allowed between prepare and commit"]);
    }),
    (
        "negotiated_left_open_ends_the_job_even_if_the_error_is_dropped",
        || {
            let outcome = Job::launched(2, "negotiate-left-open-unheard").run();
            outcome.failed(&["rank 0", "is not allowed between prepare and commit"]);
        },
    ),
    ("negotiated_in_a_condition_ends_the_wait", || {
        each(&[1, 3], "negotiate-in-condition");
        each(&[2], "negotiate-in-condition-par");
    }),
    ("negotiated_broken_commits_are_canceled", || {
        for ranks in [1, 2] {
            // The panics are on standard error.
            Job::launched(ranks, "negotiate-broken").run().ended_well();
        }
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("negotiate", negotiate),
    ("cancels", cancels),
    ("negotiate-refused", refused),
    ("negotiate-left-open", left_open),
    ("negotiate-left-open-unheard", left_open_unheard),
    ("negotiate-in-condition", || {
        in_condition(argonet::Builder::build)
    }),
    ("negotiate-in-condition-par", || {
        in_condition(argonet::Builder::build_par)
    }),
    ("negotiate-broken", broken),
];

fn medium(to: Rank, nargs: usize, least: usize, most: usize) -> PrepareRequest {
    PrepareRequest {
        to: JobRank(to.0),
        class: argonet::raw::MessageClass::Request,
        nargs,
        least,
        most,
        offset: None,
    }
}

fn logged(pattern: &Arc<Pattern>, logs: &Logs, builder: &mut argonet::Builder) {
    let (pattern, logs) = (Arc::clone(pattern), logs.clone());
    let _ = builder.am("logged", move |ctx, [number, len]: [u32; 2]| {
        let got = ctx.payload().to_vec::<u8>();
        assert!(
            got == pattern.piece(number.into(), len as usize),
            "{number} of {len}"
        );
        logs.push(ctx.source(), number.into());
    });
}

fn negotiate() -> Done {
    let (pattern, logs) = (Arc::new(Pattern::new()), Logs::new());
    let mut builder = World::builder();
    logged(&pattern, &logs, &mut builder);
    let world = builder.build()?;
    let handler = world.raw().handler("logged").expect("registered");
    let mut random = Random::new(99 + u64::from(world.rank().0));
    let each = 1000;
    let room = SharedArray::<u8>::alloc(&world, each as usize * 64 * world.size() as usize)?;
    let count = 20_000 / u64::from(world.size());
    for to in world.ranks() {
        let mut number = 0u32;
        while u64::from(number) < count {
            let most = match random.below(50) {
                0 => MAX_MEDIUM,
                _ => random.below(300),
            };
            let least = random.below(most + 1);
            let mut want = medium(to, 2, least, most);
            if random.below(4) == 0 && number < each {
                let at = (world.rank().0 * each + number) as usize * 64;
                want.least = least.min(64);
                want.most = most.min(64);
                want.offset = Some(room.ptr(to, at).offset());
            }
            let mut prepared = world.raw().prepare(&want, Injection::Blocking)?;
            let capacity = prepared.capacity();
            assert!(want.least <= capacity && capacity <= want.most);
            let len = random.below(capacity + 1);
            let payload = pattern.piece(number.into(), len);
            prepared.buffer().copy_from(0, payload)?;
            if random.below(3) == 0 {
                world.raw().cancel(prepared);
                continue;
            }
            let args = [number, len as u32];
            // SAFETY: prepared just now, by this thread.
            unsafe { world.raw().commit(prepared, handler, &args, len)? };
            number += 1;
        }
    }
    world.drain()?;
    logs.check(&world, count);
    Ok(world.finalize()?)
}

/// No rank takes the canceled records: after some there is no room, until they are taken.
fn cancels() -> Done {
    let (pattern, logs) = (Arc::new(Pattern::new()), Logs::new());
    let mut builder = World::builder();
    logged(&pattern, &logs, &mut builder);
    let world = builder.build()?;
    let handler = world.raw().handler("logged").expect("registered");
    for to in world.ranks() {
        let mut open = 0;
        loop {
            let want = medium(to, 16, 1, 1 + open % 5000);
            match world.raw().prepare(&want, Injection::Immediate) {
                Ok(prepared) => world.raw().cancel(prepared),
                Err(Error::Am(AmError::Full { .. })) => break,
                Err(other) => return Err(other.into()),
            }
            open += 1;
        }
        assert!(open > 10, "a ring holds some");
        world.barrier()?;
    }
    // All is usable afterwards.
    for number in 0..3000u32 {
        for to in world.ranks() {
            let canceled = world
                .raw()
                .prepare(&medium(to, 1, 0, 900), Injection::Blocking)?;
            world.raw().cancel(canceled);
            let mut prepared = world
                .raw()
                .prepare(&medium(to, 2, 0, 70), Injection::Blocking)?;
            let len = (number % 71) as usize % (prepared.capacity() + 1);
            prepared
                .buffer()
                .copy_from(0, pattern.piece(number.into(), len))?;
            // SAFETY: prepared just now, by this thread.
            unsafe {
                world
                    .raw()
                    .commit(prepared, handler, &[number, len as u32], len)?;
            }
        }
    }
    world.drain()?;
    logs.check(&world, 3000);
    Ok(world.finalize()?)
}

fn refused() -> Done {
    let (pattern, logs) = (Arc::new(Pattern::new()), Logs::new());
    let mut builder = World::builder();
    logged(&pattern, &logs, &mut builder);
    let world = builder.build()?;
    let me = world.rank();
    let says = |error: Error, part: &str| {
        let text = error.to_string();
        assert!(text.contains(part), "no \"{part}\" in \"{text}\"");
    };
    let refuse = |want: PrepareRequest, part: &str| {
        says(
            world.raw().prepare(&want, Injection::Blocking).unwrap_err(),
            part,
        );
    };
    refuse(
        medium(Rank(world.size()), 1, 0, 1),
        &format!("rank {} does not exist", world.size()),
    );
    refuse(medium(me, 17, 0, 1), "17 arguments, at most 16");
    let most = format!("{} arguments, at most 16", usize::MAX);
    refuse(medium(me, usize::MAX, 0, 1), &most);
    refuse(
        medium(me, 0, MAX_MEDIUM + 1, MAX_MEDIUM + 1),
        "medium payload of 65537 bytes",
    );
    let mut outside = medium(me, 0, 1, 2);
    outside.offset = Some(argonet::SegmentOffset(u64::MAX));
    refuse(outside, "do not lie in the segment");

    // Between prepare and commit nothing else is allowed, and all works after it.
    let v = SharedArray::<u64>::alloc(&world, 1)?;
    let open = world
        .raw()
        .prepare(&medium(me, 2, 8, 8), Injection::Blocking)?;
    let meanwhile = "is not allowed between prepare and commit";
    says(world.put_value(v.ptr(me, 0), 1).unwrap_err(), meanwhile);
    says(world.poll().unwrap_err(), meanwhile);
    says(world.barrier().unwrap_err(), meanwhile);
    refuse(medium(me, 2, 8, 8), meanwhile);
    // SAFETY: prepared above, by this thread.
    let error = unsafe {
        let unused = argonet::HandlerIndex(argonet::CLIENT_BASE.0);
        world.raw().commit(open, unused, &[0, 0], 0).unwrap_err()
    };
    says(error, "handler index 128 is not registered");
    world.put_value(v.ptr(me, 0), 1)?;

    // A dropped preparation is canceled, and the thread may go on.
    drop(
        world
            .raw()
            .prepare(&medium(me, 2, 20, 20), Injection::Blocking)?,
    );
    world.put_value(v.ptr(me, 0), 2)?;

    // A least above the most is the least.
    let odd = world
        .raw()
        .prepare(&medium(me, 2, 20, 10), Injection::Blocking)?;
    assert!(odd.capacity() >= 20, "{}", odd.capacity());
    world.raw().cancel(odd);
    world.drain()?;
    logs.check(&world, 0);
    Ok(world.finalize()?)
}

fn left_open() -> Done {
    let world = World::init()?;
    let to = world.rank_offset(1);
    let open = world
        .raw()
        .prepare(&medium(to, 0, 1, 8), Injection::Blocking)?;
    // A forgotten preparation stays open.
    std::mem::forget(open);
    Ok(world.finalize()?)
}

/// Rank 0 does not look at the error.
///
/// The others wait for it.
fn left_open_unheard() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(0) {
        let to = world.rank_offset(1);
        let open = world
            .raw()
            .prepare(&medium(to, 0, 1, 8), Injection::Blocking)?;
        std::mem::forget(open);
        let _ = world.finalize();
        // It goes on with something that takes forever.
        loop {
            std::thread::park();
        }
    }
    Ok(world.finalize()?)
}

/// A commit with another number of arguments, or more bytes, than were prepared panics; the
/// preparation is given back.
fn broken() -> Done {
    let (pattern, logs) = (Arc::new(Pattern::new()), Logs::new());
    let mut builder = World::builder();
    logged(&pattern, &logs, &mut builder);
    let world = builder.build()?;
    let handler = world.raw().handler("logged").expect("registered");
    for to in world.ranks() {
        for (args, len) in [(&[0; 3][..], 0), (&[0; 1], 0), (&[0; 2], 100_000)] {
            let open = world
                .raw()
                .prepare(&medium(to, 2, 8, 8), Injection::Blocking)?;
            let commit = std::panic::AssertUnwindSafe(|| {
                // SAFETY: prepared just now, by this thread.
                unsafe { world.raw().commit(open, handler, args, len) }
            });
            assert!(std::panic::catch_unwind(commit).is_err());
            world.poll()?;
        }
        let mut prepared = world
            .raw()
            .prepare(&medium(to, 2, 8, 8), Injection::Blocking)?;
        prepared.buffer().copy_from(0, pattern.piece(0, 8))?;
        // SAFETY: prepared just now, by this thread.
        unsafe { world.raw().commit(prepared, handler, &[0, 8], 8)? };
    }
    world.drain()?;
    logs.check(&world, 1);
    Ok(world.finalize()?)
}

/// A condition prepares.
///
/// Polls between prepare and commit would run handlers, which could give the room back and then
/// communicate, so the wait ends before the next poll.
fn in_condition<M: Threading>(build: fn(argonet::Builder) -> argonet::Result<World<M>>) -> Done {
    let (pattern, logs) = (Arc::new(Pattern::new()), Logs::new());
    let mut builder = World::builder();
    logged(&pattern, &logs, &mut builder);
    let world = build(builder)?;
    let handler = world.raw().handler("logged").expect("registered");
    let me = world.rank();
    let send = |prepared: PreparedPayload<'_>, number: u32| -> Done {
        let mut prepared = prepared;
        prepared
            .buffer()
            .copy_from(0, pattern.piece(number.into(), 8))?;
        // SAFETY: prepared by this thread.
        unsafe { world.raw().commit(prepared, handler, &[number, 8], 8)? };
        Ok(())
    };
    let want = medium(me, 2, 8, 8);
    for (number, timeout) in [(0, None), (2, Some(Duration::from_secs(100)))] {
        send(world.raw().prepare(&want, Injection::Blocking)?, number)?;
        let mut prepared = None;
        let condition = || {
            assert!(prepared.is_none(), "the wait went on");
            prepared = Some(
                world
                    .raw()
                    .prepare(&want, Injection::Blocking)
                    .expect("room"),
            );
            false
        };
        let waited = match timeout {
            None => world.wait_until(condition),
            Some(timeout) => world.wait_timeout(timeout, condition).map(drop),
        };
        assert!(matches!(waited, Err(Error::Am(AmError::Preparing { .. }))));
        assert_eq!(logs.len_of(me), number as usize, "no handler has run");
        send(prepared.expect("prepared"), number + 1)?;
        world.drain()?;
        assert_eq!(logs.len_of(me), number as usize + 2);
    }
    Ok(world.finalize()?)
}
