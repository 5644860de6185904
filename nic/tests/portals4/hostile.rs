//! A mad rank, and strangers: their datagrams change nothing that they should not.

use super::away::{LIMIT, quick, reporting_portal, source, to};
use super::cases::PORTAL;
use super::group::{END, MEMORY, Member, exactly, part};
use super::hosts;
use super::mad::{self, Mad};
use argonet_nic::portals::networked::{Networked, NetworkedConfig};
use argonet_nic::portals::{
    Ack, Entry, EventKind, NicError, Outcome, PortalOptions, Portals, Queue,
};
use argonet_nic::reliable::FORMAT;
use libtest_mimic::{Failed, Trial};
use std::time::Instant;

pub(crate) fn trials() -> Vec<Trial> {
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 6] = [
        ("a_put_that_stops_half_way_ends", half_way),
        ("the_end_of_a_put_in_pieces_has_its_room", promised),
        ("gets_beyond_the_limit_of_answers_are_not_answered", greedy),
        (
            "an_answer_before_its_request_has_gone_ends_nothing",
            early_answer,
        ),
        ("datagrams_of_strangers_change_nothing", strangers),
        ("records_that_mean_nothing_change_nothing", mad_records),
    ];
    let named = tests.into_iter();
    let trial = |(name, test)| Trial::test(format!("hosts::{name}"), test);
    named.map(trial).collect()
}

fn half_way() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&quick(2));
    let (queue, entry) = reporting_portal(&m, exactly(1), 0, 4096);
    mad.say(&mad::request(mad::PUT, PORTAL.0, 1, 4000, &[7; 100]));
    mad.say(&mad::more(100, &[8; 100]));
    let busy = m.nic.unlink(entry);
    assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
    assert_eq!(m.nic.queue_get(queue)?, None);
    let event = m.next(queue);
    assert_eq!(
        (event.kind, event.outcome),
        (EventKind::PutEnd, Outcome::PeerDied)
    );
    assert_eq!((event.requested_bytes, event.moved_bytes), (4000, 0));
    assert_eq!(m.read(0, 200), [[7; 100], [8; 100]].concat());
    m.nic.unlink(entry)?;
    Ok(())
}

/// The source of a put stays until all of it has gone, also if its target answers before.
fn early_answer() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&hosts::config(2, &hosts::WIRES[0]));
    let (queue, from) = source(&m);
    // More than the first window of a link.
    const LEN: u64 = 500_000;
    m.nic
        .put_region(from, part(0, LEN), Ack::Event, to(1, 1, 0), 0)?;
    // The first operation of an interface has number 0.
    mad.shout(&[mad::answer(0, LEN, b"")]);
    let begun = Instant::now();
    while m.nic.traffic().bad_records < 1 {
        assert!(begun.elapsed() < LIMIT, "it is believed");
        std::thread::yield_now();
    }
    let busy = m.nic.release(from);
    assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
    let whole = |mad: &Mad| {
        mad.got
            .iter()
            .map(|record| record.len() as u64)
            .sum::<u64>()
    };
    mad.until(|mad| whole(mad) > LEN && mad.endpoint.is_drained());
    assert_eq!(m.nic.queue_get(queue)?, None);
    mad.say(&mad::answer(0, LEN, b""));
    assert_eq!(m.next(queue).kind, EventKind::SendEnd);
    assert_eq!(m.next(queue).outcome, Outcome::Done);
    m.nic.release(from)?;
    Ok(())
}

/// Gets whose answers are not taken: only so many are kept.
fn greedy() -> Result<(), Failed> {
    let config = NetworkedConfig {
        answers: 2,
        ..hosts::config(2, &hosts::WIRES[0])
    };
    let (m, mut mad) = mad::beside(&config);
    let (queue, _) = reporting_portal(&m, exactly(1), 0, MEMORY);
    // More than the first window of a link.
    const LEN: u64 = 500_000;
    let gets = vec![mad::request(mad::GET, PORTAL.0, 1, LEN, b""); 5];
    mad.shout(&gets);
    let begun = Instant::now();
    while m.nic.traffic().bad_records < 3 {
        assert!(begun.elapsed() < LIMIT, "all are kept");
        std::thread::yield_now();
    }
    // The other two are answered, whole.
    let whole = |mad: &Mad| {
        mad.got
            .iter()
            .map(|record| record.len() as u64)
            .sum::<u64>()
    };
    mad.until(|mad| whole(mad) > 2 * LEN && mad.endpoint.is_drained());
    let answers = mad.got.iter().filter(|record| record[0] == mad::ANSWER);
    assert_eq!(answers.count(), 2);
    for _ in 0..2 {
        assert_eq!(m.next(queue).kind, EventKind::GetEnd);
    }
    still_works(&m, &mut mad, queue);
    assert_eq!(m.nic.traffic().bad_records, 3);
    Ok(())
}

/// A put from the mad rank works, and takes 8 bytes to the beginning of the memory.
fn still_works(m: &Member<Networked>, mad: &mut Mad, queue: Queue) {
    let answers = mad.got.len();
    mad.say(&mad::request(mad::PUT, PORTAL.0, 1, 8, &[9; 8]));
    assert_eq!(m.next(queue).kind, EventKind::PutEnd);
    assert_eq!(m.read(0, 8), [9; 8]);
    mad.until(|mad| mad.got.len() == answers + 1);
    assert_eq!(mad.got[answers][..2], [mad::ANSWER, 0]);
    m.write(0, &[0; 8]);
}

fn strangers() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&hosts::config(2, &hosts::WIRES[0]));
    let (queue, _) = reporting_portal(&m, exactly(1), 0, 4096);
    still_works(&m, &mut mad, queue);
    let mut word = 1_u64;
    let thrown = 300;
    for n in 0..thrown {
        let mut bytes: Vec<u8> = (0..n * 5)
            .map(|_| {
                word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (word >> 56) as u8
            })
            .collect();
        if n % 2 == 1 {
            // As far as it can look like one.
            bytes.resize(216, 0);
            bytes[..4].copy_from_slice(format!("aRd{FORMAT}").as_bytes());
            bytes[4..8].copy_from_slice(&[1, 1, 128, 0]);
        }
        mad.throw(&bytes);
        if n % 50 == 0 {
            still_works(&m, &mut mad, queue);
        }
    }
    still_works(&m, &mut mad, queue);
    let counts = m.nic.traffic().datagrams;
    assert!(
        counts.malformed > 100 && counts.strangers > 100,
        "{counts:?}"
    );
    assert_eq!(m.nic.traffic().bad_records, 0);
    Ok(())
}

fn mad_records() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&hosts::config(2, &hosts::WIRES[0]));
    let (queue, _) = reporting_portal(&m, exactly(1), 0, 4096);
    let (own, from) = source(&m);
    // Records that mean nothing between messages.
    let mut fetch = mad::request(mad::FETCH, PORTAL.0, 1, 8, &[1; 8]);
    fetch[2..4].copy_from_slice(&[6, 5]);
    let bad = [
        vec![],
        vec![99; 80],
        mad::more(0, b"of nothing"),
        mad::answer(0, 0, b""),
        mad::answer(u64::MAX, 0, b""),
        mad::request(mad::PUT, PORTAL.0, 1, 8, &[1; 9]),
        mad::request(mad::GET, PORTAL.0, 1, 8, &[1; 8]),
        mad::request(mad::FETCH, PORTAL.0, 1, 16, &[1; 8]),
        mad::request(mad::FETCH, PORTAL.0, 1, 7, &[1; 7]),
        fetch,
    ];
    for (count, record) in (1..).zip(&bad) {
        mad.say(record);
        assert_eq!(m.nic.traffic().bad_records, count, "{record:?}");
        still_works(&m, &mut mad, queue);
    }
    // Portals that are not there, and offsets and lengths beyond everything, have their outcomes.
    let beyond = m.nic.limits().portals;
    for (portal, bits, outcome) in [
        (beyond, 1, Outcome::Refused),
        (u32::MAX, 1, Outcome::Refused),
        (PORTAL.0 + 1, 1, Outcome::Refused),
        (PORTAL.0, 2, Outcome::NoMatch),
    ] {
        let answers = mad.got.len();
        mad.say(&mad::request(mad::PUT, portal, bits, 8, &[1; 8]));
        mad.until(|mad| mad.got.len() == answers + 1);
        assert_eq!(mad.got[answers][1], u8::from(outcome), "portal {portal}");
    }
    let answers = mad.got.len();
    mad.say(&mad::request(mad::GET, PORTAL.0, 1, u64::MAX, b""));
    mad.until(|mad| mad.got.len() == answers + 1);
    assert_ne!(mad.got[answers][1], 0);
    // Within a message only more of it may come, and not more than all; the message goes on.
    let so_far = m.nic.traffic().bad_records;
    mad.say(&mad::request(mad::PUT, PORTAL.0, 1, 8, &[1; 3]));
    let wrong = [
        mad::more(2, &[2; 3]),
        mad::more(3, &[2; 6]),
        mad::request(mad::PUT, PORTAL.0, 1, 1, &[1]),
        mad::answer(0, 0, b""),
    ];
    for record in &wrong {
        mad.say(record);
    }
    assert_eq!(m.nic.traffic().bad_records, so_far + 4);
    mad.say(&mad::more(3, &[4; 5]));
    let event = m.next(queue);
    assert_eq!((event.outcome, event.moved_bytes), (Outcome::Done, 8));
    assert_eq!(m.read(0, 8), [1, 1, 1, 4, 4, 4, 4, 4]);
    // An answer with more than was asked for: the operation ends, and nothing is written.
    m.write(1024, &[5; 16]);
    m.nic.get_region(from, part(1024, 8), to(1, 1, 0))?;
    let come = mad.got.len();
    mad.until(|mad| mad.got.len() > come);
    let asked = mad.got.last().cloned().unwrap_or_default();
    assert_eq!(asked[0], mad::GET);
    let id = u64::from_le_bytes(asked[8..16].try_into()?);
    mad.say(&mad::answer(id, 16, &[6; 16]));
    let event = m.next(own);
    assert_eq!(
        (event.kind, event.outcome),
        (EventKind::ReplyEnd, Outcome::Corrupt)
    );
    assert_eq!(m.read(1024, 16), [5; 16]);
    still_works(&m, &mut mad, queue);
    m.nic.release(from)?;
    Ok(())
}

/// A queue that is filled while a put comes has kept room for its end.
fn promised() -> Result<(), Failed> {
    let (m, mut mad) = mad::beside(&hosts::config(2, &hosts::WIRES[0]));
    let queue = m.nic.queue_alloc(4)?;
    let options = PortalOptions::default();
    m.nic.portal_alloc(options, Some(queue), Some(PORTAL))?;
    let entry = Entry {
        events: END,
        queue: Some(queue),
        ..Entry::OPEN
    };
    m.attach(PORTAL, exactly(1), (0, 64), entry);
    let (own, from) = source(&m);
    mad.say(&mad::request(mad::PUT, PORTAL.0, 1, 8, &[1; 3]));
    for _ in 0..6 {
        m.nic
            .put_region(from, part(0, 8), Ack::Event, to(0, 1, 8), 0)?;
        assert_eq!(m.next(own).kind, EventKind::SendEnd);
        assert_eq!(m.next(own).kind, EventKind::Ack);
    }
    mad.say(&mad::more(3, &[1; 5]));
    let mut peers = Vec::new();
    loop {
        match m.nic.queue_get(queue) {
            Ok(Some(event)) => peers.push(event.peer.0),
            Ok(None) => break,
            Err(NicError::EventsDropped { count, .. }) => assert_eq!(count, 3),
            Err(other) => return Err(other.into()),
        }
    }
    assert_eq!(peers, [0, 0, 0, 1]);
    Ok(())
}
