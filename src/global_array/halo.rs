//! Elements of adjacent ranks beside a rank's own ones.

use super::GlobalArray;
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::global::Global;
use crate::process;
use crate::section::Section;
use crate::shared_array::SharedArray;
use crate::signal::Signal;
use crate::world::{Threading, World};
use argonet_base::Rank;
use argonet_engine::Members;
use core::ops::Range;

/// What a rank needs to exchange its halo.
pub(super) struct Halo<T: Global> {
    /// Words by which adjacent ranks signal; see [`ready`] and [`arrived`].
    words: SharedArray<u64>,
    /// Where elements arrive that do not lie together in the halo.
    staging: SharedArray<T>,
    sides: Vec<Side<T>>,
    /// Exchanges that were begun, which is what the words count.
    round: u64,
    /// An exchange has begun and not ended.
    is_under_way: bool,
}

/// The rank beside this one in a dimension, before it or after it.
struct Side<T: Global> {
    dimension: usize,
    is_after: bool,
    rank: Rank,
    /// Outer elements of this rank, in its own memory.
    from: Section,
    /// Where they go, in the memory of the rank on the side or its staging.
    to: Place,
    /// Elements of the halo on this side, in this rank's own memory.
    halo: Section,
    /// Where they arrive, in this rank's memory or its staging.
    arrives: Place,
    /// Either in a buffer of their own.
    dense: Section,
    buffer: Box<[T]>,
}

/// Where elements of a halo are put, one after another.
#[derive(Clone, Copy)]
enum Place {
    /// In the halo itself, from this element of the memory on.
    Memory(usize),
    /// In the staging, from this element on.
    Staging(usize),
}

impl Place {
    /// Where elements of a section of the memory are put; `staged` if they do not lie together.
    fn of(section: &Section, staged: usize) -> Self {
        match section.as_run() {
            Some(run) => Self::Memory(run.start),
            None => Self::Staging(staged),
        }
    }
}

/// The word that the rank on a side changes when elements may be put into its halo.
const fn ready(dimension: usize, is_after: bool) -> usize {
    4 * dimension + is_after as usize
}

/// The word that the rank on a side changes when its elements are in the halo of this one.
const fn arrived(dimension: usize, is_after: bool) -> usize {
    4 * dimension + 2 + is_after as usize
}

impl<T: Global> Halo<T> {
    pub(super) fn free<M: Threading>(self, world: &World<M>) -> Result<()> {
        let words = self.words.free(world);
        words.and(self.staging.free(world))
    }

    /// Writes outer elements into the halo of the rank on a side, and signals that they are there.
    fn put<M: Threading>(
        &mut self,
        world: &World<M>,
        memory: &SharedArray<T>,
        side: usize,
    ) -> Result<()> {
        let side = &mut self.sides[side];
        let own = memory.on(world.rank());
        world.get_strided(&mut side.buffer, &side.dense, own, &side.from)?;
        let (array, first) = match side.to {
            Place::Memory(first) => (memory, first),
            Place::Staging(first) => (&self.staging, first),
        };
        let there = array.on(side.rank).part(first..first + side.buffer.len());
        let word = arrived(side.dimension, !side.is_after);
        let signal = Signal::add(self.words.ptr(side.rank, word), 1);
        world.put_signal(there, &side.buffer, signal)
    }

    /// Moves elements that have arrived in the staging to the halo.
    fn unpack<M: Threading>(
        &mut self,
        world: &World<M>,
        memory: &SharedArray<T>,
        side: usize,
    ) -> Result<()> {
        let side = &mut self.sides[side];
        let Place::Staging(first) = side.arrives else {
            return Ok(());
        };
        self.staging.read_into(world, first, &mut side.buffer);
        let own = memory.on(world.rank());
        world.put_strided(own, &side.halo, &side.buffer, &side.dense)
    }

    /// Waits until a word of some sides, of which there is one, has come to this round; its side.
    ///
    /// Adjacent ranks may be waiting for others, so a loss among all members ends the wait.
    fn wait<M: Threading>(
        &self,
        world: &World<M>,
        members: &Members,
        sides: &[usize],
        word: fn(usize, bool) -> usize,
    ) -> Result<usize> {
        let engine = world.engine();
        let load = |side: usize| {
            let Side {
                dimension,
                is_after,
                ..
            } = self.sides[side];
            let word = self.words.ptr(world.rank(), word(dimension, is_after));
            // The words are of this rank, and in its segment.
            world.atomic_load(word).unwrap_or(0)
        };
        // Each word only grows, so their sum changes with each.
        let look = || {
            sides
                .iter()
                .map(|side| load(*side))
                .fold(0, u64::wrapping_add)
        };
        let (mut come, mut lost) = (None, Ok(()));
        process::with(|ctx| {
            engine.wait_word(ctx, look, |_| {
                let mut sides = sides.iter().copied();
                come = sides.find(|side| load(*side) >= self.round);
                if come.is_none() {
                    lost = engine.unless_member_lost(members);
                }
                come.is_some() || lost.is_err()
            })
        })?;
        match come {
            Some(side) => Ok(side),
            None => Err(lost
                .err()
                .unwrap_or_else(|| unreachable!("a wait ends by a word or a loss"))
                .into()),
        }
    }
}

impl<T: Global, const D: usize> GlobalArray<T, D> {
    /// The most elements that arrive in a rank's staging in one exchange.
    pub(super) fn staging(layout: &Layout<D>) -> usize {
        (0..D).map(|d| 2 * layout.most_beside(d)).sum()
    }

    /// Collective over the world: all ranks give the same length of the staging.
    pub(super) fn make_halo<M: Threading>(
        &self,
        world: &World<M>,
        staging: usize,
    ) -> Result<Halo<T>> {
        let words = SharedArray::alloc(world, 4 * D)?;
        let staging = match SharedArray::alloc(world, staging) {
            Ok(staging) => staging,
            Err(error) => {
                let _ = words.free(world);
                return Err(error);
            }
        };
        let sides = (0..D).flat_map(|dimension| {
            let both = [false, true].into_iter();
            both.filter_map(move |is_after| self.side(dimension, is_after))
        });
        Ok(Halo {
            words,
            staging,
            sides: sides.collect(),
            round: 0,
            is_under_way: false,
        })
    }

    fn side(&self, dimension: usize, is_after: bool) -> Option<Side<T>> {
        let layout = &self.layout;
        let width = layout.halo()[dimension];
        let place = layout.beside(self.place, dimension, is_after)?;
        if width == 0 {
            return None;
        }
        let counts = layout.counts(self.place);
        // Dimensions that were exchanged before with what came then, so that corners come too. The
        // rank on the side has the same place in them, and gets as much.
        let across: [Range<usize>; D] = core::array::from_fn(|d| {
            let halo = layout.halo()[d];
            let is_there = |is_after| layout.beside(self.place, d, is_after).is_some();
            let came = |is_after| match d < dimension && is_there(is_after) {
                true => halo,
                false => 0,
            };
            halo - came(false)..halo + counts[d] + came(true)
        });
        let section = |along| {
            let mut ranges = across.clone();
            ranges[dimension] = along;
            layout.section(&ranges)
        };
        // Before and after the elements of a rank that has so many.
        let (before, after) = (0..width, |count| width + count..2 * width + count);
        let own = counts[dimension];
        let others = layout.counts(place)[dimension];
        let (from, to, halo) = match is_after {
            true => (own..own + width, before, after(own)),
            false => (width..2 * width, after(others), before),
        };
        let [from, to, halo] = [from, to, halo].map(section);
        // As long on all ranks, and in the same order.
        let lengths = |of: Range<usize>| of.map(|d| layout.most_beside(d));
        let staged = 2 * lengths(0..dimension).sum::<usize>();
        let staged = |is_after| staged + usize::from(is_after) * layout.most_beside(dimension);
        Some(Side {
            dimension,
            is_after,
            rank: self.rank_of(layout.number(place)),
            to: Place::of(&to, staged(!is_after)),
            arrives: Place::of(&halo, staged(is_after)),
            dense: from.dense(),
            buffer: vec![T::new_zeroed(); from.len()].into(),
            from,
            halo,
        })
    }

    /// Writes this rank's outer elements into the halos of the ranks beside it, and gets theirs.
    ///
    /// All ranks of the array's team call it equally often. It waits, polling, for the ranks beside
    /// this one, and so also for those beside these. When it returns, the halo has the elements
    /// that those ranks had when they made the call; corners have those of the ranks diagonally
    /// beside this one. What lies outside of the array in a dimension that is not
    /// [periodic](crate::Distribution::periodic) stays as it is. Where another rank writes elements
    /// of this one, it completes the put and synchronizes with this rank before this rank makes the
    /// call.
    ///
    /// Without a halo it does nothing.
    ///
    /// ```
    /// use argonet::{Distribution, GlobalArray, Spread};
    /// # let mut world = argonet::World::init().unwrap();
    /// // A ring of cells, each of which becomes the sum of those beside it.
    /// let ring = Distribution::new([12], [Spread::Block]).halo([1]).periodic([true]);
    /// let mut old = GlobalArray::<u64, 1>::alloc(&world, ring).unwrap();
    /// let mut new = GlobalArray::<u64, 1>::alloc(&world, ring).unwrap();
    /// world.quiet(|q| {
    ///     old.local_mut(q).iter_mut().for_each(|([cell], value)| *value = cell as u64);
    /// }).unwrap();
    /// old.exchange_halo(&world).unwrap();
    /// world.quiet(|q| {
    ///     let (old, mut new) = (old.local(q), new.local_mut(q));
    ///     for cell in old.own_numbers()[0].clone() {
    ///         new[[cell]] = old[[cell - 1]] + old[[cell + 1]];
    ///     }
    /// }).unwrap();
    /// let sums = new.get_vec(&world, 0..12).unwrap();
    /// assert_eq!(sums, [12, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 10]);
    /// ```
    ///
    /// # Errors
    /// A call from inside a handler, as [`World::barrier`]. [`AmError::PeerLost`] once the array's
    /// team has lost a rank that this one waits for, or knows of; the halo may have been written in
    /// part then, and further calls fail with [`Error::HaloBroken`].
    ///
    /// [`AmError::PeerLost`]: crate::AmError::PeerLost
    pub fn exchange_halo<M: Threading>(&mut self, world: &World<M>) -> Result<()> {
        let (memory, members) = (&self.memory, &*self.members);
        let Some(halo) = &mut self.halo else {
            return Ok(());
        };
        let engine = world.engine();
        process::with(|ctx| ctx.permit_collective("an exchange of a halo", engine.rank()))?;
        if core::mem::replace(&mut halo.is_under_way, true) {
            let rank = world.rank();
            return Err(Error::HaloBroken { rank });
        }
        engine.unless_member_lost(members)?;
        halo.round += 1;
        for side in &halo.sides {
            let word = ready(side.dimension, !side.is_after);
            world.signal(Signal::add(halo.words.ptr(side.rank, word), 1))?;
        }
        for dimension in 0..D {
            let mut sides = [0; 2];
            let mut count = 0;
            for (number, side) in halo.sides.iter().enumerate() {
                if side.dimension == dimension {
                    sides[count] = number;
                    count += 1;
                }
            }
            let sides = &mut sides[..count];
            // The side that is ready first is served first, and none waits for the other one.
            for served in 0..count {
                let side = halo.wait(world, members, &sides[served..], ready)?;
                let at = sides.iter().position(|it| *it == side);
                sides.swap(served, at.unwrap_or(served));
                halo.put(world, memory, side)?;
            }
            for served in 0..count {
                let side = halo.wait(world, members, &sides[served..], arrived)?;
                let at = sides.iter().position(|it| *it == side);
                sides.swap(served, at.unwrap_or(served));
                halo.unpack(world, memory, side)?;
            }
        }
        halo.is_under_way = false;
        Ok(())
    }
}
