//! The thread that serves puts, gets and connections while its rank makes no call. It runs no
//! handlers: messages are set aside for the rank's next poll.
//!
//! A rank that polls serves itself, and sooner than any thread can; two that read the same socket
//! only get into each other's way. So the thread looks at the rank first. While that polls and
//! something comes, the thread only looks, every [`PERIOD`], whether it still does. When nothing
//! comes, it waits at the sockets, each of which wakes it once. While the rank sleeps, it does,
//! too.

use super::core::Core;
use super::readiness::{CONNECTOR, WAKE};
use super::visit::Served;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::io;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// A rank that has not polled for so long computes.
const PERIOD: Duration = Duration::from_micros(60);

/// Looks at a rank that polls and takes nothing, after which the thread waits at the sockets.
const IDLE_LOOKS: u32 = 16;

/// Events that are taken at once.
const EVENTS: usize = 16;

/// Whether a rank should have the thread that serves while it computes, if nobody has said so: when
/// the host has cores that its `ranks` do not use.
#[must_use]
pub fn progress_by_default(ranks: u32) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (ranks as usize) < cores
}

/// The sockets at which the thread waits, each until it has something once.
#[derive(Debug)]
struct Watch {
    epoll: OwnedFd,
    bell: OwnedFd,
}

#[derive(Debug)]
pub(super) struct Progress {
    /// `None` where there is no thread.
    watch: Option<Watch>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: Mutex<bool>,
    call: Condvar,
    /// The thread sleeps because its rank does. In one order (SeqCst) with the count of sleepers.
    sleeps: AtomicBool,
}

fn once() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::ONESHOT
}

impl Progress {
    /// None.
    pub(super) fn none() -> Self {
        Self {
            watch: None,
            thread: Mutex::default(),
            stop: Mutex::default(),
            call: Condvar::new(),
            sleeps: AtomicBool::new(false),
        }
    }

    /// With what it needs to wait.
    pub(super) fn new(connector: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let watch = Watch {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        };
        let mark = epoll::EventData::new_u64;
        epoll::add(&watch.epoll, &watch.bell, mark(WAKE), epoll::EventFlags::IN)?;
        if let Some(connector) = connector {
            epoll::add(&watch.epoll, connector, mark(CONNECTOR), once())?;
        }
        Ok(Self {
            watch: Some(watch),
            ..Self::none()
        })
    }

    pub(super) fn is_there(&self) -> bool {
        self.watch.is_some()
    }

    /// Begins to wait at a socket.
    pub(super) fn watch(&self, socket: BorrowedFd<'_>, mark: u64) -> io::Result<()> {
        if let Some(watch) = &self.watch {
            epoll::add(
                &watch.epoll,
                socket,
                epoll::EventData::new_u64(mark),
                once(),
            )?;
        }
        Ok(())
    }

    /// Waits at it once more. One that was given up meanwhile is not known any more.
    fn again(&self, socket: BorrowedFd<'_>, mark: u64) {
        if let Some(watch) = &self.watch {
            let data = epoll::EventData::new_u64(mark);
            let _ = epoll::modify(&watch.epoll, socket, data, once());
        }
    }

    pub(super) fn forget(&self, socket: BorrowedFd<'_>) {
        if let Some(watch) = &self.watch {
            let _ = epoll::delete(&watch.epoll, socket);
        }
    }

    /// Begins.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn begin(&self, core: &Arc<Core>) -> io::Result<()> {
        if self.is_there() {
            let core = Arc::downgrade(core);
            let thread = argonet_base::threads::spawn("argonet-serve", move || run(&core))?;
            *self.thread.lock() = Some(thread);
        }
        Ok(())
    }

    /// A thread of the rank does not sleep any more.
    #[inline]
    pub(super) fn awake(&self) {
        if self.watch.is_some() {
            fence(Ordering::SeqCst);
            if self.sleeps.load(Ordering::SeqCst) {
                let _stop = self.stop.lock();
                self.call.notify_one();
            }
        }
    }

    /// Ends the thread and waits for that.
    pub(super) fn end(&self) {
        let Some(watch) = &self.watch else { return };
        *self.stop.lock() = true;
        self.call.notify_one();
        // Full means that it has been rung.
        let _ = rustix::io::write(&watch.bell, &1u64.to_ne_bytes());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // It does not panic, and if it had there would be nothing to do.
            let _ = thread.join();
        }
    }
}

fn run(core: &Weak<Core>) {
    // Else the system lets a thread sleep for some 50 us longer than it asked. Where it refuses, it
    // does so. SAFETY: the call takes a number and concerns the calling thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
    let Some(core) = core.upgrade() else { return };
    let mut server = Server {
        core: &core,
        fired: Vec::new(),
        held: Vec::new(),
        turn: core.readiness.turn(),
    };
    // The conduit ends this thread before it gives the rest of it up.
    while server.step() {}
}

/// What the thread knows.
struct Server<'a> {
    core: &'a Core,
    /// What must be told to wait at again.
    fired: Vec<u64>,
    /// The same, once the rank has polled.
    held: Vec<u64>,
    /// Polls of the rank, when it was looked at last.
    turn: u32,
}

/// How the rank was found.
#[derive(PartialEq, Eq)]
enum Found {
    /// It has made no call for a period.
    Computing,
    /// It polls, and nothing comes.
    Idle,
    /// The conduit ends.
    Ended,
}

impl Server<'_> {
    fn turn(&self) -> u32 {
        self.core.readiness.turn()
    }

    /// Waits until the rank is not busy with what comes; then at the sockets, for what there is for
    /// the thread. Whether it goes on.
    fn step(&mut self) -> bool {
        if self.look() == Found::Ended {
            return false;
        }
        self.fired.append(&mut self.held);
        self.wait_again();
        loop {
            let Some(marks) = self.wait() else {
                return false;
            };
            self.fired.extend_from_slice(&marks);
            if self.turn() != self.turn {
                // It has polled since, and perhaps still does.
                return true;
            }
            for mark in marks {
                if !self.serve(mark) {
                    return true;
                }
            }
            self.wait_again();
        }
    }

    /// Looks at the rank until it computes or has nothing to do.
    fn look(&mut self) -> Found {
        let progress = &self.core.progress;
        let mut idle = 0;
        let mut stop = progress.stop.lock();
        loop {
            if *stop {
                return Found::Ended;
            }
            let (turn, epoch) = (self.turn(), self.core.sleepers.epoch());
            progress.sleeps.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if self.core.sleepers.any() {
                progress.call.wait(&mut stop);
                progress.sleeps.store(false, Ordering::SeqCst);
                continue;
            }
            progress.sleeps.store(false, Ordering::SeqCst);
            let _ = progress.call.wait_for(&mut stop, PERIOD);
            self.turn = self.turn();
            if self.core.sleepers.any() {
                continue;
            }
            if self.turn == turn {
                return Found::Computing;
            }
            idle = if self.core.sleepers.epoch() == epoch {
                idle + 1
            } else {
                0
            };
            if idle > IDLE_LOOKS {
                return Found::Idle;
            }
        }
    }

    /// Waits until there is something: what. `None` at the end.
    fn wait(&self) -> Option<Vec<u64>> {
        let watch = self.core.progress.watch.as_ref()?;
        let mut events = [const { core::mem::MaybeUninit::uninit() }; EVENTS];
        let found = epoll::wait(&watch.epoll, &mut events, None);
        let found = found.map_or(&[][..], |(found, _)| &*found);
        let marks: Vec<u64> = found.iter().map(|event| event.data.u64()).collect();
        (!marks.contains(&WAKE)).then_some(marks)
    }

    /// Takes what there is of one. Whether the rank still makes no call.
    fn serve(&mut self, mark: u64) -> bool {
        if mark == CONNECTOR {
            self.core.connect();
            return true;
        }
        let Some(peer) = self.core.used(mark as u32) else {
            return true;
        };
        let connection = mark >> 32;
        if connection > 0 {
            peer.ready_rails
                .fetch_or(1 << connection, Ordering::Relaxed);
        }
        loop {
            match self.core.serve(peer) {
                Served::Some if self.turn() == self.turn => {}
                Served::All | Served::Some => return true,
                Served::Held => {
                    self.fired.retain(|fired| *fired != mark);
                    self.held.push(mark);
                    return true;
                }
                Served::Busy => return false,
            }
        }
    }

    /// Waits again at all that have had something.
    fn wait_again(&mut self) {
        for mark in core::mem::take(&mut self.fired) {
            if mark == CONNECTOR {
                if let Some(connector) = self.core.connector.descriptor() {
                    self.core.progress.again(connector, mark);
                }
            } else if let Some(peer) = self.core.used(mark as u32)
                && let Some(wire) = peer.outbound.lock().wire_of((mark >> 32) as u16)
                && let Some(socket) = wire.descriptor()
            {
                self.core.progress.again(socket, mark);
            }
        }
    }
}
