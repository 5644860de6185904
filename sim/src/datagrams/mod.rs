//! The reliable layer of datagrams alone, over a wire that fails.
//!
//! One seed is one run: some ranks send each other records on both channels, as their windows have
//! room. Each rank's interface has a queue a channel, that of commands first, or one queue for
//! both, and a speed; datagrams are lost, repeated, changed and overtaken, ranks take nothing for a
//! while. All that was sent is compared with all that came, entry by entry.

mod shape;
mod wire;
mod world;

pub use shape::{DatagramShape, WireShape};
pub use world::{DatagramReport, DatagramWorld, run_datagrams_seed, run_datagrams_shape};
