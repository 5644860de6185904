//! A world that many threads of a rank use at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argonet::{Par, Rank, SharedArray, World};

use crate::ordering::Logs;
use crate::support::{Done, Path, Program, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("threads_send_call_put_and_allocate", || {
        each(&[1, 2, 3], "threads-2");
        each(&[1, 2, 3], "threads-4");
    }),
    ("threads_end_and_start_again", || {
        each(&[1, 3], "threads-short-lived");
    }),
    ("threads_order_of_each_threads_messages", || {
        each(&[1, 2, 3], "threads-order");
    }),
    ("threads_results_come_from_other_threads_polls", || {
        each(&[2], "threads-calls");
    }),
    ("threads_begin_with_a_scope", || {
        each(&[1, 2], "threads-scope-first");
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("threads-2", || everything(2)),
    ("threads-4", || everything(4)),
    ("threads-short-lived", short_lived),
    ("threads-order", order),
    ("threads-calls", calls),
    ("threads-scope-first", scope_first),
];

argonet::rpc! {
    fn twice(x: u64) -> u64 { 2 * x }
}

/// Runs `work` in that many threads at once and waits for them.
fn in_threads(threads: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|s| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|i| s.spawn(move || work(i))).collect();
        // ThreadSanitizer sees a join, but not the end of a scope.
        for thread in threads {
            thread.join().expect("a thread");
        }
    });
}

fn everything(threads: usize) -> Done {
    let (handled, replied) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut builder = World::builder();
    let back = builder.am("back", {
        let replied = Arc::clone(&replied);
        move |ctx, n: u64| {
            assert_eq!(ctx.payload().len() as u64, n % 700);
            replied.fetch_add(1, Ordering::Relaxed);
        }
    });
    let there = builder.am("there", {
        let handled = Arc::clone(&handled);
        move |ctx, n: u64| {
            assert_eq!(ctx.payload().len() as u64, n % 500);
            handled.fetch_add(n, Ordering::Relaxed);
            let payload = vec![1; (n % 700) as usize];
            ctx.reply_medium(&back, n, &payload).expect("a reply");
        }
    });
    let world = builder.build_par()?;
    let counter = SharedArray::<u64>::alloc(&world, 1)?;
    let slots = SharedArray::<u64>::alloc(&world, threads * world.size() as usize)?;
    let most = Path::of_this_run().many(8_000);
    let count = (most / (threads as u64 * u64::from(world.size()))).max(2);
    in_threads(threads, |thread| {
        let work = || -> argonet::Result<()> {
            for n in 0..count {
                for to in world.ranks() {
                    world.send_medium(to, &there, n, &vec![2u8; (n % 500) as usize])?;
                    world.fetch_add(counter.ptr(to, 0), 1)?;
                    let slot = world.rank().index() * threads + thread;
                    world.put_value(slots.ptr(to, slot), n)?;
                    assert_eq!(world.get_value(slots.ptr(to, slot))?, n);
                }
                if n % 10 == 0 {
                    let to = Rank((n % u64::from(world.size())) as u32);
                    assert_eq!(world.rpc(to, &twice, (n,))?.wait()?, 2 * n);
                }
                // One thread makes and gives back arrays meanwhile; segments grow.
                if thread == 0 && n % 100 == 0 {
                    let v = SharedArray::<u8>::alloc(&world, 9 << (n / 100).min(21))?;
                    let end = v.len() - 1;
                    world.put_value(v.ptr(world.rank_offset(1), end), 1)?;
                    world.barrier()?;
                    assert_eq!(v.read(&world, end), 1);
                    v.free(&world)?;
                }
            }
            Ok(())
        };
        work().expect("work");
    });
    world.drain()?;
    let sent = threads as u64 * count * u64::from(world.size());
    assert_eq!(replied.load(Ordering::Relaxed), sent);
    assert_eq!(handled.load(Ordering::Relaxed), sent * (count - 1) / 2);
    assert_eq!(counter.read(&world, 0), sent);
    for slot in 0..slots.len() {
        assert_eq!(slots.read(&world, slot), count - 1);
    }
    Ok(world.finalize()?)
}

fn short_lived() -> Done {
    let handled = Arc::new(AtomicU64::new(0));
    let mut builder = World::builder();
    let there = builder.am("there", {
        let handled = Arc::clone(&handled);
        move |_, n: u64| {
            handled.fetch_add(n, Ordering::Relaxed);
        }
    });
    let world: Arc<World<Par>> = Arc::new(builder.build_par()?);
    let there = Arc::new(there);
    for n in 1..=100 {
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let (world, there) = (Arc::clone(&world), Arc::clone(&there));
                std::thread::spawn(move || {
                    world
                        .send(world.rank_offset(i), &there, n)
                        .expect("a message");
                    world.poll().expect("a poll");
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread");
        }
    }
    world.drain()?;
    assert_eq!(handled.load(Ordering::Relaxed), 3 * 5050);
    // The last thread to let go finalizes.
    let last = std::thread::spawn(move || drop(world));
    last.join().expect("a thread");
    Ok(())
}

/// Messages that one thread sends to one rank stay in order.
fn order() -> Done {
    const THREADS: u64 = 3;
    let logs: Vec<Logs> = (0..THREADS).map(|_| Logs::new()).collect();
    let mut builder = World::builder();
    let record = builder.am("record", {
        let logs = logs.clone();
        move |ctx, [thread, n]: [u64; 2]| logs[thread as usize].push(ctx.source(), n)
    });
    let world = builder.build_par()?;
    let count = 6_000;
    in_threads(THREADS as usize, |thread| {
        for n in 0..count {
            for to in world.ranks() {
                let payload = vec![0u8; (n % 37) as usize];
                let sent = world.send_medium(to, &record, [thread as u64, n], &payload);
                sent.expect("a message");
            }
        }
    });
    world.drain()?;
    for log in &logs {
        log.check(&world, count);
    }
    Ok(world.finalize()?)
}

/// Each thread waits for its own results, which any thread that polls takes.
fn calls() -> Done {
    let world = World::builder().build_par()?;
    in_threads(4, |thread| {
        for n in 0..150 {
            let x = thread as u64 * 1000 + n;
            let op = world
                .rpc(world.rank_offset(1), &twice, (x,))
                .expect("a call");
            assert_eq!(op.wait().expect("a result"), 2 * x);
        }
    });
    Ok(world.finalize()?)
}

/// The first thing that a thread does is an operation of a scope.
fn scope_first() -> Done {
    let world = World::builder().build_par()?;
    let v = SharedArray::<u64>::alloc(&world, 2)?;
    let me = world.rank();
    for to in world.ranks() {
        in_threads(2, |thread| {
            let value = [u64::from(me.0) + 1];
            let mut seen = [7];
            world
                .scope(|s| match thread {
                    0 => s.put(v.on(me).part(..1), &value),
                    _ => s.get(v.on(to).part(1..2), &mut seen),
                })
                .expect("a thread that may call");
            assert!([7, 0].contains(&seen[0]));
        });
    }
    assert_eq!(v.read(&world, 0), u64::from(me.0) + 1);
    world.barrier()?;
    Ok(world.finalize()?)
}
