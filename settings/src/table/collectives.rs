//! Collectives and barriers.

use super::NO_TUNER;
use crate::kind::{Kind, SIZE, count};
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use crate::value::Bytes;
use std::path::PathBuf;

settings! {
    COLL_ROOTED_GEOM: String = "GASNET_COLL_ROOTED_GEOM", Kind::Text, Preset::Is("KNOMIAL_TREE,2"), Scope::Job,
        "The tree of collective operations, in each neighborhood and over them: KNOMIAL_TREE and its radix, or FLAT_TREE.";
    COLL_SCRATCH_SIZE: Bytes = "GASNET_COLL_SCRATCH_SIZE", SIZE, Preset::Is("2 MB"), Scope::Job,
        "Scratch memory of a collective operation in each rank; operations that need more go in pieces, or by another algorithm. A reduction takes four elements in any case.";
    COLL_PIPE_SEG_SIZE: Bytes = "GASNET_COLL_PIPE_SEG_SIZE", SIZE, Preset::Is("32 KB"), Scope::Job,
        "The pieces in which long data goes down and up trees and along chains.";
    COLL_GATHER_ALL_LIMIT: Bytes = "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD", SIZE, Preset::Is("1024"), Scope::Job,
        "Up to which block gather-all goes by dissemination; longer ones go straight, or around a ring.";
    COLL_EXCHANGE_LIMIT: Bytes = "GASNET_COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD", SIZE, Preset::Is("1024"), Scope::Job,
        "Up to which block exchanges between neighborhoods go by dissemination; longer ones go straight.";
    COLL_TREE_LIMIT: Bytes = "ARGONET_COLL_TREE_LIMIT", SIZE, Preset::Is("1024"), Scope::Job,
        "Up to which block gathers and scatters go by a tree; longer ones go straight.";
    COLL_EAGER_SIZE: Bytes = "ARGONET_COLL_EAGER_SIZE", SIZE, Preset::Is("32 KB"), Scope::Job,
        "The longest data that collective operations send before the receiver has entered them; longer data is offered, and read where it lies if the receiver can.";
    COLL_TUNING_FILE: Option<PathBuf> = "GASNET_COLL_TUNING_FILE", Kind::Path, Preset::Unset, Scope::Job,
        "A file of lines NAME=VALUE, as argonet perf --tune and gasnet_coll_dumpTuningState write it, with values for these settings where they are not given by themselves.";
}

const NO_SCRATCH: &str = "collectives need no scratch memory in this version";
const ONE_BARRIER: &str = "there is one barrier algorithm in this version";

const fn tree(name: &'static str, about: &'static str) -> Row {
    Row::idle(
        name,
        Kind::Text,
        "KNOMIAL_TREE,2",
        Scope::Job,
        about,
        NO_TUNER,
    )
}

const fn tune(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_TUNER)
}

const fn barrier(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, ONE_BARRIER)
}

pub(crate) const IDLE: &[Row] = &[
    Row::idle(
        "GASNET_NO_SCRATCH_WARN_THRESHOLD",
        count("ranks"),
        "8",
        Scope::Rank,
        "From which size on a team without scratch memory warns.",
        NO_SCRATCH,
    ),
    tune(
        "GASNET_COLL_ENABLE_SEARCH",
        Kind::Boolean,
        "0",
        "Searches for the best algorithms.",
    ),
    tree("GASNET_COLL_BROADCAST_GEOM", "The tree of broadcasts."),
    tree("GASNET_COLL_SCATTER_GEOM", "The tree of scatters."),
    tree("GASNET_COLL_GATHER_GEOM", "The tree of gathers."),
    tree("GASNET_COLL_REDUCE_GEOM", "The tree of reductions."),
    tune(
        "GASNET_COLL_GATHER_ALL_DISSEM_LIMIT",
        SIZE,
        "",
        "Up to which size gather-all disseminates.",
    ),
    tune(
        "GASNET_COLL_EXCHANGE_DISSEM_LIMIT",
        SIZE,
        "",
        "Up to which size exchanges disseminate.",
    ),
    tune(
        "GASNET_COLL_EXCHANGE_DISSEM_RADIX",
        count("ranks"),
        "2",
        "The radix of that.",
    ),
    tune(
        "GASNET_COLL_P2P_EAGER_MIN",
        count("buffers"),
        "16",
        "Buffers of eager messages at least.",
    ),
    tune(
        "GASNET_COLL_P2P_EAGER_SCALE",
        count("buffers"),
        "16",
        "Buffers of eager messages for each rank.",
    ),
    tune(
        "GASNET_COLL_AUTOTUNE_WARM_ITERS",
        count("rounds"),
        "5",
        "Rounds before a search measures.",
    ),
    tune(
        "GASNET_COLL_AUTOTUNE_PERF_ITERS",
        count("rounds"),
        "10",
        "Rounds that a search measures.",
    ),
    tune(
        "GASNET_COLL_AUTOTUNE_ALLOW_FLAT_TREE",
        Kind::Boolean,
        "",
        "Searches among flat trees too.",
    ),
    tune(
        "GASNET_COLL_ENABLE_PROFILE",
        Kind::Boolean,
        "0",
        "Counts collectives.",
    ),
    tune(
        "GASNET_COLL_PRINT_COLL_ALG",
        Kind::Boolean,
        "0",
        "Prints which algorithm is used.",
    ),
    tune(
        "GASNET_COLL_PRINT_AUTOTUNE_TIMER",
        Kind::Boolean,
        "",
        "Prints the measurements of a search.",
    ),
    tune(
        "GASNET_COLL_ALLOW_CONDUIT_COLLECTIVES",
        Kind::Boolean,
        "",
        "Uses collectives of the conduit.",
    ),
    barrier(
        "GASNET_BARRIER",
        Kind::Choice(&[
            "DISSEM",
            "AMDISSEM",
            "RDMADISSEM",
            "AMCENTRAL",
            "PSHM",
            "IBDISSEM",
            "GNIDISSEM",
        ]),
        "DISSEM",
        "The barrier's algorithm.",
    ),
    barrier(
        "GASNET_PSHM_BARRIER_HIER",
        Kind::Boolean,
        "1",
        "First among the ranks of a host, then among hosts.",
    ),
    barrier(
        "GASNET_PSHM_BARRIER_RADIX",
        Kind::Number,
        "0",
        "The tree of ranks of a host: 0 flat, above 0 its radix, below 0 groups.",
    ),
];
