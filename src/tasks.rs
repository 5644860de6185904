//! Tasks that any rank may run, shared among ranks while they grow.

mod worker;

use crate::collectives::Reduction;
use crate::dist_object::DistObject;
use crate::error::{Error, Result, is_loss, keep_failure};
use crate::op::Op;
use crate::process;
use crate::rpc::RpcError;
use crate::world::{Par, Seq, Threading, World};
use argonet_base::Rank;
use argonet_boot::{WaitFor, Waiting};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::DefaultHasher;
use std::time::{Duration, Instant};
use worker::{Found, Parcel, Worker};

/// The least time of tasks between two looks at the network, and the most.
const LOOK_EVERY: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(200)];

/// Tasks take so many times as long as looks do, within these limits.
const TIMES_A_LOOK: u32 = 10;

/// Tasks between two readings of the clock, at most: so many long ones may follow short ones.
const MOST_BETWEEN: u32 = 8;

/// A rank holds tasks for others back for so long, if it has some of its own.
const SEND_EVERY: Duration = Duration::from_micros(200);

/// The tasks of a rank, for a task that adds others; see [`World::run_tasks`].
pub struct Tasks<'w, T, M: Threading = Seq> {
    world: &'w World<M>,
    /// Reachable by any thread of either threading.
    arrivals: DistObject<Arrivals, Par>,
    worker: Worker<T>,
    /// The round in which this rank waits.
    round: Option<Op<'w, Box<[u64]>, M>>,
    /// The first failure of this rank.
    outcome: Result<()>,
    pace: Pace,
    /// Of the type of tasks.
    kind: u64,
    _of_thread: PhantomData<*mut ()>,
    /// Whether all ranks have found the end.
    has_ended: bool,
}

/// What has come for a rank, and is not with its tasks yet.
#[derive(Default)]
struct Arrivals {
    /// Whether there is anything.
    any: AtomicBool,
    list: Mutex<Vec<Arrival>>,
}

enum Arrival {
    Question {
        by: Rank,
    },
    Tasks {
        from: Rank,
        is_pinned: bool,
        kind: u64,
        encoded: Encoded,
    },
}

impl Arrivals {
    fn add(&self, arrival: Arrival) {
        let mut list = self.list.lock();
        list.push(arrival);
        self.any.store(true, Ordering::Release);
    }

    fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn take(&self) -> Vec<Arrival> {
        let mut list = self.list.lock();
        self.any.store(false, Ordering::Release);
        core::mem::take(&mut list)
    }
}

crate::rpc! {
    /// A rank without tasks asks for some.
    fn ask(arrivals: &Arrivals) {
        let by = caller_of_task();
        arrivals.add(Arrival::Question { by });
    }

    /// Brings tasks.
    fn bring(arrivals: &Arrivals, is_pinned: bool, kind: u64, encoded: Encoded) {
        let from = caller_of_task();
        arrivals.add(Arrival::Tasks { from, is_pinned, kind, encoded });
    }
}

fn caller_of_task() -> Rank {
    process::caller().unwrap_or_else(|| unreachable!("remote procedures have a caller"))
}

/// Tasks as bytes, which the handler leaves as they are.
struct Encoded(Vec<u8>);

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> core::result::Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Encoded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("encoded tasks")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> core::result::Result<Encoded, E> {
                Ok(Encoded(bytes.to_vec()))
            }
        }
        decoder.deserialize_bytes(Bytes)
    }
}

/// How many tasks run between two readings of the clock, and how long between two looks at the
/// network.
struct Pace {
    /// Until the next one.
    left: u32,
    between: u32,
    /// For how long tasks should run between two looks.
    every: Duration,
    /// When this rank last read the clock.
    read: Instant,
    /// The end of the last look.
    looked: Instant,
    /// When this rank last sent all that it held.
    sent: Instant,
}

impl Pace {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            left: 1,
            between: 1,
            every: LOOK_EVERY[0],
            read: now,
            looked: now,
            sent: now,
        }
    }

    /// Whether it is time for a look, after a task.
    #[inline]
    fn is_time(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.is_time_by(Instant::now())
    }

    /// The same for a task after which the clock is read.
    fn is_time_by(&mut self, now: Instant) -> bool {
        let took = now.saturating_duration_since(self.read);
        self.read = now;
        self.between = adapted(self.between, took, self.every);
        self.left = self.between;
        now.saturating_duration_since(self.looked) >= self.every
    }

    /// Tasks begin again.
    fn restart(&mut self) {
        (self.left, self.between) = (1, 1);
        self.read = Instant::now();
        self.looked = self.read;
    }

    /// Whether the look that began then also sends what is held.
    fn is_time_to_send(&mut self, now: Instant) -> bool {
        let is_time = now.saturating_duration_since(self.sent) >= SEND_EVERY;
        if is_time {
            self.sent = now;
        }
        is_time
    }

    /// The look that began then has ended.
    fn end(&mut self, begun: Instant, now: Instant) {
        let took = now.saturating_duration_since(begun);
        self.every = (took * TIMES_A_LOOK).clamp(LOOK_EVERY[0], LOOK_EVERY[1]);
        (self.read, self.looked) = (now, now);
    }
}

/// The number of tasks until the clock is read again, if so many took that long.
fn adapted(tasks: u32, took: Duration, every: Duration) -> u32 {
    if took >= 2 * every {
        let fits = every.as_nanos() * u128::from(tasks) / took.as_nanos();
        (fits as u32).max(1)
    } else if took > every / 2 {
        tasks
    } else {
        (2 * tasks).min(MOST_BETWEEN)
    }
}

impl<M: Threading> World<M> {
    /// Runs tasks on all ranks until there are none left, those included that tasks add.
    ///
    /// Collective. Each rank passes its first tasks, or none, and the function that runs a task; on
    /// each rank that is a closure of its own, which may borrow and change what it likes. A task is
    /// a value that serde can encode, of one type on all ranks. It runs once, on any rank: a rank
    /// without tasks asks others, and one that has more than one gives away equal shares, the
    /// oldest first. So it is for work whose amount shows only while it is done, as in searches.
    ///
    /// ```
    /// use argonet::{Rank, Reduction, World};
    /// # let world = World::init().unwrap();
    /// // The leaves of a tree: a vertex of height h has children of the heights below h.
    /// let mut leaves = [0u64];
    /// let root = (world.rank() == Rank(0)).then_some(10u32);
    /// world.run_tasks(root, |height, tasks| {
    ///     leaves[0] += u64::from(height == 0);
    ///     (0..height).for_each(|height| tasks.push(height));
    /// }).unwrap();
    /// world.reduce_all(Reduction::Sum, &mut leaves).unwrap();
    /// assert_eq!(leaves, [512]);
    /// ```
    ///
    /// A rank runs its newest task first, one at a time, on the thread that calls this; [pinned
    /// ones](Tasks::push_to) go before, the oldest first. It polls between tasks, every 10 to 200
    /// us (ten times as long as that takes), but up to eight long tasks may follow short ones
    /// before it notices. A rank that has no task waits for some as in
    /// [`wait_until`](Self::wait_until). A task may make any call but a collective one, and has no
    /// result: keep an error in a variable. What one rank adds may run at another before the task
    /// that added it has ended. All first tasks are taken before one runs.
    ///
    /// It ends on all ranks together, after all that tasks have sent one-way has been handled
    /// ([`drain`](Self::drain)). Tasks wait in the memory of a rank, and nothing limits how many; a
    /// search that goes down first keeps few. What moves is encoded as an argument of a [remote
    /// procedure](Self::rpc) is, with the same limits.
    ///
    /// Source: work stealing with private deques (Acar, Charguéraud and Rainey, 2013) and lifelines
    /// (Saraswat and others, 2011).
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler,
    /// [`AmError::Deferred`](crate::AmError::Deferred) inside a remote procedure with a context,
    /// and [`AmError::InTask`](crate::AmError::InTask) inside a task;
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) once the job has lost a rank;
    /// [`RpcError::Encode`] and [`RpcError::Tasks`] of tasks that serde refuses, which are
    /// [`Error::ElsewhereFailed`](crate::Error::ElsewhereFailed) on all other ranks. Tasks are lost
    /// then.
    ///
    /// # Panics
    /// Panics of a task go to the caller, and other ranks wait then, so let it end the job.
    pub fn run_tasks<T, F>(&self, first: impl IntoIterator<Item = T>, mut run: F) -> Result<()>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(T, &mut Tasks<'_, T, M>),
    {
        let mut tasks = Tasks {
            world: self,
            arrivals: DistObject::shared(self, Arrivals::default())?,
            worker: Worker::new(self.rank().0, self.size()),
            round: None,
            outcome: Ok(()),
            pace: Pace::new(),
            kind: kind::<T>(),
            _of_thread: PhantomData,
            has_ended: false,
        };
        first.into_iter().for_each(|task| tasks.push(task));
        tasks.run_all(&mut run)?;
        // Questions may be under way.
        self.drain()?;
        tasks.has_ended = true;
        Ok(())
    }
}

/// A number for a type, the same in all processes of one program.
fn kind<T>() -> u64 {
    let mut hasher = DefaultHasher::new();
    core::any::type_name::<T>().hash(&mut hasher);
    hasher.finish()
}

impl<T, M: Threading> Drop for Tasks<'_, T, M> {
    fn drop(&mut self) {
        if !self.has_ended {
            // Other ranks may go on for a while.
            self.arrivals.ignore_late_calls();
        }
    }
}

/// Marks the thread for as long as it lives: collective calls are refused.
struct InTasks;

impl InTasks {
    fn begin() -> Self {
        process::with(|ctx| ctx.set_runs_tasks(true));
        Self
    }
}

impl Drop for InTasks {
    fn drop(&mut self) {
        process::with(|ctx| ctx.set_runs_tasks(false));
    }
}

impl<T: Serialize + DeserializeOwned, M: Threading> Tasks<'_, T, M> {
    /// Adds a task that any rank may run.
    ///
    /// It takes no lock and sends nothing. See the example of [`World::run_tasks`].
    pub fn push(&mut self, task: T) {
        self.worker.push(task);
    }

    /// Adds a task that only `to` runs, for example because the data for it are there.
    ///
    /// Tasks for one rank are held back and sent up to 256 at a time. All that are held go at the
    /// first look at the network that is 0.2 ms after the last time, in [`share`](Self::share) or
    /// between tasks, or when this rank has no task. Those for a rank itself run
    /// in the order of the calls. Waits, polling, only while `to` has no room.
    ///
    /// ```
    /// use argonet::{Rank, World};
    /// # let world = World::init().unwrap();
    /// let (me, size) = (world.rank(), world.size());
    /// let mut halves = 0;
    /// let first = (me == Rank(0)).then_some(1_000_000u32);
    /// world.run_tasks(first, |number, tasks| {
    ///     halves += 1;
    ///     if number > 1 {
    ///         // The owner of a number is found from it, as that of an entry of a table is.
    ///         let half = number / 2;
    ///         tasks.push_to(Rank(half % size), half).unwrap();
    ///     }
    /// }).unwrap();
    /// # use argonet::Reduction;
    /// # let all = world.collectives().reduce_all_value(Reduction::Sum, halves).unwrap();
    /// # assert_eq!(all, 20);
    /// ```
    ///
    /// # Errors
    /// [`AmError::NoSuchRank`](crate::AmError::NoSuchRank). A failure to send is not returned here:
    /// [`World::run_tasks`] returns it, and this rank runs no further task.
    pub fn push_to(&mut self, to: Rank, task: T) -> Result<()> {
        self.world.check_rank(to)?;
        if self.worker.push_to(to.0, task)
            && let Some(parcel) = self.worker.held_for(to.0)
        {
            self.send(parcel);
        }
        Ok(())
    }

    /// Gives tasks to ranks that have none, in the midst of a task.
    ///
    /// A task that takes longer than a millisecond calls it from time to time, or ranks without
    /// tasks wait for its end. Tasks that are held for other ranks leave, too. It polls, and waits
    /// only while a rank that gets tasks has no room. A failure to send is not returned here:
    /// [`World::run_tasks`] returns it.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let mut sum = 0u64;
    /// world.run_tasks([3_000_000u64, 2_000_000], |end, tasks| {
    ///     for number in 0..end {
    ///         sum += number;
    ///         if number % 1_000_000 == 0 {
    ///             tasks.share();
    ///         }
    ///     }
    /// }).unwrap();
    /// ```
    pub fn share(&mut self) {
        self.look(false);
    }

    fn run_all(&mut self, run: &mut impl FnMut(T, &mut Self)) -> Result<()> {
        let in_tasks = InTasks::begin();
        while let Some(task) = self.next()? {
            run(task, self);
            if self.pace.is_time() {
                self.look(true);
            }
        }
        drop(in_tasks);
        Ok(())
    }

    /// The next task for this rank; none if no rank has one any more.
    fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(task) = self.worker.next() {
                return Ok(Some(task));
            }
            if self.outcome.as_ref().is_err_and(is_loss) {
                return core::mem::replace(&mut self.outcome, Ok(())).map(|()| None);
            }
            while let Some(parcel) = self.worker.any_held() {
                self.send(parcel);
            }
            // A round may end without a poll.
            self.note(self.world.poll().map(drop));
            if self.arrivals.any() {
                self.take_arrivals();
                self.pace.restart();
                continue;
            }
            while let Some(rank) = self.worker.ask() {
                self.send_question(Rank(rank));
            }
            match self.idle()? {
                Found::Tasks => {}
                Found::End => return Ok(None),
                Found::Failure => {
                    core::mem::replace(&mut self.outcome, Ok(()))?;
                    let (rank, what) = (self.world.rank(), "running tasks");
                    return Err(Error::ElsewhereFailed { rank, what });
                }
            }
        }
    }

    /// Waits until something has come, or a round has ended.
    fn idle(&mut self) -> Result<Found> {
        let (world, arrivals) = (self.world, &self.arrivals);
        let round = match self.round.take() {
            Some(round) => round,
            None => {
                let report = Box::new(self.worker.report());
                process::with(|ctx| ctx.set_runs_tasks(false));
                let calls = world.collectives();
                let round = calls.start_reduce_all(Reduction::Sum, report);
                process::with(|ctx| ctx.set_runs_tasks(true));
                round?
            }
        };
        let round = self.round.insert(round);
        let mut sums = None;
        let done = || {
            sums = round.take();
            sums.is_some() || arrivals.any()
        };
        let what = Waiting::new(WaitFor::Tasks);
        process::with(|ctx| world.engine().wait_until(ctx, what, done))?;
        let Some(sums) = sums else {
            return Ok(Found::Tasks);
        };
        self.round = None;
        let sums = sums?;
        Ok(self.worker.found([sums[0], sums[1], sums[2]]))
    }

    /// Polls, takes what has come, and gives to ranks that have asked.
    fn look(&mut self, is_between: bool) {
        let begun = Instant::now();
        self.note(self.world.poll().map(drop));
        self.note(self.world.engine().unless_any_lost().map_err(Error::from));
        if self.arrivals.any() {
            self.take_arrivals();
        }
        while let Some(parcel) = self.worker.gift(is_between) {
            self.send(parcel);
        }
        if self.pace.is_time_to_send(begun) {
            while let Some(parcel) = self.worker.any_held() {
                self.send(parcel);
            }
        }
        self.pace.end(begun, Instant::now());
    }

    fn take_arrivals(&mut self) {
        for arrival in self.arrivals.take() {
            match arrival {
                Arrival::Question { by } => self.worker.be_asked(by.0),
                Arrival::Tasks {
                    from,
                    is_pinned,
                    kind,
                    encoded,
                } => {
                    let tasks = self.decoded(from, kind, &encoded);
                    // It counts, whatever it brings.
                    let (tasks, decoded) = match tasks {
                        Ok(tasks) => (tasks, Ok(())),
                        Err(error) => (Vec::new(), Err(error)),
                    };
                    self.worker.take(from.0, is_pinned, tasks);
                    self.note(decoded);
                }
            }
        }
    }

    fn decoded(&self, from: Rank, kind: u64, Encoded(bytes): &Encoded) -> Result<Vec<T>> {
        let decoded = match kind == self.kind {
            true => crate::bounded::decode(bytes).map_err(|cause| cause.to_string()),
            false => Err(format!("they are no {}", core::any::type_name::<T>())),
        };
        decoded.map_err(|cause| {
            let rank = self.world.rank();
            RpcError::Tasks { from, cause, rank }.into()
        })
    }

    /// Keeps a failure; this rank runs no more tasks then.
    fn note(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            keep_failure(&mut self.outcome, error);
            self.worker.fail();
        }
    }

    fn send(&mut self, parcel: Parcel<T>) {
        let sent = self.try_send(&parcel);
        if let Ok(bytes) = &sent {
            self.worker.note_size(parcel.tasks.len(), *bytes);
        }
        self.note(sent.map(drop));
    }

    /// Sends tasks; how many bytes they are.
    fn try_send(&self, parcel: &Parcel<T>) -> Result<usize> {
        let encoded = postcard::to_stdvec(&parcel.tasks).map_err(|cause| {
            let name = bring.name().into();
            let (cause, rank) = (cause.to_string(), self.world.rank());
            RpcError::Encode { name, cause, rank }
        })?;
        let bytes = encoded.len();
        let args = (parcel.is_pinned, self.kind, Encoded(encoded));
        let callee = bring.callee(self.arrivals.number());
        self.world.call_one_way(Rank(parcel.to), &callee, &args)?;
        Ok(bytes)
    }

    fn send_question(&mut self, to: Rank) {
        let callee = ask.callee(self.arrivals.number());
        let sent = self.world.call_one_way(to, &callee, &());
        self.note(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_the_tasks() {
        let us = Duration::from_micros;
        let adapted = |tasks, took| adapted(tasks, us(took), us(10));
        assert_eq!(adapted(1, 1), 2);
        assert_eq!(adapted(MOST_BETWEEN, 1), MOST_BETWEEN);
        assert_eq!(adapted(40, 9), 40);
        assert_eq!(adapted(40, 15), 40);
        assert_eq!(adapted(40, 20), 20);
        assert_eq!(adapted(40, 4_000), 1);
        assert_eq!(adapted(1, u64::MAX / 1_000), 1);
    }

    #[test]
    fn the_pace_follows_the_cost_of_looks() {
        let us = Duration::from_micros;
        let mut pace = Pace::new();
        let mut now = pace.looked;
        let costs = [0, 2, 7, 500];
        let every = costs.map(|cost| {
            let begun = now;
            now += us(cost);
            pace.end(begun, now);
            pace.every
        });
        assert_eq!(every, [us(10), us(20), us(70), us(200)]);
        assert_eq!(pace.looked, now);
        // Short tasks: the clock is read less often, and there is no look before 200 us are over.
        let begun = now;
        for between in [2, 4, 8, 8] {
            now += us(40);
            assert!(!pace.is_time_by(now));
            assert_eq!((pace.between, pace.left), (between, between));
        }
        now += us(40);
        assert!(now - begun == us(200) && pace.is_time_by(now));
        // Then long ones.
        now += us(800);
        assert!(pace.is_time_by(now));
        assert_eq!((pace.between, pace.left), (2, 2));
        pace.restart();
        assert_eq!((pace.between, pace.left), (1, 1));
    }

    #[test]
    fn what_is_held_is_sent_from_time_to_time() {
        let mut pace = Pace::new();
        let begin = pace.sent;
        let times: Vec<u64> = (1..=10)
            .filter(|look| pace.is_time_to_send(begin + Duration::from_micros(70 * look)))
            .collect();
        // At 210, 420 and 630 us.
        assert_eq!(times, [3, 6, 9]);
    }

    #[test]
    fn tasks_are_bytes_to_the_handler() {
        let bytes = postcard::to_stdvec(&(true, Encoded(vec![7, 8, 9]))).unwrap();
        assert_eq!(bytes, [1, 3, 7, 8, 9]);
        let (is_pinned, Encoded(inner)) = crate::bounded::decode(&bytes).unwrap();
        assert!(is_pinned && inner == [7, 8, 9]);
        let cut = crate::bounded::decode::<(bool, Encoded)>(&bytes[..4]);
        assert!(cut.is_err());
    }
}
