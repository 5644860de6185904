//! A thread that attends a queue of an interface while the rank makes no call: it takes what comes,
//! and sends what is due.
//!
//! It leaves the queue and timers to threads of the rank that poll: one that has polled often since
//! the last look is taken to do so again until the next one. While such a thread sleeps at the
//! queue, this one looks at timers alone.

mod bell;

pub(crate) use bell::{event, ring};

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Polls of a rank after which one looks at timers, too.
pub(crate) const POLLS_A_TIMER: u32 = 16;

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

/// A queue, and what is to do at it, which threads of the rank and the attendant share.
pub(crate) trait Attended: Send + Sync + 'static {
    /// Name of the thread.
    const THREAD: &'static str;

    /// What the thread has for itself, without a lock.
    type Own: Default;

    /// The time.
    fn now(&self) -> Duration;

    /// A number that grows with each poll of the rank.
    fn polls(&self) -> u32;

    /// Threads of the rank that sleep at the queue, or are about to.
    fn sleepers(&self) -> &AtomicU32;

    /// Wakes the threads that sleep at the queue.
    fn wakeup(&self) -> &OwnedFd;

    /// Wakes the attendant.
    fn bell(&self) -> &OwnedFd;

    /// Can be read while something has come, for a thread that has [armed](Self::arm) it.
    fn queue(&self) -> BorrowedFd<'_>;

    /// Whether a thread that sleeps at the queue wakes for what comes from now on.
    fn arm(&self) -> bool;

    /// Takes what has come; whether anything had.
    fn attend(&self) -> bool;

    /// Sees to what takes longer than a lock may be held; when to do that again, at the latest.
    fn see(&self, own: &mut Self::Own) -> Option<Duration>;

    /// Does what time demands: until when the attendant sleeps, `limit` at the latest, and whether
    /// a thread of the rank that sleeps has something to do.
    ///
    /// `leaves_timers`: polls of the rank look at timers meanwhile.
    fn plan(&self, limit: Duration, leaves_timers: bool) -> (Duration, bool);

    /// The rank ends: goes on until what was sent has arrived, no longer than `grace`.
    fn leave(&self, grace: Duration);
}

/// The thread.
///
/// It ends when this is dropped, once all that was sent has arrived or the grace is over.
pub(crate) struct Attendant<A: Attended> {
    attended: Arc<A>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<A: Attended> Attendant<A> {
    pub(crate) fn start(attended: Arc<A>, exit_grace: Duration) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (served, ended) = (Arc::clone(&attended), Arc::clone(&ends));
        let run = move || {
            serve(&*served, &ended);
            served.leave(exit_grace);
        };
        let thread = argonet_base::threads::spawn(A::THREAD, run)?;
        Ok(Self {
            attended,
            ends,
            thread: Some(thread),
        })
    }

    /// The rank ends: the thread begins to do so.
    pub(crate) fn begin_to_end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        ring(self.attended.bell());
    }
}

impl<A: Attended> Drop for Attendant<A> {
    fn drop(&mut self) {
        self.begin_to_end();
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

fn serve<A: Attended>(attended: &A, ends: &AtomicBool) {
    let mut lease = Lease::new(attended.polls());
    let mut own = A::Own::default();
    while !ends.load(Ordering::SeqCst) {
        let now = attended.now();
        let left = lease.left(attended.polls(), now);
        let sleeps = attended.sleepers().load(Ordering::SeqCst) > 0;
        let (reads, limit) = match (sleeps, left) {
            (true, _) => (false, now + LOOK),
            (false, Some(end)) => (false, end),
            (false, None) => (true, now + IDLE),
        };
        // Its polls look at timers, too.
        let leaves_timers = !sleeps && left.is_some();
        let limit = attended.see(&mut own).map_or(limit, |at| at.min(limit));
        let (until, has_work) = attended.plan(limit, leaves_timers);
        if has_work && attended.sleepers().load(Ordering::SeqCst) > 0 {
            // Timers may have ended links, and acknowledgements may have made room.
            ring(attended.wakeup());
        }
        sleep(attended, reads, until.saturating_sub(attended.now()));
        if reads {
            for _ in 0..MOST_LOOKS {
                if !attended.attend() {
                    break;
                }
            }
        }
    }
}

/// The attendant sleeps until it is wanted, something has come if it `reads`, or the time is over.
pub(crate) fn sleep<A: Attended>(attended: &A, reads: bool, timeout: Duration) {
    if reads && !attended.arm() {
        // Something has come, and the caller reads it.
        return;
    }
    wait(
        attended.bell(),
        reads.then(|| attended.queue()),
        Some(timeout),
    );
    let _ = rustix::io::read(attended.bell(), &mut [0; 8]);
}

/// A thread of the rank sleeps until it is woken, something has come, or the time is over.
pub(crate) fn sleep_of_rank<A: Attended>(attended: &A, timeout: Option<Duration>) {
    if attended.arm() {
        wait(attended.wakeup(), Some(attended.queue()), timeout);
    }
}

/// A thread of the rank is about to sleep at several queues: adds what wakes it; false if something
/// has come.
pub(crate) fn begin_sleep_of_rank<'a, A: Attended>(
    attended: &'a A,
    wakes: &mut Vec<BorrowedFd<'a>>,
) -> bool {
    let sleeps = attended.arm();
    wakes.extend([attended.wakeup().as_fd(), attended.queue()]);
    sleeps
}

/// Waits at an event counter, and at a queue.
fn wait(event: &OwnedFd, queue: Option<BorrowedFd<'_>>, timeout: Option<Duration>) {
    let timeout = timeout.map(|time| Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let count = if queue.is_some() { 2 } else { 1 };
    let mut wakes = [
        PollFd::new(event, PollFlags::IN),
        PollFd::from_borrowed_fd(queue.unwrap_or(event.as_fd()), PollFlags::IN),
    ];
    // Whatever it was, everything is looked at again.
    let _ = poll(&mut wakes[..count], timeout.as_ref());
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
