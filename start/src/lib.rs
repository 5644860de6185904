//! Joining a job: opens the network that the settings name, maps segments, and makes the engine of
//! a rank.
//!
//! The crate is not for programs, which have `argonet::World`, and promises no stability. The Rust
//! API (`argonet`), the C API (`argonet-capi`) and the `argonet` command use it.
//!
//! An engine is a value over any conduit, and a process may have many. A rank has one, over the
//! conduits that its settings name, and a process is a rank once. This crate holds that state of
//! the process, above the engine and below both APIs.
//!
//! Joining takes `unsafe`: the caller keeps the [contract of the engine](argonet_engine#contract).
#![deny(unsafe_code)]
// Shared code that is unused is found where all of them are built.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

mod error;
mod join;
mod network;
mod networks;
mod placement;
mod plan;
mod process;
mod published;
mod settings;
mod tracing;
mod tuning;

pub use error::{Result, StartError};
pub use join::{Joined, Joining, expect_threads, join, launch_if_alone, with_thread};
pub use placement::Placement;
pub use plan::{Plan, segment_request};
pub use published::Published;
