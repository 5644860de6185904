//! How ranks reach each other: the [`Conduit`] trait and the conduits behind it.
//!
//! A conduit moves active messages in two classes and, where it can, puts and gets. It owns its
//! peers' state and nothing else: no handler table, no events; settings of users come as values.
//! [`smp`] is the one for ranks that share memory, [`tcp`] the one for ranks on different hosts,
//! [`portals`] the one over matching interfaces; [`selector`] joins shared memory with one of the
//! others. [`channel`] makes active messages out of rails between ranks that share no memory;
//! [`usnic`] has rails of datagrams, [`gni`] of mailboxes, [`ofi`] of messages, and [`failover`]
//! joins rails of several kinds. [`wire`] has the parts that conduits over a wire share.
//!
//! Features `portals`, `usnic`, `gni` and `ofi`, which are on by default, build the conduits of
//! these names.

// Shared code that is unused is found where all of them are built.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

#[cfg(not(loom))]
mod attendant;
#[cfg(not(loom))]
pub mod channel;
#[cfg(not(loom))]
mod conduit;
#[cfg(not(loom))]
mod connections;
#[cfg(not(loom))]
mod credit_settings;
#[cfg(not(loom))]
mod datagrams;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod exit;
#[cfg(not(loom))]
pub mod failover;
#[cfg(not(loom))]
mod gauges;
#[cfg(all(not(loom), feature = "gni"))]
pub mod gni;
#[cfg(not(loom))]
mod keyed;
mod ledger;
#[cfg(all(not(loom), feature = "ofi"))]
pub mod ofi;
#[cfg(not(loom))]
mod owned;
#[cfg(not(loom))]
mod peers;
#[cfg(all(not(loom), feature = "portals"))]
pub mod portals;
#[cfg(not(loom))]
mod prepared_buffers;
#[cfg(not(loom))]
pub mod selector;
#[cfg(not(loom))]
mod shown_bank;
#[cfg(not(loom))]
mod sleepers;
pub mod smp;
#[cfg(not(loom))]
mod system_queue;
#[cfg(not(loom))]
pub mod tcp;
#[cfg(not(loom))]
mod threads;
#[cfg(all(not(loom), feature = "usnic"))]
pub mod usnic;
#[cfg(not(loom))]
pub mod wire;
#[cfg(not(loom))]
mod words;

#[cfg(not(loom))]
pub use conduit::{
    Capabilities, Completion, Conduit, Injected, Limits, OpToken, PrepareRequest, Prepared,
    SMALL_PUT, SegmentLen, SendError, Sink,
};
#[cfg(not(loom))]
pub use connections::{CONNECTIONS_FILE_NAME, Connections, GateCounts};
#[cfg(not(loom))]
pub use datagrams::{DATAGRAMS_FILE_NAME, Datagrams};
#[cfg(not(loom))]
pub use descriptor::{DESCRIPTORS, Descriptor, Facts};
#[cfg(not(loom))]
pub use exit::{ExitCounts, ExitReport, HearExit};
#[cfg(not(loom))]
pub use gauges::{CREDITS_FILE_NAME, CreditReport, Gauges, PeerCredits};
pub use ledger::{ClassLedger, Held, PeerLedger};
#[cfg(not(loom))]
pub use smp::cells::{Entry, SharedCells};
#[cfg(not(loom))]
pub use threads::ThreadMode;
