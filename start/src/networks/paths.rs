//! The check of paths for datagrams before a job starts.

use super::Cause;
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, LocalJob, MAX_VALUE_BYTES};
use argonet_nic::reliable::{BadPath, PathFault, PathState};
use core::ops::Range;
use std::collections::BTreeMap;

/// Bytes of an entry: a rank, and what is known of the path to it.
const ENTRY_BYTES: usize = 5;

/// Most entries that are published: the partners of a rank in the largest of jobs are fewer.
const MOST_ENTRIES: usize = MAX_VALUE_BYTES / ENTRY_BYTES;

// spec U10: log2 P partners at the start.
/// The ranks that a rank checks, ascending.
///
/// They are a power of two away, before and behind it, share no memory with it, and check it, too.
pub(super) fn partners(rank: JobRank, ranks: u32, neighbors: &Range<u32>) -> Vec<JobRank> {
    let distances = (0..u32::BITS).map(|bit| 1u64 << bit);
    let distances = distances.take_while(|distance| *distance < u64::from(ranks));
    let (own, all) = (u64::from(rank.0), u64::from(ranks));
    let both = distances.flat_map(|distance| [own + distance, own + all - distance]);
    // It is below `ranks`.
    let places = both.map(|place| (place % all) as u32);
    let mut partners: Vec<JobRank> = places
        .filter(|place| !neighbors.contains(place) && *place != rank.0)
        .map(JobRank)
        .collect();
    partners.sort_unstable();
    partners.dedup();
    partners
}

/// What a rank knows of the paths to others that are not good, by these.
type Known = BTreeMap<JobRank, PathState>;

fn encode(known: &[(JobRank, PathState)]) -> Vec<u8> {
    let entry = |(rank, state): &(JobRank, PathState)| {
        let [a, b, c, d] = rank.0.to_le_bytes();
        let bits = [state.heard, state.answered, state.full].map(u8::from);
        [a, b, c, d, bits[0] | bits[1] << 1 | bits[2] << 2]
    };
    known.iter().take(MOST_ENTRIES).flat_map(entry).collect()
}

/// What a rank has published; bytes that are no entry are left out.
fn decode(published: &[u8]) -> Known {
    let (entries, _) = published.as_chunks::<ENTRY_BYTES>();
    let entry = |[a, b, c, d, bits]: &[u8; ENTRY_BYTES]| {
        let is_set = |bit: u8| bits & 1 << bit != 0;
        let state = PathState {
            heard: is_set(0),
            answered: is_set(1),
            full: is_set(2),
        };
        (JobRank(u32::from_le_bytes([*a, *b, *c, *d])), state)
    };
    entries.iter().map(entry).collect()
}

/// The paths that are not good, from one rank to another, of what all ranks know of those to their
/// partners; the same on all ranks.
fn faults(known: &[Known], datagram_bytes: usize) -> BTreeMap<[JobRank; 2], PathFault> {
    let of = |rank: JobRank, peer: JobRank| {
        let state = known.get(rank.index()).and_then(|known| known.get(&peer));
        state.copied().unwrap_or(PathState::WELL)
    };
    let ranks = (0..).map(JobRank).zip(known);
    let pairs = ranks.flat_map(|(rank, known)| known.keys().map(move |peer| (rank, *peer)));
    pairs
        .filter(|(_, peer)| peer.index() < known.len())
        .filter_map(|(rank, peer)| {
            let between = PathFault::between(of(rank, peer), of(peer, rank), datagram_bytes);
            let (fault, is_back) = between?;
            Some(match (is_back, fault) {
                (true, _) => ([peer, rank], fault),
                // Both ends find that one.
                (false, PathFault::NoWay) => ([rank.min(peer), rank.max(peer)], fault),
                (false, _) => ([rank, peer], fault),
            })
        })
        .collect()
}

/// A path of this rank that is not good, and how many others there are.
#[derive(Debug, thiserror::Error)]
#[error("{path}{}", Others(*others))]
struct BadPaths {
    path: Box<BadPath>,
    others: usize,
}

struct Others(usize);

impl core::fmt::Display for Others {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            0 => Ok(()),
            others => write!(f, "; the same check has found {others} more paths at fault"),
        }
    }
}

/// Publishes the paths to partners that are not good, and compares with what these know; `describe`
/// is asked for one that has this rank at an end.
///
/// All ranks go on, or none does.
pub(super) fn compare(
    boot: &LocalJob,
    own: &[(JobRank, PathState)],
    datagram_bytes: usize,
    describe: impl FnOnce([JobRank; 2], PathFault) -> BadPath,
) -> Result<(), Cause> {
    boot.publish(Key::Paths, &encode(own))?;
    boot.fence()?;
    let known = |rank| Ok(decode(&boot.lookup(JobRank(rank), Key::Paths)?));
    let known: Result<Vec<Known>, Cause> = (0..boot.size()).map(known).collect();
    let known = known?;
    if known.iter().all(Known::is_empty) {
        return Ok(());
    }
    let faults = faults(&known, datagram_bytes);
    let Some(others) = faults.len().checked_sub(1) else {
        return Ok(());
    };
    let own = faults.iter().find(|(ends, _)| ends.contains(&boot.rank()));
    let Some((ends, fault)) = own else {
        // The ranks at the ends report it, and end the job while this one waits.
        return Ok(boot.fence()?);
    };
    let mut ends = *ends;
    if *fault == PathFault::NoWay && ends[0] != boot.rank() {
        // This rank can say what the network answers it.
        ends.reverse();
    }
    let path = Box::new(describe(ends, *fault));
    Err(BadPaths { path, others }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rank: u32, ranks: u32, neighbors: Range<u32>) -> Vec<u32> {
        let partners = partners(JobRank(rank), ranks, &neighbors);
        partners.into_iter().map(|partner| partner.0).collect()
    }

    #[test]
    fn partners_are_few_check_each_other_and_join_all_hosts() {
        assert_eq!(of(0, 2, 0..1), [1]);
        assert_eq!(of(0, 64, 0..1), [1, 2, 4, 8, 16, 32, 48, 56, 60, 62, 63]);
        assert_eq!(of(5, 8, 4..8), [1, 3]);
        assert_eq!(of(0, 1, 0..1), []);
        assert_eq!(of(1, 4, 0..4), []);
        for (ranks, each) in [(7, 1), (12, 4), (64, 16), (100, 10), (1024, 64)] {
            let host = |rank: u32| rank / each * each..(rank / each * each + each).min(ranks);
            let all: Vec<Vec<u32>> = (0..ranks).map(|rank| of(rank, ranks, host(rank))).collect();
            let mut reached = vec![0];
            let mut seen = vec![false; ranks as usize];
            while let Some(rank) = reached.pop() {
                if core::mem::replace(&mut seen[rank as usize], true) {
                    continue;
                }
                reached.extend(host(rank).chain(all[rank as usize].iter().copied()));
            }
            assert!(
                seen.iter().all(|seen| *seen),
                "{ranks} ranks, {each} a host"
            );
            for (rank, partners) in (0..).zip(&all) {
                let most = 2 * (u32::BITS - (ranks - 1).leading_zeros());
                assert!(partners.len() <= most as usize);
                assert!(
                    partners
                        .iter()
                        .all(|peer| all[*peer as usize].contains(&rank))
                );
            }
        }
        let most = of(7, u32::MAX, 7..8);
        assert!(most.len() > 60 && most.is_sorted());
    }

    const HEARD: PathState = PathState {
        heard: true,
        answered: false,
        full: false,
    };

    #[test]
    fn what_is_published_is_read_back_and_bounded() {
        let known = [
            (JobRank(3), HEARD),
            (JobRank(u32::MAX), PathState::default()),
            (JobRank(9), PathState::WELL),
        ];
        assert_eq!(decode(&encode(&known)), Known::from(known));
        assert_eq!(encode(&[]), b"");
        let many = vec![(JobRank(1), HEARD); 1000];
        assert!(encode(&many).len() <= MAX_VALUE_BYTES);
        // As of a rank that is not right.
        assert_eq!(decode(&[1, 2, 3]), Known::new());
        assert_eq!(decode(&[1, 0, 0, 0, 0xff, 7]).len(), 1);
    }

    #[test]
    fn all_ranks_find_the_same_faults_each_once() {
        let [zero, one, two] = [0, 1, 2].map(JobRank);
        let nothing = PathState::default();
        let known = |entries: &[(JobRank, PathState)]| entries.iter().copied().collect::<Known>();
        let faults = |known: &[Known]| faults(known, 1232).into_iter().collect::<Vec<_>>();
        // What rank 0 sends does not come to rank 1; nothing passes between ranks 1 and 2.
        let all = [
            known(&[(one, HEARD)]),
            known(&[(zero, nothing), (two, nothing)]),
            known(&[(one, nothing)]),
        ];
        let wanted = [
            ([zero, one], PathFault::OneWay),
            ([one, two], PathFault::NoWay),
        ];
        assert_eq!(faults(&all), wanted);
        let short = PathState {
            full: false,
            ..PathState::WELL
        };
        let too_long = PathFault::TooLong {
            datagram_bytes: 1232,
        };
        let all = [known(&[]), known(&[(two, short)]), known(&[(one, short)])];
        assert_eq!(
            faults(&all),
            [([one, two], too_long), ([two, one], too_long)]
        );
        // The last answer was lost, or comes late; and a rank that names one that is not there.
        let late = PathState {
            answered: false,
            ..PathState::WELL
        };
        assert_eq!(faults(&[known(&[(one, late)]), known(&[])]), []);
        assert_eq!(faults(&[known(&[(two, HEARD)]), known(&[])]), []);
    }
}
