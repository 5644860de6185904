//! The types of calls to the engine, for callers of [`Raw::engine`](crate::raw::Raw::engine), which
//! takes it from a [`World`](crate::World).
//!
//! The engine is the crate `argonet_engine`, which is not for programs; a caller of `Raw::engine`
//! promises to keep its [contract](argonet_engine#contract).

pub use argonet_engine::{
    AllSync, Area, Atomic, AtomicWord, BarrierKind, BoundMemory, BoundPlace, Call, Choice, Context,
    Count, Crowded, DataType, Direction, EndpointState, Engine, EngineConfig, Fold, FoldFn,
    Folding, Heap, HeapError, HoodOf, Hoods, Injection, Internals, Kind, Leaving, LocalCompletion,
    Long, MAPPED_MAGIC, MAPPED_NONE, MAPPED_TABLE, MAPPED_VERSION, MISMATCH_PATIENCE, MappedPrefix,
    Members, Name, NamedError, Notice, OpError, Operation, OwnedTeam, PeerAddress, PeerMemory,
    Piece, Pieces, ProcessOf, Range, RegionError, Regions, RowsAt, Schedule, SegmentBase, Shape,
    ShapePart, Side, Signature, Situation, Span, Step, Strided, Target, Task, Team, TeamError,
    TeamKey, Terms, ThreadCtx, Transfer, TreePass, Tuning, Verdict, VisError, VisTransfer, Wait,
    WaitMode, WaitPolicy, fold, fold_before, internal, mapped_entry, plan, radix_of, span,
    trace_handlers, tree_of,
};
