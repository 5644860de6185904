//! Every interleaving, with at most three preemptions, of the few that matter.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p argonet-event --release --test loom`.
#![cfg(loom)]

use argonet_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use argonet_event::{
    Category, CategoryMask, Completion, Completions, Event, EventError, HandleTable, Limits,
    NbiToken,
};
use loom::sync::Arc;
use loom::thread;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn table(operations: u32, scopes: u32, batch: u32) -> Arc<HandleTable> {
    Arc::new(HandleTable::with_limits(Limits {
        operations,
        scopes,
        batch,
    }))
}

/// Runs the side that tests, in a thread that begins last.
///
/// The checker looks for other orders of an access and the last one before it. When a thread loads
/// a word and then exchanges it, its own load hides earlier loads by others; so the testing thread,
/// which begins with a load, must come after those that complete in the first order tried. And a
/// thread that has yielded is not shown values again that it saw before, so it must be a fresh one.
fn tester(run: impl FnOnce() + 'static) -> thread::JoinHandle<()> {
    thread::spawn(run)
}

/// Tests until the event is complete.
fn wait(table: &HandleTable, cache: &argonet_event::ThreadCache, event: Event) {
    while !table.test(cache, event).unwrap() {
        thread::yield_now();
    }
}

/// The writes of completers are visible to the tester, and a late repetition of a completion does
/// not touch the next life of the slot.
#[test]
fn complete_against_test_against_reuse() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let event = table.alloc(&cache, Completions::REMOTE).unwrap();
        let data = Arc::new(AtomicU64::new(0));
        let completer = {
            let (table, data) = (Arc::clone(&table), Arc::clone(&data));
            thread::spawn(move || {
                data.store(7, Ordering::Relaxed);
                assert_eq!(table.complete(event, Completion::Remote, 1), Ok(true));
                // Repeated: the completion is over, or the operation is.
                match table.complete(event, Completion::Remote, 1) {
                    Err(EventError::TooManyCompletions { .. } | EventError::Stale(_)) => {}
                    other => panic!("{other:?}"),
                }
            })
        };
        let tester = tester(move || {
            wait(&table, &cache, event);
            assert_eq!(data.load(Ordering::Relaxed), 7);
            let next = table.alloc(&cache, Completions::REMOTE).unwrap();
            assert_eq!(table.test(&cache, next), Ok(false));
            completer.join().unwrap();
            assert_eq!(table.test(&cache, next), Ok(false));
            assert_eq!(table.complete(next, Completion::Remote, 1), Ok(true));
            assert_eq!(table.test(&cache, next), Ok(true));
        });
        tester.join().unwrap();
    });
}

/// Two threads report one completion each; the tester sees the writes of both, also through the
/// leaf.
#[test]
fn two_completers_and_a_leaf() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let event = table.alloc(&cache, Completions::BOTH).unwrap();
        let data = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let completers = [Completion::Local, Completion::Remote].map(|completion| {
            let (table, data) = (Arc::clone(&table), Arc::clone(&data));
            thread::spawn(move || {
                data[completion as usize].store(1, Ordering::Relaxed);
                if table.complete(event, completion, 1).unwrap() {
                    // Last: all that the other did is visible.
                    assert_eq!(data[1 - completion as usize].load(Ordering::Relaxed), 1);
                }
            })
        });
        let tester = tester(move || {
            let leaf = table.query_leaf(event, Category::Lc).unwrap();
            if table.test(&cache, leaf).unwrap() {
                assert_eq!(data[Completion::Local as usize].load(Ordering::Relaxed), 1);
            }
            if table.test(&cache, event).unwrap() {
                assert_eq!(data[0].load(Ordering::Relaxed), 1);
                assert_eq!(data[1].load(Ordering::Relaxed), 1);
            }
        });
        for thread in completers.into_iter().chain([tester]) {
            thread.join().unwrap();
        }
    });
}

/// An operation completes while an array that holds its leaf and its root is tested: the leaf ends
/// with the root, it is not left behind stale.
#[test]
fn an_array_ends_a_leaf_with_its_root() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let root = table.alloc(&cache, Completions::BOTH).unwrap();
        let leaf = table.query_leaf(root, Category::Lc).unwrap();
        let completer = {
            let table = Arc::clone(&table);
            thread::spawn(move || assert_eq!(table.complete(root, Completion::Both, 1), Ok(true)))
        };
        let tester = tester(move || {
            let mut events = [leaf, root];
            while !table.test_all(&cache, &mut events).unwrap() {
                thread::yield_now();
            }
            assert_eq!(events, [Event::DONE; 2]);
        });
        completer.join().unwrap();
        tester.join().unwrap();
    });
}

/// Two threads test one event, which is a mistake of theirs: only one of them frees the handle.
#[test]
fn two_testers_free_once() {
    check(|| {
        let table = table(2, 1, 1);
        let cache = table.thread_cache();
        let event = table.alloc(&cache, Completions::REMOTE).unwrap();
        table.complete(event, Completion::Remote, 1).unwrap();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let cache = table.thread_cache();
                let reaped = table.test(&cache, event).is_ok();
                table.retire(cache);
                reaped
            })
        };
        let reaped = table.test(&cache, event).is_ok();
        assert!(reaped ^ other.join().unwrap());
        let a = table.alloc(&cache, Completions::REMOTE).unwrap();
        let b = table.alloc(&cache, Completions::REMOTE).unwrap();
        assert_ne!(a.raw() & 0xff_ffff, b.raw() & 0xff_ffff);
        assert!(table.alloc(&cache, Completions::REMOTE).is_err());
    });
}

/// A slot goes from the thread that freed it through the shared list to one that was refused, and
/// begins its next life there.
#[test]
fn the_free_list_hands_over() {
    check(|| {
        let table = table(1, 1, 1);
        let cache = table.thread_cache();
        let event = table.alloc(&cache, Completions::REMOTE).unwrap();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.complete(event, Completion::Remote, 1).unwrap();
                let cache = table.thread_cache();
                assert_eq!(table.test(&cache, event), Ok(true));
                // As a thread that goes on polling does.
                table.relieve(&cache);
                table.retire(cache);
            })
        };
        let next = loop {
            match table.alloc(&cache, Completions::REMOTE) {
                Ok(next) => break next,
                Err(_) => thread::yield_now(),
            }
        };
        assert_ne!(next, event);
        assert_eq!(
            table.complete(event, Completion::Remote, 1),
            Err(EventError::Stale(event))
        );
        assert_eq!(table.complete(next, Completion::Remote, 1), Ok(true));
        assert_eq!(table.test(&cache, next), Ok(true));
        other.join().unwrap();
    });
}

/// Two threads take from and return to the shared list at once; no slot is had twice.
#[test]
fn two_threads_take_from_the_shared_list() {
    check(|| {
        let table = table(2, 1, 0);
        let cache = table.thread_cache();
        // The block is made before there is a second thread: the model does not know `OnceLock`.
        let event = table.alloc(&cache, Completions::REMOTE).unwrap();
        table.cancel(&cache, event).unwrap();
        let live = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let round = |table: &HandleTable, live: &[AtomicBool; 2]| {
            let cache = table.thread_cache();
            let event = table.alloc(&cache, Completions::REMOTE).unwrap();
            // The two lowest values name no slot.
            let slot = &live[(event.raw() & 0xff_ffff) as usize - 2];
            assert!(!slot.swap(true, Ordering::Relaxed));
            assert!(slot.swap(false, Ordering::Relaxed));
            table.cancel(&cache, event).unwrap();
        };
        let other = {
            let (table, live) = (Arc::clone(&table), Arc::clone(&live));
            thread::spawn(move || round(&table, &live))
        };
        round(&table, &live);
        other.join().unwrap();
        assert_eq!(table.handles_given_out(), 0);
    });
}

/// A region is ended while its operations complete: its event becomes complete exactly when they
/// are, and all writes are visible then.
#[test]
fn ending_a_region_against_its_completions() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let nbi = table.nbi(&cache);
        nbi.begin_region().unwrap();
        let tokens = [Category::Put, Category::Get].map(|c| nbi.initiate(c, 1).unwrap());
        let data = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let completers = [0, 1].map(|i: usize| {
            let (table, data, token) = (Arc::clone(&table), Arc::clone(&data), tokens[i]);
            thread::spawn(move || {
                data[i].store(1, Ordering::Relaxed);
                assert_eq!(table.complete_nbi(token, 1), Ok(true));
            })
        });
        let tester = tester(move || {
            let nbi = table.nbi(&cache);
            let event = nbi.end_region().unwrap();
            wait(&table, &cache, event);
            assert_eq!(data[0].load(Ordering::Relaxed), 1);
            assert_eq!(data[1].load(Ordering::Relaxed), 1);
            // The only scope is free again, and the tokens of its last life are stale.
            let next = nbi.initiate(Category::Put, 1).unwrap();
            for token in tokens {
                let late = table.complete_nbi(token, 1);
                assert!(matches!(late, Err(EventError::Stale(_))));
            }
            assert_eq!(nbi.test(CategoryMask::ALL), Ok(false));
            table.complete_nbi(next, 1).unwrap();
        });
        for thread in completers.into_iter().chain([tester]) {
            thread.join().unwrap();
        }
    });
}

/// A test of a region's leaf sees the writes of the completers of its category.
#[test]
fn a_leaf_of_a_region_against_its_completion() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let nbi = table.nbi(&cache);
        nbi.begin_region().unwrap();
        let token = nbi.initiate(Category::Lc, 1).unwrap();
        nbi.initiate(Category::Put, 1).unwrap();
        let root = nbi.end_region().unwrap();
        let leaf = table.query_leaf(root, Category::Lc).unwrap();
        let data = Arc::new(AtomicU64::new(0));
        let completer = {
            let (table, data) = (Arc::clone(&table), Arc::clone(&data));
            thread::spawn(move || {
                data.store(1, Ordering::Relaxed);
                assert_eq!(table.complete_nbi(token, 1), Ok(true));
            })
        };
        let tester = tester(move || {
            if table.test(&cache, leaf).unwrap() {
                assert_eq!(data.load(Ordering::Relaxed), 1);
            }
            assert_eq!(table.test(&cache, root), Ok(false));
        });
        completer.join().unwrap();
        tester.join().unwrap();
    });
}

/// A thread ends while its operations complete: the last thread frees the scope, once.
#[test]
fn a_thread_ends_against_its_completions() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let tokens: [NbiToken; 2] =
            [Category::Put, Category::Lc].map(|c| table.nbi(&cache).initiate(c, 1).unwrap());
        let threads = tokens.map(|token| {
            let table = Arc::clone(&table);
            thread::spawn(move || assert_eq!(table.complete_nbi(token, 1), Ok(true)))
        });
        let ended = {
            let table = Arc::clone(&table);
            tester(move || table.retire(cache))
        };
        for thread in threads.into_iter().chain([ended]) {
            thread.join().unwrap();
        }
        let (first, second) = (table.thread_cache(), table.thread_cache());
        assert!(table.nbi(&first).initiate(Category::Put, 1).is_ok());
        assert!(table.nbi(&second).initiate(Category::Put, 1).is_err());
    });
}

/// The owner of a scope starts operations while others complete; its test neither misses one nor
/// their writes.
#[test]
fn initiating_against_completing() {
    check(|| {
        let table = table(1, 1, 0);
        let cache = table.thread_cache();
        let nbi = table.nbi(&cache);
        let token = nbi.initiate(Category::Put, 1).unwrap();
        let data = Arc::new(AtomicU64::new(0));
        let other = {
            let (table, data) = (Arc::clone(&table), Arc::clone(&data));
            thread::spawn(move || {
                data.store(1, Ordering::Relaxed);
                table.complete_nbi(token, 1).unwrap();
            })
        };
        let tester = tester(move || {
            let nbi = table.nbi(&cache);
            assert_eq!(nbi.initiate(Category::Put, 1), Ok(token));
            assert_eq!(nbi.test(Category::Put.into()), Ok(false));
            table.complete_nbi(token, 1).unwrap();
            while !nbi.test(Category::Put.into()).unwrap() {
                thread::yield_now();
            }
            assert_eq!(data.load(Ordering::Relaxed), 1);
        });
        other.join().unwrap();
        tester.join().unwrap();
    });
}
