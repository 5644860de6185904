//! Splits and lists, compared with a model that sees all of them.

use super::super::entry::{Choice, check_list};
use super::*;
use crate::collective::Offer;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A parent: some ranks of a job, in any order; each by one or two endpoints.
fn parent() -> impl Strategy<Value = Vec<(JobRank, u32)>> {
    let all: Vec<_> = (0..12u32)
        .flat_map(|rank| [(JobRank(rank), 0), (JobRank(rank), 3)])
        .collect();
    proptest::sample::subsequence(all, 1..=16).prop_shuffle()
}

fn entry(number: u32, call: Call, part: Part) -> Entry {
    let terms = Terms::default();
    Entry {
        number,
        call,
        part,
        terms,
        offer: Offer::default(),
    }
}

fn join(color: u32, key: i32) -> Part {
    Part::Join(Choice { color, key })
}

proptest! {
    #[test]
    fn a_split_is_a_sort_of_those_with_one_color(
        (parent, said) in parent().prop_flat_map(|parent| {
            let one = proptest::option::weighted(0.9, (0u32..4, prop_oneof![-2i32..3, any::<i32>()]));
            let said = proptest::collection::vec(one, parent.len());
            (Just(parent), said)
        }),
    ) {
        let members = Members::new(&parent).unwrap();
        let entries: Vec<_> = said
            .iter()
            .zip(100..)
            .map(|(said, number)| {
                entry(number, Call::Split, said.map_or(Part::Nothing, |(color, key)| join(color, key)))
            })
            .collect();
        let mut keys = BTreeSet::new();
        for (me, own) in said.iter().enumerate() {
            let formed = split(&members, &entries, me as u32).unwrap();
            let Some((color, _)) = own else {
                prop_assert_eq!(formed, None);
                continue;
            };
            let formed = formed.unwrap();
            // A stable sort of the parent's ranks by key.
            let mut those: Vec<_> = (0..said.len())
                .filter_map(|rank| said[rank].filter(|(other, _)| other == color).map(|(_, key)| (rank, key)))
                .collect();
            those.sort_by_key(|&(_, key)| key);
            prop_assert_eq!(formed.members.size() as usize, those.len());
            for (rank, &(of_parent, _)) in those.iter().enumerate() {
                let place = (formed.members.job_rank(rank as u32), formed.members.endpoint(rank as u32));
                prop_assert_eq!(place, parent[of_parent]);
            }
            prop_assert_eq!(those[formed.rank as usize].0, me);
            let leader = those[0].0;
            prop_assert_eq!(formed.key, TeamKey::led_by(parent[leader].0, 100 + leader as u32));
            keys.insert((*color, formed.key));
        }
        // One key a color, and no two the same.
        let colors: BTreeSet<_> = said.iter().flatten().map(|(color, _)| color).collect();
        let different: BTreeSet<_> = keys.iter().map(|(_, key)| key).collect();
        prop_assert!(keys.len() == colors.len() && different.len() == keys.len());
    }

    #[test]
    fn lists_without_a_common_endpoint_make_teams(
        (parent, kinds) in parent().prop_flat_map(|parent| {
            let kinds = proptest::collection::vec(0usize..4, parent.len());
            (Just(parent), kinds)
        }),
    ) {
        // Members of the parent with one kind give one list, of their endpoints from behind; those
        // of kind 0 none.
        let members = Members::new(&parent).unwrap();
        let mut lists: BTreeMap<usize, Vec<(JobRank, u32)>> = BTreeMap::new();
        for (&member, &kind) in parent.iter().zip(&kinds).rev() {
            lists.entry(kind).or_default().push(member);
        }
        let entries: Vec<_> = kinds
            .iter()
            .zip(&parent)
            .zip(7..)
            .map(|((kind, &(process, _)), number)| {
                let part = match kind {
                    0 => Part::Nothing,
                    kind => Part::List(Digest::of(&lists[kind], process)),
                };
                entry(number, Call::Create, part)
            })
            .collect();
        let mut keys = BTreeSet::new();
        for (me, kind) in kinds.iter().enumerate().filter(|(_, kind)| **kind > 0) {
            let list = &lists[kind];
            prop_assert_eq!(check_list(list, 12), Ok(()));
            let listed = create(&members, &entries, me as u32, list).unwrap();
            let same = |rank: &usize| kinds[*rank] == *kind;
            let callers = (0..kinds.len()).filter(same).filter(|&rank| parent[rank].0 == parent[me].0).count();
            prop_assert_eq!(listed.callers as usize, callers);
            let leader = (0..kinds.len()).filter(same).find(|&rank| parent[rank].0 == list[0].0).unwrap();
            prop_assert_eq!(listed.key, TeamKey::led_by(list[0].0, 7 + leader as u32));
            keys.insert((*kind, listed.key));
        }
        let different: BTreeSet<_> = keys.iter().map(|(_, key)| key).collect();
        prop_assert_eq!(different.len(), keys.len());
        prop_assert_eq!(keys.len(), lists.keys().filter(|kind| **kind > 0).count());
    }
}

fn ranks(list: &[u32]) -> Vec<(JobRank, u32)> {
    list.iter().map(|&rank| (JobRank(rank), 0)).collect()
}

/// Each rank of a world gives a list; returns the outcomes.
fn created(lists: &[Option<&[u32]>]) -> Vec<Option<Result<Listed, TeamError>>> {
    let world = Members::world(lists.len() as u32);
    let part = |(rank, list): (u32, &Option<&[u32]>)| match list {
        Some(list) => Part::List(Digest::of(&ranks(list), JobRank(rank))),
        None => Part::Nothing,
    };
    let entries: Vec<_> = (0..)
        .zip(lists)
        .map(|one| entry(one.0 + 1, Call::Create, part(one)))
        .collect();
    (0..)
        .zip(lists)
        .map(|(rank, list)| list.map(|list| create(&world, &entries, rank, &ranks(list))))
        .collect()
}

#[test]
fn overlapping_lists_are_reported_to_all_their_callers() {
    let got = created(&[
        Some(&[0, 1, 2]),
        Some(&[1, 2]),
        Some(&[0, 1, 2]),
        Some(&[3]),
    ]);
    let overlap = |process: u32, other| {
        Some(Err(TeamError::Overlap {
            process: JobRank(process),
            endpoint: 0,
            other,
        }))
    };
    assert_eq!(got[0], overlap(1, 1));
    assert_eq!(got[1], overlap(2, 2));
    assert_eq!(got[2], overlap(1, 1));
    let key = TeamKey::led_by(JobRank(3), 4);
    assert_eq!(got[3], Some(Ok(Listed { key, callers: 1 })));
    // The same ranks in another order are another list.
    let got = created(&[Some(&[0, 1]), Some(&[1, 0])]);
    assert_eq!(
        (got[0].clone(), got[1].clone()),
        (overlap(1, 1), overlap(0, 0))
    );
}

#[test]
fn a_listed_process_without_a_list_is_reported_absent() {
    let got = created(&[Some(&[0, 1]), None]);
    let absent = TeamError::Absent {
        process: JobRank(1),
        endpoint: 0,
    };
    assert_eq!(got, [Some(Err(absent)), None]);
    let world = Members::world(2);
    let list = ranks(&[0, 1]);
    let good = Part::List(Digest::of(&list, JobRank(0)));
    let entries = [
        entry(1, Call::Create, good),
        entry(1, Call::Create, Part::Wrong),
    ];
    let refused = create(&world, &entries, 0, &list);
    assert_eq!(refused, Err(TeamError::WrongElsewhere { other: 1 }));
}

#[test]
fn two_endpoints_of_one_process_give_equal_or_different_lists() {
    let (here, there) = ((JobRank(0), 0), (JobRank(0), 3));
    let parent = Members::new(&[here, there]).unwrap();
    let part = |list: &[_]| Part::List(Digest::of(list, JobRank(0)));
    let both = [there, here];
    let entries = [
        entry(5, Call::Create, part(&both)),
        entry(6, Call::Create, part(&both)),
    ];
    let key = TeamKey::led_by(JobRank(0), 5);
    for me in 0..2 {
        let listed = create(&parent, &entries, me, &both);
        assert_eq!(listed, Ok(Listed { key, callers: 2 }));
    }
    let entries = [
        entry(5, Call::Create, part(&[here])),
        entry(6, Call::Create, part(&both)),
    ];
    let overlap = |other| {
        Err(TeamError::Overlap {
            process: JobRank(0),
            endpoint: 0,
            other,
        })
    };
    assert_eq!(create(&parent, &entries, 0, &[here]), overlap(1));
    assert_eq!(create(&parent, &entries, 1, &both), overlap(0));
}

#[test]
fn different_terms_and_calls_are_reported() {
    let world = Members::world(3);
    let mut entries = [entry(1, Call::Split, join(7, 0)); 3];
    entries[1].terms.scratch = 64;
    let differ = TeamError::DifferentTerms {
        what: "the size of scratch memory",
        one: 0,
        ones: 0,
        other: 1,
        others: 64,
    };
    assert_eq!(split(&world, &entries, 0), Err(differ));
    // Of another team they may be others.
    entries[1].part = join(8, 0);
    assert!(split(&world, &entries, 0).is_ok());
    entries[2].terms.flags = 32;
    assert!(matches!(
        split(&world, &entries, 2),
        Err(TeamError::DifferentTerms { .. })
    ));
    assert_eq!(same_call(&entries), Ok(()));
    entries[1] = entry(1, Call::Create, Part::Nothing);
    let calls = TeamError::DifferentCalls { one: 0, other: 1 };
    assert_eq!(same_call(&entries), Err(calls));
    let list = ranks(&[0, 1]);
    let part = |rank| Part::List(Digest::of(&list, JobRank(rank)));
    let mut entries = [
        entry(1, Call::Create, part(0)),
        entry(1, Call::Create, part(1)),
    ];
    entries[1].terms.scratch = 1;
    let refused = create(&Members::world(2), &entries, 0, &list);
    assert!(matches!(refused, Err(TeamError::DifferentTerms { .. })));
}
