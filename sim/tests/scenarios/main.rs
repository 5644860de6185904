//! Scenarios in the simulator, one subject a module.
//!
//! One program, as each links all of the engine.

mod bound;
mod conduits;
mod datagrams;
mod depth;
mod endpoint_am;
mod flow;
mod harness;
mod idle;
mod ratomic;
mod teams;
mod vis;
mod whole;
