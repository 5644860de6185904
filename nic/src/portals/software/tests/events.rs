//! Events: their order, thresholds, entries that leave by themselves, offsets, full queues, flow
//! control.

use super::super::FaultRules;
use super::{BOTH, END, Pair, bind, drain, exactly, kinds, part, read, write};
use crate::portals::{
    Ack, Count, Descriptor, Entry, EventKind, Events, Managed, NicError, Outcome, PortalOptions,
    Portals, Position, Register,
};
use EventKind::{Ack as Acked, PutEnd, PutStart, ReplyEnd, ReplyStart, SendEnd, SendStart, Unlink};

/// A receive buffer as the conduit has them: takes 256 bytes, a message of at most 100 at a time.
fn receive(pair: &Pair) -> Entry {
    Entry {
        gets: false,
        managed: Managed::Local {
            min_free_bytes: 100,
        },
        auto_unlink: true,
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    }
}

#[test]
fn the_events_of_an_operation_are_in_order() {
    let pair = Pair::new();
    let entry = Entry {
        threshold: Some(2),
        auto_unlink: true,
        events: BOTH,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    // Below and above the size up to which data is moved under the lock.
    for len in [8, 100_000] {
        pair.attach(Position::Tail, exactly(1), 0, ARENA_PART, entry);
        let a = &pair.a;
        a.put_region(pair.from, part(0, len), Ack::Event, pair.target(1, 0), 5)
            .unwrap();
        assert_eq!(kinds(a, pair.queue), [SendStart, SendEnd, Acked]);
        let events = drain(&pair.b, pair.target_queue);
        assert_eq!(
            events.iter().map(|e| e.kind).collect::<Vec<_>>(),
            [PutStart, PutEnd]
        );
        assert!(
            events
                .iter()
                .all(|e| e.header == 5 && e.requested_bytes == len)
        );
        a.get_region(pair.from, part(0, len), pair.target(1, 0))
            .unwrap();
        assert_eq!(kinds(a, pair.queue), [ReplyStart, ReplyEnd]);
        let get = [EventKind::GetStart, EventKind::GetEnd, Unlink];
        assert_eq!(kinds(&pair.b, pair.target_queue), get);
        a.put_region(pair.from, part(0, len), Ack::Event, pair.target(1, 0), 0)
            .unwrap();
        assert_eq!(drain(a, pair.queue)[2].outcome, Outcome::NoMatch);
    }
    assert_eq!(pair.b.status(Register::Drops), 2);
}

const ARENA_PART: u64 = super::ARENA / 2;

// spec P1, spec P8
#[test]
fn receive_buffers_fill_in_order_and_leave() {
    let pair = Pair::new();
    let first = pair.attach(Position::Tail, exactly(1), 0, 256, receive(&pair));
    let second = pair.attach(Position::Tail, exactly(1), 256, 256, receive(&pair));
    for n in 0..4_u8 {
        write(&pair.a, 0, &[n + 1; 80]);
        // The initiator's offset counts for nothing.
        let target = pair.target(1, 12345);
        pair.a
            .put_region(pair.from, part(0, 80), Ack::None, target, u64::from(n))
            .unwrap();
    }
    let events = drain(&pair.b, pair.target_queue);
    let seen: Vec<_> = events
        .iter()
        .map(|e| (e.kind, e.object, e.offset_bytes))
        .collect();
    let (first, second) = (first.to_bits(), second.to_bits());
    let expected = [
        (PutEnd, first, 0),
        (PutEnd, first, 80),
        // 96 bytes are left.
        (Unlink, first, 80),
        (PutEnd, second, 0),
        (PutEnd, second, 80),
        (Unlink, second, 80),
    ];
    assert_eq!(seen, expected);
    for (at, n) in [(0, 1), (80, 2), (256, 3), (336, 4)] {
        assert_eq!(read(&pair.b, at, 80), [n; 80]);
    }
}

// spec P1
#[test]
fn a_catch_basin_stays_behind_buffers_that_come_back() {
    let pair = Pair::new();
    let basin = Entry {
        gets: false,
        truncate: true,
        events: END,
        queue: Some(pair.target_queue),
        user: 99,
        ..Entry::OPEN
    };
    let basin = pair.attach(Position::Tail, exactly(1), 0, 0, basin);
    for _ in 0..3 {
        pair.attach(Position::Before(basin), exactly(1), 0, 256, receive(&pair));
        for _ in 0..3 {
            pair.a
                .put_region(pair.from, part(0, 80), Ack::None, pair.target(1, 0), 0)
                .unwrap();
        }
        let events = drain(&pair.b, pair.target_queue);
        assert_eq!(
            events.iter().map(|e| e.kind).collect::<Vec<_>>(),
            [PutEnd, PutEnd, Unlink, PutEnd]
        );
        let last = events[3];
        assert_eq!(
            (last.user, last.moved_bytes, last.requested_bytes),
            (99, 0, 80)
        );
    }
}

#[test]
fn a_full_queue_reports_the_number_of_missing_events_and_goes_on() {
    let pair = Pair::with(FaultRules::default(), PortalOptions::default(), 4);
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, 256, entry);
    let put = |header| {
        pair.a
            .put_region(pair.from, part(0, 8), Ack::None, pair.target(1, 0), header)
            .unwrap();
    };
    (0..7).for_each(put);
    let headers = |count: usize| -> Vec<u64> {
        (0..count)
            .map(|_| pair.b.queue_get(pair.target_queue).unwrap().unwrap().header)
            .collect()
    };
    assert_eq!(headers(2), [0, 1]);
    // Room again, behind the missing events.
    put(7);
    assert_eq!(headers(2), [2, 3]);
    let missing = pair.b.queue_get(pair.target_queue);
    assert!(
        matches!(missing, Err(NicError::EventsDropped { count: 3, .. })),
        "{missing:?}"
    );
    assert_eq!(headers(1), [7]);
    assert_eq!(pair.b.queue_get(pair.target_queue).unwrap(), None);
    assert_eq!(pair.b.status(Register::EventsDropped), 3);
    // Its data was not dropped.
    assert_eq!(pair.b.status(Register::Drops), 0);
}

#[test]
fn flow_control_gives_back_messages_without_room() {
    let options = PortalOptions { flow_control: true };
    let pair = Pair::with(FaultRules::default(), options, 8);
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, ARENA_PART, entry);
    let put = |len, bits| {
        pair.a
            .put_region(pair.from, part(0, len), Ack::Event, pair.target(bits, 0), 0)
            .unwrap();
        drain(&pair.a, pair.queue).last().unwrap().outcome
    };
    let fill = || {
        let mut done = 0;
        loop {
            // Long ones keep room for their last event.
            match put(if done % 2 == 0 { 8 } else { 9000 }, 1) {
                Outcome::Done => done += 1,
                other => return (done, other),
            }
            assert!(done < 100, "nothing is ever given back");
        }
    };
    let (done, full) = fill();
    assert_eq!(full, Outcome::Disabled);
    assert_eq!(put(8, 1), Outcome::Refused);
    let kinds_seen = kinds(&pair.b, pair.target_queue);
    assert_eq!(kinds_seen[..done], vec![PutEnd; done]);
    assert_eq!(kinds_seen[done..], [EventKind::Disabled]);
    pair.b.portal_enable(pair.portal, true).unwrap();
    // All room that was kept is there again.
    assert_eq!(fill(), (done, Outcome::Disabled));
    assert_eq!(kinds(&pair.b, pair.target_queue).len(), done + 1);
    pair.b.portal_enable(pair.portal, true).unwrap();
    assert_eq!(put(8, 1), Outcome::Done);
    assert_eq!(put(8, 2), Outcome::Disabled);
    assert_eq!(
        kinds(&pair.b, pair.target_queue),
        [PutEnd, EventKind::Disabled]
    );
    assert_eq!(pair.b.status(Register::EventsDropped), 0);
}

#[test]
fn acknowledgements_are_asked_for_and_permitted() {
    let pair = Pair::new();
    let put = |ack, bits| {
        pair.a
            .put_region(pair.from, part(0, 8), ack, pair.target(bits, 0), 0)
            .unwrap();
        kinds(&pair.a, pair.queue)
    };
    pair.attach(Position::Tail, exactly(1), 0, 256, Entry::OPEN);
    let mute = Entry {
        ack_disable: true,
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(2), 0, 256, mute);
    assert_eq!(put(Ack::Event, 1), [SendStart, SendEnd, Acked]);
    assert_eq!(put(Ack::None, 1), [SendStart, SendEnd]);
    assert_eq!(put(Ack::Event, 2), [SendStart, SendEnd]);
    let b = pair.b.status(Register::Direct) + pair.b.status(Register::Matched);
    assert_eq!((pair.a.status(Register::Direct), b), (3, 0));
}

#[test]
fn counters_count_operations_or_bytes_and_failures() {
    let pair = Pair::new();
    let counter = pair.a.counter_alloc().unwrap();
    let descriptor = Descriptor {
        count: Some(Count {
            counter,
            bytes: true,
        }),
        ..Descriptor::SILENT
    };
    let from = bind(&pair.a, 0, 256, descriptor);
    let arrivals = pair.b.counter_alloc().unwrap();
    let entry = Entry {
        count: Some(Count {
            counter: arrivals,
            bytes: false,
        }),
        ..Entry::OPEN
    };
    let entry = pair.attach(Position::Tail, exactly(1), 0, 256, entry);
    for bits in [1, 1, 2] {
        pair.a
            .put_region(from, part(0, 40), Ack::Count, pair.target(bits, 0), 0)
            .unwrap();
    }
    pair.a
        .get_region(from, part(0, 8), pair.target(1, 0))
        .unwrap();
    assert_eq!(pair.a.counter_get(counter).unwrap(), (88, 1));
    assert_eq!(pair.b.counter_get(arrivals).unwrap(), (3, 0));
    let carried = pair.b.carried(entry).unwrap();
    assert_eq!((carried.puts, carried.gets, carried.bytes), (2, 1, 88));
    assert_eq!(pair.a.begun(from).unwrap(), (4, 88));
    pair.b.counter_set(arrivals, 7, 8).unwrap();
    assert_eq!(pair.b.counter_get(arrivals).unwrap(), (7, 8));
}

#[test]
fn a_descriptor_with_a_threshold_is_released_after_its_last_answer() {
    let pair = Pair::new();
    pair.attach(Position::Tail, exactly(1), 0, 256, Entry::OPEN);
    let descriptor = Descriptor {
        threshold: Some(2),
        auto_unlink: true,
        events: Events {
            start: false,
            end: false,
        },
        queue: Some(pair.queue),
        ..Descriptor::SILENT
    };
    let once = bind(&pair.a, 0, 256, descriptor);
    pair.a
        .put_region(once, part(0, 8), Ack::Event, pair.target(1, 0), 0)
        .unwrap();
    assert_eq!(kinds(&pair.a, pair.queue), [Acked]);
    pair.a
        .put_region(once, part(0, 8), Ack::Event, pair.target(1, 0), 0)
        .unwrap();
    assert_eq!(kinds(&pair.a, pair.queue), [Acked, Unlink]);
    let gone = pair.a.release(once);
    assert!(matches!(gone, Err(NicError::BadHandle { .. })));
}
