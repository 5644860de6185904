//! Non-contiguous transfers over a wire that loses, repeats, delays and damages frames, where no
//! rank's memory is mapped.
#![allow(unsafe_code)]

use crate::harness;

use argonet_am::{AmError, Category, Delivery, Endpoints, HandlerTable, MessageClass};
use argonet_base::{HandlerIndex, JobRank};
use argonet_boot::{Key, WaitFor, Waiting};
use argonet_engine::{
    BarrierKind, Direction, Injection, Notice, PeerMemory, Piece, Pieces, Shape, Strided,
    VisTransfer,
};
use argonet_event::CategoryMask;
use argonet_segment::bulk;
use argonet_sim::{JobConfig, Outcome, Rank, StartError};
use parking_lot::Mutex;
use std::sync::Arc;

const NOTE: HandlerIndex = HandlerIndex(140);
const ENDPOINT: u32 = 3;
/// Bytes that each rank has for every rank.
const EACH: usize = 8192;

type Notes = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

fn register(_: JobRank, handlers: &mut HandlerTable) -> Result<Notes, AmError> {
    let notes = Notes::default();
    register_at(0, &notes, handlers)?;
    Ok(notes)
}

/// The handler of an endpoint, whose index is the second byte of each payload.
fn register_at(mine: u8, notes: &Notes, handlers: &mut HandlerTable) -> Result<(), AmError> {
    let into = Arc::clone(notes);
    let note = move |delivery: &mut Delivery<'_>| {
        assert_eq!(delivery.category(), Category::Medium);
        assert_eq!(delivery.class(), MessageClass::Reply);
        assert_eq!(delivery.endpoints(), Endpoints { from: 0, to: mine });
        assert!(delivery.args().is_empty());
        let payload = delivery.payload().to_vec();
        assert_eq!(payload[1], mine);
        into.lock().push((delivery.source().0, payload));
    };
    handlers.register_at(NOTE, "note", Box::new(note))
}

fn bytes(seed: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (seed as usize * 41 + i + i / 251) as u8)
        .collect()
}

type Strides = [isize; 3];

/// Strided shapes: counts, strides there and here, bytes of an element.
const SHAPES: [([usize; 3], Strides, Strides, usize); 4] = [
    // Single bytes, mirrored and transposed.
    ([4, 5, 3], [60, 3, 400], [-1, 4, 20], 1),
    // A plane of many elements.
    ([32, 8, 1], [16, 900, 0], [8, 256, 0], 8),
    // Rows that are longer than the smallest message.
    ([3, 2, 1], [1200, 4000, 0], [700, 2100, 0], 600),
    // Everything lies together.
    ([16, 16, 4], [4, 64, 1024], [4, 64, 1024], 4),
];

/// Every rank puts to and gets from every other, into its segment and into memory that it has
/// bound.
fn program(rank: &Rank, notes: Notes) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let (me, size) = (engine.rank().0, engine.size());
    let memory: &'static mut [u8] = vec![0; EACH * size as usize].leak();
    let base = memory.as_mut_ptr();
    // SAFETY: the memory is there to the end of the process, and accessed through `base` alone.
    unsafe { engine.regions().bind(ENDPOINT, base, memory.len()) }.unwrap();
    let mut table = HandlerTable::default();
    register_at(ENDPOINT as u8, &notes, &mut table).unwrap();
    engine.open_endpoint(ENDPOINT, table).unwrap();
    let boot = engine.boot();
    let address = base.expose_provenance() as u64;
    boot.publish(Key::User, &address.to_le_bytes()).unwrap();
    boot.fence().unwrap();
    let mut asked = 0;
    for other in (0..size).filter(|other| *other != me).map(JobRank) {
        let published: [u8; 8] = boot.lookup(other, Key::User).unwrap().try_into().unwrap();
        let bound = u64::from_le_bytes(published) as usize;
        let part = EACH * me as usize;
        for (memory, there) in [
            (PeerMemory::Bound(ENDPOINT), bound + part),
            // Addresses of a segment begin at 0 here.
            (PeerMemory::Segment, part),
        ] {
            for (number, (counts, far, near, element)) in SHAPES.iter().enumerate() {
                let source = bytes(me + number as u32, EACH);
                let mut back = vec![0xee; EACH];
                let begin = if near[0] < 0 { 3 } else { 0 };
                let endpoint = if memory == PeerMemory::Segment {
                    0
                } else {
                    ENDPOINT as u8
                };
                let payload = [number as u8, endpoint, 7, 7, 7];
                let transfer = |direction, here: usize| {
                    let (to, from) = match direction {
                        Direction::Put => ((there, far), (here + begin, near)),
                        Direction::Get => ((here + begin, near), (there, far)),
                    };
                    VisTransfer {
                        direction,
                        rank: other,
                        memory,
                        shape: Shape::Strided(Strided {
                            to: to.0,
                            to_strides: to.1,
                            from: from.0,
                            from_strides: from.1,
                            element: *element,
                            counts,
                        }),
                        notice: (direction == Direction::Put && number % 2 == 0).then_some(
                            Notice {
                                handler: NOTE,
                                ends: Endpoints {
                                    from: 0,
                                    to: endpoint,
                                },
                                payload: payload.as_ptr(),
                                len: payload.len(),
                            },
                        ),
                    }
                };
                let put = transfer(Direction::Put, source.as_ptr().expose_provenance());
                let get = transfer(Direction::Get, back.as_mut_ptr().expose_provenance());
                asked += usize::from(number % 2 == 0);
                // SAFETY: source, target and payload are there until the operations are complete.
                unsafe {
                    let event = engine.vis_start(ctx, &put, Injection::Blocking).unwrap();
                    engine.wait(ctx, event).unwrap();
                    engine
                        .vis_start_implicit(ctx, &get, Injection::Blocking)
                        .unwrap();
                    engine.wait_implicit(ctx, CategoryMask::ALL).unwrap();
                }
                let mut expected = vec![0xee; EACH];
                for i in 0..counts.iter().product() {
                    let index = [
                        i % counts[0],
                        i / counts[0] % counts[1],
                        i / counts[0] / counts[1],
                    ];
                    let steps = index.iter().zip(near);
                    let way: isize = steps.map(|(i, stride)| *i as isize * stride).sum();
                    let at = begin.wrapping_add_signed(way);
                    expected[at..at + element].copy_from_slice(&source[at..at + element]);
                }
                assert!(
                    back == expected,
                    "shape {number} in {memory:?} of rank {other}"
                );
            }
            lists(rank, other, memory, there);
        }
    }
    let all_noted = || notes.lock().len() == (size as usize - 1) * 4;
    engine
        .wait_until(ctx, Waiting::new(WaitFor::Condition), all_noted)
        .unwrap();
    assert_eq!(asked, (size as usize - 1) * 4);
    for (source, payload) in &*notes.lock() {
        assert_ne!(*source, me);
        assert!(
            [0, 2].contains(&payload[0]) && payload[2..] == [7; 3],
            "{payload:?}"
        );
    }
    // Two shapes of each other rank at each endpoint.
    let further = notes
        .lock()
        .iter()
        .filter(|(_, payload)| payload[1] != 0)
        .count();
    assert_eq!(further, (size as usize - 1) * 2);
    engine.barrier(ctx, BarrierKind::Client).unwrap();
    let mut all = vec![0; EACH * size as usize];
    // SAFETY: as many bytes as there are.
    unsafe { bulk::copy(all.as_mut_ptr(), base, all.len()) };
    let own = EACH * me as usize;
    assert!(
        all[own..own + EACH].iter().all(|byte| *byte == 0),
        "a rank wrote to its own part"
    );
}

/// Pieces of odd lengths there, of one length here.
fn lists(rank: &Rank, other: JobRank, memory: PeerMemory, there: usize) {
    let (engine, ctx) = (&rank.engine, &rank.ctx);
    let source = bytes(77, 3000);
    let mut back = vec![0u8; 3000];
    let pieces: Vec<Piece> = (0..100)
        .map(|i| Piece {
            address: there + i * 70,
            len: 11 + i % 38 + usize::from(i % 38 == 24) * 7,
        })
        .collect();
    let total: usize = pieces.iter().map(|piece| piece.len).sum();
    let count = total / 10;
    let mut pieces = pieces;
    pieces.push(Piece {
        address: there + 7500,
        len: (count + 1) * 10 - total,
    });
    let lines = |base: usize| -> Vec<usize> { (0..=count).map(|i| base + i * 10).rev().collect() };
    let (from, to) = (
        lines(source.as_ptr().expose_provenance()),
        lines(back.as_mut_ptr().expose_provenance()),
    );
    let used = (count + 1) * 10;
    assert!(used <= 3000);
    for (direction, list) in [(Direction::Put, &from), (Direction::Get, &to)] {
        let here = Pieces::Indexed {
            addresses: list,
            len: 10,
        };
        let far = Pieces::Vector(&pieces);
        let (to, from) = match direction {
            Direction::Put => (far, here),
            Direction::Get => (here, far),
        };
        let transfer = VisTransfer {
            direction,
            rank: other,
            memory,
            shape: Shape::Pieces { to, from },
            notice: None,
        };
        // SAFETY: lists, source and target are there until this returns.
        unsafe { engine.vis(ctx, &transfer, Injection::Blocking) }.unwrap();
    }
    assert!(back[..used] == source[..used]);
}

fn job(config: &JobConfig) -> Result<Outcome, StartError> {
    argonet_sim::run(config, None, register, program)
}

#[test]
fn nothing_goes_wrong() {
    harness::nothing_goes_wrong(3, &job);
}

#[test]
fn all_faults_at_once() {
    harness::all_faults_at_once(3, &job);
}
