//! Collective operations on blocks of any length.

use super::{Collectives, between};
use crate::error::Result;
use crate::global::Global;
use crate::op::Op;
use crate::process;
use crate::world::Threading;
use argonet_base::Rank;
use argonet_base::kept::Kept;
use argonet_engine::{BlockRanges, Call, Kind};
use core::ops::{Index, Range};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A block of values for each rank of a team, of any length; stored contiguously, in the order of
/// ranks.
///
/// Values that the collective operations move have a size: those of no bytes do not compile there.
///
/// ```
/// use argonet::{Blocks, Rank};
/// let blocks: Blocks<u32> = [vec![1, 2], vec![], vec![3]].into_iter().collect();
/// assert_eq!((blocks.count(), blocks.values()), (3, &[1, 2, 3][..]));
/// assert_eq!((&blocks[Rank(0)], &blocks[Rank(1)]), (&[1, 2][..], &[][..]));
/// assert!(blocks.iter().map(<[u32]>::len).eq([2, 0, 1]));
/// // Of values that are contiguous already.
/// assert_eq!(Blocks::new(vec![1, 2, 3], [2, 0, 1]), blocks);
/// assert_eq!(blocks.into_values(), [1, 2, 3]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks<T> {
    values: Vec<T>,
    /// Where each block ends, the last at the end of the values.
    ends: Vec<usize>,
}

impl<T> Blocks<T> {
    /// Blocks of these lengths, in order, of which `values` is made up.
    ///
    /// # Panics
    /// If the lengths do not add up to `values.len()`.
    #[must_use]
    pub fn new(values: Vec<T>, lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0usize;
        let ends: Vec<usize> = lengths
            .into_iter()
            .map(|len| {
                end = end.checked_add(len).expect("blocks are as long as a slice");
                end
            })
            .collect();
        assert_eq!(end, values.len(), "blocks have all values");
        Self { values, ends }
    }

    /// The number of blocks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The blocks, in the order of ranks.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.count()).map(|at| self.block(at))
    }

    /// The values of all blocks.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values of all blocks, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The vector of the values, without the lengths.
    #[must_use]
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The lengths of the blocks.
    fn lengths(&self) -> Vec<usize> {
        self.iter().map(<[T]>::len).collect()
    }

    fn block(&self, at: usize) -> &[T] {
        let begin = at.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.values[begin..self.ends[at]]
    }
}

/// The block of a rank of the team; panics if the team has no such rank.
impl<T> Index<Rank> for Blocks<T> {
    type Output = [T];

    fn index(&self, rank: Rank) -> &[T] {
        self.block(rank.0 as usize)
    }
}

/// Makes a block from each item.
impl<T, B: IntoIterator<Item = T>> FromIterator<B> for Blocks<T> {
    fn from_iter<I: IntoIterator<Item = B>>(blocks: I) -> Self {
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        for block in blocks {
            values.extend(block);
            ends.push(values.len());
        }
        Self { values, ends }
    }
}

/// The number of values of a block, which no call of the client's takes for its own values.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
struct Length(u64);

impl Length {
    fn each(lengths: &[usize]) -> Vec<Self> {
        lengths.iter().map(|len| Self(*len as u64)).collect()
    }

    fn values(lengths: Vec<Self>) -> Vec<usize> {
        lengths.into_iter().map(|len| len.0 as usize).collect()
    }
}

/// Blocks of a member: where each lies among its values, if it is sent.
type Sent = Vec<Option<Range<usize>>>;

/// Blocks that lie one behind the other; `sent` says which are sent, by their length.
fn in_order(lengths: &[usize], sent: impl Fn(usize) -> bool) -> Sent {
    let mut end = 0usize;
    let block = |len: &usize| {
        let begin = end;
        end = end
            .checked_add(*len)
            .expect("blocks are as long as a slice");
        sent(*len).then_some(begin..end)
    };
    lengths.iter().map(block).collect()
}

/// Blocks that are not empty: both ranks know the lengths.
fn some(len: usize) -> bool {
    len > 0
}

/// All blocks, also empty ones: ranks that differ in a length find it.
fn all(_: usize) -> bool {
    true
}

/// Behind the last value of some blocks.
fn end(blocks: &Sent) -> usize {
    let ends = blocks.iter().flatten().map(|block| block.end);
    ends.max().unwrap_or(0)
}

/// Where blocks of values lie in bytes.
fn in_bytes<T>(blocks: &Sent) -> Sent {
    let bytes = |at: usize| {
        at.checked_mul(size_of::<T>())
            .expect("blocks are as long as a slice")
    };
    let place = |block: &Range<usize>| bytes(block.start)..bytes(block.end);
    blocks
        .iter()
        .map(|block| block.as_ref().map(place))
        .collect()
}

/// Which operation it is, as ranks compare it.
#[derive(Clone, Copy)]
enum What {
    Exchange,
    GatherAll,
    Gather(Rank),
    Scatter(Rank),
}

impl What {
    fn call<T: Global>(self, src: *const [T], dst: *mut [T]) -> Call {
        const { assert!(size_of::<T>() > 0, "values of blocks have a size") };
        let (kind, root, count) = match self {
            Self::Exchange => (Kind::ExchangeV, Rank(0), 0),
            Self::GatherAll => (Kind::ExchangeV, Rank(0), 1),
            Self::Gather(root) => (Kind::GatherV, root, 0),
            Self::Scatter(root) => (Kind::ScatterV, root, 0),
        };
        Call {
            root: root.0,
            ..between(kind, count, src, dst)
        }
    }
}

/// What a member has for each, and what each has for it.
struct Sides {
    given: Sent,
    taken: Sent,
}

impl Sides {
    /// Calls `f` with the sides as the engine has them.
    ///
    /// # Panics
    /// If the blocks do not lie within so many values.
    fn ranges<T, R>(&self, given: usize, taken: usize, f: impl FnOnce(&BlockRanges<'_>) -> R) -> R {
        assert!(
            end(&self.given) <= given && end(&self.taken) <= taken,
            "blocks lie within the values"
        );
        f(&BlockRanges {
            sent: &in_bytes::<T>(&self.given),
            received: &in_bytes::<T>(&self.taken),
        })
    }
}

impl<'w, M: Threading> Collectives<'w, M> {
    /// A block for `rank` alone.
    fn only(&self, rank: Rank, block: Option<Range<usize>>) -> Sent {
        let mut blocks = vec![None; self.size()];
        // A root that does not exist is an error of the call.
        if let Some(one) = blocks.get_mut(rank.0 as usize) {
            *one = block;
        }
        blocks
    }

    /// # Panics
    /// If this is not the number of ranks.
    fn one_each(&self, count: usize) {
        assert_eq!(count, self.size(), "each rank of the team has a block");
    }

    /// Moves blocks whose lengths ranks have compared; the values that come.
    fn move_known<T: Global>(&self, what: What, values: &[T], sides: &Sides) -> Result<Vec<T>> {
        let mut result = vec![T::new_zeroed(); end(&sides.taken)];
        let call = what.call(values, &mut *result);
        let engine = self.world.engine();
        sides.ranges::<T, _>(values.len(), result.len(), |ranges| {
            process::with(|ctx| {
                // SAFETY: both slices are borrowed, and the blocks lie in them.
                unsafe { engine.unequal_wait(ctx, &self.team, call, ranges) }
            })
        })?;
        Ok(result)
    }

    /// Starts the same; the operation returns what `finish` makes of the values that come.
    fn start_known<T: Global, R: 'static>(
        &self,
        what: What,
        values: Box<[T]>,
        sides: &Sides,
        finish: impl Fn(Box<[T]>) -> R + Send + 'static,
    ) -> Result<Op<'w, R, M>> {
        let (given, taken) = (values.len(), end(&sides.taken));
        let result = Kept::new(vec![T::new_zeroed(); taken].into());
        let values = Kept::new(values);
        let call = what.call(values.as_ptr(), result.as_ptr());
        let engine = self.world.engine();
        let event = sides.ranges::<T, _>(given, taken, |ranges| {
            process::with(|ctx| {
                // SAFETY: the values are kept where they are until the event is complete, and the
                // blocks lie in them.
                unsafe { engine.unequal_start(ctx, &self.team, call, ranges) }
            })
        })?;
        let finish = move |(_, result): (Kept<T>, Kept<T>)| finish(result.give());
        Ok(self.op(event, (values, result), finish))
    }

    /// Sends block `r` of `blocks` to each rank `r`, and returns the blocks that came, in the order
    /// of the ranks that they are from (`MPI_Alltoallv`).
    ///
    /// It counts as two collective calls: ranks exchange the lengths, then the blocks. Each block
    /// that is not empty goes straight to its rank; none is sent that is empty. Blocking calls and
    /// [started](Self::start_exchange_v) ones do not go together.
    ///
    /// ```
    /// # use argonet::{Blocks, World};
    /// # let world = World::init().unwrap();
    /// let me = world.rank().0;
    /// // As many values for each rank as its number says.
    /// let blocks: Blocks<u32> = (0..world.size()).map(|to| vec![me; to as usize]).collect();
    /// let got = world.collectives().exchange_v(&blocks).unwrap();
    /// for (from, block) in (0..).zip(got.iter()) {
    ///     assert!(block.len() == me as usize && block.iter().all(|value| *value == from));
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    ///
    /// # Panics
    /// If `blocks` does not have one for each rank.
    pub fn exchange_v<T: Global>(&self, blocks: &Blocks<T>) -> Result<Blocks<T>> {
        self.one_each(blocks.count());
        let lengths = blocks.lengths();
        let come = Length::values(self.exchange(&Length::each(&lengths))?);
        let sides = Sides {
            given: in_order(&lengths, some),
            taken: in_order(&come, some),
        };
        let values = self.move_known(What::Exchange, blocks.values(), &sides)?;
        Ok(Blocks::new(values, come))
    }

    /// Gives `root` the values of all ranks, of which each has any number (`MPI_Gatherv`): as
    /// [`exchange_v`](Self::exchange_v), to one rank; others get `None`.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let me = world.rank().0;
    /// let all = world.collectives().gather_v(Rank(0), &vec![me; me as usize]).unwrap();
    /// if let Some(all) = all {
    ///     assert!(all.iter().map(<[u32]>::len).eq(0..world.size() as usize));
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn gather_v<T: Global>(&self, root: Rank, values: &[T]) -> Result<Option<Blocks<T>>> {
        let lengths = self.gather(root, &Length::each(&[values.len()]))?;
        let lengths = lengths.map(Length::values);
        let sides = Sides {
            given: self.only(root, some(values.len()).then_some(0..values.len())),
            taken: match &lengths {
                Some(lengths) => in_order(lengths, some),
                None => vec![None; self.size()],
            },
        };
        let values = self.move_known(What::Gather(root), values, &sides)?;
        Ok(lengths.map(|lengths| Blocks::new(values, lengths)))
    }

    /// Gives all ranks the values of all, of which each has any number (`MPI_Allgatherv`): as
    /// [`exchange_v`](Self::exchange_v) of one block for all.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let me = world.rank().0;
    /// let all = world.collectives().gather_all_v(&vec![me; me as usize]).unwrap();
    /// assert!(all.iter().map(<[u32]>::len).eq(0..world.size() as usize));
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub fn gather_all_v<T: Global>(&self, values: &[T]) -> Result<Blocks<T>> {
        let lengths = Length::values(self.gather_all(&Length::each(&[values.len()]))?);
        let own = some(values.len()).then_some(0..values.len());
        let sides = Sides {
            given: vec![own; self.size()],
            taken: in_order(&lengths, some),
        };
        let values = self.move_known(What::GatherAll, values, &sides)?;
        Ok(Blocks::new(values, lengths))
    }

    /// Gives each rank its block of the root's `blocks`, which have any lengths (`MPI_Scatterv`):
    /// as [`exchange_v`](Self::exchange_v), from one rank.
    ///
    /// Other ranks' `blocks` are ignored.
    ///
    /// ```
    /// # use argonet::{Blocks, Rank, World};
    /// # let world = World::init().unwrap();
    /// let blocks: Option<Blocks<u32>> = (world.rank() == Rank(0))
    ///     .then(|| (0..world.size()).map(|to| vec![to; to as usize]).collect());
    /// let own = world.collectives().scatter_v(Rank(0), blocks.as_ref()).unwrap();
    /// assert_eq!(own, vec![world.rank().0; world.rank().0 as usize]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// If the root gives no blocks, or not one for each rank.
    pub fn scatter_v<T: Global>(&self, root: Rank, blocks: Option<&Blocks<T>>) -> Result<Vec<T>> {
        let blocks = blocks.filter(|_| self.is(root));
        if self.is(root) {
            self.one_each(blocks.map_or(0, Blocks::count));
        }
        let lengths = blocks.map_or(Vec::new(), Blocks::lengths);
        let mut own = [Length(0)];
        self.scatter(root, &Length::each(&lengths), &mut own)?;
        let own = own[0].0 as usize;
        let sides = Sides {
            given: match blocks {
                Some(_) => in_order(&lengths, some),
                None => vec![None; self.size()],
            },
            taken: self.only(root, some(own).then_some(0..own)),
        };
        self.move_known(
            What::Scatter(root),
            blocks.map_or(&[], Blocks::values),
            &sides,
        )
    }

    /// Starts an [`exchange_v`](Self::exchange_v) of blocks whose lengths both ranks know:
    /// `lengths[r]` is the number of values in the block that comes from rank `r`.
    ///
    /// Empty blocks are sent, too: if a length that a receiver gives is not that of the sender's
    /// block, the job ends with an error.
    ///
    /// ```
    /// # use argonet::{Blocks, World};
    /// # let world = World::init().unwrap();
    /// let (me, size) = (world.rank().0, world.size());
    /// let blocks: Blocks<u32> = (0..size).map(|to| vec![me; to as usize]).collect();
    /// let lengths = vec![me as usize; size as usize];
    /// let got = world.collectives().start_exchange_v(blocks, &lengths).unwrap();
    /// assert_eq!(got.wait().unwrap().values().len(), (me * size) as usize);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    ///
    /// # Panics
    /// If there is not a block and a length for each rank, or `lengths` has another length for this
    /// rank's block to itself.
    pub fn start_exchange_v<T: Global>(
        &self,
        blocks: Blocks<T>,
        lengths: &[usize],
    ) -> Result<Op<'w, Blocks<T>, M>> {
        self.one_each(blocks.count());
        self.one_each(lengths.len());
        let sides = Sides {
            given: in_order(&blocks.lengths(), all),
            taken: in_order(lengths, all),
        };
        let lengths = lengths.to_vec();
        let finish = move |values: Box<[T]>| Blocks::new(values.into_vec(), lengths.clone());
        self.start_known(What::Exchange, blocks.into_values().into(), &sides, finish)
    }

    /// Starts a [`gather_v`](Self::gather_v) whose lengths the root knows: `lengths[r]` is the
    /// number of values that come from rank `r`, and is ignored elsewhere.
    ///
    /// A length that is not the sender's ends the job with an error.
    ///
    /// ```
    /// # use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let (me, lengths) = (world.rank().0, Vec::from_iter(0..world.size() as usize));
    /// let values = vec![me; me as usize];
    /// let all = world.collectives().start_gather_v(Rank(0), values.into(), &lengths).unwrap();
    /// assert_eq!(all.wait().unwrap().is_some(), me == 0);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// If the root does not have a length for each rank, or its own is not `values.len()`.
    pub fn start_gather_v<T: Global>(
        &self,
        root: Rank,
        values: Box<[T]>,
        lengths: &[usize],
    ) -> Result<Op<'w, Option<Blocks<T>>, M>> {
        let lengths = self.is(root).then(|| lengths.to_vec());
        if let Some(lengths) = &lengths {
            self.one_each(lengths.len());
        }
        let sides = Sides {
            given: self.only(root, Some(0..values.len())),
            taken: match &lengths {
                Some(lengths) => in_order(lengths, all),
                None => vec![None; self.size()],
            },
        };
        let finish = move |values: Box<[T]>| {
            let lengths = lengths.clone();
            lengths.map(|lengths| Blocks::new(values.into_vec(), lengths))
        };
        self.start_known(What::Gather(root), values, &sides, finish)
    }

    /// Starts a [`gather_all_v`](Self::gather_all_v) whose lengths all ranks know: `lengths[r]` is
    /// the number of values that come from rank `r`.
    ///
    /// A length that is not the sender's ends the job with an error.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let (me, lengths) = (world.rank().0, Vec::from_iter(0..world.size() as usize));
    /// let values = vec![me; me as usize];
    /// let all = world.collectives().start_gather_all_v(values.into(), &lengths).unwrap();
    /// assert_eq!(all.wait().unwrap().count(), world.size() as usize);
    /// ```
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    ///
    /// # Panics
    /// If there is not a length for each rank, or this rank's is not `values.len()`.
    pub fn start_gather_all_v<T: Global>(
        &self,
        values: Box<[T]>,
        lengths: &[usize],
    ) -> Result<Op<'w, Blocks<T>, M>> {
        self.one_each(lengths.len());
        let sides = Sides {
            given: vec![Some(0..values.len()); self.size()],
            taken: in_order(lengths, all),
        };
        let lengths = lengths.to_vec();
        let finish = move |values: Box<[T]>| Blocks::new(values.into_vec(), lengths.clone());
        self.start_known(What::GatherAll, values, &sides, finish)
    }

    /// Starts a [`scatter_v`](Self::scatter_v) in which each rank knows how many values it gets:
    /// `len`.
    ///
    /// A length that is not that of the root's block ends the job with an error.
    ///
    /// ```
    /// # use argonet::{Blocks, Rank, World};
    /// # let world = World::init().unwrap();
    /// let me = world.rank();
    /// let blocks: Option<Blocks<u32>> = (me == Rank(0))
    ///     .then(|| (0..world.size()).map(|to| vec![to; to as usize]).collect());
    /// let own = world.collectives().start_scatter_v(Rank(0), blocks, me.0 as usize).unwrap();
    /// assert_eq!(*own.wait().unwrap(), *vec![me.0; me.0 as usize]);
    /// ```
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    ///
    /// # Panics
    /// If the root gives no blocks, or not one for each rank, or its own has not `len` values.
    pub fn start_scatter_v<T: Global>(
        &self,
        root: Rank,
        blocks: Option<Blocks<T>>,
        len: usize,
    ) -> Result<Op<'w, Box<[T]>, M>> {
        let blocks = blocks.filter(|_| self.is(root));
        if self.is(root) {
            self.one_each(blocks.as_ref().map_or(0, Blocks::count));
        }
        let sides = Sides {
            given: match &blocks {
                Some(blocks) => in_order(&blocks.lengths(), all),
                None => vec![None; self.size()],
            },
            taken: self.only(root, Some(0..len)),
        };
        let values = blocks.map_or(Vec::new(), Blocks::into_values);
        self.start_known(What::Scatter(root), values.into(), &sides, |values| values)
    }
}
