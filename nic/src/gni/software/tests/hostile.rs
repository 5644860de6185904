//! Calls return with any bytes of a peer in shared memory: with garbage, an error or an outcome,
//! but no panic, no access outside of the file, and no call that never ends.

use super::{MAILBOX, Pair, SHAPE, address, memory, write};
use crate::gni::{Amo, AmoBits, Gni, GniError, Operation};
use core::sync::atomic::Ordering;
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
            u64::MAX,
            1 << 32,
            1 << 33,
            1 << 63,
            0xffff_ffff
        ]),
        any::<u64>(),
        (0..70_u64, 0..70_u64).prop_map(|(low, high)| high << 32 | low),
        (0..70_u64, 0..3_u64).prop_map(|(number, state)| number << 2 | state),
    ]
}

/// All calls, whatever they answer.
fn call_all(pair: &Pair) {
    for (end, other) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let amo = Operation::Amo {
            amo: Amo::Add,
            bits: AmoBits::Eight,
            operands: [1, 2],
            fetch: true,
        };
        for operation in [Operation::Put, Operation::Get, amo] {
            for len in [8, 4096] {
                let mut post = end.post(other, operation, 0, 0, len);
                post.remote_event = true;
                let _ = end.fma(&post);
                let _ = end.rdma(&post, &[post]);
            }
        }
        for _ in 0..6 {
            let _ = end.nic.send(&end.endpoint, 3, &[]);
            let _ = end.nic.receive(&end.endpoint);
            let _ = end.nic.release(&end.endpoint);
            let _ = end.nic.credits(&end.endpoint);
            let _ = end.nic.next_event(&end.queue);
            let _ = end.nic.next_datagram();
        }
        let to = address(other.nic.address().rank.0);
        let _ = end.nic.post_datagram(Some(to), 1, b"bound");
        let _ = end.nic.post_datagram(None, 2, b"wild");
        let _ = end.nic.next_datagram();
        let _ = end.nic.cancel_datagram(1);
        let _ = end.nic.cancel_datagram(2);
        // Not forever.
        for _ in 0..10_000 {
            if !end.nic.has_event(&end.queue) {
                break;
            }
            let _ = end.nic.next_event(&end.queue);
        }
        end.nic.wake();
        let again = end.nic.create_endpoint(&end.queue, to, super::data(0));
        if let Ok(again) = again {
            let _ = end
                .nic
                .open_mailbox(&again, &end.mailbox(SHAPE), &other.mailbox(SHAPE));
        }
        // SAFETY: as in `register`.
        let _ = unsafe {
            let access = crate::gni::Access::ReadWrite;
            end.nic
                .register(None, memory(&end.nic, 0), 8, access, Some(&end.queue))
        };
    }
}

proptest! {
    #[test]
    fn garbage_in_tables_is_survived(
        writes in prop::collection::vec((0..2_u32, any::<prop::sample::Index>(), value()), 1..60),
    ) {
        let pair = Pair::with(SHAPE, 4, true, super::FaultRules::default());
        let layout = pair.a.nic.shared.region.layout;
        // Heads and datagrams, and the events of the first queue; not the sleep words, which the
        // test changes by calls alone.
        let ends = layout.event(0, 0, 4) - layout.area(0);
        assert!(ends < layout.table_bytes());
        for round in 0..2 {
            for (place, index, value) in &writes {
                let words = (ends - 0x80) / 8;
                let at = layout.area(*place) + 0x80 + index.index(words as usize) as u64 * 8;
                pair.a.nic.shared.region.word(at).store(*value, Ordering::SeqCst);
                if round == 1 {
                    let _ = pair.b.nic.next_event(&pair.b.queue);
                    let _ = pair.a.nic.send(&pair.a.endpoint, 0, &[]);
                    let _ = pair.a.nic.next_datagram();
                }
            }
            call_all(&pair);
        }
    }

    #[test]
    fn garbage_in_mailboxes_is_survived(
        writes in prop::collection::vec((any::<bool>(), 0..80_u64, value()), 1..20),
        sent in 0..6,
    ) {
        let pair = Pair::new();
        for n in 0..sent {
            let _ = pair.a.nic.send(&pair.a.endpoint, n as u8, &[]);
        }
        for (first, word, value) in writes {
            let end = if first { &pair.a } else { &pair.b };
            write(&end.nic, MAILBOX + word * 8, &value.to_ne_bytes());
            let _ = pair.b.nic.receive(&pair.b.endpoint);
            let _ = pair.b.nic.release(&pair.b.endpoint);
        }
        call_all(&pair);
    }
}

#[test]
fn a_ring_that_a_mad_peer_has_written_is_used_again() {
    let pair = Pair::with(SHAPE, 4, true, super::FaultRules::default());
    let region = &pair.b.nic.shared.region;
    let layout = region.layout;
    let places = [
        layout.event(1, 0, 0),
        layout.event(1, 0, 1),
        layout.event(1, 0, 2),
        layout.queue(1, 0) + crate::gni::software::ring::TAIL,
    ];
    for at in places {
        for value in [0, u64::MAX, 7, 1 << 32, 12345 << 33 | 1 << 32] {
            region.word(at).store(value, Ordering::SeqCst);
            let mut good = 0;
            for _ in 0..40 {
                let _ = pair.b.take();
                assert!(pair.a.send(0, b"x"));
                match pair.b.nic.next_event(&pair.b.queue) {
                    Ok(Some(_)) => good += 1,
                    Ok(None) | Err(GniError::Overrun { .. }) => good = 0,
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(good > 20, "{at:#x} {value:#x}: {good}");
        }
    }
}

#[test]
fn mailboxes_that_no_peer_writes_so_are_damaged() {
    let pair = Pair::new();
    let stamp = 1_u64 << 32 | 101;
    write(&pair.b.nic, MAILBOX + 64, &stamp.to_ne_bytes());
    let got = pair.b.nic.receive(&pair.b.endpoint);
    assert!(matches!(got, Err(GniError::Damaged { .. })));
    // More released than was sent.
    assert!(pair.a.send(0, b"x"));
    write(&pair.a.nic, MAILBOX, &9_u64.to_ne_bytes());
    for _ in 0..3 {
        let _ = pair.a.nic.send(&pair.a.endpoint, 0, &[]);
    }
    let sent = pair.a.nic.send(&pair.a.endpoint, 0, &[]);
    assert!(matches!(sent, Err(GniError::Damaged { .. })));
    assert_eq!(pair.a.nic.credits(&pair.a.endpoint), 0);
}
