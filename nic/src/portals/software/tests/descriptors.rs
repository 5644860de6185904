//! Descriptors that come and go while operations use them.

use super::super::bound::Table;
use super::*;
use crate::portals::{Ack, NicError};
use core::sync::atomic::{AtomicU64, Ordering};

const RANK: JobRank = JobRank(3);

/// Memory of a descriptor, of which no byte is accessed.
fn nowhere() -> NonNull<u8> {
    NonNull::dangling()
}

fn limited(threshold: u32) -> Descriptor {
    Descriptor {
        threshold: Some(threshold),
        auto_unlink: true,
        ..Descriptor::SILENT
    }
}

#[test]
fn a_released_handle_is_not_that_of_a_later_descriptor() {
    let table = Table::new(RANK, 1);
    let old = table.bind(nowhere(), 8, Descriptor::SILENT).unwrap();
    table.release(old).unwrap();
    let new = table.bind(nowhere(), 16, Descriptor::SILENT).unwrap();
    refuses!(
        table.begin(old, part(0, 8)).map(drop),
        NicError::BadHandle { .. }
    );
    refuses!(table.release(old), NicError::BadHandle { .. });
    refuses!(table.len(old), NicError::BadHandle { .. });
    assert_eq!(table.len(new).unwrap(), 16);
    // A refused operation is not under way.
    table.release(new).unwrap();
}

#[test]
fn operations_under_way_keep_their_descriptor() {
    let table = Table::new(RANK, 1);
    let handle = table.bind(nowhere(), 8, Descriptor::SILENT).unwrap();
    let [first, second] = [(); 2].map(|()| table.begin(handle, part(0, 8)).unwrap());
    assert_ne!(first.link, second.link);
    for local in [first, second] {
        refuses!(table.release(handle), NicError::InUse { .. });
        assert!(!table.end(&local, 8));
    }
    assert_eq!(table.counts(handle).unwrap(), (2, 16));
    table.release(handle).unwrap();
}

/// Threads begin as many operations as they can; as many as may be do, the last to end releases,
/// and the place is used again.
#[test]
fn only_the_last_of_many_threads_releases() {
    const TIMES: u32 = 500;
    let table = Table::new(RANK, 2);
    for round in 0..TIMES {
        let most = 1 + round % 7;
        let handle = table.bind(nowhere(), 8, limited(most)).unwrap();
        let (begun, released) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Ok(local) = table.begin(handle, part(0, 8)) {
                        begun.fetch_add(1, Ordering::Relaxed);
                        let last = table.end(&local, 0);
                        released.fetch_add(last.into(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(begun.into_inner(), most.into());
        assert_eq!(released.into_inner(), 1);
        refuses!(table.release(handle), NicError::BadHandle { .. });
    }
    let places = [(); 2].map(|()| table.bind(nowhere(), 8, Descriptor::SILENT).is_ok());
    assert_eq!(places, [true; 2]);
}

#[test]
fn a_queue_made_anew_has_no_old_events() {
    let pair = Pair::new();
    pair.attach(Position::Tail, exactly(1), 0, 4096, Entry::OPEN);
    let put = |from| {
        let target = pair.target(1, 0);
        pair.a
            .put_region(from, part(0, 8), Ack::Event, target, 0)
            .unwrap();
    };
    // In one place: less than once around, and more; some events are left.
    for taken in [2, 7] {
        let queue = pair.a.queue_alloc(4).unwrap();
        assert!(pair.a.queue_is_empty(queue).unwrap());
        assert_eq!(pair.a.queue_get(queue).unwrap(), None);
        let descriptor = Descriptor {
            queue: Some(queue),
            ..Descriptor::SILENT
        };
        let from = bind(&pair.a, 0, 64, descriptor);
        for _ in 0..taken {
            put(from);
            assert_eq!(kinds(&pair.a, queue), [EventKind::Ack]);
        }
        put(from);
        pair.a.release(from).unwrap();
        pair.a.queue_free(queue).unwrap();
    }
    let queue = pair.a.queue_alloc(4).unwrap();
    assert_eq!(pair.a.queue_get(queue).unwrap(), None);
}
