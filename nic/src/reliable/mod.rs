//! Records between ranks over datagrams that may be lost, repeated, reordered or forged.
//!
//! [`Endpoint`] is the machine of one rank for all of its peers. Each pair of ranks has two
//! [channels](Channel), one for commands and one for data, and on each a stream of *records* in
//! each direction, one a datagram; every record arrives exactly once and in the order of its
//! channel, or the peer is reported lost ([`PeerUnreachable`]). It knows nothing of the contents of
//! records. It has no socket and no clock: a driver gives it datagrams and the time (since any
//! beginning), and takes from it the datagrams to send.
//!
//! | verb | what for |
//! | --- | --- |
//! | [`submit`](Endpoint::submit) | a record for a channel of a peer, if the window has [`room`](Endpoint::room) |
//! | [`handle_recv`](Endpoint::handle_recv), [`take`](Endpoint::take) | a datagram that has come; records that came before their turn |
//! | [`poll_transmit`](Endpoint::poll_transmit), [`poll_transmit_prompt`](Endpoint::poll_transmit_prompt) | the next datagram to send |
//! | [`poll_timeout`](Endpoint::poll_timeout), [`handle_timeout`](Endpoint::handle_timeout) | when to come back, and to have come |
//! | [`poll_event`](Endpoint::poll_event) | peers that were lost |
//! | [`flush`](Endpoint::flush), [`leave`](Endpoint::leave) | before the driver ends |
//! | [`watch`](Endpoint::watch) | asks a silent peer now and then whether it lives |
//! | [`ask`](Endpoint::ask), [`path`](Endpoint::path) | whether datagrams pass between a peer and this rank |
//!
//! * Lost records are sent first, then commands, then data; peers take turns. Records of one
//!   channel overtake those of the other, and say nothing about their loss.
//! * Acknowledgements are cumulative for both channels and selective for that of the datagram, and
//!   ride on every datagram; alone they wait a little for company.
//! * A loss is found by later datagrams of the channel that arrived (three of them), or by a timer
//!   after measured round trips (RFC 6298), which doubles.
//! * A channel's window counts bytes: it grows with acknowledgements up to a limit and shrinks with
//!   losses (RFC 5681), and has at most 4,096 datagrams. Early records are kept up to the same
//!   limits. Memory follows what is in flight.
//! * Datagrams begin short. With a peer to which records of full length go, longer ones are
//!   [tried](ReliableConfig::longer_datagrams), each of which it answers (RFC 8899). Where long
//!   ones are lost again and again, records in flight go in chunks, and later ones are short.
//! * Each datagram says whether its sender has got one of the target, so that both ends learn of a
//!   path that is one-way. A peer that was never heard, and a length that never arrived, are given
//!   up sooner than a peer that has answered before ([`PathFault`]).
//! * A rank that ends says so ([`leave`](Endpoint::leave)), so that peers which end, too, do not
//!   wait for acknowledgements that no peer sends.
//! * A datagram names the incarnations of both ranks, numbers that cannot be guessed, so those of
//!   other jobs are dropped; with a [`Seal`] each has a code by a secret of the job, too, and a
//!   number of its own: forged and replayed ones are dropped. A seal may encrypt records.
//! * A peer that was never used costs a few bytes of a table.

mod channel;
#[cfg(feature = "encrypt")]
mod cipher;
mod config;
mod congestion;
mod counts;
mod datagram;
mod endpoint;
mod error;
mod fault;
mod link;
mod mtu;
mod path;
mod pool;
mod ready;
mod receiver;
mod replays;
mod rtt;
mod seal;
mod sender;
mod seq;
mod sequence;
#[cfg(test)]
mod tests;
mod timers;

pub use channel::Channel;
pub use config::{FIRST_DATAGRAM_BYTES, ReliableConfig};
pub use counts::Counts;
pub use datagram::{FORMAT, HEADER_BYTES, SEAL_BYTES};
pub use endpoint::{Arrived, Endpoint, IDLE_PEER_BYTES, Transmit};
pub use error::{PeerUnreachable, ReliableError};
pub use fault::{BadPath, PathEnd, PathFault};
pub use path::PathState;
pub use pool::Record;
pub use seal::Seal;
