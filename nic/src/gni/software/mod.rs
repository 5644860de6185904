//! An interface with mailboxes and one-sided operations, in memory that the ranks of a host share.
//!
//! The interfaces of a host lie in one file: registrations, events, datagrams, and buffers. The
//! initiator of an operation carries it out, as the hardware would, so the target need not call
//! anything. No process takes a lock that another waits for: one that is killed at any moment
//! blocks none, and leaves nothing to mend.
//!
//! [`FaultRules`] make it fail on demand.

mod config;
mod datagram;
mod endpoint;
mod faults;
mod layout;
mod mailbox;
mod memory;
mod nic;
mod post;
mod queue;
mod region;
mod ring;
mod shared;
mod sleep;
#[cfg(test)]
mod tests;

pub use config::SoftwareConfig;
pub use endpoint::Endpoint;
pub use faults::FaultRules;
pub use mailbox::mailbox_bytes;
pub use nic::Software;
pub use queue::Queue;
