//! Scratch stays within its setting.

use super::*;

/// Kinds that do not fold need no scratch that the setting does not allow: they have ways without any.
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
fn what_only_moves_data_keeps_to_the_setting() {
    let places: [fn(u32) -> u32; 6] = [
        |_| 0,
        |rank| rank,
        |rank| rank / 4,
        |rank| rank / 16,
        |rank| rank % 7,
        |rank| u32::from(rank > 0),
    ];
    let mut used = [0; BOUNDED.len()];
    for (size, place) in [2, 3, 8, 37, 256]
        .into_iter()
        .flat_map(|size| places.map(|place| (size, place)))
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
                            assert!(
                                scratch <= scratch_bytes,
                                "{task:?} of {size} at {rank}: {scratch} of {scratch_bytes}, {tuning:?}"
                            );
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
