//! A thread that acknowledges and sends again while the rank makes no call.
//!
//! It leaves the queue to threads of the rank that poll: one that has polled is taken to do so
//! again within a lease. While such a thread sleeps at the queue, this one looks at timers alone.

use super::shared::{Shared, ring};
use argonet_nic::datagram::DatagramQueue;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// For how long the thread leaves the queue to a thread that has polled.
const LEASE: Duration = Duration::from_micros(500);

/// How often the thread looks whether a thread that slept at the queue has gone on to compute.
const LOOK: Duration = Duration::from_millis(10);

/// Longest sleep.
const IDLE: Duration = Duration::from_secs(3600);

/// The thread.
///
/// It ends when this is dropped, once all that was sent has arrived or the grace is over.
pub(super) struct Progress<Q: DatagramQueue + 'static> {
    shared: Arc<Shared<Q>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<Q: DatagramQueue + 'static> Progress<Q> {
    pub(super) fn start(shared: Arc<Shared<Q>>, exit_grace: Duration) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (served, ended) = (Arc::clone(&shared), Arc::clone(&ends));
        let run = move || {
            serve(&served, &ended);
            leave(&served, exit_grace);
        };
        let thread = argonet_base::threads::spawn("argonet-usnic", run)?;
        Ok(Self {
            shared,
            ends,
            thread: Some(thread),
        })
    }
}

impl<Q: DatagramQueue + 'static> Drop for Progress<Q> {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        ring(&self.shared.bell);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by itself.
            let _ = thread.join();
        }
    }
}

fn serve<Q: DatagramQueue>(shared: &Shared<Q>, ends: &AtomicBool) {
    while !ends.load(Ordering::SeqCst) {
        let now = shared.now();
        let polled = Duration::from_nanos(shared.polled_ns.load(Ordering::Relaxed));
        let lease = polled + LEASE;
        let sleeps = shared.sleepers.load(Ordering::SeqCst) > 0;
        let (reads, limit) = match (sleeps, lease > now) {
            (true, _) => (false, now + LOOK),
            (false, true) => (false, lease),
            (false, false) => (true, now + IDLE),
        };
        let (until, has_work) = shared.turn().sleep_until(limit);
        if has_work {
            // Timers may have ended links, and acknowledgements may have made room.
            wake_sleepers(shared);
        }
        sleep(shared, reads, until.saturating_sub(shared.now()));
        if reads {
            shared.attend();
        }
    }
}

fn wake_sleepers<Q: DatagramQueue>(shared: &Shared<Q>) {
    if shared.sleepers.load(Ordering::SeqCst) > 0 {
        ring(shared.wakeup());
    }
}

/// Goes on until what was sent has arrived, no longer than `grace`, and says that the rank ends.
fn leave<Q: DatagramQueue>(shared: &Shared<Q>, grace: Duration) {
    let end = shared.now() + grace;
    let mut turn = shared.turn();
    turn.flush();
    turn.end();
    loop {
        let turn = shared.turn();
        let is_drained = turn.is_drained();
        let (until, _) = turn.sleep_until(end);
        let now = shared.now();
        if is_drained || now >= end {
            return shared.turn().leave();
        }
        sleep(shared, true, until.saturating_sub(now));
        shared.attend();
    }
}

/// Sleeps until the thread is wanted, something has come if it `reads`, or the time is over.
fn sleep<Q: DatagramQueue>(shared: &Shared<Q>, reads: bool, timeout: Duration) {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let mut wakes = [
        PollFd::new(&shared.bell, PollFlags::IN),
        PollFd::new(&shared.queue, PollFlags::IN),
    ];
    let count = if reads { 2 } else { 1 };
    // Whatever it was, everything is looked at again.
    let _ = poll(&mut wakes[..count], Some(&timeout));
    let _ = rustix::io::read(&shared.bell, &mut [0; 8]);
}
