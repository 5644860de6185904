//! Collective operations on one value of each rank.

use super::{Collectives, Reducible, Reduction};
use crate::error::Result;
use crate::global::Global;
use crate::world::Threading;
use argonet_base::Rank;

/// The value of an operation that has one.
fn only<T: Copy>(values: Option<Vec<T>>) -> Option<T> {
    values.map(|values| values[0])
}

impl<M: Threading> Collectives<'_, M> {
    /// Returns the value of `root` on all ranks, and ignores those of others:
    /// [`broadcast`](Self::broadcast) of one.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let seed = world.collectives().broadcast_value(Rank(0), world.rank().0 + 7).unwrap();
    /// assert_eq!(seed, 7);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn broadcast_value<T: Global>(&self, root: Rank, value: T) -> Result<T> {
        let mut values = [value];
        self.broadcast(root, &mut values)?;
        Ok(values[0])
    }

    /// Combines one value of each rank for `root`; others get `None`: [`reduce`](Self::reduce) of
    /// one.
    ///
    /// ```
    /// # use argonet::{Rank, Reduction, World};
    /// # let world = World::init().unwrap();
    /// let count = world.collectives().reduce_value(Rank(0), Reduction::Sum, 1u32).unwrap();
    /// assert_eq!(count, (world.rank() == Rank(0)).then_some(world.size()));
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_value<T: Reducible>(
        &self,
        root: Rank,
        reduction: Reduction,
        value: T,
    ) -> Result<Option<T>> {
        Ok(only(self.reduce(root, reduction, &[value])?))
    }

    /// Combines one value of each rank for all: [`reduce_all`](Self::reduce_all) of one.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let calls = world.collectives();
    /// assert_eq!(calls.reduce_all_value(Reduction::Sum, 1u32).unwrap(), world.size());
    /// // An array is one value, combined element by element.
    /// let me = f64::from(world.rank().0);
    /// let most = calls.reduce_all_value(Reduction::Max, [me, -me]).unwrap();
    /// assert_eq!(most, [f64::from(world.size() - 1), 0.0]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn reduce_all_value<T: Reducible>(&self, reduction: Reduction, value: T) -> Result<T> {
        let mut values = [value];
        self.reduce_all(reduction, &mut values)?;
        Ok(values[0])
    }

    /// Combines one value of each rank up to this one, its own included: [`scan`](Self::scan) of
    /// one.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let place = world.collectives().scan_value(Reduction::Sum, 1u32).unwrap();
    /// assert_eq!(place, world.rank().0 + 1);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn scan_value<T: Reducible>(&self, reduction: Reduction, value: T) -> Result<T> {
        let mut values = [value];
        self.scan(reduction, &mut values)?;
        Ok(values[0])
    }

    /// Combines one value of each rank before this one; `None` on rank 0:
    /// [`exclusive_scan`](Self::exclusive_scan) of one.
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// // Where this rank's part begins.
    /// let len = 5 + u64::from(world.rank().0);
    /// let begin = world.collectives().exclusive_scan_value(Reduction::Sum, len).unwrap();
    /// let ranks = 0..u64::from(world.rank().0);
    /// assert_eq!(begin.unwrap_or(0), ranks.map(|rank| 5 + rank).sum());
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn exclusive_scan_value<T: Reducible>(
        &self,
        reduction: Reduction,
        value: T,
    ) -> Result<Option<T>> {
        Ok(only(self.exclusive_scan(reduction, &[value])?))
    }
}
