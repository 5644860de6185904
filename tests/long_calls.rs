//! Remote procedures whose arguments and results are longer than one message.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use argonet::{
    DistObject, Error, MAX_MEDIUM, Par, Rank, Result, RpcError, RpcStatus, Threading, World,
};

type Lines = RefCell<Vec<String>>;

static BYTES: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

argonet::rpc! {
    fn sorted(values: Vec<u64>) -> Vec<u64> {
        let mut values = values;
        values.sort_unstable();
        values
    }

    fn repeated(count: usize) -> String { "x".repeat(count) }

    fn take(text: String) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(text.len() as u64, Ordering::Relaxed);
    }

    /// One that may communicate: it asks the next rank to sort.
    fn sorted_by_next(ctx, values: Vec<u64>) -> Vec<u64> {
        ctx.rpc(ctx.rank_offset(1), &sorted, (values,)).unwrap().wait().unwrap()
    }

    fn add_lines(lines: &Lines, more: Vec<String>) -> Vec<String> {
        let mut lines = lines.borrow_mut();
        lines.extend(more);
        lines.clone()
    }
}

/// Values that differ by rank and call, of about `bytes` bytes when encoded.
fn values<M: Threading>(world: &World<M>, call: u64, bytes: usize) -> Vec<u64> {
    let start = u64::from(world.rank().0) << 40 | call << 20 | 1 << 63;
    (0..bytes as u64 / 10)
        .map(|i| start + i * 7919 % 65_521)
        .collect()
}

fn in_order(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn arguments_and_results_of_any_length(world: &mut World) -> Result<()> {
    for bytes in [MAX_MEDIUM / 2, 3 * MAX_MEDIUM, 9 * MAX_MEDIUM] {
        for to in world.ranks() {
            let sent = values(world, to.0.into(), bytes);
            let got = world.rpc(to, &sorted, (sent.clone(),))?.wait()?;
            assert_eq!(got, in_order(sent));
        }
    }
    Ok(())
}

#[argonet::test(ranks = 3, conduit = ["smp", "tcp", "usnic"], neighborhood_size = 2)]
fn all_call_all_at_once(world: &mut World) -> Result<()> {
    let mut ops = Vec::new();
    for round in 0..6 {
        for to in world.ranks() {
            let sent = values(world, round as u64, (round % 4 * 2) * MAX_MEDIUM);
            let op = world.rpc(to, &sorted, (sent.clone(),))?;
            match round {
                // The result comes and is dropped.
                5 => drop(op),
                _ => ops.push((sent, op)),
            }
            world.rpc_one_way(to, &take, ("x".repeat(round * MAX_MEDIUM),))?;
        }
    }
    while let Some((sent, op)) = ops.pop() {
        assert_eq!(op.wait()?, in_order(sent));
    }
    world.drain()?;
    let size = u64::from(world.size());
    assert_eq!(CALLS.load(Ordering::Relaxed), 6 * size);
    assert_eq!(BYTES.load(Ordering::Relaxed), 15 * size * MAX_MEDIUM as u64);
    Ok(())
}

#[argonet::test(ranks = [1, 3], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn functions_with_a_context_and_objects(world: &mut World) -> Result<()> {
    let lines = DistObject::new(world, Lines::default())?;
    let sent = values(world, 0, 4 * MAX_MEDIUM);
    // Both ends are inside of such functions, which wait for long results meanwhile.
    let ops: Vec<_> = world
        .ranks()
        .map(|to| world.rpc(to, &sorted_by_next, (sent.clone(),)))
        .collect::<Result<_>>()?;
    for op in ops {
        assert_eq!(op.wait()?, in_order(sent.clone()));
    }
    let line = "x".repeat(MAX_MEDIUM / 2);
    let to = world.rank_offset(1);
    for count in [3, 6] {
        let got = lines
            .rpc(world, to, &add_lines, (vec![line.clone(); 3],))?
            .wait()?;
        assert_eq!(got, vec![line.clone(); count]);
    }
    world.barrier()?;
    // Rank 0 drops its instance.
    let lines = (world.rank() != Rank(0)).then_some(lines);
    world.barrier()?;
    if let Some(lines) = &lines {
        let outcome = lines
            .rpc(world, Rank(0), &add_lines, (vec![line; 3],))?
            .wait();
        let Err(Error::Rpc(RpcError::Failed { status, .. })) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(status, RpcStatus::NoInstance);
    }
    world.barrier()
}

#[argonet::test(ranks = [1, 2, 3], conduit = ["smp", "tcp", "usnic"], neighborhood_size = 1)]
fn a_drain_waits_for_long_results(world: &mut World) -> Result<()> {
    const LONG: usize = 200 * MAX_MEDIUM;
    let op = world.rpc(world.rank_offset(1), &repeated, (LONG,))?;
    world.drain()?;
    // The result is looked for before anything is polled for it, and one poll could not bring it.
    let Poll::Ready(result) = pin!(op).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a drain has left parts of a result");
    };
    assert_eq!(result?.len(), LONG);
    Ok(())
}

#[argonet::test(ranks = [1, 2], conduit = ["smp", "tcp"], neighborhood_size = 1)]
fn threads_get_the_results_of_their_own_calls(world: &mut World<Par>) -> Result<()> {
    let world = &*world;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                for round in 0..5 {
                    for to in world.ranks() {
                        let sent = values(
                            world,
                            thread << 8 | round,
                            (thread as usize + 2) * MAX_MEDIUM,
                        );
                        let op = world.rpc(to, &sorted, (sent.clone(),)).unwrap();
                        assert_eq!(op.wait().unwrap(), in_order(sent));
                    }
                }
            });
        }
    });
    world.drain()
}
