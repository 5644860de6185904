//! Code that depends on the processor and needs no `unsafe`.

/// Tells the processor that this is a spin loop.
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}
