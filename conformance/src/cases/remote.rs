//! Puts and gets, and requests whose payload stays where it is: bytes, neighbors, completions.

use super::operations::{MARGIN, NOTHING, Operations, complete_put};
use super::{Case, lengths};
use crate::bench::{Bench, SEGMENT, Want};
use crate::log::{NOTE, message, token};
use crate::mail::Mail;
use crate::pattern;
use crate::rig::{Promises, Rig};
use argonet_am::Category;
use argonet_base::{JobRank, SegmentOffset};
use argonet_conduit::{Completion, Conduit, Injected, SMALL_PUT, SendError};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    let case = |name, run| Case {
        name,
        applies: |promises: &Promises| promises.remote,
        run,
    };
    vec![
        case(
            "puts_of_every_length_and_place",
            puts_of_every_length_and_place,
        ),
        case(
            "gets_of_every_length_and_place",
            gets_of_every_length_and_place,
        ),
        case(
            "small_puts_have_read_their_source",
            small_puts_have_read_their_source,
        ),
        case("many_puts_under_way", many_puts_under_way),
        case("many_gets_under_way", many_gets_under_way),
        case("puts_outside_write_nothing", puts_outside_write_nothing),
        case("gets_outside_are_refused", gets_outside_are_refused),
        Case {
            name: "a_put_needs_no_help",
            applies: |promises| promises.remote && promises.capabilities.put,
            run: a_put_needs_no_help,
        },
        case("moved_now_is_complete", moved_now_is_complete),
        case("outside_nothing_moves_now", outside_nothing_moves_now),
        super::always("requests_in_place", requests_in_place),
    ]
}

/// A background that no pattern has: the margins around written bytes must keep it.
fn background(len: usize) -> Vec<u8> {
    (0..len).map(|i| 0x80 | (i % 101) as u8).collect()
}

fn puts_of_every_length_and_place<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let mut ops = Operations::of(0);
    let max = SEGMENT as usize - 2 * MARGIN - 64;
    for (n, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        for (place, to) in [(0, 1), (1, 1), (7, 0), (8, 1), (63, 1)] {
            let around = background(len + 2 * MARGIN);
            bench.write(to, place, &around);
            let bytes = pattern::bytes(n as u32, len);
            let offset = place + MARGIN as u64;
            let handle = ops.put(&mut bench, to, offset, &bytes);
            complete_put(&mut bench, &mut ops, handle, to, offset, &bytes);
            let now = bench.read(to, place, around.len());
            let tail = MARGIN + len;
            let clean = now[..MARGIN] == around[..MARGIN] && now[tail..] == around[tail..];
            assert!(
                clean,
                "a put of {len} bytes at {offset} changed its neighbors"
            );
        }
    }
    // The first and the last bytes of the segment.
    for offset in [0, SEGMENT - 9] {
        let bytes = pattern::bytes(5, 9);
        let handle = ops.put(&mut bench, 1, offset, &bytes);
        complete_put(&mut bench, &mut ops, handle, 1, offset, &bytes);
    }
    bench.account();
    assert!(bench.logs[0].completed.is_empty(), "a completion too many");
}

/// Also where it lies in the segment, from which others are put as it is.
fn small_puts_have_read_their_source<R: Rig>(rig: &R) {
    const TIMES: u32 = 200;
    let mut bench = Bench::new(rig, Want::ranks(2));
    let mut under_way = Vec::new();
    for n in 0..TIMES {
        let len = 1 + n as usize % SMALL_PUT;
        let bytes = pattern::bytes(n, len);
        let target = SegmentOffset(4096 + u64::from(n) * 64);
        bench.write(0, 8, &bytes);
        bench.until("room for a put", |bench| {
            let source = bench.place(0, 8, len);
            // SAFETY: segments live as long as the job.
            let put = unsafe {
                bench.at(0).put(
                    JobRank(1),
                    target,
                    source.as_ptr(),
                    len,
                    token(u64::from(n)),
                )
            };
            assert_ne!(put, Ok(Injected::Pending), "a put of {len} bytes");
            under_way
                .extend((put == Ok(Injected::Local)).then_some((u64::from(n), Completion::Remote)));
            put != Err(SendError::Full)
        });
        // At once.
        bench.write(0, 8, &vec![0xee; len]);
    }
    bench.until("all are complete", |bench| {
        bench.logs[0].completed.len() >= under_way.len()
    });
    bench.logs[0].completed.sort_by_key(|&(handle, _)| handle);
    assert_eq!(bench.logs[0].completed, under_way, "remote parts alone");
    for n in 0..TIMES {
        let len = 1 + n as usize % SMALL_PUT;
        let there = bench.read(1, 4096 + u64::from(n) * 64, len);
        assert!(there == pattern::bytes(n, len), "a put of {len} bytes");
    }
}

fn gets_of_every_length_and_place<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let mut ops = Operations::of(0);
    let whole = pattern::bytes(77, SEGMENT as usize);
    for from in [0, 1] {
        bench.write(from, 0, &whole);
    }
    for len in lengths(&bench.promises, SEGMENT as usize) {
        let last = SEGMENT - len as u64;
        for (offset, place, from) in [(0, 0, 1), (1, 3, 1), (last / 2, 8, 0), (last, 1, 1)] {
            let offset = offset.min(last);
            let (handle, there) = ops.get(&mut bench, from, offset, len, place);
            let mut buffer = there;
            bench.until("a get is complete", |bench| {
                ops.reports(bench);
                buffer = buffer.take().or_else(|| ops.close(handle));
                buffer.is_some()
            });
            let buffer = buffer.unwrap_or_default();
            let (start, end) = (MARGIN + place, MARGIN + place + len);
            let source = &whole[offset as usize..offset as usize + len];
            assert!(
                &buffer[start..end] == source,
                "get of {len} bytes at {offset}"
            );
            let margins = buffer[..start].iter().chain(&buffer[end..]);
            assert!(
                margins.into_iter().all(|&byte| byte == 0x5a),
                "beside a get of {len}"
            );
        }
    }
    bench.account();
    assert!(bench.logs[0].completed.is_empty(), "a completion too many");
}

/// Each of many operations is reported once for each completion, under its own token.
fn many_puts_under_way<R: Rig>(rig: &R) {
    const COUNT: u32 = 1000;
    const LEN: usize = 96;
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    let mut ops = Operations::of(0);
    for n in 0..COUNT {
        let bytes = pattern::bytes(n, LEN);
        ops.put(&mut bench, 1 + n % 2, u64::from(n) * LEN as u64, &bytes);
    }
    bench.until("all puts are complete", |bench| {
        ops.reports(bench);
        ops.open.retain(|&(_, due, _)| due != NOTHING);
        ops.open.is_empty()
    });
    for n in 0..COUNT {
        let there = bench.read(1 + n % 2, u64::from(n) * LEN as u64, LEN);
        assert_eq!(pattern::first_wrong(n, &there), None, "put {n}");
    }
    bench.account();
    assert!(bench.logs[0].completed.is_empty(), "a completion too many");
}

fn many_gets_under_way<R: Rig>(rig: &R) {
    const COUNT: u32 = 1000;
    const LEN: usize = 96;
    let mut bench = Bench::new(rig, Want::ranks(3).cramped());
    let mut ops = Operations::of(2);
    for rank in [0, 1] {
        for n in 0..COUNT {
            bench.write(
                rank,
                u64::from(n) * LEN as u64,
                &pattern::bytes(n + rank, LEN),
            );
        }
    }
    let mut got = Vec::new();
    let mut asked = Vec::new();
    for n in 0..COUNT {
        let (handle, there) = ops.get(&mut bench, n % 2, u64::from(n) * LEN as u64, LEN, 0);
        match there {
            Some(buffer) => got.push((n, buffer)),
            None => asked.push((n, handle)),
        }
    }
    bench.until("all gets are complete", |bench| {
        ops.reports(bench);
        asked.retain(|&(n, handle)| match ops.close(handle) {
            Some(buffer) => {
                got.push((n, buffer));
                false
            }
            None => true,
        });
        asked.is_empty()
    });
    assert_eq!(got.len(), COUNT as usize);
    for (n, buffer) in got {
        let seed = n + n % 2;
        assert_eq!(
            pattern::first_wrong(seed, &buffer[MARGIN..MARGIN + LEN]),
            None,
            "get {n}"
        );
    }
    bench.account();
    assert!(bench.logs[2].completed.is_empty(), "a completion too many");
}

/// Ranges that no segment of [`SEGMENT`] bytes has.
const OUTSIDE: [(u64, usize); 7] = [
    (SEGMENT, 1),
    (SEGMENT - 1, 2),
    (SEGMENT - 4096, 8192),
    (SEGMENT - 100_000, 150_000),
    (u64::MAX, 1),
    (u64::MAX - 1, 4),
    (u64::MAX - 63, 200),
];

/// Refused at the sender, or reported broken; written in no case.
fn puts_outside_write_nothing<R: Rig>(rig: &R) {
    for (offset, len) in OUTSIDE {
        let mut bench = Bench::new(rig, Want::ranks(2).cramped());
        let before = pattern::bytes(9, SEGMENT as usize);
        bench.write(1, 0, &before);
        let bytes = vec![0xee; len];
        // SAFETY: the buffer lives to the end of the job, which is dropped before it.
        let put = unsafe {
            let place = SegmentOffset(offset);
            bench
                .at(0)
                .put(JobRank(1), place, bytes.as_ptr(), len, token(3))
        };
        if put.is_ok() {
            bench.until("a rank reports the error", |bench| {
                bench.logs.iter().any(|log| !log.broken.is_empty())
            });
        }
        let whole: Vec<u32> = bench.ranks().collect();
        bench.quiet_among(&whole);
        assert!(
            bench.read(1, 0, before.len()) == before,
            "{len} bytes at {offset}: written"
        );
        if put.is_err() {
            assert!(bench.logs[0].completed.is_empty(), "refused and completed");
            bench.send(0, 1, Mail::note(1).asks_short());
            bench.account();
        }
        drop(bench);
        drop(bytes);
    }
}

/// What a conduit says it has moved during the call is there when the call returns, and nothing
/// beside it; no completion is reported.
fn moved_now_is_complete<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let max = SEGMENT as usize - 2 * MARGIN - 64;
    let mut moved = 0;
    for (n, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        for (place, to) in [(0, 1), (7, 0), (8, 1)] {
            let around = background(len + 2 * MARGIN);
            bench.write(to, place, &around);
            let bytes = pattern::bytes(n as u32, len);
            let offset = SegmentOffset(place + MARGIN as u64);
            let mut back = vec![0; len];
            // SAFETY: both buffers are there for the call.
            let (is_put, is_got) = unsafe {
                let (at, peer) = (bench.at(0), JobRank(to));
                let is_put = at.put_now(peer, offset, bytes.as_ptr(), len);
                (is_put, at.get_now(peer, offset, back.as_mut_ptr(), len))
            };
            let now = bench.read(to, place, around.len());
            let there = &now[MARGIN..MARGIN + len];
            let tail = MARGIN + len;
            let clean = now[..MARGIN] == around[..MARGIN] && now[tail..] == around[tail..];
            assert!(clean, "{len} bytes at {offset:?} changed their neighbors");
            assert!(!is_put || there == bytes, "a put of {len} bytes");
            assert!(!is_got || there == back, "a get of {len} bytes");
            moved += u32::from(is_put && is_got);
        }
    }
    assert_eq!(moved > 0, bench.at(0).moves_now());
    bench.account();
    assert!(bench.logs[0].completed.is_empty(), "a completion too many");
}

fn outside_nothing_moves_now<R: Rig>(rig: &R) {
    for (offset, len) in OUTSIDE {
        let mut bench = Bench::new(rig, Want::ranks(2).cramped());
        let before = pattern::bytes(9, SEGMENT as usize);
        bench.write(1, 0, &before);
        let mut bytes = vec![0xee; len];
        let place = SegmentOffset(offset);
        // SAFETY: the buffer is there for the call.
        let moved = unsafe {
            let at = bench.at(0);
            at.put_now(JobRank(1), place, bytes.as_ptr(), len)
                || at.get_now(JobRank(1), place, bytes.as_mut_ptr(), len)
        };
        assert!(!moved, "{len} bytes at {offset}");
        let now = bench.read(1, 0, before.len());
        assert!(now == before, "{len} bytes at {offset}: written");
        bench.send(0, 1, Mail::note(1).asks_short());
        bench.account();
    }
}

fn gets_outside_are_refused<R: Rig>(rig: &R) {
    for (offset, len) in OUTSIDE {
        let mut bench = Bench::new(rig, Want::ranks(2).cramped());
        bench.write(1, 0, &pattern::bytes(9, SEGMENT as usize));
        let mut bytes = vec![0x5a; len];
        let at = bytes.as_mut_ptr();
        // SAFETY: as in `puts_outside_write_nothing`.
        let get = unsafe {
            bench
                .at(0)
                .get(JobRank(1), SegmentOffset(offset), at, len, token(3))
        };
        if get.is_ok() {
            bench.until("a rank reports the error", |bench| {
                bench.logs.iter().any(|log| !log.broken.is_empty())
            });
        }
        assert_eq!(
            bench.reported(0, 3, Completion::Remote),
            0,
            "{len} bytes at {offset}"
        );
        drop(bench);
        assert!(
            bytes.iter().all(|&byte| byte == 0x5a),
            "{len} bytes at {offset}"
        );
    }
}

/// A put completes while its target does nothing at all.
fn a_put_needs_no_help<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    for (n, len) in [1, 8, 4096, 100_000].into_iter().enumerate() {
        let bytes = pattern::bytes(n as u32, len);
        // SAFETY: the buffer lives until the end of the loop, which the completion precedes.
        let put = unsafe {
            let op = token(n as u64);
            bench
                .at(0)
                .put(JobRank(1), SegmentOffset(3), bytes.as_ptr(), len, op)
        };
        let due = match put {
            Ok(Injected::Complete) => [0, 0],
            Ok(Injected::Local) => [0, 1],
            Ok(Injected::Pending) => [1, 1],
            Err(error) => bench.fail(&error.to_string()),
        };
        bench.until_among(&[0], "a put without its target", |bench| {
            [Completion::Local, Completion::Remote]
                .map(|completion| bench.reported(0, n as u64, completion))
                == due
        });
        assert!(bench.read(1, 3, len) == bytes, "{len} bytes");
    }
}

/// The payload is read before its local completion is reported, and never after.
fn requests_in_place<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2));
    let max = bench.at(0).limits().medium_request;
    for (n, len) in lengths(&bench.promises, max).into_iter().enumerate() {
        let tag = n as u32;
        for mail in [Mail::note(tag).medium(len), Mail::note(tag).long(len, 64)] {
            let category = if mail == Mail::note(tag).medium(len) {
                Category::Medium
            } else {
                Category::Long
            };
            let (mut buffer, args) = (mail.payload(), mail.arguments());
            let handle = 2 * n as u64 + u64::from(category == Category::Long);
            let mut pending = false;
            bench.until("room for a request", |bench| {
                let message = message(NOTE, category, &args, &buffer, 64);
                // SAFETY: the buffer lives until its local completion is reported, below.
                let sent = unsafe {
                    bench
                        .at(0)
                        .request_in_place(JobRank(1), &message, token(handle))
                };
                match sent {
                    Err(SendError::Full) => return false,
                    Err(error) => bench.fail(&error.to_string()),
                    Ok(injected) => pending = injected == Injected::Pending,
                }
                true
            });
            bench.owe(0, 1, mail);
            if pending {
                bench.until("the local completion", |bench| {
                    bench.reported(0, handle, Completion::Local) > 0
                });
            }
            buffer.fill(0xee);
            bench.account();
            let due = usize::from(pending);
            assert_eq!(
                bench.reported(0, handle, Completion::Local),
                due,
                "{len} bytes"
            );
            assert_eq!(
                bench.reported(0, handle, Completion::Remote),
                0,
                "{len} bytes"
            );
            bench.logs[0].completed.clear();
            bench.forget();
        }
    }
}
