//! When to connect to a peer, where to, and when to give up.
//!
//! A [`Peer`] is the machine of one peer. It owns no socket, clock or source of chance: it takes
//! times, outcomes of attempts, and connections that the peer has made, and says what to do next.
//!
//! | verb | |
//! | --- | --- |
//! | [`Peer::ask`] | a connection is wanted |
//! | [`Peer::poll_action`] | yields what to do: connect, abandon, give up |
//! | [`Peer::poll_timeout`] | yields when `poll_action` must be called next |
//! | [`Peer::reached`], [`Peer::joined`], [`Peer::failed`] | what became of an attempt |
//! | [`Peer::incoming`] | the peer has connected, and proved who it is; yields the answer |
//! | [`Peer::lost`], [`Peer::close`] | a connection has broken, or is not wanted any more |
//!
//! * **On demand**: nothing happens before `ask` or `incoming`, and a peer that was never used
//!   takes one word. Connections of a number above 0 are made when they are asked for, no sooner.
//! * **Addresses** are tried in turn. When all have failed there is a pause, which doubles and has
//!   chance in it. The peer is given up when that has gone on for [`DialConfig::unreachable_ns`],
//!   or when each address has had its tries.
//! * **A peer that does not poll** is not unreachable: its kernel takes the connection, and no
//!   process answers. Such an attempt is made anew after a while, at the next address, and does not
//!   bring the end nearer.
//! * **A rank that does not poll itself** learns late of events. Time for which it did not look
//!   does not count.
//! * **Crossing**: when both connect at the same time, the connection that the higher rank makes
//!   stays. It refuses the other only while its own is about to be answered, so that a rank that
//!   can be reached in one direction alone is reached.
//! * **Incarnations** number the connections of one number between two ranks. An accepted one is
//!   higher than all before it, at both ends; one that is not is refused as stale, so that no
//!   connection of the past is taken for the present one.

// spec T1: on demand, several addresses and connections, crossing ones settled by rank, bounded
// retries.
mod connection;
mod error;
mod peer;
#[cfg(test)]
mod tests;

pub use error::{Failure, Tried, Unreachable};
pub use peer::{Action, Attempt, Decision, Pair, Peer};

/// Connections between two ranks at most: as many as can be set.
pub const MAX_CONNECTIONS: u16 = argonet_settings::MAX_TCP_CONNECTIONS as u16;

/// Times and numbers of the dialling machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DialConfig {
    /// How often one address is tried, at least once.
    pub tries_per_address: u32,
    /// The pause after the first round of addresses, ns; the later ones double.
    pub first_pause_ns: u64,
    /// The longest pause, ns.
    pub longest_pause_ns: u64,
    /// How long one attempt waits for the peer's kernel, ns.
    pub connect_ns: u64,
    /// How long one attempt waits for the peer's answer, ns.
    pub answer_ns: u64,
    /// How long a rank that has learned of a crossing, or the lower one of two that have lost
    /// their connection, waits for the other to connect, ns.
    pub courtesy_ns: u64,
    /// How long a peer may be unreachable, ns.
    pub unreachable_ns: u64,
}

impl Default for DialConfig {
    fn default() -> Self {
        Self {
            tries_per_address: 64,
            first_pause_ns: 5_000_000,
            longest_pause_ns: 1_000_000_000,
            connect_ns: 2_000_000_000,
            answer_ns: 10_000_000_000,
            courtesy_ns: 500_000_000,
            unreachable_ns: 30_000_000_000,
        }
    }
}
