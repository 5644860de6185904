//! Arrays with one part on every rank.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::global::{Global, GlobalPtr};
use crate::global_slice::GlobalSlice;
use crate::process;
use crate::quiet::Quiet;
use crate::world::{Threading, World};
use argonet_base::{Rank, SegmentOffset};
use argonet_engine::ThreadCtx;
use argonet_segment::Directory;
use core::marker::PhantomData;
use std::sync::Arc;

/// An array with `len` elements on *each* rank, at the same offset of every segment.
///
/// Any rank may read and write any part at any time through a [`GlobalPtr`]; so this rank's own
/// part is read and written by copy ([`read`](Self::read), [`write`](Self::write)), and seen as a
/// slice only in a [quiet](World::quiet) phase.
///
/// Its memory is given back by [`free`](Self::free), which is collective; a value that is only
/// dropped keeps its memory until the world ends.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u32>::alloc(&world, 4).unwrap();
/// assert!(v.len() == 4 && !v.is_empty());
/// v.write(&world, 0, 7);
/// v.write_from(&world, 1, &[8, 9]);
/// let mut values = [0; 3];
/// v.read_into(&world, 1, &mut values);
/// assert_eq!((v.read(&world, 0), values), (7, [8, 9, 0]));
/// assert_eq!(world.get_value(v.ptr(world.rank(), 2)).unwrap(), 9);
/// v.free(&world).unwrap();
/// ```
pub struct SharedArray<T: Global> {
    offset: SegmentOffset,
    len: usize,
    rank: Rank,
    directory: Arc<Directory>,
    _type: PhantomData<fn(T) -> T>,
}

impl<T: Global> SharedArray<T> {
    /// Makes an array of `len` zeroed elements on every rank.
    ///
    /// Collective: all ranks give the same `len`. Blocks, polling, until all ranks may use it. The
    /// segments grow where they must.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Errors
    /// [`Error::Heap`](crate::Error::Heap) over the largest segment size, a segment error with
    /// both numbers if the host lacks memory, [`Error::Mismatch`](crate::Error::Mismatch). All
    /// ranks get an error or none; but if a rank is lost meanwhile, some get
    /// [`AmError::PeerLost`](crate::AmError::PeerLost), and every later call does.
    pub fn alloc<M: Threading>(world: &World<M>, len: usize) -> Result<Self> {
        const {
            assert!(
                align_of::<T>() <= 64,
                "pieces of the symmetric heap are aligned to 64 bytes"
            );
            assert!(
                size_of::<T>() > 0,
                "zero-sized types do not need shared memory"
            );
        }
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        Ok(Self {
            offset: world.allocate(bytes)?,
            len,
            rank: world.rank(),
            directory: Arc::clone(world.inner.memory.own.directory()),
            _type: PhantomData,
        })
    }

    /// Gives the memory back.
    ///
    /// Collective; blocks, polling, until all ranks have called it.
    ///
    /// Pointers into it stay offsets: using one later reads or writes the memory as it is used
    /// then.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) if ranks free different arrays;
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) once the job has lost a rank.
    pub fn free<M: Threading>(self, world: &World<M>) -> Result<()> {
        world.release(self.offset, (self.len * size_of::<T>()) as u64)
    }

    /// Elements on each rank.
    ///
    /// See the example of [`SharedArray`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    ///
    /// See the example of [`SharedArray`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pointer to element `i` of the part of `rank`.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Panics
    /// If there is no element `i`.
    #[inline]
    #[must_use]
    pub fn ptr(&self, rank: Rank, i: usize) -> GlobalPtr<T> {
        assert!(
            i < self.len,
            "element {i} of a shared array of {} elements a rank",
            self.len
        );
        GlobalPtr::new(rank, self.offset).offset_by(i)
    }

    /// The part of `rank`.
    ///
    /// See the example of [`GlobalSlice`].
    ///
    /// [`GlobalSlice`]: crate::GlobalSlice
    #[inline]
    #[must_use]
    pub fn on(&self, rank: Rank) -> GlobalSlice<T> {
        GlobalSlice::new(GlobalPtr::new(rank, self.offset), self.len)
    }

    /// Reads element `i` of this rank's part.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Panics
    /// If there is no element `i`.
    #[inline]
    #[must_use]
    pub fn read<M: Threading>(&self, _world: &World<M>, i: usize) -> T {
        let mut value = T::new_zeroed();
        self.read_into(_world, i, core::slice::from_mut(&mut value));
        value
    }

    /// Writes element `i` of this rank's part.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Panics
    /// If there is no element `i`.
    #[inline]
    pub fn write<M: Threading>(&self, _world: &World<M>, i: usize, value: T) {
        self.write_from(_world, i, core::slice::from_ref(&value));
    }

    /// Reads elements of this rank's part from `first` on.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Panics
    /// If they reach past the end.
    #[inline]
    pub fn read_into<M: Threading>(&self, _world: &World<M>, first: usize, to: &mut [T]) {
        let from = self.place(first, to.len());
        // SAFETY: `place` has checked the elements; the slice is writable, any bytes are values.
        unsafe {
            argonet_segment::bulk::copy(to.as_mut_ptr().cast(), from.cast(), size_of_val(to));
        }
    }

    /// Writes elements of this rank's part from `first` on.
    ///
    /// See the example of [`SharedArray`].
    ///
    /// # Panics
    /// If they reach past the end.
    #[inline]
    pub fn write_from<M: Threading>(&self, _world: &World<M>, first: usize, from: &[T]) {
        let to = self.place(first, from.len());
        // Others read it by gets, which are no messages that they could miss.
        process::with(ThreadCtx::note_write);
        // SAFETY: `place` has checked the elements; the slice is readable.
        unsafe {
            argonet_segment::bulk::copy(to.cast(), from.as_ptr().cast(), size_of_val(from));
        }
    }

    /// This rank's part as a slice.
    ///
    /// There is no slice while other ranks may write, as no program can make a [`Quiet`]:
    ///
    /// ```compile_fail,E0451
    /// # use argonet::{Quiet, SharedArray, World};
    /// # fn f(v: SharedArray<u64>) {
    /// let quiet = Quiet { _private: () };
    /// let slice = v.local(&quiet);
    /// # }
    /// ```
    ///
    /// Any thread may ask for it, so elements must be [`Sync`]:
    ///
    /// ```compile_fail,E0277
    /// # use argonet::{Quiet, SharedArray};
    /// # use core::{cell::Cell, marker::PhantomData};
    /// # use argonet::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
    /// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
    /// #[zerocopy(crate = "argonet::zerocopy")]
    /// #[repr(C)]
    /// struct OneThread { id: u64, _not_sync: PhantomData<Cell<u8>> }
    /// fn first<'q>(v: &'q SharedArray<OneThread>, quiet: &'q Quiet) -> &'q OneThread {
    ///     &v.local(quiet)[0]
    /// }
    /// ```
    ///
    /// See the example of [`World::quiet`].
    #[must_use]
    pub fn local<'q>(&'q self, _quiet: &'q Quiet) -> &'q [T]
    where
        T: Sync,
    {
        // SAFETY: `place` gives an aligned, mapped array of `len` elements, initialized as files
        // are, valid for any bytes (Global). No rank writes while `Quiet` lives: it exists only
        // inside `World::quiet`, on all ranks at once. Other threads may have the same slice, which
        // `Sync` allows.
        unsafe { core::slice::from_raw_parts(self.place(0, self.len), self.len) }
    }

    /// This rank's part as a slice that can be written, one at a time:
    ///
    /// ```compile_fail,E0502
    /// # use argonet::{SharedArray, World};
    /// # fn f(world: &mut World, mut v: SharedArray<u64>) {
    /// world.quiet(|q| {
    ///     let (a, b) = (v.local_mut(q), v.local(q));
    ///     a[0] = b[1];
    /// }).unwrap();
    /// # }
    /// ```
    ///
    /// See the example of [`World::quiet`].
    #[must_use]
    pub fn local_mut<'q>(&'q mut self, _quiet: &'q Quiet) -> &'q mut [T] {
        // SAFETY: as for `local`, and no rank reads either; `&mut self` keeps other slices of this
        // array away, and no other array shares its memory (Heap's test `pieces_never_overlap`).
        unsafe { core::slice::from_raw_parts_mut(self.place(0, self.len), self.len) }
    }

    /// Address of `count` elements of this rank's part.
    #[inline]
    fn place(&self, first: usize, count: usize) -> *mut T {
        let end = first.checked_add(count);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "elements {first}.. ({count} of them) of a shared array of {} elements a rank",
            self.len
        );
        if count == 0 {
            return core::ptr::NonNull::dangling().as_ptr();
        }
        let offset = SegmentOffset(self.offset.0 + (first * size_of::<T>()) as u64);
        let own = argonet_base::JobRank(self.rank.0);
        let place = self.directory.resolve(own, offset, count * size_of::<T>());
        let place = place.expect("an array lies within its rank's attached segment");
        place.as_ptr().cast()
    }
}
