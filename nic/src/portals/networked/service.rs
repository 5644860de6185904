//! The thread that plays the hardware.

use super::core::{Core, nanoseconds};
use super::wire::Inbox;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::Ordering;

/// Batches that are taken before timers are looked at.
const MOST_BATCHES: u32 = 16;

/// Sleeps on the socket, and does what arrives and what time demands, until the interface is dropped and what it sent has arrived.
pub(super) fn run(core: &Core) {
    let mut inbox = Inbox::new();
    // From when the interface is being dropped.
    let mut ends: Option<Duration> = None;
    loop {
        let mut turn = core.turn();
        turn.handle_timeout();
        if turn.state.stopping {
            let end = *ends.get_or_insert_with(|| turn.now + core.linger);
            if turn.now >= end || turn.state.is_drained() {
                return;
            }
        }
        let due = turn.state.endpoint.poll_timeout();
        let due = due.into_iter().chain(ends).min();
        core.sleeps_until.store(nanoseconds(due), Ordering::Relaxed);
        let left = due.map(|due| due.saturating_sub(turn.now));
        drop(turn);
        sleep(core, left);
        core.sleeps_until.store(0, Ordering::Relaxed);
        for _ in 0..MOST_BATCHES {
            if !inbox.receive(&core.wire, |datagram| core.turn().arrive(datagram)) {
                break;
            }
        }
    }
}

fn sleep(core: &Core, timeout: Option<Duration>) {
    let timeout = timeout.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let mut wakes = [
        PollFd::new(&core.wire.socket, PollFlags::IN),
        PollFd::new(&core.bell, PollFlags::IN),
    ];
    // Whatever it says, everything is looked at again.
    let _ = poll(&mut wakes, timeout.as_ref());
    if wakes.iter().any(|fd| fd.revents().contains(PollFlags::IN)) {
        let rung = wakes.get(1).is_some_and(|bell| !bell.revents().is_empty());
        if rung {
            let _ = rustix::io::read(&core.bell, &mut [0_u8; 8]);
        }
    }
}
