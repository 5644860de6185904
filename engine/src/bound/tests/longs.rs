//! Long active messages into bound memory.

use super::rig::{BOUNCE, NOTE, Rig, Seen, UNREGISTERED, bytes, context, long};
use crate::{BoundPlace, Injection, OpError, internal};
use argonet_am::{AmError, Category, MessageClass};

const KIB64: usize = 64 << 10;
/// The most bytes that fit one message.
const MOST: usize = KIB64 - 24;
const SIZES: [usize; 11] = [
    0,
    1,
    7,
    8,
    4095,
    MOST - 1,
    MOST,
    MOST + 1,
    KIB64,
    KIB64 + 1,
    (1 << 20) + 3,
];

fn args(count: usize) -> Vec<u32> {
    (0..count).map(|i| u32::MAX - i as u32).collect()
}

#[test]
fn requests_of_every_size_arrive_as_they_were_sent() {
    let rig = Rig::pair((1 << 20) + 100);
    for (i, len) in SIZES.into_iter().enumerate() {
        for nargs in [0, 1, 2, 3, 15, 16] {
            let at = 13 + nargs;
            let (place, args, source) = (rig.place(1, at), args(nargs), bytes(i + nargs, len));
            rig.served(|engine, ctx| {
                long(
                    engine,
                    ctx,
                    place,
                    NOTE,
                    &args,
                    &source,
                    Injection::Blocking,
                )
                .unwrap();
                // A payload that travels apart is there before the message leaves.
                assert_eq!(engine.bound.flights.under_way(), 0);
            });
            assert_eq!(rig.settle(), None);
            let seen = Seen {
                source: 0,
                class: MessageClass::Request,
                category: Category::Long,
                args,
                address: Some(place.address),
                payload: source.clone(),
            };
            assert!(rig.seen(1) == [seen], "{len} bytes, {nargs} arguments");
            assert!(rig.memory[1].read(at, len) == source);
        }
    }
}

#[test]
fn a_rank_sends_to_itself() {
    let rig = Rig::pair(3 * KIB64);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    for len in [0, 5, 2 * KIB64] {
        let (place, source) = (rig.place(0, 3), bytes(len, len));
        long(
            engine,
            &ctx,
            place,
            NOTE,
            &[9],
            &source,
            Injection::Blocking,
        )
        .unwrap();
        assert!(rig.seen(0).is_empty(), "the handler runs in a poll");
        assert_eq!(rig.settle(), None);
        let seen = rig.seen(0);
        assert_eq!((seen.len(), seen[0].address), (1, Some(place.address)));
        assert!(seen[0].payload == source);
    }
}

#[test]
fn without_bytes_the_address_is_anything() {
    let rig = Rig::pair(8);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    for address in [0, 1, u64::MAX] {
        let place = BoundPlace {
            endpoint: 77,
            address,
            ..rig.place(1, 0)
        };
        let sent = long(engine, &ctx, place, NOTE, &[], &[], Injection::Immediate);
        assert_eq!(sent, Ok(()));
        assert_eq!(rig.settle(), None);
        let seen = rig.seen(1);
        assert_eq!(seen[0].address, Some(address));
        assert!(seen[0].payload.is_empty());
    }
}

#[test]
fn replies_of_every_size_arrive_as_they_were_sent() {
    // More than the requester's ring takes at once.
    let most = 200 * KIB64;
    let rig = Rig::pair(most + 21);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    assert_eq!(engine.bound_long_reply_at_once(), MOST);
    for len in SIZES.into_iter().chain([most]) {
        for nargs in [0, 1, 12] {
            let (to, source) = (rig.place(0, 21), bytes(len + nargs, 1000));
            // How often the payload is repeated, and how much of that comes back.
            let times = len.div_ceil(source.len());
            let address = match nargs {
                // As an offset.
                1 => [21, 0],
                _ => [to.address as u32, (to.address >> 32) as u32],
            };
            let request = [&address[..], &[times as u32, len as u32], &args(nargs)].concat();
            let place = rig.place(1, 0);
            long(
                engine,
                &ctx,
                place,
                BOUNCE,
                &request,
                &source,
                Injection::Blocking,
            )
            .unwrap();
            assert_eq!(rig.settle(), None);
            let refused = std::mem::take(&mut *rig.ranks[1].notes.refused.lock());
            // The right to reply came with the message, once.
            assert!(
                matches!(refused[..], [AmError::RepliedTwice { .. }]),
                "{refused:?}"
            );
            let payload = source.repeat(times)[..len].to_vec();
            let seen = Seen {
                source: 1,
                class: MessageClass::Reply,
                category: Category::Long,
                args: args(nargs),
                address: Some(to.address),
                payload: payload.clone(),
            };
            assert!(rig.seen(0) == [seen], "{len} bytes, {nargs} arguments");
            assert!(rig.memory[0].read(21, len) == payload);
        }
    }
}

#[test]
fn the_inner_reply_uses_up_the_outer_one() {
    // More requests that reply than have room for their replies at once: the target takes them one
    // by one as room comes back.
    let rig = Rig::pair(KIB64);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    let to = rig.place(0, 0).address;
    let request = [to as u32, (to >> 32) as u32, 32, 32_000];
    let mut replies = 0;
    rig.served(|_, _| {
        for _ in 0..100 {
            let (place, source) = (rig.place(1, 0), bytes(1, 1000));
            long(
                engine,
                &ctx,
                place,
                BOUNCE,
                &request,
                &source,
                Injection::Blocking,
            )
            .unwrap();
        }
        let what = argonet_boot::Waiting::new(argonet_boot::WaitFor::Condition);
        let done = || {
            replies += rig.seen(0).len();
            replies == 100
        };
        engine.wait_until(&ctx, what, done).unwrap();
    });
    assert_eq!(rig.settle(), None);
}

#[test]
fn errors_are_reported_before_anything_is_sent() {
    let rig = Rig::pair(KIB64);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    let place = rig.place(1, 0);
    let missing = BoundPlace {
        rank: argonet_base::JobRank(2),
        ..place
    };
    let send = |place, handler, nargs| match long(
        engine,
        &ctx,
        place,
        handler,
        &args(nargs),
        &[1],
        Injection::Blocking,
    ) {
        Err(OpError::Am(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(send(missing, NOTE, 0), AmError::NoSuchRank { .. }));
    assert!(matches!(send(place, NOTE, 17), AmError::TooManyArgs { .. }));
    assert!(matches!(
        send(place, UNREGISTERED, 0),
        AmError::Unregistered { .. }
    ));
    assert!(matches!(
        send(place, internal::BOUND_LONG, 0),
        AmError::NotForClients { .. }
    ));
    assert!(matches!(
        send(place, internal::BARRIER, 0),
        AmError::NotForClients { .. }
    ));
    assert_eq!(rig.settle(), None);
    assert!(rig.seen(1).is_empty());
}

#[test]
fn without_room_immediate_says_so() {
    let rig = Rig::pair(4 * KIB64);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    let mut sent = 0;
    let full = loop {
        match long(
            engine,
            &ctx,
            rig.place(1, 0),
            NOTE,
            &[],
            &[7; 100],
            Injection::Immediate,
        ) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, OpError::Am(AmError::Full { .. })), "{full}");
    // One whose payload travels apart.
    let source = bytes(1, 2 * KIB64);
    let full = long(
        engine,
        &ctx,
        rig.place(1, 200),
        NOTE,
        &[],
        &source,
        Injection::Immediate,
    );
    assert!(
        matches!(full, Err(OpError::Am(AmError::Full { .. }))),
        "{full:?}"
    );
    assert_eq!(rig.settle(), None);
    assert_eq!(rig.seen(1).len(), sent);
    assert_eq!(rig.memory[1].read(200, 8), [0xee; 8]);
    rig.served(|engine, ctx| {
        long(
            engine,
            ctx,
            rig.place(1, 200),
            NOTE,
            &[],
            &source,
            Injection::Immediate,
        )
        .unwrap();
    });
    assert_eq!(rig.settle(), None);
    assert!(rig.memory[1].read(200, source.len()) == source);
}
