//! Atomics and threads, replaced by loom's when built with `--cfg loom`.
//!
//! Every shared structure takes its atomics from here, so that the same code runs under loom's
//! model checker and in production.

#[cfg(not(loom))]
pub use core::sync::atomic;

#[cfg(loom)]
pub use loom::sync::atomic;

/// Hint inside a spin loop; under loom it lets another modeled thread run.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    crate::cpu::relax();
    #[cfg(loom)]
    loom::thread::yield_now();
}
