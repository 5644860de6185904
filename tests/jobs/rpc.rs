//! Remote procedure calls: results, errors, many at once, as futures.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use argonet::{GlobalPtr, MAX_MEDIUM, Op, Rank, Result, SharedArray, World, raw};

use crate::support::{Done, Job, Program, SIZES, Test, each};

pub(crate) const TESTS: &[Test] = &[
    ("rpc_arguments_and_results", || each(&SIZES, "rpc-values")),
    ("rpc_arguments_and_results_of_any_length", || {
        each(&[1, 2, 3], "rpc-lengths");
    }),
    ("rpc_thousands_outstanding", || each(&SIZES, "rpc-many")),
    ("rpc_futures_joined_by_hand", || each(&SIZES, "rpc-futures")),
    ("rpc_dropped_and_forgotten", || {
        each(&[1, 2, 3], "rpc-dropped");
    }),
    ("rpc_pointers_travel", || each(&SIZES, "rpc-pointers")),
    ("rpc_panic_ends_the_job", || {
        let outcome = Job::launched(3, "rpc-panic").run();
        outcome.failed(&[
            "out of luck",
            "rank 2",
            "unlucky`, called by rank 0, panicked: out of luck",
        ]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[
    ("rpc-values", values),
    ("rpc-lengths", lengths),
    ("rpc-many", many),
    ("rpc-futures", futures),
    ("rpc-dropped", dropped),
    ("rpc-pointers", pointers),
    ("rpc-panic", panics),
];

type Table = BTreeMap<String, Vec<(u64, Option<f64>)>>;

argonet::rpc! {
    fn nothing() -> () {}
    fn add(a: u64, b: u64) -> u64 { a.wrapping_add(b) }
    fn who() -> (Option<u32>, bool) { (argonet::caller().map(|rank| rank.0), true) }
    fn grow(table: Table, key: String) -> Table {
        let mut table = table;
        table.entry(key).or_default().push((7, Some(0.5)));
        table
    }
    fn fallible(x: i32) -> Result<i32, String> {
        if x < 0 { Err(format!("{x} is negative")) } else { Ok(x * 2) }
    }
    fn reversed(bytes: Vec<u8>) -> Vec<u8> { bytes.into_iter().rev().collect() }
    fn bytes_of(len: usize) -> Vec<u8> { vec![3; len] }
    fn next_of(p: GlobalPtr<u32>) -> GlobalPtr<u32> { raw::offset_by(p, 1) }
    fn unlucky(x: u32) -> u32 { assert!(x != 13, "out of luck"); x }
}

fn values() -> Done {
    let mut builder = World::builder();
    let double = builder.rpc("double", |(x,): (u32,)| x * 2);
    let world = builder.build()?;
    assert_eq!(argonet::caller(), None);
    for to in world.ranks() {
        world.rpc(to, &nothing, ())?.wait()?;
        let sum = world.rpc(to, &add, (u64::MAX, 5))?.wait()?;
        assert_eq!(sum, 4);
        let me = Some(world.rank().0);
        assert_eq!(world.rpc(to, &who, ())?.wait()?, (me, true));
        assert_eq!(world.rpc(to, &double, (21,))?.wait()?, 42);
        let table = Table::from([("a".into(), vec![(1, None)])]);
        let grown = world.rpc(to, &grow, (table, "b".into()))?.wait()?;
        let expected = Table::from([
            ("a".into(), vec![(1, None)]),
            ("b".into(), vec![(7, Some(0.5))]),
        ]);
        assert_eq!(grown, expected);
        assert_eq!(world.rpc(to, &fallible, (4,))?.wait()?, Ok(8));
        let failed = world.rpc(to, &fallible, (-4,))?.wait()?;
        assert_eq!(failed, Err("-4 is negative".into()));
    }
    assert_eq!(argonet::caller(), None);
    assert_eq!((add.function().expect("no context"))((1, 2)), 3);
    Ok(world.finalize()?)
}

fn lengths() -> Done {
    let world = World::init()?;
    let to = world.rank_offset(1);
    // The encoding puts the length before the bytes: three bytes from 16384 on. What is longer than
    // a message goes in parts.
    let short = [0, 1, 127, 128, 4000, MAX_MEDIUM - 4, MAX_MEDIUM - 3];
    let long = [
        MAX_MEDIUM - 2,
        MAX_MEDIUM,
        2 * MAX_MEDIUM - 3,
        2 * MAX_MEDIUM - 2,
        9 * MAX_MEDIUM,
    ];
    for len in short.into_iter().chain(long) {
        let sent: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let got = world.rpc(to, &reversed, (sent.clone(),))?.wait()?;
        assert!(got.iter().rev().eq(&sent));
    }
    assert_eq!(world.rpc(to, &bytes_of, (5,))?.wait()?, [3; 5]);
    Ok(world.finalize()?)
}

fn many() -> Done {
    let world = World::init()?;
    let count = 20_000 / u64::from(world.size());
    let mut ops = Vec::new();
    for i in 0..count {
        for to in world.ranks() {
            ops.push((i + u64::from(to.0), world.rpc(to, &add, (i, to.0.into()))?));
        }
    }
    // Waited for in another order than they were started in.
    let mut odd = true;
    while !ops.is_empty() {
        odd = !odd;
        let (expected, op) = ops.swap_remove(if odd { ops.len() - 1 } else { 0 });
        assert_eq!(op.wait()?, expected);
    }
    drop(ops);
    Ok(world.finalize()?)
}

/// All results, in the order of the operations.
struct Join<'w, R>(Vec<Joined<'w, R>>);

/// An operation, then its result.
type Joined<'w, R> = (Option<Op<'w, R>>, Option<Result<R>>);

impl<R: Unpin> Future for Join<'_, R> {
    type Output = Vec<Result<R>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        for (op, result) in &mut self.0 {
            let Some(waiting) = op else { continue };
            if let Poll::Ready(value) = pin!(waiting).poll(cx) {
                *result = Some(value);
                *op = None;
            }
        }
        if self.0.iter().any(|(op, _)| op.is_some()) {
            return Poll::Pending;
        }
        Poll::Ready(self.0.drain(..).filter_map(|(_, result)| result).collect())
    }
}

fn futures() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u64>::alloc(&world, 4)?;
    for round in 0..50 {
        let ops: Result<Vec<_>> = world
            .ranks()
            .map(|to| Ok((Some(world.rpc(to, &add, (round, to.0.into()))?), None)))
            .collect();
        let sums = world.block_on(Join(ops?));
        for (to, sum) in world.ranks().zip(sums) {
            assert_eq!(sum?, round + u64::from(to.0));
        }
        // One after the other, with puts and gets between.
        let me = world.rank();
        let value: Result<u64> = world.block_on(async {
            let a = world.rpc(world.rank_offset(1), &add, (round, 1))?.await?;
            world
                .put(v.on(me).part(1..3), Box::new([a, a + 1]))?
                .await?;
            let both = world.get(v.on(me).part(1..3))?.await?;
            world
                .rpc(world.rank_offset(-1), &add, (both[0], both[1]))?
                .await
        });
        assert_eq!(value?, 2 * round + 3);
    }
    Ok(world.finalize()?)
}

/// The library drops results for which no caller waits.
fn dropped() -> Done {
    let world = World::init()?;
    for i in 0..3000u64 {
        let op = world.rpc(world.rank_offset(1), &add, (i, 1))?;
        if i % 2 == 0 {
            drop(op);
        } else {
            std::mem::forget(op);
        }
        if i % 100 == 0 {
            let kept = world.rpc(world.rank_offset(1), &add, (i, 2))?;
            assert_eq!(kept.wait()?, i + 2);
        }
    }
    Ok(world.finalize()?)
}

fn pointers() -> Done {
    let world = World::init()?;
    let v = SharedArray::<u32>::alloc(&world, 3)?;
    let next = world.rank_offset(1);
    let p = world.rpc(next, &next_of, (v.ptr(next, 0),))?.wait()?;
    assert_eq!(p, v.ptr(next, 1));
    world.put_value(p, world.rank().0 + 1)?;
    world.barrier()?;
    assert_eq!(v.read(&world, 1), world.rank_offset(-1).0 + 1);
    Ok(world.finalize()?)
}

fn panics() -> Done {
    let world = World::init()?;
    if world.rank() == Rank(0) {
        world.rpc(Rank(2), &unlucky, (13,))?.wait()?;
    }
    world.barrier()?;
    Ok(world.finalize()?)
}
