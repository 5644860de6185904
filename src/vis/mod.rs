//! Non-contiguous puts and gets of the safe API.
#![allow(unsafe_code)]

mod checked;
mod each;

pub(crate) use each::Moved;

use crate::error::Result;
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::op::Op;
use crate::scope::Scope;
use crate::section::Section;
use crate::world::{Threading, World};
use argonet_base::kept::Kept;
use argonet_engine::Direction;
use checked::{give_each, kept_each, listed, listed_kept, listed_mut};

impl<M: Threading> World<M> {
    /// Writes a section of a slice into a section of global memory, blocking until it is visible
    /// there.
    ///
    /// ```
    /// use argonet::{Section, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// // Plates of 4 x 6: the last column goes into the first one of the next rank's plate.
    /// let plate = SharedArray::<f64>::alloc(&world, 24).unwrap();
    /// let mine: Vec<f64> = (0..24).map(f64::from).collect();
    /// let last = Section::of_array(&[4, 6], &[0..4, 5..6]).unwrap();
    /// let first = Section::of_array(&[4, 6], &[0..4, 0..1]).unwrap();
    /// let next = world.rank_offset(1);
    /// world.put_strided(plate.on(next), &first, &mine, &last).unwrap();
    /// world.barrier().unwrap();
    /// assert_eq!((plate.read(&world, 0), plate.read(&world, 18)), (5.0, 23.0));
    /// // Back, mirrored.
    /// let mut back = vec![0.0; 24];
    /// world.get_strided(&mut back, &last, plate.on(next), &first.reversed(0)).unwrap();
    /// assert_eq!((back[5], back[23]), (23.0, 5.0));
    /// ```
    ///
    /// # Errors
    /// [`Error::Section`](crate::Error::Section) for a section that leaves its slice, or two that
    /// differ; otherwise as [`put_value`](Self::put_value). Nothing has been written then.
    pub fn put_strided<T: Global>(
        &self,
        to: GlobalSlice<T>,
        at: &Section,
        values: &[T],
        of: &Section,
    ) -> Result<()> {
        let local = (values.as_ptr().cast_mut(), values.len(), of);
        // SAFETY: the slice is readable, and nothing is written there by a put.
        unsafe { self.run_strided(Direction::Put, (to, at), local) }
    }

    /// Reads a section of global memory into a section of a slice, blocking until it has arrived.
    ///
    /// See the example of [`put_strided`](Self::put_strided).
    ///
    /// # Errors
    /// As [`put_strided`](Self::put_strided); the slice is unchanged then.
    pub fn get_strided<T: Global>(
        &self,
        values: &mut [T],
        of: &Section,
        from: GlobalSlice<T>,
        at: &Section,
    ) -> Result<()> {
        let (len, start) = (values.len(), values.as_mut_ptr());
        start.expose_provenance();
        let local = (start, len, of);
        // SAFETY: the slice is writable, and any bytes are values of a `Global` type.
        unsafe { self.run_strided(Direction::Get, (from, at), local) }
    }

    /// Starts a [`put_strided`](Self::put_strided); the operation owns the values and gives them
    /// back.
    ///
    /// Complete and waiting as [`put`](Self::put).
    ///
    /// ```
    /// # use argonet::{Section, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u16>::alloc(&world, 9).unwrap();
    /// let (dense, spread) = (Section::new(0, &[(3, 1)]), Section::new(2, &[(3, 3)]));
    /// let here = v.on(world.rank());
    /// let put = world.start_put_strided(here, &spread, vec![1, 2, 3].into(), &dense).unwrap();
    /// assert_eq!(&*put.wait().unwrap(), [1, 2, 3]);
    /// let get = world.start_get_strided(vec![0; 3].into(), &dense.reversed(0), here, &spread).unwrap();
    /// assert_eq!(&*get.wait().unwrap(), [3, 2, 1]);
    /// ```
    ///
    /// # Errors
    /// As [`put_strided`](Self::put_strided).
    pub fn start_put_strided<T: Global>(
        &self,
        to: GlobalSlice<T>,
        at: &Section,
        values: Box<[T]>,
        of: &Section,
    ) -> Result<Op<'_, Box<[T]>, M>> {
        let values = Kept::new(values);
        let first = values.as_ptr();
        let local = (first.cast::<T>().cast_const(), first.len(), of);
        first.cast::<T>().expose_provenance();
        let checked = self.strided(Direction::Put, (to, at), local)?;
        // SAFETY: the operation keeps the values.
        unsafe { self.start_checked(checked, values, Kept::give) }
    }

    /// Starts a [`get_strided`](Self::get_strided); the operation owns the slice and gives it back.
    ///
    /// Complete and waiting as [`get`](Self::get).
    ///
    /// See the example of [`start_put_strided`](Self::start_put_strided).
    ///
    /// # Errors
    /// As [`put_strided`](Self::put_strided).
    pub fn start_get_strided<T: Global>(
        &self,
        values: Box<[T]>,
        of: &Section,
        from: GlobalSlice<T>,
        at: &Section,
    ) -> Result<Op<'_, Box<[T]>, M>> {
        let values = Kept::new(values);
        let first = values.as_ptr();
        let local = (first.cast::<T>().cast_const(), first.len(), of);
        first.cast::<T>().expose_provenance();
        let checked = self.strided(Direction::Get, (from, at), local)?;
        // SAFETY: the operation keeps the slice, any bytes are values of a `Global` type.
        unsafe { self.start_checked(checked, values, Kept::give) }
    }

    /// Writes slices, one after another, into pieces of global memory of one rank, one after
    /// another; both have as many elements, which may be cut in different ways.
    ///
    /// Blocks until all are visible there.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u8>::alloc(&world, 20).unwrap();
    /// let there = v.on(world.rank_offset(1));
    /// let pieces = [there.part(15..18), there.part(0..0), there.part(3..5)];
    /// world.put_vector(&pieces, &[b"ab", b"cde"]).unwrap();
    /// let (mut a, mut b) = ([0u8; 4], [0u8; 1]);
    /// world.get_vector(&mut [&mut a, &mut b], &pieces).unwrap();
    /// assert_eq!((&a, &b), (b"abcd", b"e"));
    /// ```
    ///
    /// # Errors
    /// Pieces on several ranks, lengths that differ; otherwise as [`put_value`](Self::put_value).
    /// Nothing has been written then.
    pub fn put_vector<T: Global>(&self, to: &[GlobalSlice<T>], values: &[&[T]]) -> Result<()> {
        let checked = self.vector(Direction::Put, to, values.iter().map(|slice| listed(slice)))?;
        // SAFETY: the slices are readable, and the call is complete on return.
        unsafe { self.run(&checked) }
    }

    /// Reads pieces of global memory of one rank, one after another, into slices, one after
    /// another.
    ///
    /// Blocks until all have arrived.
    ///
    /// See the example of [`put_vector`](Self::put_vector).
    ///
    /// # Errors
    /// As [`put_vector`](Self::put_vector); the slices are unchanged then.
    pub fn get_vector<T: Global>(
        &self,
        values: &mut [&mut [T]],
        from: &[GlobalSlice<T>],
    ) -> Result<()> {
        let local = values.iter_mut().map(|slice| listed_mut(slice));
        let checked = self.vector(Direction::Get, from, local)?;
        // SAFETY: the slices are writable, any bytes are values of a `Global` type, and the call is
        // complete on return.
        unsafe { self.run(&checked) }
    }

    /// Starts a [`put_vector`](Self::put_vector); the operation owns the slices and gives them
    /// back.
    ///
    /// Complete and waiting as [`put`](Self::put).
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u32>::alloc(&world, 6).unwrap();
    /// let here = v.on(world.rank());
    /// let pieces = [here.part(4..6), here.part(0..1)];
    /// world.start_put_vector(&pieces, vec![Box::from([1, 2, 3])]).unwrap().wait().unwrap();
    /// let slices = vec![Box::from([0]), Box::from([0, 0])];
    /// let slices = world.start_get_vector(slices, &pieces).unwrap().wait().unwrap();
    /// assert_eq!((&*slices[0], &*slices[1]), (&[1][..], &[2, 3][..]));
    /// ```
    ///
    /// # Errors
    /// As [`put_vector`](Self::put_vector).
    pub fn start_put_vector<T: Global>(
        &self,
        to: &[GlobalSlice<T>],
        values: Vec<Box<[T]>>,
    ) -> Result<Op<'_, Vec<Box<[T]>>, M>> {
        let values = kept_each(values);
        let checked = self.vector(Direction::Put, to, values.iter().map(listed_kept))?;
        // SAFETY: the operation keeps the slices.
        unsafe { self.start_checked(checked, values, give_each) }
    }

    /// Starts a [`get_vector`](Self::get_vector); the operation owns the slices and gives them
    /// back.
    ///
    /// Complete and waiting as [`get`](Self::get).
    ///
    /// See the example of [`start_put_vector`](Self::start_put_vector).
    ///
    /// # Errors
    /// As [`put_vector`](Self::put_vector).
    pub fn start_get_vector<T: Global>(
        &self,
        values: Vec<Box<[T]>>,
        from: &[GlobalSlice<T>],
    ) -> Result<Op<'_, Vec<Box<[T]>>, M>> {
        let values = kept_each(values);
        let checked = self.vector(Direction::Get, from, values.iter().map(listed_kept))?;
        // SAFETY: the operation keeps the slices, any bytes are values of a `Global` type.
        unsafe { self.start_checked(checked, values, give_each) }
    }
}

impl<'scope, 'env, M: Threading> Scope<'scope, 'env, M> {
    /// Writes a section of a slice as [`World::put_strided`] does: blocking, where
    /// [`put`](Self::put) starts.
    ///
    /// ```
    /// # use argonet::{Section, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 8).unwrap();
    /// let (source, mut target) = ([1u64, 2, 3, 4], [0u64; 4]);
    /// let (dense, even) = (Section::new(0, &[(4, 1)]), Section::new(0, &[(4, 2)]));
    /// let here = v.on(world.rank());
    /// world.scope(|s| s.put_strided(here, &even, &source, &dense)).unwrap();
    /// world.scope(|s| s.get_strided(&mut target, &dense, here, &even)).unwrap();
    /// assert_eq!(target, source);
    /// ```
    ///
    /// # Errors
    /// As [`World::put_strided`].
    pub fn put_strided<T: Global>(
        &'scope self,
        to: GlobalSlice<T>,
        at: &Section,
        values: &'env [T],
        of: &Section,
    ) -> Result<()> {
        self.world().put_strided(to, at, values, of)
    }

    /// Reads into a section of a slice as [`World::get_strided`] does: blocking, where
    /// [`get`](Self::get) starts.
    ///
    /// The slice belongs to the scope until its end.
    ///
    /// See the example of [`put_strided`](Self::put_strided).
    ///
    /// # Errors
    /// As [`World::put_strided`].
    pub fn get_strided<T: Global>(
        &'scope self,
        values: &'env mut [T],
        of: &Section,
        from: GlobalSlice<T>,
        at: &Section,
    ) -> Result<()> {
        self.world().get_strided(values, of, from, at)
    }
}
