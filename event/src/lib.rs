//! Events: how a client learns that an operation it started is complete.
//!
//! An explicit operation is named by an [`Event`], 64 bits that fit C's `gex_Event_t`: an index of
//! 24 bits (spec P3: it travels in a network's match bits), a kind, and a generation that makes a
//! value that outlived its operation recognizable. [`Event::DONE`] is zero and takes no handle: an
//! operation that is complete when it is started costs nothing here.
//!
//! The [`HandleTable`] holds the state of every operation not yet synchronized. A thread allocates
//! from and frees to its own [`ThreadCache`]; any thread completes. The event that a completion
//! names is checked, because the completion may come from a network: a stale, repeated or invented
//! one is an [`EventError`] and changes nothing.
//!
//! Implicit operations (GASNet's NBI) are counted by [`Category`] in a scope of the thread that
//! starts them, see [`NbiScope`]. An access region is a scope of its own that ends up as one event.
//!
//! ```
//! use argonet_event::{Event, HandleTable, Completion, Completions};
//!
//! let table = HandleTable::new(HandleTable::MAX_OPERATIONS);
//! let cache = table.thread_cache();
//! let put = table.alloc(&cache, Completions::BOTH)?;
//! let source_reusable = table.query_leaf(put, argonet_event::Category::Lc)?;
//! table.complete(put, Completion::Local, 1)?;
//! assert!(table.test(&cache, source_reusable)?);
//! assert!(!table.test(&cache, put)?);
//! table.complete(put, Completion::Remote, 1)?;
//! let mut events = [put, source_reusable];
//! assert!(table.test_all(&cache, &mut events)?);
//! assert_eq!(events, [Event::DONE; 2]);
//! table.retire(cache);
//! # Ok::<(), argonet_event::EventError>(())
//! ```
//!
//! Nothing here waits, polls or reads a clock. Waiting is the engine's, which polls between tests.
//! Where no handle is free, [`ExhaustionPolicy`] decides from times passed in.
#![forbid(unsafe_code)]

mod arena;
mod array;
mod category;
mod error;
mod event;
mod lock;
mod nbi;
mod operation;
mod policy;
mod scope;
mod table;

pub use category::{Category, CategoryMask};
pub use error::{EventError, Exhausted};
pub use event::{Event, NbiToken};
pub use nbi::NbiScope;
pub use operation::{Completion, Completions};
pub use policy::{Decision, ExhaustionPolicy, FatalExhaustion, ThreadMode};
pub use table::{HandleTable, Limits, ThreadCache};
