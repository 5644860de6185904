//! The portals conduit over interfaces in software that fail: whole engines of several ranks, their
//! interfaces in one file, in one thread.
//!
//! One seed is one run, of the same workload as over the simulated wire: requests and replies of
//! all categories, puts and gets, negotiated payloads, collectives. Sizes are at their smallest, at
//! their largest or somewhere else; operations and answers come late and out of turn, nothing
//! matches, targets are slow, queues are full. Each message is handled once, with its bytes; at the
//! end nothing that the conduit counts is in use, and no credit is missing.

mod account;
mod conduit;
mod seed;
mod shape;

pub use conduit::PortalsNode;
pub use seed::{PortalsReport, run_portals_seed, run_portals_shape};
pub use shape::PortalsShape;
