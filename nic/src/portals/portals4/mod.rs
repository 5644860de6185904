//! Portals 4, through a library that is loaded when a job starts.
//!
//! A library of Portals 4 comes with the driver of a network card, or is the reference
//! implementation, which runs over InfiniBand, UDP and shared memory. No package of ours is linked
//! with one: [`Library::open`] looks for it at run time. [`Opening`] makes the network interface of
//! the process, which has an address then ([`ProcessId`]); ranks publish theirs through the job's
//! key store, and [`Opening::map`] gives the interface all of them.
//!
//! # What is checked before use
//!
//! The specification gives names, types and meanings, but neither the numbers of its constants nor
//! the order of all members; those here are of the reference implementation's header. So that a
//! library with others is refused rather than misunderstood, an interface puts to itself once
//! before it is handed out, and compares each member of each event (`probe.rs`).
//!
//! # What differs from the software interface
//!
//! * [`Features`](super::Features) are all missing, and an atomic swap that fetches nothing
//!   (`lacks.rs`).
//! * [`Outcome::NoMatch`](super::Outcome::NoMatch) is also the answer of a portal that was never
//!   allocated and of an entry that matches but does not permit the operation,
//!   [`Outcome::Disabled`](super::Outcome::Disabled) that of a portal disabled for any reason: the
//!   library says no more.
//! * The number of events dropped is not known, and is reported as 1; the library chooses which it
//!   drops (the reference implementation keeps the latest).
//! * An entry that leaves its list by itself needs a queue at its portal, where its leaving is
//!   reported to this binding even if not to the client.
//! * Start and end of operations have no number in common: [`Event::link`](super::Event::link) is 0
//!   at the target.
//!
//! [`Narrow`] is the software interface with just these restrictions, for tests of code that is to
//! work over either.

mod abi;
mod answer;
mod bound;
mod config;
mod entry;
mod lacks;
mod library;
mod narrow;
mod nic;
mod objects;
mod open;
mod operate;
mod outcome;
mod outstanding;
mod probe;
mod queue;
mod signals;
mod threads;

pub use config::Portals4Config;
pub use library::Library;
pub use narrow::Narrow;
pub use open::{Opening, Portals4, ProcessId};
