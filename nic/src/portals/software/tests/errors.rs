//! Every call returns each error of its text once, and changes nothing.

use super::{ARENA, Pair, bind, exactly, memory};
use crate::portals::{
    Count, Counter, Descriptor, Entry, EntryHandle, Matching, NicError, PortalIndex, PortalOptions,
    Portals, Position, Queue,
};
use argonet_base::JobRank;
use core::ptr::NonNull;

#[test]
fn queues_and_counters() {
    let pair = Pair::new();
    let nic = &pair.b;
    refuses!(nic.queue_alloc(0), NicError::Invalid { .. });
    refuses!(nic.queue_alloc(257), NicError::Invalid { .. });
    let more: Vec<Queue> = (0..3).map(|_| nic.queue_alloc(5).unwrap()).collect();
    refuses!(nic.queue_alloc(5), NicError::NoSpace { limit: 4, .. });
    nic.queue_free(more[0]).unwrap();
    refuses!(nic.queue_free(more[0]), NicError::BadHandle { .. });
    refuses!(nic.queue_get(more[0]), NicError::BadHandle { .. });
    refuses!(
        nic.queue_poll(&[more[1], more[0]]),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.queue_get(Queue::from_bits(u64::MAX)),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.queue_free(Queue::from_bits(u64::MAX)),
        NicError::BadHandle { .. }
    );
    // The portal has it; then an entry, then a descriptor.
    refuses!(nic.queue_free(pair.target_queue), NicError::InUse { .. });
    let queue = Some(more[1]);
    let entry = pair.attach(
        Position::Tail,
        exactly(1),
        0,
        8,
        Entry {
            queue,
            ..Entry::OPEN
        },
    );
    refuses!(nic.queue_free(more[1]), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    let bound = bind(
        nic,
        0,
        8,
        Descriptor {
            queue,
            ..Descriptor::SILENT
        },
    );
    refuses!(nic.queue_free(more[1]), NicError::InUse { .. });
    nic.release(bound).unwrap();
    nic.queue_free(more[1]).unwrap();

    let counters: Vec<Counter> = (0..4).map(|_| nic.counter_alloc().unwrap()).collect();
    refuses!(nic.counter_alloc(), NicError::NoSpace { limit: 4, .. });
    let count = Some(Count {
        counter: counters[0],
        bytes: false,
    });
    let entry = pair.attach(
        Position::Tail,
        exactly(1),
        0,
        8,
        Entry {
            count,
            ..Entry::OPEN
        },
    );
    refuses!(nic.counter_free(counters[0]), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    let bound = bind(
        nic,
        0,
        8,
        Descriptor {
            count,
            ..Descriptor::SILENT
        },
    );
    refuses!(nic.counter_free(counters[0]), NicError::InUse { .. });
    nic.release(bound).unwrap();
    nic.counter_free(counters[0]).unwrap();
    refuses!(nic.counter_free(counters[0]), NicError::BadHandle { .. });
    refuses!(nic.counter_get(counters[0]), NicError::BadHandle { .. });
    refuses!(
        nic.counter_set(counters[0], 1, 1),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.counter_get(Counter::from_bits(9)),
        NicError::BadHandle { .. }
    );
}

#[test]
fn portals() {
    let pair = Pair::new();
    let nic = &pair.b;
    let plain = PortalOptions::default();
    let flow = PortalOptions { flow_control: true };
    refuses!(nic.portal_alloc(flow, None, None), NicError::Invalid { .. });
    let gone = Some(Queue::from_bits(1 << 32));
    refuses!(
        nic.portal_alloc(plain, gone, None),
        NicError::BadHandle { .. }
    );
    refuses!(
        nic.portal_alloc(plain, None, Some(PortalIndex(4))),
        NicError::BadPortal { .. }
    );
    refuses!(
        nic.portal_alloc(plain, None, Some(pair.portal)),
        NicError::InUse { .. }
    );
    let wished = nic.portal_alloc(plain, None, Some(PortalIndex(3))).unwrap();
    assert_eq!(wished, PortalIndex(3));
    for _ in 0..2 {
        nic.portal_alloc(plain, None, None).unwrap();
    }
    refuses!(
        nic.portal_alloc(plain, None, None),
        NicError::NoSpace { limit: 4, .. }
    );
    let entry = pair.attach(Position::Tail, exactly(1), 0, 8, Entry::OPEN);
    refuses!(nic.portal_free(pair.portal), NicError::InUse { .. });
    nic.unlink(entry).unwrap();
    nic.portal_free(pair.portal).unwrap();
    refuses!(nic.portal_free(pair.portal), NicError::BadPortal { .. });
    refuses!(
        nic.portal_enable(pair.portal, true),
        NicError::BadPortal { .. }
    );
    refuses!(nic.portal_free(PortalIndex(4)), NicError::BadPortal { .. });
}

#[test]
fn entries() {
    let pair = Pair::new();
    let nic = &pair.b;
    let attach = |portal, position, matching: Matching, at: NonNull<u8>, len, entry| {
        // SAFETY: memory that is not refused is in the buffers, which live as long as the
        // interface.
        unsafe { nic.attach(portal, position, matching, at, len, entry) }
    };
    let (at, any) = (memory(nic, 0), exactly(1));
    let tail = |entry| attach(pair.portal, Position::Tail, any, at, 8, entry);
    let open_entry = Entry::OPEN;
    refuses!(
        attach(PortalIndex(1), Position::Tail, any, at, 8, open_entry),
        NicError::BadPortal { .. }
    );
    refuses!(
        attach(PortalIndex(9), Position::Tail, any, at, 8, open_entry),
        NicError::BadPortal { .. }
    );
    let gone = Some(Queue::from_bits(3));
    refuses!(
        tail(Entry {
            queue: gone,
            ..open_entry
        }),
        NicError::BadHandle { .. }
    );
    let count = Some(Count {
        counter: Counter::from_bits(0),
        bytes: true,
    });
    refuses!(
        tail(Entry {
            count,
            ..open_entry
        }),
        NicError::BadHandle { .. }
    );
    let threshold = Some(0);
    refuses!(
        tail(Entry {
            threshold,
            ..open_entry
        }),
        NicError::Invalid { .. }
    );
    let (puts, gets) = (false, false);
    refuses!(
        tail(Entry {
            puts,
            gets,
            ..open_entry
        }),
        NicError::Invalid { .. }
    );
    let source = Some(JobRank(2));
    let of_no_rank = Matching { source, ..any };
    refuses!(
        attach(pair.portal, Position::Tail, of_no_rank, at, 8, open_entry),
        NicError::BadRank { .. }
    );
    refuses!(
        attach(pair.portal, Position::Tail, any, at, ARENA + 1, open_entry),
        NicError::NotShared { .. }
    );
    let own = Box::new(5_u64);
    let private = NonNull::from(&*own).cast();
    refuses!(
        attach(pair.portal, Position::Tail, any, private, 8, open_entry),
        NicError::NotShared { .. }
    );
    let entry = tail(open_entry).unwrap();
    let beside = Position::After(EntryHandle::from_bits(u64::MAX));
    refuses!(
        attach(pair.portal, beside, any, at, 8, open_entry),
        NicError::BadHandle { .. }
    );
    let other = nic
        .portal_alloc(PortalOptions::default(), None, None)
        .unwrap();
    refuses!(
        attach(other, Position::Before(entry), any, at, 8, open_entry),
        NicError::Invalid { .. }
    );
    for _ in 1..64 {
        tail(open_entry).unwrap();
    }
    refuses!(tail(open_entry), NicError::NoSpace { limit: 64, .. });
    nic.unlink(entry).unwrap();
    refuses!(nic.unlink(entry), NicError::BadHandle { .. });
    refuses!(nic.carried(entry), NicError::BadHandle { .. });
    tail(open_entry).unwrap();
}
