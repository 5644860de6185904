//! Small operations on words of many ranks, held back and sent many at a time.
#![allow(unsafe_code)]

use crate::atomics::{Atomic, AtomicOp};
use crate::error::{Result, is_loss, keep_failure};
use crate::global::GlobalPtr;
use crate::op::Op;
use crate::process;
use crate::world::{Seq, Threading, World};
use argonet_base::{JobRank, cpu};
use argonet_engine::{self as engine, AtomicBatch, Injection};
use core::ptr::NonNull;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Batches in flight, at most.
const MAX_IN_FLIGHT: usize = 64;

/// Operations on mapped memory that wait for their cache lines: more than a processor of today can
/// wait for at once.
const RING: usize = 32;

/// Calls between looks at the clock.
const CLOCK_EVERY: u32 = 64;

/// The place of a value that was not asked for.
const NOWHERE: usize = usize::MAX;

/// Holds atomic operations on single words back, and sends them many at a time.
///
/// Made by [`World::aggregator`]. It is for random access to tables that are spread over all ranks,
/// as in hash tables and graphs, with tens of operations or more for each rank between two flushes.
/// Over a network a message has up to 256 operations with one operand on one rank, 170 with two,
/// 512 without any, and its answer completes them. This processor changes words that are mapped
/// here; it prefetches the cache line of each 32 operations before, so that cache misses overlap.
///
/// The operations of this rank are complete, and their values known, after [`flush`](Self::flush).
/// To read what all ranks have done, flush on each rank, then enter a barrier. Before `flush` an
/// operation may or may not have taken effect, also in mapped memory. Operations on one rank take
/// effect in the order of the calls; nothing orders those on different ranks, or calls of the world
/// beside them. Each is atomic with respect to all atomic operations, and sequentially consistent
/// with them. All words have one type, so words of two types need two aggregators. Over a network
/// the targets have to poll. If only the target can check an offset, and it is outside of its
/// segment, the job ends.
///
/// An aggregator belongs to one thread; with [`World<Par>`](crate::Par) each thread makes its own.
///
/// ```
/// use argonet::{AtomicOp, SharedArray, World};
/// # let world = World::init().unwrap();
/// let counts = SharedArray::<u64>::alloc(&world, 4).unwrap();
/// world.barrier().unwrap();
/// let mut aggregator = world.aggregator();
/// for number in 0..100u64 {
///     // Each word is on one of the ranks.
///     let rank = world.rank_offset((number % 3) as i64);
///     let at = counts.ptr(rank, (number % 4) as usize);
///     aggregator.atomic(at, AtomicOp::add(1)).unwrap();
/// }
/// let last = aggregator.load(counts.ptr(world.rank(), 3)).unwrap();
/// let values = aggregator.flush().unwrap();
/// assert!(values[last] > 0);
/// ```
///
/// Do not free an array before its operations are complete: late ones would change memory that is
/// used for something else by then.
///
/// Its memory: 8 KiB for each rank with operations, and as much for each of up to 64 batches in
/// flight; and a value for each `fetch` or `load` since the last flush, so flush from time to time.
///
/// # Errors
/// A call fails for its own operation alone, which is not held then. An error of sending, or of a
/// batch in flight, is that of the next flush; a batch that cannot be sent is lost.
///
/// # Drop
/// As a flush whose values are discarded. An error ends the job, but for the loss of a peer. While
/// the thread panics nothing more is sent, and operations that are held are lost, up to 32 of them
/// on mapped memory; batches in flight are still waited for.
#[must_use = "call `flush`: operations are held back until then"]
pub struct Aggregator<'w, T: Atomic, M: Threading = Seq> {
    world: &'w World<M>,
    mapped: MappedRing<T>,
    /// By rank; made with the first operation for it.
    held: Vec<Option<Box<Held<T>>>>,
    /// The ranks with operations that are held, by the times of the oldest ones; also some whose
    /// operations have been sent since.
    by_age: VecDeque<(Instant, usize)>,
    in_flight: VecDeque<InFlight<'w, M>>,
    /// Of batches that are complete, for those to come.
    spare: Vec<Buffers>,
    /// Of all operations that have one, in the order of the calls; those that are not known yet are
    /// zero.
    values: Vec<T>,
    /// The first failure since the last flush.
    outcome: Result<()>,
    max_age: Option<Duration>,
    /// Calls until the next look at the clock.
    until_clock: u32,
}

/// Operations on one rank that have not been sent.
struct Held<T> {
    batch: AtomicBatch<T>,
    /// The place of each value in [`Aggregator::values`].
    places: Vec<usize>,
    /// When the first of them came.
    since: Instant,
}

/// A batch that has been sent.
struct InFlight<'w, M: Threading> {
    op: Op<'w, Vec<u64>, M>,
    places: Vec<usize>,
}

/// Room for the values of a batch and their places.
#[derive(Default)]
struct Buffers {
    values: Vec<u64>,
    places: Vec<usize>,
}

impl<M: Threading> World<M> {
    /// Makes an [`Aggregator`] without operations, for words of type `T`.
    ///
    /// See the example of [`Aggregator`].
    pub fn aggregator<T: Atomic>(&self) -> Aggregator<'_, T, M> {
        Aggregator {
            world: self,
            mapped: MappedRing::new(),
            held: Vec::new(),
            by_age: VecDeque::new(),
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            values: Vec::new(),
            outcome: Ok(()),
            max_age: None,
            until_clock: CLOCK_EVERY,
        }
    }
}

impl<T: Atomic, M: Threading> Aggregator<'_, T, M> {
    /// Makes calls send operations that have been held for longer than this.
    ///
    /// Each 64th call looks at the clock; where there are no calls nothing is sent. By default a
    /// batch is sent when it is full.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// use std::time::Duration;
    /// let mut aggregator = world.aggregator::<u64>().max_age(Duration::from_millis(1));
    /// # aggregator.flush().unwrap();
    /// ```
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Adds an operation whose value before is not returned.
    ///
    /// If the batch is full, waits for room at the target and for fewer than 64 batches in flight.
    /// It polls meanwhile, so handlers run.
    ///
    /// ```
    /// # use argonet::{AtomicOp, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<i64>::alloc(&world, 1).unwrap();
    /// let mut aggregator = world.aggregator();
    /// aggregator.atomic(v.ptr(world.rank(), 0), AtomicOp::sub(3)).unwrap();
    /// aggregator.flush().unwrap();
    /// assert_eq!(v.read(&world, 0), -3);
    /// ```
    ///
    /// # Errors
    /// A pointer outside the segment or not aligned, a rank that does not exist or is lost
    /// ([`AmError::PeerLost`](crate::AmError::PeerLost)), or a call from inside a handler.
    #[inline]
    pub fn atomic(&mut self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<()> {
        self.add(at, op.plain(), NOWHERE)
    }

    /// Adds an operation and returns the index of its value before.
    ///
    /// It is the index among the values of the next [`flush`](Self::flush), which are in the order
    /// of the calls.
    ///
    /// Waits as [`atomic`](Self::atomic) does.
    ///
    /// ```
    /// # use argonet::{AtomicOp, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u32>::alloc(&world, 1).unwrap();
    /// let word = v.ptr(world.rank(), 0);
    /// let mut aggregator = world.aggregator();
    /// for number in 7..10 {
    ///     // The first one gets the word.
    ///     aggregator.fetch(word, AtomicOp::compare_exchange(0, number)).unwrap();
    /// }
    /// assert_eq!(aggregator.flush().unwrap(), [0, 7, 7]);
    /// ```
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn fetch(&mut self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<usize> {
        // Before the operation, as that may be done at once.
        let place = self.values.len();
        self.values.push(T::of_bits(0));
        match self.add(at, op.fetching(), place) {
            Ok(()) => Ok(place),
            Err(error) => {
                self.values.truncate(place);
                Err(error)
            }
        }
    }

    /// Adds an atomic store, as [`World::atomic_store`].
    ///
    /// Waits as [`atomic`](Self::atomic) does.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<f64>::alloc(&world, 2).unwrap();
    /// let mut aggregator = world.aggregator();
    /// aggregator.store(v.ptr(world.rank(), 1), 1.5).unwrap();
    /// aggregator.load(v.ptr(world.rank(), 1)).unwrap();
    /// assert_eq!(aggregator.flush().unwrap(), [1.5]);
    /// ```
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn store(&mut self, at: GlobalPtr<T>, value: T) -> Result<()> {
        self.atomic(at, AtomicOp::set(value))
    }

    /// Adds an atomic load, as [`World::atomic_load`]; returns the index of its value as
    /// [`fetch`](Self::fetch) does.
    ///
    /// Waits as [`atomic`](Self::atomic) does.
    ///
    /// See the example of [`store`](Self::store).
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn load(&mut self, at: GlobalPtr<T>) -> Result<usize> {
        self.fetch(at, AtomicOp::get())
    }

    /// Sends all operations that are held, and does not wait until they are done.
    ///
    /// Operations on mapped memory are done when it returns. Waits as [`atomic`](Self::atomic)
    /// does. An error is that of the next flush.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let mut aggregator = world.aggregator();
    /// aggregator.store(v.ptr(world.rank_offset(1), 0), 7).unwrap();
    /// aggregator.send();
    /// // Here the rank does something else.
    /// aggregator.flush().unwrap();
    /// ```
    pub fn send(&mut self) {
        self.send_older(Duration::ZERO);
    }

    /// Completes all operations and returns the values of fetches and loads.
    ///
    /// The values are those since the last flush, in the order of the calls. Waits, polling.
    ///
    /// See the example of [`Aggregator`].
    ///
    /// # Errors
    /// One failure since the last flush: the first that is not
    /// [`AmError::PeerLost`](crate::AmError::PeerLost), else the first loss. Whether the operations
    /// of failed batches have taken effect is not known. No batch is in flight any more, all values
    /// are discarded, and indices begin at 0 again. In a handler
    /// [`AmError::Restricted`](crate::AmError::Restricted), and nothing changes.
    pub fn flush(&mut self) -> Result<Vec<T>> {
        self.permit()?;
        self.send();
        while let Some(batch) = self.in_flight.pop_front() {
            self.finish(batch, None);
        }
        let values = core::mem::take(&mut self.values);
        core::mem::replace(&mut self.outcome, Ok(())).map(|()| values)
    }

    fn permit(&self) -> Result<()> {
        let rank = World::<M>::job_rank(self.world.rank());
        Ok(process::with(|ctx| ctx.permit("an aggregator", rank))?)
    }

    /// Adds an operation whose value belongs at that place, if it has one.
    #[inline(always)]
    fn add(&mut self, at: GlobalPtr<T>, what: engine::Atomic<T>, place: usize) -> Result<()> {
        self.until_clock -= 1;
        if self.until_clock == 0 {
            self.look_at_clock();
        }
        match self.world.mapped(at) {
            Some(word) if word.cast::<T>().is_aligned() => {
                let word = word.cast();
                // SAFETY: the word has the size of a `T` in a segment that is mapped here, as long
                // as the world is there, and it is aligned; segments are only accessed through the
                // bulk routine and atomics.
                unsafe {
                    self.mapped
                        .add(MappedOperation { word, what, place }, &mut self.values)
                };
                Ok(())
            }
            _ => self.add_unmapped(at, what, place),
        }
    }

    #[inline(never)]
    fn add_unmapped(
        &mut self,
        at: GlobalPtr<T>,
        what: engine::Atomic<T>,
        place: usize,
    ) -> Result<()> {
        self.permit()?;
        let rank = World::<M>::job_rank(at.rank());
        let engine = self.world.engine();
        if !engine.is_for_batch::<T>(rank, at.offset())? {
            // The segment has grown, or calls are traced.
            self.mapped.finish(&mut self.values);
            let before = self.world.apply_all(at, what)?;
            put_value(&mut self.values, place, what, before);
            return Ok(());
        }
        let rank = rank.index();
        if self.held.len() <= rank {
            self.held.resize_with(rank + 1, || None);
        }
        let new = || Box::new(Held::new(engine.atomic_batch()));
        let held = self.held[rank].get_or_insert_with(new);
        if !held.batch.is_empty() {
            if held.add(at, what, place) {
                return Ok(());
            }
            self.send_to(rank);
        }
        while self
            .by_age
            .front()
            .is_some_and(|oldest| !self.is_held(*oldest))
        {
            self.by_age.pop_front();
        }
        if let Some(held) = &mut self.held[rank] {
            held.since = Instant::now();
            self.by_age.push_back((held.since, rank));
            let added = held.add(at, what, place);
            assert!(added, "a batch without operations has room for one");
        }
        Ok(())
    }

    /// Whether operations of that time are still held.
    fn is_held(&self, (since, rank): (Instant, usize)) -> bool {
        let held = self.held[rank].as_deref();
        held.is_some_and(|held| !held.batch.is_empty() && held.since == since)
    }

    #[cold]
    #[inline(never)]
    fn look_at_clock(&mut self) {
        self.until_clock = CLOCK_EVERY;
        if let Some(age) = self.max_age {
            self.send_older(age);
        }
    }

    fn send_older(&mut self, age: Duration) {
        self.mapped.finish(&mut self.values);
        let now = Instant::now();
        while let Some(&(since, rank)) = self.by_age.front() {
            if now.saturating_duration_since(since) < age {
                break;
            }
            if self.is_held((since, rank)) {
                self.send_to(rank);
            }
            self.by_age.pop_front();
        }
    }

    /// Sends the operations that are held for a rank.
    fn send_to(&mut self, rank: usize) {
        self.finish_some();
        let Some(held) = &mut self.held[rank] else {
            return;
        };
        let batch = &held.batch;
        let mut buffers = self.spare.pop().unwrap_or_default();
        buffers.values.resize(batch.values(), 0);
        let (world, to) = (self.world, JobRank(rank as u32));
        // SAFETY: the values are on the heap until the operation is complete, as it owns them.
        let started = process::with(|ctx| unsafe {
            let (at, how) = (buffers.values.as_mut_ptr(), Injection::Blocking);
            world.engine().atomic_batch_start(ctx, to, batch, at, how)
        });
        held.batch.clear();
        match started {
            Ok(event) => {
                let places = core::mem::replace(&mut held.places, buffers.places);
                let op = Op::of_event(world, event, buffers.values, |values| values);
                self.in_flight.push_back(InFlight { op, places });
            }
            Err(error) => {
                held.places.clear();
                keep_failure(&mut self.outcome, error.into());
            }
        }
    }

    /// Finishes the oldest batches as far as they are done; where there are too many, all that are
    /// done, or else the oldest.
    fn finish_some(&mut self) {
        let is_full = self.in_flight.len() >= MAX_IN_FLIGHT;
        let mut at = 0;
        while let Some(batch) = self.in_flight.get_mut(at) {
            match batch.op.take() {
                Some(result) => {
                    if let Some(batch) = self.in_flight.remove(at) {
                        self.finish(batch, Some(result));
                    }
                }
                None if is_full => at += 1,
                None => return,
            }
        }
        if self.in_flight.len() >= MAX_IN_FLIGHT
            && let Some(oldest) = self.in_flight.pop_front()
        {
            self.finish(oldest, None);
        }
    }

    /// Waits for a batch whose result is not known, and puts its values where they belong.
    fn finish(&mut self, batch: InFlight<'_, M>, result: Option<Result<Vec<u64>>>) {
        let InFlight { op, mut places } = batch;
        match result.unwrap_or_else(|| op.wait()) {
            Ok(values) => {
                for (value, &place) in values.iter().zip(&places) {
                    if let Some(slot) = self.values.get_mut(place) {
                        *slot = T::of_bits(*value);
                    }
                }
                places.clear();
                self.spare.push(Buffers { values, places });
            }
            Err(error) => keep_failure(&mut self.outcome, error),
        }
    }
}

/// Puts the value before an operation at its place, if it has one.
#[inline(always)]
fn put_value<T: Atomic>(values: &mut [T], place: usize, what: engine::Atomic<T>, before: T) {
    if what.operation.is_fetching()
        && let Some(slot) = values.get_mut(place)
    {
        *slot = before;
    }
}

/// The last operations on memory that is mapped here.
///
/// The processor brings the cache line of each while those before it are done.
struct MappedRing<T> {
    ring: [Option<MappedOperation<T>>; RING],
    /// Where the next one goes, which is where the oldest is if the ring is full.
    next: usize,
}

#[derive(Clone, Copy)]
struct MappedOperation<T> {
    word: NonNull<T>,
    what: engine::Atomic<T>,
    /// Of its value, or [`NOWHERE`].
    place: usize,
}

impl<T: Atomic> MappedRing<T> {
    fn new() -> Self {
        Self {
            ring: [None; RING],
            next: 0,
        }
    }

    /// Adds an operation; does the oldest if the ring is full.
    ///
    /// # Safety
    /// Until it is done, by a later call, or forgotten, its word may be changed as
    /// [`AtomicWord::apply`](engine::AtomicWord::apply) demands.
    #[inline(always)]
    unsafe fn add(&mut self, new: MappedOperation<T>, values: &mut [T]) {
        cpu::prefetch(new.word.as_ptr().cast());
        if let Some(oldest) = self.ring[self.next].replace(new) {
            oldest.apply(values);
        }
        self.next = (self.next + 1) % RING;
    }

    /// Does all of them, the oldest first.
    fn finish(&mut self, values: &mut [T]) {
        for _ in 0..RING {
            if let Some(operation) = self.ring[self.next].take() {
                operation.apply(values);
            }
            self.next = (self.next + 1) % RING;
        }
    }
}

impl<T: Atomic> MappedOperation<T> {
    #[inline(always)]
    fn apply(self, values: &mut [T]) {
        // SAFETY: the promise of the call that added it.
        let before = unsafe { T::apply(self.word.as_ptr(), self.what) };
        put_value(values, self.place, self.what, before);
    }
}

impl<T: Atomic> Held<T> {
    fn new(batch: AtomicBatch<T>) -> Self {
        Self {
            batch,
            places: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Adds an operation; false if there is no room.
    fn add(&mut self, at: GlobalPtr<T>, what: engine::Atomic<T>, place: usize) -> bool {
        let added = self.batch.push(at.offset(), what);
        if added && what.operation.is_fetching() {
            self.places.push(place);
        }
        added
    }
}

impl<T: Atomic, M: Threading> Drop for Aggregator<'_, T, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        match self.flush() {
            Err(error) if !is_loss(&error) => {
                let why = format!("an aggregator was dropped: {error}");
                self.world.engine().fatal(&why)
            }
            _ => {}
        }
    }
}
