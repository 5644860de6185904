//! Client code that handlers leave to a later time: when it runs, and when a rank is idle.

use super::post::{Rank, job};
use super::*;
use argonet_boot::{WaitFor, Waiting};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// The rank of a test's thread, for its deferred code.
    static RANK: Cell<Option<&'static Rank>> = const { Cell::new(None) };
}

/// A job of one rank whose deferred code counts how often it has run, and looks around.
fn rank() -> (&'static Rank, DeferredMark, &'static AtomicUsize) {
    let rank: &'static Rank = Box::leak(Box::new(job(1, 1, ThreadMode::Par).remove(0)));
    RANK.set(Some(rank));
    let count: &'static AtomicUsize = Box::leak(Box::default());
    let own: &'static OnceLock<DeferredMark> = Box::leak(Box::default());
    let mark = rank.engine.on_deferred(Box::new(move || {
        let (rank, mark) = (RANK.get().unwrap(), own.get().unwrap());
        mark.clear();
        let ran = rank.engine.background.deferred.count();
        assert!(!rank.engine.is_idle_since(ran) && rank.ctx.runs_deferred());
        // A poll inside of it runs none.
        mark.set();
        assert_eq!(rank.poll(), 0);
        mark.clear();
        count.fetch_add(1, Ordering::Relaxed);
        1
    }));
    assert!(own.set(mark.clone()).is_ok());
    (rank, mark, count)
}

#[test]
fn polls_and_waits_run_what_is_marked() {
    let (rank, mark, count) = rank();
    rank.poll();
    assert_eq!(count.load(Ordering::Relaxed), 0);
    mark.set();
    assert!(rank.poll() > 0);
    rank.poll();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    mark.set();
    let what = Waiting::new(WaitFor::Condition);
    let done = || count.load(Ordering::Relaxed) == 2;
    rank.engine.wait_until(&rank.ctx, what, done).unwrap();
    assert!(!rank.ctx.runs_deferred());
}

#[test]
fn waits_in_a_call_that_sends_run_none() {
    let (rank, mark, count) = rank();
    mark.set();
    let mut wait = rank.engine.waiting_unannounced(Waiting::new(WaitFor::Room));
    for _ in 0..10 {
        wait.pause(&rank.ctx);
    }
    drop(wait);
    assert_eq!(count.load(Ordering::Relaxed), 0);
    rank.poll();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn a_rank_is_not_idle_while_code_waits_nor_after_more_has_run() {
    let (rank, mark, _) = rank();
    let before = rank.engine.background.deferred.count();
    assert!(rank.engine.is_idle_since(before));
    mark.set();
    assert!(!rank.engine.is_idle_since(before));
    rank.poll();
    assert!(!rank.engine.is_idle_since(before));
    let now = rank.engine.background.deferred.count();
    assert!(rank.engine.is_idle_since(now));
}

#[test]
fn drains_run_what_waits_and_nothing_runs_once_it_is_closed() {
    let (rank, mark, count) = rank();
    mark.set();
    rank.engine.drain(&rank.ctx, BarrierKind::Drain).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    rank.engine.close_deferred();
    mark.set();
    assert_eq!(rank.poll(), 0);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
