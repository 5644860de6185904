//! Handler-safe locks: the waiting of threads that find one held, and the checks of debug builds.
//!
//! A wait never polls: a handler on the same thread might want the same lock.

mod checked;

use core::ffi::c_int;
use core::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use argonet_base::cpu;
use argonet_base::gasnet::number32;
use argonet_trace::{Kind, timed};
use rustix::thread::futex;

use crate::Prototype;
use crate::export::{export, names};
use crate::job::{NOT_READY, OK, fatal};

pub(crate) use checked::held;

/// `gex_HSL_t`.
///
/// All zero is none.
#[repr(C)]
struct Hsl {
    word: AtomicU32,
    life: AtomicU32,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and others may sleep.
const WANTED: u32 = 2;

/// `ARGONET_HSL_LIVE` and `ARGONET_HSL_DEAD`.
const LIVE: u32 = number32("ARGONET_HSL_LIVE");
const DEAD: u32 = number32("ARGONET_HSL_DEAD");

/// Looks at a held lock before the thread sleeps: locks are held shortly.
const LOOKS: u32 = 200;

impl Hsl {
    fn try_lock(&self) -> bool {
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn lock(&self) {
        for _ in 0..LOOKS {
            if self.try_lock() {
                return;
            }
            cpu::relax();
        }
        while self.word.swap(WANTED, Ordering::Acquire) != FREE {
            // An interrupted or a needless wake-up leads to the next look.
            let _ = futex::wait(&self.word, futex::Flags::PRIVATE, WANTED, None);
        }
    }

    fn unlock(&self) {
        if self.word.swap(FREE, Ordering::Release) == WANTED {
            self.wake();
        }
    }

    fn wake(&self) {
        // It fails for addresses that are no words of this process, which this one is.
        let _ = futex::wake(&self.word, futex::Flags::PRIVATE, 1);
    }
}

/// The lock of a pointer.
///
/// # Safety
/// Null, or memory of a `gex_HSL_t` that is only accessed atomically while several threads know it.
unsafe fn lock<'a>(hsl: *mut Hsl, function: &str) -> &'a Hsl {
    // SAFETY: this function's contract; all bits are values.
    match unsafe { hsl.as_ref() } {
        Some(lock) => lock,
        None => fatal(function, "the lock is null"),
    }
}

names! {
    *mut Hsl = "gex_HSL_t *",
}

/// All functions that `argonet/hsl.h` calls.
pub(crate) fn prototypes() -> Vec<Prototype> {
    PROTOTYPES.to_vec()
}

/// Sizes and places in structs that C declares too.
pub(crate) fn layouts() -> Vec<(&'static str, usize)> {
    vec![
        ("sizeof(gex_HSL_t)", size_of::<Hsl>()),
        ("offsetof(gex_HSL_t, argonet_word)", offset_of!(Hsl, word)),
        ("offsetof(gex_HSL_t, argonet_life)", offset_of!(Hsl, life)),
    ]
}

export! {
    fn argonet_hsl_wait(hsl: *mut Hsl) {
        let _waits = timed(Kind::LockWait);
        // SAFETY: as the header asks.
        unsafe { lock(hsl, "gex_HSL_Lock") }.lock();
    }

    fn argonet_hsl_wake(hsl: *mut Hsl) {
        // SAFETY: as the header asks.
        unsafe { lock(hsl, "gex_HSL_Unlock") }.wake();
    }

    fn argonet_hsl_init(hsl: *mut Hsl) {
        // SAFETY: as the header asks.
        checked::init(unsafe { lock(hsl, "gex_HSL_Init") });
    }

    fn argonet_hsl_destroy(hsl: *mut Hsl) {
        // SAFETY: as the header asks.
        checked::destroy(unsafe { lock(hsl, "gex_HSL_Destroy") });
    }

    fn argonet_hsl_lock(hsl: *mut Hsl) {
        let _waits = timed(Kind::LockWait);
        // SAFETY: as the header asks.
        checked::lock(unsafe { lock(hsl, "gex_HSL_Lock") });
    }

    fn argonet_hsl_unlock(hsl: *mut Hsl) {
        // SAFETY: as the header asks.
        checked::unlock(unsafe { lock(hsl, "gex_HSL_Unlock") });
    }

    fn argonet_hsl_trylock(hsl: *mut Hsl) -> c_int {
        // SAFETY: as the header asks.
        if checked::try_lock(unsafe { lock(hsl, "gex_HSL_Trylock") }) { OK } else { NOT_READY.number() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn threads_exclude_each_other_and_all_wake() {
        let (hsl, start) = (free(), Barrier::new(4));
        let mut counter = 0u64;
        let shared = &raw mut counter as usize;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for i in 0..2000 {
                        hsl.lock();
                        let counter = shared as *mut u64;
                        // SAFETY: the lock is held, and the counter outlives the threads.
                        unsafe {
                            let seen = counter.read_volatile();
                            if i % 64 == 0 {
                                std::thread::yield_now();
                            }
                            counter.write_volatile(seen + 1);
                        }
                        hsl.unlock();
                    }
                });
            }
        });
        assert_eq!((counter, hsl.word.into_inner()), (8000, FREE));
    }

    fn free() -> Hsl {
        Hsl {
            word: AtomicU32::new(FREE),
            life: AtomicU32::new(LIVE),
        }
    }
}
