//! InfiniBand.

use super::NO_IBV;
use crate::kind::{Kind, SIZE, count};
use crate::row::{Row, Scope};

const fn job(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_IBV)
}

const fn rank(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Rank, about, NO_IBV)
}

pub(crate) const IDLE: &[Row] = &[
    job(
        "GASNET_NUM_QPS",
        count("queue pairs"),
        "0",
        "Queue pairs for each peer; 0 for one a port.",
    ),
    rank(
        "GASNET_IBV_PORTS",
        Kind::Text,
        "all",
        "The ports that are used, such as mlx5_0+mlx5_1:2.",
    ),
    rank(
        "GASNET_IBV_PORTS_<n>",
        Kind::Text,
        "GASNET_IBV_PORTS",
        "The same for one place in the host.",
    ),
    rank(
        "GASNET_IBV_PORTS_VERBOSE",
        Kind::Boolean,
        "1",
        "Warns of ports that are asked for and are not there.",
    ),
    rank(
        "GASNET_IBV_LIST_PORTS",
        Kind::Boolean,
        "0",
        "Prints the ports.",
    ),
    rank(
        "GASNET_IBV_LIST_PORTS_NODES",
        Kind::Nodes,
        "all",
        "The ranks that print them.",
    ),
    job(
        "GASNET_IBV_PKEY",
        count("partition key"),
        "index 0",
        "The partition.",
    ),
    rank(
        "GASNET_IBV_MODEL_WARN",
        Kind::Boolean,
        "1",
        "Warns of adapters of different models.",
    ),
    job(
        "GASNET_QP_RD_ATOM",
        count("operations"),
        "0",
        "Reads under way on a queue pair; 0 for as many as the adapter allows.",
    ),
    job(
        "GASNET_MAX_MTU",
        Kind::Number,
        "0",
        "The longest packet; 0 to choose, -1 for the port's.",
    ),
    job(
        "GASNET_CONNECT_DYNAMIC",
        Kind::Boolean,
        "1",
        "Connects at first use.",
    ),
    job(
        "GASNET_CONNECT_STATIC",
        Kind::Boolean,
        "1",
        "Connects at the start.",
    ),
    job(
        "GASNET_CONNECTFILE_IN",
        Kind::Path,
        "",
        "The connections to make at the start.",
    ),
    job(
        "GASNET_CONNECTFILE_OUT",
        Kind::Path,
        "",
        "Where the connections used are written.",
    ),
    job(
        "GASNET_CONNECTFILE_BASE",
        count("base"),
        "36",
        "The base of numbers in that file.",
    ),
    job(
        "GASNET_CONNECT_SNDS",
        count("buffers"),
        "4",
        "Send buffers of connecting.",
    ),
    job(
        "GASNET_CONNECT_RCVS",
        count("buffers"),
        "max(6, 4 + 2 * log2 of the remote ranks)",
        "Receive buffers of connecting.",
    ),
    rank(
        "GASNET_CONNECT_DROP_DENOM",
        count("packets"),
        "0",
        "Drops one of so many packets of connecting, for tests.",
    ),
    job(
        "GASNET_RCV_THREAD",
        Kind::Boolean,
        "0",
        "A thread that receives.",
    ),
    rank(
        "GASNET_RCV_THREAD_RATE",
        count("a second"),
        "0",
        "How often it looks at most.",
    ),
    rank(
        "GASNET_RCV_THREAD_IDLE",
        count("microseconds"),
        "0",
        "How long it waits when idle.",
    ),
    rank(
        "GASNET_RCV_THREAD_POLL_MODE",
        Kind::Text,
        "serialized",
        "Whether others may look at the same time.",
    ),
    job(
        "GASNET_SND_THREAD",
        Kind::Boolean,
        "0",
        "A thread that reaps sends.",
    ),
    rank(
        "GASNET_SND_THREAD_RATE",
        count("a second"),
        "0",
        "How often it looks at most.",
    ),
    rank(
        "GASNET_SND_THREAD_IDLE",
        count("microseconds"),
        "0",
        "How long it waits when idle.",
    ),
    rank(
        "GASNET_SND_THREAD_POLL_MODE",
        Kind::Text,
        "serialized",
        "Whether others may look at the same time.",
    ),
    job(
        "GASNET_INLINESEND_LIMIT",
        Kind::Number,
        "72",
        "Up to how many bytes a send carries its data; -1 for the most.",
    ),
    job(
        "GASNET_PACKEDLONG_LIMIT",
        SIZE,
        "4012",
        "Up to which size a long travels as one message.",
    ),
    job(
        "GASNET_NONBULKPUT_BOUNCE_LIMIT",
        SIZE,
        "64KB",
        "Up to which size puts are copied.",
    ),
    job(
        "GASNET_PUTINMOVE_LIMIT",
        SIZE,
        "3KB",
        "Up to which size puts travel with a request for registration.",
    ),
    job(
        "GASNET_PUT_STRIPE_SZ",
        SIZE,
        "0",
        "Pieces of puts over several ports.",
    ),
    job(
        "GASNET_GET_STRIPE_SZ",
        SIZE,
        "0",
        "Pieces of gets over several ports.",
    ),
    job(
        "GASNET_AM_GATHER_MIN",
        SIZE,
        "1500",
        "From which size on payloads are not copied.",
    ),
    job(
        "GASNET_USE_SRQ",
        Kind::Number,
        "-1",
        "Shared receive queues; -1 to choose.",
    ),
    job(
        "GASNET_USE_XRC",
        Kind::Boolean,
        "1",
        "Extended reliable connections.",
    ),
    job(
        "GASNET_USE_ODP",
        Kind::Boolean,
        "1",
        "Registration on demand.",
    ),
    rank(
        "GASNET_ODP_VERBOSE",
        Kind::Boolean,
        "1",
        "Warns where registration on demand is not available.",
    ),
    job("GASNET_USE_FENCED_PUTS", Kind::Boolean, "0", "Fences puts."),
    job(
        "GASNET_USE_FIREHOSE",
        Kind::Boolean,
        "1",
        "Registers memory in a cache (debug builds).",
    ),
    job(
        "GASNET_FIREHOSE_M",
        SIZE,
        "75 %",
        "Memory that peers may register here.",
    ),
    job(
        "GASNET_FIREHOSE_MAXVICTIM_M",
        SIZE,
        "25 %",
        "Memory that stays registered without use.",
    ),
    job(
        "GASNET_FIREHOSE_R",
        count("regions"),
        "in proportion",
        "Regions that peers may register here.",
    ),
    job(
        "GASNET_FIREHOSE_MAXVICTIM_R",
        count("regions"),
        "in proportion",
        "Regions that stay registered without use.",
    ),
    job(
        "GASNET_FIREHOSE_MAXREGION_SIZE",
        SIZE,
        "128KB",
        "The longest region.",
    ),
    job(
        "GASNET_FIREHOSE_TABLE_SCALE",
        Kind::Number,
        "1",
        "The scale of its tables.",
    ),
    rank(
        "GASNET_FIREHOSE_VERBOSE",
        Kind::Boolean,
        "0",
        "Prints the parameters of that cache.",
    ),
    job(
        "GASNET_FIREHOSE_REUSE_PREPINNED",
        Kind::Boolean,
        "0",
        "Uses registrations that are there.",
    ),
    rank(
        "GASNET_HCA_ID",
        Kind::Text,
        "",
        "The old form of GASNET_IBV_PORTS.",
    ),
    rank(
        "GASNET_PORT_NUM",
        count("port"),
        "",
        "The old form of GASNET_IBV_PORTS.",
    ),
    rank(
        "MLX4_SINGLE_THREADED",
        Kind::Boolean,
        "1 without threads",
        "Read by the adapter's library.",
    ),
    rank(
        "MLX5_SINGLE_THREADED",
        Kind::Boolean,
        "1 without threads",
        "Read by the adapter's library.",
    ),
    rank(
        "MLX5_SCATTER_TO_CQE",
        Kind::Boolean,
        "",
        "Read by the adapter's library.",
    ),
    rank(
        "RDMAV_HUGEPAGES_SAFE",
        Kind::Boolean,
        "",
        "Read by the verbs library.",
    ),
];
