//! Threads that sleep until something comes for their rank, and their other wakeups.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// The sleeping threads of a rank.
///
/// A sleeper counts itself, then looks whether there is anything for it, then sleeps; a thread that
/// brings something raises the epoch, then looks whether any thread sleeps, and wakes it. Both in
/// one order (SeqCst).
///
/// One of the threads *watches*: it sleeps in the system, where what comes from outside ends its
/// sleep. The others *follow*: they sleep here until a poll of any thread has moved something, or
/// until the watch is theirs. If all slept in the system, each wakeup would have to be passed on
/// from one to the next, and none would rest.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    /// Threads that sleep or are about to.
    count: AtomicU32,
    /// Polls that have taken something, also only an acknowledgement that made room.
    ///
    /// Written by polling threads, read by waiting threads (Acquire): acquire loads pair with the
    /// increment in `moved`, so that the stores of handlers are seen.
    epoch: AtomicU32,
    roles: Mutex<Roles>,
    /// Ends the sleeps of followers.
    turned: Condvar,
}

#[derive(Debug, Default)]
struct Roles {
    /// A thread watches.
    is_watched: bool,
    /// Threads that follow.
    followers: u32,
}

impl Sleepers {
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether a poll has moved something since the epoch was `seen`.
    ///
    /// For a thread that has counted itself.
    #[inline]
    pub(crate) fn has_moved_since(&self, seen: u32) -> bool {
        self.epoch.load(Ordering::SeqCst) != seen
    }

    /// A poll has moved something.
    #[inline]
    pub(crate) fn moved(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// A poll has moved something, or the caller has stored something that a thread sleeps for:
    /// wakes those that sleep.
    ///
    /// `is_alone`: the rank is in SEQ mode, so that no other thread polls or loads the epoch.
    #[inline]
    pub(crate) fn moved_and_wake(&self, is_alone: bool, wake: impl FnOnce()) {
        if is_alone && self.count.load(Ordering::Relaxed) == 0 {
            // No other thread looks at the epoch meanwhile.
            let epoch = self.epoch.load(Ordering::Relaxed);
            self.epoch.store(epoch.wrapping_add(1), Ordering::Relaxed);
            return;
        }
        self.moved();
        if self.any() {
            self.wake_all(wake);
        }
    }

    /// Ends the sleeps of all followers, and by `wake` that of the thread that watches.
    #[cold]
    fn wake_all(&self, wake: impl FnOnce()) {
        // A thread that is about to follow looks at the epoch under the lock.
        if self.roles.lock().followers > 0 {
            self.turned.notify_all();
        }
        wake();
    }

    /// Whether any thread sleeps or is about to.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts the calling thread as one that sleeps, until the result is dropped.
    ///
    /// For threads all of which the system wakes.
    pub(crate) fn enter(&self) -> Sleeper<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        Sleeper(self)
    }

    /// Sleeps until a poll has moved something since the epoch was `seen`, `watch` ends, or the
    /// time is over.
    ///
    /// `watch` sleeps in the system for at most so long, after a look at whatever ends a sleep; one
    /// thread at a time is in it.
    pub(crate) fn sleep(
        &self,
        timeout: Option<Duration>,
        seen: u32,
        watch: impl FnOnce(Option<Duration>),
    ) {
        let _sleeper = self.enter();
        let mut roles = self.roles.lock();
        let mut end = None;
        while roles.is_watched {
            if self.has_moved_since(seen) {
                return self.pass_on(&roles);
            }
            if end.is_none() {
                end = timeout.map(|time| Instant::now() + time);
            }
            roles.followers += 1;
            let is_over = match end {
                Some(end) => self.turned.wait_until(&mut roles, end).timed_out(),
                None => {
                    self.turned.wait(&mut roles);
                    false
                }
            };
            roles.followers -= 1;
            if is_over {
                return self.pass_on(&roles);
            }
        }
        roles.is_watched = true;
        drop(roles);
        watch(match end {
            Some(end) => Some(end.saturating_duration_since(Instant::now())),
            None => timeout,
        });
        let mut roles = self.roles.lock();
        roles.is_watched = false;
        self.pass_on(&roles);
    }

    /// If no thread watches, one that follows does so from now on.
    ///
    /// A thread that follows no longer may have taken the notice that it should.
    fn pass_on(&self, roles: &Roles) {
        if !roles.is_watched && roles.followers > 0 {
            self.turned.notify_one();
        }
    }
}

/// A thread that sleeps.
pub(crate) struct Sleeper<'a>(&'a Sleepers);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    const THREADS: u32 = 4;

    /// A sleep that nothing ends fails its test then.
    const LIMIT: Duration = Duration::from_secs(20);

    /// What a thread sleeps at in the system.
    struct System {
        inside: AtomicU32,
        entered: Mutex<Sender<()>>,
        wakes: Mutex<Receiver<()>>,
    }

    impl System {
        fn watch(&self, sleepers: &Sleepers, seen: u32) {
            assert_eq!(
                self.inside.fetch_add(1, Ordering::SeqCst),
                0,
                "one at a time"
            );
            if !sleepers.has_moved_since(seen) {
                self.entered.lock().send(()).unwrap();
                self.wakes.lock().recv_timeout(LIMIT).unwrap();
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Runs with so many threads that sleep once each, after one watches and all others follow.
    fn with_sleepers(then: impl FnOnce(&Sleepers, &Receiver<()>, &Sender<()>)) {
        let sleepers = Sleepers::default();
        let (entered, has_entered) = channel();
        let (wake, wakes) = channel();
        let system = System {
            inside: AtomicU32::new(0),
            entered: Mutex::new(entered),
            wakes: Mutex::new(wakes),
        };
        let seen = sleepers.epoch();
        thread::scope(|scope| {
            let sleep = || sleepers.sleep(Some(LIMIT), seen, |_| system.watch(&sleepers, seen));
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(sleep)).collect();
            has_entered.recv_timeout(LIMIT).unwrap();
            while sleepers.roles.lock().followers < THREADS - 1 {
                thread::yield_now();
            }
            then(&sleepers, &has_entered, &wake);
            // ThreadSanitizer sees a join, but not the end of a scope.
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert!(!sleepers.any());
        assert_eq!(sleepers.roles.lock().followers, 0);
    }

    #[test]
    fn one_thread_watches_and_passes_that_on() {
        with_sleepers(|sleepers, has_entered, wake| {
            for left in (1..THREADS).rev() {
                wake.send(()).unwrap();
                has_entered.recv_timeout(LIMIT).unwrap();
                assert!(sleepers.roles.lock().followers < left);
            }
            wake.send(()).unwrap();
        });
    }

    #[test]
    fn what_moves_something_wakes_all() {
        with_sleepers(|sleepers, has_entered, wake| {
            sleepers.moved_and_wake(false, || wake.send(()).unwrap());
            // No thread goes to sleep in the system after that.
            while sleepers.any() {
                thread::yield_now();
            }
            assert!(has_entered.try_recv().is_err());
        });
    }

    #[test]
    fn a_thread_that_follows_has_a_time_limit() {
        with_sleepers(|sleepers, _, wake| {
            let seen = sleepers.epoch();
            sleepers.sleep(Some(Duration::from_millis(1)), seen, |_| unreachable!());
            sleepers.moved_and_wake(false, || wake.send(()).unwrap());
        });
    }
}
