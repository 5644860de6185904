//! Scratch stays within its setting.

use super::*;

/// Operations that do not fold can do without scratch; reductions take four elements in any case,
/// each in lines of its own.
pub(super) fn check_bound(scratch: usize, tuning: &Tuning, task: &Task, hoods: &Hoods) {
    let least = match task.kind.folds() {
        true => 4 * task.unit.next_multiple_of(64),
        false => 0,
    };
    assert!(
        scratch <= tuning.scratch_bytes.max(least),
        "{task:?} of {}: {scratch} of {}, {tuning:?}, {hoods:?}",
        hoods.size(),
        tuning.scratch_bytes
    );
}

const PLACES: [fn(u32) -> u32; 6] = [
    |_| 0,
    |rank| rank,
    |rank| rank / 4,
    |rank| rank / 16,
    |rank| rank % 7,
    |rank| u32::from(rank > 0),
];

const BOUNDED: [Kind; 4] = [Kind::Gather, Kind::GatherAll, Kind::Scatter, Kind::Exchange];

fn scratch_of(hoods: &Hoods, tuning: &Tuning, task: &Task, rank: u32) -> usize {
    let mut schedule = Schedule::default();
    let situation = Situation {
        rank,
        hoods,
        tuning,
    };
    plan(&situation, task, &mut schedule);
    schedule.scratch_bytes()
}

#[test]
fn data_movement_keeps_to_the_scratch_setting() {
    let mut used = [0; BOUNDED.len()];
    for (size, place) in [2, 3, 8, 37, 256]
        .into_iter()
        .flat_map(|size| PLACES.map(|place| (size, place)))
    {
        let hoods = Hoods::new(size, place);
        for scratch_bytes in [0, 1, 300, 1000, 4096, 100_000, 2 << 20] {
            for count in [0, 1, 16, 100, 256, 2000, 20_000] {
                for limit in [0, 1024, 1 << 20] {
                    let tuning = Tuning {
                        scratch_bytes,
                        tree_block_bytes: limit,
                        gather_all_dissemination_bytes: limit,
                        exchange_dissemination_bytes: limit,
                        ..Tuning::DEFAULT
                    };
                    for (kind, used) in BOUNDED.into_iter().zip(&mut used) {
                        let task = task(kind, size / 2, count, false);
                        for rank in [0, size / 2, size - 1] {
                            let scratch = scratch_of(&hoods, &tuning, &task, rank);
                            check_bound(scratch, &tuning, &task, &hoods);
                            *used = scratch.max(*used);
                        }
                    }
                }
            }
        }
    }
    // Otherwise nothing has been shown.
    assert!(used.iter().all(|used| *used > 100_000), "{used:?}");
}

const FOLDING: [Kind; 5] = [
    Kind::Reduce,
    Kind::ReduceAll,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::ExclusiveScan,
];

/// For all trees; elements of half a line and of two.
#[test]
fn reductions_keep_to_the_scratch_setting() {
    let mut used = [0; FOLDING.len()];
    for (size, place) in [2, 37, 1024]
        .into_iter()
        .flat_map(|size| PLACES.map(|place| (size, place)))
    {
        let hoods = Hoods::new(size, place);
        for scratch_bytes in [0, 300, 4096, 100_000, 2 << 20] {
            for (count, unit) in [(0, 4), (1, 32), (100, 100), (300, 4), (20_000, 8)] {
                for (radix, ordered) in [(2, false), (5, true), (u32::MAX, false), (u32::MAX, true)]
                {
                    // More pieces show nothing more.
                    if (unit * count) as u64 * u64::from(size) > 50 * (scratch_bytes as u64 + 64) {
                        continue;
                    }
                    let tuning = Tuning {
                        radix,
                        scratch_bytes,
                        ..Tuning::DEFAULT
                    };
                    for (kind, used) in FOLDING.into_iter().zip(&mut used) {
                        let task = task(kind, size / 2, count, ordered);
                        let task = Task { unit, ..task };
                        for rank in [0, size / 2, size - 1] {
                            let scratch = scratch_of(&hoods, &tuning, &task, rank);
                            check_bound(scratch, &tuning, &task, &hoods);
                            *used = scratch.max(*used);
                        }
                    }
                }
            }
        }
    }
    assert!(used.iter().all(|used| *used > 90_000), "{used:?}");
}

/// Executed with elements and trees such that all at once would be far more than the setting.
#[test]
fn many_ranks_fold_in_little_scratch() {
    let places: [fn(u32) -> u32; 3] = [|_| 0, |rank| rank / 16, |rank| rank];
    for (size, kinds, count) in [(1024, &FOLDING[..1], 60), (48, &FOLDING, 400)] {
        for hoods in places.map(|place| Hoods::new(size, place)) {
            for &kind in kinds {
                for (radix, ordered) in [(u32::MAX, true), (3, false)] {
                    let tuning = Tuning {
                        radix,
                        scratch_bytes: 12 * count,
                        ..Tuning::DEFAULT
                    };
                    let task = task(kind, size - 1, count, ordered);
                    check(&hoods, &tuning, &task, Sends::Eager);
                }
            }
        }
    }
}
