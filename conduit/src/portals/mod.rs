//! Ranks that reach each other through matching interfaces (Portals).
//!
//! Each transfer is a put or a get of an [`Interface`](argonet_nic::portals::Portals) into an entry
//! of the target, and three event queues report what has happened. docs/portals.md says how it
//! works; the items of the protocol text that it follows are marked `spec P`.
//!
//! * Puts and gets go to the entry over the segment and need nothing of the target.
//! * A request is put behind the last one into a receive buffer of the target, with its handler and
//!   arguments in match bits, immediate data and a chunk of its own. The reply is put into that
//!   chunk.
//! * Payloads that do not fit a chunk are puts of their own, of longs to their place, of mediums
//!   into buffers for those; both halves meet at the target.
//! * Requests are paid for with [credits](argonet_am::credit). Requests that still overflow are
//!   pushed back and sent again.

mod account;
mod again;
mod arrivals;
mod assembly;
mod chunks;
mod conduit;
mod config;
mod core;
mod descriptor;
mod halves;
mod large;
mod negotiated;
mod operations;
mod peer;
mod poll;
mod portals4;
mod remote;
mod replies;
mod reply;
mod requests;
mod resources;
mod roles;
mod segment;
mod send;
mod settings;
mod setup;
mod slots;
mod software;
mod stock;
mod system;
#[cfg(test)]
mod tests;
mod wire;

pub use self::core::{Portals, PortalsError};
pub use account::{InUse, Lent};
pub use conduit::{CAPABILITIES, NAME};
pub use config::{Buffers, CHUNK_BYTES, PortalsConfig, PortalsSizes, SHORTEST_MESSAGE};
pub use descriptor::DESCRIPTOR;
pub use portals4::portals4_config;
pub use send::LIMITS;
pub use settings::Accelerated;
pub use software::software_config;
