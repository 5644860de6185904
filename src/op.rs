//! Operations under way.

use crate::error::Result;
use crate::process;
use crate::progress::ProgressThread;
use crate::world::{Par, Seq, Threading, World};
use argonet_am::AmError;
use argonet_boot::{WaitFor, Waiting};
use argonet_engine::OpError;
use argonet_event::Event;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

/// An operation of a world that is under way, with what it keeps until its end.
pub(crate) trait Pending<B, M: Threading>: Send {
    /// Its result, if it is complete: once.
    fn look(&mut self, world: &World<M>) -> Option<Result<B>>;

    /// Whether a look has failed, and not the operation.
    fn goes_on(&self) -> bool {
        false
    }

    /// It is dropped before its end: when this returns nothing uses what it keeps, or it leaks
    /// that.
    fn abandon(&mut self, _world: &World<M>) {}
}

impl<B, M: Threading, F: FnMut(&World<M>) -> Option<Result<B>> + Send> Pending<B, M> for F {
    fn look(&mut self, world: &World<M>) -> Option<Result<B>> {
        self(world)
    }
}

/// The world of an operation.
enum Of<'w, M: Threading> {
    Lent(&'w World<M>),
    Shared(Arc<World<M>>),
}

impl<M: Threading> Of<'_, M> {
    fn world(&self) -> &World<M> {
        match self {
            Self::Lent(world) => world,
            Self::Shared(world) => world,
        }
    }
}

enum State<B, M: Threading> {
    Done(B),
    Waiting(Box<dyn Pending<B, M>>),
    Taken,
}

impl<B, M: Threading> State<B, M> {
    /// The result, if there is one: once.
    fn take(&mut self, world: &World<M>) -> Option<Result<B>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Done(result) => Some(Ok(result)),
            Self::Waiting(mut pending) => {
                let result = pending.look(world);
                if result.is_none() || pending.goes_on() {
                    *self = Self::Waiting(pending);
                }
                result
            }
            Self::Taken => None,
        }
    }

    fn abandon(&mut self, world: &World<M>) {
        if let Self::Waiting(mut pending) = core::mem::replace(self, Self::Taken) {
            pending.abandon(world);
        }
    }

    #[track_caller]
    fn assert_not_taken(&self) {
        assert!(
            !matches!(self, Self::Taken),
            "an operation is waited for or polled after its end"
        );
    }
}

/// An operation that was started: a future that needs no runtime, with a blocking
/// [`wait`](Self::wait) beside it.
///
/// It owns its buffer until it is complete. Dropping it does not cancel the operation, which still
/// takes effect at the target. Where a put or a get still uses the buffer, dropping it waits; a
/// collective operation leaks the buffer.
///
/// ```
/// # use argonet::{SharedArray, World};
/// # let world = World::init().unwrap();
/// let v = SharedArray::<u64>::alloc(&world, 2).unwrap();
/// let here = v.on(world.rank());
/// // Blocking.
/// let buffer = world.put(here, vec![3, 4].into()).unwrap().wait().unwrap();
/// // As a future.
/// let values = world.block_on(async { world.get(here)?.await });
/// assert_eq!(buffer, values.unwrap());
/// ```
///
/// It cannot outlive its world:
///
/// ```compile_fail,E0505
/// # use argonet::{GlobalSlice, World};
/// # fn f(world: World, p: GlobalSlice<u64>) {
/// let op = world.get(p).unwrap();
/// world.finalize().unwrap();
/// op.wait().unwrap();
/// # }
/// ```
/// ```compile_fail,E0521
/// # use argonet::{GlobalSlice, Par, World};
/// # fn f(world: &World<Par>, p: GlobalSlice<u64>) {
/// let op = world.get(p).unwrap();
/// std::thread::spawn(move || op.wait());
/// # }
/// ```
///
/// # Threads and executors
///
/// An operation of a [`World<Par>`](Par) may go to other threads: any one may wait for it or poll
/// it. [`into_owned`](Self::into_owned) makes one that lives as long as it likes. One of a world of
/// one thread stays there:
///
/// ```compile_fail,E0277
/// # use argonet::{GlobalSlice, World};
/// # fn f(world: &World, p: GlobalSlice<u64>) {
/// let op = world.get(p).unwrap();
/// std::thread::scope(|threads| { threads.spawn(move || op.wait()); });
/// # }
/// ```
///
/// [`World::block_on`] sleeps where nothing happens. Under an executor that knows nothing of this
/// library, an operation asks to be polled again at once, unless there is a [progress
/// thread](World::start_progress_thread), which wakes it when something has come to the rank, and
/// twice a second. Operations of an [`RpcContext`](crate::RpcContext) ask at once. A waker that
/// panics on that thread ends the job.
#[must_use = "an operation is complete only after `wait` or `.await`"]
pub struct Op<'w, B, M: Threading = Seq> {
    of: Of<'w, M>,
    state: State<B, M>,
}

impl<'w, B, M: Threading> Op<'w, B, M> {
    fn new(world: &'w World<M>, state: State<B, M>) -> Self {
        let of = Of::Lent(world);
        Self { of, state }
    }

    /// An operation that was complete when it was started.
    pub(crate) fn done(world: &'w World<M>, result: B) -> Self {
        Self::new(world, State::Done(result))
    }

    /// An operation whose result a look at its world finds.
    pub(crate) fn waiting(world: &'w World<M>, pending: impl Pending<B, M> + 'static) -> Self {
        Self::new(world, State::Waiting(Box::new(pending)))
    }

    /// An operation that is complete with its event, and then gives `kept` back.
    ///
    /// The memory that it reads and writes belongs to `kept`, wherever that is moved.
    pub(crate) fn of_event<K: Send + 'static>(
        world: &'w World<M>,
        event: Event,
        kept: K,
        give: impl Fn(K) -> B + Send + 'static,
    ) -> Self {
        if event.is_done() {
            return Self::done(world, give(kept));
        }
        let kept = Some(kept);
        Self::waiting(world, Started { event, kept, give })
    }

    /// Its result, if it is complete.
    pub(crate) fn take(&mut self) -> Option<Result<B>> {
        self.state.take(self.of.world())
    }

    /// Polls the network until the operation is complete, and returns its result or its buffer.
    ///
    /// See the example of [`Op`].
    ///
    /// # Errors
    /// The error of the operation, [`AmError::PeerLost`](crate::AmError::PeerLost) among them;
    /// [`AmError::Restricted`](crate::AmError::Restricted) inside a handler.
    ///
    /// # Panics
    /// If its result was taken before, by `await` or [`wait_timeout`](Self::wait_timeout).
    pub fn wait(mut self) -> Result<B> {
        self.state.assert_not_taken();
        let Self { of, state } = &mut self;
        let world = of.world();
        let mut result = state.take(world);
        if result.is_none() {
            let done = || {
                result = state.take(world);
                result.is_some()
            };
            let what = Waiting::new(WaitFor::Operations);
            process::with(|ctx| world.engine().wait_until(ctx, what, done))?;
        }
        // The wait returns without an error only when there is a result.
        result.unwrap_or_else(|| unreachable!("an operation is waited for once"))
    }

    /// [`wait`](Self::wait) for at most `timeout`: nothing if the operation is not complete by
    /// then, and goes on.
    ///
    /// A `timeout` of zero asks without waiting, after a poll.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # use std::time::Duration;
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 2).unwrap();
    /// let mut get = world.get(v.on(world.rank_offset(1))).unwrap();
    /// let values = loop {
    ///     if let Some(values) = get.wait_timeout(Duration::from_millis(1)).unwrap() {
    ///         break values;
    ///     }
    ///     // Say that it takes long.
    /// };
    /// assert_eq!(*values, [0, 0]);
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[doc(alias = "test")]
    #[doc(alias = "try_wait")]
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<B>> {
        self.state.assert_not_taken();
        let Self { of, state } = self;
        let (world, what) = (of.world(), Waiting::new(WaitFor::Operations));
        let engine = world.engine();
        let mut result = state.take(world);
        if result.is_none() {
            world.poll()?;
            result = state.take(world);
        }
        if result.is_none() && !timeout.is_zero() {
            let deadline = engine.now().saturating_add(timeout);
            let done = || {
                result = state.take(world);
                result.is_some()
            };
            process::with(|ctx| engine.wait_until_deadline(ctx, what, deadline, done))?;
        }
        result.transpose()
    }
}

impl<B> Op<'_, B, Par> {
    /// The same operation, with a clone of `world` instead of the borrow.
    ///
    /// For `tokio::spawn` and the like; an `async` block that owns such a clone needs none.
    ///
    /// Nothing that needs the world exclusively, such as [`World::quiet`], can be called while
    /// there is such an operation, or any other clone: `Arc::get_mut` gives it when they are gone.
    /// Where the last clone is dropped the world is finalized, which a handler cannot do.
    ///
    /// ```
    /// # use argonet::{Op, Par, SharedArray, World};
    /// # use std::sync::Arc;
    /// # use std::thread;
    /// # let world = World::builder().build_par().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 2).unwrap();
    /// let mut world = Arc::new(world);
    /// let get = world.get(v.on(world.rank())).unwrap();
    /// let get: Op<'static, _, Par> = get.into_owned(&world);
    /// assert!(Arc::get_mut(&mut world).is_none());
    /// let values = thread::spawn(move || get.wait()).join().unwrap().unwrap();
    /// assert_eq!(*values, [0, 0]);
    /// Arc::get_mut(&mut world).unwrap().quiet(|_| ()).unwrap();
    /// ```
    ///
    /// # Panics
    /// If the operation is of another world.
    pub fn into_owned(mut self, world: &Arc<World<Par>>) -> Op<'static, B, Par> {
        let own = &self.of.world().inner;
        assert!(
            Arc::ptr_eq(own, &world.inner),
            "an operation stays in its world"
        );
        Op {
            of: Of::Shared(Arc::clone(world)),
            state: core::mem::replace(&mut self.state, State::Taken),
        }
    }
}

impl<B, M: Threading> Drop for Op<'_, B, M> {
    fn drop(&mut self) {
        let Self { of, state } = self;
        state.abandon(of.world());
    }
}

impl<M: Threading> World<M> {
    /// One operation that is complete when all of these are, and returns their results in the same
    /// order.
    ///
    /// It does not start anything: the operations are under way. With the first error, in their
    /// order, it drops those behind, and so waits for their puts and gets, also where it is polled.
    ///
    /// ```
    /// # use argonet::{SharedArray, World};
    /// # let world = World::init().unwrap();
    /// let v = SharedArray::<u64>::alloc(&world, 2).unwrap();
    /// let gets = world.ranks().map(|rank| world.get(v.on(rank)));
    /// let gets: Vec<_> = gets.collect::<argonet::Result<_>>().unwrap();
    /// let all = world.join_all(gets).wait().unwrap();
    /// assert_eq!(all.len(), world.size() as usize);
    /// ```
    ///
    /// # Panics
    /// If one of them was awaited to its end, or is of another world.
    #[doc(alias = "when_all")]
    pub fn join_all<'w, B: Send + 'static>(
        &'w self,
        operations: impl IntoIterator<Item = Op<'w, B, M>>,
    ) -> Op<'w, Vec<B>, M> {
        let of_this = |mut op: Op<'w, B, M>| {
            op.state.assert_not_taken();
            assert!(
                Arc::ptr_eq(&op.of.world().inner, &self.inner),
                "an operation stays in its world"
            );
            core::mem::replace(&mut op.state, State::Taken)
        };
        let parts: Vec<_> = operations.into_iter().map(of_this).collect();
        let results = Vec::with_capacity(parts.len());
        Op::waiting(self, All { parts, results })
    }

    /// Has a task polled again; whether a progress thread does so, once its operation may be
    /// complete: that may be so already.
    fn poll_later(&self, waker: &Waker) -> bool {
        // `World::block_on` polls again without being woken.
        if waker.will_wake(&self.engine().waker()) {
            return false;
        }
        match &self.progress {
            Some(thread) => thread.wake_later(waker),
            None => waker.wake_by_ref(),
        }
        self.progress.is_some()
    }
}

/// Several operations, of which the first so many are complete.
struct All<B, M: Threading> {
    parts: Vec<State<B, M>>,
    results: Vec<B>,
}

impl<B: Send, M: Threading> Pending<Vec<B>, M> for All<B, M> {
    fn look(&mut self, world: &World<M>) -> Option<Result<Vec<B>>> {
        while let Some(part) = self.parts.get_mut(self.results.len()) {
            match part.take(world)? {
                Ok(result) => self.results.push(result),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(core::mem::take(&mut self.results)))
    }

    fn abandon(&mut self, world: &World<M>) {
        self.parts.iter_mut().for_each(|part| part.abandon(world));
    }
}

/// An operation under way, with the memory that it reads and writes.
struct Started<K, G> {
    event: Event,
    kept: Option<K>,
    give: G,
}

impl<B, M, K, G> Pending<B, M> for Started<K, G>
where
    M: Threading,
    K: Send,
    G: Fn(K) -> B + Send,
{
    fn look(&mut self, world: &World<M>) -> Option<Result<B>> {
        match process::with(|ctx| world.engine().peek(ctx, self.event)) {
            Ok(true) => {
                self.event = Event::DONE;
                self.kept.take().map(|kept| Ok((self.give)(kept)))
            }
            Ok(false) => None,
            Err(error) => {
                if has_ended(&error) {
                    self.event = Event::DONE;
                }
                Some(Err(error.into()))
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.event.is_done()
    }

    fn abandon(&mut self, world: &World<M>) {
        if self.event.is_done() {
            return;
        }
        let engine = world.engine();
        let waited = process::with(|ctx| engine.wait(ctx, self.event));
        if waited.as_ref().map_or_else(has_ended, |()| true) {
            self.event = Event::DONE;
        }
    }
}

/// Whether the error is that the operation has ended by the loss of its peer: nothing uses its
/// memory any more.
pub(crate) fn has_ended(error: &OpError) -> bool {
    matches!(error, OpError::Am(AmError::PeerLost { .. }))
}

impl<K, G> Drop for Started<K, G> {
    fn drop(&mut self) {
        if !self.event.is_done() {
            // Nothing has learned when the last byte comes, which needs somewhere to go.
            core::mem::forget(self.kept.take());
        }
    }
}

impl<B: Unpin, M: Threading> Future for Op<'_, B, M> {
    type Output = Result<B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<B>> {
        let Self { of, state } = &mut *self;
        let world = of.world();
        state.assert_not_taken();
        if let Some(result) = state.take(world) {
            return Poll::Ready(result);
        }
        // Else each of many tasks would ask the network.
        let thread = world.progress.as_ref();
        if !thread.is_some_and(ProgressThread::serves_tasks) {
            if let Err(error) = world.poll() {
                return Poll::Ready(Err(error));
            }
            if let Some(result) = state.take(world) {
                return Poll::Ready(result);
            }
        }
        let may_be_complete = world.poll_later(cx.waker());
        let result = may_be_complete.then(|| state.take(world)).flatten();
        result.map_or(Poll::Pending, Poll::Ready)
    }
}
