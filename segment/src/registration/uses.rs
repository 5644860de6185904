//! How many operations use a registration, and whether it is retired: one word, so that the last
//! user and the thread that retires it agree on which gives it back.

use argonet_base::sync::atomic::{AtomicUsize, Ordering};

/// Set once, for good, by the thread that retires the registration.
const RETIRED: usize = 1 << (usize::BITS - 1);

/// The word: users in the low bits, [`RETIRED`] above.
///
/// Written by every user on entering (Acquire, so that it sees the registration) and leaving
/// (Release), and by the thread that retires it, which holds the cache's lock (AcqRel). The thread
/// that brings it to retired without users gives the registration back, after all that users did
/// with it.
#[derive(Debug, Default)]
pub(super) struct Uses(AtomicUsize);

impl Uses {
    /// One user, from the start.
    pub(super) fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// Counts a user, unless it is retired.
    pub(super) fn enter(&self) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while now & RETIRED == 0 {
            let entered =
                self.0
                    .compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed);
            match entered {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Counts one more for a user that is counted already; retired or not.
    pub(super) fn again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A user less.
    ///
    /// Says whether the caller has to give the registration back.
    pub(super) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == RETIRED | 1
    }

    /// Retires it.
    ///
    /// Says whether the caller has to give the registration back; else the last user does.
    pub(super) fn retire(&self) -> bool {
        self.0.fetch_or(RETIRED, Ordering::AcqRel) == 0
    }

    /// Retires it if no operation uses it, and says whether so: the caller gives the registration
    /// back then.
    pub(super) fn retire_unused(&self) -> bool {
        self.0
            .compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::Uses;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A registration that notices use after it was given back, and being given back twice: users
    /// read, and the one that gives it back writes.
    struct Registration {
        uses: Uses,
        live: UnsafeCell<bool>,
    }

    impl Registration {
        fn used(&self) {
            // SAFETY: loom reports a write that is not ordered with this read.
            self.live.with(|live| assert!(unsafe { *live }));
        }

        fn give_back(&self) {
            // SAFETY: as above, for any other access.
            self.live.with_mut(|live| unsafe {
                assert!(*live, "given back twice");
                *live = false;
            });
        }

        fn leave(&self) {
            if self.uses.leave() {
                self.give_back();
            }
        }
    }

    fn check(retire: fn(&Registration)) {
        loom::model(move || {
            let registration = Arc::new(Registration {
                uses: Uses::one(),
                live: UnsafeCell::new(true),
            });
            let other = Arc::clone(&registration);
            let user = thread::spawn(move || {
                if other.uses.enter() {
                    other.used();
                    other.leave();
                }
            });
            let other = Arc::clone(&registration);
            let first = thread::spawn(move || {
                other.used();
                other.leave();
            });
            retire(&registration);
            user.join().unwrap();
            first.join().unwrap();
            // In every case a registration that is left is given back once.
            if registration.uses.retire_unused() {
                registration.give_back();
            }
            registration.live.with(|live| {
                // SAFETY: all threads are gone.
                assert!(!unsafe { *live }, "never given back");
            });
        });
    }

    #[test]
    fn given_back_once_by_the_last_user() {
        check(|registration| {
            if registration.uses.retire() {
                registration.give_back();
            }
        });
    }

    #[test]
    fn not_evicted_while_in_use() {
        check(|registration| {
            if registration.uses.retire_unused() {
                registration.give_back();
            }
        });
    }
}
