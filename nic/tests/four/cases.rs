//! What every implementation does, of the features that Portals 4 has.

use super::group::{END, MEMORY, Member, exactly, part, to};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Count, Descriptor, DescriptorHandle, Entry, Event, EventKind,
    Managed, Matching, NicError, Outcome, Part, PortalIndex, PortalOptions, Portals, Queue,
    Register,
};
use std::time::Instant;

pub(crate) const NAMES: [&str; 11] = [
    "puts_and_gets",
    "many_puts_and_long_ones",
    "match_bits_select",
    "receive_buffers_fill_in_order_and_leave",
    "an_entry_for_one_operation_leaves",
    "what_is_unlinked_matches_nothing",
    "a_full_queue_tells_that_events_are_missing",
    "a_disabled_portal_gives_back_until_it_is_enabled",
    "atomic_operations_change_and_fetch",
    "counters_count_and_releases_wait",
    "who_waits_is_woken_and_may_look_first",
];

const PORTAL: PortalIndex = PortalIndex(3);
const FLOW: PortalOptions = PortalOptions { flow_control: true };

/// Runs a case as this rank, both ranks at once.
pub(crate) fn run<N: Portals>(name: &str, mut member: Member<N>) {
    let m = &mut member;
    match name {
        "puts_and_gets" => puts_and_gets(m),
        "many_puts_and_long_ones" => timed(m),
        "match_bits_select" => bits(m),
        "receive_buffers_fill_in_order_and_leave" => local(m),
        "an_entry_for_one_operation_leaves" => once(m),
        "what_is_unlinked_matches_nothing" => unlink(m),
        "a_full_queue_tells_that_events_are_missing" => full(m),
        "a_disabled_portal_gives_back_until_it_is_enabled" => disabled(m),
        "atomic_operations_change_and_fetch" => atomics(m),
        "counters_count_and_releases_wait" => counters(m),
        "who_waits_is_woken_and_may_look_first" => waiting(m),
        other => panic!("no case {other}"),
    }
    (member.barrier)();
}

fn target<N: Portals>(m: &Member<N>, options: PortalOptions, events: u64) -> Queue {
    let queue = m.nic.queue_alloc(events).expect("queue");
    let portal = m.nic.portal_alloc(options, Some(queue), Some(PORTAL));
    assert_eq!(portal.expect("portal"), PORTAL);
    queue
}

fn source<N: Portals>(m: &Member<N>) -> (Queue, DescriptorHandle) {
    let queue = m.nic.queue_alloc(256).expect("queue");
    let descriptor = Descriptor {
        events: END,
        queue: Some(queue),
        user: 77,
        ..Descriptor::SILENT
    };
    (queue, m.bind(descriptor))
}

/// Puts and waits for `SendEnd` and `Ack`, in this order; the latter.
fn put<N: Portals>(
    m: &Member<N>,
    (queue, from): (Queue, DescriptorHandle),
    part: Part,
    bits: u64,
    offset: u64,
    header: u64,
) -> Event {
    let target = to(PORTAL, bits, offset);
    let begun = m.nic.put_region(from, part, Ack::Event, target, header);
    begun.expect("put");
    let sent = m.next(queue);
    let ack = m.next(queue);
    assert_eq!((sent.kind, ack.kind), (EventKind::SendEnd, EventKind::Ack));
    for event in [sent, ack] {
        assert_eq!((event.peer, event.portal), (JobRank(1), PORTAL));
        assert_eq!((event.bits, event.header), (bits, header));
        assert_eq!((event.user, event.object), (77, from.to_bits()));
        assert_eq!(event.requested_bytes, part.len_bytes);
        assert_eq!(
            (event.offset_bytes, event.link),
            (part.offset_bytes, ack.link)
        );
    }
    ack
}

fn told<N: Portals>(m: &Member<N>, queue: Queue) -> Entry {
    assert!(m.is_target());
    Entry {
        events: END,
        queue: Some(queue),
        user: 55,
        ..Entry::OPEN
    }
}

fn data(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|n| ((n * 7 + seed) % 251) as u8 + 1).collect()
}

fn puts_and_gets<N: Portals>(m: &mut Member<N>) {
    const LENGTHS: [u64; 6] = [0, 1, 8, 4096, 300_001, 1 << 20];
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 256);
        let entry = m.attach(PORTAL, exactly(1), (0, MEMORY), told(m, queue));
        (m.barrier)();
        (m.barrier)();
        for len in LENGTHS {
            let event = m.next(queue);
            assert_eq!((event.kind, event.peer), (EventKind::PutEnd, JobRank(0)));
            assert_eq!((event.bits, event.header), (1, len + 9));
            assert_eq!((event.requested_bytes, event.moved_bytes), (len, len));
            assert_eq!((event.offset_bytes, event.user), (len + 3, 55));
            assert_eq!(event.object, entry.to_bits());
            let event = m.next(queue);
            assert_eq!((event.kind, event.moved_bytes), (EventKind::GetEnd, len));
        }
        let last = 1 << 20;
        assert!(m.read(last + 3, last as usize) == data(last, last));
        return;
    }
    let from = source(m);
    (m.barrier)();
    for len in LENGTHS {
        m.write(17, &data(len, len));
        let ack = put(m, from, part(17, len), 1, len + 3, len + 9);
        assert_eq!((ack.outcome, ack.moved_bytes), (Outcome::Done, len));
        m.write(17, &vec![0; len as usize]);
        let got = m
            .nic
            .get_region(from.1, part(17, len), to(PORTAL, 1, len + 3));
        got.expect("get");
        let reply = m.next(from.0);
        assert_eq!(
            (reply.kind, reply.outcome),
            (EventKind::ReplyEnd, Outcome::Done)
        );
        assert_eq!((reply.moved_bytes, reply.bits), (len, 1));
        let right = m.read(17, len as usize) == data(len, len);
        assert!(right, "a get of {len} bytes brought others");
    }
    (m.barrier)();
}

fn timed<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        target(m, PortalOptions::default(), 64);
        m.attach(PORTAL, exactly(2), (0, MEMORY), Entry::OPEN);
        (m.barrier)();
        (m.barrier)();
        return;
    }
    let from = source(m);
    (m.barrier)();
    let begun = Instant::now();
    for _ in 0..1000 {
        assert_eq!(put(m, from, part(0, 8), 2, 0, 0).outcome, Outcome::Done);
    }
    let latency_us = begun.elapsed().as_secs_f64() * 1e3;
    eprintln!("put of 8 bytes with its acknowledgement: {latency_us:.2} us");
    let begun = Instant::now();
    for _ in 0..64 {
        assert_eq!(
            put(m, from, part(0, 1 << 20), 2, 0, 0).outcome,
            Outcome::Done
        );
    }
    let rate = 64.0 * 1.048_576 / begun.elapsed().as_secs_f64();
    eprintln!("puts of 1 MiB, one at a time: {rate:.0} MB/s");
    (m.barrier)();
}

fn bits<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        target(m, PortalOptions::default(), 64);
        let among = |ignore, source| Matching {
            bits: 0x10,
            ignore,
            source,
        };
        let only = |puts| Entry {
            puts,
            gets: !puts,
            ..Entry::OPEN
        };
        m.attach(PORTAL, among(0, Some(JobRank(1))), (0, 64), Entry::OPEN);
        m.attach(PORTAL, among(0, None), (64, 64), Entry::OPEN);
        m.attach(PORTAL, among(0x0f, None), (128, 64), Entry::OPEN);
        m.attach(PORTAL, exactly(0x30), (192, 64), only(false));
        (m.barrier)();
        (m.barrier)();
        let first = |at| m.read(at, 1)[0];
        assert_eq!([first(0), first(64), first(128), first(192)], [0, 5, 6, 0]);
        return;
    }
    let from = source(m);
    m.write(0, &[5, 6, 7]);
    (m.barrier)();
    let outcome = |at, bits| put(m, from, part(at, 1), bits, 0, 0).outcome;
    assert_eq!(outcome(0, 0x10), Outcome::Done);
    assert_eq!(outcome(1, 0x1f), Outcome::Done);
    assert_eq!(outcome(2, 0x20), Outcome::NoMatch);
    assert_eq!(outcome(2, 0x30), Outcome::NoMatch);
    (m.barrier)();
}

fn local<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let receive = Entry {
            gets: false,
            managed: Managed::Local {
                min_free_bytes: 100,
            },
            auto_unlink: true,
            ..told(m, queue)
        };
        let first = m.attach(PORTAL, exactly(1), (0, 256), receive);
        let second = m.attach(PORTAL, exactly(1), (256, 256), receive);
        (m.barrier)();
        let (a, b) = (first.to_bits(), second.to_bits());
        let expected = [
            (EventKind::PutEnd, a, Some(0)),
            (EventKind::PutEnd, a, Some(80)),
            (EventKind::Unlink, a, None),
            (EventKind::PutEnd, b, Some(0)),
            (EventKind::PutEnd, b, Some(80)),
            (EventKind::Unlink, b, None),
        ];
        for (kind, object, offset) in expected {
            let event = m.next(queue);
            assert_eq!((event.kind, event.object), (kind, object));
            assert!(offset.is_none_or(|at| at == event.offset_bytes));
        }
        for (at, n) in [(0, 1), (80, 2), (256, 3), (336, 4)] {
            assert_eq!(m.read(at, 80), [n; 80]);
        }
        let gone = m.nic.unlink(first);
        assert!(matches!(gone, Err(NicError::BadHandle { .. })), "{gone:?}");
        (m.barrier)();
        return;
    }
    let from = source(m);
    (m.barrier)();
    for n in 1..=4 {
        m.write(0, &[n; 80]);
        assert_eq!(
            put(m, from, part(0, 80), 1, 12345, 0).outcome,
            Outcome::Done
        );
    }
    assert_eq!(put(m, from, part(0, 80), 1, 0, 0).outcome, Outcome::NoMatch);
    (m.barrier)();
}

fn once<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let entry = |auto_unlink| Entry {
            threshold: Some(1),
            auto_unlink,
            truncate: true,
            ..told(m, queue)
        };
        let seen = m.attach(PORTAL, exactly(1), (0, 8), entry(true));
        let unseen = m.attach(PORTAL, exactly(2), (8, 8), entry(false));
        (m.barrier)();
        (m.barrier)();
        let event = m.next(queue);
        assert_eq!(
            (event.kind, event.object),
            (EventKind::PutEnd, seen.to_bits())
        );
        assert_eq!((event.requested_bytes, event.moved_bytes), (12, 8));
        assert_eq!(m.next(queue).kind, EventKind::Unlink);
        assert_eq!(m.next(queue).object, unseen.to_bits());
        assert_eq!(m.nic.queue_get(queue).expect("queue"), None);
        m.nic.unlink(unseen).expect("it stays until it is unlinked");
        let again = m.nic.unlink(unseen);
        assert!(
            matches!(again, Err(NicError::BadHandle { .. })),
            "{again:?}"
        );
        return;
    }
    let from = source(m);
    (m.barrier)();
    for bits in [1, 2] {
        let ack = put(m, from, part(0, 12), bits, 0, 0);
        assert_eq!((ack.outcome, ack.moved_bytes), (Outcome::Done, 8));
        assert_eq!(
            put(m, from, part(0, 8), bits, 0, 0).outcome,
            Outcome::NoMatch
        );
    }
    (m.barrier)();
}

fn unlink<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let entry = m.attach(PORTAL, exactly(1), (0, 64), told(m, queue));
        (m.barrier)();
        (m.barrier)();
        m.nic.unlink(entry).expect("unlink");
        let again = m.nic.unlink(entry);
        assert!(
            matches!(again, Err(NicError::BadHandle { .. })),
            "{again:?}"
        );
        // What had come is told all the same.
        let event = m.next(queue);
        assert_eq!((event.object, event.user), (entry.to_bits(), 55));
        (m.barrier)();
        (m.barrier)();
        m.nic.portal_free(PORTAL).expect("portal");
        m.nic.queue_free(queue).expect("queue");
        return;
    }
    let from = source(m);
    (m.barrier)();
    assert_eq!(put(m, from, part(0, 8), 1, 0, 0).outcome, Outcome::Done);
    (m.barrier)();
    (m.barrier)();
    assert_eq!(put(m, from, part(0, 8), 1, 0, 0).outcome, Outcome::NoMatch);
    (m.barrier)();
}

fn full<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 4);
        m.attach(PORTAL, exactly(1), (0, 64), told(m, queue));
        (m.barrier)();
        (m.barrier)();
        let (mut events, mut missing) = (0, 0);
        loop {
            match m.nic.queue_get(queue) {
                Ok(Some(_)) => events += 1,
                Ok(None) => break,
                Err(NicError::EventsDropped { .. }) => missing += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(
            events >= 4 && missing == 1,
            "{events} events, {missing} gaps"
        );
        assert!(m.nic.status(Register::EventsDropped) >= 1);
        return;
    }
    let from = source(m);
    (m.barrier)();
    for _ in 0..200 {
        assert_eq!(put(m, from, part(0, 8), 1, 0, 0).outcome, Outcome::Done);
    }
    (m.barrier)();
}

fn disabled<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, FLOW, 64);
        m.attach(PORTAL, exactly(1), (0, 64), Entry::OPEN);
        m.nic.portal_enable(PORTAL, false).expect("disable");
        (m.barrier)();
        (m.barrier)();
        m.nic.portal_enable(PORTAL, true).expect("enable");
        (m.barrier)();
        let event = m.next(queue);
        assert_eq!((event.kind, event.portal), (EventKind::Disabled, PORTAL));
        (m.barrier)();
        m.nic.portal_enable(PORTAL, true).expect("enable");
        (m.barrier)();
        (m.barrier)();
        return;
    }
    let from = source(m);
    let given_back = |outcome| matches!(outcome, Outcome::Disabled | Outcome::Refused);
    (m.barrier)();
    assert!(given_back(put(m, from, part(0, 8), 1, 0, 0).outcome));
    (m.barrier)();
    (m.barrier)();
    let outcome = |bits| put(m, from, part(0, 8), bits, 0, 0).outcome;
    assert_eq!(outcome(1), Outcome::Done);
    assert_eq!(outcome(2), Outcome::Disabled);
    assert!(given_back(outcome(1)));
    (m.barrier)();
    (m.barrier)();
    assert_eq!(put(m, from, part(0, 8), 1, 0, 0).outcome, Outcome::Done);
    (m.barrier)();
}

fn atomics<N: Portals>(m: &mut Member<N>) {
    let word = |m: &Member<N>, at| u64::from_ne_bytes(m.read(at, 8).try_into().expect("8"));
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        m.attach(PORTAL, exactly(1), (0, 64), told(m, queue));
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

fn counters<N: Portals>(m: &mut Member<N>) {
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
    // Events that nobody has taken do not keep a descriptor.
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

fn waiting<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 16);
        m.attach(PORTAL, exactly(1), (0, MEMORY), told(m, queue));
        assert!(m.nic.queue_is_empty(queue).expect("look"));
        // What is waited for is there: without a limit it would wait for ever.
        let waited = m.nic.queue_wait(&[queue], None, &|| true);
        waited.expect("wait");
        (m.barrier)();
        while m.nic.queue_is_empty(queue).expect("look") {
            let waited = m.nic.queue_wait(&[queue], None, &|| false);
            waited.expect("wait");
        }
        // Looks take nothing.
        assert!(!m.nic.queue_is_empty(queue).expect("look"));
        m.nic.queue_wait(&[queue], None, &|| false).expect("wait");
        assert_eq!(m.next(queue).header, 4);
        assert!(m.nic.queue_is_empty(queue).expect("look"));
        m.nic.queue_free(queue).expect_err("a portal reports to it");
        return;
    }
    let from = source(m);
    (m.barrier)();
    put(m, from, part(0, 8), 1, 0, 4);
}
