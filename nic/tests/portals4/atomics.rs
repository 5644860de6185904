//! Cases: atomic operations and counters.

use super::cases::{PORTAL, reporting, source, target};
use super::group::{Member, exactly, part, to};
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Count, Descriptor, Entry, EventKind, NicError, Outcome,
    PortalOptions, Portals,
};
use std::time::Instant;

pub(super) fn atomics<N: Portals>(m: &mut Member<N>) {
    let word = |m: &Member<N>, at| u64::from_ne_bytes(m.read(at, 8).try_into().expect("8"));
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        m.attach(PORTAL, exactly(1), (0, 64), reporting(m, queue));
        m.write(0, &10_u64.to_ne_bytes());
        m.write(8, &2.5_f64.to_ne_bytes());
        (m.barrier)();
        (m.barrier)();
        assert_eq!(word(m, 0), 99);
        assert_eq!(f64::from_bits(word(m, 8)), -1.5);
        for _ in 0..6 {
            assert_eq!(m.next(queue).kind, EventKind::AtomicEnd);
        }
        return;
    }
    let (queue, from) = source(m);
    m.write(0, &5_u64.to_ne_bytes());
    m.write(8, &(-1.5_f64).to_ne_bytes());
    m.write(16, &99_u64.to_ne_bytes());
    (m.barrier)();
    let atomic = |at, offset, op, kind| {
        let target = to(PORTAL, 1, offset);
        let begun = m
            .nic
            .atomic(from, part(at, 8), Ack::Event, target, 0, op, kind);
        begun.expect("atomic");
        assert_eq!(m.next(queue).kind, EventKind::SendEnd);
        let ack = m.next(queue);
        assert_eq!((ack.kind, ack.outcome), (EventKind::Ack, Outcome::Done));
    };
    atomic(0, 0, AtomicOp::Sum, AtomicKind::U64);
    atomic(8, 8, AtomicOp::Min, AtomicKind::F64);
    let fetch = |at, op, compare| {
        let (kind, target) = (AtomicKind::U64, to(PORTAL, 1, 0));
        let whole = part(at, 8);
        let begun = m
            .nic
            .fetch_atomic(from, 1024, from, whole, target, 0, op, kind, compare);
        begun.expect("fetch");
        // The order of the two is not promised.
        let kinds = [m.next(queue).kind, m.next(queue).kind];
        assert!(kinds.contains(&EventKind::SendEnd) && kinds.contains(&EventKind::ReplyEnd));
        word(m, 1024)
    };
    assert_eq!(fetch(0, AtomicOp::Xor, 0), 15);
    assert_eq!(fetch(0, AtomicOp::Swap, 0), 10);
    assert_eq!(fetch(16, AtomicOp::CompareSwap, 4), 5);
    assert_eq!(fetch(16, AtomicOp::CompareSwap, 5), 5);
    (m.barrier)();
}

pub(super) fn counters<N: Portals>(m: &mut Member<N>) {
    let counter = m.nic.counter_alloc().expect("counter");
    let read = |m: &Member<N>| m.nic.counter_get(counter).expect("counter");
    let until = |m: &Member<N>, wanted| {
        let begun = Instant::now();
        while read(m) != wanted {
            assert!(
                begun.elapsed().as_secs() < 20,
                "{:?} is not {wanted:?}",
                read(m)
            );
            std::thread::yield_now();
        }
    };
    let count = |bytes| Some(Count { counter, bytes });
    if m.is_target() {
        target(m, PortalOptions::default(), 64);
        let entry = Entry {
            count: count(false),
            ..Entry::OPEN
        };
        let entry = m.attach(PORTAL, exactly(1), (0, 256), entry);
        (m.barrier)();
        (m.barrier)();
        until(m, (3, 0));
        let busy = m.nic.counter_free(counter);
        assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
        m.nic.unlink(entry).expect("unlink");
        m.nic.counter_free(counter).expect("counter");
        return;
    }
    let from = m.bind(Descriptor {
        count: count(true),
        ..Descriptor::SILENT
    });
    (m.barrier)();
    for bits in [1, 1, 2] {
        let begun = m
            .nic
            .put_region(from, part(0, 40), Ack::Count, to(PORTAL, bits, 0), 0);
        begun.expect("put");
    }
    m.nic
        .get_region(from, part(0, 8), to(PORTAL, 1, 0))
        .expect("get");
    until(m, (88, 1));
    m.nic.counter_set(counter, 7, 8).expect("counter");
    assert_eq!(read(m), (7, 8));
    m.nic.release(from).expect("release");
    // Events that no thread has taken do not keep a descriptor.
    let (queue, from) = source(m);
    let begun = m
        .nic
        .put_region(from, part(0, 8), Ack::Event, to(PORTAL, 2, 0), 0);
    begun.expect("put");
    let begun = Instant::now();
    while let Err(error) = m.nic.release(from) {
        assert!(matches!(error, NicError::InUse { .. }), "{error}");
        assert!(begun.elapsed().as_secs() < 20, "a put does not end");
    }
    assert_eq!(m.next(queue).kind, EventKind::SendEnd);
    assert_eq!(m.next(queue).kind, EventKind::Ack);
    (m.barrier)();
}
