//! Which endpoints a team has, by their ranks in it.

use argonet_base::JobRank;

/// The members of a team in the order of their ranks.
///
/// Teams whose members lie at equal distances, which most do, keep a formula; others a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    shape: Shape,
    /// Index of each member's endpoint in its process; `None` if all are 0.
    endpoints: Option<Box<[u32]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// `first + rank * stride`, for ranks below `count`.
    ///
    /// The stride is not 0.
    Formula { first: u32, stride: i64, count: u32 },
    /// By rank, and positions in it by job rank.
    List {
        ranks: Box<[JobRank]>,
        sorted: Box<[u32]>,
    },
}

impl Members {
    /// All ranks of a job of `size`.
    #[must_use]
    pub fn world(size: u32) -> Self {
        let (first, stride) = (0, 1);
        Self {
            shape: Shape::Formula {
                first,
                stride,
                count: size,
            },
            endpoints: None,
        }
    }

    /// The members of a list of (process, endpoint), by rank; `None` if the list is empty or names
    /// an endpoint twice.
    #[must_use]
    pub fn new(list: &[(JobRank, u32)]) -> Option<Self> {
        let mut seen: Vec<_> = list.to_vec();
        seen.sort_unstable();
        if list.is_empty() || seen.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let endpoints = list.iter().any(|&(_, endpoint)| endpoint != 0);
        Some(Self {
            shape: Shape::of(list),
            endpoints: endpoints.then(|| list.iter().map(|&(_, endpoint)| endpoint).collect()),
        })
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        match &self.shape {
            Shape::Formula { count, .. } => *count,
            Shape::List { ranks, .. } => ranks.len() as u32,
        }
    }

    /// The process of a member; the rank is below [`size`](Self::size).
    #[inline]
    #[must_use]
    pub fn job_rank(&self, rank: u32) -> JobRank {
        match &self.shape {
            &Shape::Formula { first, stride, .. } => {
                JobRank((i64::from(first) + i64::from(rank) * stride) as u32)
            }
            Shape::List { ranks, .. } => ranks[rank as usize],
        }
    }

    /// The endpoint of a member; the rank is below [`size`](Self::size).
    #[inline]
    #[must_use]
    pub fn endpoint(&self, rank: u32) -> u32 {
        self.endpoints
            .as_ref()
            .map_or(0, |list| list[rank as usize])
    }

    /// Whether all members are primordial endpoints.
    #[inline]
    #[must_use]
    pub fn all_primordial(&self) -> bool {
        self.endpoints.is_none()
    }

    /// The rank of a process, the lowest if several of its endpoints are members.
    #[must_use]
    pub fn rank_of(&self, job_rank: JobRank) -> Option<u32> {
        match &self.shape {
            &Shape::Formula {
                first,
                stride,
                count,
            } => {
                let distance = i64::from(job_rank.0) - i64::from(first);
                let rank = distance / stride;
                (distance % stride == 0 && (0..i64::from(count)).contains(&rank))
                    .then_some(rank as u32)
            }
            Shape::List { ranks, sorted } => {
                let at = sorted.partition_point(|&rank| ranks[rank as usize] < job_rank);
                let rank = *sorted.get(at)?;
                (ranks[rank as usize] == job_rank).then_some(rank)
            }
        }
    }
}

impl Shape {
    fn of(list: &[(JobRank, u32)]) -> Self {
        let at = |rank: usize| i64::from(list[rank].0.0);
        let stride = if list.len() > 1 { at(1) - at(0) } else { 1 };
        let even = (1..list.len()).all(|rank| at(rank) - at(rank - 1) == stride);
        if stride != 0 && even {
            return Self::Formula {
                first: list[0].0.0,
                stride,
                count: list.len() as u32,
            };
        }
        let ranks: Box<[JobRank]> = list.iter().map(|&(rank, _)| rank).collect();
        let mut sorted: Box<[u32]> = (0..ranks.len() as u32).collect();
        sorted.sort_by_key(|&rank| (ranks[rank as usize], rank));
        Self::List { ranks, sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn primordial(ranks: &[u32]) -> Vec<(JobRank, u32)> {
        ranks.iter().map(|&rank| (JobRank(rank), 0)).collect()
    }

    #[test]
    fn equal_distances_are_a_formula_in_both_directions() {
        for ranks in [&[5][..], &[2, 3, 4], &[1, 4, 7], &[9, 6, 3, 0]] {
            let members = Members::new(&primordial(ranks)).unwrap();
            assert!(matches!(members.shape, Shape::Formula { .. }), "{ranks:?}");
        }
        let members = Members::new(&primordial(&[1, 2, 4])).unwrap();
        assert!(matches!(members.shape, Shape::List { .. }));
        let world = Members::new(&primordial(&[0, 1, 2])).unwrap();
        assert_eq!(world, Members::world(3));
    }

    #[test]
    fn no_list_and_an_endpoint_twice_are_refused() {
        assert_eq!(Members::new(&[]), None);
        assert_eq!(Members::new(&primordial(&[3, 4, 3])), None);
        let (one, other) = ((JobRank(3), 0), (JobRank(3), 1));
        let members = Members::new(&[other, one]).unwrap();
        assert_eq!((members.endpoint(0), members.endpoint(1)), (1, 0));
        assert_eq!(members.rank_of(JobRank(3)), Some(0));
        assert!(!members.all_primordial() && Members::world(2).all_primordial());
    }

    proptest! {
        #[test]
        fn ranks_and_job_ranks_translate_both_ways(
            (size, ranks) in (1u32..40).prop_flat_map(|size| {
                let all = (0..size).collect::<Vec<_>>();
                (Just(size), proptest::sample::subsequence(all, 1..=size as usize).prop_shuffle())
            }),
        ) {
            let members = Members::new(&primordial(&ranks)).unwrap();
            prop_assert_eq!(members.size() as usize, ranks.len());
            for (rank, &job_rank) in ranks.iter().enumerate() {
                prop_assert_eq!(members.job_rank(rank as u32), JobRank(job_rank));
            }
            for job_rank in 0..size + 2 {
                let expected = ranks.iter().position(|&r| r == job_rank).map(|rank| rank as u32);
                prop_assert_eq!(members.rank_of(JobRank(job_rank)), expected);
            }
        }
    }
}
