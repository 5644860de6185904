//! Operations on borrowed buffers.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::process;
use crate::world::{Seq, Threading, World};
use argonet_engine::{Side, Transfer};
use core::cell::Cell;
use core::marker::PhantomData;

/// Starts operations on buffers that outlive it; see the example of [`World::scope`].
///
/// It stays on its thread.
pub struct Scope<'scope, 'env: 'scope, M: Threading = Seq> {
    world: &'scope World<M>,
    started: &'scope Cell<bool>,
    _scope: PhantomData<Cell<&'scope ()>>,
    _env: PhantomData<Cell<&'env ()>>,
}

impl<M: Threading> World<M> {
    /// Runs `f`, which may start puts and gets on borrowed buffers; all are complete when this
    /// returns.
    ///
    /// Its end waits for them, polling. Then the bytes of puts are at their targets, and those of
    /// gets are here.
    ///
    /// A scope whose end cannot wait for those under way ends the job, as it cannot know when the
    /// buffers are free: one that ends, be it by a panic, while the thread holds a
    /// [`PreparedPayload`](crate::raw::PreparedPayload).
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 8).unwrap();
    /// let (source, mut target) = ([1u64; 4], [0u64; 4]);
    /// let next = world.rank_offset(1);
    /// world.scope(|s| {
    ///     s.put(v.on(next).part(0..4), &source)?;
    ///     s.get(v.on(next).part(4..8), &mut target)
    /// }).unwrap();
    /// ```
    ///
    /// A buffer that dies inside is refused, and so are two gets into one buffer:
    ///
    /// ```compile_fail,E0597
    /// # use argonet::{GlobalSlice, World};
    /// # fn f(world: &World, p: GlobalSlice<u64>) {
    /// world.scope(|s| { let b = [1u64]; s.put(p, &b) }).unwrap();
    /// # }
    /// ```
    /// ```compile_fail,E0499
    /// # use argonet::{GlobalSlice, World};
    /// # fn f(world: &World, p: GlobalSlice<u64>) {
    /// let mut b = [1u64];
    /// world.scope(|s| { s.get(p, &mut b)?; s.get(p, &mut b) }).unwrap();
    /// # }
    /// ```
    pub fn scope<'env, R>(&self, f: impl for<'s> FnOnce(&'s Scope<'s, 'env, M>) -> R) -> R {
        let started = Cell::new(false);
        let _end = End {
            world: self,
            started: &started,
        };
        let scope = Scope {
            world: self,
            started: &started,
            _scope: PhantomData,
            _env: PhantomData,
        };
        f(&scope)
    }
}

/// The end of a scope, be it by a panic.
struct End<'a, M: Threading> {
    world: &'a World<M>,
    started: &'a Cell<bool>,
}

impl<M: Threading> Drop for End<'_, M> {
    fn drop(&mut self) {
        if !self.started.get() {
            return;
        }
        let engine = self.world.engine();
        if let Err(error) = process::with(|ctx| engine.wait_outside(ctx)) {
            // To return would give the buffers back while operations still read and write them.
            engine.fatal(&format!(
                "World::scope ends and cannot wait for the puts and gets that it has started: {error}"
            ));
        }
    }
}

impl<'scope, 'env, M: Threading> Scope<'scope, 'env, M> {
    pub(crate) fn world(&self) -> &'scope World<M> {
        self.world
    }

    /// Starts writing a slice, which is at the target when the scope has ended.
    ///
    /// Waits, polling, only while there is no room to start it.
    ///
    /// See the example of [`World::scope`].
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub fn put<T: Global>(&'scope self, to: GlobalSlice<T>, values: &'env [T]) -> Result<()> {
        to.check_len(values.len())?;
        let transfer = World::<M>::transfer_of(to, Side::Put(values.as_ptr().cast()));
        // SAFETY: `check_len` has found the slice to be as long as the transfer; it is readable
        // until the scope has ended.
        unsafe { self.start(transfer) }
    }

    /// Starts reading into a slice, which belongs to the scope until its end.
    ///
    /// Waits, polling, only while there is no room to start it.
    ///
    /// See the example of [`World::scope`].
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub fn get<T: Global>(&'scope self, from: GlobalSlice<T>, values: &'env mut [T]) -> Result<()> {
        from.check_len(values.len())?;
        let transfer = World::<M>::transfer_of(from, Side::Get(values.as_mut_ptr().cast()));
        // SAFETY: `check_len` has found the slice to be as long as the transfer; it is writable,
        // and no other code uses it until the scope has ended; any bytes are valid values of a
        // `Global` type.
        unsafe { self.start(transfer) }
    }

    /// # Safety
    /// The transfer's own memory is readable or writable until the scope has ended.
    #[inline]
    unsafe fn start(&self, transfer: Transfer) -> Result<()> {
        let engine = self.world.engine();
        // SAFETY: the caller's promise; `End` waits before the scope ends, in the thread that it
        // belongs to, or ends the job.
        process::with(|ctx| unsafe { engine.start_outside(ctx, transfer, self.started) })?;
        Ok(())
    }
}
