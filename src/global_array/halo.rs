//! Elements of adjacent ranks beside a rank's own ones.

use super::GlobalArray;
use super::distribution::DistributionError;
use crate::error::{Error, Result};
use crate::global::Global;
use crate::section::Section;
use crate::shared_array::SharedArray;
use crate::signal::Signal;
use crate::world::{Threading, World};
use argonet_base::Rank;
use argonet_engine::Members;

/// What a rank needs to exchange its halo.
pub(super) struct Halo<T: Global> {
    /// Words by which adjacent ranks signal; see [`ready`] and [`arrived`].
    words: SharedArray<u64>,
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
    /// Outer elements of this rank in its own memory, and where they go in the memory of the other.
    from: Section,
    to: Section,
    /// In a buffer of their own.
    dense: Section,
    buffer: Box<[T]>,
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
        self.words.free(world)
    }

    /// Waits until the rank on a side has changed a word in this round.
    ///
    /// It may be waiting for others, so a loss among all members ends the wait.
    fn wait<M: Threading>(&self, world: &World<M>, members: &Members, word: usize) -> Result<()> {
        let engine = world.engine();
        let mut lost = Ok(());
        world.wait_signal(self.words.ptr(world.rank(), word), |round| {
            if round >= self.round {
                return true;
            }
            lost = engine.unless_member_lost(members);
            lost.is_err()
        })?;
        Ok(lost?)
    }
}

impl<T: Global, const D: usize> GlobalArray<T, D> {
    /// Collective over the world.
    pub(super) fn make_halo<M: Threading>(&self, world: &World<M>) -> Result<Halo<T>> {
        let words = SharedArray::alloc(world, 4 * D)?;
        let sides = (0..D).flat_map(|dimension| {
            let both = [false, true].into_iter();
            both.filter_map(move |is_after| self.side(dimension, is_after))
        });
        Ok(Halo {
            words,
            sides: sides.collect(),
            round: 0,
            is_under_way: false,
        })
    }

    fn side(&self, dimension: usize, is_after: bool) -> Option<Side<T>> {
        let width = self.layout.halo()[dimension];
        let place = self.layout.beside(self.place, dimension, is_after)?;
        if width == 0 {
            return None;
        }
        let counts = self.layout.counts(self.place);
        // Dimensions that were exchanged before with their halo, so that corners come too.
        let mut from = core::array::from_fn(|d| {
            let halo = self.layout.halo()[d];
            if d < dimension {
                0..counts[d] + 2 * halo
            } else {
                halo..halo + counts[d]
            }
        });
        let mut to = from.clone();
        let count = self.layout.counts(place)[dimension];
        (from[dimension], to[dimension]) = if is_after {
            (counts[dimension]..counts[dimension] + width, 0..width)
        } else {
            (width..2 * width, width + count..2 * width + count)
        };
        let (from, to) = (self.layout.section(&from), self.layout.section(&to));
        Some(Side {
            dimension,
            is_after,
            rank: self.rank_of(self.layout.number(place)),
            dense: from.dense(),
            buffer: vec![T::new_zeroed(); from.len()].into(),
            from,
            to,
        })
    }

    /// Writes this rank's outer elements into the halos of the ranks beside it, and gets theirs.
    ///
    /// All ranks of the array's team call it equally often. It waits, polling, for the ranks beside
    /// this one, and for no others. When it returns, the halo has the elements that those ranks had
    /// when they made the call; corners have those of the ranks diagonally beside this one. An
    /// outer halo that is not [periodic](crate::Distribution::periodic) stays as it is. Where
    /// others than its rank write elements, they complete that and synchronize with the rank before
    /// it makes the call.
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
    ///     for cell in old.own()[0].clone() {
    ///         new[[cell]] = old[[cell - 1]] + old[[cell + 1]];
    ///     }
    /// }).unwrap();
    /// assert_eq!(new.get(&world, 0..12).unwrap(), [12, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 10]);
    /// ```
    ///
    /// # Errors
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) once the array's team has lost a rank, a
    /// call from inside a handler. The halo may have been written in part then, and further calls
    /// fail with [`DistributionError::HaloBroken`].
    pub fn exchange_halo<M: Threading>(&mut self, world: &World<M>) -> Result<()> {
        let Some(halo) = &mut self.halo else {
            return Ok(());
        };
        if core::mem::replace(&mut halo.is_under_way, true) {
            let rank = world.rank();
            return Err(Error::Distribution(DistributionError::HaloBroken { rank }));
        }
        halo.round += 1;
        for side in &halo.sides {
            let word = ready(side.dimension, !side.is_after);
            world.signal(Signal::add(halo.words.ptr(side.rank, word), 1))?;
        }
        let (memory, members) = (&self.memory, &*self.members);
        for dimension in 0..D {
            let of = |side: &Side<T>| side.dimension == dimension;
            // Two at most, of which neither waits for the other.
            let mut started = [const { None }; 2];
            for number in 0..halo.sides.len() {
                if !of(&halo.sides[number]) {
                    continue;
                }
                let is_after = halo.sides[number].is_after;
                halo.wait(world, members, ready(dimension, is_after))?;
                let side = &mut halo.sides[number];
                let own = memory.on(world.rank());
                world.get_strided(&mut side.buffer, &side.dense, own, &side.from)?;
                let word = arrived(dimension, !is_after);
                let signal = Signal::add(halo.words.ptr(side.rank, word), 1);
                let there = memory.on(side.rank);
                if let Some(run) = side.to.as_run() {
                    world.put_signal(there.part(run), &side.buffer, signal)?;
                } else {
                    let buffer = core::mem::take(&mut side.buffer);
                    let put = world.start_put_strided(there, &side.to, buffer, &side.dense)?;
                    started[usize::from(is_after)] = Some((number, put, signal));
                }
            }
            for (number, put, signal) in started.into_iter().flatten() {
                halo.sides[number].buffer = put.wait()?;
                world.signal(signal)?;
            }
            for side in halo.sides.iter().filter(|side| of(side)) {
                halo.wait(world, members, arrived(dimension, side.is_after))?;
            }
        }
        halo.is_under_way = false;
        Ok(())
    }
}
