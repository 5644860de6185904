//! Messages between two ranks are handled once each, in order, however full the rings are.
//!
//! The handlers are not idempotent: each appends to a log of its sender, which is compared entry
//! by entry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use argonet::engine::Injection;
use argonet::{Am, AmError, Builder, Error, MAX_MEDIUM, SharedArray, World};

use crate::support::{Done, Job, Path, Pattern, Program, Random, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("ordering_every_message_once_in_order", || {
        each(&SIZES, "logs");
    }),
    ("ordering_storm_of_longest_requests_and_replies", || {
        each(&SIZES, "storm");
    }),
    ("ordering_flood_into_a_rank_that_computes", || {
        for ranks in [2, 3, 8] {
            Job::launched(ranks, "flood").run().well();
        }
    }),
    ("ordering_rings_wrap_around_with_odd_lengths", || {
        for ranks in [1, 2, 3] {
            Job::launched(ranks, "wrap").run().well();
        }
    }),
    ("ordering_messages_wake_ranks_that_sleep", || {
        Job::launched(2, "sleepers").run().well();
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("logs", logs),
    ("storm", storm),
    ("flood", flood),
    ("wrap", wrap),
    ("sleepers", sleepers),
];

/// Messages that this rank has handled, by sender.
#[derive(Clone)]
pub(crate) struct Logs(Arc<Vec<Mutex<Vec<u64>>>>);

impl Logs {
    pub(crate) fn new() -> Self {
        Self(Arc::new((0..64).map(|_| Mutex::default()).collect()))
    }

    pub(crate) fn push(&self, source: argonet::Rank, entry: u64) {
        self.0[source.index()].lock().expect("log").push(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.0
            .iter()
            .map(|log| log.lock().expect("log").len())
            .sum()
    }

    /// Entries of one rank.
    pub(crate) fn len_of(&self, source: argonet::Rank) -> usize {
        self.0[source.index()].lock().expect("log").len()
    }

    /// Each of `world`'s ranks has sent 0, 1, 2, ...
    ///
    /// `count` entries, and no other rank any.
    pub(crate) fn check<M: argonet::Threading>(&self, world: &World<M>, count: u64) {
        for (rank, log) in self.0.iter().enumerate() {
            let log = log.lock().expect("log");
            let expected = if rank < world.size() as usize {
                count
            } else {
                0
            };
            assert_eq!(log.len() as u64, expected, "messages of rank {rank}");
            for (i, entry) in log.iter().enumerate() {
                assert_eq!(*entry, i as u64, "message {i} of rank {rank}");
            }
        }
    }
}

/// An active message whose handler checks its payload and logs its number.
fn logged(builder: &mut Builder, logs: &Logs, pattern: &Arc<Pattern>) -> Am<[u64; 2]> {
    let (logs, pattern) = (logs.clone(), Arc::clone(pattern));
    builder.am("logged", move |ctx, [number, len]: [u64; 2]| {
        let payload = ctx.payload();
        assert_eq!(payload.len() as u64, len);
        assert!(payload.to_vec::<u8>() == pattern.piece(number, len as usize));
        logs.push(ctx.source(), number);
    })
}

fn logs() -> Done {
    let (logs, pattern) = (Logs::new(), Arc::new(Pattern::new()));
    let mut builder = World::builder();
    let am = logged(&mut builder, &logs, &pattern);
    let world = builder.build()?;
    let count = 40_000 / u64::from(world.size());
    let mut random = Random::new(world.rank().0.into());
    for number in 0..count {
        for to in world.ranks() {
            match random.below(3) {
                0 => world.send(to, &am, [number, 0])?,
                _ => {
                    let len = random.below(200);
                    let payload = pattern.piece(number, len);
                    world.send_medium(to, &am, [number, len as u64], payload)?;
                }
            }
        }
    }
    world.drain()?;
    logs.check(&world, count);
    Ok(world.finalize()?)
}

fn storm() -> Done {
    let (logs, back_logs) = (Logs::new(), Logs::new());
    let pattern = Arc::new(Pattern::new());
    let mut builder = World::builder();
    let back = builder.am("back", {
        let (logs, pattern) = (back_logs.clone(), Arc::clone(&pattern));
        move |ctx, number: u64| {
            assert!(ctx.payload().to_vec::<u8>() == pattern.piece(number + 1, MAX_MEDIUM));
            logs.push(ctx.source(), number);
        }
    });
    let back = Arc::new(back);
    let [there, ask] = ["there", "ask"].map(|name| {
        let (logs, pattern) = (logs.clone(), Arc::clone(&pattern));
        let back = Arc::clone(&back);
        builder.am(name, move |ctx, number: u64| {
            let payload = ctx.payload();
            assert!(
                payload.is_empty() || payload.to_vec::<u8>() == pattern.piece(number, MAX_MEDIUM)
            );
            logs.push(ctx.source(), number);
            let answer = pattern.piece(number + 1, MAX_MEDIUM);
            ctx.reply_medium(&back, number, answer)
                .expect("room for a reply");
        })
    });
    let world = builder.build()?;
    let count = 600 / u64::from(world.size());
    for number in 0..count {
        for to in world.ranks() {
            world.send_medium(to, &there, number, pattern.piece(number, MAX_MEDIUM))?;
        }
    }
    // Many requests in a ring, each of which is answered by as much as a ring takes few of.
    let brief = 2 * count;
    for number in count..count + brief {
        for to in world.ranks() {
            world.send(to, &ask, number)?;
        }
    }
    world.drain()?;
    logs.check(&world, count + brief);
    back_logs.check(&world, count + brief);
    Ok(world.finalize()?)
}

/// All others fill the ring to rank 0, which handles nothing until they have.
#[allow(unsafe_code)]
fn flood() -> Done {
    let (logs, pattern) = (Logs::new(), Arc::new(Pattern::new()));
    let mut builder = World::builder();
    let am = logged(&mut builder, &logs, &pattern);
    let world = builder.build()?;
    let signs = SharedArray::<u64>::alloc(&world, 2)?;
    let computing = argonet::Rank(0);
    let (full, started) = (signs.ptr(computing, 0), signs.ptr(computing, 1));
    let others = u64::from(world.size()) - 1;
    let total = 60_000;
    if world.rank() == computing {
        world.atomic_store(started, 1)?;
        // Reading shared memory handles no message.
        while world.atomic_load(full)? < others {
            std::thread::yield_now();
        }
        assert_eq!(logs.len(), 0);
    } else {
        // In the barrier before, rank 0 still handled messages.
        while world.atomic_load(started)? == 0 {
            std::thread::yield_now();
        }
        let handler = world.raw().handler("logged").expect("registered");
        let mut number = 0u64;
        loop {
            let len = number % 40;
            let words = [number as u32, 0, len as u32, 0];
            let payload = pattern.piece(number, len as usize);
            // SAFETY: no long is sent.
            let sent = unsafe {
                let payload = Some((payload, None));
                world
                    .raw()
                    .request(computing, handler, &words, payload, Injection::Immediate)
            };
            match sent {
                Ok(()) => number += 1,
                Err(Error::Am(AmError::Full { from, to })) => {
                    assert_eq!((from.0, to.0), (world.rank().0, 0));
                    break;
                }
                Err(other) => return Err(other.into()),
            }
        }
        assert!(number < total, "a ring has an end");
        world.fetch_add(full, 1)?;
        for number in number..total {
            let len = number % 40;
            let payload = pattern.piece(number, len as usize);
            world.send_medium(computing, &am, [number, len], payload)?;
        }
    }
    world.drain()?;
    if world.rank() == computing {
        for number in 0..total {
            world.send(computing, &am, [number, 0])?;
        }
    }
    world.drain()?;
    if world.rank() == computing {
        let entries = total * u64::from(world.size());
        assert_eq!(logs.len() as u64, entries);
        // The payloads were checked against the numbers; now their order.
        if world.size() > 1 {
            logs.check(&world, total);
        }
    } else {
        assert_eq!(logs.len(), 0);
    }
    Ok(world.finalize()?)
}

/// Messages of random lengths, so that records end at every place of the ring.
fn wrap() -> Done {
    let (logs, pattern) = (Logs::new(), Arc::new(Pattern::new()));
    let mut builder = World::builder();
    let am = logged(&mut builder, &logs, &pattern);
    let world = builder.build()?;
    let mut random = Random::new(0x7117 + u64::from(world.rank().0));
    let count = 1_500_000 / u64::from(world.size() * world.size());
    for number in 0..count {
        for to in world.ranks() {
            let len = match random.next() % 1000 {
                0 => random.below(MAX_MEDIUM + 1),
                1..40 => random.below(3000),
                40..500 => random.below(100),
                _ => 0,
            };
            if len == 0 {
                world.send(to, &am, [number, 0])?;
            } else {
                let payload = pattern.piece(number, len);
                world.send_medium(to, &am, [number, len as u64], payload)?;
            }
        }
    }
    world.drain()?;
    logs.check(&world, count);
    Ok(world.finalize()?)
}

/// Rank 0 sends only when it sees that rank 1 sleeps.
///
/// A rank that is not woken sleeps for its whole time-out, so often that the watchdog sees it.
fn sleepers() -> Done {
    static AT: AtomicU64 = AtomicU64::new(0);
    let mut builder = World::builder();
    let back = builder.am("back", |_, round: u64| AT.store(round, Ordering::Relaxed));
    let there = builder.am("there", move |ctx, round: u64| {
        AT.store(round, Ordering::Relaxed);
        ctx.reply(&back, round).expect("a reply");
    });
    let world = builder.build()?;
    let pids = SharedArray::<u32>::alloc(&world, 1)?;
    pids.write(&world, 0, std::process::id());
    world.barrier()?;
    let next = world.rank_offset(1);
    let stat = format!("/proc/{}/stat", world.get_value(pids.ptr(next, 0))?);
    for round in 1..=Path::of_this_run().many(4000).min(400) {
        if world.rank().0 == 0 {
            while !std::fs::read_to_string(&stat)?.contains(") S ") {
                std::thread::yield_now();
            }
            world.send(next, &there, round)?;
        }
        world.wait_until(|| AT.load(Ordering::Relaxed) >= round)?;
    }
    world.drain()?;
    Ok(world.finalize()?)
}
