//! Peers get the notice when all of a put lies there, and not before.

use super::pure::pattern;
use crate::bound::tests::rig::{ENDPOINT, NOTE, Rig, Seen, UNREGISTERED, context};
use crate::vis::{Direction, Notice, PeerMemory, Shape, VisTransfer};
use crate::{Injection, Strided};
use argonet_am::{Category, Delivery, Endpoints, HandlerTable, MessageClass};
use argonet_base::JobRank;
use parking_lot::Mutex;
use std::sync::Arc;

fn note(payload: &[u8]) -> Notice {
    Notice {
        handler: NOTE,
        ends: Endpoints::PRIMORDIAL,
        payload: payload.as_ptr(),
        len: payload.len(),
    }
}

fn put<'a>(rank: u32, memory: PeerMemory, shape: Strided<'a>, notice: Notice) -> VisTransfer<'a> {
    VisTransfer {
        direction: Direction::Put,
        rank: JobRank(rank),
        memory,
        shape: Shape::Strided(shape),
        notice: Some(notice),
    }
}

fn seen(payload: &[u8]) -> Seen {
    Seen {
        source: 0,
        class: MessageClass::Reply,
        category: Category::Medium,
        args: Vec::new(),
        address: None,
        payload: payload.to_vec(),
    }
}

/// A handler sees no address of a medium's payload but its own, which does not matter.
fn without_address(mut seen: Vec<Seen>) -> Vec<Seen> {
    seen.iter_mut().for_each(|seen| seen.address = None);
    seen
}

#[test]
fn all_of_it_is_there_when_the_handler_runs() {
    const ELEMENTS: usize = 60_000;
    let rig = Rig::pair(2 * ELEMENTS);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let source = pattern(1, ELEMENTS);
    for (memory, base) in [
        (
            PeerMemory::Bound(ENDPOINT),
            rig.memory[1].address() as usize,
        ),
        (PeerMemory::Segment, 0),
    ] {
        for payload in [&b""[..], b"x", &pattern(2, Notice::MOST)] {
            for elements in [0, 1, 20, 20_000] {
                let shape = Strided {
                    to: base,
                    to_strides: &[2],
                    from: source.as_ptr().expose_provenance(),
                    from_strides: &[1],
                    element: 1,
                    counts: &[elements],
                };
                let transfer = put(1, memory, shape, note(payload));
                // SAFETY: source and payload live to the end.
                let event =
                    unsafe { engine.vis_start(&ctx, &transfer, Injection::Blocking) }.unwrap();
                assert!(rig.seen(1).is_empty());
                assert_eq!(rig.settle(), None);
                assert!(engine.peek(&ctx, event).unwrap());
                assert_eq!(without_address(rig.seen(1)), [seen(payload)]);
                assert!(rig.seen(0).is_empty());
            }
        }
    }
}

/// The event of a put is not complete before the notice is on its way to the peer.
#[test]
fn notices_are_sent_before_the_put_completes() {
    let rig = Rig::pair(4096);
    let source = pattern(3, 4096);
    rig.served(|engine, ctx| {
        for round in 0..100u8 {
            let payload = [round; 3];
            let shape = Strided {
                to: rig.memory[1].address() as usize,
                to_strides: &[2, 64],
                from: source.as_ptr().expose_provenance(),
                from_strides: &[1, 64],
                element: 1,
                counts: &[20, 50],
            };
            let transfer = put(1, PeerMemory::Bound(ENDPOINT), shape, note(&payload));
            // SAFETY: source and payload live to the end.
            unsafe { engine.vis(ctx, &transfer, Injection::Blocking) }.unwrap();
        }
    });
    assert_eq!(rig.settle(), None);
    let payloads = rig.seen(1).into_iter().map(|seen| seen.payload);
    let expected = (0..100u8).map(|round| vec![round; 3]);
    assert!(payloads.eq(expected));
}

#[test]
fn a_notice_to_the_own_rank_runs_its_handler() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let source = pattern(4, 64);
    let shape = Strided {
        to: rig.memory[0].address() as usize,
        to_strides: &[],
        from: source.as_ptr().expose_provenance(),
        from_strides: &[],
        element: 64,
        counts: &[],
    };
    let transfer = put(0, PeerMemory::Bound(ENDPOINT), shape, note(b"here"));
    // SAFETY: source and payload live to the end.
    unsafe { engine.vis(&ctx, &transfer, Injection::Blocking) }.unwrap();
    assert_eq!(rig.settle(), None);
    assert_eq!(without_address(rig.seen(0)), [seen(b"here")]);
    assert_eq!(rig.memory[0].read(0, 64), source);
}

/// A put to memory that a further endpoint has bound: its handler runs, and not that of the same
/// index elsewhere.
#[test]
fn a_notice_runs_the_handler_of_its_endpoint() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let handled = Arc::new(Mutex::new(Vec::new()));
    for rank in &rig.ranks {
        for endpoint in [3, ENDPOINT as u8] {
            let (mut table, into) = (HandlerTable::default(), Arc::clone(&handled));
            let note = move |delivery: &mut Delivery<'_>| {
                assert_eq!(
                    delivery.endpoints(),
                    Endpoints {
                        from: 3,
                        to: endpoint
                    }
                );
                assert_eq!(
                    (delivery.class(), delivery.source()),
                    (MessageClass::Reply, JobRank(0))
                );
                assert!(delivery.has_replied());
                let payload = delivery.payload().to_vec();
                into.lock().push((delivery.rank().0, endpoint, payload));
            };
            table.register_at(NOTE, "note", Box::new(note)).unwrap();
            rank.engine.open_endpoint(endpoint.into(), table).unwrap();
        }
    }
    // A put of no bytes.
    let notify = |to: u8| {
        let nothing = Strided {
            to: 0,
            to_strides: &[],
            from: 0,
            from_strides: &[],
            element: 0,
            counts: &[],
        };
        let notice = Notice {
            ends: Endpoints { from: 0, to },
            ..note(b"")
        };
        let transfer = put(1, PeerMemory::Bound(to.into()), nothing, notice);
        // SAFETY: there are no bytes.
        unsafe { engine.vis(&ctx, &transfer, Injection::Blocking) }.unwrap();
    };
    let source = pattern(5, 64);
    let mut expected = Vec::new();
    for rank in [0, 1] {
        for (to, element) in [(ENDPOINT as u8, 64), (3, 0)] {
            let shape = Strided {
                to: rig.memory[rank as usize].address() as usize,
                to_strides: &[],
                from: source.as_ptr().expose_provenance(),
                from_strides: &[],
                element,
                counts: &[],
            };
            let notice = Notice {
                ends: Endpoints { from: 3, to },
                ..note(b"there")
            };
            let transfer = put(rank, PeerMemory::Bound(to.into()), shape, notice);
            // SAFETY: source and payload live to the end.
            unsafe { engine.vis_start(&ctx, &transfer, Injection::Blocking) }.unwrap();
            assert_eq!(rig.settle(), None);
            expected.push((rank, to, b"there".to_vec()));
        }
    }
    assert_eq!(*handled.lock(), expected);
    assert!(rig.seen(0).is_empty() && rig.seen(1).is_empty());
    // One that cannot have messages has no handlers: the first one's run.
    rig.ranks[1].engine.mute_endpoint(7);
    notify(7);
    assert_eq!(rig.settle(), None);
    assert_eq!(without_address(rig.seen(1)), [seen(b"")]);
    notify(9);
    let message = rig.settle().unwrap();
    assert!(
        message.contains("rank 1 has no endpoint 9 for active messages"),
        "{message}"
    );
}
#[test]
fn a_notice_to_an_unregistered_handler_ends_the_job() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let shape = Strided {
        to: 0,
        to_strides: &[],
        from: 0,
        from_strides: &[],
        element: 0,
        counts: &[],
    };
    let notice = Notice {
        handler: UNREGISTERED,
        ..note(b"")
    };
    let transfer = put(1, PeerMemory::Segment, shape, notice);
    // SAFETY: there are no bytes.
    unsafe { engine.vis(&ctx, &transfer, Injection::Blocking) }.unwrap();
    let message = rig.settle().unwrap();
    assert!(
        message.contains("131") && message.contains("not registered"),
        "{message}"
    );
}
