//! Scenarios in the simulator, one subject a module.
//!
//! One program, as each links all of the engine.

mod conduits;
mod depth;
mod endpoint_am;
mod far;
mod flow;
mod harness;
mod ratomic;
mod teams;
mod vis;
mod whole;
