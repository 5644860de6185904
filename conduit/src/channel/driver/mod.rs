//! The driver of a rank's streams over its rails: locks, polls, sleeps, and the library's own
//! threads.
//!
//! Two ranks that use each other have a rail, over which each sends a stream of frames. Bytes that
//! a peer has not taken are kept and written again when another rail had to be made, so that every
//! message is handled once. Taking a put completes it; a get is a request that the target's poll
//! answers. Nothing is read or written outside of calls of the rank itself, with two exceptions: a
//! thread sends the messages gathered in a burst when no call comes (`helper`), and another thread,
//! where there is one, serves peers while the rank computes (`progress`).

mod bits;
mod conduit;
mod config;
mod core;
mod flush;
mod further_rails;
mod helper;
mod idle;
mod idle_peers;
mod loans;
mod losing;
mod peer;
mod peer_poll;
mod poll;
mod progress;
mod quick;
mod report;
mod send;
mod serve;
mod silence;
mod striping;
mod system;
#[cfg(test)]
mod tests;
mod vitals;
mod wire;

pub use conduit::Channel;
pub use config::{ChannelConfig, ChannelSizeError, ChannelSizes};
pub use progress::progress_by_default;
