//! Traces and statistics.

use crate::choice::TraceFormat;
use crate::kind::Kind;
use crate::letters::Letters;
use crate::nodes::NodeSet;
use crate::row::{Preset, Scope};
use crate::setting::settings;
use std::path::PathBuf;

settings! {
    TRACE_FILE: Option<PathBuf> = "GASNET_TRACEFILE", Kind::Path, Preset::Unset, Scope::Rank,
        "The file that the trace goes to, `stdout`, or `stderr` or `-`; each `%` stands for the rank. No trace without it.";
    STATS_FILE: Option<PathBuf> = "GASNET_STATSFILE", Kind::Path, Preset::Unset, Scope::Rank,
        "The file that statistics go to when the rank ends, `stdout`, or `stderr` or `-`; each `%` stands for the rank. No statistics without it.";
    TRACE_MASK: Letters = "GASNET_TRACEMASK", Kind::Letters, Preset::Is("GPRSWBLAXIOCDNHU"), Scope::Rank,
        "The events that are traced, by letters; `^` for all but those that follow.";
    STATS_MASK: Letters = "GASNET_STATSMASK", Kind::Letters, Preset::Is("GPRSWBLAXIOCDNHU"), Scope::Rank,
        "The events that are counted, by letters; `^` for all but those that follow.";
    TRACE_NODES: NodeSet = "GASNET_TRACENODES", Kind::Nodes, Preset::Is("*"), Scope::Job,
        "The ranks that trace.";
    STATS_NODES: NodeSet = "GASNET_STATSNODES", Kind::Nodes, Preset::Is("*"), Scope::Job,
        "The ranks that count.";
    TRACE_FLUSH: bool = "GASNET_TRACEFLUSH", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Writes each record of the trace at once, so that nothing is missing after a crash.";
    TRACE_LOCAL: bool = "GASNET_TRACELOCAL", Kind::Boolean, Preset::Is("1"), Scope::Rank,
        "Traces puts and gets of a rank to itself too.";
    TRACE_FORMAT: TraceFormat = "ARGONET_TRACE_FORMAT", Kind::Choice(TraceFormat::WORDS), Preset::Is("auto"), Scope::Job,
        "The form of the trace: lines of text as GASNet has them, or trace events that Perfetto opens; `auto` takes the latter for a file whose name ends with .json or .pftrace.";
}
