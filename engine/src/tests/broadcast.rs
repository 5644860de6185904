//! Broadcasts: every root, several lengths, receivers early and late, many at once.

use super::post::{MEDIUM, Rank, ended, job, quiet, until};
use super::*;

/// One rank's part in a broadcast; the memory lives as long as this.
struct Part {
    event: Event,
    bytes: Vec<u8>,
    _source: Vec<u8>,
}

fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at.wrapping_mul(31) + at / 251 + number * 7) as u8)
        .collect()
}

fn call(rank: &Rank, root: u32, number: usize, len: usize) -> Part {
    let is_root = rank.engine.rank().0 == root;
    let in_place = number % 2 == 1;
    let source = content(number, if is_root { len } else { 0 });
    let mut bytes = if is_root && in_place {
        source.clone()
    } else {
        vec![0xee; len]
    };
    let dst = bytes.as_mut_ptr();
    let src = match (is_root, in_place) {
        (true, true) => dst.cast_const(),
        (true, false) => source.as_ptr(),
        // No code may read it.
        (false, _) => ::core::ptr::without_provenance(8),
    };
    // SAFETY: both buffers live in the part, which every test keeps until it has tested the event;
    // a vector's memory stays where it is when the vector is moved.
    let event = unsafe {
        rank.engine
            .broadcast_start(&rank.ctx, JobRank(root), dst, src, len)
    };
    Part {
        event: event.unwrap(),
        bytes,
        _source: source,
    }
}

fn check(ranks: &[Rank], at: usize, part: &Part, number: usize) {
    until(ranks, || ranks[at].test(part.event));
    assert!(
        part.bytes == content(number, part.bytes.len()),
        "broadcast {number} at rank {at}"
    );
}

#[test]
fn every_root_in_every_order_of_callers() {
    for size in [1u32, 2, 3, 5] {
        for room in [2, 1000] {
            let ranks = job(size, room, ThreadMode::Seq);
            let mut number = 0;
            for root in 0..size {
                for len in [0, 1, MEDIUM, 64 * 1024 + 1, 1 << 20] {
                    // How the ranks come, counted from the root, and whether all that can happen
                    // between two of them does.
                    for (descending, slowly) in
                        [(false, false), (false, true), (true, true), (true, false)]
                    {
                        let mut order: Vec<u32> = (0..size).map(|i| (root + i) % size).collect();
                        if descending {
                            order.reverse();
                        }
                        let mut parts: Vec<Option<Part>> = (0..size).map(|_| None).collect();
                        for rank in order {
                            let at = rank as usize;
                            parts[at] = Some(call(&ranks[at], root, number, len));
                            if slowly {
                                quiet(&ranks);
                            }
                        }
                        for (at, part) in parts.iter().enumerate() {
                            check(&ranks, at, part.as_ref().unwrap(), number);
                        }
                        number += 1;
                    }
                }
            }
            quiet(&ranks);
            let pending = |rank: &Rank| rank.engine.background.pending();
            assert!(ranks.iter().all(|rank| pending(rank) == 0));
        }
    }
}

#[test]
fn no_rank_completes_before_the_root_has_sent() {
    let ranks = job(3, 1000, ThreadMode::Seq);
    for len in [0, 10] {
        let parts = [1, 2].map(|at: usize| (at, call(&ranks[at], 0, 0, len)));
        quiet(&ranks);
        for (at, part) in &parts {
            assert!(!ranks[*at].test(part.event), "{len} bytes at rank {at}");
        }
        let root = call(&ranks[0], 0, 0, len);
        check(&ranks, 0, &root, 0);
        for (at, part) in &parts {
            check(&ranks, *at, part, 0);
        }
    }
}

/// Rank 0 calls one thing and rank 1 another, in that order or the other, with all messages
/// handled between or not: how the job ends.
fn differing(calls: [(u32, usize); 2], reverse: bool, slowly: bool) -> String {
    let ranks = job(2, 1000, ThreadMode::Seq);
    ended(|| {
        let mut parts = Vec::new();
        let order = if reverse { [1, 0] } else { [0, 1] };
        for at in order {
            let (root, len) = calls[at];
            parts.push(call(&ranks[at], root, 0, len));
            if slowly {
                quiet(&ranks);
            }
        }
        quiet(&ranks);
    })
}

#[test]
fn a_mismatch_names_each_rank() {
    for (reverse, slowly) in [(false, false), (false, true), (true, false), (true, true)] {
        for calls in [
            [(0, 5), (0, 6)],
            [(0, 0), (0, 6)],
            [(0, 5), (0, 0)],
            [(0, 5), (1, 5)],
        ] {
            let message = differing(calls, reverse, slowly);
            for (rank, (root, len)) in calls.iter().enumerate() {
                let part = format!("root {root} and {len} bytes at rank {rank}");
                assert!(message.contains(&part), "{message}, without: {part}");
            }
        }
    }
}

/// No rank sends a piece then.
///
/// The rank that is asked has called before or calls after.
#[test]
fn a_mismatch_without_a_root_names_each_rank() {
    for (reverse, slowly) in [(false, false), (false, true), (true, false), (true, true)] {
        let message = differing([(1, 5), (0, 7)], reverse, slowly);
        let parts = [
            "root 1 and 5 bytes at rank 0",
            "root 0 and 7 bytes at rank 1",
        ];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    // A rank that no rank takes for the root waits for another that does not take itself for it.
    let ranks = job(3, 1000, ThreadMode::Seq);
    let message = ended(|| {
        let _parts = [(0, 1), (1, 2), (2, 1)].map(|(at, root)| call(&ranks[at], root, 0, 9));
        quiet(&ranks);
    });
    let parts = [
        "root 1 and 9 bytes at rank 0",
        "root 2 and 9 bytes at rank 1",
    ];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

/// Each rank asks once, and is not answered but by the bytes.
#[test]
fn a_late_root_is_asked_and_all_goes_well() {
    let ranks = job(3, 1000, ThreadMode::Seq);
    for number in 0..100 {
        let early = [1, 2].map(|at: usize| (at, call(&ranks[at], 0, number, 10)));
        quiet(&ranks);
        let questions = || ranks[0].engine.background.collectives.questions();
        assert_eq!(questions(), 2, "before call {number}");
        let root = call(&ranks[0], 0, number, 10);
        assert_eq!(questions(), 0, "after call {number}");
        check(&ranks, 0, &root, number);
        for (at, part) in &early {
            check(&ranks, *at, part, number);
        }
    }
}

#[test]
fn missing_roots_and_calls_inside_handlers_are_refused() {
    let ranks = job(2, 1000, ThreadMode::Seq);
    let Rank { engine, ctx } = &ranks[0];
    let mut byte = 0;
    // SAFETY: it is refused.
    let refused =
        unsafe { engine.broadcast_start(ctx, JobRank(2), &raw mut byte, &raw const byte, 1) };
    assert!(matches!(
        refused,
        Err(OpError::Am(argonet_am::AmError::NoSuchRank { .. }))
    ));
    ctx.enter(Context::Handler);
    // SAFETY: it is refused.
    let refused =
        unsafe { engine.broadcast_start(ctx, JobRank(0), &raw mut byte, &raw const byte, 1) };
    assert!(matches!(
        refused,
        Err(OpError::Am(argonet_am::AmError::Restricted { .. }))
    ));
}

#[test]
fn threads_broadcast_to_each_other() {
    let ranks = job(3, 4, ThreadMode::Par);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for rank in &ranks {
            let engine = &rank.engine;
            threads.push(scope.spawn(move || {
                let ctx = ThreadCtx::uncounted();
                let me = engine.rank().0;
                for number in 0..300usize {
                    let (root, len) = (number as u32 % 3, number * 97 % (3 * MEDIUM));
                    let mut bytes = if me == root {
                        content(number, len)
                    } else {
                        vec![0; len]
                    };
                    let dst = bytes.as_mut_ptr();
                    // SAFETY: the buffer lives until the event has been waited for.
                    let event =
                        unsafe { engine.broadcast_start(&ctx, JobRank(root), dst, dst, len) };
                    engine.wait(&ctx, event.unwrap()).unwrap();
                    assert!(
                        bytes == content(number, len),
                        "broadcast {number} at rank {me}"
                    );
                }
            }));
            // One that only polls, so that handlers run on either.
            threads.push(scope.spawn(move || {
                let ctx = ThreadCtx::uncounted();
                for _ in 0..3000 {
                    engine.poll(&ctx).unwrap();
                    std::thread::yield_now();
                }
            }));
        }
        // ThreadSanitizer sees a join, but not the end of a scope.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

proptest! {
    /// Many at once, of any lengths and roots, with ranks that come and look whenever they like.
    #[test]
    fn many_at_once(
        size in 2u32..7,
        room in prop::sample::select(vec![1usize, 3, 1000]),
        calls in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4 * MEDIUM), 1..20),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3), 0..200),
    ) {
        let ranks = job(size, room, ThreadMode::Seq);
        let mut parts: Vec<Vec<Part>> = ranks.iter().map(|_| Vec::new()).collect();
        let mut next = |at: usize| {
            let number = parts[at].len();
            if let Some((root, len)) = calls.get(number) {
                let root = root.index(size as usize) as u32;
                parts[at].push(call(&ranks[at], root, number, *len));
                return true;
            }
            false
        };
        for (index, step) in &steps {
            let at = index.index(size as usize);
            if *step == 0 {
                next(at);
            } else {
                ranks[at].poll();
            }
        }
        for at in 0..size as usize {
            while next(at) {}
        }
        for (at, parts) in parts.iter().enumerate() {
            // Some order that is not that of the calls.
            for (number, part) in parts.iter().enumerate().rev() {
                check(&ranks, at, part, number);
            }
        }
    }
}
