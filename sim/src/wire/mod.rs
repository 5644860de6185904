//! The wire between ranks, and everything that can go wrong with it and with them.

mod faults;
mod net;

pub use faults::{FaultPlan, Partition, Pause, Quality};
pub(crate) use net::Net;
