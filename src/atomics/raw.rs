//! Atomic operations of the raw layer: with events, and implicit.
#![allow(unsafe_code)]

use super::{Atomic, AtomicOp};
use crate::error::Result;
use crate::global::GlobalPtr;
use crate::process;
use crate::raw::Raw;
use crate::world::{Threading, World};
use argonet_engine::Injection;
use argonet_event::Event;

impl<M: Threading> Raw<'_, M> {
    /// Starts an atomic operation; [`Event::DONE`] if it is complete already.
    ///
    /// When the event is, the value before is at `result`; without one nothing is fetched.
    ///
    /// ```
    /// use argonet::raw::{Category, Injection};
    /// use argonet::{AtomicOp, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let raw = world.raw();
    /// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let p = v.ptr(world.rank(), 0);
    /// let mut before = 0;
    /// // SAFETY: the variable lives until the operations are complete.
    /// unsafe {
    ///     let event = raw.start_atomic(p, AtomicOp::add(3), None, Injection::Blocking).unwrap();
    ///     raw.wait(event).unwrap();
    ///     let result = Some(&raw mut before);
    ///     raw.start_atomic_implicit(p, AtomicOp::mul(5), result, Injection::Blocking).unwrap();
    ///     raw.wait_implicit(Category::Rmw.mask()).unwrap();
    /// }
    /// assert_eq!((before, world.atomic_load(p).unwrap()), (3, 15));
    /// ```
    ///
    /// # Safety
    /// The place of the result is writable until the event is complete.
    ///
    /// # Errors
    /// As [`World::fetch_add`](crate::World::fetch_add); with [`Injection::Immediate`] also that
    /// there is no room or no handle.
    pub unsafe fn start_atomic<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        op: AtomicOp<T>,
        result: Option<*mut T>,
        injection: Injection,
    ) -> Result<Event> {
        let (what, place) = asked(op, result);
        let (engine, target) = (self.world().engine(), World::<M>::target_of(at));
        // SAFETY: the caller's promise.
        Ok(process::with(|ctx| unsafe {
            engine.atomic_start(ctx, target, what, place, injection)
        })?)
    }

    /// Starts an implicit atomic operation, which [`wait_implicit`](Self::wait_implicit) waits for,
    /// or the event of the access region around it: [`AtomicOp::set`] without a result in the
    /// category of puts, [`AtomicOp::get`] in that of gets, any other as
    /// [`Category::Rmw`](argonet_event::Category::Rmw).
    ///
    /// See the example of [`start_atomic`](Self::start_atomic).
    ///
    /// # Safety
    /// As [`start_atomic`](Self::start_atomic), until that says that it is complete.
    ///
    /// # Errors
    /// As [`start_atomic`](Self::start_atomic).
    pub unsafe fn start_atomic_implicit<T: Atomic>(
        &self,
        at: GlobalPtr<T>,
        op: AtomicOp<T>,
        result: Option<*mut T>,
        injection: Injection,
    ) -> Result<()> {
        let (what, place) = asked(op, result);
        let (engine, target) = (self.world().engine(), World::<M>::target_of(at));
        // SAFETY: the caller's promise.
        process::with(|ctx| unsafe {
            engine.atomic_start_implicit(ctx, target, what, place, injection)
        })?;
        Ok(())
    }
}

/// The operation, fetching if its result is wanted.
fn asked<T: Atomic>(
    op: AtomicOp<T>,
    result: Option<*mut T>,
) -> (argonet_engine::Atomic<T>, *mut T) {
    match result {
        Some(place) => (op.fetching(), place),
        None => (op.plain(), core::ptr::null_mut()),
    }
}
