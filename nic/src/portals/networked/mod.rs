//! A matching interface that reaches ranks of other hosts over UDP.
//!
//! Ranks of the host are reached through [`software`](super::software), in shared memory. Messages
//! for other hosts go in records over the links of [`reliable`](crate::reliable). A thread of each
//! rank's process plays the hardware: it sleeps on the socket, executes arriving operations at the
//! target with the code that ranks of the host use in shared memory, answers, and ends operations
//! at their initiator. So progress needs no calls.
//!
//! * Calls send their datagrams themselves if the window permits; the thread sends the rest.
//! * A thread that looks or sleeps for events reads the socket itself, and the thread of the
//!   interface leaves it to that as long.
//! * Messages between two ranks stay in order, also between portals. A long one is cut into
//!   datagrams and put to its place as they come; it is one operation with one start and one end.
//! * An operation has been read when its `SendEnd` comes
//!   ([`Features::synchronous`](super::Features::synchronous) is false): data is copied into
//!   datagrams, and stays in the descriptor until there is room for those. `SendEnd` is reported
//!   only when the answer has come, unless no answer was asked for.
//! * A peer that answers nothing for
//!   [`ReliableConfig::give_up_after`](crate::reliable::ReliableConfig::give_up_after) is lost:
//!   operations under way end as [`Outcome::PeerDied`](super::Outcome::PeerDied), and further calls
//!   return [`NicError::Unreachable`](super::NicError::Unreachable).
//!
//! A rank [binds a port](crate::datagram::Port::bind), publishes
//! [where it is](crate::datagram::Port::whereabouts) to all others, and makes its [`Networked`] of
//! their publications.

mod config;
mod core;
mod interface;
mod lane;
mod locked;
mod nic;
mod reading;
mod record;
mod service;
#[cfg(test)]
mod tests;

pub use config::NetworkedConfig;
pub use interface::{Networked, Traffic};
