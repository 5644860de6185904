//! Operations on borrowed buffers.

use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::world::{Seq, Threading, World};
use core::cell::Cell;
use core::marker::PhantomData;

/// Starts operations on buffers that outlive it; see the example of [`World::scope`].
pub struct Scope<'scope, 'env: 'scope, M: Threading = Seq> {
    world: &'scope World<M>,
    _scope: PhantomData<Cell<&'scope ()>>,
    _env: PhantomData<Cell<&'env ()>>,
}

impl<M: Threading> World<M> {
    /// Runs `f`, which may start puts and gets on borrowed buffers; all are complete when this
    /// returns.
    ///
    /// ```
    /// # use argonet::{SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u64>::alloc(&world, 8).unwrap();
    /// let (source, mut target) = ([1u64; 4], [0u64; 4]);
    /// let next = world.neighbour(1);
    /// world.scope(|s| {
    ///     s.put(v.gptr(next, 0), &source)?;
    ///     s.get(v.gptr(next, 4), &mut target)
    /// }).unwrap();
    /// ```
    ///
    /// A buffer that dies inside is refused, and so are two gets into one buffer:
    ///
    /// ```compile_fail
    /// # use argonet::{GlobalPtr, World};
    /// # fn f(world: &World, p: GlobalPtr<u64>) {
    /// world.scope(|s| { let b = [1u64]; s.put(p, &b) }).unwrap();
    /// # }
    /// ```
    /// ```compile_fail
    /// # use argonet::{GlobalPtr, World};
    /// # fn f(world: &World, p: GlobalPtr<u64>) {
    /// let mut b = [1u64];
    /// world.scope(|s| { s.get(p, &mut b)?; s.get(p, &mut b) }).unwrap();
    /// # }
    /// ```
    pub fn scope<'env, R>(&self, f: impl for<'s> FnOnce(&'s Scope<'s, 'env, M>) -> R) -> R {
        let scope = Scope {
            world: self,
            _scope: PhantomData,
            _env: PhantomData,
        };
        f(&scope)
    }
}

impl<'scope, 'env, M: Threading> Scope<'scope, 'env, M> {
    pub(crate) fn world(&self) -> &'scope World<M> {
        self.world
    }

    /// Starts writing a slice.
    ///
    /// See the example of [`World::scope`].
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub fn put<T: Global>(&'scope self, to: GlobalPtr<T>, values: &'env [T]) -> Result<()> {
        self.world.put_from(to, values)
    }

    /// Starts reading into a slice, which belongs to the scope until its end.
    ///
    /// See the example of [`World::scope`].
    ///
    /// # Errors
    /// As [`World::put_value`].
    pub fn get<T: Global>(&'scope self, from: GlobalPtr<T>, values: &'env mut [T]) -> Result<()> {
        self.world.get_into(from, values)
    }
}
