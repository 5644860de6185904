//! Operations under way.

use crate::error::Result;
use crate::process;
use crate::world::{Threading, World};
use argonet_am::AmError;
use argonet_boot::{WaitFor, Waiting};
use argonet_engine::OpError;
use argonet_event::Event;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// The calls of a world that an operation makes, for worlds of either threading.
pub(crate) trait Progress {
    fn poll_once(&self) -> Result<usize>;
    /// Has a task polled again once its operation may be complete; whether that may be so already.
    fn poll_later(&self, waker: &Waker) -> bool;
    fn wait(&self, done: &mut dyn FnMut() -> bool) -> Result<()>;
}

impl<M: Threading> Progress for World<M> {
    fn poll_once(&self) -> Result<usize> {
        self.poll()
    }

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

    fn wait(&self, done: &mut dyn FnMut() -> bool) -> Result<()> {
        let what = Waiting::new(WaitFor::Operations);
        Ok(process::with(|ctx| {
            self.engine().wait_until(ctx, what, done)
        })?)
    }
}

enum State<'w, B> {
    Done(B),
    /// Looks whether the result is there, and takes it.
    Waiting(Box<dyn FnMut() -> Option<Result<B>> + 'w>),
    Taken,
}

/// An operation that was started: a future that needs no runtime, with a blocking
/// [`wait`](Self::wait) beside it.
///
/// It owns its buffer until it is complete, and stays on the thread that started it. Dropping it
/// does not cancel the operation, which still takes effect at the target. Where a put or a get
/// still uses the buffer, dropping it waits; a collective operation leaks the buffer.
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
///
/// [`World::block_on`] sleeps where nothing happens. Under an executor that knows nothing of this
/// library, an operation asks to be polled again at once, unless there is a [progress
/// thread](World::start_progress_thread), which wakes it when something has come to the rank, and
/// twice a second. Operations of an [`RpcContext`](crate::RpcContext) ask at once. A waker that
/// panics on that thread ends the job.
#[must_use = "an operation is complete only after `wait` or `.await`"]
pub struct Op<'w, B> {
    world: &'w dyn Progress,
    state: State<'w, B>,
}

impl<'w, B> Op<'w, B> {
    /// An operation that was complete when it was started.
    pub(crate) fn done<M: Threading>(world: &'w World<M>, result: B) -> Self {
        Self {
            world,
            state: State::Done(result),
        }
    }

    /// An operation whose result some handler will bring.
    pub(crate) fn waiting<M: Threading>(
        world: &'w World<M>,
        take: impl FnMut() -> Option<Result<B>> + 'w,
    ) -> Self {
        Self {
            world,
            state: State::Waiting(Box::new(take)),
        }
    }

    /// An operation that is complete with its event, and then gives `kept` back.
    ///
    /// The memory that it reads and writes belongs to `kept`, wherever that is moved.
    pub(crate) fn of_event<M: Threading, K: 'w>(
        world: &'w World<M>,
        event: Event,
        kept: K,
        give: impl Fn(K) -> B + 'w,
    ) -> Self {
        if event.is_done() {
            return Self::done(world, give(kept));
        }
        let kept = Some(kept);
        let mut started = Started { world, event, kept };
        Self::waiting(world, move || {
            let kept = started.look()?;
            Some(kept.map(&give))
        })
    }

    /// Its result, if it is complete.
    pub(crate) fn take(&mut self) -> Option<Result<B>> {
        match core::mem::replace(&mut self.state, State::Taken) {
            State::Done(result) => Some(Ok(result)),
            State::Waiting(mut look) => {
                let result = look();
                if result.is_none() {
                    self.state = State::Waiting(look);
                }
                result
            }
            State::Taken => None,
        }
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
    /// If it was awaited to its end before.
    pub fn wait(mut self) -> Result<B> {
        assert!(
            !matches!(self.state, State::Taken),
            "an operation is waited for after its end"
        );
        let mut result = self.take();
        if result.is_none() {
            let world = self.world;
            world.wait(&mut || {
                result = self.take();
                result.is_some()
            })?;
        }
        // `wait` returns without an error only when there is a result.
        result.unwrap_or_else(|| unreachable!("an operation is waited for once"))
    }
}

/// An operation under way, with the memory that it reads and writes.
struct Started<'w, M: Threading, K> {
    world: &'w World<M>,
    event: Event,
    kept: Option<K>,
}

impl<M: Threading, K> Started<'_, M, K> {
    fn look(&mut self) -> Option<Result<K>> {
        let engine = self.world.engine();
        match process::with(|ctx| engine.peek(ctx, self.event)) {
            Ok(true) => {
                self.event = Event::DONE;
                self.kept.take().map(Ok)
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
}

/// Whether the error is that the operation has ended by the loss of its peer: nothing uses its
/// memory any more.
pub(crate) fn has_ended(error: &OpError) -> bool {
    matches!(error, OpError::Am(AmError::PeerLost { .. }))
}

impl<M: Threading, K> Drop for Started<'_, M, K> {
    fn drop(&mut self) {
        let engine = self.world.engine();
        if self.event.is_done() {
            return;
        }
        let waited = process::with(|ctx| engine.wait(ctx, self.event));
        if waited.is_err_and(|error| !has_ended(&error)) {
            // This call cannot learn when the last byte comes, which needs somewhere to go.
            core::mem::forget(self.kept.take());
        }
    }
}

impl<B: Unpin> Future for Op<'_, B> {
    type Output = Result<B>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<B>> {
        assert!(
            !matches!(self.state, State::Taken),
            "an operation is polled after its end"
        );
        if let Some(result) = self.take() {
            return Poll::Ready(result);
        }
        if let Err(error) = self.world.poll_once() {
            return Poll::Ready(Err(error));
        }
        if let Some(result) = self.take() {
            return Poll::Ready(result);
        }
        let result = match self.world.poll_later(cx.waker()) {
            true => self.take(),
            false => None,
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }
}
