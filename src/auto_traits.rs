//! Which types go to other threads, and which are shared with them.
//!
//! The compiler derives `Send` and `Sync` from fields, so a changed field could change them
//! unnoticed.

use crate::collectives::Collectives;
use crate::op::Op;
use crate::raw::{Event, PreparedPayload, Raw, Token};
use crate::scope::Scope;
use crate::world::{Par, Seq, World};
use crate::{
    Aggregator, Am, AmContext, AmError, AtomicOp, BadValue, Blocks, BootError, Builder, DistObject,
    Distribution, DistributionError, Error, GlobalArray, GlobalPtr, GlobalRef, GlobalSlice, Limits,
    LocalView, LocalViewMut, ObjectContext, OutOfRange, Payload, Quiet, Rank, Reduction, Rpc,
    RpcAggregator, RpcContext, RpcError, RpcOn, Section, SectionError, SegmentError, SettingsError,
    SharedArray, Signal, Spread, StartError, Tasks, Team,
};
use argonet_engine::ThreadCtx;
use core::cell::Cell;
use core::future::Future;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::rc::Rc;

// A `World<Seq>`, and each value that calls through it, stays on the thread that made it.
assert_not_impl_any!(World<Seq>: Send, Sync);
assert_not_impl_any!(Raw<'static, Seq>: Send, Sync);
assert_not_impl_any!(Collectives<'static, Seq>: Send, Sync);
assert_not_impl_any!(Aggregator<'static, u64, Seq>: Send, Sync);
assert_not_impl_any!(Aggregator<'static, u64, Par>: Send, Sync);
assert_not_impl_any!(RpcAggregator<'static, Seq>: Send, Sync);
assert_not_impl_any!(RpcAggregator<'static, Par>: Send, Sync);
assert_not_impl_any!(Tasks<'static, u64, Seq>: Send, Sync);
assert_not_impl_any!(Tasks<'static, u64, Par>: Send, Sync);
assert_not_impl_any!(DistObject<u64, Seq>: Send, Sync);
assert_impl_all!(DistObject<u64, Par>: Send, Sync);
assert_not_impl_any!(RpcContext<'static>: Send, Sync);
assert_not_impl_any!(ObjectContext<'static, u64>: Send, Sync);
assert_impl_all!(World<Par>: Send, Sync);
assert_impl_all!(GlobalRef<'static, u64>: Send, Sync);
assert_impl_all!(Raw<'static, Par>: Send, Sync);
assert_impl_all!(Collectives<'static, Par>: Send, Sync);

// Values that name memory or ranks, and communicate by a world that they are given.
assert_impl_all!(Team: Send, Sync);
assert_impl_all!(SharedArray<u64>: Send, Sync);
assert_impl_all!(GlobalArray<u64, 2>: Send, Sync);

// Values that say what an operation is to do, or that it is under way.
assert_impl_all!(GlobalPtr<u64>: Send, Sync);
assert_impl_all!(GlobalSlice<u64>: Send, Sync);
assert_impl_all!(Section: Send, Sync);
assert_impl_all!(Distribution<2>: Send, Sync);
assert_impl_all!(Spread: Send, Sync);
assert_impl_all!(AtomicOp<u64>: Send, Sync);
assert_impl_all!(Reduction: Send, Sync);
assert_impl_all!(Blocks<u64>: Send, Sync);
assert_impl_all!(Limits: Send, Sync);
assert_impl_all!(Event: Send, Sync);
assert_impl_all!(Signal: Send, Sync);

// Statics, by which any thread calls and sends; they have nothing of the types that they name.
assert_impl_all!(Am<u64>: Send, Sync);
assert_impl_all!(Rpc<(u64,), Cell<u8>>: Send, Sync);
assert_impl_all!(RpcOn<Cell<u8>, (u64,), Cell<u8>>: Send, Sync);

// A thread may return it, and `Box<dyn Error + Send + Sync>` hold it.
assert_impl_all!(Error: Send, Sync);
assert_impl_all!(DistributionError: Send, Sync);
assert_impl_all!(AmError: Send, Sync);
assert_impl_all!(BadValue: Send, Sync);
assert_impl_all!(BootError: Send, Sync);
assert_impl_all!(OutOfRange: Send, Sync);
assert_impl_all!(RpcError: Send, Sync);
assert_impl_all!(SectionError: Send, Sync);
assert_impl_all!(SegmentError: Send, Sync);
assert_impl_all!(SettingsError: Send, Sync);
assert_impl_all!(StartError: Send, Sync);

// A process joins its job before it has a second thread.
assert_not_impl_any!(Builder: Send);

// Slices of shared memory are lent by the thread that is in the quiet phase.
assert_impl_all!(Quiet: Send, Sync);
assert_impl_all!(LocalView<'static, u64, 2>: Send, Sync);
assert_impl_all!(LocalViewMut<'static, u64, 2>: Send, Sync);

// Operations go where their world is used.
assert_not_impl_any!(Op<'static, Box<[u8]>>: Send, Sync);
assert_not_impl_any!(Op<'static, Rank>: Send, Sync);
assert_impl_all!(Op<'static, Box<[u8]>, Par>: Send, Future);
assert_impl_all!(Op<'static, Vec<Rank>, Par>: Send, Future);
assert_not_impl_any!(Op<'static, Box<[u8]>, Par>: Sync);
assert_not_impl_any!(Op<'static, Rc<u8>, Par>: Send);
// A scope's buffers are borrowed until the thread that began it has waited.
assert_not_impl_any!(Scope<'static, 'static, Seq>: Send, Sync);
assert_not_impl_any!(Scope<'static, 'static, Par>: Send, Sync);
assert_not_impl_any!(PreparedPayload<'static>: Send, Sync);
assert_not_impl_any!(ThreadCtx: Sync);

// Any thread may read the bytes of a message while its handler runs.
assert_impl_all!(Payload<'static>: Send, Sync);

// A handler replies on the thread that runs it.
assert_not_impl_any!(AmContext<'static, 'static>: Send, Sync);
assert_not_impl_any!(Token<'static, 'static>: Send, Sync);
