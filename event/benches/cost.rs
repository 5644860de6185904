//! The cost of an event for one thread, in nanoseconds: `cargo bench -p argonet-event`.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use argonet_event::{Category, CategoryMask, Completion, Completions, Event, HandleTable};

const OPERATIONS: u32 = 10_000_000;
const REPETITIONS: u32 = 5;

/// The best of a few runs.
fn report(name: &str, per_run: u32, mut run: impl FnMut()) {
    let best = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..OPERATIONS / per_run {
                run();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(OPERATIONS / per_run * per_run)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<56} {best:6.1} ns");
}

fn main() {
    let table = HandleTable::new(HandleTable::MAX_OPERATIONS);
    let cache = table.thread_cache();
    let word = AtomicU64::new(0);
    report("for comparison: one atomic addition", 1, || {
        black_box(&word).fetch_add(1, Ordering::AcqRel);
    });
    report("alloc, complete, test", 1, || {
        let event = black_box(table.alloc(&cache, Completions::REMOTE).unwrap());
        table.complete(event, Completion::Remote, 1).unwrap();
        assert!(table.test(&cache, black_box(event)).unwrap());
    });
    report("alloc, complete local and remote, test", 1, || {
        let event = black_box(table.alloc(&cache, Completions::BOTH).unwrap());
        table.complete(event, Completion::Local, 1).unwrap();
        table.complete(event, Completion::Remote, 1).unwrap();
        assert!(table.test(&cache, black_box(event)).unwrap());
    });
    let pending = table.alloc(&cache, Completions::REMOTE).unwrap();
    report("test of a pending event", 1, || {
        assert!(!table.test(&cache, black_box(pending)).unwrap());
    });
    for window in [32, 1024, 65_536] {
        let mut events = vec![Event::DONE; window as usize];
        let name = format!("alloc, complete, test_all with {window} in flight");
        report(&name, window, || {
            for event in &mut events {
                *event = table.alloc(&cache, Completions::REMOTE).unwrap();
            }
            for event in &events {
                table.complete(*event, Completion::Remote, 1).unwrap();
            }
            assert!(table.test_all(&cache, &mut events).unwrap());
        });
    }
    let nbi = table.nbi(&cache);
    report("initiate, complete_nbi", 1, || {
        let token = black_box(nbi.initiate(Category::Put, 1).unwrap());
        table.complete_nbi(token, 1).unwrap();
    });
    report("test of all categories", 1, || {
        assert!(black_box(nbi.test(CategoryMask::ALL).unwrap()));
    });
    report("region of one operation, begin to test", 1, || {
        nbi.begin_region().unwrap();
        let token = nbi.initiate(Category::Put, 1).unwrap();
        let event = black_box(nbi.end_region().unwrap());
        table.complete_nbi(token, 1).unwrap();
        assert!(table.test(&cache, event).unwrap());
    });
}
