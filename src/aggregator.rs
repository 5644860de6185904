//! Small operations on words of many ranks, gathered into messages.
#![allow(unsafe_code)]

use crate::atomics::{Atomic, AtomicOp};
use crate::error::{Error, Result};
use crate::global::GlobalPtr;
use crate::op::Op;
use crate::process;
use crate::world::{Seq, Threading, World};
use argonet_am::AmError;
use argonet_base::cpu;
use argonet_engine::{self as engine, AtomicBatch, Injection};
use core::ptr::NonNull;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Batches under way, at most; then the oldest is waited for.
const MOST_UNDER_WAY: usize = 64;

/// Operations on mapped memory that wait for their cache lines: more than a processor of today can
/// wait for at once.
const NEAR: usize = 32;

/// Operations between looks at the clock.
const CLOCK_EVERY: u32 = 64;

/// Gathers puts, gets and atomic operations on single words, and sends them many at a time.
///
/// Made by [`World::aggregator`]. For random access to tables that are spread over all ranks: over
/// a network some 250 operations share a message, whose answer completes them. On memory that is
/// mapped here this processor does them, and has asked for the cache line of each some 30
/// operations before, so that misses of the cache overlap.
///
/// Operations are complete, and values are there, after [`flush`](Self::flush). Until then those on
/// one rank take place in the order of the calls, and nothing orders those on different ranks, or
/// others beside them. Each is atomic with respect to all atomic operations. Handlers run in the
/// calls that send.
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
/// for i in 0..4 {
///     aggregator.get(counts.ptr(world.rank(), i)).unwrap();
/// }
/// let values = aggregator.flush().unwrap();
/// assert_eq!(values.len(), 4);
/// ```
///
/// Do not free an array before its operations are complete: late ones would change memory that is
/// used for something else by then.
///
/// # Drop
/// Sends what is gathered and waits, without a result; an error ends the job, but for the loss of a
/// peer. While its thread panics what is gathered is lost.
#[must_use = "operations are complete only after `flush`"]
pub struct Aggregator<'w, T: Atomic, M: Threading = Seq> {
    world: &'w World<M>,
    near: Near<T>,
    /// By rank; made when there is an operation for it.
    gathered: Vec<Option<Box<Gathered<T>>>>,
    under_way: VecDeque<UnderWay<'w>>,
    /// Of all operations that fetch, in their order; those that are not known yet are zero.
    values: Vec<T>,
    /// Of batches under way since the last flush.
    outcome: Result<()>,
    max_age: Option<Duration>,
    /// Operations until the next look at the clock.
    until_clock: u32,
}

/// Operations on memory that is mapped here, the last ones, in a ring.
///
/// The processor brings the cache line of each while those before it are done.
struct Near<T> {
    ring: [Option<NearOperation<T>>; NEAR],
    /// Where the next one goes, which is where the oldest is if the ring is full.
    next: usize,
}

#[derive(Clone, Copy)]
struct NearOperation<T> {
    place: NonNull<T>,
    what: engine::Atomic<T>,
    /// Values before it, and its own.
    known: usize,
}

impl<T: Atomic> Near<T> {
    fn new() -> Self {
        Self {
            ring: [None; NEAR],
            next: 0,
        }
    }

    /// Adds an operation and does the oldest if the ring is full.
    ///
    /// # Safety
    /// Until it is done, by another call of this or by `finish`, or forgotten, the place may be
    /// changed as [`AtomicWord::apply`](engine::AtomicWord::apply) demands.
    #[inline(always)]
    unsafe fn add(&mut self, place: NonNull<T>, what: engine::Atomic<T>, values: &mut [T]) {
        cpu::prefetch(place.as_ptr().cast());
        let new = NearOperation {
            place,
            what,
            known: values.len(),
        };
        if let Some(oldest) = self.ring[self.next].replace(new) {
            oldest.apply(values);
        }
        self.next = (self.next + 1) % NEAR;
    }

    /// Does all of them, the oldest first.
    fn finish(&mut self, values: &mut [T]) {
        for _ in 0..NEAR {
            if let Some(operation) = self.ring[self.next].take() {
                operation.apply(values);
            }
            self.next = (self.next + 1) % NEAR;
        }
    }
}

impl<T: Atomic> NearOperation<T> {
    #[inline(always)]
    fn apply(self, values: &mut [T]) {
        // SAFETY: the promise of who added it.
        let before = unsafe { T::apply(self.place.as_ptr(), self.what) };
        if self.what.operation.is_fetching() {
            values[self.known - 1] = before;
        }
    }
}

/// Operations for one rank that are not sent yet.
struct Gathered<T> {
    batch: AtomicBatch<T>,
    /// The place of each value in [`Aggregator::values`].
    places: Vec<usize>,
    /// When the first of them came.
    since: Instant,
}

/// A batch that is sent.
struct UnderWay<'w> {
    op: Op<'w, Vec<u64>>,
    places: Vec<usize>,
}

impl<M: Threading> World<M> {
    /// Makes an [`Aggregator`] without operations, for words of type `T`.
    ///
    /// A thread may have several; of each rank that it uses one takes 4 KiB.
    ///
    /// See the example of [`Aggregator`].
    pub fn aggregator<T: Atomic>(&self) -> Aggregator<'_, T, M> {
        Aggregator {
            world: self,
            near: Near::new(),
            gathered: Vec::new(),
            under_way: VecDeque::new(),
            values: Vec::new(),
            outcome: Ok(()),
            max_age: None,
            until_clock: CLOCK_EVERY,
        }
    }
}

impl<'w, T: Atomic, M: Threading> Aggregator<'w, T, M> {
    /// Has calls send what was gathered longer ago than this.
    ///
    /// Calls look at the clock once in a while: where none come, nothing is sent. By default a
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

    /// Gathers an operation without the value before.
    ///
    /// Waits, polling, where a batch is full and its target has no room for it.
    ///
    /// See the example of [`Aggregator`].
    ///
    /// # Errors
    /// As [`World::atomic`]; the operation is not gathered then. Those that were stay.
    #[inline]
    pub fn atomic(&mut self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<()> {
        self.gather(at, op.plain())
    }

    /// Gathers an operation whose value before is among the values of the next
    /// [`flush`](Self::flush).
    ///
    /// Waits as [`atomic`](Self::atomic) does.
    ///
    /// ```
    /// # use argonet::{AtomicOp, SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let tickets = SharedArray::<u32>::alloc(&world, 1).unwrap();
    /// let mut aggregator = world.aggregator();
    /// for _ in 0..3 {
    ///     aggregator.fetch(tickets.ptr(world.rank(), 0), AtomicOp::inc()).unwrap();
    /// }
    /// assert_eq!(aggregator.flush().unwrap(), [0, 1, 2]);
    /// ```
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn fetch(&mut self, at: GlobalPtr<T>, op: AtomicOp<T>) -> Result<()> {
        // Reserved before, as the batch names its place.
        let place = self.values.len();
        self.values.push(T::of_bits(0));
        let gathered = self.gather(at, op.fetching());
        if gathered.is_err() {
            self.values.truncate(place);
        }
        gathered
    }

    /// Gathers an atomic store.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<f64>::alloc(&world, 2).unwrap();
    /// let mut aggregator = world.aggregator();
    /// aggregator.put(v.ptr(world.rank(), 1), 1.5).unwrap();
    /// aggregator.get(v.ptr(world.rank(), 1)).unwrap();
    /// assert_eq!(aggregator.flush().unwrap(), [1.5]);
    /// ```
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn put(&mut self, at: GlobalPtr<T>, value: T) -> Result<()> {
        self.atomic(at, AtomicOp::set(value))
    }

    /// Gathers an atomic load; the value is among those of the next [`flush`](Self::flush).
    ///
    /// See the example of [`put`](Self::put).
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic).
    #[inline]
    pub fn get(&mut self, at: GlobalPtr<T>) -> Result<()> {
        self.fetch(at, AtomicOp::get())
    }

    /// Sends what is gathered, without waiting for it to be done.
    ///
    /// Waits, polling, where a target has no room.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 1).unwrap();
    /// let mut aggregator = world.aggregator();
    /// aggregator.put(v.ptr(world.rank_offset(1), 0), 7).unwrap();
    /// aggregator.send().unwrap();
    /// // Here the rank does something else.
    /// aggregator.flush().unwrap();
    /// ```
    ///
    /// # Errors
    /// Of sending, such as [`AmError::PeerLost`](crate::AmError::PeerLost) and a call from inside a
    /// handler; the operations of that rank stay gathered, but for a lost one.
    pub fn send(&mut self) -> Result<()> {
        self.send_older(Duration::ZERO)
    }

    /// Sends what is gathered, waits for all operations, and returns the values of those that
    /// fetch, in the order of their calls since the last flush.
    ///
    /// Waits, polling.
    ///
    /// See the example of [`Aggregator`].
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`AmError::PeerLost`](crate::AmError::PeerLost) for operations
    /// under way with a lost rank: whether these have taken effect is not known. All others that
    /// were sent are complete then; those that could not be sent, and all values, are lost.
    pub fn flush(&mut self) -> Result<Vec<T>> {
        let sent = self.send();
        while let Some(batch) = self.under_way.pop_front() {
            self.finish(batch, None);
        }
        for gathered in self.gathered.iter_mut().flatten() {
            gathered.clear();
        }
        let values = core::mem::take(&mut self.values);
        let outcome = core::mem::replace(&mut self.outcome, Ok(()));
        sent.and(outcome).map(|()| values)
    }

    /// Gathers an operation; one that fetches has the last of the values.
    #[inline(always)]
    fn gather(&mut self, at: GlobalPtr<T>, what: engine::Atomic<T>) -> Result<()> {
        match self.world.mapped(at) {
            Some(place) if place.cast::<T>().is_aligned() => {
                let place = place.cast();
                // SAFETY: the place has the size of a `T` in a segment that is mapped here, as long
                // as the world is there, and it is aligned; segments are only accessed through the
                // bulk routine and atomics.
                unsafe { self.near.add(place, what, &mut self.values) };
                Ok(())
            }
            _ => self.gather_unmapped(at, what),
        }
    }

    #[inline(never)]
    fn gather_unmapped(&mut self, at: GlobalPtr<T>, what: engine::Atomic<T>) -> Result<()> {
        let rank = World::<M>::job_rank(at.rank());
        let engine = self.world.engine();
        if !engine.is_for_batch::<T>(rank, at.offset())? {
            // The segment has grown.
            self.near.finish(&mut self.values);
            let before = self.world.apply_all(at, what)?;
            if let Some(value) = self
                .values
                .last_mut()
                .filter(|_| what.operation.is_fetching())
            {
                *value = before;
            }
            return Ok(());
        }
        if let Some(age) = self.max_age {
            self.until_clock -= 1;
            if self.until_clock == 0 {
                self.until_clock = CLOCK_EVERY;
                self.send_older(age)?;
            }
        }
        if self.gathered.len() <= rank.index() {
            self.gathered.resize_with(rank.index() + 1, || None);
        }
        let known = self.values.len();
        let new = || Box::new(Gathered::new(engine.atomic_batch()));
        let gathered = self.gathered[rank.index()].get_or_insert_with(new);
        if !gathered.add(at, what, known) {
            self.send_to(rank.index())?;
            let emptied = self.gathered[rank.index()].as_mut();
            let added = emptied.is_some_and(|gathered| gathered.add(at, what, known));
            assert!(added, "a batch without operations has room for one");
        }
        Ok(())
    }

    fn send_older(&mut self, age: Duration) -> Result<()> {
        self.near.finish(&mut self.values);
        let now = Instant::now();
        let mut outcome = Ok(());
        for rank in 0..self.gathered.len() {
            let is_due = |gathered: &Gathered<T>| {
                !gathered.batch.is_empty() && now.saturating_duration_since(gathered.since) >= age
            };
            if self.gathered[rank].as_deref().is_some_and(is_due) {
                outcome = outcome.and(self.send_to(rank));
            }
        }
        outcome
    }

    /// Sends what is gathered for a rank.
    fn send_to(&mut self, rank: usize) -> Result<()> {
        self.finish_what_is_done();
        let Some(gathered) = &mut self.gathered[rank] else {
            return Ok(());
        };
        let batch = &gathered.batch;
        let mut values = vec![0; batch.values()];
        let to = argonet_base::JobRank(rank as u32);
        let world = self.world;
        // SAFETY: the values are on the heap until the operation is complete: it owns them.
        let started = process::with(|ctx| unsafe {
            let (at, how) = (values.as_mut_ptr(), Injection::Blocking);
            world.engine().atomic_batch_start(ctx, to, batch, at, how)
        });
        let event = match started {
            Ok(event) => event,
            Err(error) => {
                if crate::op::has_ended(&error) {
                    gathered.clear();
                }
                return Err(error.into());
            }
        };
        let places = core::mem::take(&mut gathered.places);
        gathered.clear();
        let op = Op::of_event(world, event, values, |values| values);
        self.under_way.push_back(UnderWay { op, places });
        Ok(())
    }

    /// Finishes the oldest batches as far as they are done; waits for one if there are too many.
    fn finish_what_is_done(&mut self) {
        while let Some(oldest) = self.under_way.front_mut() {
            let result = oldest.op.take();
            if result.is_none() && self.under_way.len() < MOST_UNDER_WAY {
                break;
            }
            if let Some(batch) = self.under_way.pop_front() {
                self.finish(batch, result);
            }
        }
    }

    /// Waits for a batch whose result is not known, and puts its values where they belong.
    fn finish(&mut self, batch: UnderWay<'_>, result: Option<Result<Vec<u64>>>) {
        let UnderWay { op, places } = batch;
        match result.unwrap_or_else(|| op.wait()) {
            Ok(values) => {
                for (value, place) in values.into_iter().zip(places) {
                    self.values[place] = T::of_bits(value);
                }
            }
            Err(error) => {
                let outcome = core::mem::replace(&mut self.outcome, Ok(()));
                self.outcome = outcome.and(Err(error));
            }
        }
    }
}

impl<T: Atomic> Gathered<T> {
    fn new(batch: AtomicBatch<T>) -> Self {
        Self {
            batch,
            places: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Adds an operation if there is room; one that fetches has the last of the values that are
    /// known so far.
    fn add(&mut self, at: GlobalPtr<T>, what: engine::Atomic<T>, known: usize) -> bool {
        let is_first = self.batch.is_empty();
        let added = self.batch.push(at.offset(), what);
        if added && is_first {
            self.since = Instant::now();
        }
        if added && what.operation.is_fetching() {
            self.places.push(known - 1);
        }
        added
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.places.clear();
    }
}

impl<T: Atomic, M: Threading> Drop for Aggregator<'_, T, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        match self.flush() {
            Ok(_) | Err(Error::Am(AmError::PeerLost { .. })) => {}
            Err(error) => self.world.engine().fatal(&error.to_string()),
        }
    }
}
