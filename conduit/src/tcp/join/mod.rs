//! How two ranks get a connection that both can trust.
//!
//! A rank listens on the interfaces that the job uses ([`interfaces`]), and connects to a peer when
//! a caller asks for that ([`dial`]). A rank that connects proves first that it holds the job's
//! key, and so does the rank that accepts ([`handshake`]); until then it is a stranger, of whom
//! there are few at a time and none for long ([`gate`]). None of these four owns a socket or a
//! clock. [`Joiner`] drives them over sockets that do not block, and hands out those that are ready
//! for frames; [`JoinService`] is a joiner for several threads, with a clock, and [`Joining`] hands
//! its connections to the conduit.
//!
//! docs/security.md says which attacks this prevents, and which not.

mod adapter;
mod addresses;
mod connector;
pub mod dial;
mod exchange;
pub mod gate;
pub mod handshake;
pub mod interfaces;
mod joiner;
mod key;
mod listen;
mod ports;
mod service;
mod settings;
#[cfg(test)]
mod tests;
mod user;
mod wait;

pub use adapter::Joining;
pub use addresses::{read_addresses, write_addresses};
pub use handshake::{Handshake, Hello, Progress, Refused, Verdict};
pub use joiner::Joiner;
pub use key::{JobKey, KEY_BYTES, KeyError};
pub use listen::ListenError;
pub use ports::{PortsError, parse_ports};
pub use service::{Directory, JoinService, Made, OwnInterfaces};
pub(crate) use settings::listens_on;
pub use settings::{JoinSettingsError, from_settings};
pub use user::{JoinConfig, JoinError, JoinUser, Joined, Whereabouts};
pub use wait::Place;
