//! Backtraces, stopping for a debugger, checks.

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
        "The ranks that print their stacks.";
    BACKTRACE_SIGNAL: Option<SignalNumber> = "GASNET_BACKTRACE_SIGNAL", Kind::Signal, Preset::Unset, Scope::Rank,
        "The signal on which a rank prints its stack and goes on.";
    BACKTRACE_TYPE: Option<Vec<BacktraceType>> = "GASNET_BACKTRACE_TYPE", Kind::Choices(BacktraceType::WORDS),
        Preset::Words("all that are found"), Scope::Rank,
        "Ways to print the stack; the first that works is used.";
    FREEZE: bool = "GASNET_FREEZE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Waits for a debugger at the start.";
    FREEZE_ON_ERROR: bool = "GASNET_FREEZE_ON_ERROR", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Waits for a debugger at fatal errors and signals.";
    FREEZE_SIGNAL: Option<SignalNumber> = "GASNET_FREEZE_SIGNAL", Kind::Signal, Preset::Unset, Scope::Rank,
        "The signal on which a rank waits for a debugger.";
    TSC_RATE: String = "GASNET_TSC_RATE", Kind::Text, Preset::Is("walltime"), Scope::Rank,
        "How gasnet_tools.h finds the rate of the tick counter: walltime, cpuinfo, or ticks per second.";
    TSC_RATE_TOLERANCE: f64 = "GASNET_TSC_RATE_TOLERANCE", Kind::Number, Preset::Is("0.0005"), Scope::Rank,
        "The relative difference of that rate from the clock from which on a rank warns.";
    TSC_RATE_HARD_TOLERANCE: f64 = "GASNET_TSC_RATE_HARD_TOLERANCE", Kind::Number, Preset::Is("0.01"), Scope::Rank,
        "The relative difference of that rate from the clock from which on it is fatal.";
    TSC_VERBOSE: bool = "GASNET_TSC_VERBOSE", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Prints how the rate of the tick counter was found.";
    MALLOC_INIT: bool = "GASNET_MALLOC_INIT", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Fills memory that gasnett_debug_malloc allocates (debug builds).";
    MALLOC_CLOBBER: bool = "GASNET_MALLOC_CLOBBER", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Fills memory that gasnett_debug_free frees (debug builds).";
    MALLOC_LEAKALL: bool = "GASNET_MALLOC_LEAKALL", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Keeps freed memory from being allocated again (debug builds).";
    MALLOC_SCANFREED: bool = "GASNET_MALLOC_SCANFREED", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Checks that freed memory is not written; fills and keeps it (debug builds).";
    MALLOC_EXTRACHECK: bool = "GASNET_MALLOC_EXTRACHECK", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Checks all blocks whenever one is allocated or freed (debug builds).";
    MALLOC_INITVAL: String = "GASNET_MALLOC_INITVAL", Kind::Text, Preset::Is("NAN"), Scope::Rank,
        "The pattern that fills allocated memory: a byte, a word of 8 bytes, NAN, qNAN or sNAN (debug builds).";
    MALLOC_CLOBBERVAL: String = "GASNET_MALLOC_CLOBBERVAL", Kind::Text, Preset::Is("NAN"), Scope::Rank,
        "The pattern that fills freed memory, likewise (debug builds).";
    MALLOC_FILE: Option<String> = "GASNET_MALLOCFILE", Kind::Text, Preset::Unset, Scope::Rank,
        "Where memory that was not freed is reported at the end: stdout, stderr, -, or a file; `%` is the rank (debug builds).";
    MALLOC_NODES: NodeSet = "GASNET_MALLOCNODES", Kind::Nodes, Preset::Is("*"), Scope::Rank,
        "The ranks that report it (debug builds).";
}

const NO_CANARY: &str = "buffers of negotiated payloads are not filled in this version";
const TESTS: &str = "a setting of GASNet's own tests";

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
        "The pattern that fills them.",
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
        "The slack that tests of timers allow.",
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
