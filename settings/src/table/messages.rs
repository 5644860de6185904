//! Credits, depths and buffers of active messages.
//!
//! The unit of a name differs between conduits.

use super::{NO_ARIES, NO_IBV, NO_MPI, NO_OFI, NO_UDP};
use crate::kind::{Kind, SIZE, count};
use crate::row::{Row, Scope};

const NO_NETWORK: &str =
    "credits bound what may be under way; see ARGONET_CREDITS_SHARE and ARGONET_CREDITS_MOST";

const fn job(
    name: &'static str,
    kind: Kind,
    preset: &'static str,
    about: &'static str,
    reason: &'static str,
) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, reason)
}

pub(crate) const IDLE: &[Row] = &[
    job(
        "GASNET_NETWORKDEPTH",
        count("requests (udp, aries), buffers (mpi)"),
        "128 (udp), 4 (mpi), 64 (aries)",
        "How much may be under way to a peer.",
        NO_NETWORK,
    ),
    job(
        "AMUDP_NETWORKDEPTH",
        count("requests"),
        "128",
        "As GASNET_NETWORKDEPTH (udp).",
        NO_UDP,
    ),
    job(
        "GASNET_RECVDEPTH",
        Kind::Number,
        "2 * depth * min(ranks - 1, 4)",
        "Messages that are received ahead (udp).",
        NO_UDP,
    ),
    job(
        "GASNET_SENDDEPTH",
        Kind::Number,
        "depth * min(ranks - 1, 4)",
        "Requests under way to all peers; -1 for no limit (udp).",
        NO_UDP,
    ),
    job(
        "GASNET_SOCKETBUFFER_INITIAL",
        SIZE,
        "min(GASNET_SOCKETBUFFER_MAX, depth * packet)",
        "Socket buffers at the start (udp).",
        NO_UDP,
    ),
    job(
        "GASNET_SOCKETBUFFER_MAX",
        SIZE,
        "4194304",
        "Socket buffers at most (udp).",
        NO_UDP,
    ),
    job(
        "AMMPI_CREDITS_PP",
        count("credits"),
        "2 * depth",
        "Credits for each peer (mpi).",
        NO_MPI,
    ),
    job(
        "AMMPI_CREDITS_SLACK",
        count("credits"),
        "0.75 * AMMPI_CREDITS_PP",
        "Credits that are gathered before they are returned (mpi).",
        NO_MPI,
    ),
    job(
        "AMMPI_SYNCSEND_THRESH",
        Kind::Number,
        "-1",
        "From which size on sends are synchronous (mpi).",
        NO_MPI,
    ),
    job(
        "GASNET_NETWORKDEPTH_PP",
        count("operations"),
        "24",
        "Operations under way to a peer (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_NETWORKDEPTH_TOTAL",
        count("operations (ibv), messages (aries)"),
        "255 (ibv), 64 (aries)",
        "Operations under way to all peers.",
        NO_NETWORK,
    ),
    job(
        "GASNET_NETWORKDEPTH_SPACE",
        SIZE,
        "12K",
        "Bytes under way to a peer (aries).",
        NO_ARIES,
    ),
    job(
        "GASNET_LONG_DEPTH",
        count("messages"),
        "none",
        "Long messages under way to a peer (aries).",
        NO_ARIES,
    ),
    job(
        "GASNET_AM_CREDITS_PP",
        count("credits"),
        "12",
        "Requests under way to a peer (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_AM_CREDITS_TOTAL",
        count("credits"),
        "min(256, (ranks - 1) * 12)",
        "Requests under way to all peers (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_AM_CREDITS_SLACK",
        count("credits"),
        "1",
        "Credits that are gathered before they are returned (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_RBUF_COUNT",
        count("buffers"),
        "1024",
        "Receive buffers (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_RBUF_SPARES",
        count("buffers"),
        "estimated",
        "Receive buffers that threads hold (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_BBUF_COUNT",
        count("buffers"),
        "1024",
        "Bounce buffers (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_RATOMICBUF_COUNT",
        count("buffers"),
        "0",
        "Buffers of remote atomic operations; 0 for the total depth (ibv).",
        NO_IBV,
    ),
    job(
        "GASNET_OFI_NUM_RECEIVE_BUFFS",
        Kind::Text,
        "8",
        "Receive buffers (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_OFI_RECEIVE_BUFF_SIZE",
        Kind::Text,
        "1M",
        "Their size, or `recv` for one message each (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_OFI_MAX_REQUEST_BUFFS",
        count("buffers"),
        "1024",
        "Send buffers of requests at most (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_OFI_MAX_REPLY_BUFFS",
        count("buffers"),
        "1024",
        "Send buffers of replies at most (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_OFI_NUM_INITIAL_REQUEST_BUFFS",
        count("buffers"),
        "min(256, most)",
        "Send buffers of requests at the start (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_OFI_NUM_INITIAL_REPLY_BUFFS",
        count("buffers"),
        "min(256, most)",
        "Send buffers of replies at the start (ofi).",
        NO_OFI,
    ),
    job(
        "GASNET_FAULT_RATE",
        Kind::Number,
        "0.0",
        "The part of received datagrams that is dropped, for tests (udp).",
        NO_UDP,
    ),
    job(
        "AMUDP_FAULT_RATE",
        Kind::Number,
        "0.0",
        "As GASNET_FAULT_RATE (udp).",
        NO_UDP,
    ),
    job(
        "AMUDP_VERBOSE_SEND",
        Kind::Boolean,
        "0",
        "Prints each datagram that is sent (udp).",
        NO_UDP,
    ),
];
