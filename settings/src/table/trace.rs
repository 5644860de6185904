//! Traces and statistics.

use super::NO_TRACE;
use crate::kind::Kind;
use crate::row::{Row, Scope};

const fn trace(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Rank, about, NO_TRACE)
}

pub(crate) const IDLE: &[Row] = &[
    trace(
        "GASNET_TRACEFILE",
        Kind::Path,
        "",
        "Where the trace goes; `%` stands for the rank.",
    ),
    trace(
        "GASNET_STATSFILE",
        Kind::Path,
        "",
        "Where statistics go; `%` stands for the rank.",
    ),
    trace(
        "GASNET_TRACEMASK",
        Kind::Text,
        "all",
        "What is traced, by letters; `^` for all but those.",
    ),
    trace(
        "GASNET_STATSMASK",
        Kind::Text,
        "all",
        "What is counted, by letters; `^` for all but those.",
    ),
    trace(
        "GASNET_TRACENODES",
        Kind::Nodes,
        "all",
        "The ranks that trace.",
    ),
    trace(
        "GASNET_STATSNODES",
        Kind::Nodes,
        "all",
        "The ranks that count.",
    ),
    trace(
        "GASNET_TRACEFLUSH",
        Kind::Boolean,
        "0",
        "Writes each line at once.",
    ),
    trace(
        "GASNET_TRACELOCAL",
        Kind::Boolean,
        "1",
        "Traces puts and gets of a rank to itself too.",
    ),
];
