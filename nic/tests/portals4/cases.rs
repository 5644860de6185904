//! Cases for every implementation, of the features that Portals 4 has.

use super::group::{END, MEMORY, Member, exactly, part, to};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Ack, Answer, Descriptor, DescriptorHandle, Entry, Event, EventKind, NicError, Outcome, Part,
    PortalIndex, PortalOptions, Portals, Queue, Register,
};
use std::time::Instant;

pub(crate) const NAMES: [&str; 12] = [
    "puts_and_gets",
    "answers_are_synchronous_or_unsupported",
    "many_puts_and_long_ones",
    "match_bits_select",
    "receive_buffers_fill_in_order_and_leave",
    "an_entry_for_one_operation_leaves",
    "an_unlinked_entry_matches_nothing",
    "a_full_queue_reports_missing_events",
    "a_disabled_portal_gives_back_until_it_is_enabled",
    "atomic_operations_change_and_fetch",
    "counters_count_and_releases_wait",
    "a_waiting_thread_is_woken_and_may_look_first",
];

pub(super) const PORTAL: PortalIndex = PortalIndex(3);
pub(super) const FLOW: PortalOptions = PortalOptions { flow_control: true };

/// Runs a case as this rank, both ranks at once.
pub(crate) fn run<N: Portals>(name: &str, mut member: Member<N>) {
    let m = &mut member;
    match name {
        "puts_and_gets" => puts_and_gets(m),
        "answers_are_synchronous_or_unsupported" => answered(m),
        "many_puts_and_long_ones" => timed(m),
        "match_bits_select" => super::entries::bits(m),
        "receive_buffers_fill_in_order_and_leave" => super::entries::local(m),
        "an_entry_for_one_operation_leaves" => super::entries::once(m),
        "an_unlinked_entry_matches_nothing" => super::entries::unlink(m),
        "a_full_queue_reports_missing_events" => full(m),
        "a_disabled_portal_gives_back_until_it_is_enabled" => disabled(m),
        "atomic_operations_change_and_fetch" => super::atomics::atomics(m),
        "counters_count_and_releases_wait" => super::atomics::counters(m),
        "a_waiting_thread_is_woken_and_may_look_first" => waiting(m),
        other => panic!("no case {other}"),
    }
    (member.barrier)();
}

pub(super) fn target<N: Portals>(m: &Member<N>, options: PortalOptions, events: u64) -> Queue {
    let queue = m.nic.queue_alloc(events).expect("queue");
    let portal = m.nic.portal_alloc(options, Some(queue), Some(PORTAL));
    assert_eq!(portal.expect("portal"), PORTAL);
    queue
}

pub(super) fn source<N: Portals>(m: &Member<N>) -> (Queue, DescriptorHandle) {
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
pub(super) fn put<N: Portals>(
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

pub(super) fn reporting<N: Portals>(m: &Member<N>, queue: Queue) -> Entry {
    assert!(m.is_target());
    Entry {
        events: END,
        queue: Some(queue),
        user: 55,
        ..Entry::OPEN
    }
}

pub(super) fn data(len: u64, seed: u64) -> Vec<u8> {
    (0..len).map(|n| ((n * 7 + seed) % 251) as u8 + 1).collect()
}

/// No more than one message carries.
fn at_most<N: Portals>(m: &Member<N>, len: u64) -> u64 {
    len.min(m.nic.limits().message_bytes)
}

fn puts_and_gets<N: Portals>(m: &mut Member<N>) {
    let lengths = [0, 1, 8, 4096, 300_001, 1 << 20].map(|len| at_most(m, len));
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 256);
        let entry = m.attach(PORTAL, exactly(1), (0, MEMORY), reporting(m, queue));
        (m.barrier)();
        (m.barrier)();
        for len in lengths {
            let event = m.next(queue);
            assert_eq!((event.kind, event.peer), (EventKind::PutEnd, JobRank(0)));
            assert_eq!((event.bits, event.header), (1, len + 9));
            assert_eq!((event.requested_bytes, event.moved_bytes), (len, len));
            assert_eq!((event.offset_bytes, event.user), (len + 3, 55));
            assert_eq!(event.object, entry.to_bits());
            let event = m.next(queue);
            assert_eq!((event.kind, event.moved_bytes), (EventKind::GetEnd, len));
        }
        let last = lengths[5];
        assert!(m.read(last + 3, last as usize) == data(last, last));
        return;
    }
    let from = source(m);
    (m.barrier)();
    for len in lengths {
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

/// Synchronous interfaces answer by the call, and otherwise report only by the events of the
/// descriptor; others do nothing and say so.
fn answered<N: Portals>(m: &mut Member<N>) {
    const LEN: u64 = 10_000;
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        m.write(0, &data(2 * LEN, 3));
        m.attach(PORTAL, exactly(1), (0, 2 * LEN), Entry::OPEN);
        let short = Entry {
            truncate: true,
            ..reporting(m, queue)
        };
        m.attach(PORTAL, exactly(2), (2 * LEN, 64), short);
        (m.barrier)();
        (m.barrier)();
        if !m.nic.features().synchronous {
            assert_eq!(m.nic.queue_get(queue).expect("queue"), None);
            assert!(m.read(0, 2 * LEN as usize) == data(2 * LEN, 3));
            return;
        }
        let event = m.next(queue);
        assert_eq!((event.kind, event.header), (EventKind::PutEnd, 9));
        assert_eq!((event.requested_bytes, event.moved_bytes), (100, 60));
        assert!(m.read(LEN, LEN as usize) == data(LEN, 8));
        assert!(m.read(2 * LEN + 4, 60) == data(LEN, 8)[..60]);
        return;
    }
    let (queue, reporting) = source(m);
    let silent = m.bind(Descriptor::SILENT);
    (m.barrier)();
    if m.nic.features().synchronous {
        let done = |moved_bytes| Answer {
            outcome: Outcome::Done,
            moved_bytes,
        };
        m.write(17, &data(LEN, 8));
        let put = |len, bits, offset| {
            let target = to(PORTAL, bits, offset);
            let answer = m.nic.put_answered(silent, part(17, len), target, 9);
            answer.expect("put")
        };
        assert_eq!(put(LEN, 1, LEN), done(LEN));
        assert_eq!(put(100, 2, 4), done(60));
        let nothing = Answer {
            outcome: Outcome::NoMatch,
            moved_bytes: 0,
        };
        assert_eq!(put(8, 3, 0), nothing);
        let get = |by| {
            let target = to(PORTAL, 1, 0);
            let answer = m.nic.get_answered(by, part(17, LEN), target);
            answer.expect("get")
        };
        assert_eq!(get(silent), done(LEN));
        assert!(m.read(17, LEN as usize) == data(LEN, 3));
        assert_eq!(m.nic.queue_get(queue).expect("queue"), None);
        assert_eq!(get(reporting), done(LEN));
        assert_eq!(m.next(queue).kind, EventKind::ReplyEnd);
    } else {
        let target = to(PORTAL, 1, 0);
        let put = m.nic.put_answered(silent, part(0, 8), target, 9);
        let get = m.nic.get_answered(silent, part(0, 8), target);
        for answer in [put, get] {
            let unsupported = matches!(answer, Err(NicError::Unsupported { .. }));
            assert!(unsupported, "{answer:?}");
        }
    }
    assert_eq!(m.nic.queue_get(queue).expect("queue"), None);
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
    let len = at_most(m, 1 << 20);
    for _ in 0..64 {
        let put = put(m, from, part(0, len), 2, 0, 0);
        assert_eq!(put.outcome, Outcome::Done);
    }
    let rate = 64e-6 * len as f64 / begun.elapsed().as_secs_f64();
    eprintln!("puts of {len} bytes, one at a time: {rate:.1} MB/s");
    (m.barrier)();
}

fn full<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 4);
        m.attach(PORTAL, exactly(1), (0, 64), reporting(m, queue));
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

fn waiting<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 16);
        m.attach(PORTAL, exactly(1), (0, MEMORY), reporting(m, queue));
        assert!(m.nic.queue_is_empty(queue).expect("look"));
        // `come` is true already: otherwise a wait without a limit would last forever.
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
