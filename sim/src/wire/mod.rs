//! Connections between ranks, and everything that can go wrong with them and with ranks.

mod faults;
mod joining;
mod streams;

pub use faults::{FaultPlan, Partition, Pause, Quality};
pub(crate) use joining::Task;
pub(crate) use streams::{End, Later, Nothing, Streams};
