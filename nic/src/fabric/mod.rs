//! libfabric, through a library that is loaded when a job starts.
//!
//! No package of ours is linked with it: [`Library::open`] looks for it at run time, and no header
//! is needed. Its providers drive network cards, or the sockets of the system.
//!
//! * `abi` has its structures and constants, with sizes and offsets that are compared when this
//!   crate is compiled;
//! * `offer` lists what providers offer, and chooses;
//! * `object` makes and closes its objects, and calls their functions;
//! * `messages` has an endpoint with its `buffers`, and [`Sleep`] waits for what comes.
//!
//! What a program does with it stands elsewhere: [`datagram`](crate::datagram) sends datagrams
//! through it, [`rdm`](crate::rdm) messages that arrive once and in order.

pub(crate) mod abi;
mod address;
mod buffers;
mod error;
mod library;
pub(crate) mod messages;
pub(crate) mod object;
pub(crate) mod offer;
mod sleep;

pub use address::{FabricAddress, NoFabricAddress};
pub(crate) use buffers::Places;
pub use error::{FabricError, Version};
pub use library::Library;
pub use sleep::Sleep;

/// Whether addresses of this format are those of the Internet.
pub(crate) fn is_internet(format: u32) -> bool {
    [abi::SOCKADDR, abi::SOCKADDR_IN, abi::SOCKADDR_IN6].contains(&format)
}

#[cfg(test)]
pub(crate) mod tests;
