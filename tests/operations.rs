//! Operations that go to other threads, several of them as one, and waits with an end.

use argonet::{
    AtomicOp, DistObject, Error, Op, Par, Rank, Reduction, Result, RpcError, RpcStatus,
    SharedArray, World,
};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

static CALLS: AtomicU64 = AtomicU64::new(0);

argonet::rpc! {
    fn double(number: u64) -> u64 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        2 * number
    }

    fn instance(object: &u64) -> u64 { *object }
}

/// Polls until this rank has been called so often.
fn wait_for_calls(world: &World<Par>, calls: u64) -> Result<()> {
    world.wait_until(|| CALLS.load(Ordering::Relaxed) == calls)
}

#[argonet::test(
    ranks = [1, 3],
    conduit = ["smp", "tcp", "usnic", "portals", "gni", "ofi"],
    neighborhood_size = 1
)]
fn one_thread_starts_and_others_wait(world: &mut World<Par>) -> Result<()> {
    const ROUNDS: u64 = 120;
    let mut v = SharedArray::<u64>::alloc(world, 600)?;
    v.write(world, 0, 7);
    v.write(world, 1, 9);
    world.barrier()?;
    let (shared, size) = (&*world, u64::from(world.size()));
    thread::scope(|threads| {
        let (send, receive) = channel::<(Op<'_, u64, Par>, u64)>();
        let (send_buffer, receive_buffers) = channel::<Op<'_, Box<[u64]>, Par>>();
        threads.spawn(move || {
            for (op, expected) in receive {
                assert_eq!(op.wait().unwrap(), expected);
            }
        });
        threads.spawn(move || {
            for (number, op) in receive_buffers.into_iter().enumerate() {
                // The others are dropped here, which waits for their buffers.
                if number % 3 > 0 {
                    assert_eq!(op.wait().unwrap()[0], 7);
                }
            }
        });
        for round in 0..ROUNDS {
            let to = shared.rank_offset(round as i64);
            send.send((shared.rpc(to, &double, (round,))?, 2 * round))
                .unwrap();
            let word = shared.start_fetch(v.ptr(to, 1), AtomicOp::get())?;
            send.send((word, 9)).unwrap();
            send_buffer.send(shared.get(v.on(to).part(..500))?).unwrap();
            let put = shared.put(v.on(to).part(500..), vec![7; 100].into())?;
            send_buffer.send(put).unwrap();
        }
        // A collective operation, too.
        let sum = shared.collectives();
        let sum = sum.start_reduce_all(Reduction::Sum, vec![1u64].into())?;
        let sum = threads.spawn(move || sum.wait()).join().unwrap()?;
        assert_eq!(*sum, [size]);
        drop((send, send_buffer));
        wait_for_calls(shared, ROUNDS)
    })?;
    world.quiet(|q| {
        let values = v.local_mut(q);
        assert_eq!((values[0], values[1]), (7, 9));
        assert!(values[500..].iter().all(|value| *value == 7));
    })
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn several_are_one(world: &mut World) -> Result<()> {
    let v = SharedArray::<u64>::alloc(world, 3)?;
    v.write(world, 1, u64::from(world.rank().0));
    world.barrier()?;
    let gets = |count| {
        let ranks = (0..count).map(|number| world.rank_offset(number));
        ranks
            .map(|rank| world.get(v.on(rank)))
            .collect::<Result<Vec<_>>>()
    };
    let expected = |values: &[Box<[u64]>]| {
        (0..)
            .zip(values)
            .all(|(number, values)| **values == [0, u64::from(world.rank_offset(number).0), 0])
    };
    for count in [0, 1, 2, 300] {
        let values = world.join_all(gets(count)?).wait()?;
        assert!(
            values.len() == count as usize && expected(&values),
            "{count}"
        );
        let values = world.block_on(world.join_all(gets(count)?))?;
        assert!(
            values.len() == count as usize && expected(&values),
            "{count}"
        );
        drop(world.join_all(gets(count)?));
    }
    // A loop that only asks ends.
    let mut all = world.join_all(gets(40)?);
    let values = loop {
        if let Some(values) = all.wait_timeout(Duration::ZERO)? {
            break values;
        }
    };
    assert!(values.len() == 40 && expected(&values));
    // The results are in the order of the operations, some of which are complete from the start.
    let calls =
        (0..20).map(|number| world.rpc(world.rank_offset(number), &double, (number as u64,)));
    let calls: Vec<_> = calls.collect::<Result<_>>()?;
    let doubled = world.join_all(calls).wait()?;
    assert!(doubled.into_iter().eq((0..20).map(|number| 2 * number)));
    // The first error, in their order.
    let [kept, lost] = [(); 2].map(|()| DistObject::new(world, 5u64));
    let (kept, mut lost) = (kept?, Some(lost?));
    lost.take_if(|_| world.rank() != Rank(0));
    world.barrier()?;
    if let Some(lost) = lost.filter(|_| world.size() > 1) {
        let calls = [&kept, &lost, &kept, &lost].into_iter().zip([1, 2, 1, 1]);
        let calls = calls.map(|(object, to)| object.rpc(world, Rank(to), &instance, ()));
        let calls: Vec<_> = calls.collect::<Result<_>>()?;
        match world.join_all(calls).wait() {
            Err(Error::Rpc(RpcError::Failed { at, status, .. })) => {
                assert_eq!((at, status), (Rank(2), RpcStatus::NoInstance));
            }
            other => panic!("{other:?}"),
        }
    }
    world.barrier()
}

#[argonet::test(ranks = 2, conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn a_wait_ends_before_its_operation(world: &mut World) -> Result<()> {
    let calls = world.collectives();
    if world.rank() == Rank(1) {
        // The other rank calls when it has waited in vain.
        world.wait_until(|| CALLS.load(Ordering::Relaxed) == 1)?;
        calls.start_barrier()?.wait()?;
        return world.barrier();
    }
    let mut barrier = calls.start_barrier()?;
    assert_eq!(barrier.wait_timeout(Duration::ZERO)?, None);
    let (limit, begin) = (Duration::from_millis(20), Instant::now());
    assert_eq!(barrier.wait_timeout(limit)?, None);
    assert!(begin.elapsed() >= limit);
    let mut call = world.rpc(Rank(1), &double, (4,))?;
    while barrier.wait_timeout(limit)?.is_none() {}
    assert_eq!(call.wait_timeout(Duration::MAX)?, Some(8));
    // It has given its result away.
    let again = catch_unwind(AssertUnwindSafe(|| call.wait_timeout(Duration::ZERO)));
    assert!(again.is_err());
    let again = catch_unwind(AssertUnwindSafe(|| world.join_all([call])));
    assert!(again.is_err());
    world.barrier()
}

#[argonet::test(ranks = 2, conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn another_thread_polls_an_operation_to_its_end(world: &mut World<Par>) -> Result<()> {
    let mut v = SharedArray::<u64>::alloc(world, 100)?;
    let [me, next] = [0, 1].map(|distance| u64::from(world.rank_offset(distance).0) + 5);
    world.quiet(|q| v.local_mut(q).fill(me))?;
    let shared = &*world;
    for round in 0..50 {
        let mut get = shared.get(v.on(shared.rank_offset(1)))?;
        let look = |op: &mut Op<'_, Box<[u64]>, Par>| {
            let mut context = Context::from_waker(Waker::noop());
            Pin::new(op).poll(&mut context)
        };
        if round % 2 == 0 && look(&mut get).is_ready() {
            continue;
        }
        // Another thread polls it to its end, or waits.
        let values = thread::scope(|threads| {
            let finish = move || match round % 3 {
                0 => get.wait(),
                1 => shared.block_on(get),
                _ => loop {
                    if let Poll::Ready(values) = look(&mut get) {
                        break values;
                    }
                },
            };
            threads.spawn(finish).join().unwrap()
        })?;
        assert_eq!(*values, [next; 100]);
    }
    world.barrier()
}
