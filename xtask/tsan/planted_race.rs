//! A race on purpose: two threads add to a number without any order. `cargo xtask tsan` builds this
//! as it builds everything else and is content only if ThreadSanitizer reports it, so that a switch
//! that stopped working, or a suppression that hides too much, is noticed.

use std::cell::UnsafeCell;
use std::thread;

struct Unordered(UnsafeCell<u64>);

// SAFETY: none; that is the point.
unsafe impl Sync for Unordered {}

#[inline(never)]
fn add(number: &Unordered) {
    for _ in 0..1000 {
        // SAFETY: none; that is the point.
        unsafe { *number.0.get() += 1 };
    }
}

fn main() {
    let number = Unordered(UnsafeCell::new(0));
    thread::scope(|scope| {
        let threads = [scope.spawn(|| add(&number)), scope.spawn(|| add(&number))];
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
