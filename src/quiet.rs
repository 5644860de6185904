//! Phases in which no rank communicates.

use crate::error::Result;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::AmError;
use argonet_engine::BarrierKind;

/// Proof that every rank is inside one collective quiet phase; see the example of
/// [`World::quiet`].
pub struct Quiet {
    _private: (),
}

impl<M: Threading> World<M> {
    /// Runs `f` while no rank can read or write another's memory, so that `f` may hold slices of
    /// its own part of shared arrays ([`SharedArray::local`](crate::SharedArray::local)).
    ///
    /// Collective.
    ///
    /// Before `f` everything under way is drained on all ranks, as by [`drain`](Self::drain); no
    /// handler runs until all ranks have finished `f`. It takes the world exclusively, so nothing
    /// can be started meanwhile with any pointer:
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let mut world = World::init().unwrap();
    /// let mut v = SharedArray::<u64>::alloc(&world, 8).unwrap();
    /// world.quiet(|q| v.local_mut(q).fill(7)).unwrap();
    /// assert_eq!(v.read(&world, 3), 7);
    /// let sum: u64 = world.quiet(|q| v.local(q).iter().sum()).unwrap();
    /// assert_eq!(sum, 56);
    /// ```
    /// ```compile_fail,E0502
    /// # use argonet::{GlobalPtr, World};
    /// # fn f(world: &mut World, p: GlobalPtr<u64>) {
    /// world.quiet(|_| { let _ = world.put_value(p, 1); }).unwrap();
    /// # }
    /// ```
    /// ```compile_fail,E0502
    /// # use argonet::{SharedArray, World};
    /// # fn f(world: &mut World, v: SharedArray<u64>) {
    /// world.quiet(|q| { let slice = v.local(q); v.write(world, 0, 99); slice[0] }).unwrap();
    /// # }
    /// ```
    /// ```compile_fail
    /// # use argonet::{SharedArray, World};
    /// # fn f(world: &mut World, v: SharedArray<u64>) {
    /// let slice = world.quiet(|q| v.local(q)).unwrap();
    /// # drop(slice); }
    /// ```
    ///
    /// A panic of `f` ends the job.
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    /// [`AmError::PeerLost`](crate::AmError::PeerLost), perhaps after `f`; then no rank holds a
    /// slice of this phase any more.
    pub fn quiet<R>(&mut self, f: impl FnOnce(&Quiet) -> R) -> Result<R> {
        let engine = self.engine();
        let begun = process::with(|ctx| engine.drain(ctx, BarrierKind::Quiet));
        // A progress thread would acknowledge a loss, and others would go on.
        let held = engine.hold_server();
        // The lost rank may have entered before it was lost. A rank in `f` polls nowhere, so it
        // acknowledges no loss meanwhile, and it has acknowledged none before.
        let begun = begun.and_then(|()| engine.unless_any_lost());
        if let Err(error) = begun {
            drop(held);
            return Err(self.left_by(error)?.into());
        }
        let unfinished = Unfinished(self);
        let result = f(&Quiet { _private: () });
        core::mem::forget(unfinished);
        drop(held);
        let engine = self.engine();
        match process::with(|ctx| engine.barrier(ctx, BarrierKind::Quiet)) {
            Ok(()) => Ok(result),
            Err(error @ AmError::PeerLost { .. }) => Err(self.left_by(error)?.into()),
            // Other ranks may still hold slices, and the caller would have the world again.
            Err(error) => engine.fatal(&format!(
                "a quiet phase ends and cannot wait for the others: {error}"
            )),
        }
    }

    /// The error by which a phase ends, once no survivor holds a slice.
    fn left_by(&self, error: AmError) -> Result<AmError> {
        if let AmError::PeerLost { .. } = error {
            process::with(|ctx| self.engine().leave_phase(ctx))?;
        }
        Ok(error)
    }
}

/// Dropped when `f` panics.
///
/// The code that catches the panic has the world again, while other ranks may still hold slices; so
/// it ends the job.
struct Unfinished<'w, M: Threading>(&'w World<M>);

impl<M: Threading> Drop for Unfinished<'_, M> {
    fn drop(&mut self) {
        self.0.engine().fatal("panicked inside a quiet phase");
    }
}
