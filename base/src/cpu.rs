//! Code that depends on the processor, one version an architecture.

/// Tells the processor that this is a spin loop.
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}

/// A counter that rises by a constant number of ticks a second, between 10 MHz and 10 GHz. Cheap,
/// not ordered with other instructions, not comparable between hosts.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reading the time-stamp counter touches no memory; Linux leaves it enabled for
        // user processes.
        #[allow(unsafe_code)]
        unsafe {
            core::arch::x86_64::_rdtsc()
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reading the virtual counter touches no memory; Linux enables it for user
        // processes.
        #[allow(unsafe_code)]
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }
}

/// Ticks in about 130 ns on processors of today, for pauses that need no precision.
pub const SHORT_PAUSE_TICKS: u64 = if cfg!(target_arch = "aarch64") {
    8
} else {
    300
};
