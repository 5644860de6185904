//! Put and get of the safe API.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::global::{Global, GlobalPtr};
use crate::global_slice::GlobalSlice;
use crate::op::Op;
use crate::process;
use crate::world::{Threading, World};
use argonet_base::kept::Kept;
use argonet_engine::{Injection, Side, Target, Transfer};
use argonet_segment::bulk;
use core::ptr::NonNull;

impl<M: Threading> World<M> {
    /// Writes one value.
    ///
    /// When this returns it is visible to all ranks that synchronize later. A store where the
    /// target's memory is mapped here; otherwise it blocks, polling, until the target has taken it.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<f32>::alloc(&world, 8).unwrap();
    /// let p = v.ptr(world.rank_offset(1), 2);
    /// world.put_value(p, 1.5).unwrap();
    /// assert_eq!(world.get_value(p).unwrap(), 1.5);
    /// let two = v.on(world.rank_offset(1)).part(2..4);
    /// world.put_from(two, &[2.0, 3.0]).unwrap();
    /// let mut back = [0.0; 2];
    /// world.get_into(two, &mut back).unwrap();
    /// assert_eq!(back, [2.0, 3.0]);
    /// assert_eq!(*world.get(two).unwrap().wait().unwrap(), back);
    /// ```
    ///
    /// # Errors
    /// A pointer outside the segment of its rank, a rank that does not exist or is lost
    /// ([`AmError::PeerLost`](crate::AmError::PeerLost)), or a call from inside a handler.
    #[inline]
    pub fn put_value<T: Global>(&self, to: GlobalPtr<T>, value: T) -> Result<()> {
        let Some(place) = self.mapped(to) else {
            return self.put_unmapped(to, value);
        };
        // SAFETY: the place has the size of a `T` in a segment that is mapped here, and a `Global`
        // type has no padding.
        unsafe { bulk::put_value(place.as_ptr(), value) };
        Ok(())
    }

    /// The memory of a value.
    #[inline(always)]
    pub(crate) fn target_of<T: Global>(at: GlobalPtr<T>) -> Target {
        Target::Segment {
            rank: Self::job_rank(at.rank()),
            offset: at.offset(),
        }
    }

    /// A transfer of all values of a slice.
    #[inline(always)]
    pub(crate) fn transfer_of<T: Global>(slice: GlobalSlice<T>, side: Side) -> Transfer {
        Transfer {
            target: Self::target_of(slice.first()),
            side,
            len: slice.len().saturating_mul(size_of::<T>()),
        }
    }

    /// Where a value lies, if this call may load and store there.
    #[inline(always)]
    pub(crate) fn mapped<T: Global>(&self, at: GlobalPtr<T>) -> Option<NonNull<u8>> {
        let rank = Self::job_rank(at.rank());
        process::with(|ctx| self.engine().mapped(ctx, rank, at.offset(), size_of::<T>()))
    }

    /// The same, after the checks of any transfer; maps memory that is not mapped yet.
    pub(crate) fn reach<T: Global>(&self, at: GlobalPtr<T>) -> Result<Option<NonNull<u8>>> {
        let rank = Self::job_rank(at.rank());
        Ok(self.engine().reach(rank, at.offset(), size_of::<T>())?)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn put_unmapped<T: Global>(&self, to: GlobalPtr<T>, value: T) -> Result<()> {
        self.put_from(GlobalSlice::new(to, 1), core::slice::from_ref(&value))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn get_unmapped<T: Global>(&self, from: GlobalPtr<T>) -> Result<T> {
        let mut value = T::new_zeroed();
        self.get_into(GlobalSlice::new(from, 1), core::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Reads one value.
    ///
    /// A load where the memory is mapped here; otherwise it blocks, polling, until the value is
    /// here. Where ranks race the bytes may be of different writes.
    ///
    /// See the example of [`put_value`](Self::put_value).
    ///
    /// # Errors
    /// As [`put_value`](Self::put_value).
    #[inline]
    pub fn get_value<T: Global>(&self, from: GlobalPtr<T>) -> Result<T> {
        let Some(place) = self.mapped(from) else {
            return self.get_unmapped(from);
        };
        // SAFETY: as in `put_value`; any bytes are a value of a `Global` type.
        Ok(unsafe { bulk::get_value(place.as_ptr()) })
    }

    /// Writes a slice, blocking until it is visible at the target.
    ///
    /// See the example of [`put_value`](Self::put_value).
    ///
    /// # Errors
    /// As [`put_value`](Self::put_value), and another number of values than the slice has; nothing
    /// has been written then.
    #[inline]
    pub fn put_from<T: Global>(&self, to: GlobalSlice<T>, values: &[T]) -> Result<()> {
        to.check_len(values.len())?;
        let transfer = Self::transfer_of(to, Side::Put(values.as_ptr().cast()));
        // SAFETY: `check_len` has found the slice to be as long as the transfer; it is readable,
        // and the call is complete on return.
        process::with(|ctx| unsafe { self.engine().transfer(ctx, transfer) })?;
        Ok(())
    }

    /// Reads into a slice, blocking until it has arrived.
    ///
    /// See the example of [`put_value`](Self::put_value).
    ///
    /// # Errors
    /// As [`put_value`](Self::put_value), and [`Error::SliceLength`]; `values` is unchanged then.
    #[inline]
    pub fn get_into<T: Global>(&self, from: GlobalSlice<T>, values: &mut [T]) -> Result<()> {
        from.check_len(values.len())?;
        let transfer = Self::transfer_of(from, Side::Get(values.as_mut_ptr().cast()));
        // SAFETY: `check_len` has found the slice to be as long as the transfer; it is writable,
        // any bytes are valid values of a `Global` type, and the call is complete on return.
        process::with(|ctx| unsafe { self.engine().transfer(ctx, transfer) })?;
        Ok(())
    }

    /// Starts writing `values`; the operation owns them and gives them back.
    ///
    /// It is complete, locally and remotely, when they are at the target. This call waits, polling,
    /// only while there is no room to start it. It is not ordered with other operations.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u16>::alloc(&world, 3).unwrap();
    /// let buffer = world.put(v.on(world.rank()), vec![1, 2, 3].into()).unwrap().wait().unwrap();
    /// assert_eq!(&*buffer, [1, 2, 3]);
    /// ```
    ///
    /// # Errors
    /// As [`put_value`](Self::put_value), and [`Error::SliceLength`].
    pub fn put<T: Global>(
        &self,
        to: GlobalSlice<T>,
        values: Box<[T]>,
    ) -> Result<Op<'_, Box<[T]>, M>> {
        to.check_len(values.len())?;
        let kept = Kept::new(values);
        let transfer = Self::transfer_of(to, Side::Put(kept.as_ptr().cast()));
        self.start(transfer, kept)
    }

    /// Starts reading the values of a slice.
    ///
    /// The operation is complete when they are here, and returns them. This call waits, polling,
    /// only while there is no room to start it. It is not ordered with other operations.
    ///
    /// See the example of [`put_value`](Self::put_value).
    ///
    /// # Errors
    /// As [`put_value`](Self::put_value), and [`Error::NoMemory`].
    pub fn get<T: Global>(&self, from: GlobalSlice<T>) -> Result<Op<'_, Box<[T]>, M>> {
        let kept = Kept::new(self.room_for(from)?);
        let transfer = Self::transfer_of(from, Side::Get(kept.as_ptr().cast()));
        self.start(transfer, kept)
    }

    /// Memory for the values of a slice, once the slice lies in the segment as far as that is known
    /// here: it may have come in a message, with any length.
    fn room_for<T: Global>(&self, from: GlobalSlice<T>) -> Result<Box<[T]>> {
        let (count, first) = (from.len(), from.first());
        let bytes = count.saturating_mul(size_of::<T>());
        let rank = Self::job_rank(first.rank());
        self.engine().reach(rank, first.offset(), bytes)?;
        let mut values = Vec::new();
        let room = values.try_reserve_exact(count);
        room.map_err(|_| Error::NoMemory {
            rank: self.rank(),
            bytes,
        })?;
        values.resize(count, T::new_zeroed());
        Ok(values.into())
    }

    /// Starts a transfer that reads or writes the values of `kept`.
    #[inline]
    fn start<T: Global>(&self, transfer: Transfer, kept: Kept<T>) -> Result<Op<'_, Box<[T]>, M>> {
        // SAFETY: `kept` owns as many values as the transfer moves, and is kept until the operation
        // is complete; any bytes are valid values of a `Global` type.
        let event = process::with(|ctx| unsafe {
            self.engine().start(ctx, transfer, Injection::Blocking)
        })?;
        Ok(Op::of_event(self, event, kept, Kept::give))
    }
}
