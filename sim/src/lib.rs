//! A cluster in one process: virtual time, a wire that loses, repeats, reorders, delays and damages
//! frames, partitions, slow, paused and dead ranks. One seed is one run.
//!
//! It links the same crates as every job: the ranks are whole engines over a conduit that
//! implements the [`Conduit`](argonet_conduit::Conduit) trait. Nothing in those crates knows of the
//! simulator.
//!
//! | part | |
//! | --- | --- |
//! | [`Random`] | the one source of chance of a run |
//! | [`FaultPlan`], [`Quality`] | what goes wrong, and when it stops |
//! | [`link`] | the protocol of the simulated conduit, without I/O |
//! | [`SimConduit`] | the conduit over it |
//! | [`Cluster`] | conduits without engines, which a test drives itself |
//! | [`run`] | a job: whole engines, each rank a coroutine |
//! | [`workload`] | what a seed makes them do, and what is checked |
//! | [`flow`] | flow control alone, among thousands of ranks |
//! | [`portals`] | the same workload over the portals conduit and interfaces in software |
//!
//! Whoever wants conduits alone makes a [`Cluster`], takes its [`nodes`](Cluster::nodes), and calls their
//! conduits in turn; [`Cluster::step`] lets time pass. See the example there.
#![deny(unsafe_code)]

mod boot;
mod clock;
mod cluster;
mod conduit;
mod config;
mod fiber;
pub mod flow;
mod job;
pub mod link;
pub mod portals;
mod random;
mod wire;
pub mod workload;

pub use boot::Abort;
pub use clock::Trace;
pub use cluster::{Cluster, Node};
pub use conduit::SimConduit;
pub use config::{SimConfig, Sizes};
pub use job::{Failure, JobConfig, Outcome, Rank, Simulated, StartError, run};
pub use random::Random;
pub use wire::{FaultPlan, Partition, Pause, Quality};
