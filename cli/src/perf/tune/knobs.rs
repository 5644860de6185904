//! Settings that can be tuned, their values, and the measurements of each.

use argonet_engine::Kind;

/// Calls of one kind with blocks of so many bytes, of which some are measured in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) kind: Kind,
    pub(super) block: usize,
}

impl Load {
    /// Bytes of the memory that a rank gives or gets, at the most.
    pub(super) fn most_bytes(self, ranks: u32) -> usize {
        let blocks = match self.kind {
            Kind::Gather
            | Kind::GatherAll
            | Kind::Scatter
            | Kind::Exchange
            | Kind::ReduceScatter => ranks as usize,
            _ => 1,
        };
        blocks.saturating_mul(self.block)
    }
}

/// One setting.
pub(super) struct Knob {
    /// The setting.
    pub(super) name: &'static str,
    /// Values that are tried, as the setting is written.
    pub(super) values: &'static [&'static str],
    kinds: &'static [Kind],
    blocks: &'static [usize],
}

impl Knob {
    /// Loads that are measured with each value, as far as a rank's memory for them stays below a
    /// limit.
    ///
    /// Lengths are beyond those that lines of shared memory carry.
    pub(super) fn loads(&self, ranks: u32) -> Vec<Load> {
        let of = |&kind: &Kind| self.blocks.iter().map(move |&block| Load { kind, block });
        let loads = self.kinds.iter().flat_map(of);
        loads
            .filter(|load| load.most_bytes(ranks) <= MOST_BYTES)
            .collect()
    }
}

/// Of a rank's memory for one operation.
const MOST_BYTES: usize = 32 << 20;

const LIMITS: &[&str] = &["0", "256", "512", "1024", "2048", "4096", "8192", "16384"];
const AROUND_LIMITS: &[usize] = &[256, 512, 1024, 2048, 4096, 8192, 16384];

/// In the order in which they are chosen; each is measured with those before it as they have been
/// chosen.
pub(super) const KNOBS: [Knob; 7] = [
    Knob {
        name: "ARGONET_COLL_EAGER_SIZE",
        values: &["2048", "4096", "8192", "16384", "32768", "65536"],
        kinds: &[
            Kind::Broadcast,
            Kind::ReduceAll,
            Kind::GatherAll,
            Kind::Exchange,
        ],
        blocks: &[1536, 3072, 6144, 12288, 24576, 49152],
    },
    Knob {
        name: "GASNET_COLL_ROOTED_GEOM",
        values: &[
            "KNOMIAL_TREE,2",
            "KNOMIAL_TREE,3",
            "KNOMIAL_TREE,4",
            "KNOMIAL_TREE,8",
            "FLAT_TREE",
        ],
        kinds: &[Kind::Broadcast, Kind::Reduce, Kind::Gather, Kind::Scatter],
        blocks: &[256, 1024, 4096],
    },
    Knob {
        name: "GASNET_COLL_PIPE_SEG_SIZE",
        values: &["16384", "32768", "65536", "131072", "262144"],
        kinds: &[Kind::Broadcast, Kind::Reduce, Kind::Scan],
        blocks: &[96 << 10, 384 << 10, 1 << 20],
    },
    Knob {
        name: "GASNET_COLL_SCRATCH_SIZE",
        values: &["262144", "524288", "1048576", "2097152", "4194304"],
        kinds: &[Kind::Reduce, Kind::ReduceAll],
        blocks: &[512 << 10, 3 << 20],
    },
    Knob {
        name: "ARGONET_COLL_TREE_LIMIT",
        values: LIMITS,
        kinds: &[Kind::Gather, Kind::Scatter],
        blocks: AROUND_LIMITS,
    },
    Knob {
        name: "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD",
        values: LIMITS,
        kinds: &[Kind::GatherAll],
        blocks: AROUND_LIMITS,
    },
    Knob {
        name: "GASNET_COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD",
        values: LIMITS,
        kinds: &[Kind::Exchange],
        blocks: AROUND_LIMITS,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_engine::Tuning;

    #[test]
    fn every_value_is_one_of_its_setting_and_every_setting_can_be_tuned() {
        for knob in &KNOBS {
            for value in knob.values {
                let mut tuning = Tuning::DEFAULT;
                tuning.read(&format!("{}={value}", knob.name)).unwrap();
            }
            assert!(!knob.loads(2).is_empty());
            assert!(
                knob.loads(1024)
                    .iter()
                    .all(|load| load.most_bytes(1024) <= MOST_BYTES)
            );
        }
        let names: Vec<_> = Tuning::DEFAULT.values().map(|(name, _)| name).collect();
        assert!(
            names
                .iter()
                .all(|name| KNOBS.iter().any(|knob| knob.name == *name))
        );
        assert_eq!(names.len(), KNOBS.len());
    }
}
