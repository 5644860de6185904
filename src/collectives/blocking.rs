//! Collective operations that wait.

use super::{Collectives, between, folding, folding_with, within};
use crate::collectives::{Reducible, Reduction};
use crate::error::Result;
use crate::global::Global;
use crate::process;
use crate::world::Threading;
use argonet_base::Rank;
use argonet_engine::{Call, Folding, Kind};

fn zeroed<T: Global>(count: usize) -> Vec<T> {
    vec![T::new_zeroed(); count]
}

impl<M: Threading> Collectives<'_, M> {
    /// # Safety
    /// The call's memory is that of slices that the caller has borrowed until this returns.
    unsafe fn run(&self, call: Call) -> Result<()> {
        let engine = self.world.engine();
        // SAFETY: this function's contract.
        Ok(process::with(|ctx| unsafe {
            engine.collective_wait(ctx, &self.team, call)
        })?)
    }

    /// Gives all ranks the values that `root` has; all slices have the same length.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let mut seeds = if world.rank() == Rank(0) { [11u64, 12] } else { [0; 2] };
    /// world.collectives().broadcast(Rank(0), &mut seeds).unwrap();
    /// assert_eq!(seeds, [11, 12]);
    /// ```
    ///
    /// # Errors
    /// A root that does not exist; [`AmError::Restricted`](crate::AmError::Restricted) inside a
    /// handler; [`AmError::PeerLost`](crate::AmError::PeerLost) once the team has lost a member,
    /// for good: the call may be complete at other ranks.
    pub fn broadcast<T: Global>(&self, root: Rank, values: &mut [T]) -> Result<()> {
        let call = Call {
            root: root.0,
            ..within(Kind::Broadcast, values)
        };
        // SAFETY: the slice is borrowed.
        unsafe { self.run(call) }
    }

    /// Combines the ranks' values element by element, for `root`; others get `None`.
    ///
    /// ```
    /// # use argonet::{Rank, Reduction, World};
    /// # let world = World::init().unwrap();
    /// let sum = world.collectives().reduce(Rank(0), Reduction::Sum, &[1u32, 2]).unwrap();
    /// assert_eq!(sum, (world.rank() == Rank(0)).then(|| vec![world.size(), 2 * world.size()]));
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce<T: Reducible>(
        &self,
        root: Rank,
        reduction: Reduction,
        values: &[T],
    ) -> Result<Option<Vec<T>>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.reduce_by(root, folding::<T>(reduction), values) }
    }

    /// As [`reduce`](Self::reduce), with a closure; see
    /// [`reduce_all_with`](Self::reduce_all_with).
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let calls = world.collectives();
    /// let run = calls.reduce_with(Rank(0), &[[world.rank().0; 2]], |a, b| [a[0], b[1]]).unwrap();
    /// assert!(run.is_none_or(|run| run == [[0, world.size() - 1]]));
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_with<T: Global, F: Fn(T, T) -> T + Sync>(
        &self,
        root: Rank,
        values: &[T],
        combine: F,
    ) -> Result<Option<Vec<T>>> {
        // SAFETY: the closure is borrowed.
        unsafe { self.reduce_by(root, folding_with(&combine), values) }
    }

    /// # Safety
    /// The folding's context is usable until this returns.
    unsafe fn reduce_by<T: Global>(
        &self,
        root: Rank,
        folding: Folding,
        values: &[T],
    ) -> Result<Option<Vec<T>>> {
        let mut result = zeroed(if self.is(root) { values.len() } else { 0 });
        let call = Call {
            root: root.0,
            folding: Some(folding),
            ..between(Kind::Reduce, values.len(), values, &mut *result)
        };
        // SAFETY: both slices are borrowed; the target counts at the root alone.
        unsafe { self.run(call) }?;
        Ok(self.is(root).then_some(result))
    }

    /// Combines the ranks' values element by element, for all; the result replaces `values`.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let mut count = [1.0f64];
    /// world.collectives().reduce_all(Reduction::Sum, &mut count).unwrap();
    /// assert_eq!(count, [f64::from(world.size())]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_all<T: Reducible>(&self, reduction: Reduction, values: &mut [T]) -> Result<()> {
        // SAFETY: a number leads to no memory.
        unsafe { self.fold_in_place(Kind::ReduceAll, folding::<T>(reduction), values) }
    }

    /// As [`reduce_all`](Self::reduce_all), with a closure.
    ///
    /// It must be associative and need not commute: left operands come from lower ranks. All ranks
    /// pass the same closure, which the library cannot compare: with different ones they get
    /// different results. Any thread that polls may call it; for panics and for calls into the
    /// library see [`Reducible::combine`].
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// // The longest run of ranks: first and last.
    /// let mut run = [[world.rank().0; 2]];
    /// world.collectives().reduce_all_with(&mut run, |a, b| [a[0], b[1]]).unwrap();
    /// assert_eq!(run, [[0, world.size() - 1]]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_all_with<T: Global, F: Fn(T, T) -> T + Sync>(
        &self,
        values: &mut [T],
        combine: F,
    ) -> Result<()> {
        // SAFETY: the closure is borrowed.
        unsafe { self.fold_in_place(Kind::ReduceAll, folding_with(&combine), values) }
    }

    /// # Safety
    /// The folding's context is usable until this returns.
    unsafe fn fold_in_place<T: Global>(
        &self,
        kind: Kind,
        folding: Folding,
        values: &mut [T],
    ) -> Result<()> {
        let call = Call {
            folding: Some(folding),
            ..within(kind, values)
        };
        // SAFETY: the slice is borrowed.
        unsafe { self.run(call) }
    }

    /// Gives `root` the values of all ranks, one rank's behind the other's; all slices have the
    /// same length.
    ///
    /// See the example of [`Collectives`].
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn gather<T: Global>(&self, root: Rank, values: &[T]) -> Result<Option<Vec<T>>> {
        let is_root = self.is(root);
        let mut result = zeroed(if is_root {
            self.blocks(values.len())
        } else {
            0
        });
        let call = Call {
            root: root.0,
            ..between(Kind::Gather, values.len(), values, &mut *result)
        };
        // SAFETY: both slices are borrowed, the target with a block for each rank where it counts.
        unsafe { self.run(call) }?;
        Ok(self.is(root).then_some(result))
    }

    /// Gives all ranks the values of all, one rank's behind the other's; all slices have the same
    /// length.
    ///
    /// See the example of [`Collectives`].
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), but for the root.
    pub fn gather_all<T: Global>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut result = zeroed(self.blocks(values.len()));
        let call = between(Kind::GatherAll, values.len(), values, &mut *result);
        // SAFETY: both slices are borrowed, the target with a block for each rank.
        unsafe { self.run(call) }?;
        Ok(result)
    }

    /// Gives each rank its block of the root's `blocks`: as many values as its slice has.
    ///
    /// Other ranks' `blocks` are not looked at.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let blocks: Vec<u32> = (0..2 * world.size()).collect();
    /// let mut own = [0; 2];
    /// world.collectives().scatter(Rank(0), &blocks, &mut own).unwrap();
    /// assert_eq!(own, [2 * world.rank().0, 2 * world.rank().0 + 1]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// If `blocks` of the root is not as long as all ranks' slices together.
    pub fn scatter<T: Global>(&self, root: Rank, blocks: &[T], values: &mut [T]) -> Result<()> {
        if self.is(root) {
            assert_eq!(
                blocks.len(),
                self.blocks(values.len()),
                "a scatter gives each rank of the team a block"
            );
        }
        let call = Call {
            root: root.0,
            ..between(Kind::Scatter, values.len(), blocks, values)
        };
        // SAFETY: both slices are borrowed, the source with a block for each rank where it counts.
        unsafe { self.run(call) }
    }

    /// Gives each rank the block that each has for it: `blocks` has one for each rank, the result
    /// one from each.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let me = world.rank().0;
    /// let blocks: Vec<[u32; 2]> = (0..world.size()).map(|to| [me, to]).collect();
    /// let got = world.collectives().exchange(&blocks).unwrap();
    /// assert!(got.into_iter().eq((0..world.size()).map(|from| [from, me])));
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    ///
    /// # Panics
    /// If `blocks` is not a whole number of values for each rank.
    pub fn exchange<T: Global>(&self, blocks: &[T]) -> Result<Vec<T>> {
        let count = self.each(blocks);
        let mut result = zeroed(blocks.len());
        let call = between(Kind::Exchange, count, blocks, &mut *result);
        // SAFETY: both slices are borrowed, with a block for each rank.
        unsafe { self.run(call) }?;
        Ok(result)
    }

    /// Values of a block, if there is one for each rank.
    pub(super) fn each<T>(&self, blocks: &[T]) -> usize {
        assert!(
            blocks.len().is_multiple_of(self.size()),
            "{} values are no whole number for each of {} ranks",
            blocks.len(),
            self.size()
        );
        blocks.len() / self.size()
    }

    /// Combines the blocks that all have for this rank: `blocks` has one for each.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let blocks: Vec<u32> = (0..world.size()).collect();
    /// let sum = world.collectives().reduce_scatter(Reduction::Sum, &blocks).unwrap();
    /// assert_eq!(sum, [world.rank().0 * world.size()]);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    ///
    /// # Panics
    /// As [`exchange`](Self::exchange).
    pub fn reduce_scatter<T: Reducible>(
        &self,
        reduction: Reduction,
        blocks: &[T],
    ) -> Result<Vec<T>> {
        let count = self.each(blocks);
        let mut result = zeroed(count);
        let call = Call {
            folding: Some(folding::<T>(reduction)),
            ..between(Kind::ReduceScatter, count, blocks, &mut *result)
        };
        // SAFETY: both slices are borrowed, the source with a block for each rank.
        unsafe { self.run(call) }?;
        Ok(result)
    }

    /// Combines the values of all ranks up to this one, its own included; the result replaces
    /// `values`.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let mut place = [1u32];
    /// world.collectives().scan(Reduction::Sum, &mut place).unwrap();
    /// assert_eq!(place, [world.rank().0 + 1]);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn scan<T: Reducible>(&self, reduction: Reduction, values: &mut [T]) -> Result<()> {
        // SAFETY: a number leads to no memory.
        unsafe { self.fold_in_place(Kind::Scan, folding::<T>(reduction), values) }
    }

    /// As [`scan`](Self::scan), with a closure; see
    /// [`reduce_all_with`](Self::reduce_all_with).
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let mut run = [[world.rank().0; 2]];
    /// world.collectives().scan_with(&mut run, |a, b| [a[0], b[1]]).unwrap();
    /// assert_eq!(run, [[0, world.rank().0]]);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn scan_with<T: Global, F: Fn(T, T) -> T + Sync>(
        &self,
        values: &mut [T],
        combine: F,
    ) -> Result<()> {
        // SAFETY: the closure is borrowed.
        unsafe { self.fold_in_place(Kind::Scan, folding_with(&combine), values) }
    }

    /// Combines the values of all ranks before this one; `None` on rank 0.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let before = world.collectives().exclusive_scan(Reduction::Sum, &[5u32]).unwrap();
    /// assert_eq!(before.unwrap_or(vec![0]), [5 * world.rank().0]);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn exclusive_scan<T: Reducible>(
        &self,
        reduction: Reduction,
        values: &[T],
    ) -> Result<Option<Vec<T>>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.exclusive_scan_by(folding::<T>(reduction), values) }
    }

    /// As [`exclusive_scan`](Self::exclusive_scan), with a closure; see
    /// [`reduce_all_with`](Self::reduce_all_with).
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let me = world.rank().0;
    /// let run = world.collectives().exclusive_scan_with(&[[me; 2]], |a, b| [a[0], b[1]]).unwrap();
    /// assert_eq!(run, me.checked_sub(1).map(|last| vec![[0, last]]));
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn exclusive_scan_with<T: Global, F: Fn(T, T) -> T + Sync>(
        &self,
        values: &[T],
        combine: F,
    ) -> Result<Option<Vec<T>>> {
        // SAFETY: the closure is borrowed.
        unsafe { self.exclusive_scan_by(folding_with(&combine), values) }
    }

    /// # Safety
    /// The folding's context is usable until this returns.
    unsafe fn exclusive_scan_by<T: Global>(
        &self,
        folding: Folding,
        values: &[T],
    ) -> Result<Option<Vec<T>>> {
        let mut result = zeroed(values.len());
        let call = Call {
            folding: Some(folding),
            ..between(Kind::ExclusiveScan, values.len(), values, &mut *result)
        };
        // SAFETY: both slices are borrowed.
        unsafe { self.run(call) }?;
        Ok((self.team.rank > 0).then_some(result))
    }
}
