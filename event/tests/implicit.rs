//! Implicit operations, access regions and the end of threads that have some outstanding.
#![cfg(not(loom))]

use argonet_event::{
    Category, CategoryMask, Event, EventError, HandleTable, Limits, NbiScope, NbiToken,
};

#[test]
fn categories_are_counted_apart() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    assert_eq!(nbi.test(CategoryMask::ALL), Ok(true));
    let tokens = Category::ALL.map(|category| nbi.initiate(category, 2).unwrap());
    for (token, category) in tokens.into_iter().zip(Category::ALL) {
        assert_eq!(nbi.test(category.mask()), Ok(false));
        assert_eq!(table.complete_nbi(token, 1), Ok(false));
        assert_eq!(nbi.test(category.mask()), Ok(false));
        assert_eq!(table.complete_nbi(token, 1), Ok(true));
        assert_eq!(nbi.test(category.mask()), Ok(true));
        assert!(matches!(
            table.complete_nbi(token, 1),
            Err(EventError::TooManyCompletions { pending: 0, .. })
        ));
    }
    assert_eq!(nbi.test(CategoryMask::ALL), Ok(true));
    assert_eq!(nbi.test(CategoryMask::NONE), Ok(true));
}

#[test]
fn one_token_serves_all_categories_of_an_operation() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    let put = nbi.initiate(Category::Put, 1).unwrap();
    let local = nbi.initiate(Category::Lc, 1).unwrap();
    assert_eq!(put.with_category(Category::Lc), local);
    table
        .complete_nbi(put.with_category(Category::Lc), 1)
        .unwrap();
    assert_eq!(nbi.test(Category::Lc.into()), Ok(true));
    assert_eq!(nbi.test(Category::Lc | Category::Put), Ok(false));
    table.complete_nbi(put, 1).unwrap();
    assert_eq!(nbi.test(CategoryMask::ALL), Ok(true));
}

#[test]
fn puts_are_local_apart_from_other_completions() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    assert!(nbi.is_local(), "nothing was started");
    let put = nbi.initiate(Category::Put, 1).unwrap();
    assert!(nbi.is_local(), "it is not waited for on its own");
    let local = nbi.initiate(Category::Lc, 1).unwrap();
    assert!(!nbi.is_local());
    nbi.begin_region().unwrap();
    assert!(nbi.is_local(), "of the region alone");
    let inside = nbi.initiate(Category::Lc, 1).unwrap();
    assert!(!nbi.is_local());
    table.complete_nbi(inside, 1).unwrap();
    assert!(nbi.is_local());
    assert_eq!(nbi.end_region(), Ok(Event::DONE));
    assert!(!nbi.is_local());
    table.complete_nbi(local, 1).unwrap();
    assert!(nbi.is_local());
    assert_eq!(nbi.test(Category::Put.into()), Ok(false));
    table.complete_nbi(put, 1).unwrap();
}

#[test]
fn scopes_of_threads_do_not_leak_into_each_other() {
    let table = HandleTable::new(100);
    let (a, b) = (table.thread_cache(), table.thread_cache());
    let token = table.nbi(&a).initiate(Category::Get, 1).unwrap();
    table.nbi(&b).initiate(Category::Put, 1).unwrap();
    table.complete_nbi(token, 1).unwrap();
    assert_eq!(table.nbi(&a).test(CategoryMask::ALL), Ok(true));
    assert_eq!(table.nbi(&b).test(CategoryMask::ALL), Ok(false));
}

#[test]
fn a_region_gathers_operations_under_one_event() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    let outside = nbi.initiate(Category::Put, 1).unwrap();
    nbi.begin_region().unwrap();
    let put = nbi.initiate(Category::Put, 2).unwrap();
    let get = nbi.initiate(Category::Get, 1).unwrap();
    table.complete_nbi(put, 1).unwrap();
    let root = nbi.end_region().unwrap();
    assert_eq!(nbi.test(Category::Get.into()), Ok(true));
    assert_eq!(nbi.test(Category::Put.into()), Ok(false));
    table.complete_nbi(outside, 1).unwrap();
    assert_eq!(nbi.test(CategoryMask::ALL), Ok(true));

    let leaves = Category::ALL.map(|category| table.query_leaf(root, category).unwrap());
    let done = leaves.map(|leaf| table.test(&cache, leaf).unwrap());
    assert_eq!(done, [false, false, true, true, true]);
    assert_eq!(table.test(&cache, root), Ok(false));
    assert_eq!(table.complete_nbi(get, 1), Ok(true));
    assert_eq!(table.test(&cache, leaves[0]), Ok(true));
    assert_eq!(table.test(&cache, root), Ok(false));
    assert_eq!(table.complete_nbi(put, 1), Ok(true));
    assert!(table.complete_nbi(put, 1).is_err());
    let mut events = [leaves[1], root, leaves[0]];
    assert_eq!(table.test_all(&cache, &mut events), Ok(true));
    for event in leaves.into_iter().chain([root]) {
        assert_eq!(table.test(&cache, event), Err(EventError::Stale(event)));
    }
    assert!(matches!(
        table.complete_nbi(put, 1),
        Err(EventError::Stale(_))
    ));
}

#[test]
fn a_region_with_nothing_outstanding_takes_no_handle() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    nbi.begin_region().unwrap();
    assert_eq!(nbi.end_region(), Ok(Event::DONE));
    nbi.begin_region().unwrap();
    let token = nbi.initiate(Category::Rmw, 1).unwrap();
    table.complete_nbi(token, 1).unwrap();
    assert_eq!(nbi.end_region(), Ok(Event::DONE));
    assert!(matches!(
        table.complete_nbi(token, 1),
        Err(EventError::Stale(_))
    ));
}

#[test]
fn regions_do_not_nest_and_are_not_tested_from_within() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    assert_eq!(nbi.end_region(), Err(EventError::NoRegion));
    nbi.begin_region().unwrap();
    assert!(nbi.in_region());
    assert_eq!(nbi.begin_region(), Err(EventError::RegionOpen));
    assert_eq!(nbi.test(CategoryMask::ALL), Err(EventError::RegionOpen));
    let token = nbi.initiate(Category::Put, 1).unwrap();
    let root = nbi.end_region().unwrap();
    table.complete_nbi(token, 1).unwrap();
    assert_eq!(table.test(&cache, root), Ok(true));
    assert!(!nbi.in_region());
}

/// The event of a region that has not ended, or of a thread's default scope, can only be invented.
#[test]
fn an_open_scope_has_no_event() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    let token = nbi.initiate(Category::Put, 1).unwrap();
    table.complete_nbi(token, 1).unwrap();
    let root = Event::from_raw(token.raw() & !(0b111 << 24) | (2 << 24));
    assert_eq!(table.test(&cache, root), Err(EventError::Stale(root)));
    assert_eq!(
        table.query_leaf(root, Category::Put),
        Err(EventError::Stale(root))
    );
    let leaf = Event::from_raw(token.raw());
    assert_eq!(table.test(&cache, leaf), Err(EventError::Stale(leaf)));
    let token = NbiToken::from_raw(root.raw());
    assert_eq!(
        table.complete_nbi(token, 1),
        Err(EventError::WrongKind(root))
    );
}

#[test]
fn completions_for_an_ended_thread_are_absorbed_and_its_scopes_used_again() {
    let table = HandleTable::with_limits(Limits {
        operations: 1,
        scopes: 2,
        batch: 0,
    });
    for _ in 0..3 {
        let cache = table.thread_cache();
        let nbi = table.nbi(&cache);
        let outstanding = nbi.initiate(Category::Put, 2).unwrap();
        let drained = nbi.initiate(Category::Am, 1).unwrap();
        table.complete_nbi(drained, 1).unwrap();
        nbi.begin_region().unwrap();
        let in_region = nbi.initiate(Category::Get, 1).unwrap();
        table.retire(cache);

        let next = table.thread_cache();
        let refused = table.nbi(&next).initiate(Category::Get, 1);
        assert!(matches!(refused, Err(EventError::Exhausted(_))));
        assert_eq!(table.complete_nbi(outstanding, 1), Ok(false));
        assert_eq!(table.complete_nbi(outstanding, 1), Ok(true));
        assert!(matches!(
            table.complete_nbi(outstanding, 1),
            Err(EventError::Stale(_))
        ));
        let own = table.nbi(&next).initiate(Category::Get, 1).unwrap();
        table.complete_nbi(in_region, 1).unwrap();
        table.complete_nbi(own, 1).unwrap();
        assert_eq!(table.nbi(&next).test(CategoryMask::ALL), Ok(true));
        table.retire(next);
    }
}

#[test]
fn a_region_outlives_the_thread_that_ended_it() {
    let table = HandleTable::new(100);
    let (cache, other) = (table.thread_cache(), table.thread_cache());
    table.nbi(&cache).begin_region().unwrap();
    let token = table.nbi(&cache).initiate(Category::Put, 1).unwrap();
    let root = table.nbi(&cache).end_region().unwrap();
    table.retire(cache);
    assert_eq!(table.test(&other, root), Ok(false));
    table.complete_nbi(token, 1).unwrap();
    assert_eq!(table.test(&other, root), Ok(true));
}

#[test]
fn outstanding_operations_have_a_limit() {
    let table = HandleTable::new(100);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    let token = nbi
        .initiate(Category::Put, NbiScope::MAX_OUTSTANDING)
        .unwrap();
    let refused = nbi.initiate(Category::Put, 1);
    assert!(matches!(refused, Err(EventError::CompletionLimit { .. })));
    table.complete_nbi(token, 1).unwrap();
    nbi.initiate(Category::Put, 1).unwrap();
    table
        .complete_nbi(token, NbiScope::MAX_OUTSTANDING)
        .unwrap();
    assert_eq!(nbi.test(CategoryMask::ALL), Ok(true));
}

#[test]
fn regions_have_a_limit() {
    let limits = Limits {
        scopes: 3,
        ..Limits::for_operations(100)
    };
    let table = HandleTable::with_limits(limits);
    let cache = table.thread_cache();
    let nbi = table.nbi(&cache);
    let mut regions = Vec::new();
    for _ in 0..3 {
        nbi.begin_region().unwrap();
        let token = nbi.initiate(Category::Put, 1).unwrap();
        regions.push((token, nbi.end_region().unwrap()));
    }
    nbi.begin_region().unwrap();
    assert!(matches!(
        nbi.initiate(Category::Put, 1),
        Err(EventError::Exhausted(_))
    ));
    let (token, root) = regions[1];
    table.complete_nbi(token, 1).unwrap();
    assert_eq!(table.test(&cache, root), Ok(true));
    assert!(nbi.initiate(Category::Put, 1).is_ok());
}
