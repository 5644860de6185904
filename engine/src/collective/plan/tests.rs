//! Schedules executed against each other in memory, and compared with a sequential model.

use super::execute::{Outcome, Sends, execute, execute_planned};
use super::*;
use crate::collective::call::BlockRanges;
use proptest::prelude::*;

mod neighborhoods;
mod scratch;

/// An element: which runs of ranks have been combined, and whether always neighboring ones in
/// order.
const UNIT: usize = 4;

/// First rank, last rank, whether the order was kept, a sum.
fn element(rank: u32, block: u32, at: usize) -> [u8; UNIT] {
    [
        rank as u8,
        rank as u8,
        0,
        (rank * 7 + block * 13 + at as u32 * 31) as u8,
    ]
}

fn combine(left: &[u8], right: &mut [u8]) {
    for (a, b) in left.chunks(UNIT).zip(right.chunks_mut(UNIT)) {
        let broken = a[2] | b[2] | u8::from(a[1].wrapping_add(1) != b[0]);
        b.copy_from_slice(&[a[0], b[1], broken, a[3].wrapping_add(b[3])]);
    }
}

/// As above, where the order does not matter: the combined runs stand as a sum and a number.
fn combine_any(left: &[u8], right: &mut [u8]) {
    for (a, b) in left.chunks(UNIT).zip(right.chunks_mut(UNIT)) {
        b.copy_from_slice(&[0, 0, b[2].wrapping_add(a[2]), a[3].wrapping_add(b[3])]);
    }
}

/// The source of a rank, and its target in the end.
fn model(task: &Task, size: u32, ordered: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let value = |rank: u32, block: u32| -> Vec<u8> {
        let one = |at| {
            let mut element = element(rank, block, at);
            if !ordered && task.kind.folds() {
                element[..3].copy_from_slice(&[0, 0, 1]);
            }
            element
        };
        (0..task.count).flat_map(one).collect()
    };
    let blocks =
        |rank: u32| -> Vec<u8> { (0..size).flat_map(|block| value(rank, block)).collect() };
    let combined = |block: u32, ranks: core::ops::Range<u32>| -> Vec<u8> {
        let fold: fn(&[u8], &mut [u8]) = if ordered { combine } else { combine_any };
        let mut values = ranks.rev().map(|rank| value(rank, block));
        let mut result = values.next().unwrap_or_else(|| vec![0xee; task.block()]);
        values.for_each(|left| fold(&left, &mut result));
        result
    };
    let untouched = || vec![0xee; task.block()];
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for rank in 0..size {
        let is_root = rank == task.root;
        let (source, target) = match task.kind {
            Kind::Barrier | Kind::Window => (Vec::new(), Vec::new()),
            Kind::Broadcast => (
                if is_root { value(rank, 0) } else { Vec::new() },
                value(task.root, 0),
            ),
            Kind::Reduce => (
                value(rank, 0),
                if is_root {
                    combined(0, 0..size)
                } else {
                    Vec::new()
                },
            ),
            Kind::ReduceAll => (value(rank, 0), combined(0, 0..size)),
            Kind::Gather => (
                value(rank, 0),
                if is_root {
                    (0..size).flat_map(|from| value(from, 0)).collect()
                } else {
                    Vec::new()
                },
            ),
            Kind::GatherAll => (
                value(rank, 0),
                (0..size).flat_map(|from| value(from, 0)).collect(),
            ),
            Kind::Scatter => (
                if is_root { blocks(rank) } else { Vec::new() },
                value(task.root, rank),
            ),
            Kind::ExchangeV | Kind::GatherV | Kind::ScatterV => {
                panic!("its blocks are no part of a task")
            }
            Kind::Exchange => (
                blocks(rank),
                (0..size).flat_map(|from| value(from, rank)).collect(),
            ),
            Kind::ReduceScatter => (blocks(rank), combined(rank, 0..size)),
            Kind::Scan => (value(rank, 0), combined(0, 0..rank + 1)),
            Kind::ExclusiveScan => (
                value(rank, 0),
                if rank == 0 {
                    untouched()
                } else {
                    combined(0, 0..rank)
                },
            ),
        };
        sources.push(source);
        targets.push(target);
    }
    (sources, targets)
}

proptest! {
    /// Blocks of any length, many of them empty, between all members.
    #[test]
    fn blocks_of_any_length(
        size in 1u32..=40,
        drawn in prop::collection::vec(prop_oneof![Just(0usize), 1usize..30], 40 * 40),
        sends_empty: bool,
        synchronous: bool,
    ) {
        let ranks = 0..size;
        let len = |from: u32, to: u32| drawn[(from * 40 + to) as usize];
        let block = |from: u32, to: u32| (0..len(from, to)).map(move |at| (from * 7 + to * 13 + at as u32) as u8);
        let source = |from| ranks.clone().flat_map(|to| block(from, to)).collect();
        let target = |to| ranks.clone().flat_map(|from| block(from, to)).collect();
        let sources: Vec<Vec<u8>> = ranks.clone().map(source).collect();
        let expected: Vec<Vec<u8>> = ranks.clone().map(target).collect();
        let targets = expected.iter().map(|bytes: &Vec<u8>| vec![0xee; bytes.len()]).collect();
        let sent = |from: u32, to: u32| Some(len(from, to)).filter(|len| *len > 0 || sends_empty);
        let ranges_of = |lens: &mut dyn Iterator<Item = Option<usize>>| -> Vec<_> {
            let mut end = 0;
            lens.map(|len| len.map(|len| {
                let begin = end;
                end += len;
                begin..end
            }))
            .collect()
        };
        let plan = |rank, schedule: &mut Schedule| {
            let given = ranges_of(&mut ranks.clone().map(|to| sent(rank, to)));
            let taken = ranges_of(&mut ranks.clone().map(|from| sent(from, rank)));
            let blocks = BlockRanges { sent: &given, received: &taken };
            exchange_v(Kind::ExchangeV, (size, rank), &blocks, schedule);
        };
        let sends = if synchronous { Sends::Synchronous } else { Sends::Eager };
        let hoods = Hoods::new(size, |rank| rank);
        let outcome = execute_planned(&"an exchange", &hoods, &plan, (sources, targets), sends, &combine);
        prop_assert!(outcome.targets == expected);
        let count = |from: u32| {
            let others = ranks.clone().filter(|to| *to != from);
            others.filter(|to| sent(from, *to).is_some()).count() as u32
        };
        prop_assert_eq!(outcome.most_sent, ranks.clone().map(count).max().unwrap_or(0));
    }
}

const KINDS: &[Kind] = &[
    Kind::Barrier,
    Kind::Broadcast,
    Kind::Reduce,
    Kind::ReduceAll,
    Kind::Gather,
    Kind::GatherAll,
    Kind::Scatter,
    Kind::Exchange,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::ExclusiveScan,
];

fn check(hoods: &Hoods, tuning: &Tuning, task: &Task, sends: Sends) {
    let size = hoods.size();
    let ordered = task.ordered;
    let (sources, expected) = model(task, size, ordered);
    let targets = expected
        .iter()
        .map(|target| vec![0xee; target.len()])
        .collect();
    let fold: &dyn Fn(&[u8], &mut [u8]) = if ordered { &combine } else { &combine_any };
    let flat = Hoods::one(size);
    let hoods = if ordered && !hoods.are_contiguous() {
        &flat
    } else {
        hoods
    };
    let outcome = execute(hoods, tuning, task, sources, targets, sends, fold);
    scratch::check_bound(outcome.most_scratch, tuning, task, hoods);
    let all_sync = task.kind == Kind::Barrier || task.all_sync != AllSync::default();
    assert!(
        outcome.all_synchronized || !all_sync,
        "{task:?} of {size}, {hoods:?}: a rank has not heard of all"
    );
    for (rank, (target, expected)) in outcome.targets.iter().zip(&expected).enumerate() {
        assert!(
            target == expected,
            "{task:?} of {size}, {sends:?}, {tuning:?}, {hoods:?}: at {rank} {target:?} instead of {expected:?}"
        );
    }
}

fn task(kind: Kind, root: u32, count: usize, ordered: bool) -> Task {
    Task {
        kind,
        root: if kind.is_rooted() { root } else { 0 },
        unit: UNIT,
        count,
        ordered: ordered && kind.folds(),
        all_sync: AllSync {
            before: count % 2 == 1,
            after: count % 3 == 1,
        },
    }
}

#[test]
fn every_kind_size_root_and_length() {
    for size in 1..=33 {
        let places: [fn(u32) -> u32; 4] = [|_| 0, |rank| rank, |rank| rank / 4, |rank| rank % 3];
        for place in places {
            let hoods = Hoods::new(size, place);
            for &kind in KINDS {
                for root in [0, size / 2, size - 1] {
                    if root > 0 && !kind.is_rooted() {
                        continue;
                    }
                    for count in [0, 1, 5, 60] {
                        for (ordered, sends) in [(false, Sends::Synchronous), (true, Sends::Eager)]
                        {
                            check(&hoods, &small(), &task(kind, root, count, ordered), sends);
                        }
                    }
                }
            }
        }
    }
}

/// Limits that short data reaches.
fn small() -> Tuning {
    Tuning {
        eager_bytes: 64,
        radix: 3,
        segment_bytes: 128,
        scratch_bytes: 512,
        tree_block_bytes: 40,
        gather_all_dissemination_bytes: 40,
        exchange_dissemination_bytes: 40,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn random_neighborhoods_and_tunings(
        size in 1u32..=33,
        places in prop::collection::vec(0u32..5, 33),
        kind in prop::sample::select(KINDS),
        root in any::<prop::sample::Index>(),
        count in prop::sample::select(vec![0usize, 1, 2, 7, 33, 100, 1000]),
        radix in prop::sample::select(vec![2u32, 3, 4, 5, u32::MAX]),
        segment_bytes in prop::sample::select(vec![1usize, 64, 100, 1 << 20]),
        scratch_bytes in prop::sample::select(vec![1usize, 256, 2048, 1 << 20]),
        dissemination in prop::sample::select(vec![0usize, 16, 1 << 20]),
        ordered in any::<bool>(),
        synchronous in any::<bool>(),
    ) {
        let hoods = Hoods::new(size, |rank| places[rank as usize]);
        let tuning = Tuning {
            radix,
            segment_bytes,
            scratch_bytes,
            tree_block_bytes: dissemination,
            gather_all_dissemination_bytes: dissemination,
            exchange_dissemination_bytes: dissemination,
            ..Tuning::DEFAULT
        };
        let root = root.index(size as usize) as u32;
        let sends = if synchronous { Sends::Synchronous } else { Sends::Eager };
        check(&hoods, &tuning, &task(kind, root, count, ordered), sends);
    }
}
