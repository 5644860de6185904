//! Flow control at scale: thousands of ranks that run the real credit machine, system queue and
//! recycling of `argonet-am`, and nothing else of an engine.
//!
//! Receive space is accounted for, not backed by memory.
//!
//! [`run`] plays a [`Pattern`] of communication among the ranks of a [`Setup`] and reports what it
//! cost ([`Figures`]). A rank has one thread: it computes and polls nothing meanwhile, or sends,
//! waits and polls. Messages take the same time between all ranks and arrive in order. [`small`]
//! has small jobs over a network with faults, one a seed.

mod figures;
mod node;
mod pattern;
mod peers;
pub mod small;
mod wheel;
mod world;

pub use figures::{Figures, Sample};
pub use pattern::Pattern;
pub use world::{Setup, run};
