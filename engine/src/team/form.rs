//! The teams that follow from the entries of a team's members.
//!
//! Every member computes them for itself, from the same entries.

use super::entry::{Call, Digest, Entry, Part, Terms};
use super::error::TeamError;
use super::{Members, TeamKey};
use argonet_base::JobRank;

/// A team as one of its members comes to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Formed {
    pub(super) key: TeamKey,
    pub(super) members: Members,
    pub(super) rank: u32,
}

/// Checks that all members called the same, which the functions below take for granted.
pub(super) fn same_call(entries: &[Entry]) -> Result<(), TeamError> {
    let place = |call| entries.iter().position(|entry| entry.call == call);
    match (place(Call::Split), place(Call::Create)) {
        (Some(one), Some(other)) => Err(TeamError::DifferentCalls {
            one: one as u32,
            other: other as u32,
        }),
        _ => Ok(()),
    }
}

/// Checks that another rank's terms are those of this one.
fn same_terms(one: (u32, Terms), other: (u32, Terms)) -> Result<(), TeamError> {
    let ((one, ones), (other, others)) = (one, other);
    let differ = |what, ones, others| {
        Err(TeamError::DifferentTerms {
            what,
            one,
            ones,
            other,
            others,
        })
    };
    // Without scratch memory its size means nothing, so the flags come first.
    if ones.flags != others.flags {
        return differ(
            "the value of the team's flags",
            ones.flags.into(),
            others.flags.into(),
        );
    }
    if ones.scratch != others.scratch {
        return differ("the size of scratch memory", ones.scratch, others.scratch);
    }
    Ok(())
}

/// The team of rank `me` in a split of `parent`, whose ranks have made these entries; `None` if it
/// wants none.
pub(super) fn split(
    parent: &Members,
    entries: &[Entry],
    me: u32,
) -> Result<Option<Formed>, TeamError> {
    let own = entries[me as usize];
    let Part::Join(choice) = own.part else {
        return Ok(None);
    };
    let mut group = Vec::new();
    for (rank, entry) in (0..).zip(entries) {
        match entry.part {
            Part::Join(other) if other.color == choice.color => {
                same_terms((me, own.terms), (rank, entry.terms))?;
                group.push((other.key, rank));
            }
            _ => {}
        }
    }
    group.sort_unstable();
    let list: Vec<_> = group
        .iter()
        .map(|&(_, rank)| (parent.job_rank(rank), parent.endpoint(rank)))
        .collect();
    let place = group.iter().position(|&(_, rank)| rank == me);
    // This rank is among the members with its color, and a parent names no endpoint twice.
    Ok(Members::new(&list).zip(place).map(|(members, place)| {
        let (_, leader) = group[0];
        Formed {
            key: TeamKey::led_by(parent.job_rank(leader), entries[leader as usize].number),
            members,
            rank: place as u32,
        }
    }))
}

/// The team of a caller's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Listed {
    pub(super) key: TeamKey,
    /// How many members of the parent that belong to this process give the list.
    pub(super) callers: u32,
}

/// The team of the list of rank `me` of `parent`, a list that was checked and is not empty.
pub(super) fn create(
    parent: &Members,
    entries: &[Entry],
    me: u32,
    list: &[(JobRank, u32)],
) -> Result<Listed, TeamError> {
    let own = entries[me as usize];
    let process = parent.job_rank(me);
    let mine = Digest::of(list, process);
    // Callers by process, so that each of a list's is found at once.
    let mut callers: Vec<(JobRank, u32)> = (0..entries.len() as u32)
        .map(|rank| (parent.job_rank(rank), rank))
        .collect();
    callers.sort_unstable();
    let of = |process: JobRank| {
        let from = callers.partition_point(|&(other, _)| other < process);
        let those = callers[from..].iter();
        those
            .take_while(move |&&(other, _)| other == process)
            .map(|&(_, rank)| rank)
    };
    let same = |rank: u32| match entries[rank as usize].part {
        Part::List(digest) => digest.hash == mine.hash && digest.count == mine.count,
        _ => false,
    };
    for &(process, endpoint) in list {
        let names = |rank: u32| match entries[rank as usize].part {
            Part::List(digest) => digest.own & 1 << endpoint != 0,
            _ => false,
        };
        if let Some(other) = of(process).find(|&rank| names(rank) && !same(rank)) {
            return Err(TeamError::Overlap {
                process,
                endpoint,
                other,
            });
        }
        if of(process).any(|rank| names(rank) && same(rank)) {
            continue;
        }
        let wrong = of(process).find(|&rank| entries[rank as usize].part == Part::Wrong);
        return Err(match wrong {
            Some(other) => TeamError::WrongElsewhere { other },
            None => TeamError::Absent { process, endpoint },
        });
    }
    for rank in (0..entries.len() as u32).filter(|&rank| same(rank)) {
        same_terms((me, own.terms), (rank, entries[rank as usize].terms))?;
    }
    let (leader, _) = list[0];
    let number = of(leader)
        .find(|&rank| same(rank))
        .map_or(0, |rank| entries[rank as usize].number);
    Ok(Listed {
        key: TeamKey::led_by(leader, number),
        callers: of(process).filter(|&rank| same(rank)).count() as u32,
    })
}

#[cfg(test)]
mod tests;
