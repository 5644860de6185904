//! The thread that runs handlers while the program computes.

use crate::error::{Error, Result};
use crate::process;
use crate::world::{Inner, Par, Threading, World};
use argonet_boot::Waiting;
use argonet_conduit::Conduit;
use argonet_engine::{BarrierKind, PANIC_CODE};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{RawWakerVTable, Waker};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

/// Tasks of executors that wait for operations.
#[derive(Default)]
pub(crate) struct Wakers {
    /// By what they wake: of a task that is polled again before it is woken there is one.
    list: Mutex<HashMap<(usize, usize), Waker>>,
    /// Threads that run functions with a context: the one that wakes may be among them.
    busy: AtomicU32,
}

impl Wakers {
    /// Wakes a task when something has come or is complete.
    ///
    /// It looks for its operation once more after this.
    fn add(&self, waker: &Waker) {
        let table: *const RawWakerVTable = waker.vtable();
        let task = (waker.data().addr(), table.addr());
        let mut list = self.list.lock();
        list.entry(task).or_insert_with(|| waker.clone());
    }

    /// Whether a task waits.
    fn any(&self) -> bool {
        !self.list.lock().is_empty()
    }

    /// Runs functions that may take long; meanwhile tasks look by themselves.
    pub(crate) fn while_busy<R>(&self, run: impl FnOnce() -> R) -> R {
        self.busy.fetch_add(1, Ordering::SeqCst);
        self.wake_all();
        let result = run();
        self.busy.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn wake_all(&self) {
        // A waker may call the library.
        let wakers = core::mem::take(&mut *self.list.lock());
        wakers.into_values().for_each(Waker::wake);
    }
}

/// The thread, and what ends it.
pub(crate) struct ProgressThread {
    inner: Arc<Inner>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The thread is to end.
    is_over: AtomicBool,
    /// It makes no call any more.
    has_ended: AtomicBool,
}

impl World<Par> {
    /// Starts a thread that serves other ranks while the program computes: it polls, so handlers,
    /// remote procedures and operations under way need no poll of the program.
    ///
    /// Without it messages wait until a thread of the program makes a call that polls. So call it
    /// where ranks compute for long, and others need something of them meanwhile. It ends when the
    /// world is finalized; a second call does nothing.
    ///
    /// It sleeps until a message comes, then runs its handler: some ten microseconds later than a
    /// thread that polls, and on a processor of its own if there is one. Where threads of the
    /// program take messages themselves, it leaves them to those, for 0.2 ms at a time: a message
    /// that comes after their last poll waits as long. It does not while a task of an executor
    /// waits for an operation. Handlers, remote procedures and functions for [lost
    /// ranks](crate::Builder::on_peer_lost) run on it as on any thread that polls; in a
    /// [quiet](World::quiet) phase it rests.
    ///
    /// It also wakes futures: see [`Op`](crate::Op).
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// static PINGS: AtomicU32 = AtomicU32::new(0);
    /// argonet::rpc! { fn ping() { PINGS.fetch_add(1, Ordering::Relaxed); } }
    ///
    /// argonet::World::builder().run_par(|world| {
    ///     world.start_progress_thread()?;
    ///     world.rpc_one_way(world.rank_offset(1), &ping, ())?;
    ///     while PINGS.load(Ordering::Relaxed) == 0 {
    ///         std::hint::spin_loop(); // A computation, which makes no call of the library.
    ///     }
    ///     Ok::<_, argonet::Error>(())
    /// });
    /// ```
    ///
    /// Only worlds for many threads have one:
    ///
    /// ```compile_fail,E0599
    /// # use argonet::World;
    /// # fn f(world: &mut World) {
    /// world.start_progress_thread().unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Thread`] if the system gives no thread;
    /// [`AmError::TooManyThreads`](crate::AmError::TooManyThreads), as it counts among the threads
    /// that communicate.
    pub fn start_progress_thread(&mut self) -> Result<()> {
        if self.progress.is_some() {
            return Ok(());
        }
        let shared = Arc::<Shared>::default();
        let (begun, begins) = sync_channel(1);
        let serve = {
            let (inner, shared) = (Arc::clone(&self.inner), Arc::clone(&shared));
            move || {
                let permitted = process::with(|ctx| inner.engine.permit_server(ctx));
                let may_serve = permitted.is_ok();
                // The other side waits for it.
                let _ = begun.send(permitted);
                if may_serve {
                    serve(&inner, &shared);
                }
            }
        };
        let rank = self.rank();
        let thread = argonet_base::threads::spawn("argonet-progress", serve);
        let thread = thread.map_err(|cause| Error::Thread { rank, cause })?;
        match begins.recv() {
            Ok(permitted) => permitted?,
            Err(_) => unreachable!("the thread sends before it ends"),
        }
        self.progress = Some(ProgressThread {
            inner: Arc::clone(&self.inner),
            shared,
            thread: Some(thread),
        });
        Ok(())
    }
}

/// What the thread does.
fn serve(inner: &Inner, shared: &Shared) {
    let unfinished = Unfinished(inner);
    let is_over = || shared.is_over.load(Ordering::Acquire);
    let served = || inner.wakers.wake_all();
    let is_awaited = || inner.wakers.any();
    process::with(|ctx| {
        let engine = &inner.engine;
        engine.serve_peers(ctx, &is_over, &is_awaited, &served);
    });
    // They go on without it.
    inner.wakers.wake_all();
    core::mem::forget(unfinished);
    shared.has_ended.store(true, Ordering::Release);
    inner.engine.conduit().wake();
}

/// Dropped when a waker panics: others would wait for the thread without end.
struct Unfinished<'w>(&'w Inner);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let why = "a panic on its progress thread";
        self.0.engine.boot().abort(PANIC_CODE, why);
    }
}

impl ProgressThread {
    /// Whether it runs functions that may take long.
    pub(crate) fn is_busy(&self) -> bool {
        self.inner.wakers.busy.load(Ordering::SeqCst) > 0
    }

    /// Whether it is going to poll for another task, and an operation can do without a poll.
    pub(crate) fn serves_tasks(&self) -> bool {
        let wakers = &self.inner.wakers;
        wakers.any() && !self.is_busy() && !self.inner.engine.has_background()
    }

    /// Has a task polled again when its operation may be complete; it looks once more after this.
    pub(crate) fn wake_later(&self, waker: &Waker) {
        let wakers = &self.inner.wakers;
        wakers.add(waker);
        if self.is_busy() {
            waker.wake_by_ref();
        }
        if self.inner.engine.nudge_server()
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }

    /// Waits until the thread serves no more, for a world that leaves.
    pub(crate) fn end<M: Threading>(mut self, world: &World<M>) -> Result<()> {
        self.ask_to_end();
        if self.is_this_thread() {
            return Ok(());
        }
        let what = Waiting::new(BarrierKind::Finalize.into());
        let ended = || self.shared.has_ended.load(Ordering::Acquire);
        let waited = process::with(|ctx| world.engine().wait_until(ctx, what, ended));
        self.join();
        Ok(waited?)
    }

    fn ask_to_end(&self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.inner.engine.conduit().wake();
    }

    fn is_this_thread(&self) -> bool {
        let thread = self.thread.as_ref().map(|thread| thread.thread().id());
        thread == Some(std::thread::current().id())
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic on it has ended the job.
            let _ = thread.join();
        }
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.ask_to_end();
        if !self.is_this_thread() {
            self.join();
        }
    }
}
