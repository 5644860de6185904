//! The free list's mutex, loom's when built with `--cfg loom`.
//!
//! A model suspends a thread at each access to an atomic, also while it holds a lock; the other
//! modeled thread must then see a modeled lock and not a real one.

use core::ops::DerefMut;

#[cfg(loom)]
use loom::sync::Mutex as Inner;
#[cfg(not(loom))]
use parking_lot::Mutex as Inner;

pub(crate) struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    pub(crate) fn lock(&self) -> impl DerefMut<Target = T> + '_ {
        #[cfg(not(loom))]
        {
            self.0.lock()
        }
        #[cfg(loom)]
        {
            self.0
                .lock()
                .expect("a modeled thread does not panic with the lock held")
        }
    }
}
