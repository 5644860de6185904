//! One-sided put and get, active messages, remote procedure calls and collectives for a job of
//! many ranks.
//!
//! Every rank runs the same program and has a *segment* of memory that all ranks can read and
//! write. A [`World`] is the job as one rank sees it:
//!
//! ```
//! use argonet::{Result, SharedArray};
//!
//! argonet::rpc! {
//!     fn square(x: u64) -> u64 { x * x }
//! }
//!
//! fn main() {
//!     argonet::run(|world| -> Result<()> {
//!         let next = world.rank_offset(1);
//!         // An array of four numbers on every rank.
//!         let numbers = SharedArray::<u64>::alloc(world, 4)?;
//!         // Write into the next rank's array, without its help.
//!         world.put_value(numbers.ptr(next, 2), 7)?;
//!         world.barrier()?;
//!         assert_eq!(numbers.read(world, 2), 7);
//!         // Run a function there.
//!         assert_eq!(world.rpc(next, &square, (12,))?.wait()?, 144);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! An error of one rank is printed with its rank and ends the job ([`run()`]). A program that makes
//! its [`World`] itself has to see to that: a rank that leaves while others wait for it only ends
//! the job with the news that it has left.
//!
//! Run it alone and it is a job of one rank; `GASNET_PSHM_NODES=4 ./program` makes four ranks on
//! this host, `argonet run -n 4 ./program` does the same from a launcher. Ranks that are joined by
//! the conduit tcp a program starts itself, too: `ARGONET_CONDUIT=tcp ./program 4 arguments` starts
//! four on this host, whose arguments lack the first, and with `GASNET_SPAWNFN=S` or `C` they are
//! on the hosts of `GASNET_SSH_SERVERS` or `GASNET_CSPAWN_SERVERS`. The process that was started is
//! their launcher: its [`run()`] or [`World::init`] does not return, so code before that, such as a
//! look at the arguments, runs in the launcher, too.
//!
//! # Soundness
//!
//! No safe call can cause a data race that is undefined behavior, a dangling buffer or an invalid
//! value. Types in global memory are bounded by [`Global`]: every bit pattern is valid. Access to
//! it is by copy or atomic, so a race may tear a value but is not undefined; a slice exists only
//! inside [`World::quiet`], when no rank can communicate. An operation owns its buffer until it is
//! complete, or borrows it inside [`World::scope`]. Calls that cannot be safe are in [`raw`], each
//! with the promises that its caller makes.
//!
//! # Completion
//!
//! An operation is complete *locally* when its source may be written again, and *remotely* when the
//! bytes are at the target. A blocking put, get or atomic operation is complete both ways when it
//! returns; a started one when its [`Op`] has returned, or its [`Scope`] has ended. There is no
//! order between operations under way. Another rank sees a put after both have synchronized: the
//! writer completes it, then both enter a barrier, or the writer sends a message.
//!
//! The documentation of a call that may wait says so; such a call polls, so handlers run in it.
//! Lengths and indices count elements, offsets and sizes count bytes.
//!
//! # Progress
//!
//! Handlers of active messages and remote procedure calls run while their rank is inside a
//! blocking call of this library or in [`World::poll`]; those that may communicate ([`RpcContext`])
//! run after them. Put, get and atomic operations between
//! ranks that share memory need no help from the target; over a network its polls do them, or a
//! thread of its process where the conduit has one.
//!
//! # Threads
//!
//! [`World`] belongs to one thread. [`World<Par>`](Par) may be used from many at once.
//!
//! # Features
//!
//! `portals`, `usnic`, `gni` and `ofi`, on by default, compile the conduits of these names; smp and
//! tcp are in every program. `encrypt` compiles the ciphers of datagrams. `test` has the attribute
//! `argonet::test`, for tests on several ranks.
#![deny(unsafe_code)]

mod aggregator;
mod am;
mod atomics;
mod auto_traits;
#[cfg(doctest)]
mod book;
mod bounded;
mod builder;
mod collectives;
mod dist_object;
pub mod engine;
mod error;
mod global;
mod global_array;
mod global_ref;
mod global_slice;
mod heap;
mod instances;
mod limits;
mod op;
mod payload;
mod process;
mod progress;
mod quiet;
pub mod raw;
mod registry;
mod rma;
mod rpc;
mod run;
mod scope;
mod section;
mod shared_array;
mod signal;
mod tasks;
mod team;
#[cfg(feature = "test")]
mod testing;
mod token;
mod vis;
mod world;

pub use aggregator::Aggregator;
pub use am::{Am, AmArguments, AmContext, OneValue, SeveralValues};
pub use argonet_am::{AmError, CLIENT_BASE, MAX_ARGS, MAX_MEDIUM};
pub use argonet_base::{HandlerIndex, JobRank, Rank, SegmentOffset};
pub use argonet_boot::{BootError, print_backtrace};
pub use argonet_engine::WaitMode;
pub use argonet_segment::{OutOfRange, SegmentError};
pub use argonet_settings::{BadValue, SettingsError};
pub use argonet_start::StartError;
pub use atomics::{Atomic, AtomicInteger, AtomicOp};
pub use bounded::{MAX_RPC_DEPTH, MAX_RPC_ELEMENTS};
pub use builder::Builder;
pub use collectives::{Blocks, Collectives, Reducible, Reduction};
pub use dist_object::DistObject;
pub use error::{Error, Result};
pub use global::{Global, GlobalPtr};
pub use global_array::{
    Distribution, DistributionError, GlobalArray, LocalView, LocalViewMut, Region, Spread,
};
pub use global_ref::GlobalRef;
pub use global_slice::GlobalSlice;
pub use instances::InstanceIn;
pub use limits::Limits;
pub use op::Op;
pub use payload::Payload;
pub use process::exit;
pub use quiet::Quiet;
pub use rpc::{
    ObjectContext, Rpc, RpcAggregator, RpcContext, RpcError, RpcOn, Status as RpcStatus, caller,
};
pub use run::run;
pub use scope::Scope;
pub use section::{Section, SectionError};
pub use shared_array::SharedArray;
pub use signal::Signal;
pub use tasks::Tasks;
pub use team::Team;
#[cfg(feature = "test")]
pub use testing::test;
pub use world::{Par, Seq, Threading, World};
/// The crate whose derives make a type [`Global`]; see the example there.
#[doc(no_inline)]
pub use zerocopy;

/// For the expansion of macros.
///
/// Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use crate::registry::{register_am, register_rpc};
    pub use crate::rpc::{Arrived, RpcEntry, Run};
    #[cfg(feature = "test")]
    pub use crate::testing::{Outcome, Test, run_test};
    pub use ctor;
}
