//! What a remote procedure that may communicate gets.

use super::RpcOn;
use crate::error::Result;
use crate::op::Op;
use crate::world::World;
use argonet_base::Rank;
use core::marker::PhantomData;
use core::ops::Deref;
use serde::{Serialize, de::DeserializeOwned};

/// The world, for a remote procedure that may communicate: one whose first argument in
/// [`rpc!`](crate::rpc!) is a name without a type.
///
/// Such a function does not run as a handler, but after the handlers of a poll have returned, in
/// [`World::poll`] or in a call that waits, except one that waits for room to send. It may put,
/// get, and make atomic operations, call further functions one-way, and wait for operations and for
/// results of functions that get no context. [`World::drain`], [`World::quiet`] and the end of the
/// world wait until no rank has a call to run any more, however long the chain of calls.
///
/// ```
/// use argonet::{Rank, World};
/// use std::sync::atomic::{AtomicU32, Ordering};
/// static VISITS: AtomicU32 = AtomicU32::new(0);
///
/// argonet::rpc! {
///     /// Goes around all ranks so many times.
///     fn visit(ctx, left: u32) {
///         VISITS.fetch_add(1, Ordering::Relaxed);
///         if left > 1 {
///             ctx.rpc_one_way(ctx.rank_offset(1), &visit, (left - 1,)).unwrap();
///         }
///     }
/// }
///
/// let world = World::init().unwrap();
/// if world.rank() == Rank(0) {
///     world.rpc_one_way(Rank(0), &visit, (10 * world.size(),)).unwrap();
/// }
/// world.drain().unwrap();
/// assert_eq!(VISITS.load(Ordering::Relaxed), 10);
/// ```
///
/// It runs on the thread that polls, which runs no other such function before this one has
/// returned, and may be inside a collective call. In a [`World<Par>`](crate::Par) other threads run
/// others at the same time, and the context is a `World<Seq>` that stays on its thread. So
/// collective calls are refused, with [`AmError::Deferred`](crate::AmError::Deferred), and so is a
/// call of another such function with a result, with
/// [`RpcError::WouldDeadlock`](crate::RpcError::WouldDeadlock): ranks would wait for each other. A
/// wait for a condition that only another such function makes true does not end. A panic ends the
/// job.
///
/// Calls that have come and not run yet are kept, and nothing limits how many: a program that sends
/// faster than others run should wait for results, or drain, from time to time. Such a function can
/// do neither, so a fan-out that grows takes memory as it grows. After a
/// [loss](crate::Builder::on_peer_lost) there is no drain; survivors run such functions until all
/// of them leave, and give up what waits then.
///
/// Such a function cannot be called here but by a message. A plain function that takes `&World`
/// can be called by it and by other code.
pub struct RpcContext<'c> {
    world: &'c World,
    caller: Rank,
}

impl<'c> RpcContext<'c> {
    pub(super) fn new(world: &'c World, caller: Rank) -> Self {
        Self { world, caller }
    }

    /// The rank that called.
    ///
    /// ```
    /// use argonet::World;
    /// argonet::rpc! {
    ///     fn rank_of_caller(ctx) -> u32 { ctx.caller().0 }
    /// }
    /// let world = World::init().unwrap();
    /// let op = world.rpc(world.rank(), &rank_of_caller, ()).unwrap();
    /// assert_eq!(op.wait().unwrap(), world.rank().0);
    /// ```
    #[must_use]
    pub fn caller(&self) -> Rank {
        self.caller
    }
}

impl Deref for RpcContext<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        self.world
    }
}

/// [`RpcContext`] of a function that runs for a [`DistObject`](crate::DistObject): it can call
/// further functions for the same object.
///
/// ```
/// use argonet::{DistObject, Rank, World};
/// use std::cell::Cell;
///
/// argonet::rpc! {
///     /// Adds to the instances of this rank and all behind it.
///     fn add_from_here(ctx, sum: &Cell<u64>, by: u64) {
///         sum.set(sum.get() + by);
///         let next = Rank(ctx.rank().0 + 1);
///         if next.0 < ctx.size() {
///             ctx.rpc_on_one_way(next, &add_from_here, (by,)).unwrap();
///         }
///     }
/// }
///
/// let world = World::init().unwrap();
/// let sum = DistObject::new(&world, Cell::new(0)).unwrap();
/// if world.rank() == Rank(0) {
///     sum.rpc_one_way(&world, Rank(0), &add_from_here, (3,)).unwrap();
/// }
/// world.drain().unwrap();
/// assert_eq!(sum.get(), 3);
/// ```
pub struct ObjectContext<'c, T> {
    context: RpcContext<'c>,
    object: u64,
    of: PhantomData<fn(T)>,
}

impl<'c, T> ObjectContext<'c, T> {
    pub(super) fn new(context: RpcContext<'c>, object: u64) -> Self {
        Self {
            context,
            object,
            of: PhantomData,
        }
    }

    /// Runs a function on the instance of another rank, and returns its result.
    ///
    /// As [`DistObject::rpc`](crate::DistObject::rpc).
    ///
    /// # Errors
    /// As there, and [`RpcError::WouldDeadlock`](crate::RpcError::WouldDeadlock) of a function that
    /// gets a context.
    pub fn rpc_on<A, R>(&self, to: Rank, function: &RpcOn<T, A, R>, args: A) -> Result<Op<'c, R>>
    where
        A: Serialize,
        R: DeserializeOwned,
    {
        let world = self.context.world;
        world.call(to, &function.callee(self.object), &args)
    }

    /// Runs a function on the instance of another rank, and drops its result there.
    ///
    /// As [`DistObject::rpc_one_way`](crate::DistObject::rpc_one_way). See the example of
    /// [`ObjectContext`].
    ///
    /// # Errors
    /// As there.
    pub fn rpc_on_one_way<A, R>(&self, to: Rank, function: &RpcOn<T, A, R>, args: A) -> Result<()>
    where
        A: Serialize,
    {
        let world = self.context.world;
        world.call_one_way(to, &function.callee(self.object), &args)
    }
}

impl<'c, T> Deref for ObjectContext<'c, T> {
    type Target = RpcContext<'c>;

    fn deref(&self) -> &RpcContext<'c> {
        &self.context
    }
}
