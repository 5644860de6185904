//! Locks for reading and writing: the C library's, in storage that the header declares, as that
//! library's own type is hidden in strict C.

use core::ffi::c_int;

use crate::export::{CType, export};
use crate::tools::errors::fatal;
use crate::tools::state::with_held;

/// `gasnett_rwlock_t`.
///
/// All zeros is `PTHREAD_RWLOCK_INITIALIZER`.
#[repr(C)]
pub(crate) struct RwLock([u64; 8]);

const _: () = assert!(size_of::<libc::pthread_rwlock_t>() <= size_of::<RwLock>());
const _: () = assert!(align_of::<libc::pthread_rwlock_t>() <= align_of::<RwLock>());

impl CType for *mut RwLock {
    const NAME: &'static str = "gasnett_rwlock_t *";
}

/// A lock that a thread holds, by its address.
pub(crate) struct Held {
    lock: usize,
    writing: bool,
}

fn note(lock: *mut RwLock, writing: bool) {
    let lock = lock as usize;
    with_held(|held| held.push(Held { lock, writing }));
}

fn held(lock: *mut RwLock) -> c_int {
    with_held(|held| {
        let found = held.iter().find(|held| held.lock == lock as usize);
        found.map_or(0, |held| if held.writing { 2 } else { 1 })
    })
}

/// Takes a lock by one of the C library's functions.
fn take(
    lock: *mut RwLock,
    wait: c_int,
    checked: c_int,
    writing: bool,
    take: unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> c_int,
) -> c_int {
    if checked != 0 && held(lock) != 0 {
        fatal("", "a thread takes a lock that it holds already");
    }
    let result = loop {
        // SAFETY: `lock` points to storage that was all zeros or was locked before, by the header's
        // contract, and that is at least as large and as aligned as the C library's type (asserted
        // above).
        let result = unsafe { take(lock.cast()) };
        // Too many readers: one of them leaves some time.
        if wait == 0 || result != libc::EAGAIN {
            break result;
        }
        std::thread::yield_now();
    };
    match result {
        0 if checked != 0 => note(lock, writing),
        0 => {}
        libc::EBUSY | libc::EAGAIN if wait == 0 => {}
        _ => fatal("", "a lock for reading and writing could not be taken"),
    }
    result
}

export! {
    /// Ends the use of a lock that no thread holds.
    fn argonett_rwlock_destroy(lock: *mut RwLock) {
        // SAFETY: as in `take`.
        if unsafe { libc::pthread_rwlock_destroy(lock.cast()) } != 0 {
            fatal("gasnett_rwlock_destroy", "the lock is held");
        }
    }

    /// Takes it for reading; if `wait` is 0, only if that needs no waiting: 0, `EBUSY` or `EAGAIN`.
    fn argonett_rwlock_read(lock: *mut RwLock, wait: c_int, checked: c_int) -> c_int {
        let function = if wait != 0 { libc::pthread_rwlock_rdlock } else { libc::pthread_rwlock_tryrdlock };
        take(lock, wait, checked, false, function)
    }

    /// The same for writing.
    fn argonett_rwlock_write(lock: *mut RwLock, wait: c_int, checked: c_int) -> c_int {
        let function = if wait != 0 { libc::pthread_rwlock_wrlock } else { libc::pthread_rwlock_trywrlock };
        take(lock, wait, checked, true, function)
    }

    /// Gives back what this thread holds.
    fn argonett_rwlock_unlock(lock: *mut RwLock, checked: c_int) {
        if checked != 0 {
            let had = with_held(|held| {
                let at = held.iter().position(|held| held.lock == lock as usize);
                at.map(|at| held.swap_remove(at))
            });
            if had.is_none() {
                fatal("", "a thread gives back a lock that it does not hold");
            }
        }
        // SAFETY: as in `take`.
        if unsafe { libc::pthread_rwlock_unlock(lock.cast()) } != 0 {
            fatal("gasnett_rwlock_unlock", "pthread_rwlock_unlock failed");
        }
    }

    /// How this thread holds it: not (0), for reading (1), for writing (2).
    ///
    /// Knows checked locks only.
    fn argonett_rwlock_held(lock: *mut RwLock) -> c_int {
        held(lock)
    }
}

pub(crate) const LAYOUT: &[(&str, usize)] = &[("sizeof(gasnett_rwlock_t)", size_of::<RwLock>())];
