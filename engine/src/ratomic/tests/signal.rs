//! Puts that signal.

use super::*;
use crate::bound::Args;
use crate::bound::tests::rig::{FORGE, context};
use crate::ratomic::wire::{Request, Untyped};
use crate::{DataType, Engine, Injection, OpError, Side, ThreadCtx, Transfer, internal};
use argonet_am::{Message, Payload};
use argonet_base::HandlerIndex;
use argonet_conduit::smp::Smp;
use argonet_segment::SharedBytes;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn put(target: Target, bytes: &[u8]) -> Transfer {
    Transfer {
        target,
        side: Side::Put(bytes.as_ptr()),
        len: bytes.len(),
    }
}

fn signal(
    engine: &Engine<Smp>,
    ctx: &ThreadCtx,
    (target, bytes): (Target, &[u8]),
    word: Target,
    asked: Atomic<u64>,
) -> Result<(), OpError> {
    // SAFETY: the bytes outlive the call.
    unsafe { engine.put_signal(ctx, put(target, bytes), word, asked) }
}

fn read(engine: &Engine<Smp>, ctx: &ThreadCtx, word: Target) -> u64 {
    engine
        .atomic(ctx, word, what(Operation::Get, 0, 0))
        .unwrap()
}

#[test]
fn a_mapped_word_changes_at_once() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    for (operation, after) in [(Operation::Set, 3), (Operation::Add, 6)] {
        let bytes = (40u64 + after).to_ne_bytes();
        let to = (segment_word(8), &bytes[..]);
        signal(engine, &ctx, to, segment_word(0), what(operation, 3, 0)).unwrap();
        assert_eq!(read(engine, &ctx, segment_word(0)), after);
        assert_eq!(read(engine, &ctx, segment_word(8)), 40 + after);
    }
    assert_eq!(rig.settle(), None);
}

#[test]
fn a_word_that_only_its_owner_reaches_changes_when_the_bytes_lie_there() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let word = bound_word(&rig, 1, 0);
    let Target::Bound(place) = word else {
        unreachable!()
    };
    let at = (place.address - rig.memory[1].address()) as usize;
    let value = || u64::from_ne_bytes(rig.memory[1].read(at, 8).try_into().unwrap());
    let before = value();
    for (operation, after) in [(Operation::Set, 3), (Operation::Add, 6)] {
        let bytes = (70u64 + after).to_ne_bytes();
        let to = (segment_word(16), &bytes[..]);
        let last = value();
        signal(engine, &ctx, to, word, what(operation, 3, 0)).unwrap();
        assert_eq!(value(), last, "nothing happens before rank 1 polls");
        assert_eq!(rig.settle(), None);
        assert_eq!(value(), after);
        assert_eq!(read(engine, &ctx, segment_word(16)), 70 + after);
    }
    assert_ne!(before, 6);
    // Without bytes it is a message without an answer.
    let nothing = (segment_word(0), &[][..]);
    signal(engine, &ctx, nothing, word, what(Operation::Add, 1, 0)).unwrap();
    assert_eq!(rig.settle(), None);
    assert_eq!(value(), 7);
    assert_eq!(engine.bound.flights.under_way(), 0);
}

#[test]
fn bytes_for_bound_memory_are_there_before_the_word_changes() {
    let rig = Rig::pair(64);
    rig.served(|engine, ctx| {
        let mut to = rig.place(1, 40);
        to.address = to.address.next_multiple_of(8);
        let word = bound_word(&rig, 1, 0);
        let bytes = 9u64.to_ne_bytes();
        let to = Target::Bound(to);
        signal(engine, ctx, (to, &bytes), word, what(Operation::Set, 1, 0)).unwrap();
        assert_eq!([read(engine, ctx, to), read(engine, ctx, word)], [9, 1]);
    });
}

#[test]
fn invalid_signals_are_refused_before_anything_is_written() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    let bytes = [1u8; 8];
    let to = (segment_word(0), &bytes[..]);
    let add = what(Operation::Add, 1, 0);
    let unaligned = signal(engine, &ctx, to, segment_word(12), add);
    assert!(
        matches!(unaligned, Err(OpError::Unaligned { .. })),
        "{unaligned:?}"
    );
    let outside = signal(engine, &ctx, to, segment_word(1 << 40), add);
    assert!(outside.is_err());
    let of_another = Target::Segment {
        rank: JobRank(0),
        offset: SegmentOffset(0),
    };
    let fetching = what(Operation::FetchAdd, 1, 0);
    for (word, asked) in [(of_another, add), (segment_word(0), fetching)] {
        let run = AssertUnwindSafe(|| signal(engine, &ctx, to, word, asked));
        assert!(catch_unwind(run).is_err());
    }
    assert_eq!(read(engine, &ctx, segment_word(0)), 0);
}

#[test]
fn a_wait_ends_with_the_value_that_ends_it() {
    let rig = Rig::pair(64);
    let (ctx, engine) = (context(), &rig.ranks[0].engine);
    for word in [
        bound_word(&rig, 0, 0),
        Target::Segment {
            rank: JobRank(0),
            offset: SegmentOffset(8),
        },
    ] {
        let set = what(Operation::Set, 5u64, 0);
        engine.atomic(&ctx, word, set).unwrap();
        let mut asked = Vec::new();
        let done = |value: u64| {
            asked.push(value);
            // The value may also come while it waits.
            if asked.len() == 2 {
                engine
                    .atomic(&context(), word, what(Operation::Add, 1, 0))
                    .unwrap();
            }
            value == 6
        };
        assert_eq!(engine.wait_signal(&ctx, word, done).unwrap(), 6);
        assert_eq!(asked, [5, 5, 6]);
    }
    let of_another = AssertUnwindSafe(|| engine.wait_signal(&ctx, segment_word(0), |_: u64| true));
    assert!(catch_unwind(of_another).is_err());
}

/// As the wire has it.
fn request(target: Target, operation: Operation, op: u64) -> Args {
    let what = Untyped {
        dt: DataType::U64,
        operation,
        operands: [1, 0],
    };
    Request { target, what, op }.pack()
}

#[test]
fn owners_refuse_forged_signals() {
    let word = |rig: &Rig, more: u64| {
        let Target::Bound(mut place) = bound_word(rig, 1, 0) else {
            unreachable!()
        };
        place.address += more;
        Target::Bound(place)
    };
    let ends = |change: &dyn Fn(&Rig) -> (u8, Vec<u32>), parts: &[&str]| {
        let rig = Rig::pair(64);
        let (handler, args) = change(&rig);
        let message = Message {
            handler: HandlerIndex(handler),
            args: &args,
            payload: Payload::Medium(SharedBytes::from_slice(&[])),
        };
        let engine = &rig.ranks[0].engine;
        let sent = engine.request(&context(), JobRank(1), &message, Injection::Blocking);
        sent.unwrap();
        let said = rig.settle().unwrap_or_default();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert_eq!(rig.memory[1].read(0, 64), [0xee; 64]);
    };
    let own = internal::SIGNAL.0;
    let args = |target, operation, op| request(target, operation, op).words().to_vec();
    ends(
        &|rig| (own, args(word(rig, 4), Operation::Add, 0)),
        &["a signal of 8 bytes", "multiple"],
    );
    ends(
        &|rig| (own, args(word(rig, 1 << 30), Operation::Add, 0)),
        &["a signal of 8 bytes", "rank 1 has bound 64 bytes"],
    );
    let arguments = "other arguments than such a message has";
    ends(
        &|rig| (own, args(word(rig, 0), Operation::FetchAdd, 0)),
        &["broken message from rank 0", arguments],
    );
    ends(
        &|rig| (own, args(word(rig, 0), Operation::Add, 1)),
        &["broken message from rank 0", arguments],
    );
    ends(&|_| (own, vec![7; 3]), &["broken message", arguments]);
    ends(
        &|rig| {
            let rest = args(word(rig, 0), Operation::Add, 0);
            (FORGE.0, [vec![u32::from(own)], rest].concat())
        },
        &["broken message from rank 1", "in the wrong class"],
    );
}
