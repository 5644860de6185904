//! Locks of debug builds: each thread knows which it holds.

use core::mem::ManuallyDrop;
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{DEAD, FREE, Hsl, LIVE};
use crate::job::fatal;

/// A lock that is held longer keeps messages from being handled.
const LONG: Duration = Duration::from_millis(500);

struct Held {
    address: usize,
    since: Instant,
}

thread_local! {
    /// Without drop code, as destructors of the client's may lock when a thread ends.
    ///
    /// Without memory when it is empty.
    static HELD: RefCell<ManuallyDrop<Vec<Held>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// How many locks this thread holds.
///
/// Known in debug builds of a client alone; elsewhere always 0.
pub(crate) fn held() -> usize {
    HELD.with_borrow(|held| held.len())
}

/// The newest lock that this thread holds is not held any more.
fn given_back(held: &mut ManuallyDrop<Vec<Held>>) {
    held.pop();
    if held.is_empty() {
        drop(ManuallyDrop::into_inner(core::mem::take(held)));
    }
}

fn address(hsl: &Hsl) -> usize {
    std::ptr::from_ref(hsl).addr()
}

/// Whether the calling thread holds it.
fn is_mine(hsl: &Hsl) -> bool {
    HELD.with_borrow(|held| held.iter().any(|one| one.address == address(hsl)))
}

#[cold]
fn wrong(function: &str, hsl: &Hsl, why: &str) -> ! {
    fatal(function, &format!("the lock at {hsl:p} {why}"))
}

fn must_live(function: &str, hsl: &Hsl) {
    match hsl.life.load(Ordering::Relaxed) {
        LIVE => {}
        DEAD => wrong(function, hsl, "has been destroyed"),
        _ => wrong(function, hsl, "has not been initialized"),
    }
}

pub(super) fn init(hsl: &Hsl) {
    if hsl.life.load(Ordering::Relaxed) == LIVE {
        wrong("gex_HSL_Init", hsl, "is initialized already");
    }
    hsl.word.store(FREE, Ordering::Relaxed);
    hsl.life.store(LIVE, Ordering::Release);
}

pub(super) fn destroy(hsl: &Hsl) {
    must_live("gex_HSL_Destroy", hsl);
    if hsl.word.load(Ordering::Relaxed) != FREE {
        wrong("gex_HSL_Destroy", hsl, "is held");
    }
    hsl.life.store(DEAD, Ordering::Relaxed);
}

pub(super) fn lock(hsl: &Hsl) {
    may_take("gex_HSL_Lock", hsl);
    hsl.lock();
    taken(hsl);
}

pub(super) fn try_lock(hsl: &Hsl) -> bool {
    may_take("gex_HSL_Trylock", hsl);
    let got = hsl.try_lock();
    if got {
        taken(hsl);
    }
    got
}

fn may_take(function: &str, hsl: &Hsl) {
    must_live(function, hsl);
    if is_mine(hsl) {
        wrong(function, hsl, "is held by this thread already");
    }
}

fn taken(hsl: &Hsl) {
    let one = Held {
        address: address(hsl),
        since: Instant::now(),
    };
    HELD.with_borrow_mut(|held| held.push(one));
}

pub(super) fn unlock(hsl: &Hsl) {
    const FUNCTION: &str = "gex_HSL_Unlock";
    must_live(FUNCTION, hsl);
    let last = HELD.with_borrow(|held| held.last().map(|one| (one.address, one.since)));
    match last {
        Some((newest, since)) if newest == address(hsl) => {
            HELD.with_borrow_mut(given_back);
            hsl.unlock();
            let time = since.elapsed();
            if time > LONG {
                let time = time.as_millis();
                eprintln!(
                    "argonet: warning: {FUNCTION}: the lock at {hsl:p} was held for {time} ms; handlers may have waited"
                );
            }
        }
        Some((newest, _)) if is_mine(hsl) => wrong(
            FUNCTION,
            hsl,
            &format!("is released before the one at {newest:#x}, which was taken after it"),
        ),
        _ if hsl.word.load(Ordering::Relaxed) == FREE => wrong(FUNCTION, hsl, "is not held"),
        _ => wrong(FUNCTION, hsl, "is held by another thread"),
    }
}
