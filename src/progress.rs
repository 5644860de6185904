//! The thread that runs handlers while the program computes.

use crate::error::{Error, Result};
use crate::process;
use crate::world::{Inner, Par, World};
use argonet_conduit::Conduit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Tasks of executors that wait for operations.
#[derive(Default)]
struct Wakers {
    list: Mutex<Vec<Waker>>,
    /// Whether there are some.
    any: AtomicBool,
}

impl Wakers {
    fn wake_all(&self) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let wakers = {
            let mut list = self.list.lock();
            self.any.store(false, Ordering::Release);
            core::mem::take(&mut *list)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The thread, which ends with this value.
pub(crate) struct ProgressThread {
    inner: Arc<Inner>,
    is_over: Arc<AtomicBool>,
    wakers: Arc<Wakers>,
    thread: Option<JoinHandle<()>>,
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
    /// program take messages themselves, it leaves them to those for 0.2 ms at a time. Handlers,
    /// remote procedures and functions for [lost ranks](crate::Builder::on_peer_lost) run on it as
    /// on any thread that polls.
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
    /// [`Error::Thread`] if the system gives no thread.
    pub fn start_progress_thread(&mut self) -> Result<()> {
        if self.progress.is_some() {
            return Ok(());
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let wakers = Arc::<Wakers>::default();
        let (inner, over) = (Arc::clone(&self.inner), Arc::clone(&is_over));
        let waiting = Arc::clone(&wakers);
        let serve = move || {
            let is_over = || over.load(Ordering::Acquire);
            let served = || waiting.wake_all();
            process::with(|ctx| inner.engine.serve_peers(ctx, &is_over, &served));
            // They go on without it.
            waiting.wake_all();
        };
        let thread = argonet_base::threads::spawn("argonet-progress", serve);
        let thread = thread.map_err(|cause| Error::Thread {
            rank: self.rank(),
            cause,
        })?;
        self.progress = Some(ProgressThread {
            inner: Arc::clone(&self.inner),
            is_over,
            wakers,
            thread: Some(thread),
        });
        Ok(())
    }
}

impl ProgressThread {
    /// Wakes a task when something has come or is complete.
    ///
    /// It looks for its operation once more after this.
    pub(crate) fn wake_later(&self, waker: &Waker) {
        let mut list = self.wakers.list.lock();
        if !list.iter().any(|known| known.will_wake(waker)) {
            list.push(waker.clone());
        }
        self.wakers.any.store(true, Ordering::Release);
    }
}

impl Drop for ProgressThread {
    /// Waits for what runs on the thread.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.inner.engine.conduit().wake();
        if let Some(thread) = self.thread.take() {
            // A panic on it has ended the job.
            let _ = thread.join();
        }
    }
}
