//! The thread that plays the hardware.

use super::core::{Core, nanoseconds};
use super::reading::Leave;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

/// Sleeps on the socket, and handles arrivals and timers, until the interface is dropped.
pub(super) fn run(core: &Core) {
    let mut seen = 0;
    loop {
        let mut locked = core.lock();
        locked.handle_timeout();
        if locked.state.stopping {
            return;
        }
        let due = locked.state.endpoint.poll_timeout();
        let leave = core.reading.leave(locked.now, &mut seen);
        let look = match leave {
            Leave::Until(look) => Some(look),
            Leave::No | Leave::UntilWoken => None,
        };
        let due = due.into_iter().chain(look).min();
        core.sleeps_until.store(nanoseconds(due), Ordering::Relaxed);
        let left = due.map(|due| due.saturating_sub(locked.now));
        drop(locked);
        let socket = (leave == Leave::No).then(|| core.wire.as_fd());
        sleep(core.wakeup.as_fd(), socket, left);
        core.sleeps_until.store(0, Ordering::Relaxed);
        if leave == Leave::No {
            core.read_unless_callers_do();
        }
    }
}

/// Sleeps until a wakeup comes, something has come at the socket, or for so long.
pub(super) fn sleep(
    wakeup: BorrowedFd<'_>,
    socket: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) {
    let timeout = timeout.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut wakes = [on(wakeup), on(socket.unwrap_or(wakeup))];
    // After any result everything is looked at again.
    let _ = poll(&mut wakes, timeout.as_ref());
    let [woken, _] = &wakes;
    if woken.revents().contains(PollFlags::IN) {
        let _ = rustix::io::read(wakeup, &mut [0_u8; 8]);
    }
}
