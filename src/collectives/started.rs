//! Collective operations that go on while the rank does something else.
//!
//! They own their buffers until they are complete. An operation that is dropped before goes on, and
//! its buffers are leaked.

use super::{Collectives, between, folding, folding_with, within};
use crate::collectives::{Reducible, Reduction};
use crate::error::Result;
use crate::global::Global;
use crate::op::Op;
use crate::world::Threading;
use argonet_base::Rank;
use argonet_base::kept::Kept;
use argonet_engine::{Call, Folding, Kind};

fn zeroed<T: Global>(count: usize) -> Kept<T> {
    Kept::new(vec![T::new_zeroed(); count].into())
}

/// A folding by a closure, and the closure where it stays.
fn keep<T: Global, F: Fn(T, T) -> T + Send + Sync>(combine: F) -> (Folding, Kept<F>) {
    let kept = Kept::new(Box::new([combine]));
    let closure = kept.as_ptr().cast::<F>();
    // SAFETY: the first of one value, of which there are shared borrows alone from now on.
    let folding = folding_with(unsafe { &*closure });
    (folding, kept)
}

impl<'w, M: Threading> Collectives<'w, M> {
    /// Enters a barrier; it is complete when all ranks of the team have.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let entered = world.collectives().start_barrier().unwrap();
    /// // Something else, and then:
    /// entered.wait().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    pub fn start_barrier(&self) -> Result<Op<'w, (), M>> {
        // SAFETY: a barrier has no memory.
        unsafe { self.start(Call::of(Kind::Barrier), (), |()| ()) }
    }

    /// Starts a [`broadcast`](Self::broadcast).
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let (calls, mine) = (world.collectives(), vec![world.rank().0]);
    /// let word = calls.start_broadcast(Rank(0), mine.into()).unwrap();
    /// assert_eq!(*word.wait().unwrap(), [0]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn start_broadcast<T: Global>(
        &self,
        root: Rank,
        values: Box<[T]>,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let values = Kept::new(values);
        let call = Call {
            root: root.0,
            ..within(Kind::Broadcast, values.as_ptr())
        };
        // SAFETY: the values are kept where they are.
        unsafe { self.start(call, values, Kept::give) }
    }

    /// Starts a [`reduce`](Self::reduce).
    ///
    /// ```
    /// # use argonet::{Rank, Reduction, World};
    /// # let world = World::init().unwrap();
    /// let calls = world.collectives();
    /// let sum = calls.start_reduce(Rank(0), Reduction::Sum, vec![1u32].into()).unwrap();
    /// let sum = sum.wait().unwrap();
    /// assert!(sum.is_none_or(|sum| *sum == [world.size()]));
    /// ```
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn start_reduce<T: Reducible>(
        &self,
        root: Rank,
        reduction: Reduction,
        values: Box<[T]>,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.start_reduce_by(root, folding::<T>(reduction), values, ()) }
    }

    /// Starts a [`reduce_with`](Self::reduce_with); the operation owns the closure, too.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let me = world.rank().0;
    /// let calls = world.collectives();
    /// let ends = calls.start_reduce_with(Rank(0), vec![[me; 2]].into(), |a, b| [a[0], b[1]]);
    /// let ends = ends.unwrap().wait().unwrap();
    /// assert!(ends.is_none_or(|ends| *ends == [[0, world.size() - 1]]));
    /// ```
    ///
    /// # Errors
    /// As [`reduce_with`](Self::reduce_with).
    pub fn start_reduce_with<T: Global, F: Fn(T, T) -> T + Send + Sync + 'static>(
        &self,
        root: Rank,
        values: Box<[T]>,
        combine: F,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        let (folding, combine) = keep(combine);
        // SAFETY: the operation keeps the closure.
        unsafe { self.start_reduce_by(root, folding, values, combine) }
    }

    /// # Safety
    /// The folding's context is usable as long as `keeps` is.
    unsafe fn start_reduce_by<T: Global, K: Send + 'static>(
        &self,
        root: Rank,
        folding: Folding,
        values: Box<[T]>,
        keeps: K,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        let is_root = self.is(root);
        let count = values.len();
        let result = zeroed(if is_root { count } else { 0 });
        let values = Kept::new(values);
        let call = Call {
            root: root.0,
            folding: Some(folding),
            ..between(Kind::Reduce, count, values.as_ptr(), result.as_ptr())
        };
        let finish = move |(_, result, _): (Kept<T>, Kept<T>, K)| is_root.then(|| result.give());
        // SAFETY: as above; the target counts at the root alone, and the context is kept.
        unsafe { self.start(call, (values, result, keeps), finish) }
    }

    /// Starts a [`reduce_all`](Self::reduce_all).
    ///
    /// See the example of [`Collectives`].
    ///
    /// # Errors
    /// As [`reduce_all`](Self::reduce_all).
    pub fn start_reduce_all<T: Reducible>(
        &self,
        reduction: Reduction,
        values: Box<[T]>,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.start_in_place(Kind::ReduceAll, folding::<T>(reduction), values, ()) }
    }

    /// Starts a [`reduce_all_with`](Self::reduce_all_with); the operation owns the closure, too.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let (me, calls) = (world.rank().0, world.collectives());
    /// let ends = calls.start_reduce_all_with(vec![[me; 2]].into(), |a, b| [a[0], b[1]]);
    /// assert_eq!(*ends.unwrap().wait().unwrap(), [[0, world.size() - 1]]);
    /// ```
    ///
    /// # Errors
    /// As [`reduce_all_with`](Self::reduce_all_with).
    pub fn start_reduce_all_with<T: Global, F: Fn(T, T) -> T + Send + Sync + 'static>(
        &self,
        values: Box<[T]>,
        combine: F,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let (folding, combine) = keep(combine);
        // SAFETY: the operation keeps the closure.
        unsafe { self.start_in_place(Kind::ReduceAll, folding, values, combine) }
    }

    /// Starts a folding whose result takes the place of the values.
    ///
    /// # Safety
    /// The folding's context is usable as long as `keeps` is.
    unsafe fn start_in_place<T: Global, K: Send + 'static>(
        &self,
        kind: Kind,
        folding: Folding,
        values: Box<[T]>,
        keeps: K,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let values = Kept::new(values);
        let call = Call {
            folding: Some(folding),
            ..within(kind, values.as_ptr())
        };
        // SAFETY: the values are kept where they are, and so is the context.
        unsafe { self.start(call, (values, keeps), |(values, _)| values.give()) }
    }

    /// Starts a [`gather`](Self::gather).
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let all = world.collectives().start_gather(Rank(0), vec![world.rank().0].into()).unwrap();
    /// let all = all.wait().unwrap();
    /// assert!(all.is_none_or(|all| all.iter().copied().eq(0..world.size())));
    /// ```
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn start_gather<T: Global>(
        &self,
        root: Rank,
        values: Box<[T]>,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        let is_root = self.is(root);
        let count = values.len();
        let result = zeroed(if is_root { self.blocks(count) } else { 0 });
        let values = Kept::new(values);
        let call = Call {
            root: root.0,
            ..between(Kind::Gather, count, values.as_ptr(), result.as_ptr())
        };
        let finish = move |(_, result): (Kept<T>, Kept<T>)| is_root.then(|| result.give());
        // SAFETY: as above; the target has a block for each rank where it counts.
        unsafe { self.start(call, (values, result), finish) }
    }

    /// Starts a [`gather_all`](Self::gather_all).
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let all = world.collectives().start_gather_all(vec![world.rank().0].into()).unwrap();
    /// assert!(all.wait().unwrap().iter().copied().eq(0..world.size()));
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn start_gather_all<T: Global>(&self, values: Box<[T]>) -> Result<Op<'w, Box<[T]>, M>> {
        let count = values.len();
        let result = zeroed(self.blocks(count));
        let values = Kept::new(values);
        let call = between(Kind::GatherAll, count, values.as_ptr(), result.as_ptr());
        // SAFETY: as above.
        unsafe { self.start(call, (values, result), |(_, result)| result.give()) }
    }

    /// Starts a [`scatter`](Self::scatter): `blocks` counts at the root, and each rank gets `count`
    /// values.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let blocks: Box<[u32]> = (0..world.size()).collect();
    /// let own = world.collectives().start_scatter(Rank(0), blocks, 1).unwrap();
    /// assert_eq!(*own.wait().unwrap(), [world.rank().0]);
    /// ```
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
    ///
    /// # Panics
    /// If `blocks` of the root has not `count` values for each rank.
    pub fn start_scatter<T: Global>(
        &self,
        root: Rank,
        blocks: Box<[T]>,
        count: usize,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        assert!(
            !self.is(root) || blocks.len() == self.blocks(count),
            "a scatter gives each rank of the team a block"
        );
        let result = zeroed(count);
        let blocks = Kept::new(blocks);
        let call = Call {
            root: root.0,
            ..between(Kind::Scatter, count, blocks.as_ptr(), result.as_ptr())
        };
        // SAFETY: as above; the source has a block for each rank where it counts.
        unsafe { self.start(call, (blocks, result), |(_, result)| result.give()) }
    }

    /// Starts an [`exchange`](Self::exchange).
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let me = world.rank().0;
    /// let calls = world.collectives();
    /// let got = calls.start_exchange(vec![me; world.size() as usize].into()).unwrap();
    /// assert!(got.wait().unwrap().iter().copied().eq(0..world.size()));
    /// ```
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    ///
    /// # Panics
    /// As [`exchange`](Self::exchange).
    pub fn start_exchange<T: Global>(&self, blocks: Box<[T]>) -> Result<Op<'w, Box<[T]>, M>> {
        let count = self.each(&blocks);
        let result = zeroed(blocks.len());
        let blocks = Kept::new(blocks);
        let call = between(Kind::Exchange, count, blocks.as_ptr(), result.as_ptr());
        // SAFETY: as above, with a block for each rank.
        unsafe { self.start(call, (blocks, result), |(_, result)| result.give()) }
    }

    /// Starts a [`reduce_scatter`](Self::reduce_scatter).
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let blocks: Box<[u32]> = (0..world.size()).collect();
    /// let sum = world.collectives().start_reduce_scatter(Reduction::Sum, blocks).unwrap();
    /// assert_eq!(*sum.wait().unwrap(), [world.rank().0 * world.size()]);
    /// ```
    ///
    /// # Errors
    /// As [`reduce_scatter`](Self::reduce_scatter).
    ///
    /// # Panics
    /// As [`exchange`](Self::exchange).
    pub fn start_reduce_scatter<T: Reducible>(
        &self,
        reduction: Reduction,
        blocks: Box<[T]>,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let count = self.each(&blocks);
        let result = zeroed(count);
        let blocks = Kept::new(blocks);
        let call = Call {
            folding: Some(folding::<T>(reduction)),
            ..between(Kind::ReduceScatter, count, blocks.as_ptr(), result.as_ptr())
        };
        // SAFETY: as above, with a block for each rank.
        unsafe { self.start(call, (blocks, result), |(_, result)| result.give()) }
    }

    /// Starts a [`scan`](Self::scan).
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let place = world.collectives().start_scan(Reduction::Sum, vec![1u32].into()).unwrap();
    /// assert_eq!(*place.wait().unwrap(), [world.rank().0 + 1]);
    /// ```
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn start_scan<T: Reducible>(
        &self,
        reduction: Reduction,
        values: Box<[T]>,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.start_in_place(Kind::Scan, folding::<T>(reduction), values, ()) }
    }

    /// Starts a [`scan_with`](Self::scan_with); the operation owns the closure, too.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let (me, calls) = (world.rank().0, world.collectives());
    /// let run = calls.start_scan_with(vec![[me; 2]].into(), |a, b| [a[0], b[1]]).unwrap();
    /// assert_eq!(*run.wait().unwrap(), [[0, me]]);
    /// ```
    ///
    /// # Errors
    /// As [`scan_with`](Self::scan_with).
    pub fn start_scan_with<T: Global, F: Fn(T, T) -> T + Send + Sync + 'static>(
        &self,
        values: Box<[T]>,
        combine: F,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let (folding, combine) = keep(combine);
        // SAFETY: the operation keeps the closure.
        unsafe { self.start_in_place(Kind::Scan, folding, values, combine) }
    }

    /// Starts an [`exclusive_scan`](Self::exclusive_scan).
    ///
    /// ```
    /// # use argonet::{Reduction, World};
    /// # let world = World::init().unwrap();
    /// let before = world.collectives().start_exclusive_scan(Reduction::Sum, vec![5u32].into());
    /// let before = before.unwrap().wait().unwrap();
    /// assert_eq!(before.unwrap_or(vec![0].into()), [5 * world.rank().0].into());
    /// ```
    ///
    /// # Errors
    /// As [`exclusive_scan`](Self::exclusive_scan).
    pub fn start_exclusive_scan<T: Reducible>(
        &self,
        reduction: Reduction,
        values: Box<[T]>,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        // SAFETY: a number leads to no memory.
        unsafe { self.start_exclusive_scan_by(folding::<T>(reduction), values, ()) }
    }

    /// Starts an [`exclusive_scan_with`](Self::exclusive_scan_with); the operation owns the
    /// closure, too.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let (me, calls) = (world.rank().0, world.collectives());
    /// let run = calls.start_exclusive_scan_with(vec![[me; 2]].into(), |a, b| [a[0], b[1]]);
    /// let last = me.checked_sub(1).map(|last| [[0, last]].into());
    /// assert_eq!(run.unwrap().wait().unwrap(), last);
    /// ```
    ///
    /// # Errors
    /// As [`exclusive_scan_with`](Self::exclusive_scan_with).
    pub fn start_exclusive_scan_with<T: Global, F: Fn(T, T) -> T + Send + Sync + 'static>(
        &self,
        values: Box<[T]>,
        combine: F,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        let (folding, combine) = keep(combine);
        // SAFETY: the operation keeps the closure.
        unsafe { self.start_exclusive_scan_by(folding, values, combine) }
    }

    /// # Safety
    /// The folding's context is usable as long as `keeps` is.
    unsafe fn start_exclusive_scan_by<T: Global, K: Send + 'static>(
        &self,
        folding: Folding,
        values: Box<[T]>,
        keeps: K,
    ) -> Result<Op<'w, Option<Box<[T]>>, M>> {
        let count = values.len();
        let (values, result) = (Kept::new(values), zeroed(count));
        let call = Call {
            folding: Some(folding),
            ..between(Kind::ExclusiveScan, count, values.as_ptr(), result.as_ptr())
        };
        let has_any = self.team.rank > 0;
        let finish = move |(_, result, _): (Kept<T>, Kept<T>, K)| has_any.then(|| result.give());
        // SAFETY: as above; rank 0 has no result.
        unsafe { self.start(call, (values, result, keeps), finish) }
    }
}
