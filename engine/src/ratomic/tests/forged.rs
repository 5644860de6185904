//! Operations that the owner of the word refuses, and messages that no engine sends.

use super::super::wire::{Request, Untyped};
use super::*;
use crate::bound::Args;
use crate::bound::tests::rig::{ENDPOINT, FORGE, context};
use crate::{BoundPlace, DataType, Injection, internal};
use argonet_am::{Message, Payload};
use argonet_base::HandlerIndex;
use argonet_segment::SharedBytes;

const LEN: usize = 64;

fn send(rig: &Rig, handler: HandlerIndex, args: &[u32]) {
    let message = Message {
        handler,
        args,
        payload: Payload::Medium(SharedBytes::from_slice(&[])),
    };
    let sent = rig.ranks[0]
        .engine
        .request(&context(), JobRank(1), &message, Injection::Blocking);
    sent.unwrap();
}

fn ends(rig: &Rig, parts: &[&str]) {
    let message = rig
        .settle()
        .unwrap_or_else(|| panic!("{parts:?} is accepted"));
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
    assert!((0..2).all(|rank| rig.memory[rank].read(0, LEN) == [0xee; LEN]));
}

#[test]
fn words_outside_end_the_job_and_are_named() {
    for own in [false, true] {
        let rank = usize::from(!own);
        for (operation, at) in [
            (Operation::FetchAdd, LEN),
            (Operation::Get, LEN),
            (Operation::Set, usize::MAX - 7),
        ] {
            let rig = Rig::pair(LEN);
            let Target::Bound(place) = bound_word(&rig, rank, 0) else {
                unreachable!()
            };
            let place = BoundPlace {
                address: place.address.wrapping_add(at as u64),
                ..place
            };
            let mut result = 1u64;
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let asked = what(operation, 1u64, 0);
                // SAFETY: the result lives until the rig is gone.
                let begun = unsafe {
                    let (target, result) = (Target::Bound(place), &raw mut result);
                    rig.ranks[0].engine.atomic_start(
                        &context(),
                        target,
                        asked,
                        result,
                        Injection::Blocking,
                    )
                };
                begun.unwrap();
            }));
            assert_eq!(run.is_err(), own, "peers find out later");
            ends(
                &rig,
                &[
                    "rank 0: a remote atomic operation of 8 bytes",
                    &format!("at {:#x} of rank {rank}", place.address),
                    &format!("endpoint {ENDPOINT}"),
                    &format!("rank {rank} has bound {LEN} bytes"),
                ],
            );
            assert_eq!(result, 1);
        }
    }
}

/// As the wire has it, for any target.
fn request(rig: &Rig, change: impl FnOnce(&mut BoundPlace)) -> Args {
    let Target::Bound(mut place) = bound_word(rig, 1, 0) else {
        unreachable!()
    };
    change(&mut place);
    let what = Untyped {
        dt: DataType::U64,
        operation: Operation::FetchAdd,
        operands: [1, 0],
    };
    let target = Target::Bound(place);
    Request {
        target,
        what,
        op: 0,
    }
    .pack()
}

#[test]
fn owners_check_alignment_and_place_themselves() {
    let rig = Rig::pair(LEN);
    let args = request(&rig, |place| place.address += 4);
    send(&rig, internal::RATOMIC, args.words());
    ends(
        &rig,
        &[
            "rank 0: a remote atomic operation of 8 bytes",
            "not aligned",
            "multiple of 8",
        ],
    );
    let rig = Rig::pair(LEN);
    let args = request(&rig, |place| place.endpoint = 9);
    send(&rig, internal::RATOMIC, args.words());
    ends(&rig, &["endpoint 9", "rank 1 has bound no segment there"]);
    let rig = Rig::pair(LEN);
    let what = Untyped {
        dt: DataType::F32,
        operation: Operation::Inc,
        operands: [0, 0],
    };
    let args = Request {
        target: segment_word(1 << 20),
        what,
        op: 0,
    }
    .pack();
    send(&rig, internal::RATOMIC, args.words());
    ends(
        &rig,
        &["rank 0: a remote atomic operation of 4 bytes at 0x100000 of rank 1"],
    );
}

#[test]
fn malformed_requests_are_broken_messages() {
    for count in (0..=16).filter(|count| *count != 8) {
        let rig = Rig::pair(LEN);
        let mut args = request(&rig, |_| ()).words().to_vec();
        args.resize(count, 0);
        send(&rig, internal::RATOMIC, &args);
        ends(&rig, &["rank 1 got a broken message from rank 0"]);
    }
    // A type that has no such operation.
    let rig = Rig::pair(LEN);
    let mut args = request(&rig, |_| ()).words().to_vec();
    args[0] =
        Operation::FetchAnd.bit().trailing_zeros() | u32::from(DataType::F64).trailing_zeros() << 8;
    send(&rig, internal::RATOMIC, &args);
    ends(&rig, &["rank 1 got a broken message from rank 0"]);
    for handler in [internal::RATOMIC_DONE, internal::RATOMIC] {
        let rig = Rig::pair(LEN);
        if handler == internal::RATOMIC {
            send(&rig, FORGE, &[u32::from(handler.0)]);
        } else {
            send(&rig, handler, &[0, 0]);
        }
        ends(&rig, &["it has come in the wrong class"]);
    }
}

#[test]
fn unexpected_answers_are_broken_messages() {
    // The operation under way, the arguments of rank 1's answer behind the right number, and
    // whether they are right.
    for (operation, rest, well) in [
        (Operation::FetchAdd, &[1, 0][..], true),
        (Operation::FetchAdd, &[], false),
        (Operation::FetchAdd, &[1, 0, 0, 0], false),
        (Operation::Add, &[1, 0], false),
    ] {
        let rig = Rig::pair(LEN);
        let (ctx, engine) = (context(), &rig.ranks[0].engine);
        let mut result = 0u64;
        let asked = what(operation, 1u64, 0);
        // An operation that the owner has not seen, as its answer comes first.
        let args = [&[u32::from(internal::RATOMIC_DONE.0), 0, 0], rest].concat();
        send(&rig, FORGE, &args);
        // SAFETY: the result lives until the rig is gone.
        unsafe {
            engine
                .atomic_start(
                    &ctx,
                    bound_word(&rig, 1, 0),
                    asked,
                    &raw mut result,
                    Injection::Blocking,
                )
                .unwrap();
        }
        let message = rig
            .settle()
            .expect("the second answer is one too many at least");
        let said = "rank 0 got a broken message from rank 1";
        assert!(message.contains(said), "{message}");
        assert_eq!(message.contains("not under way"), well, "{message}");
        assert_eq!(result, u64::from(well));
    }
    for (args, said) in [
        (&[0, 0][..], "not under way"),
        (&[0], "other arguments"),
        (&[], "other arguments"),
    ] {
        let rig = Rig::pair(LEN);
        let args = [&[u32::from(internal::RATOMIC_DONE.0)], args].concat();
        send(&rig, FORGE, &args);
        ends(&rig, &["rank 0 got a broken message from rank 1", said]);
    }
}
