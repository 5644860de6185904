//! The job as one rank sees it.

use crate::builder::Builder;
use crate::error::Result;
use crate::heap::Memory;
use crate::limits::Limits;
use crate::process;
use crate::progress::{ProgressThread, Wakers};
use crate::rpc::{Calls, run_deferred};
use argonet_am::AmError;
use argonet_base::{JobRank, Rank};
use argonet_boot::{WaitFor, Waiting};
use argonet_conduit::selector::Selector;
use argonet_conduit::{Conduit, ThreadMode};
use argonet_engine::{BarrierKind, Engine, Leaving, PANIC_CODE, WaitMode};
use argonet_start::Placement;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

mod sealed {
    pub trait Sealed {}
}

/// Which threads may use a [`World`]: [`Seq`] or [`Par`].
///
/// ```
/// use argonet::{Reduction, Threading, World};
/// // A function for worlds of one thread and of many.
/// fn count<M: Threading>(world: &World<M>) -> u32 {
///     let mut ranks = [1];
///     world.reduce_all(Reduction::Sum, &mut ranks).unwrap();
///     ranks[0]
/// }
/// # let world = World::init().unwrap();
/// assert_eq!(count(&world), world.size());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which threads may use a `World`",
    note = "`Seq` and `Par` do"
)]
pub trait Threading: sealed::Sealed + 'static {
    /// The engine's mode.
    const MODE: ThreadMode;
}

/// One thread, the one that made the world (GASNet's SEQ).
///
/// No message class takes a lock. See the example of [`World`].
///
/// The world cannot go to another thread:
///
/// ```compile_fail,E0277
/// # use argonet::World;
/// # fn f(world: World) {
/// std::thread::spawn(move || world.poll());
/// # }
/// ```
pub struct Seq(PhantomData<*mut ()>);

/// Any number of threads at once (GASNet's PAR).
///
/// See the example of [`Builder::build_par`].
pub struct Par(());

impl sealed::Sealed for Seq {}
impl sealed::Sealed for Par {}

impl Threading for Seq {
    const MODE: ThreadMode = ThreadMode::Seq;
}

impl Threading for Par {
    const MODE: ThreadMode = ThreadMode::Par;
}

pub(crate) struct Inner {
    pub(crate) engine: Engine<Selector>,
    pub(crate) memory: Memory,
    pub(crate) calls: Arc<Calls>,
    pub(crate) wakers: Wakers,
    /// Where the ranks are.
    pub(crate) placement: Arc<Placement>,
}

/// The job as one rank sees it: its rank, the other ranks, and all operations on them.
///
/// There is one world a process. [`run`](crate::run()) makes it and ends the job when the program
/// fails. Dropping it finalizes: it waits until all ranks have dropped theirs and everything sent
/// has been handled. It does not end the process. If other ranks meanwhile wait for something that
/// no rank can bring any more, the job ends with a message that names both. A panic that leaves the
/// world of several ranks does not finalize: it ends the process and its job, with code 101, even
/// if the caller would have caught it. So does [`exit`](crate::exit), with any code.
///
/// ```
/// use argonet::World;
/// let world = World::init().unwrap();
/// assert!(world.rank().0 < world.size());
/// assert_eq!(world.ranks().len(), world.size() as usize);
/// // Around the end, in both directions.
/// assert_eq!(world.rank_offset(i64::from(world.size())), world.rank());
/// assert_eq!(world.rank_offset(-1), world.rank_offset(i64::from(world.size()) - 1));
/// world.barrier().unwrap();
/// world.finalize().unwrap();
/// ```
pub struct World<M: Threading = Seq> {
    pub(crate) inner: Arc<Inner>,
    finalized: bool,
    pub(crate) progress: Option<ProgressThread>,
    _mode: PhantomData<M>,
}

impl World {
    /// Joins the job with the default settings.
    ///
    /// Started by `argonet run` the process becomes one of its ranks. With `GASNET_PSHM_NODES=N`
    /// it forks N - 1 others and becomes rank 0. Otherwise it is a job of one rank.
    ///
    /// Blocks until all ranks have joined; call it before there is a second thread.
    ///
    /// See the example of [`World`].
    ///
    /// # Errors
    /// The job cannot start; see [`Error`](crate::Error).
    pub fn init() -> Result<World> {
        Builder::new().build()
    }

    /// The world for a function that a rank runs in one of its calls: it does not finalize, and
    /// stays on the thread that runs the function.
    pub(crate) fn view(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            finalized: true,
            progress: None,
            _mode: PhantomData,
        }
    }

    /// Joins the job with settings and handlers of one's own.
    ///
    /// See the example of [`Builder`].
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<M: Threading> World<M> {
    pub(crate) fn new(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        if inner.calls.any_deferred() {
            // The engine is part of what it calls.
            let this = Arc::downgrade(&inner);
            let run = move || {
                this.upgrade().map_or(0, |inner| {
                    let wakers = &inner.wakers;
                    wakers.while_busy(|| run_deferred(&inner))
                })
            };
            let mark = inner.engine.on_deferred(Box::new(run));
            inner.calls.deferred.begin(mark);
        }
        Self {
            inner,
            finalized: false,
            progress: None,
            _mode: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> &Engine<Selector> {
        &self.inner.engine
    }

    /// The limits of messages of this job.
    ///
    /// All ranks have the same.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let limits = world.limits();
    /// assert_eq!([limits.medium_request, limits.medium_reply], [argonet::MAX_MEDIUM; 2]);
    /// assert!(limits.long >= 1 << 20);
    /// ```
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::of(self.engine().conduit().limits())
    }

    /// This rank.
    ///
    /// See the example of [`World`].
    #[inline]
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank(self.engine().rank().0)
    }

    /// Number of ranks.
    ///
    /// See the example of [`World`].
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.engine().size()
    }

    /// All ranks.
    ///
    /// See the example of [`World`].
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + Clone + use<M> {
        (0..self.size()).map(Rank)
    }

    /// The rank `distance` further on, around the end.
    ///
    /// See the example of [`World`].
    #[must_use]
    pub fn rank_offset(&self, distance: i64) -> Rank {
        let place = i64::from(self.rank().0) + distance.rem_euclid(i64::from(self.size()));
        Rank((place % i64::from(self.size())) as u32)
    }

    /// Runs the handlers of messages that have arrived, and goes on with operations under way;
    /// returns how much there was to do.
    ///
    /// Takes a limited number of messages, and does not wait for others; but a remote procedure
    /// with a [context](crate::RpcContext) that runs in it may wait. 0 says that there was nothing.
    ///
    /// A loop of polls, or of waits with an end, is no wait that the library knows. It goes on if
    /// another rank drops its world, where [`wait_until`](Self::wait_until) ends the job; programs
    /// in [`run`](crate::run) end it in any case.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// static PINGS: AtomicU32 = AtomicU32::new(0);
    /// argonet::am! {
    ///     fn ping(_ctx, _nothing: ()) { PINGS.fetch_add(1, Ordering::Relaxed); }
    /// }
    /// # let world = argonet::World::init().unwrap();
    /// world.send(world.rank(), &ping, ()).unwrap();
    /// while PINGS.load(Ordering::Relaxed) < 1 {
    ///     world.poll().unwrap();
    /// }
    /// world.send(world.rank(), &ping, ()).unwrap();
    /// world.wait_until(|| PINGS.load(Ordering::Relaxed) == 2).unwrap();
    /// world.send(world.rank(), &ping, ()).unwrap();
    /// world.drain().unwrap();
    /// assert_eq!(PINGS.load(Ordering::Relaxed), 3);
    /// ```
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    #[inline]
    pub fn poll(&self) -> Result<usize> {
        Ok(process::with(|ctx| self.engine().poll(ctx))?)
    }

    /// Polls until `done` says so: first busily, then yielding, then sleeping until something
    /// arrives.
    ///
    /// `done` should depend on handlers of this rank, puts of other ranks, or other threads of this
    /// process.
    ///
    /// It runs in this call, between polls: it may make any call that this thread may make, and a
    /// panic of it goes to the caller.
    ///
    /// If `done` cannot come true any more, because another rank has left its world, all others
    /// wait and nothing is under way, the job ends with a message that names both ranks. Threads of
    /// this process count, as far as they run or sleep for a limited time, and so do messages, puts
    /// and gets of `done` itself over a network; loads of memory that is mapped here do not. The
    /// library cannot see conditions that depend on time, on files, on signals of the system or on
    /// processes that are no ranks: [`wait_timeout`](Self::wait_timeout) waits for those. A `done`
    /// that prepares a payload of the raw layer ends the wait with an error.
    ///
    /// See the example of [`poll`](Self::poll).
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    #[inline]
    pub fn wait_until(&self, done: impl FnMut() -> bool) -> Result<()> {
        let what = Waiting::new(WaitFor::Condition);
        Ok(process::with(|ctx| {
            self.engine().wait_until(ctx, what, done)
        })?)
    }

    /// [`wait_until`](Self::wait_until) for at most `timeout`; whether `done` came true.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let soon = std::time::Duration::from_millis(1);
    /// assert!(!world.wait_timeout(soon, || false).unwrap());
    /// assert!(world.wait_timeout(soon, || true).unwrap());
    /// ```
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    pub fn wait_timeout(&self, timeout: Duration, done: impl FnMut() -> bool) -> Result<bool> {
        let (engine, what) = (self.engine(), Waiting::new(WaitFor::Condition));
        let deadline = engine.now().saturating_add(timeout);
        Ok(process::with(|ctx| {
            engine.wait_until_deadline(ctx, what, deadline, done)
        })?)
    }

    /// A [`poll`](Self::poll) that blocks while there is nothing to do, for at most `timeout`.
    ///
    /// It waits as [`wait_until`](Self::wait_until) does, so a rank that sleeps here costs no
    /// processor time.
    ///
    /// ```
    /// # let world = argonet::World::init().unwrap();
    /// let handled = world.poll_timeout(std::time::Duration::from_millis(1)).unwrap();
    /// assert_eq!(handled, 0);
    /// ```
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    pub fn poll_timeout(&self, timeout: Duration) -> Result<usize> {
        let (engine, what) = (self.engine(), Waiting::new(WaitFor::Arrival));
        let deadline = engine.now().saturating_add(timeout);
        Ok(process::with(|ctx| engine.poll_until(ctx, what, deadline))?)
    }

    /// How threads of this rank wait; at first as `ARGONET_WAIT` says, else [`WaitMode::Auto`].
    ///
    /// See the example of [`set_wait_mode`](Self::set_wait_mode).
    #[must_use]
    pub fn wait_mode(&self) -> WaitMode {
        self.engine().wait_mode()
    }

    /// Sets how waits of this rank that begin from now on wait (GASNet's `gasnet_set_waitmode`).
    ///
    /// Any thread may call it.
    ///
    /// ```
    /// use argonet::{WaitMode, World};
    /// let world = World::init().unwrap();
    /// world.set_wait_mode(WaitMode::Sleep);
    /// assert_eq!(world.wait_mode(), WaitMode::Sleep);
    /// ```
    pub fn set_wait_mode(&self, mode: WaitMode) {
        self.engine().set_wait_mode(mode);
    }

    /// Waits until every rank has entered the barrier.
    ///
    /// Collective; blocks, polling. Messages sent before it may still be under way, and so may
    /// operations of this rank that it has not waited for; see [`drain`](World::drain). All ranks
    /// make calls of the world in one order, started operations of
    /// [`collectives`](World::collectives) included.
    ///
    /// See the example of [`World`].
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler, and
    /// [`AmError::Deferred`](crate::AmError::Deferred) inside a remote procedure with a context,
    /// [`AmError::InTask`](crate::AmError::InTask) inside a [task](crate::Tasks), as
    /// of all collective calls; [`AmError::PeerLost`](crate::AmError::PeerLost) once the job has
    /// lost a rank.
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        Ok(process::with(|ctx| {
            self.engine().barrier(ctx, BarrierKind::Client)
        })?)
    }

    /// Runs a future to its end, polling the network whenever the future waits.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 8).unwrap();
    /// let sum: argonet::Result<u64> = world.block_on(async {
    ///     let data = world.get(v.on(world.rank()))?.await?;
    ///     Ok(data.iter().sum())
    /// });
    /// assert_eq!(sum.unwrap(), 0);
    /// ```
    ///
    /// If another rank has left its world, all others wait and nothing is under way, the job ends
    /// with a message that names both ranks, unless the future is woken meanwhile: a future that
    /// waits for something outside of the library keeps its waker and wakes it, or another thread
    /// of this process runs.
    ///
    /// Messages end its sleep. Such a wake does not, and the sleep may last half a second: a
    /// program whose futures wait for timers or sockets sets [`WaitMode::Yield`].
    ///
    /// # Panics
    /// If the future has to wait inside a handler, which cannot wait for anything.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut wait = self.engine().waiting(Waiting::new(WaitFor::Future));
        let waker = self.engine().waker();
        let mut woken = self.engine().wakes();
        loop {
            // Operations poll the network themselves; between polls of the future this loop does,
            // and it sleeps when nothing happens.
            let poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(output) = process::with(|ctx| self.engine().decide(ctx, poll)) {
                return output;
            }
            let wakes = self.engine().wakes();
            if core::mem::replace(&mut woken, wakes) != wakes {
                // It can go on, so this rank does not sleep.
                wait = self.engine().waiting(Waiting::new(WaitFor::Future));
            }
            let idle = process::with(|ctx| wait.idle(ctx));
            if let Err(error) = idle {
                panic!("{error}");
            }
        }
    }

    /// Waits until all that any rank sent before this call has been handled everywhere, requests,
    /// one-way messages and replies.
    ///
    /// It also waits until no rank has a remote procedure with a [context](crate::RpcContext) left
    /// to run, those included that such functions call. A thread of a rank that goes on calling
    /// such functions keeps it from ending.
    ///
    /// Collective; blocks, polling.
    ///
    /// See the example of [`poll`](Self::poll).
    ///
    /// # Errors
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler, and
    /// [`AmError::Deferred`](crate::AmError::Deferred) inside a remote procedure with a context,
    /// [`AmError::InTask`](crate::AmError::InTask) inside a [task](crate::Tasks);
    /// [`AmError::PeerLost`](crate::AmError::PeerLost) once the job has lost a rank.
    pub fn drain(&self) -> Result<()> {
        self.drain_for(BarrierKind::Drain)
    }

    pub(crate) fn drain_for(&self, kind: BarrierKind) -> Result<()> {
        Ok(process::with(|ctx| self.engine().drain(ctx, kind))?)
    }

    /// The ranks that are lost, as far as this rank knows, in the order of their losses.
    ///
    /// The order is the same at all ranks. Any thread may call it, also in a handler. It does not
    /// poll, so a rank that does not communicate, and has no progress thread, learns of no loss.
    ///
    /// See [`Builder::on_peer_lost`].
    #[must_use]
    pub fn lost_ranks(&self) -> Vec<Rank> {
        let lost = self.engine().lost_ranks();
        lost.into_iter().map(|rank| Rank(rank.0)).collect()
    }

    /// Finalizes: waits for all ranks and everything under way, then leaves the job.
    ///
    /// Dropping the world does the same. An error of [`drain`](Self::drain) ends the job with its
    /// message, as the other ranks wait for this one; but a loss does not. After a loss it waits
    /// for all survivors, and for messages under way for one second at most: one-way messages that
    /// must be handled are best answered before.
    ///
    /// See the example of [`World`].
    ///
    /// # Errors
    /// None that leaves the job running.
    pub fn finalize(mut self) -> Result<()> {
        self.leave(Leaving::Finalized)
    }

    fn leave(&mut self, how: Leaving) -> Result<()> {
        self.engine().begin_to_leave(how);
        if let Some(thread) = self.progress.take() {
            // What other ranks may still want is served in the drain.
            thread.end(self)?;
        }
        self.drain_for(BarrierKind::Finalize)?;
        // Only now: others wait for this rank in that drain, so a world that has not come through
        // it ends the job when it is dropped.
        self.finalized = true;
        self.inner.calls.deferred.end();
        argonet_trace::close();
        let boot = self.engine().boot();
        boot.finalized();
        self.engine().conduit().exit_grace(boot.exit_grace());
        Ok(())
    }

    /// Fails if there is no such rank.
    pub(crate) fn check_rank(&self, to: Rank) -> Result<()> {
        let size = self.size();
        if to.0 < size {
            return Ok(());
        }
        let [to, from] = [to, self.rank()].map(Self::job_rank);
        Err(AmError::NoSuchRank { to, size, from }.into())
    }

    pub(crate) fn job_rank(rank: Rank) -> JobRank {
        // The world team is the job.
        JobRank(rank.0)
    }
}

impl<M: Threading> Drop for World<M> {
    fn drop(&mut self) {
        if self.finalized {
            return;
        }
        if std::thread::panicking() {
            if self.size() > 1 {
                // The code that catches the panic has no world any more, and the other ranks would
                // wait for this one forever.
                let why = "a panic left its world without finalizing";
                self.engine().boot().abort(PANIC_CODE, why);
            }
            return;
        }
        if let Err(error) = self.leave(Leaving::Dropped) {
            self.engine().fatal(&error.to_string());
        }
    }
}
