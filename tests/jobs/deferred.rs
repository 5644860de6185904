//! Remote procedures that get a context, where `tests/deferred.rs` has no such job.

use argonet::{Rank, World};

use crate::losses::{die, is_loss, survive};
use crate::support::{Done, Job, Program, Test};

pub(crate) const TESTS: &[Test] = &[
    ("deferred_functions_differ_between_ranks", || {
        let place = format!("deferred-differ-{}", std::process::id());
        let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        let job = Job::launched(2, "deferred-differ").env(PLACE, &place.to_string_lossy());
        let outcome = job.run();
        std::fs::remove_dir(place).expect("one rank has made it");
        outcome.failed(&["registered other handlers or functions"]);
    }),
    ("deferred_calls_while_a_rank_is_lost", || {
        survive(4, "deferred-lost", &[]);
    }),
];

pub(crate) const PROGRAMS: &[Program] = &[("deferred-differ", differ), ("deferred-lost", lost)];

/// A directory that one rank of a job makes.
const PLACE: &str = "ARGONET_TEST_PLACE";

/// One name, with a context at one rank alone.
fn differ() -> Done {
    let mut builder = World::builder();
    if std::fs::create_dir(std::env::var(PLACE)?).is_ok() {
        builder.rpc_deferred("same", |_, (): ()| ());
    } else {
        builder.rpc("same", |(): ()| ());
    }
    Ok(builder.build()?.finalize()?)
}

/// Rank 2 dies while calls are under way, and rank 0 leaves while the others still call it and each
/// other.
fn lost() -> Done {
    const LOST: Rank = Rank(2);
    let mut builder = World::builder().on_peer_lost(|_| ());
    let call = builder.rpc_deferred("call", |ctx, (value,): (u64,)| {
        ctx.poll().expect("a poll");
        value + 1
    });
    let world = builder.build()?;
    for i in 0..200 {
        for to in world.ranks() {
            world.rpc_one_way(to, &call, (i,))?;
        }
    }
    // The last message of a lost rank may be lost with it.
    if let Err(error) = world.drain()
        && !is_loss(&error)
    {
        return Err(error.into());
    }
    if world.rank() == LOST {
        die();
    }
    // Until the loss is known calls are under way; then those with the lost rank fail.
    for i in 0.. {
        let asked = world.rpc(LOST, &call, (i,)).and_then(|op| op.wait());
        let Ok(found) = asked else { break };
        assert_eq!(found, i + 1);
    }
    assert!(world.drain().is_err_and(|error| is_loss(&error)));
    let rounds = u64::from(world.rank().0) * 200;
    for i in 0..rounds {
        for to in world.ranks().filter(|to| *to != LOST) {
            assert_eq!(world.rpc(to, &call, (i,))?.wait()?, i + 1);
        }
    }
    world.rpc_one_way(world.rank(), &call, (8,))?;
    Ok(world.finalize()?)
}
