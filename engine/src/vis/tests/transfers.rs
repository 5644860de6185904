//! Transfers to mapped and to other memory, in all forms.

use super::model::{Case, any_case};
use super::pure::pattern;
use crate::bound::tests::rig::{ENDPOINT, Rig, context};
use crate::vis::{Direction, PeerMemory, Shape, VisTransfer};
use crate::{Engine, Injection, OpError, Side, Target, ThreadCtx, Transfer};
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::smp::Smp;
use argonet_event::{Category, CategoryMask, Event};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const ROOM: usize = 40 << 10;

/// Which memory of rank 1 a transfer is about, how it is waited for, and how it is cut.
#[derive(Clone, Copy, Debug)]
struct How {
    memory: PeerMemory,
    direction: Direction,
    form: Form,
    chunk: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Blocking,
    Event,
    Leaf,
    Implicit,
    Region,
}

fn any_how() -> impl Strategy<Value = How> {
    let memory = prop_oneof![
        2 => Just(PeerMemory::Bound(ENDPOINT)),
        1 => Just(PeerMemory::Segment)
    ];
    let direction = prop_oneof![Just(Direction::Put), Just(Direction::Get)];
    let form = prop_oneof![
        Just(Form::Blocking),
        Just(Form::Event),
        Just(Form::Leaf),
        Just(Form::Implicit),
        Just(Form::Region)
    ];
    let chunk = prop_oneof![1 => Just(usize::MAX), 1 => 1usize..300];
    (memory, direction, form, chunk).prop_map(|(memory, direction, form, chunk)| How {
        memory,
        direction,
        form,
        chunk,
    })
}

/// Does a transfer and waits for it.
fn complete(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    transfer: &VisTransfer<'_>,
    form: Form,
) -> Result<(), OpError> {
    let wait = Injection::Blocking;
    // SAFETY: the caller's memory and lists are there to its end, and so they are when this
    // returns.
    unsafe {
        match form {
            Form::Blocking => engine.vis(ctx, transfer, wait),
            Form::Event => {
                let event = engine.vis_start(ctx, transfer, wait)?;
                engine.wait(ctx, event)
            }
            Form::Leaf => {
                let event = engine.vis_start(ctx, transfer, wait)?;
                let leaf = engine.leaf(event, Category::Lc)?;
                engine.wait(ctx, leaf)?;
                engine.wait(ctx, event)
            }
            Form::Implicit => {
                engine.vis_start_implicit(ctx, transfer, wait)?;
                engine.wait_implicit(ctx, CategoryMask::ALL)
            }
            Form::Region => {
                engine.begin_region(ctx)?;
                engine.vis_start_implicit(ctx, transfer, wait)?;
                let region = engine.end_region(ctx)?;
                engine.wait(ctx, region)
            }
        }
    }
}

/// Reads or writes the memory of rank 1.
fn peer(rig: &Rig, memory: PeerMemory, len: usize, write: Option<&[u8]>) -> Vec<u8> {
    if memory == PeerMemory::Segment {
        let mut bytes = vec![0; len];
        let engine = &rig.ranks[1].engine;
        let (rank, offset) = (JobRank(1), SegmentOffset(0));
        let transfer = match write {
            Some(from) => Transfer {
                target: Target::Segment { rank, offset },
                side: Side::Put(from.as_ptr()),
                len,
            },
            None => Transfer {
                target: Target::Segment { rank, offset },
                side: Side::Get(bytes.as_mut_ptr()),
                len,
            },
        };
        // SAFETY: both slices have that many bytes.
        unsafe { engine.transfer(&context(), transfer) }.unwrap();
        return bytes;
    }
    if let Some(from) = write {
        rig.memory[1].write(0, from);
    }
    rig.memory[1].read(0, len)
}

/// Does a case and compares all memory of both sides with the model's.
fn comes_true(
    rig: &Rig,
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    case: &Case,
    how: How,
) -> Result<(), TestCaseError> {
    let How {
        memory,
        direction,
        form,
        chunk,
    } = how;
    engine.limit_vis_chunk(direction, chunk);
    let (to_len, from_len) = case.needs();
    prop_assert!(to_len <= ROOM && from_len <= ROOM);
    let base = match memory {
        PeerMemory::Segment => 0,
        PeerMemory::Bound(_) => rig.memory[1].address() as usize,
    };
    let is_put = direction == Direction::Put;
    let there = if is_put {
        vec![0xee; ROOM]
    } else {
        pattern(2, ROOM)
    };
    let mut here = if is_put {
        pattern(3, ROOM)
    } else {
        vec![0xee; ROOM]
    };
    peer(rig, memory, ROOM, Some(&there));
    let expected = match is_put {
        true => case.applied(&there, &here),
        false => case.applied(&here, &there),
    };
    let local = here.as_mut_ptr().expose_provenance();
    let (to, from) = if is_put { (base, local) } else { (local, base) };
    let done = case.with(to, from, |shape| {
        let transfer = VisTransfer {
            direction,
            rank: JobRank(1),
            memory,
            shape,
            notice: None,
        };
        complete(engine, ctx, &transfer, form)
    });
    prop_assert_eq!(done, Ok(()));
    let after = peer(rig, memory, ROOM, None);
    if is_put {
        prop_assert!(after == expected, "the peer's memory");
        prop_assert!(here == pattern(3, ROOM), "the source");
    } else {
        prop_assert!(here == expected, "this side's memory");
        prop_assert!(after == there, "the source");
    }
    Ok(())
}

/// spec T8: data with holes.
#[test]
fn random_shapes_in_all_forms() {
    let rig = Rig::pair(ROOM);
    rig.served(|engine, ctx| {
        let mut runner = TestRunner::new(Config::with_cases(1500));
        let cases = (any_case(), any_how());
        let tested = runner.run(&cases, |(case, how)| {
            comes_true(&rig, engine, ctx, &case, how)
        });
        if let Err(error) = tested {
            panic!("{error}");
        }
    });
}

/// Long pieces, which go as puts and gets of their own, beside short ones, which do not.
#[test]
fn long_pieces() {
    const LEN: usize = 300_000;
    let rig = Rig::pair(3 * LEN);
    rig.served(|engine, ctx| {
        for direction in [Direction::Put, Direction::Get] {
            for form in [Form::Event, Form::Implicit, Form::Region, Form::Blocking] {
                let is_put = direction == Direction::Put;
                let there = pattern(4, 3 * LEN);
                rig.memory[1].write(0, &there);
                let mut here = pattern(5, 3 * LEN);
                let (remote, local) = (
                    rig.memory[1].address() as usize,
                    here.as_mut_ptr().expose_provenance(),
                );
                let (to, from) = if is_put {
                    (remote, local)
                } else {
                    (local, remote)
                };
                let (before, source) = match is_put {
                    true => (there.clone(), here.clone()),
                    false => (here.clone(), there.clone()),
                };
                // Two halves of a plane, turned round.
                let strided = crate::Strided {
                    to: to + LEN,
                    to_strides: &[-(LEN as isize)],
                    from,
                    from_strides: &[LEN as isize + 3],
                    element: LEN - 7,
                    counts: &[2],
                };
                let transfer = VisTransfer {
                    direction,
                    rank: JobRank(1),
                    memory: PeerMemory::Bound(ENDPOINT),
                    shape: Shape::Strided(strided),
                    notice: None,
                };
                complete(engine, ctx, &transfer, form).unwrap();
                let mut expected = before;
                expected[LEN..2 * LEN - 7].copy_from_slice(&source[..LEN - 7]);
                expected[..LEN - 7].copy_from_slice(&source[LEN + 3..2 * LEN - 4]);
                let after = if is_put {
                    rig.memory[1].read(0, 3 * LEN)
                } else {
                    here
                };
                assert!(after == expected, "{direction:?} {form:?}");
            }
        }
    });
}

#[test]
fn many_at_once_complete_one_by_one() {
    const EACH: usize = 600;
    const MANY: usize = 60;
    let rig = Rig::pair(EACH * MANY * 2);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let mut source = pattern(6, EACH * MANY);
    let mut events = Vec::new();
    let base = rig.memory[1].address() as usize;
    for i in 0..MANY {
        let transfer = VisTransfer {
            direction: Direction::Put,
            rank: JobRank(1),
            memory: PeerMemory::Bound(ENDPOINT),
            shape: Shape::Strided(crate::Strided {
                to: base + i * 2 * EACH,
                to_strides: &[4],
                from: source.as_mut_ptr().expose_provenance() + i * EACH,
                from_strides: &[2],
                element: 2,
                counts: &[EACH / 2],
            }),
            notice: None,
        };
        // SAFETY: the source is there to the end; strides are read during the call.
        events.push(unsafe { engine.vis_start(&ctx, &transfer, Injection::Blocking) }.unwrap());
    }
    assert!(events.iter().all(|event| !event.is_done()));
    // Packed bytes have been read.
    let before = source.clone();
    source.fill(0);
    assert_eq!(rig.settle(), None);
    assert!(engine.peek_all(&ctx, &mut events).unwrap());
    assert!(events.iter().all(|event| *event == Event::DONE));
    for i in 0..MANY {
        let there = rig.memory[1].read(i * 2 * EACH, 2 * EACH);
        for (pair, at) in there.chunks_exact(4).zip(0..) {
            let from = i * EACH + at * 2;
            assert_eq!(pair, [&before[from..from + 2], &[0xee; 2]].concat());
        }
    }
}

#[test]
fn own_memory_needs_no_message() {
    let rig = Rig::pair(1000);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let source = pattern(7, 100);
    for memory in [PeerMemory::Segment, PeerMemory::Bound(ENDPOINT)] {
        let base = match memory {
            PeerMemory::Segment => 0,
            PeerMemory::Bound(_) => rig.memory[0].address() as usize,
        };
        let mut back = vec![0; 100];
        for (direction, local) in [
            (Direction::Put, source.as_ptr().expose_provenance()),
            (Direction::Get, back.as_mut_ptr().expose_provenance()),
        ] {
            let pieces = crate::Pieces::Vector(&[
                crate::Piece {
                    address: base + 500,
                    len: 60,
                },
                crate::Piece { address: 0, len: 0 },
                crate::Piece {
                    address: base + 400,
                    len: 40,
                },
            ]);
            let line = crate::Pieces::Indexed {
                addresses: &[local],
                len: 100,
            };
            let (to, from) = match direction {
                Direction::Put => (pieces, line),
                Direction::Get => (line, pieces),
            };
            let transfer = VisTransfer {
                direction,
                rank: JobRank(0),
                memory,
                shape: Shape::Pieces { to, from },
                notice: None,
            };
            // SAFETY: both vectors live to the end of the loop.
            let event = unsafe { engine.vis_start(&ctx, &transfer, Injection::Immediate) };
            assert_eq!(event, Ok(Event::DONE));
        }
        assert_eq!(back, source, "{memory:?}");
    }
    assert_eq!(rig.settle(), None);
}

#[test]
fn a_full_peer_refuses_the_first_message_and_nothing_has_happened() {
    let rig = Rig::pair(64 << 10);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let source = pattern(8, 60_000);
    let base = rig.memory[1].address() as usize;
    let transfer = VisTransfer {
        direction: Direction::Put,
        rank: JobRank(1),
        memory: PeerMemory::Bound(ENDPOINT),
        shape: Shape::Strided(crate::Strided {
            to: base,
            to_strides: &[2],
            from: source.as_ptr().expose_provenance(),
            from_strides: &[2],
            element: 1,
            counts: &[30_000],
        }),
        notice: None,
    };
    let mut events = Vec::new();
    let refused = loop {
        // SAFETY: the source lives to the end.
        match unsafe { engine.vis_start(&ctx, &transfer, Injection::Immediate) } {
            Ok(event) => events.push(event),
            Err(error) => break error,
        }
        assert!(events.len() < 1000, "nothing is ever full");
    };
    assert!(
        matches!(refused, OpError::Am(argonet_am::AmError::Full { .. })),
        "{refused:?}"
    );
    // SAFETY: as above.
    let implicit = unsafe { engine.vis_start_implicit(&ctx, &transfer, Injection::Immediate) };
    assert!(implicit.is_err());
    assert!(engine.peek_implicit(&ctx, CategoryMask::ALL).unwrap());
    assert_eq!(engine.bound.flights.under_way(), events.len());
    assert_eq!(rig.settle(), None);
    engine.wait_all(&ctx, &mut events).unwrap();
    assert_eq!(engine.bound.flights.under_way(), 0);
    let there = rig.memory[1].read(0, 60_000);
    assert!(
        there
            .chunks_exact(2)
            .zip(source.chunks_exact(2))
            .all(|(a, b)| a == [b[0], 0xee])
    );
}

/// spec T8: data with holes is packed once and travels in one message, not in one for each element.
#[test]
fn data_with_holes_travels_in_one_message() {
    const COUNT: usize = 100;
    let rig = Rig::pair(4 * COUNT);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let peer_ctx = context();
    let source = pattern(9, 2 * COUNT);
    let mut back = vec![0u8; 2 * COUNT];
    let remote = rig.memory[1].address() as usize;
    for direction in [Direction::Put, Direction::Get] {
        let (to, to_strides, from, from_strides) = match direction {
            Direction::Put => (remote, [4], source.as_ptr().expose_provenance(), [2]),
            Direction::Get => (back.as_mut_ptr().expose_provenance(), [2], remote, [4]),
        };
        let transfer = VisTransfer {
            direction,
            rank: JobRank(1),
            memory: PeerMemory::Bound(ENDPOINT),
            shape: Shape::Strided(crate::Strided {
                to,
                to_strides: &to_strides,
                from,
                from_strides: &from_strides,
                element: 2,
                counts: &[COUNT],
            }),
            notice: None,
        };
        // SAFETY: both sides are there to the end; strides are read during the call.
        let event = unsafe { engine.vis_start(&ctx, &transfer, Injection::Blocking) };
        // The request, and its answer.
        let (peer, polls) = (&rig.ranks[1].engine, 0..10);
        let there: usize = polls.clone().map(|_| peer.poll(&peer_ctx).unwrap()).sum();
        let here: usize = polls.map(|_| engine.poll(&ctx).unwrap()).sum();
        assert_eq!((there, here), (1, 1), "{direction:?}");
        assert!(engine.peek(&ctx, event.unwrap()).unwrap());
    }
    assert!(back == source);
}
