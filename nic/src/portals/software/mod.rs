//! A matching interface in shared memory.
//!
//! The ranks of a host share one file with an interface each: portal table, entries, event queues,
//! counters, and buffers. The initiator of an operation carries it out, as the hardware would: it
//! searches the target's list, moves the data, puts the target's events into the target's queue and
//! its own into its own. So the target need not call anything, and may compute forever.
//!
//! ADR 0026 describes the file, how its locks survive their owners, and the harm that a mad peer
//! can do.
//!
//! * Entries that report nothing are reached without a lock
//!   ([`Register::Direct`](super::Register::Direct) counts it).
//! * All others by the target's one lock ([`Register::Matched`](super::Register::Matched)), each
//!   operation in one short transaction, two if it moves more than 4 KiB.
//! * Bound descriptors are memory of their process.
//!
//! [`FaultRules`] make it fail on demand.

mod announcements;
mod away;
mod bound;
mod brief;
mod bulk_atomic;
mod config;
mod deliver;
mod direct;
mod entries;
mod faults;
mod interface;
mod layout;
mod list;
mod liveness;
mod memory;
mod message;
mod nic;
mod objects;
mod operate;
mod packed;
mod pieces;
mod queue;
mod records;
mod region;
mod search;
mod shared;
mod sleep;
#[cfg(test)]
mod tests;
mod transaction;

pub(super) use away::{Asked, Away, Request};
pub use config::SoftwareConfig;
pub(super) use deliver::Arrival;
pub use faults::FaultRules;
pub use interface::{Carried, Software};
pub(super) use operate::ATOMIC_BYTES;
pub(super) use pieces::Opened;
pub(super) use sleep::Rest;
