//! A cluster in one process: virtual time, connections that are slow, take parts and break
//! anywhere, partitions, slow, paused and dead ranks.
//!
//! One seed is one run.
//!
//! It links the same crates as every job: the ranks are whole engines over the same channel, which
//! has rails of the simulated wire in place of sockets. Nothing in those crates knows of the
//! simulator.
//!
//! | part | |
//! | --- | --- |
//! | [`Random`] | the one source of chance of a run |
//! | [`FaultPlan`], [`Quality`] | faults, and when they stop |
//! | [`SimRails`], [`SimRail`] | connections of the simulated wire as rails |
//! | [`ChannelNode`] | the channel over them, whose calls take virtual time |
//! | [`Cluster`] | conduits without engines, which a test drives itself |
//! | [`run`] | a job: whole engines, each rank a coroutine |
//! | [`workload`] | work of ranks by a seed, and its checks |
//! | [`flow`] | flow control alone, among thousands of ranks |
//! | [`portals`] | the same workload over the portals conduit and interfaces in software |
//! | [`datagrams`] | the reliable layer of datagrams alone, among a few ranks |
//!
//! For conduits alone make a [`Cluster`], take its [`nodes`](Cluster::nodes), and call their
//! conduits in turn; [`Cluster::step`] lets time pass. See the example there.
#![deny(unsafe_code)]

mod boot;
mod clock;
mod cluster;
mod config;
pub mod datagrams;
mod fiber;
pub mod flow;
mod job;
pub mod portals;
mod rails;
mod random;
mod timed;
mod wire;
pub mod workload;

pub use boot::Abort;
pub use clock::Trace;
pub use cluster::{ChannelNode, Cluster, Node};
pub use config::{SimConfig, Sizes};
pub use job::{Failure, JobConfig, Outcome, Rank, Simulated, StartError, run};
pub use rails::{SimRail, SimRails};
pub use random::Random;
pub use timed::Timed;
pub use wire::{FaultPlan, Partition, Pause, Quality};
