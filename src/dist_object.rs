//! Distributed objects: one instance a rank, for which other ranks call functions.

use crate::error::Result;
use crate::instances::{InstanceIn, Registry};
use crate::op::Op;
use crate::process;
use crate::rpc::{Calls, RpcOn};
use crate::world::{Par, Seq, Threading, World};
use argonet_base::Rank;
use argonet_engine::BarrierKind;
use core::fmt;
use core::ops::Deref;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// An object with one instance on each rank: any rank can call functions that run on another rank
/// with a reference to the instance there.
///
/// The owner of an instance reaches it, too, by dereferencing. In a world of one thread an instance
/// is any value, and a [`RefCell`](std::cell::RefCell) or [`Cell`](std::cell::Cell) inside lets
/// functions change it. In a [`World<Par>`](crate::Par) other threads may run functions, several at
/// once for one instance, so it is [`Send`] and [`Sync`] ([`InstanceIn`](crate::InstanceIn)).
///
/// ```
/// use argonet::{DistObject, Rank, World};
/// use std::cell::RefCell;
/// use std::collections::HashMap;
///
/// type Words = RefCell<HashMap<String, u64>>;
///
/// argonet::rpc! {
///     fn count(words: &Words, word: String) { *words.borrow_mut().entry(word).or_default() += 1; }
///     fn times(words: &Words, word: String) -> u64 {
///         words.borrow().get(&word).copied().unwrap_or(0)
///     }
/// }
///
/// let world = World::init().unwrap();
/// // Each rank has the words of one part of a hash table.
/// let words = DistObject::new(&world, Words::default()).unwrap();
/// let owner = |word: &str| Rank(word.len() as u32 % world.size());
/// for word in ["one", "two", "one"] {
///     words.rpc_one_way(&world, owner(word), &count, (word.into(),)).unwrap();
/// }
/// world.drain().unwrap();
/// let ones = words.rpc(&world, owner("one"), &times, ("one".into(),)).unwrap();
/// assert_eq!(u64::from(world.size()) * 2, ones.wait().unwrap());
/// // The instance of this rank, and the function on it.
/// let here = (times.function().unwrap())(&words, ("one".into(),));
/// assert_eq!(here, words.borrow().get("one").copied().unwrap_or(0));
/// // Others may still call; then it may be dropped.
/// world.barrier().unwrap();
/// ```
///
/// Functions run as those of [`World::rpc`] do. One that borrows a `RefCell` whose owner waits with
/// a borrow of its own panics, which ends the job: end borrows before any call of the library that
/// may wait, sends included, also in functions with a [context](crate::ObjectContext).
///
/// A function works on one object, and calls others for the same one. An instance that is a struct
/// has all that it needs.
///
/// Dropping it sends nothing and waits for nothing. A function that runs meanwhile on another
/// thread keeps the instance until it returns. Calls that come later fail with
/// [`RpcStatus::NoInstance`](crate::RpcStatus::NoInstance), or end the job if they are one-way. So
/// call [`World::drain`] after the last one-way call and before the drop; the end of the world is
/// too late for an object that is dropped before it. A barrier is enough where all ranks have
/// waited for the results of their calls, and no function called further ones one-way. A rank that
/// could not make its instance, as a rank was lost, ignores one-way calls for it.
///
/// Source: UPC++, `upcxx::dist_object` and `rpc_ff`.
#[doc(alias = "dist_object")]
pub struct DistObject<T: InstanceIn<M>, M: Threading = Seq> {
    number: u64,
    value: T::Kept,
    calls: Arc<Calls>,
}

impl<T: InstanceIn<M>, M: Threading> DistObject<T, M> {
    /// Makes the object, of which `value` is this rank's instance.
    ///
    /// Collective; blocks, polling, until all ranks have made their instances, so calls find them.
    /// All ranks make their objects in one order, with one type each.
    ///
    /// See the example of [`DistObject`].
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler, and
    /// [`AmError::Deferred`](crate::AmError::Deferred) inside a remote procedure with a context,
    /// [`AmError::InTask`](crate::AmError::InTask) inside a task;
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) once the job has lost a rank.
    pub fn new(world: &World<M>, value: T) -> Result<Self> {
        Self::make(world, value)
    }

    fn make<N: Threading>(world: &World<N>, value: T) -> Result<Self> {
        let engine = world.engine();
        process::with(|ctx| ctx.permit_collective("making a distributed object", engine.rank()))?;
        let value = value.keep();
        let calls = Arc::clone(&world.inner.calls);
        let number = calls.instances.number();
        T::publish(&value, number, Registry(&calls.instances));
        // Withdraws the instance if the barrier fails.
        let object = Self {
            number,
            value,
            calls,
        };
        let made = process::with(|ctx| engine.barrier(ctx, BarrierKind::Instances));
        if made.is_err() {
            object.ignore_late_calls();
        }
        made?;
        Ok(object)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// One-way calls that come when it has been dropped are no error.
    pub(crate) fn ignore_late_calls(&self) {
        self.calls.instances.fail(self.number);
    }

    /// Runs a function at `to` on the instance of that rank, and returns its result.
    ///
    /// Everything else is as with [`World::rpc`].
    ///
    /// See the example of [`DistObject`].
    ///
    /// # Errors
    /// As [`World::rpc`]. That of the operation is
    /// [`RpcStatus::NoInstance`](crate::RpcStatus::NoInstance) if `to` has dropped its instance.
    pub fn rpc<'w, A, R>(
        &self,
        world: &'w World<M>,
        to: Rank,
        function: &RpcOn<T, A, R>,
        args: A,
    ) -> Result<Op<'w, R, M>>
    where
        A: Serialize,
        R: DeserializeOwned,
    {
        world.call(to, &function.callee(self.number), &args)
    }

    /// Runs a function at `to` on the instance of that rank, and drops its result there: no message
    /// comes back.
    ///
    /// Everything else is as with [`World::rpc_one_way`].
    ///
    /// See the example of [`DistObject`].
    ///
    /// # Errors
    /// As [`World::rpc_one_way`].
    #[doc(alias = "rpc_ff")]
    pub fn rpc_one_way<A, R>(
        &self,
        world: &World<M>,
        to: Rank,
        function: &RpcOn<T, A, R>,
        args: A,
    ) -> Result<()>
    where
        A: Serialize,
    {
        world.call_one_way(to, &function.callee(self.number), &args)
    }
}

impl<T: InstanceIn<Par>> DistObject<T, Par> {
    /// Makes an object that any thread can reach, in a world of either threading.
    ///
    /// As [`new`](Self::new).
    pub(crate) fn shared<N: Threading>(world: &World<N>, value: T) -> Result<Self> {
        Self::make(world, value)
    }
}

/// The instance of this rank.
impl<T: InstanceIn<M>, M: Threading> Deref for DistObject<T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: InstanceIn<M> + fmt::Debug, M: Threading> fmt::Debug for DistObject<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistObject")
            .field("number", &self.number)
            .field("instance", &&**self)
            .finish_non_exhaustive()
    }
}

impl<T: InstanceIn<M>, M: Threading> Drop for DistObject<T, M> {
    fn drop(&mut self) {
        T::withdraw(self.number, Registry(&self.calls.instances));
    }
}
