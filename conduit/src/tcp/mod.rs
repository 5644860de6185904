//! TCP: how ranks on different hosts reach each other over ordinary networks.
//!
//! Two ranks that use each other have a connection, over which each sends a stream of frames
//! ([`channel`](crate::channel)). What a peer has not taken is kept and written again when another
//! connection had to be made, so that every message is handled once. Taking a put completes it; a
//! get is a request that the target's poll answers. Nothing is read or written outside of calls of
//! the rank itself, but for what was gathered in a burst, which a thread sends when no call comes
//! (`helper`), and what another thread serves, where there is one, while the rank computes
//! (`progress`).
//!
//! Who makes connections and proves ranks is behind [`Connector`].

mod bits;
mod conduit;
mod config;
mod connections;
mod connector;
mod core;
mod flush;
mod helper;
pub mod join;
mod loans;
mod peer;
mod poll;
mod progress;
mod quick;
mod rails;
mod readiness;
mod send;
mod serve;
mod silence;
mod striping;
mod system;
#[cfg(test)]
mod tests;
mod visit;
mod vitals;
mod wait;
mod wire;

pub use conduit::Tcp;
pub use config::{TcpConfig, TcpSizeError, TcpSizes};
pub use connections::{CONNECTIONS_FILE_NAME, Connections};
pub use connector::{Connection, Connector, Made};
pub use progress::progress_by_default;
