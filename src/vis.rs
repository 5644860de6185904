//! Non-contiguous puts and gets of the safe API.
#![allow(unsafe_code)]

use crate::engine::{
    Direction, Few, OpError, Outlook, PeerMemory, Piece, Pieces, Shape, Strided, VisTransfer,
};
use crate::error::Result;
use crate::global::Global;
use crate::global_slice::GlobalSlice;
use crate::op::Op;
use crate::process;
use crate::scope::Scope;
use crate::section::{Section, SectionError};
use crate::world::{Threading, World};
use argonet_am::AmError;
use argonet_base::Rank;
use argonet_event::Event;

/// A transfer whose shape was checked. Addresses are those of buffers that its maker keeps.
struct Checked {
    direction: Direction,
    rank: Rank,
    what: What,
}

enum What {
    Strided {
        element: usize,
        counts: Few<usize>,
        to: (usize, Few<isize>),
        from: (usize, Few<isize>),
    },
    Vector {
        to: Vec<Piece>,
        from: Vec<Piece>,
    },
}

impl Checked {
    fn with<R>(&self, f: impl FnOnce(&VisTransfer<'_>) -> R) -> R {
        let shape = match &self.what {
            What::Strided {
                element,
                counts,
                to,
                from,
            } => Shape::Strided(Strided {
                to: to.0,
                to_strides: &to.1,
                from: from.0,
                from_strides: &from.1,
                element: *element,
                counts,
            }),
            What::Vector { to, from } => Shape::Pieces {
                to: Pieces::Vector(to),
                from: Pieces::Vector(from),
            },
        };
        f(&VisTransfer {
            direction: self.direction,
            rank: argonet_base::JobRank(self.rank.0),
            memory: PeerMemory::Segment,
            shape,
            notice: None,
        })
    }
}

/// An operation under way, with what it reads and writes.
struct Started<'w, M: Threading, B> {
    world: &'w World<M>,
    event: Event,
    buffers: Option<B>,
    /// The lists of pieces, which the engine reads until the end.
    _lists: Checked,
}

impl<M: Threading, B> Started<'_, M, B> {
    fn look(&mut self) -> Option<Result<B>> {
        let engine = self.world.engine();
        match process::with(|ctx| engine.peek(ctx, self.event)) {
            Ok(true) => {
                self.event = Event::DONE;
                self.buffers.take().map(Ok)
            }
            Ok(false) => None,
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl<M: Threading, B> Drop for Started<'_, M, B> {
    fn drop(&mut self) {
        let engine = self.world.engine();
        if !self.event.is_done() && process::with(|ctx| engine.wait(ctx, self.event)).is_err() {
            // Nobody knows when the last byte comes: it needs somewhere to go.
            core::mem::forget(self.buffers.take());
        }
    }
}

impl<M: Threading> World<M> {
    /// Writes a section of a slice into a section of global memory, blocking until it is visible there.
    ///
    /// ```
    /// use argonet::{Section, SharedVec, World};
    /// # let world = World::init().unwrap();
    /// // Plates of 4 x 6: the last column goes into the first one of the next rank's plate.
    /// let plate = SharedVec::<f64>::alloc(&world, 24).unwrap();
    /// let mine: Vec<f64> = (0..24).map(f64::from).collect();
    /// let last = Section::of_array(&[4, 6], &[0..4, 5..6]).unwrap();
    /// let first = Section::of_array(&[4, 6], &[0..4, 0..1]).unwrap();
    /// let next = world.neighbour(1);
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
    /// [`Error::Section`](crate::Error::Section) for a section that leaves its slice, or two that differ; otherwise as
    /// [`put_value`](Self::put_value). Nothing has been written then.
    pub fn put_strided<T: Global>(
        &self,
        to: GlobalSlice<T>,
        at: &Section,
        values: &[T],
        of: &Section,
    ) -> Result<()> {
        let checked = self.strided(
            Direction::Put,
            (to, at),
            (values.as_ptr(), values.len(), of),
        )?;
        // SAFETY: the slice is readable, and the call is complete on return.
        unsafe { self.run(&checked) }
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
        let local = (values.as_mut_ptr().cast_const(), values.len(), of);
        values.as_mut_ptr().expose_provenance();
        let checked = self.strided(Direction::Get, (from, at), local)?;
        // SAFETY: the slice is writable, any bytes are values of a `Global` type, and the call is complete on return.
        unsafe { self.run(&checked) }
    }

    /// Starts what [`put_strided`](Self::put_strided) does; the operation owns the values and gives them back.
    ///
    /// ```
    /// # use argonet::{Section, SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u16>::alloc(&world, 9).unwrap();
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
    ) -> Result<Op<'_, Box<[T]>>> {
        let checked = self.strided(
            Direction::Put,
            (to, at),
            (values.as_ptr(), values.len(), of),
        )?;
        // SAFETY: the operation keeps the values.
        unsafe { self.start_checked(checked, values) }
    }

    /// Starts what [`get_strided`](Self::get_strided) does; the operation owns the slice and gives it back.
    ///
    /// See the example of [`start_put_strided`](Self::start_put_strided).
    ///
    /// # Errors
    /// As [`put_strided`](Self::put_strided).
    pub fn start_get_strided<T: Global>(
        &self,
        mut values: Box<[T]>,
        of: &Section,
        from: GlobalSlice<T>,
        at: &Section,
    ) -> Result<Op<'_, Box<[T]>>> {
        let local = (values.as_mut_ptr().cast_const(), values.len(), of);
        values.as_mut_ptr().expose_provenance();
        let checked = self.strided(Direction::Get, (from, at), local)?;
        // SAFETY: the operation keeps the slice, any bytes are values of a `Global` type.
        unsafe { self.start_checked(checked, values) }
    }

    /// Writes slices, one after another, into pieces of global memory of one rank, one after another; both have as many
    /// elements, which may be cut in different ways. Blocks until all are visible there.
    ///
    /// ```
    /// # use argonet::{SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u8>::alloc(&world, 20).unwrap();
    /// let there = v.on(world.neighbour(1));
    /// let pieces = [there.part(15..18), there.part(0..0), there.part(3..5)];
    /// world.put_vector(&pieces, &[b"ab", b"cde"]).unwrap();
    /// let (mut a, mut b) = ([0u8; 4], [0u8; 1]);
    /// world.get_vector(&mut [&mut a, &mut b], &pieces).unwrap();
    /// assert_eq!((&a, &b), (b"abcd", b"e"));
    /// ```
    ///
    /// # Errors
    /// Pieces on several ranks, lengths that differ; otherwise as [`put_value`](Self::put_value). Nothing has been written
    /// then.
    pub fn put_vector<T: Global>(&self, to: &[GlobalSlice<T>], values: &[&[T]]) -> Result<()> {
        let checked = self.vector(Direction::Put, to, values.iter().map(|slice| listed(slice)))?;
        // SAFETY: the slices are readable, and the call is complete on return.
        unsafe { self.run(&checked) }
    }

    /// Reads pieces of global memory of one rank, one after another, into slices, one after another. Blocks until all have
    /// arrived.
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
        // SAFETY: the slices are writable, any bytes are values of a `Global` type, and the call is complete on return.
        unsafe { self.run(&checked) }
    }

    /// Starts what [`put_vector`](Self::put_vector) does; the operation owns the slices and gives them back.
    ///
    /// ```
    /// # use argonet::{SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u32>::alloc(&world, 6).unwrap();
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
    ) -> Result<Op<'_, Vec<Box<[T]>>>> {
        let checked = self.vector(Direction::Put, to, values.iter().map(|slice| listed(slice)))?;
        // SAFETY: the operation keeps the slices.
        unsafe { self.start_checked(checked, values) }
    }

    /// Starts what [`get_vector`](Self::get_vector) does; the operation owns the slices and gives them back.
    ///
    /// See the example of [`start_put_vector`](Self::start_put_vector).
    ///
    /// # Errors
    /// As [`put_vector`](Self::put_vector).
    pub fn start_get_vector<T: Global>(
        &self,
        mut values: Vec<Box<[T]>>,
        from: &[GlobalSlice<T>],
    ) -> Result<Op<'_, Vec<Box<[T]>>>> {
        let local = values.iter_mut().map(|slice| listed_mut(slice));
        let checked = self.vector(Direction::Get, from, local)?;
        // SAFETY: the operation keeps the slices, any bytes are values of a `Global` type.
        unsafe { self.start_checked(checked, values) }
    }

    /// Checks sections against each other and against what they are of.
    fn strided<T: Global>(
        &self,
        direction: Direction,
        (there, at): (GlobalSlice<T>, &Section),
        (here, len, of): (*const T, usize, &Section),
    ) -> Result<Checked> {
        match direction {
            Direction::Put => at.matches(of),
            Direction::Get => of.matches(at),
        }?;
        at.check(there.len())?;
        of.check(len)?;
        let size = size_of::<T>();
        let place = |base: usize, section: &Section| {
            let (first, strides) = section.in_bytes(size);
            (base.wrapping_add(first), strides)
        };
        let remote = place(self.address(there)?, at);
        let local = place(here.expose_provenance(), of);
        let (to, from) = match direction {
            Direction::Put => (remote, local),
            Direction::Get => (local, remote),
        };
        Ok(Checked {
            direction,
            rank: there.rank(),
            what: What::Strided {
                element: size,
                counts: at.counts(),
                to,
                from,
            },
        })
    }

    /// Checks that all pieces are of one rank.
    fn vector<T: Global>(
        &self,
        direction: Direction,
        there: &[GlobalSlice<T>],
        here: impl Iterator<Item = Piece>,
    ) -> Result<Checked> {
        let rank = there.first().map_or(self.rank(), |piece| piece.rank());
        let mut remote = Vec::with_capacity(there.len());
        for (number, piece) in there.iter().enumerate() {
            if piece.rank() != rank {
                return Err(SectionError::SeveralRanks {
                    piece: number,
                    first: rank.0,
                    other: piece.rank().0,
                }
                .into());
            }
            remote.push(Piece {
                address: self.address(*piece)?,
                len: piece.len().saturating_mul(size_of::<T>()),
            });
        }
        let local = here.collect();
        let (to, from) = match direction {
            Direction::Put => (remote, local),
            Direction::Get => (local, remote),
        };
        Ok(Checked {
            direction,
            rank,
            what: What::Vector { to, from },
        })
    }

    /// Where a slice begins in its rank's process. Whether it lies in that rank's segment is found out later.
    fn address<T: Global>(&self, slice: GlobalSlice<T>) -> Result<usize> {
        let (engine, to) = (self.engine(), Self::job_rank(slice.rank()));
        if to.0 >= engine.size() {
            let (size, from) = (engine.size(), engine.rank());
            return Err(OpError::Am(AmError::NoSuchRank { to, size, from }).into());
        }
        let base = 0u64.wrapping_sub(engine.offset_of(to, 0).0);
        Ok(base.wrapping_add(slice.first().offset().0) as usize)
    }

    /// # Safety
    /// The addresses of this side are those of memory that is readable or writable.
    unsafe fn run(&self, checked: &Checked) -> Result<()> {
        let engine = self.engine();
        checked.with(|transfer| {
            // SAFETY: the caller's promise; the lists are there until this returns.
            process::with(|ctx| unsafe { engine.vis(ctx, transfer, Outlook::Wait) })
        })?;
        Ok(())
    }

    /// # Safety
    /// The addresses of this side are those of memory that `buffers` own, wherever they are moved to, and nobody else
    /// uses.
    unsafe fn start_checked<'w, B: 'w>(
        &'w self,
        checked: Checked,
        buffers: B,
    ) -> Result<Op<'w, B>> {
        let engine = self.engine();
        let event = checked.with(|transfer| {
            // SAFETY: the caller's promise; buffers and lists are kept until the event is complete.
            process::with(|ctx| unsafe { engine.vis_start(ctx, transfer, Outlook::Wait) })
        })?;
        if event.is_done() {
            return Ok(Op::done(self, buffers));
        }
        let mut started = Started {
            world: self,
            event,
            buffers: Some(buffers),
            _lists: checked,
        };
        Ok(Op::waiting(self, move || started.look()))
    }
}

fn listed<T: Global>(slice: &[T]) -> Piece {
    Piece {
        address: slice.as_ptr().expose_provenance(),
        len: size_of_val(slice),
    }
}

fn listed_mut<T: Global>(slice: &mut [T]) -> Piece {
    Piece {
        address: slice.as_mut_ptr().expose_provenance(),
        len: size_of_val(slice),
    }
}

impl<'scope, 'env, M: Threading> Scope<'scope, 'env, M> {
    /// Starts writing a section of a slice.
    ///
    /// ```
    /// # use argonet::{Section, SharedVec, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedVec::<u64>::alloc(&world, 8).unwrap();
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

    /// Starts reading into a section of a slice, which belongs to the scope until its end.
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
