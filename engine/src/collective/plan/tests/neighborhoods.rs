//! Messages between neighborhoods: on the longest way, the most that a member sends, and their
//! bytes.

use super::*;

/// Executes one call of all members, and compares the result.
fn run(hoods: &Hoods, kind: Kind, count: usize) -> Outcome {
    let task = Task {
        all_sync: AllSync::default(),
        ..task(kind, 0, count, false)
    };
    let (sources, expected) = model(&task, hoods.size(), false);
    let empty = |target: &Vec<u8>| vec![0xee; target.len()];
    let targets = expected.iter().map(empty).collect();
    let (tuning, sends) = (&Tuning::DEFAULT, Sends::Eager);
    let outcome = execute(hoods, tuning, &task, sources, targets, sends, &combine_any);
    assert!(outcome.targets == expected, "{kind:?}");
    outcome
}

fn at_most(kind: Kind, outcome: &Outcome, (ways, most_sent): (u32, u32)) {
    let Outcome {
        depth,
        most_sent: sent,
        ..
    } = *outcome;
    assert!(depth <= ways, "{kind:?}: {depth} of {ways} rounds");
    assert!(sent <= most_sent, "{kind:?}: {sent} messages");
}

/// 1,024 neighborhoods of one member, 256 of four, and 1,000 of one.
#[test]
fn short_data_takes_as_many_rounds_as_neighborhoods_have_bits() {
    let one_of_four: fn(u32) -> u32 = |rank| rank / 4;
    type Place = fn(u32) -> u32;
    let places: [(u32, Place, u32); 3] = [
        (1024, |rank| rank, 10),
        (1024, one_of_four, 8),
        (1000, |rank| rank, 10),
    ];
    for (size, place, bits) in places {
        let hoods = Hoods::new(size, place);
        for &kind in KINDS {
            // Up a tree and down, two levels of dissemination, or pairs made first, which get the
            // result at the end.
            let limits = match kind {
                Kind::Reduce | Kind::Gather => (bits, 1),
                Kind::ReduceAll | Kind::ReduceScatter => (bits + 2, bits + 2),
                _ => (bits, bits),
            };
            at_most(kind, &run(&hoods, kind, 1), limits);
        }
    }
}

/// Of 64 neighborhoods of 16 members, next to each other, apart, and of different sizes, each sends
/// each other one message, and members share them.
#[test]
fn neighborhoods_exchange_by_one_message_each_way() {
    type Place = fn(u32) -> u32;
    let places: [(Place, u32); 3] = [
        (|rank| rank / 16, 4),
        (|rank| rank % 64, 4),
        // Of twelve and of twenty members.
        (
            |rank| {
                if rank % 32 < 12 {
                    rank / 32 * 2
                } else {
                    rank / 32 * 2 + 1
                }
            },
            6,
        ),
    ];
    for (place, most_sent) in places {
        let hoods = Hoods::new(1024, place);
        assert_eq!(hoods.count(), 64);
        for count in [1, 3] {
            let outcome = run(&hoods, Kind::Exchange, count);
            at_most(Kind::Exchange, &outcome, (1, most_sent));
            let inside = |rank: u32| hoods.group(hoods.of(rank)).len() as usize;
            let between: usize = (0..1024).map(|rank| 1024 - inside(rank)).sum();
            assert_eq!(outcome.far_bytes, between * count * UNIT);
        }
    }
}

/// Longer than blocks that go by a tree: each member hears once from each neighborhood, and each
/// block leaves each neighborhood once.
#[test]
fn neighbors_combine_before_they_scatter() {
    let places: [fn(u32) -> u32; 2] = [|rank| rank / 16, |rank| rank % 64];
    for place in places {
        let hoods = Hoods::new(1024, place);
        let outcome = run(&hoods, Kind::ReduceScatter, 9);
        at_most(Kind::ReduceScatter, &outcome, (63, 63));
        assert_eq!(outcome.far_bytes, 64 * (1024 - 16) * 9 * UNIT);
        assert!(outcome.most_scratch <= Tuning::DEFAULT.scratch_bytes);
    }
}
