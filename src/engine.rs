//! The types of calls to the engine, for callers of [`Raw::engine`](crate::raw::Raw::engine), which
//! takes it from a [`World`](crate::World).
//!
//! The engine is the crate `argonet_engine`, which is not for programs; a caller of `Raw::engine`
//! promises to keep its [contract](argonet_engine#contract).

pub use argonet_engine::{
    Area, Atomic, AtomicWord, Call, Choice, Context, Count, Crowded, DataType, Direction,
    EndpointState, Engine, EngineConfig, FarBound, FarPlace, Fold, FoldFn, Folding, Heap,
    HeapError, HoodOf, Hoods, Injection, Internals, Kind, Leaving, LocalCompletion, Long,
    MISMATCH_PATIENCE, Meeting, Meets, Members, NEAR_MAGIC, NEAR_NONE, NEAR_TABLE, NEAR_VERSION,
    Name, NamedError, NearPrefix, Notice, OpError, Operation, OwnedTeam, Pass, PeerAddress,
    PeerMemory, Piece, Pieces, ProcessOf, Range, RegionError, Regions, RowsAt, Schedule,
    SegmentBase, Shape, ShapePart, Side, Signature, Situation, Span, Step, Strided, Target, Task,
    Team, TeamError, TeamKey, Terms, ThreadCtx, Transfer, Tuning, Verdict, VisError, VisTransfer,
    Wait, WaitMode, WaitPolicy, fold, fold_before, internal, near_entry, plan, radix_of, span,
    trace_handlers, tree_of,
};
