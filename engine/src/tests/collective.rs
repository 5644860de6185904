//! Collective operations of teams over a conduit that has little room and delivers in any order.

use super::post::{MEDIUM, Rank, ended, job, quiet, until};
use super::*;
use std::sync::Arc;

/// The same of a job of neighborhoods of two.
fn pairs(size: u32, room: usize) -> Vec<Rank> {
    let ranks = job(size, room, ThreadMode::Seq);
    for rank in &ranks {
        assert!(rank.engine.set_neighborhoods(Box::new(|rank| rank.0 / 2)));
        rank.engine.world_team();
    }
    ranks
}

fn call(kind: Kind, root: u32, src: *const u8, dst: *mut u8, count: usize) -> Call {
    Call {
        root,
        count,
        src,
        dst,
        ..Call::of(kind)
    }
}

fn start(rank: &Rank, team: &Arc<Team>, call: Call) -> Event {
    // SAFETY: every test keeps its buffers until it has tested the event.
    unsafe { rank.engine.collective_start(&rank.ctx, team, call) }.unwrap()
}

fn content(rank: u32, number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 31 + at / 251 + number * 7 + rank as usize * 101) as u8)
        .collect()
}

/// One rank's part in a gather-all.
struct Part {
    event: Event,
    number: usize,
    _source: Vec<u8>,
    target: Vec<u8>,
}

fn gather(rank: &Rank, team: &Arc<Team>, number: usize, len: usize) -> Part {
    let source = content(team.rank, number, len);
    let mut target = vec![0xee; len * team.size() as usize];
    let call = call(
        Kind::GatherAll,
        0,
        source.as_ptr(),
        target.as_mut_ptr(),
        len,
    );
    Part {
        event: start(rank, team, call),
        number,
        _source: source,
        target,
    }
}

fn check(part: &Part, team: &Arc<Team>) {
    let size = team.size();
    let len = part.target.len() / size as usize;
    let expected: Vec<u8> = (0..size)
        .flat_map(|from| content(from, part.number, len))
        .collect();
    assert!(part.target == expected, "gather-all {}", part.number);
}

#[test]
fn short_and_long_with_little_room_and_several_at_once() {
    for size in [1, 2, 5, 8] {
        for room in [2, 1000] {
            let ranks = pairs(size, room);
            for len in [0, 1, 100, MEDIUM - 1, MEDIUM, 3 * MEDIUM + 1] {
                let mut parts: Vec<(usize, Part)> = Vec::new();
                for number in 0..4 {
                    for (at, rank) in ranks.iter().enumerate() {
                        parts.push((at, gather(rank, rank.engine.world_team(), number, len)));
                    }
                }
                // The last begun first.
                for (at, part) in parts.iter().rev() {
                    until(&ranks, || ranks[*at].test(part.event));
                    check(part, ranks[*at].engine.world_team());
                }
            }
            quiet(&ranks);
            assert!(
                ranks
                    .iter()
                    .all(|rank| rank.engine.background.pending() == 0)
            );
        }
    }
}

/// Rank 0 opens its teams and calls, and completes the calls that need no other rank, before the
/// others know of the team.
#[test]
fn messages_come_before_the_team_is_open() {
    let ranks = pairs(4, 1000);
    let odd = Arc::new(Members::new(&[1, 3, 0].map(|rank| (JobRank(rank), 0))).unwrap());
    let key = TeamKey::led_by(JobRank(1), 1);
    let open = |at: usize, rank| ranks[at].engine.open_team(key, Arc::clone(&odd), rank);
    let team = open(1, 0);
    let parts: Vec<Part> = (0..3)
        .map(|number| gather(&ranks[1], &team, number, 9000))
        .collect();
    quiet(&ranks);
    let third = open(3, 1);
    let others: Vec<Part> = (0..3)
        .map(|number| gather(&ranks[3], &third, number, 9000))
        .collect();
    quiet(&ranks);
    assert!(!ranks[1].test(parts[0].event));
    let last = open(0, 2);
    let rest: Vec<Part> = (0..3)
        .map(|number| gather(&ranks[0], &last, number, 9000))
        .collect();
    for (at, team, parts) in [(1, &team, &parts), (3, &third, &others), (0, &last, &rest)] {
        for part in parts {
            until(&ranks, || ranks[at].test(part.event));
            check(part, team);
        }
        ranks[at].engine.close_team(team);
    }
    quiet(&ranks);
    assert!(
        [0, 1, 3]
            .iter()
            .all(|at: &usize| ranks[*at].engine.background.collectives.is_empty())
    );
}

/// A root needs no other rank, but it may not run ahead forever.
#[test]
fn a_root_runs_ahead_by_at_most_a_window() {
    let ranks = pairs(3, 1_000_000);
    let mut bytes = vec![7u8; 100];
    let dst = bytes.as_mut_ptr();
    let mut events = Vec::new();
    for _ in 0..1000 {
        let world = ranks[0].engine.world_team();
        events.push(start(
            &ranks[0],
            world,
            call(Kind::Broadcast, 0, dst, dst, 100),
        ));
        if events.len() % 10 == 0 {
            quiet(&ranks);
        }
    }
    let kept = ranks[1..]
        .iter()
        .map(|rank| rank.engine.background.collectives.kept());
    assert!(
        kept.clone().all(|kept| (10..=64).contains(&kept)),
        "{:?}",
        kept.collect::<Vec<_>>()
    );
    let complete = events
        .iter()
        .take_while(|event| ranks[0].test(**event))
        .count();
    assert!((20..=64).contains(&complete), "{complete}");
    for rank in &ranks[1..] {
        for number in 0..1000 {
            let mut got = vec![0u8; 100];
            let dst = got.as_mut_ptr();
            let world = rank.engine.world_team();
            let event = start(rank, world, call(Kind::Broadcast, 0, dst, dst, 100));
            if rank.engine.rank().0 == 2 {
                until(&ranks, || rank.test(event));
                assert_eq!(got, bytes, "broadcast {number}");
            } else {
                // Its memory stays.
                std::mem::forget(got);
            }
        }
    }
}

#[test]
fn a_mismatch_names_each_rank() {
    let kinds = [Kind::Barrier, Kind::Broadcast, Kind::GatherAll];
    for (a, one) in kinds.into_iter().enumerate() {
        for other in kinds[..a].iter().copied() {
            for slowly in [false, true] {
                let ranks = pairs(2, 1000);
                let message = ended(|| {
                    let mut memory = [[0u8; 64]; 2];
                    for (rank, kind) in ranks.iter().zip([one, other]) {
                        let bytes = &mut memory[rank.engine.rank().0 as usize];
                        let count = if kind == Kind::Barrier { 0 } else { 8 };
                        let (src, dst) = bytes.split_at_mut(32);
                        let call = call(kind, 0, src.as_ptr(), dst.as_mut_ptr(), count);
                        start(rank, rank.engine.world_team(), call);
                        if slowly {
                            quiet(&ranks);
                        }
                    }
                    quiet(&ranks);
                });
                for part in ["at rank 0", "at rank 1"] {
                    assert!(message.contains(part), "{message}");
                }
            }
        }
    }
}

/// Kind, root and length are the same, but not the operations that combine.
#[test]
fn a_mismatch_of_operations_names_each_rank() {
    let ranks = pairs(2, 1000);
    let message = ended(|| {
        let mut memory = [[0u64; 8]; 2];
        for (rank, op) in ranks.iter().zip([Operation::Add, Operation::Max]) {
            let words = &mut memory[rank.engine.rank().0 as usize];
            let (src, dst) = words.split_at_mut(4);
            let (src, dst) = (src.as_ptr().cast(), dst.as_mut_ptr().cast());
            let call = Call {
                unit: 8,
                folding: Some(Folding::built_in(op, DataType::U64)),
                ..call(Kind::ReduceAll, 0, src, dst, 4)
            };
            start(rank, rank.engine.world_team(), call);
        }
        quiet(&ranks);
    });
    for part in [
        "at rank 0",
        "at rank 1",
        "reduce-to-all of 32 bytes by operation",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn threads_of_different_teams_at_once() {
    let ranks = job(4, 4, ThreadMode::Par);
    let halves = [[0, 1], [2, 3], [0, 2], [1, 3]];
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, half) in halves.into_iter().enumerate() {
            for (rank, at) in (0..).zip(half) {
                let engine = &ranks[at as usize].engine;
                let thread = scope.spawn(move || {
                    let ctx = ThreadCtx::uncounted();
                    let members = half.map(|rank| (JobRank(rank), 0));
                    let members = Arc::new(Members::new(&members).unwrap());
                    let key = TeamKey::led_by(JobRank(half[0]), index as u32 + 1);
                    let team = engine.open_team(key, members, rank);
                    for number in 0..300usize {
                        let len = number * 97 % (3 * MEDIUM);
                        let source = content(rank, number, len);
                        let mut target = vec![0; 2 * len];
                        engine
                            .gather_all(&ctx, &team, &source, &mut target)
                            .unwrap();
                        for from in 0..2 {
                            let part = &target[from as usize * len..][..len];
                            assert!(part == content(from, number, len), "{number}");
                        }
                        engine.team_barrier(&ctx, &team).unwrap();
                    }
                    engine.close_team(&team);
                });
                threads.push(thread);
            }
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}
