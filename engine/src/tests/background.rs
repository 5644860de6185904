//! How a thread sleeps while operations go on in the background.

use super::post::{Rank, job};
use super::*;
use argonet_boot::{WaitFor, Waiting};

/// Waits for as many looks, with `at_look` at each.
fn wait(rank: &Rank, looks: u32, mut at_look: impl FnMut()) {
    let mut left = looks;
    let what = Waiting::new(WaitFor::Condition);
    let done = || {
        at_look();
        left -= 1;
        left == 0
    };
    rank.engine.wait_until(&rank.ctx, what, done).unwrap();
}

#[test]
fn a_completion_by_another_thread_keeps_waiters_awake() {
    let ranks = job(2, 1, ThreadMode::Par);
    let sleeps = || std::mem::take(&mut *ranks[0].engine.conduit().sleeps.lock());
    wait(&ranks[0], 50, || {});
    assert!(!sleeps().is_empty());
    // Another thread completes something after each look.
    wait(&ranks[0], 50, || ranks[0].engine.background.stepped());
    assert_eq!(sleeps(), []);
}

#[test]
fn sleeps_are_short_while_something_waits_for_room() {
    let ranks = job(2, 1, ThreadMode::Seq);
    let sleeps = || std::mem::take(&mut *ranks[0].engine.conduit().sleeps.lock());
    let long = |time: &Duration| *time > Duration::from_millis(1);
    wait(&ranks[0], 50, || {});
    assert!(sleeps().iter().all(long));
    // The second finds the box of rank 1 full.
    for _ in 0..2 {
        ranks[0].engine.barrier_start(&ranks[0].ctx).unwrap();
    }
    wait(&ranks[0], 50, || {});
    let short = sleeps();
    assert!(!short.is_empty() && !short.iter().any(long), "{short:?}");
    // Rank 1 makes room, and the waiting message is sent.
    ranks[1].poll();
    wait(&ranks[0], 50, || {});
    assert!(sleeps().iter().any(long));
}
