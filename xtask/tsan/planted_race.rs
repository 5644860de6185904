//! A race on purpose: two threads add to a number without any order.
//!
//! `cargo xtask tsan` builds this as it builds everything else and is content only if
//! ThreadSanitizer reports it, so that a switch that stopped working, or a suppression that hides
//! too much, is noticed.
//!
//! The number is made as much of ours is: by the first thread that needs it. Accesses of that
//! thread before its next release count as part of the making, for which there is a suppression,
//! hence the counter.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

struct Unordered(UnsafeCell<u64>);

// SAFETY: none; that is the point.
unsafe impl Sync for Unordered {}

// SAFETY: none; that is the point.
unsafe impl Send for Unordered {}

/// Released and never acquired: it orders nothing.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn add(number: &OnceLock<Box<Unordered>>) {
    let number = number.get_or_init(|| Box::new(Unordered(UnsafeCell::new(0))));
    ARRIVED.fetch_add(1, Ordering::Release);
    for _ in 0..1000 {
        // SAFETY: none; that is the point.
        unsafe { *number.0.get() += 1 };
    }
}

fn main() {
    let number = OnceLock::new();
    thread::scope(|scope| {
        let threads = [scope.spawn(|| add(&number)), scope.spawn(|| add(&number))];
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
