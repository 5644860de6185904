//! Cases: which entry takes a message, and when it leaves.

use super::cases::{PORTAL, put, reporting, source, target};
use super::group::{Member, exactly, part};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Entry, EventKind, Managed, Matching, NicError, Outcome, PortalOptions, Portals,
};

pub(super) fn bits<N: Portals>(m: &mut Member<N>) {
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

pub(super) fn local<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let receive = Entry {
            gets: false,
            managed: Managed::Local {
                min_free_bytes: 100,
            },
            auto_unlink: true,
            ..reporting(m, queue)
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

pub(super) fn once<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let entry = |auto_unlink| Entry {
            threshold: Some(1),
            auto_unlink,
            truncate: true,
            ..reporting(m, queue)
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

pub(super) fn unlink<N: Portals>(m: &mut Member<N>) {
    if m.is_target() {
        let queue = target(m, PortalOptions::default(), 64);
        let entry = m.attach(PORTAL, exactly(1), (0, 64), reporting(m, queue));
        (m.barrier)();
        (m.barrier)();
        m.nic.unlink(entry).expect("unlink");
        let again = m.nic.unlink(entry);
        assert!(
            matches!(again, Err(NicError::BadHandle { .. })),
            "{again:?}"
        );
        // Messages that had come are still reported.
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
