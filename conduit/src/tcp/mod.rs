//! TCP: how ranks on different hosts reach each other over ordinary networks.
//!
//! Two ranks that use each other have a connection, over which each sends a stream of frames (`frame`). What a peer has not
//! taken is kept and written again when another connection had to be made (`lane`), so that every message is handled
//! once. Taking a put completes it; a get is a request that the target's poll answers. Nothing is read
//! or written outside of calls of the rank itself, but for what was gathered in a burst, which a thread sends when no call
//! comes (`helper`).
//!
//! Who makes connections and proves ranks is behind [`Connector`].

mod bits;
mod conduit;
mod config;
mod connector;
mod core;
mod frame;
mod helper;
pub mod join;
mod lane;
mod operations;
mod peer;
mod poll;
mod visit;
mod wait;
mod wire;

pub use conduit::Tcp;
pub use config::{TcpConfig, TcpSizeError, TcpSizes};
pub use connector::{Connection, Connector, Made};
