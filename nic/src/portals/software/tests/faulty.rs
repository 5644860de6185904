//! Faults come as their rules say, the same for a seed, and nothing is lost without a report.

use super::{END, Pair, drain, exactly, kinds, part, read, write};
use crate::portals::software::FaultRules;
use crate::portals::{
    Ack, Entry, EventKind, NicError, Outcome, PortalOptions, Portals, Position, Register,
};

fn rules(seed: u64) -> FaultRules {
    FaultRules {
        seed,
        late_calls: 20,
        ..FaultRules::default()
    }
}

fn pair(rules: FaultRules) -> Pair {
    let pair = Pair::with(rules, PortalOptions::default(), 256);
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        ..Entry::OPEN
    };
    pair.attach(Position::Tail, exactly(1), 0, 4096, entry);
    pair
}

/// Puts with headers 0, 1, ...; returns the headers in the order of arrival, and the answers.
fn puts(pair: &Pair, count: u64) -> (Vec<u64>, Vec<Outcome>) {
    let mut answers = Vec::new();
    let mut look = || {
        let events = drain(&pair.a, pair.queue);
        let acks = events.iter().filter(|e| e.kind == EventKind::Ack);
        answers.extend(acks.map(|e| e.outcome));
        answers.len()
    };
    for header in 0..count {
        let target = pair.target(1, 0);
        pair.a
            .put_region(pair.from, part(0, 8), Ack::Event, target, header)
            .unwrap();
        look();
    }
    while look() < count as usize {}
    let events = drain(&pair.b, pair.target_queue);
    (events.iter().map(|e| e.header).collect(), answers)
}

#[test]
fn delayed_operations_arrive_in_order() {
    let delay = 300_000;
    let pair = pair(FaultRules { delay, ..rules(1) });
    let (arrived, answers) = puts(&pair, 200);
    assert_eq!(arrived, (0..200).collect::<Vec<_>>());
    assert_eq!(answers, [Outcome::Done; 200]);
}

#[test]
fn a_slow_target_answers_late() {
    let slow_target = 500_000;
    let pair = pair(FaultRules {
        slow_target,
        ..rules(2)
    });
    pair.a
        .put_region(pair.from, part(0, 8), Ack::Event, pair.target(1, 0), 0)
        .unwrap();
    let mut late = 0;
    for _ in 0..100 {
        drain(&pair.a, pair.queue);
        let target = pair.target(1, 0);
        pair.a
            .put_region(pair.from, part(0, 8), Ack::Event, target, 0)
            .unwrap();
        // The data is there whenever the answer comes.
        assert!(pair.b.queue_get(pair.target_queue).unwrap().is_some());
        late += u32::from(drain_once(&pair) == 0);
    }
    assert!((20..90).contains(&late), "{late} of 100 answers were late");
}

#[test]
fn a_descriptor_stays_while_its_operation_is_late() {
    let delay = 1_000_000;
    let pair = pair(FaultRules { delay, ..rules(3) });
    write(&pair.a, 0, &[1; 8]);
    pair.a
        .put_region(pair.from, part(0, 8), Ack::Event, pair.target(1, 0), 0)
        .unwrap();
    assert_eq!(read(&pair.b, 0, 8), [0; 8]);
    let busy = pair.a.release(pair.from);
    assert!(matches!(busy, Err(NicError::InUse { .. })), "{busy:?}");
    while drain(&pair.a, pair.queue).is_empty() {}
    assert_eq!(read(&pair.b, 0, 8), [1; 8]);
    pair.a.release(pair.from).unwrap();
}

#[test]
fn portals_overtake_each_other_and_are_in_order_themselves() {
    let reorder = 200_000;
    let pair = pair(FaultRules {
        reorder,
        ..rules(4)
    });
    let other = pair
        .b
        .portal_alloc(PortalOptions::default(), None, None)
        .unwrap();
    let entry = Entry {
        events: END,
        queue: Some(pair.target_queue),
        user: 1,
        ..Entry::OPEN
    };
    let at = super::memory(&pair.b, 4096);
    // SAFETY: the buffers live as long as the interface and are touched by `bulk` only.
    unsafe {
        pair.b
            .attach(other, Position::Tail, exactly(1), at, 4096, entry)
    }
    .unwrap();
    // Each put has other events, too.
    let answers = || {
        let kinds = kinds(&pair.a, pair.queue).into_iter();
        kinds.filter(|kind| *kind == EventKind::Ack).count()
    };
    let mut answered = 0;
    for header in 0..100 {
        let portal = if header % 2 == 0 { pair.portal } else { other };
        let target = crate::portals::Target {
            portal,
            ..pair.target(1, 0)
        };
        pair.a
            .put_region(pair.from, part(0, 8), Ack::Event, target, header)
            .unwrap();
        answered += answers();
    }
    while answered < 100 {
        answered += answers();
    }
    let headers: Vec<_> = drain(&pair.b, pair.target_queue)
        .iter()
        .map(|e| e.header)
        .collect();
    assert_eq!(headers.len(), 100);
    assert!(!headers.is_sorted(), "nothing overtook anything");
    for parity in 0..2 {
        assert!(headers.iter().filter(|h| *h % 2 == parity).is_sorted());
    }
}

#[test]
fn nothing_matches_and_queues_are_full_by_chance() {
    let no_match = 300_000;
    let pair = pair(FaultRules {
        no_match,
        ..rules(5)
    });
    let (arrived, answers) = puts(&pair, 200);
    let lost = answers.iter().filter(|o| **o == Outcome::NoMatch).count();
    assert!((30..90).contains(&lost), "{lost} of 200 found nothing");
    assert_eq!(arrived.len(), 200 - lost);
    assert_eq!(pair.b.status(Register::Drops), lost as u64);

    let queue_full = 300_000;
    let pair = self::pair(FaultRules {
        queue_full,
        ..rules(6)
    });
    for header in 0..200 {
        let target = pair.target(1, 0);
        pair.a
            .put_region(pair.from, part(0, 8), Ack::None, target, header)
            .unwrap();
    }
    let (mut there, mut missing) = (0, 0);
    loop {
        match pair.b.queue_get(pair.target_queue) {
            Ok(Some(_)) => there += 1,
            Err(NicError::EventsDropped { count, .. }) => missing += count,
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((30..90).contains(&missing), "{missing} of 200 were dropped");
    assert_eq!(there + missing, 200);
}

#[test]
fn a_seed_has_its_faults() {
    let run = |seed| {
        let no_match = 300_000;
        puts(
            &pair(FaultRules {
                no_match,
                ..rules(seed)
            }),
            100,
        )
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Answers that one look finds.
fn drain_once(pair: &Pair) -> usize {
    usize::from(pair.a.queue_get(pair.queue).unwrap().is_some())
}
