//! Calls return with any bytes of a peer in the file: with garbage, an error or an outcome, but no
//! panic, and no access outside of the file.

use super::super::records::entry;
use super::{END, Pair, drain, exactly, part};
use crate::portals::{
    Ack, Entry, EntryHandle, Event, EventKind, NicError, Outcome, Portals, Position, Register,
};
use argonet_base::JobRank;
use proptest::prelude::*;

/// Words of interesting values.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![
            0,
            1,
            2,
            63,
            64,
            65,
            u64::MAX,
            1 << 32,
            1 << 63,
            0xffff_ffff
        ]),
        any::<u64>(),
        (0..70_u64, 0..70_u64).prop_map(|(low, high)| high << 32 | low),
    ]
}

proptest! {
    #[test]
    fn garbage_is_survived(
        writes in prop::collection::vec((0..2_u32, any::<prop::sample::Index>(), value()), 1..40),
        len in prop::sample::select(vec![0_u64, 8, 5000]),
    ) {
        let pair = Pair::new();
        let entry = Entry { events: END, queue: Some(pair.target_queue), ..Entry::OPEN };
        let handle = pair.attach(Position::Tail, exactly(1), 0, 4096, entry);
        pair.attach(Position::Tail, exactly(2), 0, 4096, Entry::OPEN);
        let layout = pair.a.layout();
        for (place, index, value) in writes {
            // Tables of the interface and events, but not the lock: to wait for the rank that a
            // wrong lock names is right.
            let words = (layout.events_offset() + 0x400 - 0x80) / 8;
            let at = layout.area(place) + 0x80 + index.index(words as usize) as u64 * 8;
            pair.a.poke(at, value);
        }
        for bits in [1, 2] {
            let target = pair.target(bits, 0);
            let _ = pair.a.put_region(pair.from, part(0, len), Ack::Event, target, 0);
            let _ = pair.a.get_region(pair.from, part(0, len), target);
        }
        for _ in 0..20 {
            let _ = pair.a.queue_get(pair.queue);
            let _ = pair.b.queue_get(pair.target_queue);
        }
        let _ = pair.b.unlink(handle);
        let _ = pair.b.unlink(EntryHandle::from_bits(1));
        let _ = pair.b.portal_enable(pair.portal, false);
        let _ = pair.b.counter_alloc();
        let _ = pair.b.queue_free(pair.target_queue);
    }
}

#[test]
fn a_list_without_an_end_is_reported() {
    let pair = Pair::new();
    let handle = pair.attach(Position::Tail, exactly(1), 0, 4096, Entry::OPEN);
    let layout = pair.a.layout();
    // The entry follows itself.
    let links = layout.entry(1, handle.index) + super::super::records::entry::LINKS;
    pair.a.poke(links, u64::from(handle.index) + 1);
    pair.a
        .put_region(pair.from, part(0, 8), Ack::Event, pair.target(2, 0), 0)
        .unwrap();
    let last = *drain(&pair.a, pair.queue).last().unwrap();
    assert_eq!(last.outcome, Outcome::Corrupt);
}

#[test]
fn a_lock_without_an_owner_is_broken() {
    let pair = Pair::new();
    pair.attach(
        Position::Tail,
        exactly(1),
        0,
        4096,
        Entry {
            queue: Some(pair.target_queue),
            ..Entry::OPEN
        },
    );
    pair.a.poke(pair.a.layout().lock(1), u64::MAX);
    pair.a
        .put_region(pair.from, part(0, 8), Ack::Event, pair.target(1, 0), 0)
        .unwrap();
    assert_eq!(
        drain(&pair.a, pair.queue).last().unwrap().outcome,
        Outcome::Done
    );
}

#[test]
fn an_event_of_no_kind_is_an_error_once() {
    let pair = Pair::new();
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, 4096, entry);
    pair.a
        .put_region(pair.from, part(0, 8), Ack::None, pair.target(1, 0), 0)
        .unwrap();
    // The first event, as its position says.
    let first = pair.a.layout().event(1, pair.target_queue.index, 0);
    pair.a.poke(first, 1 << 32 | 0xff);
    let first = pair.b.queue_get(pair.target_queue);
    assert!(matches!(first, Err(NicError::Corrupt { .. })), "{first:?}");
    assert_eq!(pair.b.queue_get(pair.target_queue).unwrap(), None);
}

#[test]
fn an_announcement_of_a_living_rank_keeps_its_entry() {
    let pair = Pair::new();
    let entry = pair.attach(Position::Tail, exactly(1), 0, 4096, Entry::OPEN);
    let place = pair.a.layout().slot(0, 3);
    // As `announcements` writes it: in use, of rank 1, the entry.
    pair.a
        .poke(place, 1 << 63 | 1 << 32 | entry.to_bits() & 0xffff);
    let busy = pair.b.unlink(entry);
    assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
    // Nothing has changed, and the short way is open.
    let put = || {
        let target = pair.target(1, 0);
        pair.a
            .put_region(pair.from, part(0, 8), Ack::Event, target, 0)
            .unwrap();
        drain(&pair.a, pair.queue).last().unwrap().outcome
    };
    assert_eq!((put(), pair.a.status(Register::Direct)), (Outcome::Done, 1));
    pair.a.poke(place, 0);
    pair.b.unlink(entry).unwrap();
    assert_eq!(
        (put(), pair.a.status(Register::Direct)),
        (Outcome::NoMatch, 1)
    );
}

#[test]
fn an_entry_leaves_after_its_last_operation_although_a_peer_died() {
    let pair = Pair::new();
    let entry = Entry {
        threshold: Some(1),
        auto_unlink: true,
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    let handle = pair.attach(Position::Tail, exactly(1), 0, 4096, entry);
    let layout = pair.a.layout();
    // As if rank 0 had another operation under way: counted by the entry, announced in its own
    // interface.
    pair.a
        .poke(layout.entry(1, handle.index) + entry::PENDING, 1);
    let place = layout.slot(0, 5);
    pair.a
        .poke(place + 8, u64::from(u8::from(EventKind::PutEnd)));
    pair.a
        .poke(place, 3 << 62 | 1 << 32 | u64::from(handle.index));
    pair.a
        .put_region(pair.from, part(0, 8), Ack::None, pair.target(1, 0), 0)
        .unwrap();
    let outcomes =
        |events: Vec<Event>| -> Vec<_> { events.iter().map(|e| (e.kind, e.outcome)).collect() };
    assert_eq!(
        outcomes(drain(&pair.b, pair.target_queue)),
        [(EventKind::PutEnd, Outcome::Done)]
    );
    let busy = pair.b.unlink(handle);
    assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
    // A number that is no process's.
    pair.a.poke(layout.joined(0), u64::MAX);
    pair.b.peer_died(JobRank(0)).unwrap();
    let ended = [
        (EventKind::PutEnd, Outcome::PeerDied),
        (EventKind::Unlink, Outcome::Done),
    ];
    assert_eq!(outcomes(drain(&pair.b, pair.target_queue)), ended);
    assert!(matches!(
        pair.b.unlink(handle),
        Err(NicError::BadHandle { .. })
    ));
}
