//! Cray's networks: aries, gemini and portals.

use super::{NO_ARIES, NO_PORTALS};
use crate::kind::{Kind, SIZE, count};
use crate::row::{Row, Scope};

const fn cray(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_ARIES)
}

const fn portal(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_PORTALS)
}

const OF_PMI: &str = "Read by Cray's PMI.";

pub(crate) const IDLE: &[Row] = &[
    cray(
        "GASNET_DOMAIN_COUNT",
        count("domains"),
        "1",
        "Communication domains of a rank.",
    ),
    cray(
        "GASNET_GNI_PTHREADS_PER_DOMAIN",
        count("threads"),
        "1",
        "Threads that share a domain.",
    ),
    cray(
        "GASNET_AM_DOMAIN_POLL_MASK",
        count("mask"),
        "255",
        "How often a domain looks for messages.",
    ),
    cray(
        "GASNET_GNI_AM_RVOUS_CUTOVER",
        SIZE,
        "16384",
        "From which size on payloads are fetched.",
    ),
    cray(
        "GASNET_GNI_AM_RVOUS_BUFFERS",
        count("buffers"),
        "64",
        "Buffers for that.",
    ),
    cray(
        "GASNET_GNI_AM_MEMORY_REPORT",
        Kind::Boolean,
        "0",
        "Prints the memory of messages.",
    ),
    cray(
        "GASNET_GNI_NUM_PD",
        count("descriptors"),
        "512",
        "Descriptors of operations; at least 32.",
    ),
    cray(
        "GASNET_GNI_GET_FMA_RDMA_CUTOVER",
        SIZE,
        "4096 (gemini), 1023 (aries)",
        "From which size on gets are block transfers; at most 16384.",
    ),
    cray(
        "GASNET_GNI_PUT_FMA_RDMA_CUTOVER",
        SIZE,
        "4096 (gemini), 1023 (aries)",
        "From which size on puts are block transfers; at most 16384.",
    ),
    cray(
        "GASNET_GNI_GET_BOUNCE_REGISTER_CUTOVER",
        SIZE,
        "4096",
        "From which size on memory of gets is registered; at most 32768.",
    ),
    cray(
        "GASNET_GNI_PUT_BOUNCE_REGISTER_CUTOVER",
        SIZE,
        "4096",
        "From which size on memory of puts is registered; at most 32768.",
    ),
    cray(
        "GASNET_GNI_BOUNCE_SIZE",
        SIZE,
        "256K",
        "The bounce buffers.",
    ),
    cray(
        "GASNET_GNI_MEM_CONSISTENCY",
        Kind::Choice(&["relaxed", "strict", "none"]),
        "relaxed",
        "The order of writes to registered memory.",
    ),
    cray(
        "GASNET_GNI_MEMREG",
        count("registrations"),
        "16 (gemini), 3072 (aries)",
        "Registrations that are kept.",
    ),
    cray(
        "GASNET_GNI_FMA_SHARING",
        Kind::Text,
        "auto",
        "Shares windows of the adapter.",
    ),
    cray(
        "GASNET_GNI_MDD_SHARING",
        Kind::Boolean,
        "1",
        "Shares memory descriptors.",
    ),
    cray(
        "GASNET_GNI_BTE_MULTI_CHANNEL",
        Kind::Boolean,
        "1",
        "Uses several channels for block transfers.",
    ),
    cray(
        "GASNET_USE_UDREG",
        Kind::Boolean,
        "1",
        "Keeps registrations in Cray's cache.",
    ),
    cray(
        "GASNET_USE_CE",
        Kind::Boolean,
        "1",
        "Uses the adapter's collectives.",
    ),
    cray(
        "GASNET_USE_CE_PSHM",
        Kind::Boolean,
        "1",
        "The same among ranks of a host.",
    ),
    cray(
        "GASNET_GNI_CE_RADIX",
        count("ranks"),
        "2",
        "The radix of their tree, 1 to 31.",
    ),
    cray(
        "MPICH_RANK_REORDER_METHOD",
        count("method"),
        "",
        "Read by Cray's launcher.",
    ),
    cray("PMI_GNI_LOC_ADDR", Kind::Text, "", OF_PMI),
    cray("PMI_GNI_COOKIE", Kind::Text, "", OF_PMI),
    cray("PMI_GNI_PTAG", Kind::Text, "", OF_PMI),
    cray("PMI_GNI_DEV_ID", Kind::Text, "", OF_PMI),
    portal(
        "GASNET_PORTAL_*",
        Kind::Text,
        "",
        "Any other name of that conduit.",
    ),
];
