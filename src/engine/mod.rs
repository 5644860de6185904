//! The engine: everything between the public faces and a conduit.
//!
//! It checks what clients ask for, sends it through a [`Conduit`](argonet_conduit::Conduit), runs
//! handlers while it polls, waits politely, and knows the collective operations. It has no
//! process-wide state: many engines can live in one process, and each call gets the calling
//! thread's [`ThreadCtx`].

mod background;
mod between;
mod collective;
mod core;
mod datatype;
mod events;
mod far;
mod heap;
mod limits;
mod lines;
mod named;
mod near;
mod ratomic;
mod regions;
mod rma;
mod team;
mod thread;
mod tree;
mod vis;
mod wait;
mod waiting;
mod watch;

pub use self::core::{Engine, EngineConfig, Internals, Outlook, SegmentBase};
pub use argonet_settings::WaitMode;
pub use between::EndpointState;
pub(crate) use collective::TREES;
pub use collective::{
    Area, Call, Count, FoldFn, Folding, HoodOf, Hoods, Kind, Meets, Range, Schedule, Situation,
    Step, Task, Tuning, plan, radix_of, tree_of,
};
pub use datatype::{DataType, Operation, fold, fold_before};
pub use events::{OpError, Transfer};
pub use far::{FarBound, FarPlace, ProcessOf, ReplyPlace};
pub use heap::{Heap, HeapError};
pub use limits::internal;
pub use named::{Name, NamedError, Verdict};
pub use near::{NEAR_MAGIC, NEAR_NONE, NEAR_TABLE, NEAR_VERSION, NearPrefix, near_entry};
pub use ratomic::{Atomic, AtomicTarget, AtomicWord};
pub use regions::{RegionError, Regions};
pub use team::{Choice, MOST_ENDPOINTS, Members, OwnedTeam, Team, TeamError, TeamKey, Terms};
pub use thread::{Context, Crowded, ThreadCtx};
pub use tree::{Fold, Meeting, Pass};
pub(crate) use vis::Few;
pub use vis::{
    Direction, Notice, PeerMemory, Piece, Pieces, RowsAt, Shape, ShapePart, Strided, VisError,
    VisTransfer,
};
pub use wait::WaitPolicy;
pub use waiting::Wait;
pub use watch::{Span, span, watch_handlers};

#[cfg(test)]
mod tests;
