//! Everything at once and at random, byte by byte against a model, while connections are cut at
//! random.
#![allow(unsafe_code)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use argonet::engine::Injection;
use argonet::{CLIENT_BASE, HandlerIndex, Rank, Reduction, SharedArray, World};

use super::over;
use super::storm::{goes_on, rounds, until_input_ends};
use crate::network::Network;
use crate::support::{Done, Pattern, Random};

argonet::rpc! {
    fn stress_sum(words: Vec<u64>) -> u64 { words.iter().sum() }
}

/// Bytes of a rank in the array of each.
const STRIPE: usize = 60_000;

/// Counters of each rank.
const COUNTERS: usize = 5;

/// Operations of a rank in a round.
const STEPS: usize = 120;

/// Longs of a round have a place each: one may land before the one before it has been handled.
const LONGEST: usize = 8_000;

/// A request whose payload, if it has one, is the piece of that key.
const REQUEST: HandlerIndex = CLIENT_BASE;
/// Its reply.
const REPLY: HandlerIndex = HandlerIndex(200);

/// Requests that came from each rank, and the sum of their keys.
static TAKEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// Replies, and the sum of their keys.
static ANSWERS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Rounds until rank 0's standard input ends.
pub(super) fn stress() -> Done {
    let pattern = std::sync::Arc::new(Pattern::new());
    TAKEN.lock()?.resize(16, (0, 0));
    let mut builder = World::builder();
    builder.handler_at(REQUEST, "request", {
        let pattern = std::sync::Arc::clone(&pattern);
        move |token| {
            let (from, key) = (token.source().index(), token.args()[0]);
            let payload = token.payload().to_vec::<u8>();
            let wanted = pattern.piece(key.into(), payload.len());
            assert!(payload == wanted, "message {key} of rank {from}");
            let mut taken = TAKEN.lock().expect("a lock");
            taken[from].0 += 1;
            taken[from].1 += u64::from(key);
            // SAFETY: no rank is in a quiet phase.
            unsafe { token.reply(REPLY, &[key], None) }.expect("a good reply");
        }
    });
    builder.handler_at(REPLY, "reply", |token| {
        ANSWERS[0].fetch_add(1, Ordering::Relaxed);
        ANSWERS[1].fetch_add(token.args()[0].into(), Ordering::Relaxed);
    });
    let world = builder.build()?;
    let size = world.size() as usize;
    let me = world.rank().index();
    let ends = until_input_ends(&world);
    let stripes = SharedArray::<u8>::alloc(&world, STRIPE * size)?;
    let landing = SharedArray::<u8>::alloc(&world, LONGEST * STEPS * size)?;
    let counters = SharedArray::<u64>::alloc(&world, COUNTERS)?;
    let mut models = vec![vec![0u8; STRIPE]; size];
    let mut random = Random::new(0x57e55 + me as u64);
    // Operations of this rank on each: requests, the sum of their keys, and the sums added to the
    // counters.
    let mut work = vec![[0u64; 2 + COUNTERS]; size];
    world.barrier()?;
    for round in 0u64.. {
        let begun = Instant::now();
        if !goes_on(&world, &ends)? {
            break;
        }
        for step in 0..STEPS {
            let target = random.below(size);
            let rank = Rank(target as u32);
            let at = random.below(STRIPE);
            let longest = [100, STRIPE][usize::from(random.below(8) == 0)];
            let len = random.below(longest.min(STRIPE - at)).min(Pattern::LONGEST);
            let key = random.next() as u32;
            let place = stripes
                .on(rank)
                .part(me * STRIPE + at..me * STRIPE + at + len);
            let model = &mut models[target][at..at + len];
            match random.below(6) {
                0 => {
                    let mut source = pattern.piece(key.into(), len).to_vec();
                    model.copy_from_slice(&source);
                    world.put_from(place, &source)?;
                    // It is this program's again.
                    source.fill(0xee);
                }
                1 => {
                    let got = world.get(place)?.wait()?;
                    assert!(*got == *model, "round {round}: a get of {len} from {rank}");
                }
                2 => {
                    let (which, more) = (random.below(COUNTERS), u64::from(key));
                    world.fetch_add(counters.ptr(rank, which), more)?;
                    work[target][2 + which] += more;
                }
                3 => {
                    let words: Vec<u64> = (0..len as u64 / 8).collect();
                    let sum = words.iter().sum::<u64>();
                    assert_eq!(world.rpc(rank, &stress_sum, (words,))?.wait()?, sum);
                }
                kind => {
                    let to = landing.ptr(rank, (me * STEPS + step) * LONGEST).offset();
                    let bytes = pattern.piece(key.into(), len.min(LONGEST));
                    let payload = match (kind, random.below(2)) {
                        (4, 0) => None,
                        (4, _) => Some((bytes, None)),
                        _ => Some((bytes, Some(to))),
                    };
                    // SAFETY: no rank is in a quiet phase.
                    unsafe {
                        (world.raw()).request(
                            rank,
                            REQUEST,
                            &[key],
                            payload,
                            Injection::Blocking,
                        )?
                    };
                    work[target][0] += 1;
                    work[target][1] += u64::from(key);
                }
            }
        }
        world.drain()?;
        // Operations of each rank on each: by origin, then by target.
        let mut all = vec![0u64; size * size * (2 + COUNTERS)];
        let own = work.concat();
        all[me * own.len()..][..own.len()].copy_from_slice(&own);
        world.reduce_all(Reduction::Sum, &mut all)?;
        let by =
            |from: usize, to: usize| &all[(from * size + to) * (2 + COUNTERS)..][..2 + COUNTERS];
        for from in 0..size {
            let done = by(from, me);
            assert_eq!(
                TAKEN.lock()?[from],
                (done[0], done[1]),
                "round {round}: from {from}"
            );
        }
        for which in 0..COUNTERS {
            let sum = (0..size).map(|from| by(from, me)[2 + which]).sum::<u64>();
            assert_eq!(counters.read(&world, which), sum, "round {round}: {which}");
        }
        let [asked, keys] = [0, 1].map(|i| work.iter().map(|to| to[i]).sum::<u64>());
        let answers = [0, 1].map(|i| ANSWERS[i].load(Ordering::Relaxed));
        assert_eq!(answers, [asked, keys], "round {round}: answers");
        for (target, model) in models.iter().enumerate() {
            let place = stripes
                .on(Rank(target as u32))
                .part(me * STRIPE..(me + 1) * STRIPE);
            let got = world.get(place)?.wait()?;
            assert!(
                *got == **model,
                "round {round}: the stripe at rank {target}"
            );
        }
        world.barrier()?;
        if me == 0 {
            eprintln!("round {round} took {} us", begun.elapsed().as_micros());
        }
    }
    Ok(world.finalize()?)
}

pub(super) fn cut_at_random() {
    let network = Network::new(&["a", "b", "c"]);
    let job = over(&network, 4, "a:2,b,c", "stress").env("GASNET_SUPERNODE_MAXSIZE", "1");
    let mut random = Random::new(11);
    let outcome = job.run_with(|talk| {
        rounds(talk, 2);
        for _ in 0..5 {
            let host = ["a", "b", "c"][random.below(3)];
            network.cut(host);
            network.wait_until_struck(host, 1 + random.below(6) as u64);
            network.heal(host);
            rounds(talk, 1 + random.below(2));
        }
    });
    outcome.ended_well();
}
