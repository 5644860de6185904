//! Ranges that the target has not bound.

use super::rig::{BOUNCE, ENDPOINT, NOTE, Rig, bytes, context, get, long, put};
use crate::{BoundPlace, Injection};
use std::panic::{AssertUnwindSafe, catch_unwind};

const LEN: usize = 1000;

/// Offset from the beginning of the memory, and length, of ranges that do not lie inside.
fn outside(base: u64) -> Vec<(u64, usize)> {
    let len = LEN as u64;
    vec![
        (0u64.wrapping_sub(1), 1),
        (0u64.wrapping_sub(1), LEN),
        (0u64.wrapping_sub(8), LEN + 16),
        (len, 1),
        (len - 1, 2),
        (0, LEN + 1),
        // The end of the range is beyond the last address.
        (u64::MAX - base, 2),
        (u64::MAX - base - 7, LEN),
        // Address 0.
        (0u64.wrapping_sub(base), 1),
    ]
}

/// Does `operation` on a range of rank 1, and on the same of its own; both must end the job with a
/// message that has all of it.
fn ends_the_job(what: &str, operation: impl Fn(&Rig, BoundPlace, usize)) {
    let cases = outside(1 << 40).len();
    for case in 0..cases {
        for target in [1, 0] {
            let rig = Rig::pair(LEN);
            let base = rig.memory[target].address();
            let (at, len) = outside(base)[case];
            let place = BoundPlace {
                address: base.wrapping_add(at),
                ..rig.place(target, 0)
            };
            let run = catch_unwind(AssertUnwindSafe(|| operation(&rig, place, len)));
            assert!(run.is_ok() || target == 0, "peers find out later");
            let message = rig.settle().expect("it ends the job");
            for part in [
                "rank 0: ".to_owned(),
                format!(
                    "a {what} of {len} bytes at {:#x} of rank {target}",
                    place.address
                ),
                format!("endpoint {ENDPOINT}"),
                format!("rank {target} has bound {LEN} bytes from {base:#x}"),
            ] {
                assert!(message.contains(&part), "no `{part}` in: {message}");
            }
            let untouched = |rank: usize| rig.memory[rank].read(0, LEN) == [0xee; LEN];
            assert!(untouched(0) && untouched(1), "{message}");
            assert!(rig.seen(target).is_empty(), "no handler has run");
        }
    }
}

#[test]
fn puts_outside_end_the_job() {
    ends_the_job("put", |rig, place, len| {
        put(&rig.ranks[0].engine, &context(), place, &bytes(1, len));
    });
}

#[test]
fn gets_outside_end_the_job() {
    ends_the_job("get", |rig, place, len| {
        let mut target = vec![0; len];
        get(&rig.ranks[0].engine, &context(), place, &mut target);
        assert_eq!(target, vec![0; len]);
        // The answer is a refusal, which writes nothing.
        std::mem::forget(target);
    });
}

#[test]
fn longs_outside_end_the_job() {
    ends_the_job("long active message", |rig, place, len| {
        let (engine, ctx) = (&rig.ranks[0].engine, context());
        long(
            engine,
            &ctx,
            place,
            NOTE,
            &[1],
            &bytes(1, len),
            Injection::Blocking,
        )
        .unwrap();
    });
}

#[test]
fn an_endpoint_without_memory_has_no_place() {
    // The highest number stands for the attached segment.
    for endpoint in [0, 255, 256, u32::MAX - 1] {
        let rig = Rig::pair(LEN);
        let place = BoundPlace {
            endpoint,
            ..rig.place(1, 0)
        };
        put(&rig.ranks[0].engine, &context(), place, &[1]);
        let message = rig.settle().unwrap();
        let said = format!("endpoint {endpoint}, is outside of its segment: rank 1 has bound no");
        assert!(message.contains(&said), "{message}");
    }
    // And one that has none any more.
    let rig = Rig::pair(LEN);
    assert!(rig.ranks[1].engine.regions().unbind(ENDPOINT));
    put(&rig.ranks[0].engine, &context(), rig.place(1, 0), &[1]);
    let message = rig.settle().unwrap();
    assert!(
        message.contains("rank 1 has bound no segment there"),
        "{message}"
    );
}

#[test]
fn a_refused_range_of_many_pieces_changes_nothing() {
    const BYTES: usize = 200 << 10;
    let rig = Rig::pair(BYTES);
    let place = rig.place(1, 1);
    put(&rig.ranks[0].engine, &context(), place, &bytes(1, BYTES));
    let message = rig.settle().unwrap();
    assert!(
        message.contains(&format!("a put of {BYTES} bytes")),
        "{message}"
    );
    assert!(
        rig.memory[1]
            .read(0, BYTES)
            .iter()
            .all(|byte| *byte == 0xee)
    );
}

#[test]
fn a_refused_reply_ends_the_job_at_its_target() {
    let rig = Rig::pair(LEN);
    let (engine, ctx) = (&rig.ranks[0].engine, context());
    let to = rig.place(0, LEN - 1).address;
    let args = [to as u32, (to >> 32) as u32, 1, 2];
    let injection = Injection::Blocking;
    long(
        engine,
        &ctx,
        rig.place(1, 0),
        BOUNCE,
        &args,
        &[1, 2],
        injection,
    )
    .unwrap();
    let message = rig.settle().unwrap();
    let said = format!("rank 1: a long active message of 2 bytes at {to:#x} of rank 0");
    assert!(message.contains(&said), "{message}");
    assert_eq!(rig.ranks[0].notes.aborts.lock().first(), Some(&message));
    assert_eq!(rig.memory[0].read(0, LEN), [0xee; LEN]);
}
