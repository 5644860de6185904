//! Ranks that have bound all their memory: by messages, and with copies by the kernel.

use super::rig::{BOUNCE, NOTE, Rig, Seen, bytes, context, get, long, put};
use crate::{BoundPlace, Engine, Injection, ThreadCtx};
use argonet_base::JobRank;
use argonet_conduit::smp::Smp;
use std::panic::{AssertUnwindSafe, catch_unwind};

const LEN: usize = 200_000;

/// All ranks are one process here, so that the kernel copies within it.
fn rig(crossing: bool) -> Rig {
    let rig = Rig::pair(LEN);
    for rank in &rig.ranks {
        let own = |_: JobRank| Some(std::process::id());
        // SAFETY: the tests name memory of the rig, or addresses that no code uses.
        unsafe {
            rank.engine
                .bind_everything(crossing.then(|| Box::new(own) as _));
        }
    }
    rig
}

fn place(rig: &Rig, rank: usize, at: usize) -> BoundPlace {
    BoundPlace {
        endpoint: 0,
        ..rig.place(rank, at)
    }
}

#[test]
fn any_memory_is_reached() {
    for crossing in [false, true] {
        let rig = rig(crossing);
        rig.served(|engine, ctx| {
            for (key, len) in [1, 8, 4096, 70_000, LEN - 7].into_iter().enumerate() {
                for rank in [0, 1] {
                    let source = bytes(key, len);
                    let event = put(engine, ctx, place(&rig, rank, 7), &source);
                    engine.wait(ctx, event).unwrap();
                    assert!(rig.memory[rank].read(7, len) == source, "{len} bytes");
                    let mut back = vec![0; len];
                    let event = get(engine, ctx, place(&rig, rank, 7), &mut back);
                    engine.wait(ctx, event).unwrap();
                    assert!(back == source, "{len} bytes");
                }
                let source = bytes(key + 50, len);
                let to = place(&rig, 1, 3);
                long(engine, ctx, to, NOTE, &[1, 2], &source, Injection::Blocking).unwrap();
                let seen = wait(&rig, engine, ctx, 1);
                assert!(seen.payload == source && seen.args == [1, 2], "{len} bytes");
            }
        });
        assert_eq!(rig.settle(), None);
    }
}

/// The next message that a rank gets.
fn wait(rig: &Rig, engine: &Engine<Smp>, ctx: &ThreadCtx, rank: usize) -> Seen {
    loop {
        if let Some(seen) = rig.seen(rank).pop() {
            return seen;
        }
        engine.poll(ctx).unwrap();
    }
}

#[test]
fn the_kernel_needs_no_attention() {
    let rig = rig(true);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    // No thread polls for rank 1 before `settle`.
    let source = bytes(3, 9);
    let event = put(engine, &ctx, place(&rig, 1, 0), &source);
    if engine.crosses() {
        assert!(event.is_done());
        assert_eq!(rig.memory[1].read(0, 9), source);
    }
    assert_eq!(rig.settle(), None);
}

#[test]
fn the_initiator_reports_missing_memory() {
    const NOWHERE: u64 = 4096;
    for crossing in [false, true] {
        for (what, len) in [("put", 8), ("get", LEN), ("long active message", 8)] {
            for rank in [0, 1] {
                let rig = rig(crossing);
                let (engine, ctx) = (&rig.ranks[0].engine, context());
                let to = BoundPlace {
                    address: NOWHERE,
                    ..place(&rig, rank, 0)
                };
                // Of a get that is refused nothing is written; it lives as long as the rig all the
                // same.
                let target = Box::leak(vec![0; len].into_boxed_slice());
                let run = catch_unwind(AssertUnwindSafe(|| match what {
                    "put" => _ = put(engine, &ctx, to, &bytes(1, len)),
                    "get" => _ = get(engine, &ctx, to, target),
                    _ => long(
                        engine,
                        &ctx,
                        to,
                        NOTE,
                        &[1],
                        &bytes(1, len),
                        Injection::Blocking,
                    )
                    .unwrap(),
                }));
                let message = rig.settle().expect("it ends the job");
                drop(run);
                let said = format!(
                    "rank 0: a {what} of {len} bytes at 0x1000 of rank {rank} cannot be done: nothing is mapped at 0x1000 there"
                );
                assert!(message.contains(&said), "{message}");
                assert!(rig.seen(rank).is_empty());
            }
        }
    }
}

#[test]
fn long_replies_are_there_when_their_handler_runs() {
    for crossing in [false, true] {
        let rig = rig(crossing);
        let source = bytes(9, LEN);
        rig.memory[0].write(0, &vec![0; LEN]);
        rig.served(|engine, ctx| {
            let to = place(&rig, 1, 0);
            let back = rig.memory[0].address();
            let args = [back as u32, (back >> 32) as u32, 1, LEN as u32, 7];
            long(engine, ctx, to, BOUNCE, &args, &source, Injection::Blocking).unwrap();
            assert!(wait(&rig, engine, ctx, 0).payload == source);
        });
        assert!(rig.memory[0].read(0, LEN) == source);
    }
}
