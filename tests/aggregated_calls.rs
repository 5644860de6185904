//! One-way calls that are held back, and sent many at a time.

mod picky;

use picky::Picky;
use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use argonet::{
    AmError, DistObject, Error, MAX_MEDIUM, Par, Rank, Reduction, Result, RpcError, World,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

static SUM: AtomicU64 = AtomicU64::new(0);
static NOTED: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// A text that is encoded piece by piece, and counts its encodings.
struct Shown(String);

static ENCODED: AtomicU64 = AtomicU64::new(0);

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        ENCODED.fetch_add(1, Ordering::Relaxed);
        to.collect_str(&format_args!("{}{}", &self.0, &self.0))
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(from).map(Self)
    }
}

type Numbers = RefCell<Vec<(u32, u64)>>;

argonet::rpc! {
    fn add(value: u64) { SUM.fetch_add(value, Ordering::Relaxed); }

    fn take(text: String) { BYTES.fetch_add(text.len() as u64, Ordering::Relaxed); }

    fn pick(number: Picky) { SUM.fetch_add(number.0.into(), Ordering::Relaxed); }

    fn push(numbers: &Numbers, from: u32, number: u64) {
        numbers.borrow_mut().push((from, number));
    }

    fn push_locked(numbers: &Mutex<Vec<u64>>, number: u64) { numbers.lock().unwrap().push(number); }

    fn take_shown(text: Shown) { BYTES.fetch_add(text.0.len() as u64, Ordering::Relaxed); }

    /// What the calls of this message have added when it runs.
    fn note_sum(ctx) {
        assert!(ctx.rank() != ctx.caller() || ctx.size() == 1);
        NOTED.store(SUM.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Calls others, and returns to the rank that called.
    fn bounce(ctx, left: u64) {
        let mut calls = ctx.rpc_aggregator();
        for _ in 0..3 {
            calls.rpc_one_way(ctx.caller(), &add, (1,)).unwrap();
        }
        if left > 0 {
            calls.rpc_one_way(ctx.rank_offset(1), &bounce, (left - 1,)).unwrap();
        }
        calls.send().unwrap();
    }
}

/// The sum over all ranks.
fn sum(world: &World, value: u64) -> Result<u64> {
    world.collectives().reduce_all_value(Reduction::Sum, value)
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn each_call_runs_once(world: &mut World) -> Result<()> {
    const COUNT: u64 = 10_000;
    let me = world.rank().0;
    let size = u64::from(world.size());
    let numbers = DistObject::new(world, Numbers::default())?;
    let odd = DistObject::new(world, Numbers::default())?;
    let mut calls = world.rpc_aggregator();
    for number in 0..COUNT {
        // Small and large ones, so a call is longer than the one before.
        let number = number << (number % 50);
        let to = Rank((number % size) as u32);
        let object = if number % 2 == 1 { &odd } else { &numbers };
        calls.rpc_on_one_way(object, to, &push, (me, number))?;
        calls.rpc_one_way(to, &add, (1,))?;
    }
    calls.send()?;
    world.drain()?;
    let mut expected: Vec<(u32, u64)> = (0..world.size())
        .flat_map(|from| (0..COUNT).map(move |number| (from, number << (number % 50))))
        .filter(|(_, number)| number % size == u64::from(me))
        .collect();
    expected.sort_unstable();
    assert!(numbers.borrow().iter().all(|(_, number)| number % 2 == 0));
    let mut got = [&numbers.borrow()[..], &odd.borrow()[..]].concat();
    got.sort_unstable();
    assert!(got == expected, "{} of {}", got.len(), expected.len());
    assert_eq!(sum(world, SUM.load(Ordering::Relaxed))?, COUNT * size);
    Ok(())
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn calls_are_held_until_they_are_sent(world: &mut World) -> Result<()> {
    let to = world.rank_offset(1);
    let mut calls = world.rpc_aggregator();
    calls.rpc_one_way(to, &add, (1,))?;
    world.drain()?;
    assert_eq!(SUM.load(Ordering::Relaxed), 0);
    world.barrier()?;
    calls.send()?;
    world.drain()?;
    assert_eq!(SUM.load(Ordering::Relaxed), 1);
    world.barrier()?;
    // A drop sends.
    calls.rpc_one_way(to, &add, (10,))?;
    drop(calls);
    world.drain()?;
    assert_eq!(SUM.load(Ordering::Relaxed), 11);
    world.barrier()?;
    // So does a call when others are old, also those from before.
    let mut calls = world.rpc_aggregator();
    calls.rpc_one_way(to, &add, (100,))?;
    let mut calls = calls.max_age(Duration::ZERO);
    for _ in 0..63 {
        calls.rpc_one_way(to, &add, (100,))?;
    }
    world.drain()?;
    assert!(SUM.load(Ordering::Relaxed) > 11);
    calls.send()?;
    world.drain()?;
    assert_eq!(SUM.load(Ordering::Relaxed), 6_411);
    Ok(())
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn calls_longer_than_a_message_go_by_themselves(world: &mut World) -> Result<()> {
    let to = world.rank_offset(1);
    let lengths = [0, 8_000, 8_190, 8_191, 8_192, 8_193, 1, MAX_MEDIUM + 1, 3];
    let mut calls = world.rpc_aggregator();
    for length in lengths {
        calls.rpc_one_way(to, &take, ("x".repeat(length),))?;
    }
    calls.send()?;
    world.drain()?;
    let all: usize = lengths.iter().sum();
    assert_eq!(BYTES.load(Ordering::Relaxed), all as u64);
    Ok(())
}

#[argonet::test(ranks = 2)]
fn arguments_are_encoded_once(world: &mut World) -> Result<()> {
    let to = world.rank_offset(1);
    let lengths = (0..2_000).map(|number| number % 301).chain([5_000, 1]);
    let mut calls = world.rpc_aggregator();
    for length in lengths.clone() {
        calls.rpc_one_way(to, &take_shown, (Shown("x".repeat(length)),))?;
    }
    calls.send()?;
    world.drain()?;
    assert_eq!(ENCODED.load(Ordering::Relaxed), 2_002);
    let all: usize = lengths.sum();
    assert_eq!(BYTES.load(Ordering::Relaxed), 2 * all as u64);
    Ok(())
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn functions_with_a_context_run_behind_their_message(world: &mut World) -> Result<()> {
    let mut calls = world.rpc_aggregator();
    let to = world.rank_offset(1);
    calls.rpc_one_way(to, &note_sum, ())?;
    for _ in 0..5 {
        calls.rpc_one_way(to, &add, (1,))?;
    }
    calls.send()?;
    world.drain()?;
    assert_eq!(NOTED.load(Ordering::Relaxed), 5);
    SUM.store(0, Ordering::Relaxed);
    world.barrier()?;
    for to in world.ranks() {
        calls.rpc_one_way(to, &bounce, (4,))?;
    }
    calls.send()?;
    world.drain()?;
    let ranks = u64::from(world.size());
    assert_eq!(
        sum(world, SUM.load(Ordering::Relaxed))?,
        ranks * ranks * 5 * 3
    );
    Ok(())
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn each_thread_has_its_own(world: &mut World<Par>) -> Result<()> {
    const COUNT: u64 = 3_000;
    let world = &*world;
    let numbers = &DistObject::new(world, Mutex::new(Vec::new()))?;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let mut calls = world.rpc_aggregator();
                for number in (0..COUNT).map(|number| 3 * number + thread) {
                    let to = world.rank_offset(number as i64 / 3);
                    let call = calls.rpc_on_one_way(numbers, to, &push_locked, (number,));
                    call.unwrap();
                }
                calls.send().unwrap();
            });
        }
    });
    world.drain()?;
    let got = numbers.lock().unwrap().len() as u64;
    let all = world.collectives().reduce_all_value(Reduction::Sum, got)?;
    assert_eq!(all, 3 * COUNT * u64::from(world.size()));
    Ok(())
}

#[argonet::test(ranks = [1, 2])]
fn bad_calls_fail_and_others_are_kept(world: &mut World) -> Result<()> {
    let mut calls = world.rpc_aggregator();
    calls.rpc_one_way(world.rank(), &add, (1,))?;
    let beyond = calls.rpc_one_way(Rank(world.size()), &add, (1,));
    let Err(Error::Am(AmError::NoSuchRank { .. })) = beyond else {
        panic!("{beyond:?}");
    };
    let bad = calls.rpc_one_way(world.rank(), &pick, (Picky(0),));
    let Err(Error::Rpc(RpcError::Encode { cause, .. })) = bad else {
        panic!("{bad:?}");
    };
    assert!(!cause.is_empty());
    calls.rpc_one_way(world.rank(), &add, (2,))?;
    calls.send()?;
    world.drain()?;
    assert_eq!(SUM.load(Ordering::Relaxed), 3);
    Ok(())
}

#[argonet::test(ranks = 2)]
#[should_panic = "a one-way call of `aggregated_calls::pick` from rank 0 cannot run"]
fn calls_that_do_not_decode_end_the_job(world: &mut World) -> Result<()> {
    if world.rank() == Rank(0) {
        let mut calls = world.rpc_aggregator();
        calls.rpc_one_way(Rank(1), &pick, (Picky(1),))?;
        calls.send()?;
    }
    world.drain()
}
