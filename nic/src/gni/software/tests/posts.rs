//! One-sided operations.

use super::{BUFFERS, FaultRules, Pair, SHAPE, data, ended, is_came, memory, read, write};
use crate::gni::{
    Access, Amo, AmoBits, Failure, Gni, GniError, MemHandle, Operation, Post, RemotePlace,
};

fn amo(amo: Amo, bits: AmoBits, operands: [u64; 2]) -> Operation {
    Operation::Amo {
        amo,
        bits,
        operands,
        fetch: true,
    }
}

#[test]
fn puts_and_gets_of_any_length_move_what_they_say() {
    let pair = Pair::with(SHAPE, 64, false, FaultRules::default());
    let (a, b) = (&pair.a, &pair.b);
    for (len, rdma) in [0_u64, 1, 4, 7, 8, 64, 1000, 1024, 1025, 70_000]
        .into_iter()
        .flat_map(|len| [(len, false), (len, true)])
    {
        let bytes: Vec<u8> = (0..len).map(|n| (n * 7 + len) as u8).collect();
        write(&a.nic, 3, &bytes);
        write(&b.nic, 100_000, &vec![0xee; len as usize + 20]);
        let put = a.post(b, Operation::Put, 3, 100_009, len);
        let post = |post: &Post| if rdma { a.rdma(post, &[]) } else { a.fma(post) };
        post(&put).unwrap();
        let event = a.next();
        assert_eq!(event.as_ref().map(|event| event.data), Some(data(1).local));
        assert_eq!(ended(event), (5, 0, Ok(())));
        assert_eq!(read(&b.nic, 100_009, len as usize), bytes);
        assert_eq!(read(&b.nic, 100_000, 9), [0xee; 9]);
        assert_eq!(read(&b.nic, 100_009 + len, 9), [0xee; 9]);
        let len = len / 4 * 4;
        let get = a.post(b, Operation::Get, 300_000, 100_012, len);
        post(&get).unwrap();
        assert_eq!(ended(a.next()), (5, 0, Ok(())));
        let there = read(&b.nic, 100_012, len as usize);
        assert_eq!(read(&a.nic, 300_000, len as usize), there);
        assert!(b.next().is_none());
    }
}

#[test]
fn atomic_operations_change_words_and_report_what_was_there() {
    let pair = Pair::new();
    let minus = |n: i64| n.wrapping_neg() as u64;
    let cases = [
        (Amo::Add, 5, [7, 0], 12),
        (Amo::And, 0b1100, [0b0110, 0], 0b0100),
        (Amo::Or, 0b1100, [0b0110, 0], 0b1110),
        (Amo::Xor, 0b1100, [0b0110, 0], 0b1010),
        (Amo::Min, 3, [minus(4), 0], minus(4)),
        (Amo::Max, minus(4), [3, 0], 3),
        (Amo::Swap, 1, [2, 0], 2),
        (Amo::CompareSwap, 1, [1, 9], 9),
        (Amo::CompareSwap, 1, [2, 9], 1),
        (Amo::Add, u64::MAX, [1, 0], 0),
    ];
    for (kind, before, operands, after) in cases {
        for bits in [AmoBits::Four, AmoBits::Eight] {
            let len = if bits == AmoBits::Four { 4 } else { 8 };
            let bytes = |n: u64| n.to_ne_bytes()[..len].to_vec();
            write(&pair.b.nic, 64, &[0x55; 8]);
            write(&pair.b.nic, 64, &bytes(before));
            let post = pair.a.post(&pair.b, amo(kind, bits, operands), 0, 64, 0);
            pair.a.fma(&post).unwrap();
            let (_, fetched, result) = ended(pair.a.next());
            assert_eq!(result, Ok(()));
            assert_eq!(bytes(fetched), bytes(before), "{kind:?}");
            assert_eq!(fetched >> (8 * len - 1) >> 1, 0);
            assert_eq!(read(&pair.b.nic, 64, len), bytes(after), "{kind:?}");
            if len == 4 {
                assert_eq!(read(&pair.b.nic, 68, 4), [0x55; 4]);
            }
        }
    }
    let silent = Operation::Amo {
        amo: Amo::Add,
        bits: AmoBits::Eight,
        operands: [1, 0],
        fetch: false,
    };
    write(&pair.b.nic, 64, &[1; 8]);
    pair.a.fma(&pair.a.post(&pair.b, silent, 0, 64, 8)).unwrap();
    assert_eq!(ended(pair.a.next()), (5, 0, Ok(())));
}

#[test]
fn places_that_the_hardware_does_not_take_are_refused() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    let get = |at, offset, len| a.post(b, Operation::Get, at, offset, len);
    for post in [get(1, 0, 4), get(0, 2, 4), get(0, 0, 7)] {
        assert!(matches!(a.fma(&post), Err(GniError::Alignment { .. })));
        assert!(matches!(
            a.rdma(&post, &[]),
            Err(GniError::Alignment { .. })
        ));
        let good = get(0, 0, 4);
        assert!(matches!(
            a.rdma(&good, &[post]),
            Err(GniError::Alignment { .. })
        ));
    }
    for (bits, offset) in [(AmoBits::Eight, 4), (AmoBits::Four, 2), (AmoBits::Four, 1)] {
        let post = a.post(b, amo(Amo::Add, bits, [1, 0]), 0, offset, 8);
        assert!(matches!(a.fma(&post), Err(GniError::Alignment { .. })));
    }
    let post = a.post(b, amo(Amo::Add, AmoBits::Eight, [1, 0]), 0, 0, 8);
    assert!(matches!(a.rdma(&post, &[]), Err(GniError::Invalid { .. })));
    assert!(a.next().is_none());
}

#[test]
fn what_is_not_registered_is_not_reached() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    let put = a.post(b, Operation::Put, 0, 0, 8);
    let at = |offset, len_bytes| Post {
        remote: RemotePlace {
            offset,
            ..put.remote
        },
        len_bytes,
        ..put
    };
    for post in [
        at(BUFFERS - 7, 8),
        at(u64::MAX, 8),
        at(BUFFERS + 1, 0),
        at(0, BUFFERS + 1),
    ] {
        assert!(matches!(a.fma(&post), Err(GniError::OutOfRange { .. })));
        assert!(matches!(
            a.rdma(&put, &[post]),
            Err(GniError::OutOfRange { .. })
        ));
    }
    let long = at(0, crate::gni::software::post::FMA_BYTES + 1);
    assert!(matches!(a.fma(&long), Err(GniError::TooLong { .. })));
    let of = |handle| Post {
        remote: RemotePlace { handle, offset: 0 },
        ..put
    };
    let good = put.remote.handle;
    let bad = [
        MemHandle {
            key: good.key ^ 1,
            ..good
        },
        MemHandle { key: 0, ..good },
        MemHandle {
            index: good.index + 1,
            ..good
        },
        MemHandle {
            index: u32::MAX,
            ..good
        },
        MemHandle {
            of: super::address(0),
            ..good
        },
        MemHandle {
            of: super::address(7),
            ..good
        },
        a.memory,
    ];
    for handle in bad {
        assert!(matches!(
            a.fma(&of(handle)),
            Err(GniError::BadHandle { .. })
        ));
    }
    // SAFETY: as in `register`.
    let only = unsafe {
        b.nic
            .register(None, memory(&b.nic, 0), 64, Access::ReadOnly, None)
    };
    let only = only.unwrap();
    let add = amo(Amo::Add, AmoBits::Eight, [1, 0]);
    for operation in [Operation::Put, add] {
        let post = Post {
            operation,
            ..of(only)
        };
        assert!(matches!(a.fma(&post), Err(GniError::NotAllowed { .. })));
    }
    a.fma(&Post {
        operation: Operation::Get,
        ..of(only)
    })
    .unwrap();
    b.nic.deregister(only).unwrap();
    assert!(matches!(a.fma(&of(only)), Err(GniError::BadHandle { .. })));
    assert_eq!(std::iter::from_fn(|| a.next()).count(), 1);
}

#[test]
fn the_peer_gets_an_event_if_it_is_asked_for() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    let mut put = a.post(b, Operation::Put, 0, 0, 8);
    a.fma(&put).unwrap();
    assert!(b.next().is_none());
    put.remote_event = true;
    a.fma(&put).unwrap();
    assert!(is_came(b.next(), data(1).remote));
    // One for a chain.
    a.rdma(&put, &[put, put]).unwrap();
    assert!(is_came(b.next(), data(1).remote) && b.next().is_none());
    assert_eq!(std::iter::from_fn(|| a.next()).count(), 3);
}

#[test]
fn chains_have_all_their_pieces_carried_and_one_event() {
    let pair = Pair::new();
    let (a, b) = (&pair.a, &pair.b);
    write(&a.nic, 0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let piece = |at, offset| a.post(b, Operation::Put, at, offset, 2);
    a.rdma(&piece(0, 100), &[piece(2, 200), piece(4, 300)])
        .unwrap();
    assert_eq!(ended(a.next()), (5, 0, Ok(())));
    assert!(a.next().is_none());
    let there = [100, 200, 300].map(|at| read(&b.nic, at, 2));
    assert_eq!(there, [[1, 2], [3, 4], [5, 6]]);
    let many = vec![piece(0, 0); 5000];
    assert!(matches!(
        a.rdma(&piece(0, 0), &many),
        Err(GniError::TooLong { .. })
    ));
}

#[test]
fn ranges_of_one_interface_may_overlap() {
    let pair = Pair::new();
    let a = &pair.a;
    let own = a
        .nic
        .create_endpoint(&a.queue, super::address(0), data(0))
        .unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    write(&a.nic, 0, &bytes);
    let post = a.post(a, Operation::Put, 0, 16, 256);
    // SAFETY: as in `fma`.
    unsafe { a.nic.post_fma(&own, &post) }.unwrap();
    assert_eq!(read(&a.nic, 16, 256), bytes);
}

#[test]
fn failures_have_texts() {
    for failure in [Failure::Transient, Failure::Fatal, Failure::Gone] {
        assert!(failure.to_string().contains("transaction"));
    }
}
