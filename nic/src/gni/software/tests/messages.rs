//! Short messages.

use super::{End, MAILBOX, Pair, SHAPE, address, data, ended, is_came, read, register, write};
use crate::gni::software::FaultRules;
use crate::gni::{Gni, GniError, Mailbox, Shape};
use argonet_segment::SharedBytes;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| n as u8 ^ len as u8).collect()
}

#[test]
fn messages_arrive_in_order_at_every_fill_level() {
    let pair = Pair::new();
    let mut number = 0_u8;
    for round in 0..50 {
        for level in 0..=SHAPE.messages {
            let first = number;
            // Half of the mailbox less one may be released and not returned.
            let credits = pair.a.nic.credits(&pair.a.endpoint);
            assert!(credits > SHAPE.messages / 2, "{credits}");
            let level = level.min(credits);
            for n in 0..level {
                assert_eq!(pair.a.nic.credits(&pair.a.endpoint), credits - n);
                assert!(pair.a.send(number, &[number; 9]), "{round}");
                number = number.wrapping_add(1);
            }
            let is_full = level == credits;
            if is_full {
                assert!(!pair.a.send(0, &[]), "there is no credit");
                assert_eq!(pair.a.nic.credits(&pair.a.endpoint), 0);
            }
            for n in 0..level as u8 {
                let wanted = first.wrapping_add(n);
                assert!(is_came(pair.b.next(), data(1).remote));
                assert_eq!(pair.b.take(), Some((wanted, vec![wanted; 9])));
            }
            assert!(pair.b.take().is_none() && pair.b.next().is_none());
            // Of credits that were wanted.
            assert_eq!(pair.a.next().is_some(), is_full);
        }
    }
}

#[test]
fn credits_come_back_by_halves_and_a_sender_without_any_hears_of_it() {
    let pair = Pair::new();
    for _ in 0..20 {
        while pair.a.send(1, b"one") {}
        assert!(pair.a.next().is_none());
        let mut taken = 0;
        while !pair.a.nic.has_event(&pair.a.queue) {
            assert_eq!(pair.a.nic.credits(&pair.a.endpoint), 0);
            assert!(pair.b.take().is_some());
            taken += 1;
        }
        // One was released before and not returned, at most.
        assert!((1..=SHAPE.messages / 2).contains(&taken), "{taken}");
        assert!(is_came(pair.a.next(), data(0).remote));
        assert_eq!(pair.a.nic.credits(&pair.a.endpoint), SHAPE.messages / 2);
        // One that has some hears of none.
        assert!(pair.a.send(2, b"two"));
        while pair.b.take().is_some() {}
        assert!(pair.a.next().is_none());
    }
}

#[test]
fn messages_have_every_length_and_come_in_parts() {
    for reports in [false, true] {
        let shape = Shape {
            messages: 3,
            message_bytes: 300,
        };
        let pair = Pair::with(shape, 64, reports, FaultRules::default());
        for len in 0..=300 {
            let whole = bytes(len);
            let (one, rest) = whole.split_at(len / 3);
            let (two, three) = rest.split_at(rest.len() / 2);
            let parts = [one, two, &[], three].map(SharedBytes::from_slice);
            assert!(pair.a.nic.send(&pair.a.endpoint, 255, &parts).unwrap());
            assert_eq!(pair.b.nic.has_event(&pair.b.queue), reports);
            assert_eq!(pair.b.next().is_some(), reports);
            assert_eq!(pair.b.take(), Some((255, whole)));
        }
        let long = bytes(301);
        let parts = [SharedBytes::from_slice(&long)];
        let sent = pair.a.nic.send(&pair.a.endpoint, 0, &parts);
        assert!(matches!(
            sent,
            Err(GniError::TooLong {
                len_bytes: 301,
                most_bytes: 300,
                ..
            })
        ));
    }
}

#[test]
fn both_directions_are_independent() {
    let pair = Pair::new();
    for n in 0..100_u8 {
        assert!(pair.a.send(n, &[n]) && pair.b.send(n, &[n, n]));
        assert_eq!(pair.a.take(), Some((n, vec![n, n])));
        assert_eq!(pair.b.take(), Some((n, vec![n])));
    }
}

#[test]
fn numbers_of_messages_wrap_around() {
    for before in [
        u64::from(u32::MAX) - 7,
        u64::from(u32::MAX) * 3 - 2,
        u64::MAX - 3,
    ] {
        let pair = Pair::closed(64, true, FaultRules::default());
        for end in [&pair.a, &pair.b] {
            write(&end.nic, MAILBOX, &before.to_ne_bytes());
        }
        pair.open(SHAPE);
        for n in 0..40_u8 {
            assert!(pair.b.take().is_none());
            assert!(pair.a.send(n, &[n; 50]));
            if n % 3 == 0 {
                assert!(pair.a.send(n, b"second"));
                assert_eq!(pair.b.take(), Some((n, vec![n; 50])));
                assert_eq!(pair.b.take(), Some((n, b"second".to_vec())));
            } else {
                assert_eq!(pair.b.take(), Some((n, vec![n; 50])));
            }
        }
    }
}

/// A new endpoint with the same mailboxes.
fn reopen(end: &mut End, other: &End) {
    let to = end.endpoint.to;
    end.endpoint = end
        .nic
        .create_endpoint(&end.queue, to, data(to.rank.0))
        .unwrap();
    end.open(other, SHAPE);
}

#[test]
fn a_mailbox_is_opened_once_more_where_it_was() {
    let mut pair = Pair::new();
    for round in 0..10_u8 {
        for n in 0..round % 4 {
            assert!(pair.a.send(n, &[round]));
        }
        for _ in 0..round % 3 {
            let _ = pair.b.take();
        }
        let left = (round % 4).saturating_sub(round % 3);
        reopen(&mut pair.b, &pair.a);
        reopen(&mut pair.a, &pair.b);
        let credits = pair.a.nic.credits(&pair.a.endpoint);
        assert_eq!(credits, SHAPE.messages - u32::from(left));
        for n in 0..left {
            assert_eq!(pair.b.take(), Some((round % 3 + n, vec![round])));
        }
        assert!(pair.b.take().is_none());
    }
}

#[test]
fn mailboxes_are_checked() {
    let pair = Pair::closed(64, true, FaultRules::default());
    let (a, b) = (&pair.a, &pair.b);
    let (good, there) = (a.mailbox(SHAPE), b.mailbox(SHAPE));
    let open = |local: &Mailbox, remote: &Mailbox| a.nic.open_mailbox(&a.endpoint, local, remote);
    let send = || a.nic.send(&a.endpoint, 0, &[]);
    assert!(matches!(send(), Err(GniError::NotOpen { .. })));
    assert!(matches!(
        a.nic.receive(&a.endpoint),
        Err(GniError::NotOpen { .. })
    ));
    assert!(matches!(
        a.nic.release(&a.endpoint),
        Err(GniError::NotOpen { .. })
    ));
    assert_eq!(a.nic.credits(&a.endpoint), 0);
    let other = Mailbox {
        shape: Shape {
            messages: 5,
            ..SHAPE
        },
        ..good
    };
    assert!(matches!(
        open(&other, &there),
        Err(GniError::Invalid { .. })
    ));
    let odd = Mailbox { offset: 32, ..good };
    assert!(matches!(open(&odd, &there), Err(GniError::Invalid { .. })));
    let far = Mailbox {
        offset: super::BUFFERS - 64,
        ..good
    };
    assert!(matches!(
        open(&far, &there),
        Err(GniError::OutOfRange { .. })
    ));
    let far = Mailbox {
        offset: u64::MAX - 63,
        ..there
    };
    assert!(matches!(
        open(&good, &far),
        Err(GniError::OutOfRange { .. })
    ));
    assert!(matches!(
        open(&there, &there),
        Err(GniError::BadHandle { .. })
    ));
    assert!(matches!(
        open(&good, &good),
        Err(GniError::BadHandle { .. })
    ));
    for shape in [(0, 8), (8, 0), (u32::MAX, 8), (8, u32::MAX)] {
        let (messages, message_bytes) = shape;
        let bytes = a.nic.mailbox_bytes(Shape {
            messages,
            message_bytes,
        });
        assert!(matches!(bytes, Err(GniError::Invalid { .. })));
    }
    assert_eq!(a.nic.mailbox_bytes(SHAPE).unwrap(), 64 + 4 * 128);
    open(&good, &there).unwrap();
    assert!(matches!(open(&good, &there), Err(GniError::Invalid { .. })));
    assert!(send().unwrap());
    assert!(matches!(
        a.nic.release(&a.endpoint),
        Err(GniError::Invalid { .. })
    ));
}

#[test]
fn memory_that_has_gone_is_not_written() {
    let pair = Pair::new();
    assert!(pair.a.send(1, b"first"));
    pair.a.nic.deregister(pair.a.memory).unwrap();
    let before = read(&pair.a.nic, MAILBOX, 64);
    assert!(pair.b.take().is_some());
    assert_eq!(read(&pair.a.nic, MAILBOX, 64), before);
    let sent = pair.b.nic.send(&pair.b.endpoint, 1, &[]);
    assert!(matches!(sent, Err(GniError::BadHandle { .. })));
    // The reverse direction does not need it.
    assert!(pair.a.send(1, b"second") && pair.b.take().is_some());
}

#[test]
fn an_interface_sends_to_itself() {
    let pair = Pair::closed(64, true, FaultRules::default());
    let a = &pair.a;
    let ends = [0_u32, 1].map(|n| {
        let memory = register(&a.nic, u64::from(n) * 4096, 4096, Some(&a.queue));
        let mailbox = Mailbox {
            handle: memory,
            offset: 0,
            shape: SHAPE,
        };
        (
            a.nic
                .create_endpoint(&a.queue, address(0), data(n))
                .unwrap(),
            mailbox,
        )
    });
    let [(one, first), (two, second)] = &ends;
    a.nic.open_mailbox(one, first, second).unwrap();
    a.nic.open_mailbox(two, second, first).unwrap();
    let text = [SharedBytes::from_slice(b"to itself")];
    assert!(a.nic.send(one, 4, &text).unwrap());
    assert!(is_came(a.next(), data(0).remote));
    let arrived = a.nic.receive(two).unwrap().unwrap();
    assert_eq!((arrived.tag, arrived.bytes.len()), (4, 9));
    // Out of the mailbox into the same.
    let back = [arrived.bytes];
    assert!(a.nic.send(two, 5, &back).unwrap());
    a.nic.release(two).unwrap();
    let arrived = a.nic.receive(one).unwrap().unwrap();
    let mut bytes = [0; 9];
    arrived.bytes.copy_to(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"to itself");
}

#[test]
fn messages_of_two_threads_arrive_whole_and_in_order() {
    let shape = Shape {
        messages: 8,
        message_bytes: 200,
    };
    for reports in [false, true] {
        let pair = Pair::with(shape, 64, reports, FaultRules::default());
        let (a, b) = (&pair.a, &pair.b);
        std::thread::scope(|scope| {
            for (from, to) in [(a, b), (b, a)] {
                scope.spawn(move || {
                    for n in 0..50_000_usize {
                        let text = [n as u8; 200];
                        while !from.send(n as u8, &text[..n % 201]) {
                            std::thread::yield_now();
                        }
                    }
                });
                scope.spawn(move || {
                    for n in 0..50_000_usize {
                        let (tag, bytes) = loop {
                            let _ = to.nic.next_event(&to.queue);
                            match to.take() {
                                Some(message) => break message,
                                None => std::thread::yield_now(),
                            }
                        };
                        assert_eq!(tag, n as u8);
                        assert!(bytes.len() == n % 201 && bytes.iter().all(|b| *b == tag));
                    }
                });
            }
        });
    }
}

#[test]
fn own_posts_and_messages_share_a_queue() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    for _ in 0..10 {
        assert!(a.send(0, b"x") && b.take().is_some());
    }
    let put = b.post(a, crate::gni::Operation::Put, 0, 0, 8);
    for _ in 0..10 {
        b.fma(&put).unwrap();
    }
    // Neither kind waits for all of the other.
    let kinds: Vec<bool> = std::iter::from_fn(|| b.next())
        .map(|event| matches!(event.kind, crate::gni::EventKind::Came))
        .collect();
    assert_eq!(kinds.len(), 20);
    assert!(kinds[..4].contains(&true) && kinds[..4].contains(&false));
    b.fma(&put).unwrap();
    assert_eq!(ended(b.next()), (5, 0, Ok(())));
}
