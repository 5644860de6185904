//! Shared memory: rings for messages, loads and stores for put, get and atomics.
//!
//! * [`ring`](self): one ring an ordered pair of ranks and class; a lone short message moves one
//!   cache line.
//! * A request is accepted only while the reply ring to its sender holds the largest possible
//!   reply, so a handler's reply never waits, handlers never poll, and nothing can deadlock:
//!   replies are always taken, and taking them frees the room that acceptance waits for.
//! * [`SharedCells`](crate::SharedCells): small collective operations without messages: each rank
//!   writes a cell, and reads those of the others.
//! * Waiting ranks sleep on a futex word; see [`Barrier`].

pub(crate) mod cells;
#[cfg(not(loom))]
mod conduit;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod lock;
#[cfg(not(loom))]
mod lost;
#[cfg(not(loom))]
mod peer;
#[cfg(not(loom))]
mod receive;
#[cfg(not(loom))]
mod region;
mod ring;
#[cfg(not(loom))]
mod send;
mod wake;
mod words;

#[cfg(not(loom))]
pub use conduit::{Smp, SmpConfig, SmpConfigError};
#[cfg(not(loom))]
pub use descriptor::DESCRIPTOR;
#[cfg(not(loom))]
pub use layout::{Layout, MOST_RANKS, RING_BYTES};
pub use wake::Barrier;
#[cfg(all(test, loom))]
mod loom_cells;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
