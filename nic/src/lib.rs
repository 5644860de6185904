//! Network interfaces, which conduits drive.
//!
//! Each kind of interface is a module with a trait that says what the hardware does, and its
//! implementations: one in software, which runs wherever ranks share memory and makes faults on
//! demand, and bindings to libraries that are loaded when a job starts. A conduit is generic over
//! the trait and asks for features, never for the implementation.
//!
//! * [`portals`]: matching interfaces, as of Portals 3.3 and Portals 4.
//! * [`gni`]: mailboxes and one-sided operations, as of Cray's Generic Network Interface.
//! * [`datagram`]: interfaces that lose, repeat and reorder what they carry.
//! * [`fabric`]: libfabric, whose providers drive network cards.
//! * [`rdm`]: messages that arrive once and in order, through libfabric.
//! * [`reliable`]: records over datagrams that may be lost: the base of interfaces in software
//!   between hosts, and of rails.

// Shared code that is unused is found where all of them are built.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("descriptors name memory by 64-bit addresses");

#[cfg(feature = "datagrams")]
pub mod datagram;
mod dropped;
#[cfg(feature = "fabric")]
pub mod fabric;
#[cfg(feature = "gni")]
pub mod gni;
#[cfg(any(feature = "portals", feature = "gni"))]
mod host_file;
#[cfg(feature = "fabric")]
mod incarnation;
#[cfg(any(feature = "portals", feature = "gni"))]
mod place;
#[cfg(feature = "portals")]
pub mod portals;
#[cfg(feature = "fabric")]
pub mod rdm;
#[cfg(feature = "datagrams")]
pub mod reliable;
#[cfg(any(feature = "portals", feature = "gni"))]
mod steps;

pub use dropped::Dropped;
