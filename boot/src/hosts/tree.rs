//! The tree of agents.

use std::ops::Range;

/// Parts of `hosts` hosts for the agents that one process starts, at most `degree` of them (0 for
/// any number), as equal as can be.
///
/// The first host of a part is the agent to start, which starts those of the rest. Consecutive
/// hosts stay together, so that a subtree has consecutive ranks; and rank 0 is in the first part of
/// all.
pub(crate) fn parts(hosts: usize, degree: u32) -> Vec<Range<usize>> {
    let count = match degree {
        0 => hosts,
        degree => hosts.min(degree as usize),
    };
    let begin = |part: usize| part * hosts / count.max(1);
    (0..count)
        .map(|part| begin(part)..begin(part + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Number of agents above the one that is farthest away.
    fn depth(hosts: usize, degree: u32) -> u32 {
        let parts = parts(hosts, degree);
        let below = parts.iter().map(|part| depth(part.len() - 1, degree));
        below.max().map_or(0, |depth| depth + 1)
    }

    #[test]
    fn the_tree_is_as_flat_as_its_degree_allows() {
        assert_eq!(parts(5, 2), [0..2, 2..5]);
        assert_eq!(parts(3, 0), [0..1, 1..2, 2..3]);
        assert_eq!(parts(0, 32), []);
        assert_eq!(depth(32, 32), 1);
        assert_eq!(depth(33, 32), 2);
        assert_eq!(depth(32 * 33, 32), 2);
        assert_eq!(depth(10_000, 32), 3);
        assert_eq!(depth(10_000, 0), 1);
        assert_eq!(depth(7, 1), 7);
    }

    proptest! {
        #[test]
        fn every_host_is_in_one_part(hosts in 0usize..500, degree in 0u32..40) {
            let parts = parts(hosts, degree);
            let all: Vec<usize> = parts.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..hosts).collect::<Vec<_>>());
            prop_assert!(parts.iter().all(|part| !part.is_empty()));
            prop_assert!(degree == 0 || parts.len() <= degree as usize);
        }
    }
}
