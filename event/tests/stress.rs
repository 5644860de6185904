//! Threads that start operations, others that complete them in any order, repeat completions and
//! test events of their peers.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use argonet_event::{
    Category, CategoryMask, Completion, Completions, Event, HandleTable, Limits, NbiToken,
    ThreadCache,
};

const INITIATORS: usize = 3;
const COMPLETERS: usize = 2;
const ROUNDS: u64 = 3_000;
const IN_FLIGHT: usize = 24;

enum Work {
    Explicit(Event, &'static AtomicU64),
    Implicit(NbiToken),
}

/// Completes arriving events, newest first in groups, as a handler on another thread would.
fn complete_all(table: &HandleTable, work: &Receiver<Work>) -> u64 {
    let mut completed = 0;
    while let Ok(first) = work.recv() {
        let mut group: Vec<Work> = std::iter::once(first)
            .chain(work.try_iter().take(7))
            .collect();
        while let Some(one) = group.pop() {
            completed += 1;
            match one {
                Work::Explicit(event, data) => {
                    data.fetch_add(1, Ordering::Relaxed);
                    table.complete(event, Completion::Local, 1).unwrap();
                    table.complete(event, Completion::Remote, 2).unwrap();
                    // Repeated: refused, in any later state of the handle.
                    table.complete(event, Completion::Remote, 1).unwrap_err();
                }
                Work::Implicit(token) => {
                    table.complete_nbi(token, 1).unwrap();
                }
            }
        }
    }
    completed
}

fn wait_until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

/// One round: a window of explicit operations, a region and some implicit operations.
fn round(
    table: &HandleTable,
    cache: &ThreadCache,
    work: &[Sender<Work>],
    data: &'static [AtomicU64],
    round: u64,
) {
    let mut events = Vec::new();
    for (i, datum) in data.iter().enumerate() {
        let event = loop {
            match table.alloc(cache, Completions::new(1, 2).unwrap()) {
                Ok(event) => break event,
                // The table is small on purpose: give way to those that hold the handles.
                Err(_) if !events.is_empty() => {
                    let _ = table.test_some(cache, &mut events).unwrap();
                    events.retain(|event| !event.is_done());
                    table.relieve(cache);
                    thread::yield_now();
                }
                Err(_) => thread::yield_now(),
            }
        };
        work[i % COMPLETERS]
            .send(Work::Explicit(event, datum))
            .unwrap();
        events.push(event);
    }
    let nbi = table.nbi(cache);
    nbi.begin_region().unwrap();
    for sender in work {
        let token = nbi.initiate(Category::Put, 1).unwrap();
        sender.send(Work::Implicit(token)).unwrap();
    }
    events.push(nbi.end_region().unwrap());
    let token = nbi.initiate(Category::Get, 2).unwrap();
    for sender in work {
        sender.send(Work::Implicit(token)).unwrap();
    }
    wait_until(|| table.test_all(cache, &mut events).unwrap());
    for datum in data {
        assert_eq!(datum.load(Ordering::Relaxed), round + 1);
    }
    wait_until(|| nbi.test(CategoryMask::ALL).unwrap());
}

#[test]
fn threads_start_and_complete_each_others_operations() {
    let table = HandleTable::with_limits(Limits {
        operations: (INITIATORS * IN_FLIGHT) as u32 / 2,
        scopes: 2 * INITIATORS as u32 + 16,
        batch: 2,
    });
    let table = &table;
    thread::scope(|scope| {
        let (senders, completers): (Vec<_>, Vec<_>) = (0..COMPLETERS)
            .map(|_| {
                let (sender, receiver) = channel();
                (sender, scope.spawn(move || complete_all(table, &receiver)))
            })
            .unzip();
        let mut initiators = Vec::new();
        for _ in 0..INITIATORS {
            let senders = senders.clone();
            let data: &'static [AtomicU64] = (0..IN_FLIGHT)
                .map(|_| AtomicU64::new(0))
                .collect::<Vec<_>>()
                .leak();
            initiators.push(scope.spawn(move || {
                // Several threads' lives: each ends with its own cache.
                for life in 0..10 {
                    let cache = table.thread_cache();
                    for i in 0..ROUNDS / 10 {
                        round(table, &cache, &senders, data, life * (ROUNDS / 10) + i);
                    }
                    table.retire(cache);
                }
            }));
        }
        drop(senders);
        // ThreadSanitizer sees a join, but not the end of a scope.
        initiators.into_iter().for_each(|i| i.join().unwrap());
        let completed: u64 = completers.into_iter().map(|c| c.join().unwrap()).sum();
        let each = IN_FLIGHT as u64 + 2 * COMPLETERS as u64;
        assert_eq!(completed, INITIATORS as u64 * ROUNDS * each);
    });
    assert_eq!(table.handles_given_out(), 0);
}
