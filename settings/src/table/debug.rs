//! Backtraces, stopping for a debugger, checks.

use super::NO_CHECKED_MALLOC;
use crate::choice::BacktraceType;
use crate::kind::{Kind, count};
use crate::nodes::NodeSet;
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use crate::signal::SignalNumber;

settings! {
    BACKTRACE: bool = "GASNET_BACKTRACE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Prints the stack at fatal errors.";
    BACKTRACE_NODES: NodeSet = "GASNET_BACKTRACE_NODES", Kind::Nodes, Preset::Is("*"), Scope::Rank,
        "The ranks that do so.";
    BACKTRACE_SIGNAL: Option<SignalNumber> = "GASNET_BACKTRACE_SIGNAL", Kind::Signal, Preset::Unset, Scope::Rank,
        "The signal on which a rank prints its stack and goes on.";
    BACKTRACE_TYPE: Option<Vec<BacktraceType>> = "GASNET_BACKTRACE_TYPE", Kind::Choices(BacktraceType::WORDS),
        Preset::Words("all that are found"), Scope::Rank,
        "What prints the stack; the first that works.";
    FREEZE: bool = "GASNET_FREEZE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Waits for a debugger at the start.";
    FREEZE_ON_ERROR: bool = "GASNET_FREEZE_ON_ERROR", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Waits for a debugger at fatal errors and signals.";
    FREEZE_SIGNAL: Option<SignalNumber> = "GASNET_FREEZE_SIGNAL", Kind::Signal, Preset::Unset, Scope::Rank,
        "The signal on which a rank waits for a debugger.";
    TSC_RATE: String = "GASNET_TSC_RATE", Kind::Text, Preset::Is("walltime"), Scope::Rank,
        "How gasnet_tools.h finds the rate of the tick counter: walltime, cpuinfo, or ticks per second.";
    TSC_RATE_TOLERANCE: f64 = "GASNET_TSC_RATE_TOLERANCE", Kind::Number, Preset::Is("0.0005"), Scope::Rank,
        "What relative difference from the clock of that rate warns.";
    TSC_RATE_HARD_TOLERANCE: f64 = "GASNET_TSC_RATE_HARD_TOLERANCE", Kind::Number, Preset::Is("0.01"), Scope::Rank,
        "What relative difference from the clock of that rate is fatal.";
    TSC_VERBOSE: bool = "GASNET_TSC_VERBOSE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Tells how the rate of the tick counter was found.";
}

const NO_CANARY: &str = "buffers of negotiated payloads are not filled in this version";
const TESTS: &str = "a setting of GASNet's own tests";

const fn malloc(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Rank, about, NO_CHECKED_MALLOC)
}

pub(crate) const IDLE: &[Row] = &[
    Row::idle(
        "GASNET_BACKTRACE_MT",
        Kind::Boolean,
        "1 with threads",
        Scope::Rank,
        "Prints the stacks of all threads.",
        "the type of backtrace decides in this version",
    ),
    Row::idle(
        "GASNET_SD_INIT",
        Kind::Boolean,
        "1",
        Scope::Rank,
        "Fills buffers of negotiated payloads before the client does (debug builds).",
        NO_CANARY,
    ),
    Row::idle(
        "GASNET_SD_INITVAL",
        Kind::Text,
        "NAN",
        Scope::Rank,
        "What they are filled with.",
        NO_CANARY,
    ),
    Row::idle(
        "GASNET_SD_INITLEN",
        count("bytes"),
        "128",
        Scope::Rank,
        "How much of them is filled.",
        NO_CANARY,
    ),
    malloc(
        "GASNET_MALLOC_INIT",
        Kind::Boolean,
        "0",
        "Fills memory that is allocated (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_CLOBBER",
        Kind::Boolean,
        "0",
        "Fills memory that is freed (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_LEAKALL",
        Kind::Boolean,
        "0",
        "Frees nothing (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_SCANFREED",
        Kind::Boolean,
        "0",
        "Checks that freed memory is not written (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_EXTRACHECK",
        Kind::Boolean,
        "0",
        "Checks the heap more often (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_INITVAL",
        Kind::Text,
        "NAN",
        "What allocated memory is filled with (debug builds).",
    ),
    malloc(
        "GASNET_MALLOC_CLOBBERVAL",
        Kind::Text,
        "NAN",
        "What freed memory is filled with (debug builds).",
    ),
    malloc(
        "GASNET_MALLOCFILE",
        Kind::Path,
        "",
        "Where memory that was not freed is reported (debug builds).",
    ),
    malloc(
        "GASNET_MALLOCNODES",
        Kind::Nodes,
        "all",
        "The ranks that report it (debug builds).",
    ),
    Row::idle(
        "GASNET_TEST_POLITE_SYNC",
        Kind::Boolean,
        "0",
        Scope::Rank,
        "Waits politely in tests.",
        TESTS,
    ),
    Row::idle(
        "GASNET_TEST_TIME_SLACK",
        Kind::Number,
        "",
        Scope::Rank,
        "What tests of timers allow.",
        TESTS,
    ),
    Row::idle(
        "GASNET_TEST_THREAD_LIMIT",
        count("threads"),
        "the most",
        Scope::Rank,
        "How many threads tests start.",
        TESTS,
    ),
    Row::idle(
        "GASNET_TEST_SET_AFFINITY",
        Kind::Boolean,
        "1",
        Scope::Rank,
        "Binds threads of tests.",
        TESTS,
    ),
    Row::idle(
        "GASNET_ATOMIC_TABLESZ",
        count("locks"),
        "256",
        Scope::Rank,
        "The locks of emulated atomic operations.",
        "the processors that argonet runs on have all atomic operations",
    ),
];
