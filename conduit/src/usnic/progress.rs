//! A thread that acknowledges and sends again while the rank makes no call.
//!
//! It leaves the queue and timers to threads of the rank that poll: one that has polled often since
//! the last look is taken to do so again until the next one. While such a thread sleeps at the
//! queue, this one looks at timers alone.

use super::bell::ring;
use super::shared::Shared;
use argonet_nic::datagram::DatagramQueue;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// For how long the thread leaves the queue to a thread that polls: this long at first, twice as
/// long after each look that finds that it still does.
const LEASE: Duration = Duration::from_micros(500);

/// At most so long: a rank that goes on to compute is served after two of them at the latest.
const LONGEST_LEASE: Duration = Duration::from_millis(4);

/// A lease is renewed if the rank has polled at least once each so long, on the average: one that
/// polls less computes.
///
/// Long enough for a poll that takes or sends a datagram of 60 KiB.
const POLL: Duration = Duration::from_micros(100);

/// Polls in any case.
const LEAST_POLLS: u32 = 2;

/// How often the thread looks whether a thread that slept at the queue has gone on to compute.
const LOOK: Duration = Duration::from_millis(5);

/// Looks that take what has come before the thread sees to other things.
const MOST_LOOKS: u32 = 16;

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

/// The time that the queue is left to threads of the rank.
#[derive(Debug)]
struct Lease {
    /// Polls, and when it was that they were so many: at the beginning of a lease, or of the time
    /// in which the rank is watched for one.
    polls: u32,
    since: Duration,
    /// How long it is; `None` where the thread has the queue.
    length: Option<Duration>,
}

impl Lease {
    fn new(polls: u32) -> Self {
        Self {
            polls,
            since: Duration::ZERO,
            length: None,
        }
    }

    /// Its end, if it is not over; or that of the next one, if the rank polls.
    fn left(&mut self, polls: u32, now: Duration) -> Option<Duration> {
        let elapsed = now.saturating_sub(self.since);
        if let Some(length) = self.length.filter(|length| elapsed < *length) {
            return Some(self.since + length);
        }
        let polled = polls.wrapping_sub(self.polls);
        // The thread may look late, or, woken by a datagram, after any time.
        if polled >= LEAST_POLLS && POLL.saturating_mul(polled) >= elapsed {
            let longer = self.length.map_or(LEASE, |length| 2 * length);
            self.length = Some(longer.min(LONGEST_LEASE));
        } else if self.length.take().is_none() && elapsed < LEASE {
            return None;
        }
        (self.polls, self.since) = (polls, now);
        Some(now + self.length?)
    }
}

fn serve<Q: DatagramQueue>(shared: &Shared<Q>, ends: &AtomicBool) {
    let mut lease = Lease::new(shared.polls());
    while !ends.load(Ordering::SeqCst) {
        let now = shared.now();
        let left = lease.left(shared.polls(), now);
        let sleeps = shared.sleepers.load(Ordering::SeqCst) > 0;
        let (reads, limit) = match (sleeps, left) {
            (true, _) => (false, now + LOOK),
            (false, Some(end)) => (false, end),
            (false, None) => (true, now + IDLE),
        };
        // Its polls look at timers, too.
        let leaves_timers = !sleeps && left.is_some();
        let (until, has_work) = shared.lock().sleep_until(limit, leaves_timers);
        if has_work {
            // Timers may have ended links, and acknowledgements may have made room.
            wake_sleepers(shared);
        }
        sleep(shared, reads, until.saturating_sub(shared.now()));
        if reads {
            for _ in 0..MOST_LOOKS {
                if !shared.attend(None) {
                    break;
                }
            }
        }
    }
}

fn wake_sleepers<Q: DatagramQueue>(shared: &Shared<Q>) {
    if shared.sleepers.load(Ordering::SeqCst) > 0 {
        ring(shared.wakeup());
    }
}

/// Goes on until what was sent has arrived, no longer than `grace`, and says that the rank ends.
pub(super) fn leave<Q: DatagramQueue>(shared: &Shared<Q>, grace: Duration) {
    let end = shared.now() + grace;
    let mut locked = shared.lock();
    locked.flush();
    locked.end();
    loop {
        let (until, _) = shared.lock().sleep_until(end, false);
        // After that, which may have sent the last acknowledgement that was owed.
        let is_drained = shared.lock().is_drained();
        let now = shared.now();
        if is_drained || now >= end {
            return shared.lock().leave();
        }
        sleep(shared, true, until.saturating_sub(now));
        shared.attend(None);
    }
}

/// Sleeps until the thread is wanted, something has come if it `reads`, or the time is over.
pub(super) fn sleep<Q: DatagramQueue>(shared: &Shared<Q>, reads: bool, timeout: Duration) {
    if reads && !shared.queue.arm() {
        // Something has come, and the caller reads it.
        return;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Polls in a time by which a lease is renewed.
    fn enough(time: Duration) -> u32 {
        time.div_duration_f64(POLL).ceil() as u32
    }

    #[test]
    fn a_lease_grows_while_the_rank_polls_and_ends_when_it_does_not() {
        // Over the end of numbers.
        let mut polls = u32::MAX - 5;
        let mut lease = Lease::new(polls);
        let mut now = MS;
        assert_eq!(lease.left(polls, now), None);
        now += LEASE / 2;
        polls = polls.wrapping_add(enough(LEASE / 2));
        let mut lengths = vec![LEASE];
        lengths.extend([2, 4, 8, 8].map(|times| times * LEASE));
        for length in lengths {
            assert_eq!(lease.left(polls, now), Some(now + length), "{length:?}");
            // It is not renewed before its end.
            polls = polls.wrapping_add(enough(length));
            assert_eq!(lease.left(polls, now + length / 2), Some(now + length));
            now += length;
        }
        assert_eq!(lease.left(polls, now), Some(now + LONGEST_LEASE));
        now += LONGEST_LEASE;
        // A few polls are those of a rank that computes.
        polls = polls.wrapping_add(enough(LONGEST_LEASE) - 1);
        assert_eq!(lease.left(polls, now), None);
    }

    #[test]
    fn a_rank_that_polls_gets_the_queue_from_a_thread_that_datagrams_wake() {
        let step = Duration::from_micros(30);
        // A poll each 60 us, and one each 600 us.
        for (looks_a_poll, gets) in [(2, true), (20, false)] {
            let mut lease = Lease::new(0);
            let looks = (1..100).map(|look| lease.left(look / looks_a_poll, MS + look * step));
            assert_eq!(looks.flatten().count() > 0, gets, "{looks_a_poll}");
        }
    }

    #[test]
    fn a_rank_that_computes_between_some_polls_gets_no_lease_for_long() {
        // 16 polls each 2 ms, and a thread that looks late.
        let mut lease = Lease::new(0);
        let (mut now, mut polls) = (MS, 0);
        for _ in 0..20 {
            polls += 16;
            now = lease
                .left(polls, now)
                .unwrap_or(now + 2 * MS)
                .max(now + 2 * MS);
            assert!(
                lease.length.is_none_or(|length| length <= LEASE),
                "{lease:?}"
            );
        }
    }
}
