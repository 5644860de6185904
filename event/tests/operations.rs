//! Explicit operations: roots, leaves, arrays, limits and refusals.
#![cfg(not(loom))]

use argonet_event::{
    Category, Completion, Completions, Event, EventError, Exhausted, HandleTable, Limits,
    ThreadCache,
};

fn table() -> (HandleTable, ThreadCache) {
    let table = HandleTable::new(HandleTable::MAX_OPERATIONS);
    let cache = table.thread_cache();
    (table, cache)
}

#[test]
fn a_root_is_done_when_all_parts_are() {
    let (table, cache) = table();
    let event = table
        .alloc(&cache, Completions::new(2, 3).unwrap())
        .unwrap();
    assert_eq!(table.complete(event, Completion::Both, 2), Ok(false));
    assert_eq!(table.test(&cache, event), Ok(false));
    table.add_completions(event, Completions::REMOTE).unwrap();
    assert_eq!(table.complete(event, Completion::Remote, 1), Ok(false));
    assert_eq!(table.complete(event, Completion::Remote, 1), Ok(true));
    assert_eq!(table.test(&cache, event), Ok(true));
    assert_eq!(table.test(&cache, event), Err(EventError::Stale(event)));
}

#[test]
fn done_is_done_and_no_op_is_refused() {
    let (table, cache) = table();
    assert_eq!(table.test(&cache, Event::DONE), Ok(true));
    assert_eq!(table.query_leaf(Event::DONE, Category::Lc), Ok(Event::DONE));
    let refused = Err(EventError::WrongKind(Event::NO_OP));
    assert_eq!(table.test(&cache, Event::NO_OP), refused);
    assert_eq!(table.test_all(&cache, &mut [Event::NO_OP]), refused);
    assert_eq!(table.complete(Event::NO_OP, Completion::Remote, 1), refused);
    assert_eq!(
        table.complete(Event::DONE, Completion::Remote, 1),
        Err(EventError::WrongKind(Event::DONE))
    );
}

/// The sequence of the public suite's testgasnet: a leaf stays testable after it is done, in every
/// form, and the query may be repeated while the root lives.
#[test]
fn a_leaf_is_testable_again_while_its_root_lives() {
    let (table, cache) = table();
    let root = table.alloc(&cache, Completions::BOTH).unwrap();
    let leaf = table.query_leaf(root, Category::Lc).unwrap();
    assert!(leaf.is_leaf() && !root.is_leaf());
    assert_eq!(table.test(&cache, leaf), Ok(false));
    table.complete(root, Completion::Local, 1).unwrap();
    for _ in 0..2 {
        assert_eq!(table.query_leaf(root, Category::Lc), Ok(leaf));
        assert_eq!(table.test(&cache, leaf), Ok(true));
        let mut one = [leaf];
        assert_eq!(table.test_some(&cache, &mut one), Ok(true));
        assert_eq!(one, [Event::DONE]);
        assert_eq!(table.test_all(&cache, &mut [leaf]), Ok(true));
    }
    assert_eq!(table.test(&cache, root), Ok(false));
    table.complete(root, Completion::Remote, 1).unwrap();
    assert_eq!(table.test(&cache, root), Ok(true));
    assert_eq!(table.test(&cache, leaf), Err(EventError::Stale(leaf)));
    assert_eq!(
        table.query_leaf(root, Category::Lc),
        Err(EventError::Stale(root))
    );
}

#[test]
fn an_operation_has_a_local_leaf_only() {
    let (table, cache) = table();
    let root = table.alloc(&cache, Completions::BOTH).unwrap();
    let leaf = table.query_leaf(root, Category::Am).unwrap();
    assert_eq!(table.query_leaf(root, Category::Lc), Ok(leaf));
    for category in [Category::Get, Category::Put, Category::Rmw] {
        let event = root;
        let refused = Err(EventError::NoLeaf { event, category });
        assert_eq!(table.query_leaf(root, category), refused);
    }
    assert_eq!(
        table.query_leaf(leaf, Category::Lc),
        Err(EventError::WrongKind(leaf))
    );
    assert_eq!(
        table.complete(leaf, Completion::Local, 1),
        Err(EventError::WrongKind(leaf))
    );
}

#[test]
fn arrays_take_roots_and_their_leaves_in_any_order() {
    for leaf_first in [false, true] {
        let (table, cache) = table();
        let root = table.alloc(&cache, Completions::BOTH).unwrap();
        let leaf = table.query_leaf(root, Category::Lc).unwrap();
        let other = table.alloc(&cache, Completions::REMOTE).unwrap();
        let mut events = if leaf_first {
            [leaf, Event::DONE, root, other]
        } else {
            [root, other, leaf, Event::DONE]
        };
        let before = events;
        assert_eq!(table.test_some(&cache, &mut events), Ok(false));
        assert_eq!(events, before);
        table.complete(root, Completion::Both, 1).unwrap();
        assert_eq!(table.test_all(&cache, &mut events), Ok(false));
        assert_eq!(events.iter().filter(|event| !event.is_done()).count(), 1);
        assert_eq!(table.test_some(&cache, &mut events), Ok(false));
        table.complete(other, Completion::Remote, 1).unwrap();
        assert_eq!(table.test_some(&cache, &mut events), Ok(true));
        assert_eq!(events, [Event::DONE; 4]);
        assert_eq!(table.test_some(&cache, &mut events), Ok(true));
        assert_eq!(table.test_all(&cache, &mut events), Ok(true));
    }
}

#[test]
fn empty_arrays_succeed() {
    let (table, cache) = table();
    assert_eq!(table.test_some(&cache, &mut []), Ok(true));
    assert_eq!(table.test_all(&cache, &mut []), Ok(true));
}

#[test]
fn an_error_in_an_array_keeps_what_was_reaped() {
    let (table, cache) = table();
    let stale = table.alloc(&cache, Completions::REMOTE).unwrap();
    table.cancel(&cache, stale).unwrap();
    let done = table.alloc(&cache, Completions::REMOTE).unwrap();
    table.complete(done, Completion::Remote, 1).unwrap();
    let mut events = [done, stale];
    let refused = Err(EventError::Stale(stale));
    assert_eq!(table.test_all(&cache, &mut events), refused);
    assert_eq!(events, [Event::DONE, stale]);
}

#[test]
fn stale_and_invented_completions_change_nothing() {
    let (table, cache) = table();
    let first = table.alloc(&cache, Completions::REMOTE).unwrap();
    table.complete(first, Completion::Remote, 1).unwrap();
    assert!(matches!(
        table.complete(first, Completion::Remote, 1),
        Err(EventError::TooManyCompletions {
            count: 1,
            pending: 0,
            ..
        })
    ));
    table.test(&cache, first).unwrap();
    let second = table.alloc(&cache, Completions::REMOTE).unwrap();
    assert_eq!(
        first.raw() & 0xff_ffff,
        second.raw() & 0xff_ffff,
        "the slot is used again"
    );
    assert_ne!(first, second);
    for completion in [Completion::Local, Completion::Remote, Completion::Both] {
        assert_eq!(
            table.complete(first, completion, 1),
            Err(EventError::Stale(first))
        );
    }
    // A generation that is still to come, free and living.
    for step in 1..4 {
        let forged = Event::from_raw(second.raw() + (step << 27));
        assert_eq!(
            table.complete(forged, Completion::Remote, 1),
            Err(EventError::Stale(forged))
        );
        assert_eq!(table.test(&cache, forged), Err(EventError::Stale(forged)));
        assert_eq!(table.cancel(&cache, forged), Err(EventError::Stale(forged)));
    }
    let nowhere = Event::from_raw((1 << 27) | 0xff_ffff);
    assert_eq!(
        table.test(&cache, nowhere),
        Err(EventError::Unknown(nowhere))
    );
    assert_eq!(
        table.complete(nowhere, Completion::Remote, 1),
        Err(EventError::Unknown(nowhere))
    );
    assert_eq!(table.test(&cache, second), Ok(false));
    assert!(
        table
            .complete(second, Completion::Remote, u32::MAX)
            .is_err()
    );
    assert_eq!(table.complete(second, Completion::Remote, 1), Ok(true));
    assert_eq!(table.test(&cache, second), Ok(true));
}

#[test]
fn every_raw_value_is_answered() {
    let (table, cache) = table();
    let live = table.alloc(&cache, Completions::BOTH).unwrap();
    for high in [0, 1, 2, 3, u64::MAX >> 27] {
        for low in (0..1 << 27).step_by(0x3_ffff) {
            let event = Event::from_raw((high << 27) | low);
            if event.index_and_generation() == live.index_and_generation() || event.is_done() {
                continue;
            }
            assert!(table.test(&cache, event).is_err(), "{event}");
            assert!(table.complete(event, Completion::Both, 1).is_err());
            assert!(table.query_leaf(event, Category::Lc).is_err());
            let token = argonet_event::NbiToken::from_raw(event.raw());
            assert!(table.complete_nbi(token, 1).is_err());
        }
    }
    assert_eq!(table.complete(live, Completion::Both, 1), Ok(true));
}

trait Fields {
    fn index_and_generation(self) -> u64;
}

impl Fields for Event {
    fn index_and_generation(self) -> u64 {
        self.raw() & !(0b111 << 24)
    }
}

#[test]
fn parts_have_limits() {
    let (table, cache) = table();
    assert_eq!(Completions::new(0, 0), Err(EventError::NoCompletions));
    assert!(Completions::new(Completions::MAX_LOCAL + 1, 1).is_err());
    assert!(Completions::new(1, Completions::MAX_REMOTE + 1).is_err());
    let all = Completions::new(Completions::MAX_LOCAL, Completions::MAX_REMOTE).unwrap();
    let event = table.alloc(&cache, all).unwrap();
    for one in [Completions::LOCAL, Completions::REMOTE] {
        assert!(matches!(
            table.add_completions(event, one),
            Err(EventError::CompletionLimit { .. })
        ));
    }
    table
        .complete(event, Completion::Local, Completions::MAX_LOCAL)
        .unwrap();
    // As many as there can be, and not one more.
    let all = Completions::new(Completions::MAX_LOCAL, 0).unwrap();
    table.add_completions(event, all).unwrap();
    assert!(table.add_completions(event, Completions::LOCAL).is_err());
    table
        .complete(event, Completion::Local, Completions::MAX_LOCAL)
        .unwrap();
    assert_eq!(
        table.complete(event, Completion::Remote, Completions::MAX_REMOTE),
        Ok(true)
    );
    let refused = Err(EventError::AlreadyComplete(event));
    assert_eq!(table.add_completions(event, Completions::REMOTE), refused);
}

#[test]
fn threads_keep_a_thousandth_of_the_operations_at_most() {
    for (operations, batch) in [(999, 0), (1_000, 1), (10_999, 10), (1_000_000, 64)] {
        let limits = Limits::for_operations(operations);
        assert_eq!((limits.operations, limits.batch), (operations, batch));
    }
}

#[test]
fn a_canceled_operation_frees_its_handle() {
    let table = HandleTable::new(1);
    let cache = table.thread_cache();
    let event = table.alloc(&cache, Completions::BOTH).unwrap();
    table.cancel(&cache, event).unwrap();
    assert_eq!(
        table.complete(event, Completion::Both, 1),
        Err(EventError::Stale(event))
    );
    assert!(table.alloc(&cache, Completions::BOTH).is_ok());
}

/// A second thread frees while the first is refused: the first gets it although the second keeps
/// free handles to itself.
#[test]
fn a_refused_thread_is_helped_by_the_next_free_or_poll() {
    let table = HandleTable::with_limits(Limits {
        operations: 8,
        scopes: 8,
        batch: 4,
    });
    let (holder, refused) = (table.thread_cache(), table.thread_cache());
    let events: Vec<Event> = (0..8)
        .map(|_| table.alloc(&holder, Completions::REMOTE).unwrap())
        .collect();
    let limit = 8;
    let full = Err(Exhausted { limit, in_use: 8 });
    assert_eq!(table.alloc(&refused, Completions::REMOTE), full);
    table.cancel(&holder, events[0]).unwrap();
    let got = table.alloc(&refused, Completions::REMOTE).unwrap();
    table.cancel(&holder, events[1]).unwrap();
    assert_eq!(holder.free_handles(), 1, "no thread is refused now");
    assert_eq!(table.alloc(&refused, Completions::REMOTE), full);
    table.relieve(&holder);
    assert_eq!(holder.free_handles(), 0);
    assert!(table.alloc(&refused, Completions::REMOTE).is_ok());
    table.cancel(&holder, got).unwrap();
}

#[test]
#[should_panic(expected = "belongs to the table that made it")]
fn the_cache_of_another_table_is_refused() {
    let (_table, cache) = table();
    let _ = HandleTable::new(1).alloc(&cache, Completions::REMOTE);
}

/// All 2^24 - 2 handles; about a quarter of a GiB, half a second in a release build.
// spec P3: 24 bits name an operation.
#[test]
fn the_table_holds_all_that_an_index_can_name_and_not_one_more() {
    let (table, cache) = table();
    let mut last = Event::DONE;
    for _ in 0..HandleTable::MAX_OPERATIONS {
        last = table.alloc(&cache, Completions::REMOTE).unwrap();
    }
    let limit = HandleTable::MAX_OPERATIONS;
    let full = Err(Exhausted {
        limit,
        in_use: limit,
    });
    assert_eq!(table.alloc(&cache, Completions::REMOTE), full);
    assert_eq!(table.complete(last, Completion::Remote, 1), Ok(true));
    assert_eq!(table.test(&cache, last), Ok(true));
    let again = table.alloc(&cache, Completions::REMOTE).unwrap();
    assert_ne!(again, last);
    assert_eq!(table.alloc(&cache, Completions::REMOTE), full);
}
