//! The engine: everything between the public faces and a conduit.
//!
//! It checks the calls of clients, sends messages through a [`Conduit`](argonet_conduit::Conduit),
//! runs handlers while it polls, waits politely, and has the collective operations. It has no
//! process-wide state: many engines can live in one process, and each call gets the calling
//! thread's [`ThreadCtx`].
//!
//! The crate is not for programs, which have `argonet::World`, and promises no stability. The Rust
//! API (`argonet`), the C API (`argonet-capi`), the simulator and measurements use it.
//!
//! # Contract
//!
//! To have an engine takes `unsafe` ([`Engine::new`], and the calls that give the engine of a
//! process's job: `argonet::raw::Raw::engine`, `argonet_start::join`), and so does the context of a
//! thread of the process (`argonet_start::with_thread`). Most calls of an engine are safe functions
//! all the same; they rely on the promises that its holder makes once:
//!
//! * **Threads.** An engine of [`ThreadMode::Seq`](argonet_conduit::ThreadMode) is called by
//!   one thread, the one that made its conduit, although the type is `Sync`; one of `Parsync` by
//!   one thread at a time.
//! * **Contexts.** Each call gets the context of the thread that makes it, the same for all calls
//!   of this engine. The state of a context ([`ThreadCtx::enter`], [`ThreadCtx::leave_preparing`])
//!   is changed only as prepare, commit and cancel do, and a thread is [retired](ThreadCtx::retire)
//!   when it ends and none of its operations uses memory that other code relies on.
//! * **Barriers.** Barriers and drains of [`BarrierKind::Quiet`], [`BarrierKind::Finalize`] and
//!   [`BarrierKind::Segments`] are the library's: a rank that enters one lets others out of it,
//!   which then hold slices of memory that this rank can still write.
//! * **Slices.** Longs, puts and atomic operations go to no memory that its rank holds as a slice.
//! * **Payloads.** A prepared payload is committed or canceled at the engine that prepared it, by
//!   the same thread, while that engine exists.
//! * **Handlers.** Indices below [`CLIENT_BASE`](argonet_am::CLIENT_BASE) are the engine's own.
//! * **Conduit.** It is not polled, and nothing is sent through it, but by the engine.
#![deny(unsafe_code)]

mod background;
mod bound;
mod client;
mod collective;
mod core;
mod datatype;
mod deferred;
mod endpoint_am;
mod events;
mod heap;
mod limits;
mod location;
mod losses;
mod mapped_table;
mod mismatch;
mod named;
mod outgoing;
mod quiescence;
mod ratomic;
mod regions;
mod server;
mod shared_memory;
mod team;
mod thread;
mod token;
mod traced;
mod transfer;
mod tree;
mod vis;
mod wait;
mod waiting;

pub use self::core::{Engine, EngineConfig, Injection, Internals, SegmentBase};
pub use argonet_settings::WaitMode;
pub use bound::{BoundMemory, BoundPlace, Long, ProcessOf};
pub use client::{PANIC_CODE, call_named, panic_text};
pub use collective::{
    AllSync, Area, BlockRanges, Call, Count, FoldFn, Folding, HoodOf, Hoods, Kind, Range, Schedule,
    Signature, Situation, Step, TREES, Task, Tuning, plan, radix_of, tree_of,
};
pub use datatype::{DataType, Operation, fold, fold_before};
pub use deferred::{DeferredMark, RunDeferred};
pub use endpoint_am::EndpointState;
pub use events::OpError;
pub use heap::{Heap, HeapError};
pub use limits::internal;
pub use location::{PeerAddress, Target};
pub use losses::OnLoss;
pub use mapped_table::{
    MAPPED_MAGIC, MAPPED_NONE, MAPPED_TABLE, MAPPED_VERSION, MappedPrefix, mapped_entry,
};
pub use mismatch::PATIENCE as MISMATCH_PATIENCE;
pub use named::{Name, NamedError, Verdict};
pub use outgoing::{InParts, Outgoing};
pub use quiescence::Leaving;
pub use ratomic::{Atomic, AtomicBatch, AtomicWord};
pub use regions::{RegionError, Regions};
pub use server::HeldServer;
pub use team::{Choice, Members, OwnedTeam, Team, TeamError, TeamKey, Terms};
pub use thread::{Context, Crowded, ThreadCtx};
pub use traced::{Span, span, trace_handlers};
pub use transfer::{LocalCompletion, Side, Transfer};
pub use tree::{BarrierKind, Fold, TreePass};
pub use vis::{
    Direction, Few, Notice, PeerMemory, Piece, Pieces, RowsAt, Shape, ShapePart, Strided, VisError,
    VisTransfer,
};
pub use wait::WaitPolicy;
pub use waiting::Wait;

#[cfg(test)]
mod tests;
