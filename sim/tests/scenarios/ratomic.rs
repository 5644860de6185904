//! Remote atomic operations over a wire that loses, repeats, delays and damages frames: each is
//! done once, whichever rank asks for it.
#![allow(unsafe_code)]

use crate::harness;

use argonet_am::HandlerTable;
use argonet_base::{JobRank, SegmentOffset};
use argonet_boot::{Key, WaitFor, Waiting};
use argonet_engine::{Atomic, AtomicWord, BarrierKind, BoundPlace, Injection, Operation, Target};
use argonet_event::{CategoryMask, Event};
use argonet_sim::{JobConfig, Outcome, Rank, StartError};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const ENDPOINT: u32 = 3;
const RANKS: u32 = 3;
/// Rounds of each rank; in each one operation of each kind on every rank.
const ROUNDS: u64 = 40;

/// Values before a fetch-and-add, by the word's owner and whether the word is in the segment.
type Befores = Arc<Mutex<HashMap<(u32, bool), Vec<u64>>>>;

fn what<T: AtomicWord>(operation: Operation, operand1: T, operand2: T) -> Atomic<T> {
    Atomic {
        operation,
        operand1,
        operand2,
    }
}

/// Words of a rank: in its segment, and in memory that it has bound.
fn word(rank: u32, bound: u64, attached: bool, at: u64) -> Target {
    let rank = JobRank(rank);
    match attached {
        true => Target::Segment {
            rank,
            offset: SegmentOffset(8 * at),
        },
        false => Target::Bound(BoundPlace {
            rank,
            endpoint: ENDPOINT,
            address: bound + 8 * at,
        }),
    }
}

/// Every rank changes the words of every rank, itself included, in all ways at once.
fn program(rank: &Rank, befores: &Befores) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let (me, size) = (engine.rank().0, engine.size());
    let memory: &'static mut [u64] = vec![0; 8].leak();
    let base = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: the memory is there to the end of the process, and accessed by atomic operations
    // alone.
    unsafe { engine.regions().bind(ENDPOINT, base, 64) }.unwrap();
    let boot = engine.boot();
    let address = base.expose_provenance() as u64;
    boot.publish(Key::User, &address.to_ne_bytes()).unwrap();
    boot.fence().unwrap();
    let bound: Vec<u64> = (0..size)
        .map(|rank| boot.lookup(JobRank(rank), Key::User).unwrap())
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
        .collect();
    let wait = Injection::Blocking;
    for round in 0..ROUNDS {
        let mut results = vec![0u64; 2 * size as usize];
        let mut events: Vec<Event> = Vec::new();
        for (i, result) in results.iter_mut().enumerate() {
            let (to, attached) = (i as u32 / 2, i % 2 == 0);
            let at = |at| word(to, bound[to as usize], attached, at);
            // SAFETY: results are there until the events are complete.
            unsafe {
                let add = what(Operation::FetchAdd, 1u64, 0);
                events.push(engine.atomic_start(ctx, at(0), add, result, wait).unwrap());
                let none = core::ptr::null_mut();
                let half = what(Operation::Add, 0.5f64, 0.0);
                engine
                    .atomic_start_implicit(ctx, at(1), half, none, wait)
                    .unwrap();
                let bit = what(Operation::Xor, 1u32 << (round % 32), 0);
                engine
                    .atomic_start_implicit(ctx, at(2), bit, core::ptr::null_mut(), wait)
                    .unwrap();
                let least = what(Operation::Max, i64::from(me) * 1000 + round as i64, 0);
                engine
                    .atomic_start_implicit(ctx, at(3), least, core::ptr::null_mut(), wait)
                    .unwrap();
            }
            // Those that wait, between the others: a lock that is not taken twice.
            let lock = at(4);
            let taken = what(Operation::FetchCas, 0u32, me + 1);
            let take = || engine.atomic(ctx, lock, taken).unwrap() == 0;
            if to == me {
                // One's own word is looked at without a message: others must be heard meanwhile.
                let what = Waiting::new(WaitFor::Condition);
                engine.wait_until(ctx, what, take).unwrap();
            } else {
                while !take() {}
            }
            let inside = engine
                .atomic(ctx, at(5), what(Operation::FetchInc, 0i32, 0))
                .unwrap();
            assert_eq!(inside, 0, "another is inside");
            engine
                .atomic(ctx, at(5), what(Operation::Dec, 0i32, 0))
                .unwrap();
            let before = engine
                .atomic(ctx, lock, what(Operation::Swap, 0u32, 0))
                .unwrap();
            assert_eq!(before, me + 1);
        }
        engine.wait_all(ctx, &mut events).unwrap();
        engine.wait_implicit(ctx, CategoryMask::ALL).unwrap();
        let mut befores = befores.lock();
        for (i, before) in results.into_iter().enumerate() {
            befores
                .entry((i as u32 / 2, i % 2 == 0))
                .or_default()
                .push(before);
        }
    }
    engine.barrier(ctx, BarrierKind::Client).unwrap();
    for attached in [false, true] {
        let at = |at| word(me, address, attached, at);
        let get = |at| {
            engine
                .atomic(ctx, at, what(Operation::Get, 0u64, 0))
                .unwrap()
        };
        let all = ROUNDS * u64::from(size);
        assert_eq!(get(at(0)), all);
        assert_eq!(f64::from_bits(get(at(1))), all as f64 / 2.0);
        // Bits below 8 were changed twice by each of three ranks, the others once.
        assert_eq!(get(at(2)), 0xffff_ff00);
        assert_eq!(get(at(3)), u64::from(size - 1) * 1000 + ROUNDS - 1);
        let mut befores = befores.lock().remove(&(me, attached)).unwrap();
        befores.sort_unstable();
        assert!(
            befores.into_iter().eq(0..all),
            "each value before is one rank's"
        );
    }
}

fn job(config: &JobConfig) -> Result<Outcome, StartError> {
    let befores = Befores::default();
    let register = move |_: JobRank, _: &mut HandlerTable| Ok(Arc::clone(&befores));
    let run = |rank: &Rank, befores: Befores| program(rank, &befores);
    argonet_sim::run(config, None, register, run)
}

#[test]
fn nothing_goes_wrong() {
    harness::nothing_goes_wrong(RANKS, &job);
}

#[test]
fn all_faults_at_once() {
    harness::all_faults_at_once(RANKS, &job);
}
