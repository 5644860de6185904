//! libfabric and UCX.

use super::{NO_OFI, NO_UCX, OF_OTHERS};
use crate::kind::{Kind, SIZE, count};
use crate::row::{Row, Scope};

const fn gasnet(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_OFI)
}

/// What libfabric reads by itself, over whichever conduit it is used.
const fn library(name: &'static str, kind: Kind, preset: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, OF_LIBFABRIC, OF_OTHERS)
}

const fn ucx(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_UCX)
}

const OF_LIBFABRIC: &str = "Read by libfabric.";
const OF_UCX: &str = "Read by UCX.";

pub(crate) const IDLE: &[Row] = &[
    gasnet(
        "GASNET_OFI_RMA_POLL_FREQ",
        count("operations"),
        "32",
        "How many puts and gets start before one poll.",
    ),
    gasnet(
        "GASNET_OFI_NUM_BBUFS",
        count("buffers"),
        "64",
        "Bounce buffers.",
    ),
    gasnet("GASNET_OFI_BBUF_SIZE", SIZE, "a page", "Their size."),
    gasnet(
        "GASNET_OFI_BBUF_THRESHOLD",
        SIZE,
        "4 * GASNET_OFI_BBUF_SIZE",
        "Up to which size puts are copied into them.",
    ),
    gasnet(
        "GASNET_OFI_AM_INJECT_LIMIT",
        SIZE,
        "the provider's",
        "Up to which size messages are injected.",
    ),
    gasnet(
        "GASNET_OFI_INJECT_LIMIT",
        SIZE,
        "the provider's",
        "Another name of GASNET_OFI_AM_INJECT_LIMIT.",
    ),
    gasnet(
        "GASNET_OFI_RMA_INJECT_LIMIT",
        SIZE,
        "the provider's",
        "Up to which size puts are injected.",
    ),
    gasnet(
        "GASNET_OFI_TX_CQ_SIZE",
        count("entries"),
        "0",
        "The completion queue of sends; 0 for the provider's.",
    ),
    gasnet(
        "GASNET_OFI_RX_CQ_SIZE",
        count("entries"),
        "0",
        "The completion queue of receives; 0 for the provider's.",
    ),
    gasnet(
        "GASNET_OFI_MAX_MEDIUM",
        SIZE,
        "8192",
        "The longest medium; at least 512.",
    ),
    gasnet(
        "GASNET_OFI_SET_UNIVERSE_SIZE",
        Kind::Boolean,
        "1",
        "Passes the number of ranks to libfabric.",
    ),
    gasnet("GASNET_OFI_DEVICE", Kind::Text, "any", "The adapter."),
    gasnet(
        "GASNET_OFI_DEVICE_<n>",
        Kind::Text,
        "GASNET_OFI_DEVICE",
        "The same for one place in the host.",
    ),
    gasnet(
        "GASNET_OFI_LIST_DEVICES",
        Kind::Boolean,
        "0",
        "Prints the adapters.",
    ),
    gasnet(
        "GASNET_OFI_LIST_DEVICES_NODES",
        Kind::Nodes,
        "all",
        "The ranks that print them.",
    ),
    gasnet(
        "GASNET_OFI_LONG_AM_RMA_THRESH",
        SIZE,
        "",
        "From which size on a long's payload is a put.",
    ),
    gasnet(
        "GASNET_OFI_AM_USE_DELIVERY_COMPLETE",
        Kind::Boolean,
        "0",
        "Messages complete when they are delivered.",
    ),
    gasnet(
        "GASNET_OFI_ALLOW_UNTRUSTED_PROVIDER",
        Kind::Boolean,
        "0",
        "A provider of an untrusted version warns only.",
    ),
    library("FI_PROVIDER", Kind::Text, ""),
    library("FI_UNIVERSE_SIZE", count("ranks"), ""),
    library("FI_MR_CACHE_MAX_SIZE", Kind::Number, ""),
    library("FI_MR_CACHE_MAX_COUNT", Kind::Number, ""),
    library("FI_CXI_RX_MATCH_MODE", Kind::Text, ""),
    library("FI_CXI_RDZV_THRESHOLD", SIZE, ""),
    library("FI_CXI_RDZV_GET_MIN", SIZE, ""),
    library("FI_CXI_DEFAULT_CQ_SIZE", count("entries"), ""),
    library("FI_PSM2_LOCK_LEVEL", count("level"), ""),
    gasnet(
        "HFI_NO_CPUAFFINITY",
        Kind::Boolean,
        "",
        "Read by the library of Omni-Path.",
    ),
    library("FI_HMEM_CUDA_USE_GDRCOPY", Kind::Boolean, ""),
    library("FI_VERBS_INLINE_SIZE", SIZE, ""),
    library("FI_LOG_LEVEL", Kind::Text, ""),
    library("FI_TCP_IFACE", Kind::Text, ""),
    library("FI_TCP_PORT_LOW_RANGE", count("port"), ""),
    library("FI_TCP_PORT_HIGH_RANGE", count("port"), ""),
    library("FI_OFI_RXD_RETRY", Kind::Boolean, "1"),
    library("FI_OFI_RXD_MAX_PEERS", count("peers"), "1024"),
    library("FI_OFI_RXD_MAX_UNACKED", count("packets"), "128"),
    library("FI_OFI_RXD_SPIN_COUNT", count("rounds"), "1000"),
    library("FI_SHM_DISABLE_CMA", Kind::Boolean, ""),
    library("FI_*", Kind::Text, ""),
    gasnet(
        "SLURM_NETWORK",
        Kind::Text,
        "",
        "Read by Slurm's libfabric support.",
    ),
    ucx(
        "GASNET_UCX_AM_ORDERED_TLS",
        Kind::Boolean,
        "1 with one neighborhood a host",
        "Uses transports that keep order only.",
    ),
    ucx(
        "GASNET_UCX_MAX_MEDIUM",
        SIZE,
        "65456",
        "The longest medium.",
    ),
    ucx("UCX_TLS", Kind::Text, "", OF_UCX),
    ucx("UCX_WARN_UNUSED_ENV_VARS", Kind::Boolean, "", OF_UCX),
    ucx("UCX_IB_TX_INLINE_RESP", SIZE, "", OF_UCX),
    ucx("UCX_ZCOPY_THRESH", SIZE, "", OF_UCX),
    ucx("UCX_IB_REG_METHODS", Kind::Text, "", OF_UCX),
    ucx("UCX_UD_TIMEOUT", Kind::Text, "30s", OF_UCX),
    ucx("UCX_UD_TIMER_TICK", Kind::Text, "10ms", OF_UCX),
    ucx("UCX_UD_TIMER_BACKOFF", Kind::Number, "2.0", OF_UCX),
    ucx("UCX_UD_MAX_WINDOW", count("packets"), "1025", OF_UCX),
    ucx("UCX_KEEPALIVE_INTERVAL", Kind::Text, "20s", OF_UCX),
    ucx("UCX_KEEPALIVE_NUM_EPS", count("endpoints"), "128", OF_UCX),
];
