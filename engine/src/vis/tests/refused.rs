//! Impossible transfers are refused as a whole, where that can be known, with an error that names
//! the reason.

use crate::bound::tests::rig::{ENDPOINT, Rig, context};
use crate::vis::{
    Direction, PeerMemory, Piece, Pieces, Shape, ShapePart, Strided, VisError, VisTransfer,
};
use crate::{Context, Injection, OpError};
use argonet_am::AmError;
use argonet_base::JobRank;
use argonet_event::Event;

const LEN: usize = 1000;

fn transfer(direction: Direction, memory: PeerMemory, shape: Shape<'_>) -> VisTransfer<'_> {
    VisTransfer {
        direction,
        rank: JobRank(1),
        memory,
        shape,
        notice: None,
    }
}

fn start(rig: &Rig, transfer: &VisTransfer<'_>) -> Result<Event, OpError> {
    // SAFETY: refused memory is not accessed, and the callers' buffers live longer than the rig is
    // used.
    unsafe {
        rig.ranks[0]
            .engine
            .vis_start(&context(), transfer, Injection::Blocking)
    }
}

/// The segment of rank 1 has 64 KiB, from address 0 on.
const SEGMENT: usize = 64 << 10;

#[test]
fn errors_name_the_dimension_outside_of_the_segment() {
    let rig = Rig::pair(LEN);
    let mut buffer = vec![0x55u8; 4096];
    let here = buffer.as_mut_ptr().expose_provenance();
    let cases: [(usize, [isize; 2], ShapePart); 4] = [
        (SEGMENT - 7, [8, 64], ShapePart::Element),
        (
            SEGMENT - 24,
            [8, -64],
            ShapePart::Dimension {
                number: 0,
                count: 4,
                stride: 8,
            },
        ),
        (
            SEGMENT - 32 - 128,
            [8, 65],
            ShapePart::Dimension {
                number: 1,
                count: 3,
                stride: 65,
            },
        ),
        (
            100,
            [8, -51],
            ShapePart::Dimension {
                number: 1,
                count: 3,
                stride: -51,
            },
        ),
    ];
    for (at, strides, part) in cases {
        for direction in [Direction::Put, Direction::Get] {
            let dense = [8, 32];
            let (to, to_strides, from, from_strides) = match direction {
                Direction::Put => (at, &strides, here, &dense),
                Direction::Get => (here, &dense, at, &strides),
            };
            let shape = Shape::Strided(Strided {
                to,
                to_strides,
                from,
                from_strides,
                element: 8,
                counts: &[4, 3],
            });
            let refused = start(&rig, &transfer(direction, PeerMemory::Segment, shape));
            let found = match &refused {
                Err(OpError::Shape(VisError::OutsideSegment { part, .. })) => Some(*part),
                // Below address 0 there is nothing at all.
                Err(OpError::Shape(VisError::TooLarge { part, .. })) if at == 100 => Some(*part),
                _ => None,
            };
            assert_eq!(found, Some(part), "{refused:?}");
        }
    }
    assert!(buffer.iter().all(|byte| *byte == 0x55));
    // One byte less fits.
    let shape = Shape::Strided(Strided {
        to: SEGMENT - 32 - 128,
        to_strides: &[8, 64],
        from: here,
        from_strides: &[8, 32],
        element: 8,
        counts: &[4, 3],
    });
    assert_eq!(
        start(&rig, &transfer(Direction::Put, PeerMemory::Segment, shape)),
        Ok(Event::DONE)
    );
}

#[test]
fn errors_name_the_entry_outside_of_the_segment() {
    let rig = Rig::pair(LEN);
    let buffer = [0u8; 64];
    let here = [buffer.as_ptr().expose_provenance()];
    for (entries, wrong) in [
        ([0, 100, SEGMENT - 15], 2),
        ([SEGMENT, 100, 8], 0),
        ([0, usize::MAX - 100, 8], 1),
    ] {
        let to = Pieces::Indexed {
            addresses: &entries,
            len: 16,
        };
        let from = Pieces::Indexed {
            addresses: &here,
            len: 48,
        };
        let refused = start(
            &rig,
            &transfer(
                Direction::Put,
                PeerMemory::Segment,
                Shape::Pieces { to, from },
            ),
        );
        let Err(OpError::Shape(error @ VisError::OutsideSegment { part, .. })) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(*part, ShapePart::Entry(wrong));
        let text = error.to_string();
        for words in [
            "rank 0",
            "rank 1",
            "destination",
            &format!("entry {wrong}"),
            "65536 bytes",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn totals_and_sizes_beyond_all_memory() {
    let rig = Rig::pair(LEN);
    let list = [
        Piece {
            address: 0,
            len: 10,
        },
        Piece {
            address: 100,
            len: 20,
        },
    ];
    let (to, from) = (
        Pieces::Vector(&list),
        Pieces::Indexed {
            addresses: &[8, 8],
            len: 16,
        },
    );
    let refused = start(
        &rig,
        &transfer(
            Direction::Put,
            PeerMemory::Segment,
            Shape::Pieces { to, from },
        ),
    );
    assert_eq!(
        refused,
        Err(OpError::Shape(VisError::TotalsDiffer {
            rank: JobRank(0),
            to: 30,
            from: 32
        }))
    );
    let huge = [
        Piece {
            address: 1,
            len: usize::MAX,
        },
        Piece { address: 1, len: 2 },
    ];
    let (to, from) = (Pieces::Vector(&huge), Pieces::Vector(&huge));
    let refused = start(
        &rig,
        &transfer(
            Direction::Get,
            PeerMemory::Segment,
            Shape::Pieces { to, from },
        ),
    );
    assert!(
        matches!(refused, Err(OpError::Shape(VisError::TooLarge { .. }))),
        "{refused:?}"
    );
    for (count, stride) in [
        (3, isize::MAX),
        (usize::MAX, 1),
        (1 << 40, 1 << 40),
        (3, isize::MIN),
    ] {
        let shape = Shape::Strided(Strided {
            to: 1 << 20,
            to_strides: &[stride],
            from: 1 << 20,
            from_strides: &[0],
            element: 1,
            counts: &[count],
        });
        let refused = start(
            &rig,
            &transfer(Direction::Put, PeerMemory::Bound(ENDPOINT), shape),
        );
        assert!(
            matches!(refused, Err(OpError::Shape(VisError::TooLarge { .. }))),
            "{refused:?}"
        );
    }
    // Many times the same byte: more than there can be.
    let shape = Shape::Strided(Strided {
        to: 1 << 20,
        to_strides: &[0, 0],
        from: 1 << 20,
        from_strides: &[0, 0],
        element: 1,
        counts: &[1 << 40, 1 << 40],
    });
    let refused = start(
        &rig,
        &transfer(Direction::Put, PeerMemory::Bound(ENDPOINT), shape),
    );
    assert!(
        matches!(refused, Err(OpError::Shape(VisError::TooLarge { .. }))),
        "{refused:?}"
    );
}

#[test]
fn access_to_unbound_memory_ends_the_job_and_changes_nothing() {
    let buffer = vec![7u8; 4096];
    let here = buffer.as_ptr().expose_provenance();
    // The last of many elements is outside, by a byte; and one of many pieces.
    for (case, direction) in [
        (0, Direction::Put),
        (0, Direction::Get),
        (1, Direction::Put),
        (1, Direction::Get),
    ] {
        let rig = Rig::pair(LEN);
        let base = rig.memory[1].address() as usize;
        let inside: Vec<usize> = (0..100).map(|i| base + i * 10).collect();
        let mut outside = inside.clone();
        outside[50] = base + LEN - 3;
        let there = Pieces::Indexed {
            addresses: &outside,
            len: 4,
        };
        let line = Pieces::Indexed {
            addresses: &[here],
            len: 400,
        };
        let strides = (10, 4);
        let shape = match (case, direction) {
            (0, Direction::Put) => Shape::Strided(Strided {
                to: base + 7,
                to_strides: &[strides.0],
                from: here,
                from_strides: &[strides.1],
                element: 4,
                counts: &[100],
            }),
            (0, Direction::Get) => Shape::Strided(Strided {
                to: here,
                to_strides: &[strides.1],
                from: base + 7,
                from_strides: &[strides.0],
                element: 4,
                counts: &[100],
            }),
            (_, Direction::Put) => Shape::Pieces {
                to: there,
                from: line,
            },
            (_, Direction::Get) => Shape::Pieces {
                to: line,
                from: there,
            },
        };
        let transfer = transfer(direction, PeerMemory::Bound(ENDPOINT), shape);
        assert!(start(&rig, &transfer).is_ok());
        let message = rig.settle().unwrap();
        let name = match direction {
            Direction::Put => "a non-contiguous put",
            Direction::Get => "a non-contiguous get",
        };
        for words in [
            "rank 0",
            name,
            "of rank 1",
            "outside of its segment",
            "1000 bytes",
        ] {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert_eq!(rig.memory[1].read(0, LEN), [0xee; LEN]);
    }
    assert!(buffer.iter().all(|byte| *byte == 7));
    // Own memory too.
    let rig = Rig::pair(LEN);
    let shape = Shape::Strided(Strided {
        to: rig.memory[0].address() as usize,
        to_strides: &[500],
        from: here,
        from_strides: &[4],
        element: 4,
        counts: &[3],
    });
    let own = VisTransfer {
        rank: JobRank(0),
        ..transfer(Direction::Put, PeerMemory::Bound(ENDPOINT), shape)
    };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| start(&rig, &own)));
    assert!(ended.is_err());
    assert!(rig.aborted().unwrap().contains("non-contiguous put"));
}

#[test]
fn missing_ranks_and_calls_inside_handlers_are_refused() {
    let rig = Rig::pair(LEN);
    let engine = &rig.ranks[0].engine;
    let ctx = context();
    let shape = Shape::Strided(Strided {
        to: 0,
        to_strides: &[],
        from: 0,
        from_strides: &[],
        element: 0,
        counts: &[],
    });
    let missing = VisTransfer {
        rank: JobRank(2),
        ..transfer(Direction::Put, PeerMemory::Segment, shape)
    };
    let present = transfer(Direction::Get, PeerMemory::Segment, shape);
    // SAFETY: there are no bytes.
    let refused = unsafe { engine.vis(&ctx, &missing, Injection::Blocking) };
    assert!(
        matches!(
            refused,
            Err(OpError::Am(AmError::NoSuchRank { to: JobRank(2), .. }))
        ),
        "{refused:?}"
    );
    ctx.enter(Context::Handler);
    // SAFETY: there are no bytes.
    let refused = unsafe { engine.vis(&ctx, &present, Injection::Blocking) };
    ctx.enter(Context::Free);
    assert!(
        matches!(refused, Err(OpError::Am(AmError::Restricted { .. }))),
        "{refused:?}"
    );
}
