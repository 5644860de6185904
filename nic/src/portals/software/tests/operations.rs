//! Puts and gets at places, atomic operations.

use super::{ARENA, END, Pair, bind, drain, exactly, memory, part, read, write};
use crate::portals::{
    Ack, AtomicKind, AtomicOp, Descriptor, Entry, EventKind, Managed, Outcome, Portals, Position,
    Register,
};
use argonet_base::JobRank;

#[test]
fn data_goes_where_the_initiator_says() {
    let pair = Pair::new();
    pair.attach(Position::Tail, exactly(1), 4096, ARENA / 2, Entry::OPEN);
    for (len, offset) in [(1, 0), (8, 3), (100, 5000), (4096, 1), (300_000, 70_001)] {
        let data: Vec<u8> = (0..len).map(|n| (n % 251) as u8 + 1).collect();
        write(&pair.a, 17, &data);
        pair.a
            .put_region(
                pair.from,
                part(17, len),
                Ack::Event,
                pair.target(1, offset),
                0,
            )
            .unwrap();
        assert_eq!(read(&pair.b, 4096 + offset, len as usize), data);
        write(&pair.a, 17, &vec![0; len as usize]);
        pair.a
            .get_region(pair.from, part(17, len), pair.target(1, offset))
            .unwrap();
        assert_eq!(read(&pair.a, 17, len as usize), data);
        drain(&pair.a, pair.queue);
    }
    // Nothing but the data was written.
    assert_eq!(read(&pair.b, 0, 4096), vec![0; 4096]);
    assert_eq!(pair.a.status(Register::Direct), 10);
}

#[test]
fn a_rank_is_a_target_of_its_own() {
    let pair = Pair::new();
    let portal = pair
        .a
        .portal_alloc(crate::portals::PortalOptions::default(), None, None)
        .unwrap();
    let base = memory(&pair.a, 0);
    // SAFETY: buffers live as long as the interface and are touched by `bulk` only.
    unsafe {
        pair.a
            .attach(portal, Position::Tail, exactly(1), base, 9000, Entry::OPEN)
    }
    .unwrap();
    write(&pair.a, 0, &[7; 6000]);
    let target = crate::portals::Target {
        rank: JobRank(0),
        portal,
        bits: 1,
        offset_bytes: 100,
    };
    // Source and destination overlap.
    pair.a
        .put_region(pair.from, part(0, 6000), Ack::Event, target, 0)
        .unwrap();
    assert_eq!(read(&pair.a, 0, 6100), [7; 6100]);
}

#[test]
fn atomic_operations_change_and_fetch() {
    let pair = Pair::new();
    // One entry that reports nothing, one that reports ends: both ways to a target.
    let reporting = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 64, 64, Entry::OPEN);
    pair.attach(Position::Tail, exactly(2), 64, 64, reporting);
    let answer = bind(
        &pair.a,
        1024,
        64,
        Descriptor {
            events: END,
            queue: Some(pair.queue),
            ..Descriptor::SILENT
        },
    );
    let words =
        |values: &[u64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_ne_bytes()).collect() };
    write(&pair.b, 64, &words(&[10, 20, 30]));
    write(&pair.a, 0, &words(&[1, 2]));
    for bits in [1, 2] {
        let (target, sum) = (pair.target(bits, 8), AtomicOp::Sum);
        pair.a
            .atomic(
                pair.from,
                part(0, 16),
                Ack::Event,
                target,
                3,
                sum,
                AtomicKind::U64,
            )
            .unwrap();
        assert_eq!(drain(&pair.a, pair.queue)[2].moved_bytes, 16);
    }
    assert_eq!(read(&pair.b, 64, 24), words(&[10, 22, 34]));
    let fetch = |bits, op, compare| {
        let target = pair.target(bits, 0);
        let kind = AtomicKind::U64;
        pair.a
            .fetch_atomic(
                answer,
                8,
                pair.from,
                part(0, 8),
                target,
                0,
                op,
                kind,
                compare,
            )
            .unwrap();
        let events = drain(&pair.a, pair.queue);
        let last = events.last().unwrap();
        assert_eq!(
            (last.kind, last.outcome),
            (EventKind::ReplyEnd, Outcome::Done)
        );
        let old = read(&pair.a, 1032, 8);
        let new = read(&pair.b, 64, 8);
        let number = |b: Vec<u8>| u64::from_ne_bytes(b.try_into().unwrap());
        (number(old), number(new))
    };
    assert_eq!(fetch(1, AtomicOp::Sum, 0), (10, 11));
    assert_eq!(fetch(2, AtomicOp::CompareSwap, 10), (11, 11));
    assert_eq!(fetch(2, AtomicOp::CompareSwap, 11), (11, 1));
    let kinds: Vec<_> = drain(&pair.b, pair.target_queue)
        .iter()
        .map(|e| e.kind)
        .collect();
    assert_eq!(kinds, [EventKind::AtomicEnd; 3]);
    let counted = (
        pair.a.status(Register::Direct),
        pair.a.status(Register::Matched),
    );
    assert_eq!(counted, (2, 3));
}

#[test]
fn an_entry_that_does_not_suit_is_passed_over() {
    let pair = Pair::new();
    let local = Entry {
        managed: Managed::Local { min_free_bytes: 0 },
        ..Entry::OPEN
    };
    // Not aligned for elements of 8 bytes; then one that is; gets only pass the one for puts.
    pair.attach(Position::Tail, exactly(1), 68, 64, local);
    pair.attach(Position::Tail, exactly(1), 256, 64, Entry::OPEN);
    let target = pair.target(1, 0);
    write(&pair.a, 0, &5_u64.to_ne_bytes());
    pair.a
        .atomic(
            pair.from,
            part(0, 8),
            Ack::Event,
            target,
            0,
            AtomicOp::Sum,
            AtomicKind::U64,
        )
        .unwrap();
    assert_eq!(read(&pair.b, 256, 8), 5_u64.to_ne_bytes());
    assert_eq!(read(&pair.b, 68, 8), [0; 8]);
}
